import numpy as np
import pandas as pd
import pytest

from judge_calibration.adapt.adaptation_costs import Usage, adaptation_costs, usage_of, with_seconds
from judge_calibration.adapt.advice import NONE_EARNED, advise
from judge_calibration.adapt.gains import compare_methods, detectable_gain, measure_gains, sample_efficiency
from judge_calibration.metrics.bootstrap import cluster_bootstrap
from judge_calibration.options.asking import PriceOptions


def hits(right, base, method="sft", judge="j", source="s", budget="full", clusters=None):
    n = len(right)
    clusters = [f"b{i}" for i in range(n)] if clusters is None else clusters
    return pd.DataFrame(
        {
            "method": method,
            "judge_id": judge,
            "protocol": "direct",
            "source": source,
            "budget": budget,
            "pair_id": [f"{source}p{i}" for i in range(n)],
            "base_id": clusters,
            "right": np.asarray(right, float),
            "base_right": np.asarray(base, float),
            "no_verdict": 0.0,
            "base_no_verdict": 0.0,
            "simulated": False,
        }
    )


ALTERNATING = [1.0, 0.0] * 20
MOSTLY = [1.0, 1.0, 1.0, 0.0] * 10


class TestDelta:
    def test_worked_numbers(self):
        # 30 of 40 against 20 of 40: 25 points.
        row = measure_gains(hits(MOSTLY, ALTERNATING), 500).table.iloc[0]
        assert (row["accuracy"], row["accuracy_base"], row["delta"]) == (0.75, 0.5, 25.0)
        assert row["delta_low"] < 25 < row["delta_high"]

    def test_the_interval_is_the_cluster_bootstrap_of_the_paired_difference(self):
        clusters = [f"b{i // 2}" for i in range(40)]
        frame = hits(MOSTLY, ALTERNATING, clusters=clusters)
        wanted = cluster_bootstrap(frame["right"] - frame["base_right"], np.ones(40), clusters, 500, 7)
        row = measure_gains(frame, 500, 7).table.iloc[0]
        assert (row["delta_low"], row["delta_high"]) == pytest.approx((100 * wanted.low, 100 * wanted.high))

    def test_fewer_than_ten_base_tasks_give_no_interval(self):
        row = measure_gains(hits([1.0] * 9, [0.0, 1.0] * 4 + [0.0]), 500).table.iloc[0]
        assert np.isnan(row["delta_low"])
        assert row["undefined"] == "fewer_than_10_clusters"

    def test_the_same_verdicts_give_no_interval_of_width_zero(self):
        row = measure_gains(hits(ALTERNATING, ALTERNATING), 500).table.iloc[0]
        assert row["delta"] == 0
        assert np.isnan(row["delta_low"])
        assert row["undefined"] == "no_variation"

    def test_without_a_base_there_is_an_accuracy_and_no_delta(self):
        row = measure_gains(hits(MOSTLY, [np.nan] * 40), 500).table.iloc[0]
        assert row["accuracy"] == 0.75
        assert np.isnan(row["delta"])
        assert row["undefined"] == "no_base_verdict"

    def test_the_detectable_gain_is_found_four_times_out_of_five_and_knows_no_result(self):
        n = 40
        wanted = detectable_gain(n) / 100
        rng = np.random.default_rng(1)
        # Two judges that know nothing of each other, and a judge that flips on every pair before.
        before = (rng.random((4000, n)) < 0.5 - wanted / 2).astype(float)
        after = (rng.random((4000, n)) < 0.5 + wanted / 2).astype(float)
        for gain, least, most in ((after - before, 0.75, 0.9), (after - 0.5 + wanted / 2, 0.85, 1.0)):
            spread = gain.std(axis=1, ddof=1) / np.sqrt(n)
            assert least < (gain.mean(axis=1) > 1.96 * spread).mean() <= most
        assert np.isnan(detectable_gain(9))
        rows = [measure_gains(hits(right, ALTERNATING), 500).table.iloc[0] for right in (MOSTLY, ALTERNATING)]
        assert rows[0]["detectable"] == rows[1]["detectable"] == detectable_gain(40)
        assert np.isnan(measure_gains(hits(MOSTLY, [np.nan] * 40), 500).table.iloc[0]["detectable"])


