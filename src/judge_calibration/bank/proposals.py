"""Correctness and citation pairs of one's own responses: a model proposes, a person decides.

The model that proposes an error must not be one of the judges that will be tested on it; naming it as a
judge is refused. Its proposals go into a review file (YAML), in which a person writes ``accept`` or
``reject`` and a name beside each. Nothing that was not accepted becomes a pair.

From a shell::

    python -m judge_calibration.bank.proposals propose responses.jsonl review.yml --model MODEL --judge JUDGE
    python -m judge_calibration.bank.proposals pairs responses.jsonl review.yml pairs.parquet
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import yaml
from pydantic import Field, ValidationError

from judge_calibration.bank import words
from judge_calibration.bank.generate import Made, check_responses, pairs_of, read_responses
from judge_calibration.bank.tasks import BankError, Edit, Severity, Text
from judge_calibration.bank.transforms import RecipeError, apply_edits, replace_markers
from judge_calibration.errors import JudgeCalibrationError, OptionsError, Problem
from judge_calibration.options.bank import GenerateOptions
from judge_calibration.options.base import Options
from judge_calibration.text import sha256_of

Ask = Callable[[list[dict[str, str]]], str]
"""What sends messages to a model and gives its reply: any function."""
Kind = Literal["correctness", "citation"]

_ROLE = (
    "You help to build a test for reviewers. You make one small, exactly described change to a text and "
    "return it as a single JSON object, without any other words."
)
_WANTED: dict[Kind, str] = {
    "correctness": (
        "Choose one fact, number or step of the answer on which its usefulness depends, and make it wrong "
        "beyond dispute. Keep the tone and, as nearly as possible, the length. Change whatever depends on it "
        "as well, and nothing else. Every span in `old` has to stand in the answer exactly once, letter for "
        "letter. Return the fields edits (a list of objects with old and new), severity (small or large), "
        "true_statement, false_statement, and why (what settles that it is wrong)."
    ),
    "citation": (
        "The answer cites passages in square brackets. Choose one passage whose support matters, and name "
        "another one that does not entail what the answer says there, or null to take the citation away. "
        "Return the fields replace (an object from the old id to the new id or null), variant (irrelevant, "
        "not_entailing or absent), and why."
    ),
}


class Proposal(Options):
    """A change that a model proposed for one response, and what a person decided about it."""

    response_id: Text
    response_sha256: Text
    """Of the response that the model saw: a review of another text is refused."""
    kind: Kind
    proposed_by: Text
    edits: tuple[Edit, ...] = ()
    severity: Severity | None = None
    true_statement: str = ""
    false_statement: str = ""
    replace: dict[str, str | None] = Field(default_factory=dict)
    variant: Literal["irrelevant", "not_entailing", "absent"] | None = None
    why: str = ""
    problem: str = ""
    """Why the proposal cannot be used as it is; empty if it can. A person may correct the change."""
    decision: Literal["accept", "reject"] | None = None
    reviewer: str = ""
    remark: str = ""


class Review(Options):
    """A review file."""

    proposals: Annotated[tuple[Proposal, ...], Field(min_length=1)]


def propose(
    responses: pd.DataFrame,
    ask: Ask,
    model: str,
    judges: Sequence[str] = (),
    kinds: Sequence[Kind] = ("correctness", "citation"),
) -> Review:
    """Ask a model for one change of each kind a response.

    Parameters
    ----------
    responses : pandas.DataFrame
        As for :func:`judge_calibration.bank.generate.generate_pairs`. Citation changes are proposed only
        where a response has a ``source_packet`` (JSON list of id and text, ids P1, P2, ...) and cites it.
    ask : callable
        Sends a list of messages, returns the reply. Every reply is used as it comes; none is asked for again.
    model : str
        The name of the model that `ask` asks, kept with each proposal.
    judges : sequence of str
        The judges that the pairs are meant to test.
    kinds : sequence of {"correctness", "citation"}
        What to propose.

    Returns
    -------
    Review
        With every decision open. A reply that cannot be used is in it, too, with its problem.

    Raises
    ------
    OptionsError
        If the model is one of the judges.
    """
    if _same_model(model, judges):
        raise OptionsError(
            "The model that proposes changes is one of the judges.",
            [Problem("model", model, "a model that is none of " + ", ".join(judges))],
            "choose another model to propose changes, or judges that do not include it",
        )
    check_responses(responses)
    proposals = []
    for response in responses.to_dict("records"):
        packet = _packet(response)
        for kind in kinds:
            if kind == "citation" and not (packet and words.markers(response["response"])):
                continue
            try:
                reply = ask(_messages(response, kind, packet))
            except JudgeCalibrationError as error:
                # One lost answer must not lose those that were paid for before it.
                proposals.append(_entry(response, kind, model) | {"problem": error.message})
            else:
                proposals.append(_read(reply, response, kind, model))
    return Review.model_validate({"proposals": proposals})


def reviewed_pairs(
    responses: pd.DataFrame, review: Review, options: GenerateOptions | None = None
) -> pd.DataFrame:
    """Make pairs of the accepted proposals.

    Parameters
    ----------
    responses : pandas.DataFrame
        The responses that were proposed for.
    review : Review
        With a decision and a reviewer beside every proposal.

    Returns
    -------
    pandas.DataFrame
        The table `pairs`; the original answer is expected to win.

    Raises
    ------
    BankError
        If a decision is open, a change does not fit its response, or the response has changed since; every
        fault in one report.
    """
    options = options or GenerateOptions()
    check_responses(responses)
    by_id = {row["response_id"]: row for row in responses.to_dict("records")}
    problems: list[Problem] = []
    made = []
    for number, proposal in enumerate(review.proposals, 1):
        where = f"review, proposal {number} ({proposal.response_id}, {proposal.kind})"
        found = _open_questions(proposal, by_id.get(proposal.response_id))
        if not found and proposal.decision == "accept":
            response = by_id[proposal.response_id]
            answer, fault = changed_answer(proposal, response)
            if answer is None:
                found = [(fault, "a change that fits the response")]
            else:
                made.append((response, _made(proposal, answer)))
        problems += [Problem(where, what, wanted) for what, wanted in found]
    if problems:
        raise BankError(
            f"The review cannot be used yet: {len(problems)} problems.",
            problems,
            "decide and sign every proposal in the review file, and correct the changes named above",
        )
    return pairs_of(made, options)


def changed_answer(proposal: Proposal, response: dict[Any, Any]) -> tuple[str | None, str]:
    """Return the response with the proposed change, or None and the reason why it does not fit."""
    text = response["response"]
    try:
        if proposal.kind == "citation":
            ids = [passage["id"] for passage in _packet(response)]
            unknown = [new for new in proposal.replace.values() if new is not None and new not in ids]
            if unknown or not proposal.replace or proposal.variant is None:
                return (
                    None,
                    f"no such passage: {unknown}" if unknown else "no exchange of passages, or no variant",
                )
            return replace_markers(text, proposal.replace), ""
        made = apply_edits(text, proposal.edits, "edits")
    except RecipeError as error:
        return None, error.message
    if made == text or not proposal.edits:
        return None, "no change"
    if Counter(words.markers(made)) != Counter(words.markers(text)):
        return None, "the change touches a citation"
    if proposal.severity is None or not proposal.true_statement or not proposal.false_statement:
        return None, "no severity, or no true and false statement"
    return made, ""


def _open_questions(proposal: Proposal, response: dict[Any, Any] | None) -> list[tuple[str, str]]:
    found = []
    if response is None:
        return [(f"response_id {proposal.response_id!r}", "an id of the responses")]
    if proposal.response_sha256 != sha256_of(response["response"]):
        found.append(("another response than the model saw", "the response that was proposed for"))
    if proposal.decision is None:
        found.append(("no decision", "accept or reject"))
    if proposal.decision and not proposal.reviewer.strip():
        found.append(("no reviewer", "the name or initials of the person who decided"))
    return found


def _made(proposal: Proposal, answer: str) -> Made:
    note = f"{proposal.why} Proposed by {proposal.proposed_by}, accepted by {proposal.reviewer}."
    if proposal.kind == "citation":
        return Made("citation", str(proposal.variant), answer, note)
    note = f"True: {proposal.true_statement} False: {proposal.false_statement} {note}"
    return Made("correctness", "reviewed", answer, note, proposal.severity)


def _same_model(model: str, judges: Sequence[str]) -> bool:
    """Compare names without the provider in front of them."""
    return model.split("/")[-1].casefold() in {judge.split("/")[-1].casefold() for judge in judges}


def _packet(response: dict[Any, Any]) -> list[dict[str, str]]:
    packet = response.get("source_packet")
    return json.loads(packet) if isinstance(packet, str) else packet if isinstance(packet, list) else []


def _messages(response: dict[Any, Any], kind: Kind, packet: list[dict[str, str]]) -> list[dict[str, str]]:
    material: dict[str, Any] = {"question": response["question"], "answer": response["response"]}
    if packet:
        material["passages"] = packet
    return [
        {"role": "system", "content": _ROLE},
        # As JSON, so that nothing in a response can be taken for a part of the instruction.
        {"role": "user", "content": f"{_WANTED[kind]}\n\n{json.dumps(material, ensure_ascii=False)}"},
    ]


def _entry(response: dict[Any, Any], kind: Kind, model: str) -> dict[str, Any]:
    return {
        "response_id": response["response_id"],
        "response_sha256": sha256_of(response["response"]),
        "kind": kind,
        "proposed_by": model,
    }


def _read(reply: str, response: dict[Any, Any], kind: Kind, model: str) -> dict[str, Any]:
    entry = _entry(response, kind, model)
    match = re.fullmatch(r"\s*(?:```(?:json)?\s*)?(\{.*\})(?:\s*```)?\s*", reply, re.DOTALL)
    try:
        fields = json.loads(match.group(1)) if match else None
    except json.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict):
        return entry | {"problem": f"the reply is not a JSON object: {reply[:200]!r}"}
    wanted = {"edits", "severity", "true_statement", "false_statement"} if kind == "correctness" else set()
    wanted |= {"why"} | ({"replace", "variant"} if kind == "citation" else set())
    try:
        proposal = Proposal.model_validate(entry | {name: fields[name] for name in wanted & set(fields)})
    except ValidationError as error:
        return entry | {"problem": f"{error.errors()[0]['loc']}: {error.errors()[0]['msg']}"}
    answer, fault = changed_answer(proposal, response)
    return proposal.model_dump(mode="json") | {"problem": "" if answer is not None else fault}


def write_review(review: Review, path: Path) -> None:
    """Write a review file for a person to read and fill in."""
    data = review.model_dump(mode="json")
    head = (
        "# Beside every proposal write  decision: accept  or  decision: reject,  and your initials as\n"
        "# reviewer. You may correct edits and statements. A proposal with a problem can be accepted only\n"
        "# once it is corrected.\n"
    )
    path.write_text(
        head + yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=100), encoding="utf-8"
    )


def read_review(path: Path) -> Review:
    """Read a review file.

    Raises
    ------
    BankError
        If it does not have the form of one.
    """
    try:
        return Review.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (ValidationError, yaml.YAMLError, UnicodeDecodeError) as error:
        errors = error.errors() if isinstance(error, ValidationError) else [{"loc": (), "msg": str(error)}]
        raise BankError(
            f"The review file '{path.name}' cannot be read.",
            [
                Problem(".".join(map(str, item["loc"])) or path.name, "this", str(item["msg"]))
                for item in errors
            ],
            "correct the fields named above",
        ) from error


def litellm_ask(model: str, api_base: str | None = None, max_tokens: int = 1500) -> Ask:
    """Return a function that asks a model through LiteLLM, at temperature 0."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    import litellm
    from openai import OpenAIError

    litellm.suppress_debug_info = True

    def ask(messages: list[dict[str, str]]) -> str:
        try:
            reply = litellm.completion(
                model=model, messages=messages, temperature=0, max_tokens=max_tokens, api_base=api_base
            )
        except OpenAIError as error:
            # The error's own text may hold the request and its headers.
            raise JudgeCalibrationError(
                f"The model {model} did not answer: {type(error).__name__}.",
                "check its name, --api-base and the provider's key in the environment",
            ) from error
        return str(reply.choices[0].message.content or "")

    return ask


