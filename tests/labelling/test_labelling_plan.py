from collections import Counter

import pandas as pd
import pytest
from labelling_helpers import fabricate_pairs, make_key, make_options

from judge_calibration.errors import SourceError, TableError
from judge_calibration.labelling.planning import plan_round, read_issued_plan


def _plan(pairs, options, given=None):
    return plan_round(pairs, options, make_key(options), given)


class TestAssignment:
    def test_two_primaries_and_a_different_adjudicator_for_every_pair(self, a_round):
        for _, rows in a_round.plan.groupby("pair_id"):
            assert list(rows["stage"]) == ["primary", "primary", "adjudication"]
            assert rows["annotator_id"].nunique() == 3

    def test_load_is_balanced_within_two_pairs(self, a_round):
        counts = a_round.plan.groupby(["stage", "annotator_id"]).size()
        for stage in ("primary", "adjudication"):
            assert counts[stage].max() - counts[stage].min() <= 2

    def test_slices_are_balanced(self, a_round):
        rows = a_round.plan[a_round.plan["stage"] == "primary"].merge(
            a_round.pairs[["pair_id", "manipulation"]], on="pair_id"
        )
        counts = rows.groupby(["manipulation", "annotator_id"]).size().unstack()
        # 24 pairs x 2 primaries over 4 people: 12 each, give or take.
        assert counts.min().min() >= 9
        assert counts.max().max() <= 15

    def test_orders_are_balanced_for_each_annotator_and_slice(self, a_round):
        rows = a_round.unblinding[a_round.unblinding["stage"] == "primary"].merge(
            a_round.pairs[["pair_id", "manipulation"]], on="pair_id"
        )
        ab = (
            rows.assign(ab=rows["order"] == "AB")
            .groupby(["annotator_id", "manipulation"])["ab"]
            .agg(["sum", "size"])
        )
        assert ((2 * ab["sum"] - ab["size"]).abs() <= 1).all()

    def test_pairs_of_one_base_task_are_spread_over_people(self, a_round):
        # 5 pairs x 2 primaries = 10 slots over 4 people: nobody sees more than 3 of a task.
        primary = a_round.plan[a_round.plan["stage"] == "primary"]
        assert primary.groupby(["base_id", "annotator_id"]).size().max() <= 3

    def test_same_inputs_same_plan_whatever_the_order_of_rows(self, pairs, a_round):
        again = _plan(pairs.sample(frac=1, random_state=3), a_round.options)
        pd.testing.assert_frame_equal(again.plan, a_round.plan)
        pd.testing.assert_frame_equal(again.key, a_round.unblinding)


class TestCompetence:
    def test_domains_languages_and_stakes_are_obeyed(self):
        pairs = fabricate_pairs(12)
        pairs.loc[pairs["domain"] == "reasoning", "stakes"] = "medical"
        pairs.loc[pairs["difficulty"] == "hard", "language"] = "de"
        options = make_options(
            annotators=[
                {"code": "general_1"},
                {"code": "english_1", "languages": ["en"]},
                *({"code": f"doctor_{i}", "stakes": ["ordinary", "medical"]} for i in range(3)),
                {"code": "synthesis_1", "domains": ["synthesis"]},
            ]
        )
        key = make_key(options)
        plan = plan_round(pairs, options, key).plan.merge(pairs, on="pair_id")
        held = {code: plan[plan["annotator_id"] == key.pseudonym(code)] for code in options.codes}
        assert set(held["synthesis_1"]["domain"]) == {"synthesis"}
        assert set(held["english_1"]["language"]) == {"en"}
        assert "medical" not in set(held["general_1"]["stakes"])
        medical = plan[plan["stakes"] == "medical"]
        assert set(medical["annotator_id"]) == {key.pseudonym(f"doctor_{i}") for i in range(3)}

    def test_nobody_competent_leaves_the_slot_unassigned_with_a_reason(self):
        planned = _plan(fabricate_pairs(2, stakes="legal"), make_options())
        assert set(planned.plan["status"]) == {"unassigned"}
        assert set(planned.plan["reason"]) == {"no_competent_annotator_free"}
        assert planned.key.empty

    def test_capacity_is_never_exceeded(self):
        annotators = [{"code": f"annotator_{i}", "capacity": 10} for i in range(4)]
        planned = _plan(fabricate_pairs(10), make_options(annotators=annotators))
        assert planned.key.groupby("annotator_id").size().max() == 10
        assert (planned.plan["status"] == "unassigned").sum() == 150 - 40


