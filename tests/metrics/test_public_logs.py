"""The trust table of the public logs gives the figures that were counted from the files by hand."""

import json

import pytest

from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.data_prep import SourceFile
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions
from judge_calibration.sources import read_logs

pytestmark = pytest.mark.shared

OPTIONS = ReportingOptions(
    intervals=IntervalOptions(resamples=200), trust=TrustOptions(views=("strict",), slices=())
)


def table_of(path, layout):
    logs = read_logs([SourceFile(path=str(path), layout=layout)])
    return trust_table(logs.verdicts, logs.pairs, OPTIONS)


@pytest.fixture(scope="module")
def llmbar(public_data):
    return table_of(public_data / "llmbar" / "verdicts_long.csv.gz", "llmbar_verdicts")


@pytest.fixture(scope="module")
def judging_the_judges(public_data):
    return table_of(public_data / "judging_the_judges" / "verdicts.csv.gz", "judging_the_judges")


class TestLlmbar:
    @pytest.mark.parametrize(
        ("judge", "protocol", "accuracy", "flip_rate", "both_right"),
        [
            ("GPT-4", "Vanilla", 0.845, 0.072, 0.809),
            ("ChatGPT", "Vanilla", 0.400, 0.341, 0.229),
            ("Falcon", "CoT", 0.520, 0.874, 0.086),
        ],
    )
    def test_the_five_test_subsets_pooled(self, llmbar, judge, protocol, accuracy, flip_rate, both_right):
        rows = llmbar[(llmbar["source"] == "LLMBar") & (llmbar["judge_id"] == judge)]
        row = rows[rows["protocol"] == protocol].iloc[0]
        assert row["n_pairs"] == 419
        assert round(row["A"], 3) == accuracy
        assert round(row["phi"], 3) == flip_rate
        assert round(row["PR"], 3) == both_right
        assert json.loads(row["undefined"])["T_product"] == "one_repetition"

    def test_q_is_estimated_where_verdicts_are_missing(self, llmbar):
        # A - phi / 2 would give .084: Falcon CoT left verdicts out, so q is not 1/2.
        falcon = (llmbar["judge_id"] == "Falcon") & (llmbar["protocol"] == "CoT")
        row = llmbar[(llmbar["source"] == "LLMBar") & falcon].iloc[0]
        assert row["q"] < 0.5
        assert round(row["A"] - row["phi"] / 2, 3) == 0.084
        assert row["A"] - row["phi"] * row["q"] == pytest.approx(row["PR"])


class TestJudgingTheJudges:
    @pytest.mark.parametrize(
        ("judge", "consistency"),
        [("gpt-4-0613", 0.906), ("claude-3-opus-20240229", 0.859), ("gpt-3.5-turbo-1106", 0.885)],
    )
    def test_three_equal_repetitions_on_mt_bench(self, judging_the_judges, judge, consistency):
        row = judging_the_judges[
            (judging_the_judges["source"] == "MTBench") & (judging_the_judges["judge_id"] == judge)
        ].iloc[0]
        assert (row["n_pairs"], row["repetitions"]) == (96, 3)
        assert round(row["C"], 3) == consistency

    def test_without_a_reference_t_is_refused(self, judging_the_judges):
        assert judging_the_judges["T_product"].isna().all()
        assert {json.loads(text)["T_product"] for text in judging_the_judges["undefined"]} == {"no_reference"}
