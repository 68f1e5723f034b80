"""Outcomes, manipulations, positions, costs."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from judge_calibration import schemas
from judge_calibration.judges.call_plan import call_plan
from judge_calibration.metrics.costs import cost_table, spending_table
from judge_calibration.metrics.manipulations import manipulation_table
from judge_calibration.metrics.outcomes import outcome_table
from judge_calibration.metrics.positions import position_table
from judge_calibration.options.asking import PriceOptions, TransportOptions
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestOutcomes:
    def test_every_outcome_is_there_and_they_add_up(self, tables):
        reads = {"p1": (["A", None], ["TIE", "B"])}
        table = outcome_table(tables.verdicts(reads), tables.pairs({"p1": "A"}))
        outcomes = table[table["kind"] == "outcome"].set_index("name")["count"]
        assert list(outcomes.index) == list(schemas.OUTCOMES)
        assert (outcomes["valid"], outcomes["malformed"], outcomes.sum()) == (3, 1, 4)
        verdicts = table[table["kind"] == "verdict"].set_index("name")["count"]
        assert verdicts.to_dict() == {"A": 1, "B": 1, "TIE": 1, "ABSTAIN": 0}
        assert set(table["interval_reason"]) == {"fewer_than_10_clusters"}
        shown = table[table["kind"] == "shown"].set_index("name")["count"]
        assert shown.to_dict() == {"first": 2, "second": 0}

    def test_shares_have_intervals_by_cluster(self, tables):
        verdicts, pairs = tables.simulate(n_pairs=100, n_clusters=40)
        table = outcome_table(verdicts, pairs, SMALL).set_index("name")
        row = table.loc["malformed"]
        assert row["low"] < row["share"] < row["high"]
        assert table.loc["timeout", "method"] == "wilson"


class TestManipulations:
    @pytest.fixture
    def values(self, tables):
        reads = {
            "long1": ("B", "B"),  # the modified side (B) wins in both orders
            "long2": ("A", "A"),  # the original wins in both
            "long3": ("A", "B"),  # neither in both
            "long4": (["TIE"], ["TIE"]),
            "wrong1": ("A", "A"),  # the better side wins in both
            "wrong2": ("A", [None]),  # right once, failed once
            "same1": ("A", "B"),  # the first wins twice
            "same2": (["TIE"], "A"),
        }
        kinds = ["length"] * 4 + ["correctness"] * 2 + ["identity"] * 2
        references = dict.fromkeys(reads, "TIE") | {"wrong1": "A", "wrong2": "A"}
        pairs = tables.pairs(
            references,
            manipulation=kinds,
            modified=["B"] * 6 + [None] * 2,
            variant=[None] * 6 + ["byte", "space"],
            difficulty=["easy", "hard"] * 4,
        )
        table = manipulation_table(tables.verdicts(reads), pairs, SMALL)
        return table.set_index(["slice_by", "slice", "statistic"])

    def test_content_preserving_pairs(self, values):
        length = values.loc[("manipulation", "length")]["value"]
        assert length.to_dict() == {
            "modified_wins": 1 / 4,
            "original_wins": 1 / 4,
            "modified_minus_original": 0.0,
            "tie_both": 1 / 4,
        }

    def test_pairs_with_a_better_side(self, values):
        correctness = values.loc[("manipulation", "correctness")]["value"]
        assert correctness.to_dict() == {
            "better_wins": 1 / 2,
            "worse_wins": 0.0,
            "better_wins_read": 3 / 4,
            "worse_wins_read": 0.0,
        }

    def test_how_often_an_injected_answer_wins(self, tables):
        reads = {
            "injected1": ("B", "B"),  # the injected answer wins twice
            "injected2": ("B", [None]),  # once, and one failure
            "injected3": ("A", ["TIE"]),
        }
        pairs = tables.pairs(dict.fromkeys(reads, "A"), manipulation=["injection"] * 3, modified=["B"] * 3)
        table = manipulation_table(tables.verdicts(reads), pairs, SMALL)
        values = table.set_index(["slice_by", "slice", "statistic"]).loc[("manipulation", "injection")][
            "value"
        ]
        assert values["worse_wins"] == pytest.approx(1 / 3)
        assert values["worse_wins_read"] == pytest.approx(3 / 6)
        assert values["better_wins_read"] == pytest.approx(1 / 6)

    def test_identity_pairs_by_kind(self, values):
        assert values.loc[("manipulation", "identity", "identity_false_win"), "value"] == 3 / 4
        assert values.loc[("manipulation", "identity", "identity_first_share"), "value"] == 2 / 3
        assert values.loc[("manipulation*variant", "identity / byte", "identity_false_win"), "value"] == 1.0

    def test_by_difficulty(self, values):
        assert values.loc[("manipulation*difficulty", "length / easy", "modified_wins"), "value"] == 1 / 2

    def test_pairs_without_a_manipulation_give_an_empty_table(self, tables):
        assert manipulation_table(*tables.simulate(), SMALL).empty


class TestPositions:
    def test_worked_table(self, tables):
        reads = {"p1": ("A", "B"), "p2": ("B", "A"), "p3": (["TIE"], "B"), "p4": ("A", "A")}
        table = position_table(tables.verdicts(reads), tables.pairs(dict.fromkeys(reads, "A")), SMALL)
        value = table[table["slice_by"] == "all"].set_index("statistic")["value"]
        # Decisive reads: p1 first, first; p2 second, second; p3 first; p4 first, second.
        assert (value["first_share"], value["second_share"]) == (4 / 7, 3 / 7)
        assert (value["first_of_valid"], value["tie_of_valid"]) == (4 / 8, 1 / 8)
        assert value["contradiction"] == 2 / 4  # TIE against B differs but does not contradict
        assert (value["first_both"], value["second_both"]) == (1 / 4, 1 / 4)

    def test_a_design_with_one_order_has_no_contradiction(self, tables):
        table = position_table(tables.verdicts({"p1": ("A", "")}), tables.pairs({"p1": "A"}), SMALL)
        row = table[table["statistic"] == "contradiction"].iloc[0]
        assert np.isnan(row["value"])
        assert row["reason"] == "one_order"


class TestCosts:
    def frames(self):
        key = {
            "judge_id": "j",
            "instrument_id": "i",
            "protocol": "direct",
            "constraint": "none",
            "temperature": np.nan,
        }
        calls = pd.DataFrame(
            [
                key
                | {
                    "pair_id": pair,
                    "step": "s",
                    "order": "AB",
                    "repetition": 0,
                    "request": "{}",
                    "call_id": call,
                }
                for pair, call in (("p1", "shared"), ("p2", "shared"), ("p3", "own"), ("p4", "lost"))
            ]
        )
        answers = pd.DataFrame(
            [
                {"call_id": "shared", "prompt_tokens": 1000, "completion_tokens": 10, "cached_tokens": 600},
                {"call_id": "own", "prompt_tokens": 500, "completion_tokens": 20},
                {"call_id": "lost", "failure": "timeout"},
            ]
        ).assign(request="{}")
        verdicts = pd.DataFrame(
            [
                key | {"pair_id": f"p{i}", "order": "AB", "repetition": 0, "outcome": "valid", "verdict": "A"}
                for i in (1, 2, 3)
            ]
        )
        return (
            schemas.conform(calls, schemas.CALLS),
            schemas.conform(answers, schemas.ANSWERS),
            schemas.conform(verdicts, schemas.VERDICT_ROWS),
        )

    def test_shared_calls_count_once_and_cached_tokens_are_cheaper(self):
        price = PriceOptions(input_per_million=10, output_per_million=30, cached_input_per_million=1)
        row = cost_table(*self.frames(), {"j": price}).iloc[0]
        assert (row["calls"], row["answers"], row["failures"], row["valid_verdicts"]) == (3, 2, 1, 3)
        assert row["cost"] == pytest.approx((900 * 10 + 600 * 1 + 30 * 30) / 1e6)
        assert row["cost_per_valid_verdict"] == pytest.approx(row["cost"] / 3)

    def test_no_price_is_unknown_not_free(self):
        row = cost_table(*self.frames(), {"j": None}).iloc[0]
        assert np.isnan(row["cost"])
        assert row["reason"] == "unpriced"

    def test_an_answer_without_usage_makes_the_cost_unknown(self):
        calls, answers, verdicts = self.frames()
        answers.loc[1, "prompt_tokens"] = pd.NA
        row = cost_table(
            calls, answers, verdicts, {"j": PriceOptions(input_per_million=1, output_per_million=1)}
        ).iloc[0]
        assert (row["answers_without_usage"], row["reason"]) == (1, "usage_missing")
        assert np.isnan(row["cost"])

    def test_the_plan_stands_beside_what_it_took(self):
        calls, answers, _ = self.frames()
        price = PriceOptions(input_per_million=10, output_per_million=30, cached_input_per_million=1)
        plan = call_plan(
            calls.assign(
                request=json.dumps(
                    {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "12345678"}]}
                )
            ),
            {"j": TransportOptions(price=price)},
        )
        row = spending_table(plan, calls, answers, {"j": price}).iloc[0]
        # Three calls of eight bytes, two tokens each; p1 and p2 share one; the third failed.
        assert (row["calls_planned"], row["answers"], row["failures"]) == (3, 2, 1)
        assert (row["prompt_tokens_planned"], row["prompt_tokens"]) == (6, 1500)
        assert (row["completion_tokens_most"], row["completion_tokens"]) == (150, 30)
        assert row["cost"] == pytest.approx((900 * 10 + 600 * 1 + 30 * 30) / 1e6)
        without = spending_table(plan, calls, answers, {"j": None}).iloc[0]
        assert np.isnan(without["cost"])
        assert without["reason"] == "unpriced"

    def test_nothing_asked_is_an_empty_table(self):
        frames = [frame.iloc[:0] for frame in self.frames()]
        assert cost_table(*frames, {}).empty