class TestHandOver:
    OPTIONS = {"hand_overs": [{"annotator": "annotator_2", "at": "2026-02-10T00:00:00Z"}]}

    def test_labelled_packets_stay_and_the_rest_moves_to_others(self, pairs, a_round):
        key = a_round.key
        leaver = key.pseudonym("annotator_2")
        held = a_round.unblinding[a_round.unblinding["annotator_id"] == leaver]
        labelled = set(held["packet_id"].iloc[:10])
        later = pd.Timestamp("2026-02-11T00:00:00Z").to_pydatetime()
        given = dict.fromkeys(labelled) | {held["packet_id"].iloc[10]: later}
        planned = _plan(pairs, make_options(**self.OPTIONS), given)
        own = planned.key[planned.key["annotator_id"] == leaver].set_index("packet_id")
        assert set(own.index[own["status"] != "handed_over"]) == labelled
        moved = planned.plan[planned.plan["replaces"].notna()]
        assert len(moved) == len(held) - 10
        assert set(moved["replaces"]) == {leaver}
        assert leaver not in set(moved["annotator_id"])

    def test_packets_of_others_do_not_change(self, pairs, a_round):
        planned = _plan(pairs, make_options(**self.OPTIONS))
        leaver = a_round.key.pseudonym("annotator_2")
        before = a_round.unblinding[a_round.unblinding["annotator_id"] != leaver]
        after = planned.key.set_index("packet_id").loc[before["packet_id"]].reset_index()
        pd.testing.assert_frame_equal(after[before.columns], before.reset_index(drop=True))

    def test_nobody_gets_a_pair_twice(self, pairs):
        planned = _plan(pairs, make_options(**self.OPTIONS))
        assert not planned.key.duplicated(["pair_id", "annotator_id"]).any()
        assert planned.key["packet_id"].is_unique

    def test_a_slow_annotator_hands_over_a_number_and_stays(self, pairs, a_round):
        hand_over = [{"annotator": "annotator_2", "at": "2026-02-10T00:00:00Z", "count": 5}]
        planned = _plan(pairs, make_options(hand_overs=hand_over))
        assert Counter(planned.key["status"])["handed_over"] == 5


class TestIssuedPlan:
    def test_new_pairs_and_people_move_no_packet_that_is_out(self, pairs, a_round):
        more = fabricate_pairs(40)
        people = [{"code": f"annotator_{i}"} for i in range(1, 7)]
        options = make_options(annotators=people)
        planned = plan_round(more, options, make_key(options), issued=a_round.plan)
        pd.testing.assert_frame_equal(planned.plan, a_round.plan)
        pd.testing.assert_frame_equal(planned.key, a_round.unblinding)

    def test_hand_overs_go_on_from_it(self, pairs, a_round):
        options = make_options(**TestHandOver.OPTIONS)
        fresh = _plan(pairs, options)
        again = plan_round(pairs, options, make_key(options), issued=fresh.plan)
        pd.testing.assert_frame_equal(again.key, fresh.key)

    def test_changed_or_lost_pairs_and_strangers_are_named(self, pairs, a_round):
        changed = pairs.copy()
        changed.loc[0, "content_hash"] = "another"
        changed = changed.drop(index=1)
        options = make_options(annotators=[{"code": f"annotator_{i}"} for i in range(2, 6)])
        with pytest.raises(TableError, match=r"(?s)other texts.*no such pair.*nobody of annotation"):
            plan_round(changed, options, make_key(options), issued=a_round.plan)

    def test_a_file_that_is_no_plan_is_refused(self, tmp_path):
        with pytest.raises(SourceError, match="cannot be read"):
            read_issued_plan(str(tmp_path / "none.parquet"))
        pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
        with pytest.raises(SourceError, match="no plan of a round"):
            read_issued_plan(str(tmp_path / "a.parquet"))


class TestOptions:
    @pytest.mark.parametrize("code", ["Ann Example", "ann@example.org", "", "1st"])
    def test_names_and_addresses_are_no_code_names(self, code):
        with pytest.raises(ValueError, match="code name"):
            make_options(annotators=[{"code": code}, {"code": "b1"}, {"code": "b2"}])

    def test_too_few_annotators_are_refused(self):
        with pytest.raises(ValueError, match="at least 3: 2 primaries and a different adjudicator"):
            make_options(annotators=[{"code": "a1"}, {"code": "a2"}])
