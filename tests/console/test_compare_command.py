"""`kedro compare`: every change of a verdict is found, counted, and set in an interval."""

import base64
import gzip
import json
import re

import pandas as pd
import pytest
from command_tables import make_pairs, make_verdicts

from judge_calibration.errors import GateInputError
from judge_calibration.metrics.run_comparison import compare_verdicts

FIRST, SECOND = "2026-11-01T10.00.00.000Z", "2026-11-02T10.00.00.000Z"


@pytest.fixture
def pairs():
    return make_pairs(40, reference_label="A", reference_kind="human")


def add(project, run, pairs, verdicts):
    project.add_run(run, {"pairs": pairs, "verdicts": verdicts})


class TestChanges:
    def test_each_kind_is_told(self, pairs):
        some = pairs.head(7)
        before = make_verdicts(some, ["A", "B", "A", "TIE", "A", None, None])
        after = make_verdicts(some, ["A", "A", "B", "B", None, "B", None])
        result = compare_verdicts(before, after, some, some)
        kinds = ["same", "gained", "lost", "changed", "failed", "recovered", "same"]
        # Every pair has two judgments, one an order, which change alike.
        assert result.judgments["change"].tolist() == [*kinds, *kinds]
        row = result.summary.iloc[0]
        assert (row["n"], row["same"], row["gained"], row["lost"]) == (14, 4, 2, 2)
        assert row["changed_share"] == pytest.approx(10 / 14)

    def test_another_kind_of_failure_is_a_change(self, pairs):
        some = pairs.head(1)
        before = make_verdicts(some, [None])
        result = compare_verdicts(before, before.assign(outcome="timeout"), some, some)
        assert set(result.judgments["change"]) == {"changed"}

    def test_differences_are_after_less_before(self, pairs):
        before = make_verdicts(pairs, ["A"] * 20 + ["B"] * 20)
        after = make_verdicts(pairs, ["A"] * 40)
        frame = compare_verdicts(before, after, pairs, pairs).differences
        row = frame[frame["metric"] == "A"].iloc[0]
        assert (row["value_2"], row["value_1"], row["difference"]) == (0.5, 1.0, 0.5)
        assert row["low"] > 0

    def test_pairs_with_other_texts_are_left_out_and_named(self, pairs):
        other = pairs.copy()
        other.loc[0, "content_hash"] = "1"
        verdicts = make_verdicts(pairs, ["A"] * 40)
        result = compare_verdicts(verdicts, verdicts, pairs, other)
        assert result.other_pairs == ("p0",)
        assert len(result.judgments) == 78

    def test_several_instruments_in_one_cell_are_refused(self, pairs):
        one = make_verdicts(pairs, ["A"] * 40)
        both = pd.concat([one, one.assign(instrument_id="instrument-2")])
        with pytest.raises(GateInputError, match="several instruments"):
            compare_verdicts(both, one, pairs, pairs)

    def test_nothing_in_common_is_empty_not_the_same(self, pairs):
        one = make_verdicts(pairs.head(20), ["A"] * 20)
        two = make_verdicts(pairs.tail(20), ["A"] * 20)
        result = compare_verdicts(one, two, pairs, pairs)
        assert result.judgments.empty
        assert result.summary["changed_share"].isna().all()


