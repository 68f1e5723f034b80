"""The tables of the pipeline reporting, wired as in the registry, on a made-up run."""

import json

import pandas as pd
import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner

from judge_calibration import schemas
from judge_calibration.judges.call_plan import call_plan
from judge_calibration.metrics.trust_table import TRUST_COLUMNS
from judge_calibration.options.asking import PriceOptions, TransportOptions
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions
from judge_calibration.pipelines.reporting.pipeline import create_pipeline

TABLES = {
    "trust_table",
    "trust_intervals",
    "outcome_table",
    "manipulation_table",
    "position_table",
    "paired_differences",
    "format_dispersion",
    "temperature_table",
    "trust_spread",
    "regions",
    "remedies",
    "paradigms",
    "confidence_table",
    "confidence_curves",
    "selective_table",
    "risk_coverage",
    "agreement_table",
    "confusion_table",
    "cost_table",
    "spending_table",
    "prediction_powered",
}
NODES = [
    "measure_trust",
    "count_outcomes",
    "measure_manipulations",
    "compare_cells",
    "measure_dispersion",
    "follow_temperature",
    "try_remedies",
    "check_confidence",
    "judge_selectively",
    "measure_agreement",
    "add_up_costs",
    "compare_with_plan",
    "estimate_win_rates",
]


class Kept(MemoryDataset):
    """A dataset in memory that the runner does not empty when it thinks that nobody reads it any more."""

    def _release(self) -> None:
        pass


REQUEST = '{"max_tokens": 8, "messages": [{"content": "Which one?", "role": "user"}], "model": "m"}'


def made_up_run() -> dict[str, pd.DataFrame]:
    """Twelve pairs, a judge that always picks the first answer and one that is always right."""
    manipulations = ["length", "correctness", "identity"]
    pairs = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(12)],
            "base_id": [f"b{i}" for i in range(12)],
            "source": "bank",
            "stakes": "ordinary",
            "difficulty": ["easy", "hard"] * 6,
            "manipulation": manipulations * 4,
            "modified": ["B", "B", None] * 4,
            "question": "q",
            "response_a": "a",
            "response_b": ["b", "b", "a"] * 4,
            "candidate_a": "v1",
            "candidate_b": "v2",
            "reference_label": ["TIE", "A", "TIE"] * 4,
            "reference_kind": "constructed",
            "sentinel": False,
            "content_hash": "h",
        }
    )
    rows, calls, answers = [], [], []
    for judge, protocol in (("first", "direct"), ("first", "json_cot"), ("right", "direct")):
        for pair, reference in zip(pairs["pair_id"], pairs["reference_label"], strict=True):
            for order in ("AB", "BA"):
                for repetition in range(3):
                    shown_first = "A" if order == "AB" else "B"
                    verdict = shown_first if judge == "first" else reference
                    call = f"{judge}{protocol}{pair}{order}{repetition}"
                    key = {
                        "pair_id": pair,
                        "judge_id": judge,
                        "instrument_id": judge + protocol,
                        "protocol": protocol,
                        "constraint": "none",
                        "order": order,
                        "temperature": 0.0,
                        "repetition": repetition,
                    }
                    rows.append(key | {"outcome": "valid", "verdict": verdict, "confidence": 0.9})
                    calls.append(key | {"call_id": call, "step": "verdict", "request": REQUEST})
                    answers.append(
                        {"call_id": call, "request": "{}", "prompt_tokens": 100, "completion_tokens": 2}
                    )
    asked = schemas.conform(pd.DataFrame(calls), schemas.CALLS)
    transports = {
        "first": TransportOptions(price=PriceOptions(input_per_million=1.0, output_per_million=2.0)),
        "right": TransportOptions(),
    }
    drawn = pairs["pair_id"].isin(pairs["pair_id"][:6])
    settled = {"pair_id": pairs["pair_id"][drawn], "label": pairs["reference_label"][drawn]}
    return {
        "adjudicated_labels": pd.DataFrame(settled | {"reference_kind": "human"}).assign(
            attribute=pd.Series([None] * 6, dtype="str")
        ),
        "labelling_frame": pairs[["pair_id"]].assign(
            inclusion_probability=0.5, drawn=drawn, undefined=pd.Series([None] * 12, dtype="str")
        ),
        "verdicts": schemas.conform(pd.DataFrame(rows), schemas.VERDICT_ROWS),
        "pairs": schemas.conform(pairs, schemas.PAIRS),
        "labels": schemas.empty(schemas.LABELS),
        "calls": asked,
        "call_plan": call_plan(asked, transports),
        "answers": schemas.conform(pd.DataFrame(answers), schemas.ANSWERS),
    }


