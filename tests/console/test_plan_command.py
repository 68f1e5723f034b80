"""`kedro plan`: the actual prompts are counted, nobody is asked, nothing is written."""

import json

import pandas as pd
import pytest

from judge_calibration.judges.call_time import add_time, calls_per_second
from judge_calibration.options.asking import TransportOptions


class TestPlan:
    def test_calls_tokens_and_price_without_asking(self, tool_project):
        before = tool_project.files_below("")
        arguments = ("--env", "test", "--params", "data_prep.judged.size=6")
        result = tool_project.kedro("plan", *arguments, "--json")
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        rows = {(row["pipeline"], row["judge_id"], row["protocol"]): row for row in document["rows"]}
        # 6 pairs x 2 orders x 2 temperatures x 3 repetitions = 72 calls of each judge and protocol.
        direct = rows["judging", "scripted-fair", "direct"]
        assert (direct["judgments"], direct["calls"], direct["calls_to_ask"]) == (72, 72, 72)
        # 1 a million tokens in, 4 a million out.
        price = (direct["prompt_tokens_estimated"] + 4 * direct["completion_tokens_most"]) / 1e6
        assert direct["price_estimated"] == pytest.approx(price)
        assert direct["price_most"] > direct["price_estimated"]
        assert direct["seconds_estimated"] is None
        assert direct["time_reason"] == "never_asked"
        # 6 pairs x 2 orders x 3 attributes.
        reads = rows["attributes", "scripted-fair", "attribute"]
        assert (reads["judgments"], reads["calls"]) == (36, 36)
        assert document["total"]["calls"] == 3 * 72 + 2 * 36
        # Had anybody been asked, the answer would be in the call store.
        assert tool_project.files_below("") == before

    def test_parameters_given_on_the_command_line_count(self, tool_project):
        result = tool_project.kedro(
            "plan", "-e", "test", "-p", "judging", "--params", "data_prep.judged.size=2", "--json"
        )
        assert [row["calls"] for row in json.loads(result.stdout)["rows"]] == [24, 24, 24]

    def test_what_the_store_has_is_not_asked_again_and_gives_the_time(self, tool_project):
        arguments = ("--env", "test", "--params", "data_prep.judged.size=2")
        assert tool_project.kedro("run", "--pipelines", "data_prep,judging", *arguments).exit_code == 0
        plan = json.loads(tool_project.kedro("plan", *arguments, "-p", "judging", "--json").stdout)
        assert plan["total"]["calls"] == 72
        assert plan["total"]["calls_to_ask"] == 0
        assert {row["seconds_estimated"] for row in plan["rows"]} == {0.0}
        more = ("--env", "test", "--params", "data_prep.judged.size=3", "-p", "judging")
        rows = json.loads(tool_project.kedro("plan", *more, "--json").stdout)["rows"]
        assert all(row["calls_to_ask"] == 12 and row["seconds_estimated"] > 0 for row in rows)
        assert "3 pairs" not in tool_project.kedro("plan", *more).output

    def test_a_table_for_people(self, tool_project):
        result = tool_project.kedro(
            "plan", "-e", "test", "-p", "judging", "--params",
            "data_prep.judged.size=2,judging.asking.budget.tokens=10",
        )  # fmt: skip
        assert result.exit_code == 0
        assert "scripted-fair" in result.output
        assert "total" in result.output
        assert "above the budget of 10" in result.output
        assert "No model was asked." in result.output

    def test_an_unknown_pipeline_is_a_usage_error(self, tool_project):
        result = tool_project.kedro("plan", "-p", "reporting")
        assert result.exit_code == 2
        assert "found reporting" in result.stderr

    def test_a_wrong_parameter_is_a_usage_error(self, tool_project):
        result = tool_project.kedro("plan", "-e", "test", "--params", "data_prep.judged.size=-1")
        assert result.exit_code == 2
        assert "data_prep.judged.size" in result.stderr

    def test_a_file_that_is_no_mapping_is_named(self, tool_project):
        folder = tool_project.root / "conf" / "listed" / "data_prep"
        folder.mkdir(parents=True)
        (folder / "parameters.yml").write_text("- a\n- b\n", encoding="utf-8")
        result = tool_project.kedro("plan", "-e", "listed")
        assert result.exit_code == 2
        assert "parameters.yml" in result.output
        assert "AttributeError" not in result.output


class TestTime:
    def test_pauses_do_not_count_and_side_by_side_counts_once(self):
        calls = pd.DataFrame({"call_id": ["1", "2"], "judge_id": "j", "protocol": "direct"})
        attempts = pd.DataFrame(
            {
                "call_id": ["1", "1", "2"],
                "started_at": [f"2026-01-01T00:00:{s}+00:00" for s in ("00", "02.000000", "30")],
                "finished_at": [f"2026-01-01T00:00:{s}+00:00" for s in ("03", "04", "34")],
            }
        )
        # Busy 0 to 4 and 30 to 34: two calls in 8 seconds; the second attempt is no second call.
        assert calls_per_second(calls, attempts) == {("j", "direct"): 0.25}

    def test_declared_limits_bound_the_time(self):
        plan = pd.DataFrame(
            {
                "judge_id": ["j", "k"],
                "protocol": "direct",
                "calls": [600, 10],
                "prompt_tokens_estimated": 1_000,
            }
        )
        transports = {
            "j": TransportOptions(requests_per_minute=60),
            "k": TransportOptions(tokens_per_minute=100),
        }
        timed = add_time(plan, {("j", "direct"): 100.0}, transports)
        assert timed["seconds_estimated"].tolist()[0] == 600.0  # at 60 a minute, however fast it answers
        assert timed["seconds_estimated"].isna().tolist() == [False, True]
        assert timed["seconds_least"].tolist() == [600.0, 600.0]
        assert timed["time_reason"].tolist() == ["", "never_asked"]