def main(arguments: list[str] | None = None) -> int:
    """Propose changes of responses, or make pairs of the reviewed ones."""
    parser = argparse.ArgumentParser(
        prog="python -m judge_calibration.bank.proposals", description=main.__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("propose", help="ask a model for changes and write the review file")
    first.add_argument("responses", type=Path)
    first.add_argument("review", type=Path)
    first.add_argument("--model", required=True, help="as LiteLLM names it, e.g. hosted_vllm/NAME")
    first.add_argument("--api-base", help="address of the server, where the provider needs one")
    first.add_argument("--judge", action="append", default=[], help="a judge to be tested; may be repeated")
    first.add_argument("--kind", action="append", choices=["correctness", "citation"])
    second = commands.add_parser("pairs", help="make pairs of the accepted proposals")
    second.add_argument("responses", type=Path)
    second.add_argument("review", type=Path)
    second.add_argument("pairs", type=Path)
    given = parser.parse_args(arguments)
    try:
        responses = read_responses(given.responses)
        if given.command == "propose":
            if given.review.exists():
                print(f"error: {given.review} exists already; a review is never overwritten", file=sys.stderr)
                return 2
            ask = litellm_ask(given.model, given.api_base)
            kinds = tuple(given.kind or ("correctness", "citation"))
            review = propose(responses, ask, given.model, given.judge, kinds)
            write_review(review, given.review)
            unusable = sum(bool(proposal.problem) for proposal in review.proposals)
            print(f"{len(review.proposals)} proposals, {unusable} with a problem: {given.review}")
        else:
            pairs = reviewed_pairs(responses, read_review(given.review))
            pairs.to_parquet(given.pairs, index=False)
            print(f"{len(pairs)} pairs: {given.pairs}")
    except (JudgeCalibrationError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