def run(inputs: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    judging = JudgingOptions(
        judges=[
            {
                "judge_id": "first",
                "model": "embedded/first",
                "protocols": ["direct", "json_cot"],
                "transport": {"price": {"input_per_million": 1.0, "output_per_million": 2.0}},
            },
            {"judge_id": "right", "model": "openai/right", "protocols": ["direct"]},
        ]
    )
    reporting = ReportingOptions(intervals=IntervalOptions(resamples=200))
    data = {**inputs, "params:reporting": reporting, "params:judging": judging}
    catalog = DataCatalog(
        {name: Kept(value) for name, value in data.items()} | {name: Kept() for name in TABLES}
    )
    SequentialRunner().run(create_pipeline().only_nodes(*NODES), catalog)
    return {name: catalog.load(name) for name in TABLES}


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return run(made_up_run())


def whole(table: pd.DataFrame, judge: str, protocol: str = "direct") -> pd.Series:
    rows = table[(table["slice_by"] == "all") & (table["view"] == "strict")]
    return rows[(rows["judge_id"] == judge) & (rows["protocol"] == protocol)].iloc[0]


class TestTables:
    def test_the_judge_that_picks_the_first_answer_is_steady_and_worthless(self, tables):
        row = whole(tables["trust_table"], "first")
        assert (row["C"], row["phi"], row["T_product"], row["first_share"]) == (1.0, 1.0, 0.0, 1.0)
        assert list(tables["trust_table"].columns) == list(TRUST_COLUMNS)

    def test_an_embedded_judge_at_temperature_0_is_flagged(self, tables):
        assert "deterministic_by_construction" in json.loads(whole(tables["trust_table"], "first")["flags"])
        assert "deterministic_by_construction" not in json.loads(
            whole(tables["trust_table"], "right")["flags"]
        )

    def test_the_good_judge_is_right(self, tables):
        row = whole(tables["trust_table"], "right")
        assert (row["C"], row["phi"], row["A"], row["T_direct"]) == (1.0, 0.0, 1.0, 1.0)

    def test_regions_name_the_remedy(self, tables):
        regions = tables["regions"].set_index("instrument_id")
        assert regions.loc["firstdirect", "region"] == "confidently_biased"
        assert regions.loc["firstdirect", "remedy"] == "average_both_orders"
        assert regions.loc["rightdirect", "region"] == "trustworthy"

    def test_manipulations(self, tables):
        rows = tables["manipulation_table"]
        rows = rows[(rows["slice_by"] == "manipulation") & (rows["instrument_id"] == "rightdirect")]
        values = rows.set_index(["slice", "statistic"])["value"]
        assert values["length", "tie_both"] == 1.0
        assert values["correctness", "better_wins"] == 1.0
        assert values["identity", "identity_false_win"] == 0.0

    def test_cost_is_usage_times_price_and_unknown_without_one(self, tables):
        costs = tables["cost_table"].set_index("instrument_id")
        # 72 calls of 100 prompt and 2 completion tokens at 1 and 2 a million.
        assert costs.loc["firstdirect", "cost"] == pytest.approx(72 * (100 * 1 + 2 * 2) / 1e6)
        assert costs.loc["rightdirect", "reason"] == "unpriced"
        assert pd.isna(costs.loc["rightdirect", "cost"])

    def test_plan_and_spending_stand_side_by_side(self, tables):
        rows = tables["spending_table"].set_index(["judge_id", "protocol"])
        assert (rows["calls_planned"] == rows["answers"] + rows["failures"]).all()
        assert (rows["prompt_tokens_planned"] <= rows["prompt_tokens_most"]).all()
        costs = tables["cost_table"].groupby(["judge_id", "protocol"])["prompt_tokens"].sum()
        assert rows["prompt_tokens"].to_dict() == costs.to_dict()

    def test_every_outcome_is_counted(self, tables):
        outcomes = tables["outcome_table"]
        outcomes = outcomes[(outcomes["kind"] == "outcome") & (outcomes["instrument_id"] == "firstdirect")]
        assert len(outcomes) == len(schemas.OUTCOMES)
        assert outcomes["count"].sum() == 72

    def test_comparisons_stay_within_a_judge(self, tables):
        assert set(tables["paired_differences"]["judge_id_1"]) == {"first"}

    def test_agreement_with_references_needs_no_labels(self, tables):
        agreement = tables["agreement_table"]
        assert set(agreement["comparison"]) == {"judge_reference"}
        raw = agreement[(agreement["slice_by"] == "all") & (agreement["statistic"] == "raw")]
        raw = raw[raw["view"] == "strict"].set_index("instrument_id")["value"]
        assert raw["rightdirect"] == 1.0

    def test_win_rates_by_people_and_judge(self, tables):
        rates = tables["prediction_powered"].set_index("instrument_id")
        # v1 wins the four corrections of twelve pairs, the rest are ties, so v2 has 4 points of 12.
        assert rates.loc["rightdirect", ["human_only", "judge_only"]].tolist() == pytest.approx([1 / 3] * 2)
        assert rates.loc["rightdirect", "judge_bias"] == 0.0
        # Whoever always picks the first gives each side one half.
        assert rates.loc["firstdirect", "judge_only"] == 0.5
        assert rates.loc["firstdirect", "value"] == pytest.approx(1 / 3)
        assert set(rates["n_labelled"]) == {6}

    def test_two_runs_are_equal(self, tables):
        again = run(made_up_run())
        for name, table in tables.items():
            pd.testing.assert_frame_equal(table, again[name])


def test_without_a_verdict_every_table_is_empty_and_keeps_its_columns(tables):
    inputs = made_up_run()
    empty = {name: frame.iloc[:0] for name, frame in inputs.items() if name != "pairs"}
    for name, table in run({**inputs, **empty}).items():
        assert list(table.columns) == list(tables[name].columns), name
        assert table.empty, name