class TestMacro:
    def test_every_cell_has_the_same_weight(self):
        # Gains of 25 points on 40 pairs and 0 on 12: the macro mean is 12.5, not the pooled 19.2.
        frame = pd.concat([hits(MOSTLY, ALTERNATING), hits(ALTERNATING[:12], ALTERNATING[:12], source="t")])
        row = measure_gains(frame, 500).macro.iloc[0]
        assert row["delta"] == 12.5
        assert (row["n_cells"], row["n_sources"]) == (2, 2)
        assert row["delta_low"] < 12.5 < row["delta_high"]

    def test_sources_with_as_many_base_tasks_are_resampled_apart(self):
        one = measure_gains(hits(MOSTLY, ALTERNATING), 4_000)
        both = measure_gains(
            pd.concat([hits(MOSTLY, ALTERNATING), hits(MOSTLY, ALTERNATING, source="t")]), 4_000
        )
        width = one.table["delta_high"].iloc[0] - one.table["delta_low"].iloc[0]
        mean_width = both.macro["delta_high"].iloc[0] - both.macro["delta_low"].iloc[0]
        # The mean of two independent ones is narrower by the square root of two.
        assert mean_width / width == pytest.approx(1 / np.sqrt(2), abs=0.08)

    def test_a_thin_cell_lends_the_mean_no_interval(self):
        frame = pd.concat([hits(MOSTLY, ALTERNATING), hits([1.0] * 5, [0.0] * 5, source="t")])
        row = measure_gains(frame, 500).macro.iloc[0]
        assert np.isnan(row["delta_low"])
        assert row["undefined"] == "a_cell_with_fewer_than_10_clusters"


class TestComparison:
    def test_two_methods_meet_on_the_pairs_that_both_judged(self):
        frame = pd.concat([hits(MOSTLY, ALTERNATING), hits(ALTERNATING, ALTERNATING, "rubric").iloc[:32]])
        row = compare_methods(frame, 500).iloc[0]
        assert (row["method_1"], row["method_2"], row["n_test"]) == ("rubric", "sft", 32)
        assert row["difference"] == -25.0
        assert row["low"] < -25 < row["high"]

    def test_one_method_alone_makes_no_row(self):
        assert compare_methods(hits(MOSTLY, ALTERNATING), 500).empty


