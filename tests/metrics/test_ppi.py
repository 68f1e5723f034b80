"""Prediction-powered estimates: worked by hand, unbiased with a biased judge, refused without randomness."""

import math

import numpy as np
import pytest

from judge_calibration.errors import PredictionPoweredError
from judge_calibration.metrics.ppi import ppi_difference, ppi_mean

NAN = math.nan
HUMAN = [1, 0, 1, 0, NAN, NAN, NAN, NAN]
JUDGE = [1, 0, 1, 1, 1, 1, 0, 1]
TASKS = list("abcdefgh")


class TestMean:
    def test_worked_by_hand(self):
        # Labelled means: human .5, judge .75; judge over all 6/8 = .75.
        # a = (y - .5)/4: .125, -.125, .125, -.125. b = -(f - .75)/8 labelled, (f - .75)/8 else:
        # -.03125, .09375, -.03125, -.03125 | .03125, .03125, -.09375, .03125.
        # a.b = -.015625, b.b = .0234375: lambda = 2/3. Value .5 + 2/3 (.75 - .75) = .5.
        # Variance 8/7 (.0625 - .015625^2 / .0234375) = 8/7 x .0520833 = .0595238.
        result = ppi_mean(HUMAN, JUDGE, [0.5] * 8, TASKS)
        assert result.tuning == pytest.approx(2 / 3)
        assert result.value == pytest.approx(0.5)
        assert result.se == pytest.approx(math.sqrt(0.0595238095))
        # People alone: sd .57735 over the root of 4.
        assert result.human_only_se == pytest.approx(0.57735027 / 2)
        # The judge says .25 too much on the labelled pairs; t(3) = 3.1824.
        assert result.judge_bias == pytest.approx(0.25)
        half = 3.182446 * result.se
        assert (result.low, result.high) == pytest.approx((0.5 - half, 0.5 + half))
        assert (result.n_labelled, result.n_pairs, result.clusters) == (4, 8, 4)

    def test_judge_off_by_a_constant_moves_nothing(self):
        first = ppi_mean(HUMAN, JUDGE, [0.5] * 8, TASKS)
        second = ppi_mean(HUMAN, np.asarray(JUDGE) + 0.3, [0.5] * 8, TASKS)
        assert second.value == pytest.approx(first.value)
        assert second.se == pytest.approx(first.se)
        assert second.judge_bias == pytest.approx(first.judge_bias + 0.3)

    def test_useless_judge_gives_the_human_estimate(self):
        result = ppi_mean(HUMAN, [0.5] * 8, [0.5] * 8, TASKS)
        assert result.tuning == 0
        assert (result.value, result.se) == pytest.approx((result.human_only, result.human_only_se))

    def test_all_labelled_is_the_human_mean(self):
        result = ppi_mean([1, 0, 1, 1], [1, 0, 0, 1], [1.0] * 4, list("abcd"))
        assert result.value == pytest.approx(0.75)

    def test_unequal_probabilities_weigh(self):
        # Weights 1/.5 and 1/.25: (2 x 1 + 4 x 0) / 6.
        result = ppi_mean([1, 0, NAN], [0.5] * 3, [0.5, 0.25, 0.5], list("abc"))
        assert result.value == pytest.approx(1 / 3)

    def test_interval_covers_where_the_judge_is_biased(self):
        # 300 samples of 240 pairs in 80 tasks, a quarter of the tasks labelled; the judge favours the new
        # product. Binomial 99.9 % band of 300 at .95: 272 to 297.
        rng = np.random.default_rng(11)
        covered, judge_alone = 0, 0
        for _ in range(300):
            task = np.repeat(rng.normal(scale=0.8, size=80), 3)
            y = (task + rng.normal(size=240) > 0).astype(float)
            f = np.where(rng.random(240) < 0.8, y, 1.0)
            labelled = np.repeat(rng.random(80) < 0.25, 3)
            result = ppi_mean(np.where(labelled, y, NAN), f, [0.25] * 240, np.repeat(np.arange(80), 3))
            covered += result.low <= 0.5 <= result.high
            judge_alone += abs(result.judge_only - 0.5) < 2 * result.se
        assert 272 <= covered <= 297
        assert judge_alone < 240

    def test_good_judge_narrows_the_interval(self):
        rng = np.random.default_rng(1)
        y = (rng.random(400) < 0.6).astype(float)
        f = np.where(rng.random(400) < 0.95, y, 1 - y)
        labelled = np.arange(400) % 4 == 0
        result = ppi_mean(np.where(labelled, y, NAN), f, [0.25] * 400, np.arange(400))
        assert result.se < 0.75 * result.human_only_se


class TestDifference:
    def test_same_data_twice_is_exactly_zero(self):
        result = ppi_difference((HUMAN, HUMAN), (JUDGE, JUDGE), ([0.5] * 8, [0.5] * 8), (TASKS, TASKS))
        assert result.value == pytest.approx(0)
        assert result.se == pytest.approx(0)

    def test_other_tasks_add_their_variances(self):
        one = ppi_mean(HUMAN, JUDGE, [0.5] * 8, TASKS)
        result = ppi_difference(
            (HUMAN, HUMAN), (JUDGE, JUDGE), ([0.5] * 8, [0.5] * 8), (TASKS, [t.upper() for t in TASKS])
        )
        # Twice the variance, with G/(G-1) of 16 clusters instead of 8.
        assert result.se**2 == pytest.approx(2 * one.se**2 * (7 / 8) * (16 / 15))
        assert result.n_pairs == 16

    def test_problems_name_the_product(self):
        with pytest.raises(PredictionPoweredError, match="product 2, probability"):
            ppi_difference((HUMAN, HUMAN), (JUDGE, JUDGE), ([0.5] * 8, None), (TASKS, TASKS))


class TestRefused:
    @pytest.mark.parametrize(
        ("human", "judge", "probability", "match"),
        [
            (HUMAN, JUDGE, None, "probability of being labelled"),
            (HUMAN, JUDGE, [0.0] * 8, "above 0"),
            (HUMAN, JUDGE, [NAN] * 8, "above 0"),
            (HUMAN, [NAN, *JUDGE[1:]], [0.5] * 8, "a value for every pair"),
            ([1, *[NAN] * 7], JUDGE, [0.5] * 8, "at least 2"),
            ([NAN] * 8, JUDGE, [0.5] * 8, "at least 2"),
            (HUMAN, JUDGE, [1.0] * 8, "labelled for certain"),
            (HUMAN, JUDGE[:7], [0.5] * 8, "one a pair"),
        ],
    )
    def test_says_why(self, human, judge, probability, match):
        with pytest.raises(PredictionPoweredError, match=match):
            ppi_mean(human, judge, probability, TASKS)
