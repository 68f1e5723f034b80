"""The parser contract, on a table of hostile replies and on text that Hypothesis makes up."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.judges.parsing.alphabet import LAB, Meaning
from judge_calibration.judges.parsing.forms import PlainForm
from judge_calibration.judges.parsing.replies import Reply
from judge_calibration.judges.protocols.lab import holistic
from judge_calibration.judges.protocols.pairwise import pairwise
from judge_calibration.judges.protocols.registry import CRITERIA_SETS
from judge_calibration.judges.protocols.rubric import geval

FORMS = {
    "plain": pairwise("direct").steps[0].form,
    "plain_lab": PlainForm(LAB),
    "json": pairwise("json_cot").steps[0].form,
    "json_lab": holistic().steps[0].form,
    "xml": pairwise("xml_cot").steps[0].form,
    "scores": geval(CRITERIA_SETS["correctness_first"]).steps[0].form,
}
MEANING = {"A": Meaning.FIRST, "B": Meaning.SECOND, "TIE": Meaning.TIE, "ABSTAIN": Meaning.ABSTAIN}
TABLE = yaml.safe_load((Path(__file__).parent / "hostile_replies.yml").read_text(encoding="utf-8"))
ROWS = [(kind, row) for kind, rows in TABLE.items() for row in rows]


def text_of(row):
    if "pad" not in row:
        return row["r"]
    text, n = row["pad"]
    return row["r"].replace("%PAD%", text * n)


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(ROWS)])
def test_the_right_outcome(kind, row):
    parsed = FORMS[row["f"]].read(Reply(text_of(row), row.get("finish", "stop")))
    assert parsed.outcome == row["o"], parsed
    if row["o"] == "valid":
        assert parsed.values["winner"] is MEANING[row["v"]]
        structured = row["f"] not in ("plain", "plain_lab")
        assert parsed.path == (row.get("path", "strict") if structured else None)
    else:
        assert parsed.reason
        assert not parsed.values


def test_the_table_is_broad():
    assert len(ROWS) >= 150
    assert len(TABLE) >= 40
    for kind, rows in TABLE.items():
        assert 2 <= len(rows) <= 8, kind
        outcomes = Counter(row["o"] == "valid" for row in rows)
        assert set(outcomes) == {True, False}, (kind, outcomes)


_LETTER = re.compile(r"\b([AaBb])\b|(score)_([ab])\b")


def swapped(text):
    """The text with the labels A and B (and the scores that belong to them) exchanged."""

    def other(match):
        if match[1]:
            return dict(zip("AaBb", "BbAa", strict=True))[match[1]]
        return f"{match[2]}_{'b' if match[3] == 'a' else 'a'}"

    return _LETTER.sub(other, text)


def assert_swaps(form, text, finish="stop"):
    left, right = form.read(Reply(text, finish)), form.read(Reply(swapped(text), finish))
    assert left.outcome == right.outcome
    assert left.path == right.path
    if left.outcome == "valid":
        exchange = {Meaning.FIRST: Meaning.SECOND, Meaning.SECOND: Meaning.FIRST}
        winner = left.values["winner"]
        assert right.values["winner"] is exchange.get(winner, winner)


@pytest.mark.parametrize(
    "row", [row for _, row in ROWS if row["r"] and "pad" not in row], ids=lambda row: row["r"][:30]
)
def test_swapping_labels_swaps_the_verdict_in_the_table(row):
    # Labels written as character codes are not exchanged by `swapped`.
    if not re.search(r"\\u0041|&#65;", row["r"]):
        assert_swaps(FORMS[row["f"]], row["r"], row.get("finish", "stop"))


PIECES = [
    "A",
    "B",
    "TIE",
    " ",
    "\n",
    ".",
    "**",
    '"',
    "[[",
    "]]",
    "Answer: ",
    "is better",
    "<think>",
    "</think>",
    "```",
    "```json\n",
    "\n```\n",
    '{"winner": "A"}',
    '{"winner": "B"}',
    '{"winner": ',
    '"A"}',
    ', "rationale": "x"',
    "{",
    "}",
    "<judgment>",
    "</judgment>",
    "<winner>",
    "</winner>",
    "<winner>A</winner>",
    "<judgment><winner>B</winner></judgment>",
    "&amp;",
    "<!DOCTYPE x>",
    "I'm sorry, but I can't help with that.",
    '"score_a": 4, ',
    '"score_b": 2, ',
    "\ud800",
    "\x00",
]
REPLIES = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
FINISHES = st.sampled_from(["stop", "length", None, "content_filter", "STOP", ""])


@pytest.mark.parametrize("name", FORMS)
class TestProperties:
    @settings(max_examples=150, deadline=None)
    @given(text=REPLIES, finish=FINISHES)
    def test_swapping_labels_swaps_the_verdict_and_no_outcome(self, name, text, finish):
        assert_swaps(FORMS[name], text, finish)

    @settings(max_examples=150, deadline=None)
    @given(text=st.none() | REPLIES, finish=FINISHES)
    def test_parsing_never_raises_and_failures_state_nothing(self, name, text, finish):
        parsed = FORMS[name].read(Reply(text, finish))
        assert parsed.outcome in {"valid", "malformed", "truncated", "empty", "refusal"}
        assert (parsed.outcome == "valid") == bool(parsed.values)

    @settings(max_examples=60, deadline=None)
    @given(text=REPLIES)
    def test_a_reply_that_hit_its_cap_is_never_a_verdict(self, name, text):
        assert FORMS[name].read(Reply(text, "length")).outcome == "truncated"

    @settings(max_examples=60, deadline=None)
    @given(
        text=REPLIES,
        draft=st.sampled_from(["A", "B", '{"winner": "A"}', "<judgment><winner>A</winner></judgment>"]),
    )
    def test_a_draft_in_a_leading_block_changes_nothing(self, name, text, draft):
        if "<think>" in text or "</think>" in text:
            return
        bare = FORMS[name].read(Reply(text))
        blocked = FORMS[name].read(Reply(f"<think>{draft}</think>{text}"))
        assert (bare.outcome, bare.values) == (blocked.outcome, blocked.values)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet='{}[]":,AB winer\\n0', max_size=60))
def test_json_is_read_only_where_python_reads_it(text):
    """No verdict from a text in which no substring is an object with a winner."""
    parsed = FORMS["json"].read(Reply(text))
    if parsed.outcome == "valid":
        assert re.search(r'"winner"\s*:\s*"\s*[AaBb]\s*"', text)
