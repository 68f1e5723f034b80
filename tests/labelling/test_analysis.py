import json

import numpy as np
import pandas as pd
import pytest
from labelling_helpers import fabricate_pairs

from judge_calibration import schemas
from judge_calibration.labelling.adjudication import settle_labels
from judge_calibration.labelling.agreement_of_people import human_agreement, human_confusion, item_agreement
from judge_calibration.labelling.annotators import annotator_drift, annotator_table
from judge_calibration.labelling.importing import LABEL_COLUMNS
from judge_calibration.labelling.reference_labels import (
    expected_relationship,
    fit_annotator_errors,
    human_ceiling,
)
from judge_calibration.options.annotation import AnalysisOptions

OPTIONS = AnalysisOptions(bootstrap=200)


def make_labels(rows: list[tuple], **columns) -> pd.DataFrame:
    """Return labels from (pair_id, annotator, label[, order[, labelled_at[, reason]]])."""
    records = []
    for row in rows:
        pair_id, annotator, label, order, at, reason = (*row, "AB", None, None)[:6] if len(row) < 6 else row
        records.append(
            {
                "pair_id": pair_id,
                "annotator_id": annotator,
                "label": label,
                "order": order if len(row) > 3 else "AB",
                "labelled_at": at if len(row) > 4 else None,
                "reason_codes": json.dumps([reason] if len(row) > 5 and reason else []),
                "stage": "primary",
                "slot": 1,
                "kind": "human",
                "round_id": "r",
            }
            | columns
        )
    frame = schemas.conform(pd.DataFrame(records), schemas.LABELS)
    return frame.reindex(columns=LABEL_COLUMNS).astype({"comment": "str", "kind": "str"})


def _all(table: pd.DataFrame, **where) -> pd.Series:
    for column, value in where.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


class TestHumanAgreement:
    @pytest.fixture
    def pairs(self):
        return fabricate_pairs(10)

    def _two(self, pairs, table):
        """Return labels of two people whose confusion is the given 2 x 2 table (A, B)."""
        ids = iter(pairs["pair_id"])
        rows = []
        for i, one in enumerate("AB"):
            for j, two in enumerate("AB"):
                for _ in range(table[i][j]):
                    pair = next(ids)
                    rows += [(pair, "ann_x", one), (pair, "ann_y", two)]
        return make_labels(rows)

    def test_worked_kappa(self, pairs):
        # [[20,5],[10,15]]: po .7, pe .5, kappa .4; alpha over the same counts.
        out = human_agreement(self._two(pairs, [[20, 5], [10, 15]]), pairs, OPTIONS)
        row = _all(out, slice_by="all", annotators="ann_x | ann_y", labels="all")
        assert row["value"] == pytest.approx(0.7)
        assert row["kappa"] == pytest.approx(0.4)
        assert (row["n"], row["n_pairs"], row["n_clusters"]) == (50, 50, 10)

    def test_one_category_is_undefined_and_raw_agreement_is_shown(self, pairs):
        out = human_agreement(self._two(pairs, [[50, 0], [0, 0]]), pairs, OPTIONS)
        row = _all(out, slice_by="all", annotators="ann_x | ann_y", labels="all")
        assert np.isnan(row["kappa"])
        assert row["chance_undefined"] == "one_category"
        assert row["value"] == 1.0
        # All agree, so Wilson's interval and never one of width zero.
        assert row["low"] < 1.0
        assert row["method"] == "wilson"

    def test_adjudications_and_other_kinds_are_not_compared(self, pairs):
        first, second = pairs["pair_id"].iloc[:2]
        labels = pd.concat(
            [
                make_labels([(first, "ann_x", "A"), (first, "ann_y", "A"), (second, "ann_x", "A")]),
                make_labels([(first, "ann_z", "B")], stage="adjudication"),
                make_labels([(second, "model", "B")], kind="ai"),
            ]
        )
        row = _all(
            human_agreement(labels, pairs, OPTIONS),
            kind="human",
            slice_by="all",
            annotators="all",
            labels="all",
        )
        assert (row["value"], row["n"]) == (1.0, 1)

    def test_slices_and_reason_codes(self, pairs):
        correct = pairs.loc[pairs["manipulation"] == "correctness", "pair_id"].iloc[:2]
        labels = make_labels(
            [
                (correct.iloc[0], "ann_x", "A", "AB", None, "correctness"),
                (correct.iloc[0], "ann_y", "A", "AB", None, "style"),
                (correct.iloc[1], "ann_x", "A", "AB", None, "style"),
                (correct.iloc[1], "ann_y", "B", "AB", None, None),
            ]
        )
        out = human_agreement(labels, pairs, OPTIONS)
        assert _all(out, slice_by="manipulation", slice="correctness", labels="all")["value"] == 0.5
        assert _all(out, slice_by="reason_code", slice="correctness", labels="all")["value"] == 1.0
        assert _all(out, slice_by="reason_code", slice="style", labels="all")["value"] == 0.5
        assert bool(_all(out, slice_by="reason_code", slice="style", labels="all")["hard"])

    def test_confusion_is_symmetric_over_all_and_directed_for_two(self, pairs):
        out = human_confusion(self._two(pairs, [[20, 5], [10, 15]]), pairs)
        two = out[out["annotators"] == "ann_x | ann_y"].pivot_table(
            index="row_label", columns="column_label", values="count", aggfunc="sum"
        )
        assert two.loc["A", ["A", "B"]].tolist() == [20, 5]
        everybody = out[out["annotators"] == "all"].pivot_table(
            index="row_label", columns="column_label", values="count", aggfunc="sum"
        )
        assert everybody.loc["A", "B"] == everybody.loc["B", "A"] == 15
        ties = out[(out["row_label"] == "TIE") & (out["annotators"] == "all")]
        assert ties["row_percent"].isna().all()

    def test_items_hardest_first(self, pairs):
        easy, hard = pairs["pair_id"].iloc[:2]
        labels = make_labels([(easy, "x1", "A"), (easy, "x2", "A"), (hard, "x1", "A"), (hard, "x2", "TIE")])
        items = item_agreement(labels, pairs, OPTIONS)
        assert items["pair_id"].tolist() == [hard, easy]
        assert items["raw"].tolist() == [0.0, 1.0]

    def test_no_labels_give_empty_tables(self, pairs):
        nothing = make_labels([("p", "x", "A")]).head(0)
        assert human_agreement(nothing, pairs, OPTIONS).empty
        assert human_confusion(nothing, pairs).empty
        assert item_agreement(nothing, pairs, OPTIONS).empty
        assert annotator_drift(nothing, pairs, OPTIONS).empty


