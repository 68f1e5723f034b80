"""Confidence and selective judging: worked values, guarantees, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.bootstrap import cluster_bootstrap
from judge_calibration.metrics.confidence import (
    confidence_tables,
    expected_calibration_error_if_calibrated,
    ranking_area,
)
from judge_calibration.metrics.selective import (
    calibration_half,
    clopper_pearson,
    clopper_pearson_threshold,
    conformal_risk_threshold,
    selective_tables,
)
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, SelectiveOptions

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestConfidence:
    def test_worked_table(self, tables):
        reads = {"p1": ("A", "A"), "p2": ("B", "A")}
        verdicts = tables.verdicts(reads).assign(confidence=[0.9, 0.8, 0.7, np.nan])
        summary, curves = confidence_tables(verdicts, tables.pairs({"p1": "A", "p2": "A"}), SMALL)
        stated = summary[summary["confidence"] == "stated"].set_index("statistic")
        # Right at .9 and .8, wrong at .7; the last verdict states none.
        assert stated.loc["brier", "value"] == pytest.approx((0.01 + 0.04 + 0.49) / 3)
        assert stated.loc["auroc", "value"] == 1.0
        assert stated.loc["calibration_error", "value"] == pytest.approx((0.1 + 0.2 + 0.7) / 3)
        assert stated.loc["brier", "n_without"] == 1
        risk = curves[(curves["curve"] == "risk_coverage") & (curves["confidence"] == "stated")]
        assert risk["risk"].tolist() == pytest.approx([0, 0, 1 / 3])

    def test_confidences_stay_with_their_verdict_whatever_the_row_order(self, tables):
        verdicts, pairs = tables.simulate(protocols=("one", "two"))
        rng = np.random.default_rng(0)
        verdicts = verdicts.assign(confidence=rng.random(len(verdicts)).round(2))
        shuffled = verdicts.sample(frac=1, random_state=3)
        for one, two in zip(
            confidence_tables(verdicts, pairs, SMALL), confidence_tables(shuffled, pairs, SMALL), strict=True
        ):
            pd.testing.assert_frame_equal(one, two)

    def test_points_carry_the_cluster_bootstrap_of_their_own_share(self, tables):
        verdicts, pairs = tables.simulate(protocols=("one",))
        rng = np.random.default_rng(0)
        verdicts = verdicts.assign(confidence=rng.choice([0.55, 0.75, 0.95], len(verdicts)))
        _, curves = confidence_tables(verdicts, pairs, SMALL)
        curves = curves[curves["confidence"] == "stated"]
        joined = verdicts.merge(pairs[["pair_id", "base_id", "reference_label"]], on="pair_id")
        joined = joined[(joined["outcome"] == "valid") & joined["reference_label"].isin(["A", "B"])]
        joined = joined.sort_values("base_id", kind="stable")
        right = joined["verdict"] == joined["reference_label"]
        for threshold in (0.95, 0.75, 0.55):
            kept = (joined["confidence"] >= threshold).to_numpy(float)
            wrong = kept * ~right.to_numpy(bool)
            row = curves[(curves["curve"] == "risk_coverage") & (curves["low_edge"] == threshold)].iloc[0]
            assert row["n_items"] == kept.sum()
            assert row["risk"] == pytest.approx(wrong.sum() / kept.sum())
            assert row["risk_low"] < row["risk"] < row["risk_high"]
            # Another order of the clusters draws other resamples: equal but for that.
            plain = cluster_bootstrap(wrong, kept, joined["base_id"], 200)
            assert row["risk_low"] == pytest.approx(plain.low, abs=0.03)
            assert row["risk_high"] == pytest.approx(plain.high, abs=0.03)
        bins = curves[(curves["curve"] == "reliability") & (curves["n_items"] > 0)]
        assert len(bins) == 3
        assert (bins["accuracy_low"] < bins["accuracy"]).all()
        assert (bins["accuracy"] < bins["accuracy_high"]).all()
        empty = curves[(curves["curve"] == "reliability") & (curves["n_items"] == 0)]
        assert empty["accuracy_low"].isna().all()

    def test_a_point_of_few_base_tasks_has_no_interval_and_says_so(self, tables):
        verdicts = tables.verdicts({"p1": ("A", "B")}).assign(confidence=[0.9, 0.9])
        _, curves = confidence_tables(verdicts, tables.pairs({"p1": "A"}), SMALL)
        row = curves[(curves["curve"] == "risk_coverage") & (curves["confidence"] == "stated")].iloc[0]
        assert (row["risk"], row["interval_reason"]) == (0.5, "fewer_than_10_clusters")
        assert np.isnan(row["risk_low"])

    def test_repeat_agreement_is_a_confidence(self, tables):
        reads = {"p1": ("AAA", "AAB"), "p2": ("BBA", "BBB")}
        summary, _ = confidence_tables(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "A"}), SMALL)
        repeat = summary[summary["confidence"] == "repeat_agreement"].set_index("statistic")
        # Right with 1 and 2/3, wrong with 2/3 and 1: one pair of four ranked right, one wrong, two ties.
        assert repeat.loc["auroc", "value"] == pytest.approx((1 + 0.5 + 0.5) / 4)

    def test_a_confidence_outside_0_to_1_counts_as_absent(self, tables):
        verdicts = tables.verdicts({"p1": ("A", "A")}).assign(confidence=[95.0, 0.9])
        summary, _ = confidence_tables(verdicts, tables.pairs({"p1": "A"}), SMALL)
        row = summary[(summary["confidence"] == "stated") & (summary["statistic"] == "brier")].iloc[0]
        assert (row["n_items"], row["n_without"]) == (1, 1)

    def test_none_stated_says_so(self, tables):
        summary, curves = confidence_tables(*tables.simulate(repetitions=1), SMALL)
        reasons = dict(zip(summary["confidence"], summary["reason"], strict=True))
        assert reasons == {
            "stated": "no_confidence",
            "log_probability": "no_confidence",
            "repeat_agreement": "one_repetition",
        }
        assert curves.empty

    def test_all_right_has_no_ranking(self, tables):
        verdicts = tables.verdicts({"p1": ("A", "A")}).assign(confidence=0.9)
        summary, _ = confidence_tables(verdicts, tables.pairs({"p1": "A"}), SMALL)
        row = summary[(summary["confidence"] == "stated") & (summary["statistic"] == "auroc")].iloc[0]
        assert np.isnan(row["value"])
        assert row["reason"] == "all_right_or_all_wrong"

    def test_auroc_agrees_with_scikit_learn(self):
        from sklearn import metrics

        rng = np.random.default_rng(0)
        score, right = rng.integers(0, 30, 500), rng.random(500) < 0.6
        wrong_at = np.bincount(score[~right], minlength=30)
        right_at = np.bincount(score[right], minlength=30)
        assert float(ranking_area(wrong_at, right_at)) == pytest.approx(metrics.roc_auc_score(right, score))

    def test_expected_error_of_a_calibrated_judge(self):
        rng = np.random.default_rng(0)
        p = rng.random(400)
        bins = np.minimum((p * 10).astype(int), 9)
        errors = []
        for _ in range(400):
            y = rng.random(400) < p
            gap = np.bincount(bins, weights=p - y, minlength=10)
            errors.append(np.abs(gap).sum() / 400)
        assert expected_calibration_error_if_calibrated(p, bins, 10) == pytest.approx(
            np.mean(errors), rel=0.05
        )


class TestSelection:
    def test_risk_by_coverage_has_intervals_and_ends_with_all_pairs(self, tables):
        verdicts, pairs = tables.simulate(protocols=("one",))
        _, curve = selective_tables(verdicts, pairs, SMALL)
        whole = curve[curve["slice_by"] == "all"]
        assert whole["threshold"].is_monotonic_decreasing
        last = whole.iloc[-1]
        assert (last["coverage"], last["n_kept"]) == (1.0, last["n_pairs"])
        known = whole[whole["risk_low"].notna()]
        assert len(known) >= 3
        assert (known["risk_low"] <= known["risk"]).all()
        assert (known["risk"] <= known["risk_high"]).all()
        assert (known["risk_high"] > known["risk_low"]).all()
        assert (whole.loc[whole["risk_low"].isna(), "interval_reason"] != "").all()

    def test_clopper_pearson_against_statsmodels(self):
        from statsmodels.stats import proportion

        for k, n in ((0, 12), (3, 40), (12, 12)):
            low, high = proportion.proportion_confint(k, n, alpha=0.1, method="beta")
            assert clopper_pearson(k, n, 0.95) == pytest.approx(high if k < n else 1.0)
            assert clopper_pearson(k, n, 0.95, "lower") == pytest.approx(low if k else 0.0)

    def test_the_threshold_goes_down_until_the_bound_breaks(self):
        # 60 right at 1; at .9 forty more, two of them wrong (bound .0616); at .8 ten wrong ones break it.
        score = np.r_[np.ones(60), np.full(40, 0.9), np.full(10, 0.8)]
        wrong = np.r_[np.zeros(98), np.ones(12)].astype(bool)
        found = clopper_pearson_threshold(score, wrong, 0.1, 0.95)
        assert found.value == 0.9
        assert found.bound == pytest.approx(clopper_pearson(2, 100), abs=1e-12)

    def test_too_few_units_have_no_threshold(self):
        assert np.isnan(clopper_pearson_threshold(np.ones(20), np.zeros(20), 0.1, 0.95).value)
        assert np.isnan(conformal_risk_threshold(np.ones(8), np.zeros(8), 0.1).value)

    def test_the_guarantee_holds_in_repeated_samples(self):
        # True error .12 at agreement 1, above the target of .10: a threshold is given in at most 5 %.
        given = 0
        for seed in range(300):
            wrong = np.random.default_rng(seed).random(100) < 0.12
            given += not np.isnan(clopper_pearson_threshold(np.ones(100), wrong, 0.10, 0.95).value)
        assert given / 300 <= 0.05

    def test_the_split_does_not_move_when_rows_are_added(self):
        few, more = pd.Series(["a", "b", "c"]), pd.Series(["z", "a", "b", "y", "c"])
        half = dict(zip(more, calibration_half(more, 0.5), strict=True))
        assert dict(zip(few, calibration_half(few, 0.5), strict=True)) == {name: half[name] for name in few}

    def test_tables(self, tables):
        verdicts, pairs = tables.simulate(n_pairs=400, n_clusters=200, repetitions=5, failing=0.0)
        options = SMALL.model_copy(update={"selective": SelectiveOptions(error_rate=0.15)})
        table, curve = selective_tables(verdicts, pairs, options)
        row = table[(table["slice_by"] == "all") & (table["method"] == "clopper_pearson")].iloc[0]
        assert row["reason"] == ""
        assert row["calibration_bound"] <= 0.15
        assert row["calibration_pairs"] + row["held_out_pairs"] == pairs["base_id"].nunique()
        assert row["held_out_low"] <= row["held_out_error"] <= row["held_out_high"]
        whole = curve[curve["slice_by"] == "all"]
        assert whole["coverage"].is_monotonic_increasing
        assert whole["coverage"].iloc[-1] == 1.0

    def test_too_few_pairs_say_so(self, tables):
        table, _ = selective_tables(tables.verdicts({"p1": ("A", "A")}), tables.pairs({"p1": "A"}), SMALL)
        assert set(table["reason"]) == {"too_few_pairs"}

    def test_without_references_there_is_no_row(self, tables):
        table, curve = selective_tables(
            tables.verdicts({"p1": ("A", "A")}), tables.pairs({"p1": None}), SMALL
        )
        assert table.empty
        assert curve.empty
