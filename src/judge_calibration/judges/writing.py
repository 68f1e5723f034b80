"""Asking a model to write: a rubric from labelled pairs, as an ordinary call with an identity of its own.

The texts of the pairs are data in the writer's prompt, fenced off as everywhere. What comes back becomes
instructions to a judge, so it is an artifact that a person can read before it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from judge_calibration.judges.instrument import judge_identity, weights_of
from judge_calibration.judges.markers import fence, make_marker
from judge_calibration.judges.parsing.forms import TextForm
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import Reply, outer_stripped
from judge_calibration.judges.planning import seed_of, show_question
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import fill
from judge_calibration.judges.protocols.pairwise import system_prompt
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.schemas import CALLS, conform, empty
from judge_calibration.text import canonical_json, from_storable, sha256_of

PROTOCOL = "rubric_writing"
_FORM = TextForm("")


@dataclass(frozen=True)
class LabelledPair:
    """A question with the answer that was labelled better and the one that was labelled worse."""

    question: str
    better: str
    worse: str


@dataclass(frozen=True)
class WritingTask:
    """One rubric to be written.

    Attributes
    ----------
    name : str
        Stands in the column pair_id of the call.
    writer : str
        Id of the judge whose model writes.
    pairs : tuple of LabelledPair
        What it is shown.
    most_words : int
        What it is told that the rubric may hold.
    """

    name: str
    writer: str
    pairs: tuple[LabelledPair, ...]
    most_words: int


def plan_writing(tasks: Sequence[WritingTask], options: JudgingOptions, max_tokens: int) -> pd.DataFrame:
    """Return the calls that writing takes: one a task, at temperature 0 where the model can set one.

    Parameters
    ----------
    tasks : sequence of WritingTask
    options : JudgingOptions
        Holds the writers among its judges.
    max_tokens : int
        Cap of a reply.
    """
    rows = [_row(task, options.judge(task.writer), options.marker_salt, max_tokens) for task in tasks]
    return conform(pd.DataFrame(rows), CALLS) if rows else empty(CALLS)


def _row(task: WritingTask, judge: JudgeSpec, salt: str, max_tokens: int) -> dict[str, Any]:
    shown = [
        (show_question(from_storable(p.question)), from_storable(p.better), from_storable(p.worse))
        for p in task.pairs
    ]
    marker = make_marker(salt, [text for texts in shown for text in texts])
    blocks = [
        "\n".join(
            fence(f"{name} {number}", marker, text)
            for name, text in zip(("QUESTION", "BETTER ANSWER", "WORSE ANSWER"), texts, strict=True)
        )
        for number, texts in enumerate(shown, start=1)
    ]
    system = system_prompt("writing", "system")
    template = load_prompts("writing")["user"]
    user = fill(
        template, {"pairs": "\n\n".join(blocks), "count": str(len(shown)), "words": str(task.most_words)}
    ).rstrip("\n")
    fixed = set(judge.not_settable)
    temperature = None if "temperature" in fixed else 0.0
    cap = None if "max_tokens" in fixed else max_tokens
    decoding = {
        "max_tokens": cap,
        "top_p": None if "top_p" in fixed else judge.top_p,
        "reasoning_effort": None if "reasoning_effort" in fixed else judge.reasoning_effort,
    }
    identity = {
        **judge_identity(judge, salt, weights_of(judge)),
        "protocol": PROTOCOL,
        "system_prompt": system,
        "user_template": template,
        "decoding": decoding,
    }
    instrument_id = sha256_of(identity)
    call_id = sha256_of(
        {
            "instrument": instrument_id,
            "content": sha256_of({"pairs": shown, "words": task.most_words}),
            "order": None,
            "temperature": temperature,
            "repetition": 0,
            "step": PROTOCOL,
        }
    )
    request = {
        "model": judge.model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "temperature": temperature,
        "seed": None if "seed" in fixed else seed_of(call_id),
        **decoding,
        "constraint": {"kind": "none", "schema": None, "grammar": None},
        "top_logprobs": 0,
        "substitutions": {},
    }
    return {
        "call_id": call_id,
        "pair_id": task.name,
        "judge_id": task.writer,
        "instrument_id": instrument_id,
        "protocol": PROTOCOL,
        "constraint": "none",
        "step": "write",
        "order": "AB",
        "temperature": temperature,
        "repetition": 0,
        "request": canonical_json(request),
    }


def read_writing(calls: pd.DataFrame, answers: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Return outcome and text by the name of the task; the text is empty unless the outcome is ``valid``.

    Parameters
    ----------
    calls, answers : pandas.DataFrame
        The tables of those names; a call without an answer is ``missing``.
    """
    known = {row["call_id"]: row for row in answers.to_dict("records")}
    out = {}
    for name, call_id in zip(calls["pair_id"], calls["call_id"], strict=True):
        answer = known.get(call_id)
        if answer is None:
            out[str(name)] = ("missing", "")
        elif isinstance(answer["failure"], str):
            out[str(name)] = (answer["failure"], "")
        else:
            text = answer["text"] if isinstance(answer["text"], str) else ""
            finish = answer["finish_reason"] if isinstance(answer["finish_reason"], str) else None
            parsed = _FORM.read(Reply(from_storable(text), finish))
            kept = outer_stripped(without_reasoning(from_storable(text)) or "")
            out[str(name)] = (parsed.outcome, kept if parsed.outcome == "valid" else "")
    return out
