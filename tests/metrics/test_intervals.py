"""Intervals: which one a statistic gets, worked values, and what is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.metrics.benjamini_hochberg import benjamini_hochberg
from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.holm import holm
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.jackknife import jackknife_interval, t_quantile
from judge_calibration.metrics.max_t import max_t_intervals
from judge_calibration.metrics.share_rows import ratio_intervals
from judge_calibration.metrics.trust_table import trust_intervals, trust_table
from judge_calibration.metrics.wilson import wilson_interval
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions

OPTIONS = IntervalOptions(resamples=400)


def of_shares(shares, units=1, options=OPTIONS):
    """Interval of the mean share over clusters with so many units each."""
    sums = np.asarray(shares, dtype=float)[:, None] * units
    return ratio_intervals(sums, np.full_like(sums, units), Resamples(len(shares), 400, 7), True, options)


class TestWilson:
    def test_worked_value(self):
        # z = 1.959964, 8 of 10: centre (.8 + z^2/20) / (1 + z^2/10) = .716746, half width .226588.
        low, high = wilson_interval(8, 10)
        assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)

    def test_ends_are_exactly_0_and_1(self):
        assert wilson_interval(0, 12).low == 0.0
        assert wilson_interval(12, 12).high == 1.0

    def test_agrees_with_statsmodels(self):
        from statsmodels.stats import proportion

        for k, n in ((0, 7), (3, 11), (50, 50), (17, 120)):
            expected = proportion.proportion_confint(k, n, method="wilson")
            assert wilson_interval(k, n) == pytest.approx(expected, abs=1e-12)

    def test_more_successes_than_units_is_an_error(self):
        with pytest.raises(ValueError, match="wanted a number from 0 to n"):
            wilson_interval(3, 2)

    def test_no_unit_is_undefined(self):
        assert all(math.isnan(end) for end in wilson_interval(0, 0))


class TestChoice:
    def test_enough_clusters_with_variation_get_percentiles(self):
        found = of_shares([0, 1] * 20)
        assert found.method[0] == "percentile"
        assert found.low[0] < 0.5 < found.high[0]

    @pytest.mark.parametrize("share", [0.0, 1.0])
    def test_a_share_at_an_end_gets_wilson_over_clusters_and_never_no_width(self, share):
        found = of_shares([share] * 20, units=8)
        assert found.method[0] == "wilson"
        assert (found.low[0], found.high[0]) == wilson_interval(20 * share, 20)

    def test_below_ten_clusters_there_is_none(self):
        found = of_shares([0, 1, 1, 0, 1, 0, 1, 1, 0])
        assert (found.method[0], found.reason[0]) == ("none", "fewer_than_10_clusters")
        assert np.isnan(found.low[0])
        assert not np.isnan(found.se[0])  # the jackknife stands beside it

    def test_equal_clusters_off_the_ends_have_no_variation(self):
        found = of_shares([0.5] * 20, units=2)
        assert (found.method[0], found.reason[0]) == ("none", "no_variation")

    def test_more_than_a_tenth_undefined_resamples_refuse_the_interval(self):
        # One cluster of twelve holds all units of ten clusters' worth: it is missed by 35 % of resamples.
        numerator, denominator = np.zeros((40, 1)), np.zeros((40, 1))
        denominator[:2, 0] = 1
        numerator[0, 0] = 1
        options = IntervalOptions(resamples=400, refuse_below=2)
        found = ratio_intervals(numerator, denominator, Resamples(40, 400, 7), True, options)
        # (1 - 2/40)^40 = .129 of the resamples hold neither.
        assert found.undefined[0] == pytest.approx(0.129, abs=0.05)
        assert found.reason[0] == "undefined_resamples"

    def test_an_undefined_statistic_has_no_interval(self):
        nothing = np.full((1, 5), np.nan)
        found = choose_intervals(
            np.array([np.nan]),
            nothing,
            np.full((3, 1), np.nan),
            np.zeros((3, 1), bool),
            np.array([True]),
            OPTIONS,
        )
        assert (found.reason[0], found.undefined[0]) == ("statistic_undefined", 1.0)


class TestJackknife:
    def test_equals_the_standard_error_of_a_mean_of_clusters(self):
        rng = np.random.default_rng(0)
        means = rng.random(25)
        left_out = (means.sum() - means) / 24
        found = jackknife_interval(means.mean(), left_out, np.ones(25, bool))
        assert float(found.se) == pytest.approx(means.std(ddof=1) / 5)

    def test_worked_ratio(self):
        # Clusters (right, n): (1, 2), (2, 2), (0, 1); share 3/5; without each 2/3, 1/3, 3/4; mean 7/12.
        # Squares (1/12)^2 + (1/4)^2 + (1/6)^2 = 14/144; times 2/3: .0648148; se .2545876; t(2) = 4.302653.
        found = jackknife_interval(0.6, [2 / 3, 1 / 3, 3 / 4], [True] * 3)
        assert float(found.se) == pytest.approx(0.2545876, abs=1e-6)
        assert float(found.low) == pytest.approx(0.6 - 4.302653 * 0.2545876, abs=1e-5)

    def test_clusters_without_a_unit_do_not_count(self):
        found = jackknife_interval(0.5, [2 / 3, 1 / 3, 0.5], [True, True, False])
        # G = 2: mean 1/2, squares 2 (1/6)^2, times 1/2.
        assert float(found.se) == pytest.approx(1 / 6)

    def test_one_cluster_is_undefined(self):
        assert np.isnan(jackknife_interval(0.5, [np.nan], [True]).se)

    def test_t_quantile_agrees_with_tables(self):
        assert t_quantile(0.95, [1, 9, 29]).round(3).tolist() == [12.706, 2.262, 2.045]
        assert np.isnan(t_quantile(0.95, 0))


class TestMultiplicity:
    def test_holm_against_statsmodels(self):
        from statsmodels.stats import multitest

        p = np.random.default_rng(1).random(20) ** 3
        np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1])
        np.testing.assert_allclose(benjamini_hochberg(p), multitest.multipletests(p, method="fdr_bh")[1])

    def test_missing_p_values_stay_missing_and_do_not_count(self):
        np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
        np.testing.assert_allclose(benjamini_hochberg([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])

    @pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
    def test_a_p_value_outside_0_to_1_is_an_error(self, adjust):
        with pytest.raises(ValueError, match="between 0 and 1"):
            adjust([0.5, 1.2])

    @pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
    def test_no_p_value_gives_none(self, adjust):
        assert adjust([]).shape == (0,)

    @settings(max_examples=100)
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
    def test_adjusting_keeps_the_order_and_only_raises(self, p):
        for adjust in (holm, benjamini_hochberg):
            q = adjust(p)
            assert (q >= np.asarray(p) - 1e-15).all()
            assert (np.diff(q[np.argsort(p, kind="stable")]) >= -1e-15).all()

    def test_max_t_lies_between_one_and_bonferroni(self):
        rng = np.random.default_rng(0)
        drawn = rng.normal(size=(5, 4000))
        family = max_t_intervals(np.zeros(5), drawn, np.ones(5))
        single = max_t_intervals(np.zeros(1), drawn[:1], np.ones(1))
        bonferroni = np.quantile(np.abs(drawn), 1 - 0.05 / 5, axis=1).max()
        assert single.critical < family.critical < bonferroni * 1.05

    def test_max_t_leaves_out_what_does_not_vary(self):
        found = max_t_intervals([1.0, 2.0], [[0.0, 2.0], [2.0, 2.0]], [1.0, 0.0], level=0.5)
        assert found.critical == 1.0
        assert np.isnan(found.low[1])

    def test_max_t_of_nothing_is_undefined(self):
        assert math.isnan(max_t_intervals([np.nan], [[np.nan]], [np.nan]).critical)


class TestTrustIntervals:
    def test_long_and_wide_agree(self, tables):
        verdicts, pairs = tables.simulate()
        options = ReportingOptions(intervals=OPTIONS)
        long, wide = trust_intervals(verdicts, pairs, options), trust_table(verdicts, pairs, options)
        whole = long[(long["slice_by"] == "all") & (long["view"] == "strict")].set_index("metric")
        row = wide[(wide["slice_by"] == "all") & (wide["view"] == "strict")].iloc[0]
        for metric in ("C", "phi", "T_product"):
            assert row[f"{metric}_low"] == whole.loc[metric, "low"]
            assert whole.loc[metric, "jackknife_se"] > 0
        assert whole.loc["C", "value"] == whole.loc["C", "numerator"] / whole.loc["C", "denominator"]

    def test_fewer_than_thirty_clusters_are_flagged(self, tables):
        for clusters, flagged in ((20, True), (40, False)):
            verdicts, pairs = tables.simulate(n_pairs=200, n_clusters=clusters)
            table = trust_table(verdicts, pairs, ReportingOptions(intervals=OPTIONS))
            assert ("few_clusters" in table.iloc[0]["flags"]) == flagged

    def test_all_statistics_share_one_set_of_resamples(self, tables):
        # A = 1 - wrong share: with shared weights the interval of one is the mirror of the other.
        verdicts, pairs = tables.simulate(labels=("A", "B"), failing=0.0)
        flipped = pairs.assign(reference_label=pairs["reference_label"].map({"A": "B", "B": "A"}))
        options = ReportingOptions(intervals=OPTIONS, trust=TrustOptions(views=("strict",), slices=()))
        one, other = (
            trust_table(verdicts, pairs, options).iloc[0],
            trust_table(verdicts, flipped, options).iloc[0],
        )
        assert one["A_low"] == pytest.approx(1 - other["A_high"])

    @pytest.mark.slow
    def test_percentile_coverage_at_40_clusters(self, tables):
        # 93 to 95 % at 40 clusters; here 200 simulations of a known accuracy.
        hits = 0
        for seed in range(200):
            rng = np.random.default_rng(seed)
            p = rng.beta(4, 2, 40)  # accuracy of each cluster, mean 2/3
            right = rng.random((40, 5)) < p[:, None]
            sums = right.sum(axis=1).astype(float)[:, None]
            found = ratio_intervals(sums, np.full((40, 1), 5.0), Resamples(40, 2000, seed), True, OPTIONS)
            hits += found.low[0] <= 2 / 3 <= found.high[0]
        assert 0.88 <= hits / 200 <= 0.985
