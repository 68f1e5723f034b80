"""Pairs of anyone's own responses: by rule, and by a model's proposals that a person reviewed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.bank import BankError, words
from judge_calibration.bank.generate import generate_pairs
from judge_calibration.bank.generate import main as generate_main
from judge_calibration.bank.proposals import (
    Review,
    propose,
    read_review,
    reviewed_pairs,
    write_review,
)
from judge_calibration.bank.proposals import main as proposals_main
from judge_calibration.errors import JudgeCalibrationError, OptionsError
from judge_calibration.options.bank import GenerateOptions
from judge_calibration.schemas import PAIRS, check

FIRST = """The pump stopped at 9. A fuse had blown [P1].

Replace the fuse before you start it again. Wait a minute."""
PACKET = [{"id": "P1", "text": "The fuse was found blown."}, {"id": "P2", "text": "The pump is blue."}]


@pytest.fixture
def responses() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "response_id": ["r1", "r2"],
            "question": ["Why did the pump stop?", "How do I store bread?"],
            "response": [FIRST, "- Wrap it in a cloth.\n- Keep it dry.\n\nIt stays good for 3 days."],
            "source_packet": [PACKET, None],
        }
    )


class TestByRule:
    def test_every_rule_keeps_its_dimension(self, responses: pd.DataFrame) -> None:
        options = GenerateOptions(
            style=("headings", "bullets", "numbered", "bold", "emoji", "one_paragraph", "plain")
        )
        pairs = check(generate_pairs(responses, options), PAIRS)
        assert (pairs["expected"] == "TIE").all()
        for _, row in pairs.iterrows():
            changed, original = row["response_a"], row["response_b"]
            if row["modified"] == "B":
                changed, original = original, changed
            if row["manipulation"] == "style":
                assert Counter(words.sentences(changed)) == Counter(words.sentences(original))
            else:
                assert words.count_words(changed) >= 1.4 * words.count_words(original)
                assert set(words.numbers(changed)) == set(words.numbers(original))
                assert set(words.markers(changed)) == set(words.markers(original))

    def test_rules_that_change_nothing_make_no_pair(self, responses: pd.DataFrame) -> None:
        pairs = generate_pairs(responses, GenerateOptions(length=(), style=("plain",)))
        assert pairs["base_id"].tolist() == ["r2"]

    def test_sides_are_balanced(self) -> None:
        many = pd.DataFrame(
            {
                "response_id": [f"r{i}" for i in range(40)],
                "question": "Why?",
                "response": [f"It is so. Reason {i} holds." for i in range(40)],
            }
        )
        pairs = generate_pairs(many, GenerateOptions(length=("repeat",), style=("bullets",)))
        assert pairs.groupby(["variant", "modified"]).size().tolist() == [20, 20, 20, 20]

    def test_no_rule_gives_an_empty_table(self, responses: pd.DataFrame) -> None:
        pairs = generate_pairs(responses, GenerateOptions(length=(), style=()))
        assert len(check(pairs, PAIRS)) == 0

    @settings(max_examples=40, deadline=None)
    @given(st.text(alphabet="Ab1 .!?\n-*#。", min_size=1, max_size=80).filter(str.strip))
    def test_any_text_keeps_its_sentences_under_style(self, text: str) -> None:
        frame = pd.DataFrame({"response_id": ["x"], "question": ["q"], "response": [text]})
        pairs = generate_pairs(frame, GenerateOptions(length=()))
        for _, row in pairs.iterrows():
            assert Counter(words.sentences(row["response_a"])) == Counter(words.sentences(row["response_b"]))

    def test_all_faults_of_the_responses_in_one_report(self, responses: pd.DataFrame) -> None:
        bad = pd.concat([responses, responses]).assign(question=["a", "", None, "d"])
        with pytest.raises(BankError) as caught:
            generate_pairs(bad)
        assert "rows [2, 3]" in str(caught.value)
        assert "'r1'; wanted a unique id" in str(caught.value)
        with pytest.raises(BankError, match="no column response"):
            generate_pairs(responses.drop(columns="response"))

    @pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
    def test_from_a_shell(self, suffix: str, responses: pd.DataFrame, tmp_path: Path) -> None:
        path = tmp_path / f"responses{suffix}"
        frame = responses.drop(columns="source_packet")
        {
            ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
            ".csv": lambda: frame.to_csv(path, index=False),
            ".parquet": lambda: frame.to_parquet(path),
        }[suffix]()
        out = tmp_path / "pairs.parquet"
        assert generate_main([str(path), str(out), "--style", "bullets"]) == 0
        assert set(pd.read_parquet(out)["variant"]) == {"bullets"}

    def test_wrong_rule_from_a_shell(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "r.csv").write_text("response_id,question,response\na,b,c\n")
        assert generate_main([str(tmp_path / "r.csv"), str(tmp_path / "o"), "--style", "loud"]) == 2
        assert "loud" in capsys.readouterr().err


def _ask(replies: dict[str, Any]) -> Any:
    def ask(messages: list[dict[str, str]]) -> str:
        kind = "citation" if "passages in square brackets" in messages[-1]["content"] else "correctness"
        reply = replies[kind]
        return reply if isinstance(reply, str) else json.dumps(reply)

    return ask


GOOD = {
    "correctness": {
        "edits": [{"old": "stopped at 9", "new": "stopped at 6"}],
        "severity": "small",
        "true_statement": "It stopped at 9.",
        "false_statement": "It stopped at 6.",
        "why": "P1 and the log.",
    },
    "citation": {"replace": {"P1": "P2"}, "variant": "not_entailing", "why": "P2 is about the colour."},
}


class TestProposals:
    def _reviewed(self, review: Review, **decision: Any) -> Review:
        filled = {"decision": "accept", "reviewer": "kl"} | decision
        return Review(proposals=tuple(p.model_copy(update=filled) for p in review.proposals))

    def test_accepted_changes_become_pairs(self, responses: pd.DataFrame, tmp_path: Path) -> None:
        one = responses.iloc[[0]]
        review = propose(one, _ask(GOOD), "acme/writer", judges=["acme/judge"])
        assert [p.problem for p in review.proposals] == ["", ""]
        path = tmp_path / "review.yml"
        write_review(review, path)
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for proposal in data["proposals"]:
            proposal |= {"decision": "accept", "reviewer": "kl"}
        path.write_text(yaml.safe_dump(data), encoding="utf-8")
        pairs = check(reviewed_pairs(one, read_review(path)), PAIRS).set_index("manipulation")
        assert (pairs["expected"] != pairs["modified"]).all()
        error = pairs.loc["correctness"]
        assert "stopped at 6" in error[f"response_{error['modified'].lower()}"]
        assert error["quality_gap"] == 0.5
        citation = pairs.loc["citation"]
        assert "[P2]" in citation[f"response_{citation['modified'].lower()}"]

    def test_refused_changes_make_no_pair(self, responses: pd.DataFrame) -> None:
        one = responses.iloc[[0]]
        review = self._reviewed(propose(one, _ask(GOOD), "writer"), decision="reject")
        assert len(reviewed_pairs(one, review)) == 0

    def test_open_decisions_are_all_named(self, responses: pd.DataFrame) -> None:
        one = responses.iloc[[0]]
        with pytest.raises(BankError) as caught:
            reviewed_pairs(one, propose(one, _ask(GOOD), "writer"))
        assert str(caught.value).count("no decision") == 2

    def test_unsigned_decisions(self, responses: pd.DataFrame) -> None:
        one = responses.iloc[[0]]
        review = self._reviewed(propose(one, _ask(GOOD), "writer"), reviewer=" ")
        with pytest.raises(BankError, match="no reviewer"):
            reviewed_pairs(one, review)

    def test_response_that_changed_since(self, responses: pd.DataFrame) -> None:
        one = responses.iloc[[0]]
        review = self._reviewed(propose(one, _ask(GOOD), "writer"))
        with pytest.raises(BankError, match="another response than the model saw"):
            reviewed_pairs(one.assign(response="The pump stopped at 9 [P1]."), review)

    def test_the_judge_may_not_propose(self, responses: pd.DataFrame) -> None:
        with pytest.raises(OptionsError, match="one of the judges"):
            propose(responses, _ask(GOOD), "openai/Some-Model", judges=["hosted_vllm/some-model"])

    @pytest.mark.parametrize(
        ("kind", "reply", "problem"),
        [
            ("correctness", "I will not.", "not a JSON object"),
            ("correctness", "{broken}", "not a JSON object"),
            (
                "correctness",
                {**GOOD["correctness"], "edits": [{"old": "at noon", "new": "x"}]},
                "occurs 0 times",
            ),
            (
                "correctness",
                {**GOOD["correctness"], "edits": [{"old": " [P1]", "new": ""}]},
                "touches a citation",
            ),
            ("correctness", {**GOOD["correctness"], "severity": "huge"}, "severity"),
            ("correctness", {**GOOD["correctness"], "edits": []}, "no change"),
            ("correctness", {**GOOD["correctness"], "true_statement": ""}, "no severity, or no true"),
            ("citation", {**GOOD["citation"], "replace": {"P1": "P9"}}, "no such passage"),
            ("citation", {**GOOD["citation"], "replace": {"P2": "P1"}}, "does not cite P2"),
        ],
    )
    def test_replies_that_cannot_be_used(
        self, kind: str, reply: Any, problem: str, responses: pd.DataFrame
    ) -> None:
        one = responses.iloc[[0]]
        review = propose(one, _ask({kind: reply}), "writer", kinds=[kind])  # type: ignore[list-item]
        assert problem in review.proposals[0].problem
        with pytest.raises(BankError):
            reviewed_pairs(one, self._reviewed(review))

    def test_an_answer_that_does_not_come_loses_no_other(self, responses: pd.DataFrame) -> None:
        good = _ask(GOOD)

        def ask(messages: list[dict[str, str]]) -> str:
            if "passages in square brackets" in messages[-1]["content"]:
                raise JudgeCalibrationError("The model w did not answer: Timeout.")
            return str(good(messages))

        review = propose(responses.iloc[[0]], ask, "w")
        assert [p.problem for p in review.proposals] == ["", "The model w did not answer: Timeout."]

    def test_fenced_reply_is_read(self, responses: pd.DataFrame) -> None:
        fenced = f"```json\n{json.dumps(GOOD['correctness'])}\n```"
        review = propose(responses.iloc[[0]], _ask({"correctness": fenced}), "w", kinds=["correctness"])
        assert review.proposals[0].problem == ""

    def test_responses_without_a_packet_get_no_citation_proposal(self, responses: pd.DataFrame) -> None:
        bread = {"edits": [{"old": "3 days", "new": "9 days"}]}
        replies = {"correctness": {**GOOD["correctness"], **bread}}
        review = propose(responses.iloc[[1]], _ask(replies), "w")
        assert [p.kind for p in review.proposals] == ["correctness"]

    def test_review_file_is_never_overwritten(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "r.csv").write_text("response_id,question,response\na,b,c\n")
        (tmp_path / "review.yml").write_text("kept")
        arguments = ["propose", str(tmp_path / "r.csv"), str(tmp_path / "review.yml"), "--model", "m"]
        assert proposals_main(arguments) == 2
        assert (tmp_path / "review.yml").read_text() == "kept"
        assert "never overwritten" in capsys.readouterr().err

    def test_review_file_with_an_unknown_decision(self, tmp_path: Path) -> None:
        path = tmp_path / "review.yml"
        path.write_text("proposals:\n- {response_id: a, decision: perhaps}\n")
        with pytest.raises(BankError) as caught:
            read_review(path)
        assert "decision" in str(caught.value)
