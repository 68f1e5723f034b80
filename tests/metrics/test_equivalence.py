"""Two one-sided tests and the bounds that gates use."""

import math

import numpy as np
import pytest

from judge_calibration.metrics.clustered_mean import clustered_mean, clustered_share
from judge_calibration.metrics.equivalence import equivalence_test


class TestEquivalence:
    def test_worked_by_hand(self):
        # Differences 0, .2, -.1, .1 in 40 clusters (10 times each): mean .05,
        # sd = sqrt((10 (.05^2 + .15^2 + .15^2 + .05^2)) / 39) = .113228, se .017903, floor 1.05/41 = .02561.
        # t(39) at .95 is 1.684875: interval .05 +/- .04315 = .00685 to .09315.
        # p against -.1: t = .15/.02561; against +.1: t = -.05/.02561 = -1.95238, p = .02905.
        result = equivalence_test([0, 0.2, -0.1, 0.1] * 10, range(40), 0.1)
        assert result.difference == pytest.approx(0.05)
        assert (result.low, result.high) == pytest.approx((0.006849, 0.093151), abs=1e-5)
        assert result.p_upper == pytest.approx(0.02905, abs=1e-5)
        assert result.outcome == "equivalent"
        assert result.p_value == result.p_upper

    def test_not_significant_is_not_the_same(self):
        rng = np.random.default_rng(0)
        result = equivalence_test(rng.choice([-1, 0, 1], size=20), range(20), 0.05)
        assert result.low < 0 < result.high
        assert result.outcome == "inconclusive"

    def test_different(self):
        assert equivalence_test([1, 1, 1, 0.5] * 10, range(40), 0.1).outcome == "different"
        assert equivalence_test([-1, -1, -1, -0.5] * 10, range(40), 0.1).outcome == "different"

    def test_interval_within_the_margin_if_and_only_if_equivalent(self):
        rng = np.random.default_rng(3)
        for _ in range(50):
            r = equivalence_test(rng.normal(0.02, 0.3, size=60), np.arange(60) // 2, 0.1)
            assert (r.outcome == "equivalent") == (r.low > -0.1 and r.high < 0.1)

    def test_all_equal_is_no_proof_with_few_tasks(self):
        assert equivalence_test([0] * 5, range(5), 0.1).outcome == "inconclusive"
        assert equivalence_test([0] * 100, range(100), 0.1).outcome == "equivalent"

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few(self, n):
        assert equivalence_test([0.0] * n, range(n), 0.1).outcome == "too_few"

    def test_margin_has_to_be_positive(self):
        with pytest.raises(ValueError, match="above 0"):
            equivalence_test([0, 1], [0, 1], 0)


class TestBounds:
    def test_share_of_independent_pairs_is_clopper_pearson(self):
        # 16 of 20, one pair a cluster. Effective n: .16 / (.16/19) = 19, then x (1.7291/1.7291)^2.
        from scipy.stats import beta

        share = clustered_share([1] * 16 + [0] * 4, range(20))
        assert share.effective_n == pytest.approx(19)
        assert share.bounds(0.05).low == pytest.approx(beta.ppf(0.05, 15.2, 4.8))

    def test_dependent_pairs_count_less(self):
        values = np.repeat([1] * 16 + [0] * 4, 5)
        clustered = clustered_share(values, np.repeat(np.arange(20), 5))
        rows = clustered_share(values, np.arange(100))
        assert clustered.effective_n == pytest.approx(19)
        assert rows.bounds(0.05).low > clustered.bounds(0.05).low

    def test_none_right(self):
        share = clustered_share([0] * 20, range(20))
        assert share.bounds(0.05) == pytest.approx((0, 1 - 0.05 ** (1 / 20)))
        assert share.p_above(0.5) == 1

    def test_bound_above_the_floor_if_and_only_if_p_below_alpha(self):
        rng = np.random.default_rng(2)
        for _ in range(50):
            share = clustered_share(rng.random(60) < 0.85, np.arange(60) // 3)
            assert (share.bounds(0.05).low > 0.75) == (share.p_above(0.75, 0.05) < 0.05)

    def test_undefined_below_two_clusters(self):
        for result in (clustered_share([1, 0], ["a", "a"]), clustered_mean([1, 0], ["a", "a"])):
            assert all(math.isnan(bound) for bound in result.bounds(0.05))
            assert math.isnan(result.p_above(0.5))
        assert math.isnan(clustered_mean([], []).value)