class TestAnnotators:
    def test_position_preference_is_by_what_was_shown_first(self):
        pairs = fabricate_pairs(20)
        # Whoever always says the first shown answer: A under AB, B under BA.
        rows = [
            (p, "ann_x", "A" if i % 2 else "B", "AB" if i % 2 else "BA")
            for i, p in enumerate(pairs["pair_id"])
        ]
        empty = settle_labels(_plan(pairs), make_labels(rows), "third_decides")
        table = annotator_table(make_labels(rows), pairs, empty, OPTIONS)
        row = _all(table, annotator_id="ann_x", statistic="first_position")
        assert (row["value"], row["n"]) == (1.0, 100)

    def test_planted_drift_is_found(self):
        pairs = fabricate_pairs(40)
        rows = []
        for number, pair in enumerate(pairs.to_dict("records")):
            at = (pd.Timestamp("2026-02-01T00:00:00Z") + pd.Timedelta(minutes=number)).isoformat()
            wrong = {"A": "B", "B": "TIE", "TIE": "A"}[pair["expected"]]
            late = number >= 150
            rows.append((pair["pair_id"], "ann_x", wrong if late else pair["expected"], "AB", at))
            rows.append((pair["pair_id"], "ann_y", pair["expected"], "AB", at))
        drift = annotator_drift(make_labels(rows), pairs, OPTIONS)
        change = drift[(drift["block"] == "change") & (drift["statistic"] == "agreement_with_expected")]
        tired = change.set_index("annotator_id")
        assert tired.loc["ann_x", "value"] == -1.0
        assert tired.loc["ann_y", "value"] == 0.0
        assert tired.loc["ann_y", "undefined"] == "no_variation"


def _plan(pairs: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"pair_id": pairs["pair_id"], "stage": "primary"})