class TestAdvice:
    labels = pd.DataFrame({"source": ["s"], "train_pairs": [300]})

    def test_a_clear_gain_is_used_once_its_labels_are_there(self):
        frame = pd.concat(
            [hits(ALTERNATING, ALTERNATING, budget="32"), hits([1.0] * 36 + [0.0] * 4, ALTERNATING)]
        )
        table = advise(measure_gains(frame, 1_000), self.labels).set_index("n_labels")
        assert table.loc[32, "advice"] == NONE_EARNED
        assert table.loc[300, ["advice", "method", "budget"]].tolist() == ["use", "sft", "full"]
        assert table.loc[300, "expected_gain"] == 40.0
        assert table.loc[300, "earned_low"] <= table.loc[300, "low"]

    def test_no_method_earned_is_an_answer(self):
        rng = np.random.default_rng(1)
        frame = hits(rng.integers(0, 2, 40), rng.integers(0, 2, 40))
        row = advise(measure_gains(frame, 1_000), self.labels).iloc[0]
        assert row["advice"] == NONE_EARNED
        assert row["low"] < 0 < row["high"] or row["expected_gain"] <= 0

    def test_the_best_of_many_worthless_methods_is_not_advised(self):
        rng = np.random.default_rng(2)
        frame = pd.concat(
            [hits(rng.integers(0, 2, 40), rng.integers(0, 2, 40), method=f"m{k}") for k in range(20)]
        )
        row = advise(measure_gains(frame, 2_000), self.labels).iloc[0]
        assert row["n_candidates"] == 20
        assert row["advice"] == NONE_EARNED

    def curves_of(self, points, base=0.5):
        return pd.DataFrame(
            {
                "method": "sft",
                "simulated": False,
                "judge_id": "j",
                "source": "s",
                "budget": "32",
                "resample": range(len(points)),
                "accuracy_base": base,
                "accuracy": [base + value / 100 for value in points],
            }
        )

    def test_one_lucky_choice_of_training_pairs_is_not_advised(self):
        # The frozen choice gains 40 points; nine others lose 5.
        found = measure_gains(hits([1.0] * 36 + [0.0] * 4, ALTERNATING, budget="32"), 1_000)
        assert advise(found, self.labels).iloc[0]["advice"] == "use"
        row = advise(found, self.labels, self.curves_of([40.0] + [-5.0] * 9)).iloc[0]
        assert row["advice"] == NONE_EARNED
        assert row["expected_gain"] == pytest.approx(-0.5)
        assert row["n_resamples"] == 10
        assert row["sd_over_resamples"] == pytest.approx(14.23, abs=0.01)
        assert row["low"] < -0.5 < row["high"]

    def test_choices_that_agree_leave_the_interval_of_the_held_out_pairs(self):
        found = measure_gains(hits([1.0] * 36 + [0.0] * 4, ALTERNATING, budget="32"), 2_000)
        alone = advise(found, self.labels).iloc[0]
        row = advise(found, self.labels, self.curves_of([40.0] * 10)).iloc[0]
        assert row["expected_gain"] == pytest.approx(40.0)
        assert row["earned_low"] == pytest.approx(alone["earned_low"])
        wide = advise(found, self.labels, self.curves_of([20.0, 60.0] * 5)).iloc[0]
        # sqrt(own variance + 21.08^2 / 10), as the two are independent.
        own = (row["high"] - row["low"]) / 3.92
        wanted = 3.92 * np.sqrt(own**2 + 21.08**2 / 10)
        assert wide["high"] - wide["low"] == pytest.approx(wanted, rel=0.05)

    def test_a_single_ranking_has_no_spread(self):
        found = measure_gains(hits(MOSTLY, ALTERNATING, budget="32"), 500)
        row = advise(found, self.labels, self.curves_of([25.0])).iloc[0]
        assert (row["n_resamples"], row["expected_gain"]) == (1, 25.0)
        assert np.isnan(row["sd_over_resamples"])

    def test_a_smaller_budget_is_no_candidate_where_a_larger_one_was_tried(self):
        lucky = hits([1.0] * 36 + [0.0] * 4, ALTERNATING, budget="32")
        frame = pd.concat([lucky, hits(ALTERNATING, ALTERNATING[::-1])])
        table = advise(measure_gains(frame, 1_000), self.labels).set_index("n_labels")
        assert table.loc[32, "advice"] == "use"
        assert table.loc[300, ["advice", "budget", "n_candidates"]].tolist() == [NONE_EARNED, "full", 1]

    def test_a_gain_on_every_base_task_is_earned_though_nothing_varies(self):
        row = advise(measure_gains(hits([1.0] * 20, [0.5] * 20), 500), self.labels).iloc[0]
        assert (row["advice"], row["expected_gain"], row["reason"]) == ("use", 50.0, "no_variation")
        assert (
            advise(measure_gains(hits([0.5] * 20, [0.5] * 20), 500), self.labels).iloc[0]["advice"]
            == NONE_EARNED
        )

    def test_four_gains_on_ten_base_tasks_are_not_enough_for_one_of_three_methods(self):
        # Chance brings them to one of three worthless methods in 7 of 100 tries; the percentiles of the
        # resampled mean alone lie above 0 (one of 167 resamples holds none of the four).
        base = [1.0] * 6 + [0.0] * 4
        frame = pd.concat(
            [hits([1.0] * 10, base, "lucky"), *(hits(base[::-1], base, f"m{k}") for k in range(2))]
        )
        row = advise(measure_gains(frame, 20_000), self.labels).iloc[0]
        assert (row["method"], row["expected_gain"], row["n_candidates"]) == ("lucky", 40.0, 3)
        assert row["earned_low"] < 0
        assert row["advice"] == NONE_EARNED

    def test_a_gain_without_an_interval_earns_nothing(self):
        row = advise(measure_gains(hits([1.0] * 6, [0.0] * 6), 500), self.labels).iloc[0]
        assert row["advice"] == NONE_EARNED
        assert row["reason"] == "fewer_than_10_clusters"


