"""The nodes of reporting that decompose variance, judge authority and test the instrument."""

import logging

import pytest
import yaml

from judge_calibration.metrics.decision_rule import rule_hash
from judge_calibration.metrics.planted_judges import PlantedJudge, plant
from judge_calibration.options.gates import SelfTestOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.options.variance import VarianceOptions
from judge_calibration.pipelines.reporting import decisions

FAST = VarianceOptions(draws=200, resamples=100)


@pytest.fixture(scope="module")
def tables():
    judges = (PlantedJudge("good", 0.95, 0.02, 0.98), PlantedJudge("bad", 0.9, 0.4, 0.6))
    data = plant(judges, 0, clusters=40, pairs_per_cluster=2, repetitions=2, correlation=0.2)
    return data.verdicts, data.pairs


@pytest.fixture(scope="module")
def shipped_rule(project_path):
    text = (project_path / "conf" / "base" / "reporting" / "parameters.yml").read_text()
    return yaml.safe_load(text.replace("${globals:seed}", "7"))["reporting"]["rule"]


@pytest.fixture(scope="module")
def labels(tables):
    return tables[1][["pair_id"]].iloc[:0].assign(label="", attribute=None, stage="primary")


def own_rule(**changes):
    return {
        "name": "ours",
        "claim": "improvement",
        "slice_by": ["domain"],
        "critical_slices": ["ordinary"],
        "floors": {"agreement": 0.8, "order_consistency": 0.8},
        "min_tasks": 20,
        "min_human_tasks": 10,
        "min_valid_share": 0.9,
        "sentinel": {"max_changed": 0.1, "accuracy_margin": 0.1, "min_tasks": 20},
    } | changes


def test_variance(tables):
    components, missing, designs = decisions.decompose_variance(*tables, ReportingOptions(variance=FAST))
    assert set(components["source"]) == {"ordinary", "length", "injection"}
    assert (missing["share_missing"] == 0).all()
    assert designs["cheapest"].any()
    assert components["note"].str.contains("linear-probability").all()


def test_anova_without_crossed_formats_says_why(tables):
    table = decisions.analyse_trust(*tables, ReportingOptions(variance=FAST))
    assert table["undefined"].notna().any()


def test_authority_by_our_rule(tables, labels):
    table = decisions.judge_authority(*tables, labels, ReportingOptions(rule=own_rule()))
    sums = table[(table["criterion"] == "all") & (table["slice"] == "ordinary")].set_index("judge_id")
    assert sums["earned"].to_dict() == {"good": True, "bad": False}
    assert set(table["rule"]) == {"ours"}
    assert table["rule_hash"].str.len().eq(64).all()


def test_authority_says_whether_the_rule_came_first(tables, labels):
    options = ReportingOptions(rule=own_rule())
    instruments = {name: {} for name in tables[0]["instrument_id"]}

    def said(judging_rule, instruments):
        table = decisions.judge_authority(*tables, labels, options, judging_rule, instruments)
        assert table["rule_status"].nunique() == 1
        return table["rule_status"].iloc[0]

    recorded = {"name": "ours", "sha256": rule_hash(options.rule)}
    assert said(recorded, instruments) == "the rule was declared before judging"
    assert said({"name": "x", "sha256": "0" * 64}, instruments) == "rule_changed_after_judging"
    assert said({"name": None, "sha256": None}, instruments) == "rule_not_recorded_at_judging: exploratory"
    assert said(recorded, {}) == "rule_after_verdicts: exploratory"


def test_sets_are_compared_by_the_slices_of_the_rule(tables, labels):
    table = decisions.compare_sets(*tables, labels, ReportingOptions(rule=own_rule()))
    judged = table[(table["calibration_set"] == "judged") & (table["kind"] == "slice")]
    assert (judged["difference"] == 0).all()
    # The planted pairs have human references, and so all of them count as labelled.
    assert (table["calibration_n"] == table["judged_n"]).all()
    assert table["undefined"].isna().all()


def test_shipped_rule_earns_nothing(tables, labels, shipped_rule):
    table = decisions.judge_authority(*tables, labels, ReportingOptions(rule=shipped_rule))
    assert not table["earned"].any()
    assert table["reason"].str.startswith("no_declared_rule").all()


def test_without_a_rule_the_table_is_empty(tables, labels):
    assert decisions.judge_authority(*tables, labels, ReportingOptions()).empty


class TestSelfTestNode:
    def test_not_asked_for(self):
        assert decisions.check_instrument(ReportingOptions()).empty

    def test_failures_are_logged_by_name(self, caplog):
        broken = SelfTestOptions(
            seeds=5,
            clusters=30,
            pairs_per_cluster=8,
            correlation=0.9,
            repetitions=2,
            resamples=200,
            cluster_by="row",
        )
        with caplog.at_level(logging.ERROR):
            table = decisions.check_instrument(ReportingOptions(selftest=broken))
        assert not table["passed"].all()
        assert "wanted" in caplog.text