class TestCommand:
    def test_no_change(self, tool_project, pairs):
        verdicts = make_verdicts(pairs, ["A"] * 40)
        add(tool_project, FIRST, pairs, verdicts)
        add(tool_project, SECOND, pairs, verdicts)
        result = tool_project.kedro("compare", FIRST, SECOND, "-e", "test")
        assert result.exit_code == 0, result.output
        assert "0 of 80 judgments changed" in result.output

    def test_changes_with_their_intervals_page_and_table(self, tool_project, pairs):
        add(tool_project, FIRST, pairs, make_verdicts(pairs, ["A"] * 20 + ["B"] * 20))
        add(tool_project, SECOND, pairs, make_verdicts(pairs, ["A"] * 40))
        result = tool_project.kedro("compare", FIRST, SECOND, "--env", "test")
        assert result.exit_code == 1, result.output
        assert "40 of 80 judgments changed: 50.0 %" in result.output
        assert "40 gained" in result.output
        assert "A: 0.500 before, 1.000 now, difference +0.500" in result.output
        table = next(p for p in tool_project.files_below("08_reporting") if p.suffix == ".parquet")
        assert len(pd.read_parquet(table)) == 40
        assert "Changed verdicts to browse: " in result.output
        queue = next(
            p for p in tool_project.files_below("08_reporting") if p.name == "comparison_audit.parquet"
        )
        # 20 pairs changed, in both orders.
        assert pd.read_parquet(queue)["reasons"].tolist() == ['["gained"]'] * 20
        assert tool_project.kedro("audit").exit_code == 0

    def test_two_judges_of_one_run(self, tool_project, pairs):
        both = pd.concat(
            [
                make_verdicts(pairs, ["A"] * 40, judge_id="x"),
                make_verdicts(pairs, ["B"] * 40, judge_id="y", instrument_id="i2", temperature=1.0),
            ]
        )
        add(tool_project, FIRST, pairs, both)
        arguments = ("compare", FIRST, FIRST, "--before", "judge_id=x", "--after", "judge_id=y", "-e", "test")
        result = tool_project.kedro(*arguments, "--json")
        assert result.exit_code == 1, result.output
        document = json.loads(result.stdout)
        assert document["cells"][0]["lost"] == 80
        assert document["cells"][0]["compared_with"] == "y direct none 1.0"
        assert {row["metric"] for row in document["differences"]} >= {"A", "PR", "phi"}

    def test_changed_verdicts_are_blinded_and_shown_before_and_now(self, tool_project, pairs):
        both = pd.concat(
            [
                make_verdicts(pairs, ["A"] * 40, judge_id="x"),
                make_verdicts(
                    pairs, ["B"] * 10 + ["A"] * 30, judge_id="y", instrument_id="i2", temperature=1.0
                ),
            ]
        )
        add(tool_project, FIRST, pairs, both)
        result = tool_project.kedro(
            "compare", FIRST, FIRST, "--before", "judge_id=x", "--after", "judge_id=y", "-e", "test"
        )
        assert result.exit_code == 1
        assert "The same pairs blinded, for people to label: " in result.output
        found = {path.name: path for path in tool_project.files_below("08_reporting")}
        queue = pd.read_parquet(found["comparison_audit.parquet"])
        assert set(queue["judge_id"]) == {"y"}
        assert len(pd.read_parquet(found["comparison_audit_key.parquet"])) == 10
        page = found["comparison.html"].read_text("utf-8")
        assert "x, direct, free text, t = 0; after: y, direct, free text, t = 1" in page.replace(
            "\u00a0", " "
        )
        assert "comparison_audit.html" in page
        page = found["comparison_audit.html"].read_text("utf-8")
        packed = re.search(r'id="items-gzip">([^<]+)<', page).group(1)
        items = json.loads(gzip.decompress(base64.b64decode(packed)))
        assert {tuple(one["verdict"] for one in item["before"]) for item in items} == {("A", "A")}
        assert {tuple(one["verdict"] for one in item["judgments"]) for item in items} == {("B", "B")}

    def test_nothing_in_common_pauses(self, tool_project, pairs):
        add(tool_project, FIRST, pairs, make_verdicts(pairs.head(20), ["A"] * 20))
        add(tool_project, SECOND, pairs, make_verdicts(pairs.tail(20), ["A"] * 20))
        result = tool_project.kedro("compare", FIRST, SECOND, "-e", "test")
        assert result.exit_code == 3
        assert "no judgment in common" in result.output

    @pytest.mark.parametrize(
        "arguments",
        [
            ("yesterday", FIRST),
            (FIRST, FIRST, "--before", "judge_id=z"),
            (FIRST, FIRST, "--before", "colour=1"),
        ],
    )
    def test_usage_errors(self, tool_project, pairs, arguments):
        add(tool_project, FIRST, pairs, make_verdicts(pairs, ["A"] * 40))
        assert tool_project.kedro("compare", *arguments).exit_code == 2