def test_the_spread_is_over_resample_means():
    curves = pd.DataFrame(
        {
            "method": "m",
            "simulated": False,
            "judge_id": ["x", "y", "x", "y"],
            "source": "s",
            "budget": "32",
            "resample": [0, 0, 1, 1],
            "accuracy_base": 0.5,
            "accuracy": [0.6, 0.8, 0.7, 0.9],
            "n_train": [32, 30, 32, 30],
            "all_pairs": False,
        }
    )
    row = sample_efficiency(curves).iloc[0]
    # Resample means .7 and .8: mean .75, standard deviation .1 / sqrt(2).
    assert row["accuracy"] == pytest.approx(0.75)
    assert row["sd_over_resamples"] == pytest.approx(0.0707, abs=1e-4)
    assert row["n_train"] == 31
    # Rankings that all hold the same pairs have no spread, whatever else made them differ.
    assert np.isnan(sample_efficiency(curves.assign(all_pairs=True)).iloc[0]["sd_over_resamples"])


class TestCosts:
    def test_usage_is_tokens_times_price_and_unknown_where_unknown(self):
        calls = pd.DataFrame({"call_id": ["a", "b", "b"]})
        answers = pd.DataFrame(
            {
                "call_id": ["a", "b"],
                "failure": [None, None],
                "prompt_tokens": [100, 300],
                "completion_tokens": [10, 10],
                "cached_tokens": [0, 0],
            }
        )
        attempts = pd.DataFrame(
            {
                "call_id": ["a", "b", "b"],
                "failure": [None, "timeout", None],
                "started_at": ["2026-01-01T00:00:00+00:00"] * 3,
                "finished_at": [f"2026-01-01T00:00:{end}+00:00" for end in ("01.5", "50", "02")],
            }
        )
        answers = with_seconds(answers, attempts)
        price = PriceOptions(input_per_million=1.0, output_per_million=10.0)
        # 400 at 1 and 20 at 10 a million.
        found = usage_of(calls, answers, price)
        assert found[:3] == pytest.approx((2, 420, 0.0006))
        # The attempt that timed out is not what the call takes.
        # Two calls shared 1.5 s, then one had half a second alone.
        assert (found.seconds, found.reason) == (pytest.approx(2.0), None)
        assert answers["seconds"].tolist() == pytest.approx([0.75, 1.25])
        unpriced = usage_of(calls, answers, None)
        assert np.isnan(unpriced.money)
        assert unpriced.reason == "unpriced"
        lacking = usage_of(calls, with_seconds(answers, attempts.iloc[:1]), price)
        assert np.isnan(lacking.seconds)

    def test_what_is_dearer_and_no_better_is_not_the_best_at_its_cost(self):
        gains = pd.concat(
            [
                measure_gains(hits(MOSTLY, ALTERNATING, "rubric"), 200).table,
                measure_gains(hits(MOSTLY, ALTERNATING, "sft"), 200).table,
            ]
        )
        each = {
            ("base", "j", "s", "none"): Usage(2, 1_000, 0.1, 3.0),
            ("rubric", "j", "s", "full"): Usage(2, 1_200, 0.12, 3.5),
            ("sft", "j", "s", "full"): Usage(2, 1_000, 0.1, 3.0),
        }
        adapt = {
            ("rubric", "j", "s", "full"): Usage(1, 5_000, 1.0, 20.0),
            ("sft", "j", "s", "full"): Usage(0, 0, 0, 900.0),
        }
        labels = {("rubric", "s", "full"): 40, ("sft", "s", "full"): 40}
        table = adaptation_costs(gains, labels, adapt, each, 100).set_index("method")
        assert table["best_at_its_tokens"].to_dict() == {"base": False, "rubric": False, "sft": True}
        assert table.loc["rubric", "total_tokens"] == 125_000
        # 300 s unadapted, 20 + 350 s with a rubric, 900 + 300 s with training that reaches no more.
        assert table["total_seconds"].to_dict() == {"base": 300, "rubric": 370, "sft": 1_200}
        assert table["best_at_its_seconds"].to_dict() == {"base": True, "rubric": True, "sft": False}
        assert table["labels"].to_dict() == {"base": 0, "rubric": 40, "sft": 40}