class TestReferences:
    def test_expected_relationship_by_manipulation(self):
        pairs = fabricate_pairs(12)
        labels = make_labels(
            [(p, "ann_x", m) for p, m in zip(pairs["pair_id"], pairs["modified"], strict=True)]
        )
        settled = settle_labels(_plan(pairs), labels, "third_decides")
        out = expected_relationship(labels, pairs, settled, OPTIONS)
        length = {"stage": "individual", "manipulation": "length", "difficulty": "all"}
        assert _all(out, **length, statistic="modified_wins")["value"] == 1.0
        assert _all(out, **length, statistic="modified_minus_original")["value"] == 1.0
        assert (
            _all(out, **(length | {"manipulation": "correctness"}), statistic="as_expected")["value"] == 0.0
        )
        assert "modified_wins" not in set(out.loc[out["manipulation"] == "correctness", "statistic"])

    def test_two_annotators_are_too_few_for_their_error_model(self):
        posterior, errors = fit_annotator_errors(make_labels([("p1", "x", "A"), ("p1", "y", "B")]))
        assert set(posterior["undefined"]) == {"fewer_than_three_annotators"}
        assert posterior["A"].isna().all()
        assert errors["probability"].isna().all()

    def test_planted_errors_are_recovered(self):
        rng = np.random.default_rng(5)
        rows = []
        truth = rng.choice(["A", "B"], 600)
        for item, label in enumerate(truth):
            for person, skill in (("x1", 0.95), ("x2", 0.9), ("x3", 0.6)):
                said = label if rng.random() < skill else ("B" if label == "A" else "A")
                rows.append((f"p{item:04d}", person, said))
        posterior, errors = fit_annotator_errors(make_labels(rows))
        weak = _all(errors, annotator_id="x3", true_label="A", given_label="A")["probability"]
        strong = _all(errors, annotator_id="x1", true_label="A", given_label="A")["probability"]
        assert weak == pytest.approx(0.6, abs=0.07)
        assert strong == pytest.approx(0.95, abs=0.04)
        assert (posterior["label"].to_numpy() == truth).mean() > 0.9

    def test_ceiling_is_the_agreement_of_people(self):
        pairs = fabricate_pairs(12)
        rows = [
            (p, name, "A" if name != "x3" else "B") for p in pairs["pair_id"] for name in ("x1", "x2", "x3")
        ]
        labels = make_labels(rows)
        posterior, _ = fit_annotator_errors(labels)
        settled = settle_labels(_plan(pairs), labels, "majority", primaries=3)
        out = human_ceiling(
            labels, pairs, settled, posterior, human_agreement(labels, pairs, OPTIONS), OPTIONS
        )
        # Of three comparisons a pair, one agrees.
        assert _all(out, slice_by="all", comparison="annotator_annotator")["value"] == pytest.approx(1 / 3)
        assert _all(out, slice_by="all", comparison="annotator_dawid_skene")["value"] == pytest.approx(2 / 3)


class TestMtBench:
    """Public votes: 1,814 items, 3,355 votes, 65 voters, one of whom voted twice on one item."""

    @pytest.fixture(scope="class")
    @staticmethod
    def votes(public_data) -> pd.DataFrame:
        items = pd.read_parquet(public_data / "mtbench" / "items.parquet")
        rows = [
            (item, voter, {"a": "A", "b": "B", "tie": "TIE"}[vote])
            for item, votes, voters in zip(items["item_id"], items["votes"], items["voters"], strict=True)
            for vote, voter in zip(json.loads(votes), json.loads(voters), strict=True)
        ]
        return pd.DataFrame(rows, columns=["pair_id", "annotator_id", "label"])

    def _table(self, votes):
        labels = make_labels(list(votes.itertuples(index=False, name=None)))
        pairs = pd.DataFrame({"pair_id": sorted(votes["pair_id"].unique())})
        pairs["base_id"] = pairs["pair_id"].str.split("-").str[0]
        options = AnalysisOptions(bootstrap=200, slice_by=())
        table = human_agreement(labels, pairs, options)
        return table[table["annotators"] == "all"].set_index("labels")

    def test_alpha_and_agreement_of_distinct_votes(self, votes):
        distinct = votes.drop_duplicates(["pair_id", "annotator_id"])
        assert (len(votes), len(distinct), votes["annotator_id"].nunique()) == (3355, 3354, 65)
        table = self._table(distinct)
        assert table.loc["all", "alpha"] == pytest.approx(0.4849, abs=5e-5)
        assert table.loc["decisive", "value"] == pytest.approx(0.8271, abs=5e-5)
        assert table.loc["decisive", "n"] == 1550
        # Two distinct people: one comparison fewer than the published count, see below.
        assert table.loc["all", "value"] == pytest.approx(0.6553, abs=5e-5)
        assert table.loc["all", "n"] == 2367

    def test_the_published_count_compares_one_voter_with_himself(self, votes):
        # .6554 of 2,368 keeps the repeated vote as if it were another person's.
        place = votes[votes.duplicated(["pair_id", "annotator_id"])].index
        votes = votes.copy()
        votes.loc[place, "annotator_id"] += " again"
        table = self._table(votes)
        assert table.loc["all", "value"] == pytest.approx(0.6554, abs=5e-5)
        assert table.loc["all", "n"] == 2368
        assert table.loc["decisive", "n"] == 1550
