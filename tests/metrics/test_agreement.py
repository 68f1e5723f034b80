"""Agreement: worked values, oracles, and the tables from labels."""

import warnings

import numpy as np
import pandas as pd
import pytest

from judge_calibration import schemas
from judge_calibration.errors import TableError
from judge_calibration.metrics.ac1 import gwet_ac1
from judge_calibration.metrics.agreement import (
    AGREEMENT_COLUMNS,
    CONFUSION_COLUMNS,
    agreement_table,
    confusion_table,
)
from judge_calibration.metrics.alpha import alpha_of, coincidences, krippendorff_alpha
from judge_calibration.metrics.confusion import confusion_counts, row_percentages
from judge_calibration.metrics.dawid_skene import dawid_skene, expect, maximise
from judge_calibration.metrics.kappa import cohen_kappa, why_no_kappa
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def labels_of(given, stage="primary"):
    """Labels by annotator and pair."""
    rows = [
        {
            "pair_id": pair,
            "attribute": None,
            "annotator_id": who,
            "label": label,
            "order": "AB",
            "stage": stage,
        }
        for who, own in given.items()
        for pair, label in own.items()
        if label is not None
    ]
    return schemas.conform(pd.DataFrame(rows), schemas.LABELS)


class TestKappa:
    @pytest.mark.parametrize(
        ("confusion", "kappa"),
        [
            ([[20, 5], [10, 15]], 0.4),
            ([[45, 5], [5, 45]], 0.8),
            ([[85, 5], [5, 5]], 0.4444),
            ([[10, 2, 1], [3, 8, 1], [2, 1, 12]], 0.6237),
        ],
    )
    def test_worked_values(self, confusion, kappa):
        assert float(cohen_kappa(confusion).round(4)) == kappa

    def test_one_category_is_undefined_not_one(self):
        assert np.isnan(cohen_kappa([[9, 0], [0, 0]]))
        assert why_no_kappa([[9, 0], [0, 0]]) == "one_category"
        assert why_no_kappa([[0, 0], [0, 0]]) == "no_items"
        assert why_no_kappa([[5, 4], [0, 0]]) == ""  # pe < 1: kappa is 0

    def test_scikit_learn_agrees(self):
        from sklearn import metrics

        rng = np.random.default_rng(0)
        for k in (2, 3, 5):
            one = rng.integers(0, k, 300)
            two = np.where(rng.random(300) < 0.6, one, rng.integers(0, k, 300))
            expected = metrics.cohen_kappa_score(one, two)
            assert float(cohen_kappa(confusion_counts(one, two, k))) == pytest.approx(expected, abs=1e-14)

    def test_statsmodels_agrees(self):
        from statsmodels.stats import inter_rater as rater

        table = np.array([[10, 2, 1], [3, 8, 1], [2, 1, 12]])
        assert float(cohen_kappa(table)) == pytest.approx(rater.cohens_kappa(table).kappa, abs=1e-14)


class TestAc1:
    def test_worked_value(self):
        # [[20, 5], [10, 15]]: po = .7; mean shares .55 and .45; pe = .55 x .45 + .45 x .55 = .495;
        # AC1 = (.7 - .495) / .505 = .4059.
        assert float(gwet_ac1([[20, 5], [10, 15]]).round(4)) == 0.4059

    def test_three_categories_by_hand(self):
        # [[2, 0, 0], [0, 1, 1], [0, 0, 0]]: po = 3/4; rows (.5, .5, 0), columns (.5, .25, .25); means
        # .5, .375, .125; sum m (1 - m) = .25 + .234375 + .109375 = .59375; over 2: .296875;
        # AC1 = (.75 - .296875) / .703125 = .6444.
        assert float(gwet_ac1([[2, 0, 0], [0, 1, 1], [0, 0, 0]]).round(4)) == 0.6444

    def test_one_category_is_full_agreement_where_kappa_is_undefined(self):
        assert float(gwet_ac1([[9, 0], [0, 0]])) == 1.0

    def test_one_possible_category_is_an_error(self):
        with pytest.raises(ValueError, match="at least two categories"):
            gwet_ac1([[9]])


