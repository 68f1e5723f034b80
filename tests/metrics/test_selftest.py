"""The self-test: planted truths, 20 seeds that pass, and a broken control that has to fail."""

import numpy as np
import pytest

from judge_calibration.metrics.planted_judges import PlantedJudge, plant, plant_products
from judge_calibration.metrics.selftest import FAULTY, SELFTEST_COLUMNS, planted_rule, run_self_test
from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.gates import SelfTestOptions
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions

SMALL = SelfTestOptions(seeds=20, clusters=40, pairs_per_cluster=4, repetitions=2, resamples=250)


@pytest.fixture(scope="module")
def result():
    return run_self_test(SMALL)


class TestPlanted:
    def test_tables_find_the_planted_values(self):
        judge = PlantedJudge("x", 0.8, 0.3, 0.7, first_preference=0.9)
        data = plant((judge,), 3, clusters=800, pairs_per_cluster=3, repetitions=3, correlation=0.0)
        ordinary = data.pairs[data.pairs["source"] == "ordinary"]
        verdicts = data.verdicts[data.verdicts["pair_id"].isin(ordinary["pair_id"])]
        options = ReportingOptions(
            trust=TrustOptions(views=("strict",), sliced_views=(), slices=()),
            intervals=IntervalOptions(resamples=200),
        )
        row = trust_table(verdicts, ordinary, options).iloc[0]
        for name, value in judge.truth(3).items():
            if name in row.index:
                assert row[name] == pytest.approx(value, abs=0.03), name
        # Forced choice: exactly one order of a flipped pair is right.
        assert row["q"] == 0.5

    def test_correlation_keeps_the_rates(self):
        judge = PlantedJudge("x", 1.0, 0.4, 1.0)
        rates, spread = [], {}
        for correlation in (0.0, 0.6):
            means = []
            for seed in range(25):
                data = plant((judge,), seed, 30, 4, 2, correlation)
                said = data.verdicts[data.verdicts["pair_id"].str.startswith("ordinary")]
                table = said[said["repetition"] == 0].pivot(
                    index="pair_id", columns="order", values="verdict"
                )
                means.append((table["AB"] != table["BA"]).mean())
            rates.append(np.mean(means))
            spread[correlation] = np.var(means)
        assert rates == pytest.approx([0.4, 0.4], abs=0.03)
        assert spread[0.6] > 1.5 * spread[0.0]

    def test_same_seed_same_tables(self):
        first, second = (plant((FAULTY,), 5, 10, 2, 2, 0.3) for _ in range(2))
        assert first.verdicts.equals(second.verdicts)
        assert first.pairs.equals(second.pairs)

    def test_products_lean_as_planted(self):
        data = plant_products(0.3, 0.2, 0, 2000, 1, 0.0)
        wins = (data.verdicts["verdict"] == "B").mean() - (data.verdicts["verdict"] == "A").mean()
        assert wins == pytest.approx(0.3, abs=0.05)

    def test_products_out_of_reach(self):
        with pytest.raises(ValueError, match="out of reach"):
            plant_products(0.9, 0.2, 0, 10, 1, 0.0)


class TestSelfTest:
    def test_passes(self, result):
        failed = result.table[~result.table["passed"]]
        assert result.passed, failed.to_string()

    def test_every_kind_of_check_is_there(self, result):
        table = result.table
        assert list(table.columns) == list(SELFTEST_COLUMNS)
        assert set(table["check"]) == {"coverage", "coverage_rare", "false_alarm", "power"}
        covered = set(table.loc[table["check"] == "coverage", "quantity"])
        assert {
            "C",
            "phi",
            "A",
            "first_share",
            "modified_minus_original",
            "better_wins",
            "gate_net",
        } <= covered
        assert (table["seeds"] == 20).all()

    def test_bands_are_binomial(self):
        # 200 seeds: false alarms up to 18 at 5 %, power from 160 at 80 %, coverage of 95 % from 181 to 197.
        from judge_calibration.metrics.selftest import _row

        options = SelfTestOptions(seeds=200)
        alarm = _row(("false_alarm", "gate_for_new", "equal"), [0.0, 18, 200], options)
        assert (alarm["highest"], alarm["passed"]) == (18, True)
        power = _row(("power", "gate_for_new", "better"), [0.0, 159, 200], options)
        assert (power["lowest"], power["passed"]) == (160, False)
        coverage = _row(("coverage", "C", "sound"), [0.0, 190, 200], options)
        assert (coverage["lowest"], coverage["highest"]) == (181, 197)

    def test_rows_instead_of_tasks_fail_the_same_test(self):
        # Tasks of ten alike pairs: intervals that take them for independent are far too short.
        options = SMALL.model_copy(
            update={
                "seeds": 10,
                "clusters": 30,
                "pairs_per_cluster": 10,
                "correlation": 0.9,
                "cluster_by": "row",
            }
        )
        broken = run_self_test(options)
        assert not broken.passed
        failed = broken.table.query("check == 'coverage' and not passed")
        assert {"phi", "A"} <= set(failed["quantity"])

    def test_rule_has_its_floors_at_the_sound_judge(self):
        assert planted_rule(SMALL).floors["order_consistency"] == pytest.approx(0.85)


@pytest.mark.slow
class TestAtFullSize:
    """200 seeds, fixed before the first run."""

    @pytest.mark.parametrize("clusters", [30, 60])
    def test_passes(self, clusters):
        result = run_self_test(SelfTestOptions(seeds=200, clusters=clusters))
        failed = result.table[~result.table["passed"]]
        assert result.passed, failed.to_string()

    def test_broken_control_fails(self):
        assert not run_self_test(SelfTestOptions(seeds=200, cluster_by="row")).passed
