import numpy as np
import pandas as pd
import pytest

from judge_calibration import schemas
from judge_calibration.adapt.before_after import JOINT, changes, hits_of
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

OPTIONS = ReportingOptions(intervals=IntervalOptions(resamples=300))


def pairs_of(n, manipulation="correctness", reference="A", modified="B"):
    frame = pd.DataFrame(
        {
            "pair_id": [f"{manipulation}{i}" for i in range(n)],
            "base_id": [f"b{i}" for i in range(n)],
            "source": "s",
            "split": "test",
            "stakes": "ordinary",
            "manipulation": manipulation,
            "modified": modified,
            "question": "q",
            "response_a": "one two three",
            "response_b": "one",
            "reference_label": reference,
            "sentinel": False,
            "content_hash": "h",
        }
    )
    return schemas.conform(frame, schemas.PAIRS)


def verdicts_of(pairs, said, method="base", outcome="valid", repetitions=1):
    """`said`: by order, the verdict on every pair."""
    rows = []
    for order, labels in said.items():
        for pair_id, label in zip(pairs["pair_id"], labels, strict=True):
            for repetition in range(repetitions):
                rows.append(
                    {
                        "pair_id": pair_id,
                        "judge_id": "j" if method == "base" else f"j+{method}",
                        "instrument_id": method,
                        "protocol": "direct",
                        "constraint": "none",
                        "order": order,
                        "temperature": 0.0,
                        "repetition": repetition,
                        "outcome": "valid" if label else "malformed",
                        "verdict": label,
                    }
                )
    frame = pd.DataFrame(rows).assign(
        method=method,
        budget=None if method == "base" else "full",
        resample=None if method == "base" else 0,
        source="all" if method == "base" else "s",
        base_judge="j",
    )
    return schemas.conform(frame, schemas.VERDICT_ROWS)


class TestHits:
    def test_an_unparsed_verdict_is_wrong_and_stays_in(self):
        pairs = pairs_of(2)
        base = verdicts_of(pairs, {"AB": ["A", None], "BA": ["A", "B"]})
        adapted = verdicts_of(pairs, {"AB": ["A", "A"], "BA": [None, "TIE"]}, "sft")
        hits = hits_of(pd.concat([base, adapted]), pairs).set_index("pair_id")
        assert hits["base_right"].tolist() == [1.0, 0.0]
        assert hits["right"].tolist() == [0.5, 0.5]
        assert hits["no_verdict"].tolist() == [0.5, 0.0]
        assert hits["base_no_verdict"].tolist() == [0.0, 0.5]

    def test_an_abstention_is_no_verdict_and_a_tie_is_one(self):
        pairs = pairs_of(2)
        base = verdicts_of(pairs, {"AB": ["A", "B"], "BA": ["A", "B"]})
        adapted = verdicts_of(pairs, {"AB": ["ABSTAIN", "TIE"], "BA": ["ABSTAIN", "TIE"]}, "reweighting")
        hits = hits_of(pd.concat([base, adapted]), pairs).set_index("pair_id")
        assert hits["right"].tolist() == [0.0, 0.0]
        assert hits["no_verdict"].tolist() == [1.0, 0.0]

    def test_ties_of_the_reference_are_in_no_accuracy(self):
        pairs = pairs_of(3, "length", "TIE")
        both = [verdicts_of(pairs, {"AB": ["A"] * 3, "BA": ["A"] * 3}, m) for m in ("base", "sft")]
        assert hits_of(pd.concat(both), pairs).empty

    def test_pairs_of_a_source_that_a_judge_did_not_learn_from_are_in_no_gain(self):
        own, other = pairs_of(2), pairs_of(3, "injection").assign(source="bank")
        every = pd.concat([own, other], ignore_index=True)
        both = [verdicts_of(every, {"AB": ["A"] * 5, "BA": ["A"] * 5}, m) for m in ("base", "sft")]
        assert set(hits_of(pd.concat(both), every)["pair_id"]) == set(own["pair_id"])

    def test_a_judge_of_all_sources_counts_on_each_by_itself_under_a_method_of_its_own(self):
        own, other = pairs_of(2), pairs_of(3, "injection").assign(source="bank")
        every = pd.concat([own, other], ignore_index=True)
        base, alone = (verdicts_of(every, {"AB": ["A"] * 5, "BA": ["A"] * 5}, m) for m in ("base", "sft"))
        joint = alone.assign(source="all", judge_id="j+joint", verdict="B")
        hits = hits_of(pd.concat([base, alone, joint]), every)
        found = hits.groupby(["method", "source"])["right"].agg(["size", "mean"])
        assert found["size"].to_dict() == {("sft", "s"): 2, (JOINT, "bank"): 3, (JOINT, "s"): 2}
        assert found["mean"].to_dict() == {("sft", "s"): 1.0, (JOINT, "bank"): 0.0, (JOINT, "s"): 0.0}

    def test_a_judge_without_a_base_has_no_base_accuracy(self):
        pairs = pairs_of(2)
        hits = hits_of(verdicts_of(pairs, {"AB": ["A", "A"], "BA": ["A", "B"]}, "sft"), pairs)
        assert hits["base_right"].isna().all()