class TestAlpha:
    def test_worked_value_with_missing_labels(self):
        # Three raters: item 1 A A -, item 2 A B B, item 3 B B B, item 4 A - -. Coincidences: item 1 AA 2;
        # item 2: pairs AB, AB, BA, BA, BB, BB over 2: AB 1, BA 1, BB 1; item 3: BB 3. n = 8, A 3, B 5;
        # alpha = 1 - 7 x 2 / (64 - 9 - 25) = .5333.
        counts = [[2, 0], [1, 2], [0, 3], [1, 0]]
        assert round(krippendorff_alpha(counts), 4) == 0.5333

    def test_the_package_and_the_coincidences_agree(self):
        rng = np.random.default_rng(2)
        counts = np.array(
            [np.bincount(rng.integers(0, 4, rng.integers(1, 5)), minlength=4) for _ in range(60)]
        )
        total = coincidences(counts).sum(axis=0)
        assert krippendorff_alpha(counts) == pytest.approx(float(alpha_of(total)), abs=1e-12)

    def test_one_category_and_no_pair_of_labels_are_undefined(self):
        assert np.isnan(krippendorff_alpha([[2, 0], [3, 0]]))
        assert np.isnan(krippendorff_alpha([[1, 0], [0, 1]]))
        assert np.isnan(alpha_of([[5.0, 0.0], [0.0, 0.0]]))


class TestConfusion:
    def test_counts_and_percentages(self):
        counts = confusion_counts([0, 0, 0, 1], [0, 0, 1, 1], 2)
        assert counts.tolist() == [[2, 1], [0, 1]]
        assert row_percentages(counts)[0].round(1).tolist() == [66.7, 33.3]

    def test_a_code_outside_the_labels_is_an_error(self):
        with pytest.raises(ValueError, match="outside 0 to 1"):
            confusion_counts([0, 2], [0, 1], 2)


class TestDawidSkene:
    def test_one_round_by_hand(self):
        # Two items, two annotators, labels 0 and 1. Votes: item 1 both 0; item 2: 0 and 1.
        votes = np.zeros((2, 2, 2))
        votes[0, :, 0] = 1
        votes[1, 0, 0] = 1
        votes[1, 1, 1] = 1
        # Start: item 1 (1, 0), item 2 (1/2, 1/2). Prevalence (3/4, 1/4).
        prevalence, confusion = maximise(votes, [[1, 0], [0.5, 0.5]], smoothing=0.0)
        assert prevalence.tolist() == [0.75, 0.25]
        # Annotator 1 always said 0. Annotator 2: true 0 weighs 1 + 1/2, said 0 with 1 of it: 2/3, 1/3;
        # true 1 weighs 1/2, all of it said 1.
        assert confusion[0].tolist() == [[1, 0], [1, 0]]
        np.testing.assert_allclose(confusion[1], [[2 / 3, 1 / 3], [0, 1]])
        # Item 2: 0 with 3/4 x 1 x 1/3 = 1/4; 1 with 1/4 x 1 x 1 = 1/4: even again.
        posterior = expect(votes, prevalence, confusion)
        np.testing.assert_allclose(posterior[1], [0.5, 0.5])
        np.testing.assert_allclose(posterior[0], [1, 0], atol=1e-12)

    def test_a_careless_annotator_is_overruled(self):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 2, 300)
        votes = np.zeros((300, 4, 2))
        for annotator, accuracy in enumerate((0.95, 0.95, 0.5, 0.5)):
            said = np.where(rng.random(300) < accuracy, truth, 1 - truth)
            votes[np.arange(300), annotator, said] = 1
        fitted = dawid_skene(votes)
        assert fitted.converged
        majority = votes.sum(axis=1).argmax(axis=1)
        assert (fitted.posterior.argmax(axis=1) == truth).mean() > (majority == truth).mean()
        np.testing.assert_allclose(fitted.posterior.sum(axis=1), 1)

    def test_an_item_without_a_label_has_no_posterior(self):
        votes = np.zeros((2, 1, 2))
        votes[0, 0, 1] = 1
        fitted = dawid_skene(votes)
        assert np.isnan(fitted.posterior[1]).all()
        assert fitted.posterior[0].argmax() == 1

    def test_no_label_at_all(self):
        assert np.isnan(dawid_skene(np.zeros((2, 2, 2))).prevalence).all()


class TestTables:
    @pytest.fixture
    def data(self, tables):
        reads = {"p1": ("A", "A"), "p2": ("A", "B"), "p3": ([None], "B"), "p4": (["TIE"], ["TIE"])}
        pairs = tables.pairs(
            {"p1": "A", "p2": "A", "p3": "B", "p4": None}, reference_kind=["human"] * 3 + [None]
        )
        return tables.verdicts(reads), pairs

    def test_without_labels_only_references_are_compared(self, data):
        table = agreement_table(*data, schemas.empty(schemas.LABELS), SMALL)
        assert set(table["comparison"]) == {"judge_reference"}
        strict = table[(table["view"] == "strict") & (table["slice_by"] == "all")].set_index("statistic")
        assert strict.loc["raw", "value"] == 4 / 6  # the failed judgment disagrees
        policy = table[(table["view"] == "policy") & (table["slice_by"] == "all")].set_index("statistic")
        assert policy.loc["coverage", "value"] == 5 / 6
        assert policy.loc["raw", "value"] == 4 / 5

    def test_a_judge_that_keeps_nothing_has_coverage_0_and_says_so(self, tables):
        reads = {"p1": (["TIE"], [None])}
        pairs = tables.pairs({"p1": "A"}, reference_kind=["human"])
        table = agreement_table(tables.verdicts(reads), pairs, schemas.empty(schemas.LABELS), SMALL)
        policy = table[table["view"] == "policy"].set_index("statistic")
        assert policy.loc["coverage", "value"] == 0.0
        assert policy.loc["raw", "reason"] == "nothing_kept"

    def test_without_labels_and_references_there_is_an_empty_table_with_its_columns(self, data):
        verdicts, pairs = data
        bare = pairs.assign(reference_label=None)
        empty = schemas.empty(schemas.LABELS)
        assert list(agreement_table(verdicts, bare, empty, SMALL).columns) == list(AGREEMENT_COLUMNS)
        assert agreement_table(verdicts, bare, empty, SMALL).empty
        assert list(confusion_table(verdicts, bare, empty, SMALL).columns) == list(CONFUSION_COLUMNS)

    def test_people_beside_the_judge(self, data):
        labels = labels_of(
            {
                "ann": {"p1": "A", "p2": "A", "p3": "B", "p4": "TIE"},
                "bob": {"p1": "A", "p2": "B", "p3": "B"},
            }
        )
        table = agreement_table(*data, labels, SMALL)
        whole = table[(table["slice_by"] == "all") & (table["view"] == "strict")]
        people = whole[(whole["comparison"] == "human_human") & (whole["against"] == "ann and bob")]
        assert people.set_index("statistic").loc["raw", "value"] == 2 / 3
        judge = whole[(whole["comparison"] == "judge_human") & (whole["statistic"] == "raw")].set_index(
            "against"
        )
        assert judge.loc["annotator:ann", "value"] == 6 / 8
        assert judge.loc["annotator:ann", "ceiling"] == 2 / 3
        # Common labels of both: p1 and p3; p2 waits for an adjudicator and p4 has one label.
        settled = whole[(whole["comparison"] == "judge_adjudicated") & (whole["statistic"] == "raw")].iloc[0]
        assert (settled["n_pairs"], settled["value"]) == (2, 3 / 4)
        assert "judge_dawid_skene" not in set(table["comparison"])

    def test_simulated_labels_are_never_called_human(self, data):
        said = {"ann": {"p1": "A", "p2": "A"}, "bob": {"p1": "A", "p2": "B"}, "cat": {"p1": "A", "p2": "B"}}
        people = labels_of({"eve": {"p1": "B"}})
        simulated = labels_of(said).assign(kind="simulated")
        table = agreement_table(*data, pd.concat([people, simulated], ignore_index=True), SMALL)
        of_names = table[table["against"].str.contains("annotator:(?:ann|bob|cat)| and ")]
        assert set(of_names["comparison"]) == {"simulated_simulated", "judge_simulated"}
        of_people = table[table["comparison"].str.contains("human")]
        assert set(of_people["against"]) == {"annotator:eve", "all annotators"}
        settled = table[table["comparison"].str.contains("adjudicated|dawid")]
        assert set(settled["comparison"]) == {"judge_simulated_adjudicated", "judge_simulated_dawid_skene"}
        # The ceiling of simulated people is not the ceiling of people (of whom there is one).
        raw = table[
            (table["statistic"] == "raw") & (table["slice_by"] == "all") & (table["view"] == "strict")
        ]
        assert raw.loc[raw["comparison"] == "judge_human", "ceiling"].isna().all()
        assert raw.loc[raw["comparison"] == "judge_simulated", "ceiling"].eq(4 / 6).all()
        confusion = confusion_table(*data, simulated, SMALL)
        assert "human" not in " ".join(confusion["comparison"])

    def test_all_annotators_together_count_every_label(self, data):
        labels = labels_of({"ann": {"p1": "A", "p2": "A"}, "bob": {"p1": "A", "p2": "B"}})
        table = agreement_table(*data, labels, SMALL)
        raw = table[
            (table["statistic"] == "raw") & (table["slice_by"] == "all") & (table["view"] == "strict")
        ]
        judge = raw[raw["comparison"] == "judge_human"].set_index("against")
        pooled = judge.loc["all annotators"]
        single = judge.loc[["annotator:ann", "annotator:bob"]]
        assert pooled["n_items"] == single["n_items"].sum()
        assert pooled["value"] == (single["value"] * single["n_items"]).sum() / pooled["n_items"]

    def test_of_many_annotators_those_with_few_tasks_are_pooled(self, tables):
        reads = {f"p{i}": ("A", "A") for i in range(20)}
        pairs = tables.pairs(dict.fromkeys(reads, "A"))
        busy = {name: dict.fromkeys(reads, "A") for name in ("ann", "bob")}
        rare = {f"rare{i}": {f"p{i}": "A"} for i in range(12)}
        table = agreement_table(tables.verdicts(reads), pairs, labels_of(busy | rare), SMALL)
        against = set(table.loc[table["comparison"] == "judge_human", "against"])
        assert against == {"annotator:ann", "annotator:bob", "all annotators"}
        whole = table[(table["slice_by"] == "all") & (table["statistic"] == "raw")]
        pooled = whole[(whole["against"] == "all annotators") & (whole["comparison"] == "judge_human")]
        assert pooled["n_items"].iloc[0] == 2 * (2 * 20 + 12)

    def test_the_adjudicator_speaks_last(self, data):
        primary = labels_of({"ann": {"p2": "A"}, "bob": {"p2": "B"}})
        settled = labels_of({"cat": {"p2": "B"}}, stage="adjudication")
        table = agreement_table(*data, pd.concat([primary, settled], ignore_index=True), SMALL)
        row = table[(table["comparison"] == "judge_adjudicated") & (table["statistic"] == "raw")].iloc[0]
        assert row["value"] == 1 / 2
        assert "judge_dawid_skene" in set(table["comparison"])

    def test_one_class_only_is_undefined_with_its_reason(self, tables):
        reads = {f"p{i}": ("A", "A") for i in range(12)}
        pairs = tables.pairs(dict.fromkeys(reads, "A"), reference_kind=["human"] * 12)
        table = agreement_table(tables.verdicts(reads), pairs, schemas.empty(schemas.LABELS), SMALL)
        strict = table[table["view"] == "strict"].set_index("statistic")
        assert np.isnan(strict.loc["kappa", "value"])
        assert strict.loc["kappa", "reason"] == "one_category"
        assert strict.loc["raw", "value"] == 1.0
        assert strict.loc["raw", "method"] == "wilson"
        assert strict.loc["agreement_B", "reason"] == "label_never_given"

    def test_kinds_of_reference_are_never_merged(self, data):
        verdicts, pairs = data
        mixed = pairs.assign(reference_kind=["human", "ai", "benchmark", None])
        table = agreement_table(verdicts, mixed, schemas.empty(schemas.LABELS), SMALL)
        assert set(table["against"]) == {"reference:ai", "reference:benchmark", "reference:human"}

    def test_labels_of_attributes_do_not_count_here(self, data):
        labels = labels_of({"ann": {"p1": "A"}, "bob": {"p1": "A"}}).assign(attribute="humour")
        table = agreement_table(*data, labels, SMALL)
        assert set(table["comparison"]) == {"judge_reference"}

    def test_pairs_that_no_judge_saw_still_tell_how_people_agree(self, tables):
        pairs = tables.pairs({"p1": "A", "p2": "A", "p3": "B"})
        labels = labels_of({"ann": {"p2": "A", "p3": "B"}, "bob": {"p2": "A", "p3": "A"}})
        table = agreement_table(tables.verdicts({"p1": ("A", "A")}), pairs, labels, SMALL)
        people = table[(table["against"] == "ann and bob") & (table["statistic"] == "raw")]
        assert people["value"].tolist() == [1 / 2]

    def test_a_label_of_an_unknown_pair_is_refused(self, data):
        with pytest.raises(TableError, match="does not have"):
            agreement_table(*data, labels_of({"ann": {"p9": "A"}}), SMALL)

    def test_a_label_outside_the_alphabet_is_refused(self, data):
        with pytest.raises(TableError, match="outside the alphabet"):
            agreement_table(*data, labels_of({"ann": {"p1": "C"}}), SMALL)

    def test_confusion_counts_and_percentages(self, data):
        table = confusion_table(*data, schemas.empty(schemas.LABELS), SMALL)
        assert len(table) == 20
        cells = table.set_index(["row_label", "column_label"])
        assert cells.loc[("A", "A"), "count"] == 3
        assert cells.loc[("A", "A"), "row_percent"] == 75.0
        assert cells.loc[("B", "failed"), "count"] == 1
        assert np.isnan(cells.loc[("TIE", "A"), "row_percent"])