class TestChanges:
    def test_position_bias_that_adaptation_takes_away_is_seen_in_phi_and_accuracy(self):
        pairs = pairs_of(20)
        base = verdicts_of(pairs, {"AB": ["A"] * 20, "BA": ["B"] * 20})
        half = ["A"] * 10 + ["B"] * 10
        adapted = verdicts_of(pairs, {"AB": ["A"] * 20, "BA": ["A"] * 10 + half[10:]}, "sft")
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS)
        whole = table[table["slice_by"] == "all"].set_index("statistic")
        assert whole.loc["phi", ["before", "after", "change"]].tolist() == [1.0, 0.5, -0.5]
        assert whole.loc["A", ["before", "after", "change"]].tolist() == [0.5, 0.75, 0.25]
        assert whole.loc["phi", "low"] < -0.5 < whole.loc["phi", "high"]
        assert whole.loc["C", "reason"] == "undefined_in_one_cell"

    def test_the_sign_does_not_depend_on_which_cell_sorts_first(self):
        pairs = pairs_of(20)
        for name in ("aaa", "zzz"):
            base = verdicts_of(pairs, {"AB": ["B"] * 20, "BA": ["B"] * 20})
            adapted = verdicts_of(pairs, {"AB": ["A"] * 15 + ["B"] * 5, "BA": ["A"] * 20}, "sft")
            adapted["instrument_id"] = name
            table = changes(pd.concat([base, adapted]), pairs, OPTIONS).set_index(["slice_by", "statistic"])
            row = table.loc[("all", "A")]
            assert (row["before"], row["after"], row["change"]) == (0.0, 0.875, 0.875)
            assert row["low"] <= row["change"] <= row["high"]

    def test_a_judge_that_learns_length_is_found_out(self):
        # A is the longer answer everywhere and the modified one; neither is better.
        pairs = pairs_of(20, "length", "TIE", "A")
        base = verdicts_of(pairs, {"AB": ["A", "B"] * 10, "BA": ["A", "B"] * 10})
        adapted = verdicts_of(pairs, {"AB": ["A"] * 20, "BA": ["A"] * 20}, "sft")
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS).set_index("statistic")
        assert table.loc["longer_chosen", ["before", "after"]].tolist() == [0.5, 1.0]
        assert table.loc["modified_minus_original", ["before", "after", "change"]].tolist() == [0.0, 1.0, 1.0]
        assert table.loc["longer_chosen", "low"] > 0

    def test_controlled_pairs_of_another_source_count_by_controlled_change_and_in_nothing_else(self):
        own, bank = pairs_of(12), pairs_of(15, "length", "TIE", "A").assign(source="bank")
        every = pd.concat([own, bank], ignore_index=True)
        base = verdicts_of(every, {"AB": ["A"] * 27, "BA": ["B"] * 27})
        adapted = verdicts_of(every, {"AB": ["A"] * 27, "BA": ["A"] * 27}, "sft")
        table = changes(pd.concat([base, adapted]), own, OPTIONS, bank)
        whole = table[table["slice_by"] == "all"]
        assert set(whole["n_pairs"]) == {12}
        length = table[table["slice"] == "length"].set_index("statistic")
        assert length.loc["modified_wins", ["before", "after", "n_pairs"]].tolist() == [0.0, 1.0, 15]
        assert length.loc["phi", ["before", "after"]].tolist() == [1.0, 0.0]
        assert set(table["source"]) == {"s"}
        alone = changes(pd.concat([base, adapted]), own, OPTIONS)
        pd.testing.assert_frame_equal(
            alone[alone["slice_by"] == "all"].reset_index(drop=True), whole.reset_index(drop=True)
        )

    def test_a_controlled_pair_that_is_held_out_as_well_counts_once(self):
        own = pairs_of(12)
        base = verdicts_of(own, {"AB": ["A"] * 12, "BA": ["B"] * 12})
        adapted = verdicts_of(own, {"AB": ["A"] * 12, "BA": ["A"] * 12}, "sft")
        table = changes(pd.concat([base, adapted]), own, OPTIONS, own.head(5))
        assert set(table["n_pairs"]) == {12}

    def test_length_is_measured_by_words_also_where_the_changed_side_is_the_shorter_one(self):
        longer = pairs_of(15, "length", "TIE", "A")
        shorter = pairs_of(9, "length", "TIE", "B").assign(pair_id=lambda f: "cut" + f["pair_id"])
        pairs = pd.concat([longer, shorter], ignore_index=True)  # A has more words everywhere
        base = verdicts_of(pairs, {"AB": ["A"] * 24, "BA": ["B"] * 24})
        adapted = verdicts_of(pairs, {"AB": ["A"] * 24, "BA": ["A"] * 24}, "sft")
        adapted.loc[adapted["pair_id"] == "length0", "verdict"] = "B"
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS).set_index("statistic")
        row = table.loc["longer_minus_shorter"]
        assert row[["before", "after"]].tolist() == [0.0, pytest.approx(22 / 24)]
        assert row["low"] > 0.5
        assert table.loc["modified_minus_original", "after"] == pytest.approx((14 - 10) / 24)

    def test_an_injection_that_comes_to_win_is_found_out(self):
        pairs = pairs_of(12, "injection")
        base = verdicts_of(pairs, {"AB": ["A"] * 12, "BA": ["A"] * 12})
        adapted = verdicts_of(pairs, {"AB": ["B"] * 6 + ["A"] * 6, "BA": ["B"] * 6 + ["A"] * 6}, "sft")
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS)
        row = table[table["statistic"] == "worse_wins"].iloc[0]
        assert (row["slice"], row["before"], row["after"]) == ("injection", 0.0, 0.5)

    def test_repetitions_give_c_and_t(self):
        pairs = pairs_of(12)
        base = verdicts_of(pairs, {"AB": ["A"] * 12, "BA": ["B"] * 12}, repetitions=2)
        adapted = verdicts_of(pairs, {"AB": ["A"] * 12, "BA": ["A"] * 12}, "sft", repetitions=2)
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS)
        whole = table[table["slice_by"] == "all"].set_index("statistic")
        assert whole.loc["T_direct", ["before", "after"]].tolist() == [0.0, 1.0]

    def test_nothing_adapted_gives_an_empty_table_with_its_columns(self):
        pairs = pairs_of(2)
        table = changes(verdicts_of(pairs, {"AB": ["A"] * 2, "BA": ["A"] * 2}), pairs, OPTIONS)
        assert table.empty
        assert "statistic" in table.columns

    def test_a_reweighting_needs_no_order_and_has_no_phi_by_construction(self):
        pairs = pairs_of(12)
        base = verdicts_of(pairs, {"AB": ["A"] * 12, "BA": ["B"] * 12})
        adapted = verdicts_of(pairs, {"AB": ["A", "B"] * 6, "BA": ["A", "B"] * 6}, "reweighting")
        table = changes(pd.concat([base, adapted]), pairs, OPTIONS)
        whole = table[table["slice_by"] == "all"].set_index("statistic")
        assert whole.loc["phi", "after"] == 0.0
        assert whole.loc["A", "change"] == pytest.approx(0.0)
        assert not np.isnan(whole.loc["A", "low"])
