"""From pairs and parameters to calls: what is asked of whom, in which words, under which id and seed.

A call's id is the hash of what makes it another question: the instrument, the content that its step shows,
the order, the temperature, the repetition and the step. What a step does not depend on is null in the id: a
checklist depends on neither order nor repetition, a score of one answer not on the order. So a call that
several judgments need has one id and is asked once, and no answer is ever shared between repetitions or
orders that a step does depend on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from judge_calibration.errors import OptionsError, Problem, TableError
from judge_calibration.judges.instrument import Instrument, resolve_instruments
from judge_calibration.judges.markers import fence, make_marker
from judge_calibration.judges.parsing.forms import TextForm
from judge_calibration.judges.protocols.base import Step, fill
from judge_calibration.options.judging import Criterion, JudgingOptions
from judge_calibration.schemas import CALLS, conform
from judge_calibration.text import canonical_json, from_storable, sha256_of

_COLUMNS = tuple(CALLS.column_names)


def plan_calls(pairs: pd.DataFrame, options: JudgingOptions) -> pd.DataFrame:
    """Return the calls that judging all pairs takes.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`.
    options : JudgingOptions
        The parameters of judging.

    Returns
    -------
    pandas.DataFrame
        The table `calls`: a row for each step of each judgment. Rows that need the same call share its
        call_id.

    Raises
    ------
    OptionsError
        If the parameters name something that does not fit.
    """
    return _plan(pairs, resolve_instruments(options), options.marker_salt, (None,))


def iter_calls(
    pairs: pd.DataFrame, options: JudgingOptions, pairs_at_once: int = 1000
) -> Iterator[pd.DataFrame]:
    """Yield the table of :func:`plan_calls` in parts, for plans that are larger than memory.

    Parts follow the order of the pairs; a call that pairs of two parts share is in both, with one call_id.
    """
    instruments = resolve_instruments(options)
    for start in range(0, len(pairs), pairs_at_once):
        yield _plan(pairs.iloc[start : start + pairs_at_once], instruments, options.marker_salt, (None,))


def plan_attribute_calls(
    pairs: pd.DataFrame, attributes: Sequence[Criterion], options: JudgingOptions
) -> pd.DataFrame:
    """Return the calls that reading `attributes` on all pairs takes: one attribute a call.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`.
    attributes : sequence of Criterion
        What is asked for; the name goes into the column `step`.
    options : JudgingOptions
        Judges that use the protocol `attribute` and no other.

    Returns
    -------
    pandas.DataFrame
        The table `calls`. A pair's reads of one judge and order follow one another, so that they meet a warm
        prefix cache: all attributes share the prompt up to the attribute's own words.
    """
    repeated = sorted({one.name for one in attributes if sum(o.name == one.name for o in attributes) > 1})
    if repeated:
        raise OptionsError(
            "Attributes are named twice.",
            [Problem("the attribute inventory", name, "each name once") for name in repeated],
            "rename or remove them",
        )
    return _plan(pairs, resolve_instruments(options, probes=True), options.marker_salt, tuple(attributes))


def seed_of(call_id: str) -> int:
    """Return the seed that is sent with a call: the first 31 bits of its id.

    Examples
    --------
    >>> seed_of("ffffffff" + "0" * 56)
    2147483647
    """
    return int(call_id[:8], 16) >> 1


@dataclass(frozen=True)
class _Content:
    """A pair's texts as they are shown, with its hashes."""

    question: str
    answers: tuple[str, str]
    packet: str


def _plan(
    pairs: pd.DataFrame,
    instruments: Sequence[Instrument],
    salt: str,
    attributes: tuple[Criterion | None, ...],
) -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = []
    packets = pairs["source_packet"] if "source_packet" in pairs.columns else [None] * len(pairs)
    columns = (pairs["pair_id"], pairs["question"], pairs["response_a"], pairs["response_b"], packets)
    for pair_id, question, response_a, response_b, packet in zip(*columns, strict=True):
        shown = _Content(
            show_question(from_storable(question)),
            (from_storable(response_a), from_storable(response_b)),
            show_packet(packet),
        )
        prompts = _Prompts(shown, salt)
        for instrument in instruments:
            rows.extend(_rows_of(pair_id, instrument, prompts, attributes))
    frame = (
        pd.DataFrame(rows, columns=list(_COLUMNS)) if rows else pd.DataFrame({name: [] for name in _COLUMNS})
    )
    return conform(frame, CALLS)


def _rows_of(
    pair_id: str, instrument: Instrument, prompts: _Prompts, attributes: tuple[Criterion | None, ...]
) -> Iterator[tuple[Any, ...]]:
    judge, protocol = instrument.judge, instrument.protocol
    for order in judge.orders:
        for temperature in instrument.temperatures:
            for repetition in range(instrument.repetitions):
                for attribute in attributes:
                    made: dict[str, str] = {}
                    for step in protocol.steps:
                        call_id, request = prompts.call(
                            instrument, step, order, temperature, repetition, attribute, made
                        )
                        made[step.name] = call_id
                        yield (
                            call_id,
                            pair_id,
                            judge.judge_id,
                            instrument.instrument_id,
                            protocol.name,
                            instrument.constraint,
                            step.name if attribute is None else attribute.name,
                            order,
                            temperature,
                            repetition,
                            request,
                        )


class _Prompts:
    """The prompts of one pair, each rendered once."""

    def __init__(self, content: _Content, salt: str) -> None:
        self._content = content
        self._salt = salt
        self._rendered: dict[tuple[Any, ...], tuple[str, str]] = {}
        self._requests: dict[str, str] = {}

    def call(
        self,
        instrument: Instrument,
        step: Step,
        order: str,
        temperature: float | None,
        repetition: int,
        attribute: Criterion | None,
        made: Mapping[str, str],
    ) -> tuple[str, str]:
        """Return a call's id and its request's canonical JSON."""
        after = made[step.after] if step.after is not None else None
        key = (
            instrument.instrument_id,
            step.name,
            order if step.ordered else None,
            attribute.name if attribute else None,
            after,
        )
        if key not in self._rendered:
            self._rendered[key] = self._render(instrument, step, order, attribute, after)
        content_hash, template = self._rendered[key]
        call_id = sha256_of(
            {
                "instrument": instrument.instrument_id,
                "content": content_hash,
                "order": order if step.ordered else None,
                "temperature": temperature,
                "repetition": repetition if step.repeated else None,
                "step": step.kind,
            }
        )
        if call_id not in self._requests:
            # The request's keys are sorted, so seed and temperature have fixed places: the long messages are
            # turned to JSON once for all cells and repetitions.
            seed = "null" if "seed" in instrument.judge.not_settable else str(seed_of(call_id))
            heat = "null" if temperature is None else json.dumps(temperature)
            self._requests[call_id] = template.replace(_SEED, f'"seed":{seed}', 1).replace(
                _HEAT, f'"temperature":{heat}', 1
            )
        return call_id, self._requests[call_id]

    def _render(
        self, instrument: Instrument, step: Step, order: str, attribute: Criterion | None, after: str | None
    ) -> tuple[str, str]:
        content = self._content
        packet = content.packet if instrument.source_access == "packet" else ""
        a, b = content.answers
        answers: tuple[str, ...] = {
            "pair": content.answers,
            "task": (),
            "answer_a": (a,),
            "answer_b": (b,),
        }[step.shows]
        # The same content gives the same codes in both orders: it is taken in the pair's own order.
        task = make_marker(self._salt, [content.question, packet], beside=answers)
        marker = make_marker(self._salt, [content.question, packet, *answers])
        texts = {
            **dict(step.texts),
            "question": fence("QUESTION", task, content.question),
            "sources": fence("SOURCES", task, packet) if packet else "",
            "output": step.form.instruction,
        }
        if step.shows == "pair":
            first, second = (a, b) if order == "AB" else (b, a)
            texts["answer_a"] = fence("ANSWER A", marker, first)
            texts["answer_b"] = fence("ANSWER B", marker, second)
        elif answers:
            texts["answer"] = fence("ANSWER", marker, answers[0])
        substitutions = {}
        if after is not None:
            token = f"[ANSWER OF CALL {after}]"
            substitutions[token] = after
            texts["checklist"] = fence("CHECKLIST", marker, token)
        if attribute is not None:
            texts["attribute"] = f"{attribute.name.replace('_', ' ')}: {attribute.description}"
        messages = [{"role": "user", "content": fill(step.user, texts)}]
        system = instrument.system_prompt(step)
        if system:
            messages.insert(0, {"role": "system", "content": system})
        content_hash = sha256_of(
            {
                "shows": "pair" if step.ordered else step.kind,
                "question": content.question,
                "answers": list(answers),
                "packet": packet,
                "after": after,
                "attribute": None if attribute is None else [attribute.name, attribute.description],
            }
        )
        judge = instrument.judge
        request = {
            "model": judge.model,
            "messages": messages,
            "temperature": _HEAT_VALUE,
            "seed": _SEED_VALUE,
            "max_tokens": instrument.max_tokens(step),
            "top_p": None if "top_p" in judge.not_settable else judge.top_p,
            "constraint": _constraint(instrument, step),
            "top_logprobs": 0 if "top_logprobs" in judge.not_settable else step.top_logprobs,
            "reasoning_effort": None if "reasoning_effort" in judge.not_settable else judge.reasoning_effort,
            "substitutions": substitutions,
        }
        return content_hash, canonical_json(request)


# Placeholders in the rendered JSON. Inside a message every quote is escaped, so no text of a pair can hold
# them together with their key.
_SEED_VALUE = "<seed>"
_HEAT_VALUE = "<temperature>"
_SEED = f'"seed":{json.dumps(_SEED_VALUE)}'
_HEAT = f'"temperature":{json.dumps(_HEAT_VALUE)}'


def _constraint(instrument: Instrument, step: Step) -> dict[str, Any]:
    kind: str = instrument.constraint
    schema = step.form.schema() if kind == "json_schema" else None
    grammar = step.form.grammar() if kind == "grammar" else None
    # A step whose form has neither, such as a checklist under a JSON constraint, is asked for freely.
    free = isinstance(step.form, TextForm) and grammar is None
    return {"kind": "none" if free else kind, "schema": schema, "grammar": grammar}


def show_question(question: str) -> str:
    r"""Return a question as it is shown: text as it is, chat messages turn by turn.

    Examples
    --------
    >>> show_question('[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]')
    'user: Hi\n\nassistant: Yes?'
    >>> show_question("[1, 2] is a list, is it not?")
    '[1, 2] is a list, is it not?'
    """
    if not question.lstrip().startswith("["):
        return question
    try:
        turns = json.loads(question)
    except (ValueError, RecursionError):
        return question
    if not isinstance(turns, list) or not turns:
        return question
    for turn in turns:
        if not isinstance(turn, dict) or set(turn) != {"role", "content"}:
            return question
        if not isinstance(turn["role"], str) or not isinstance(turn["content"], str):
            return question
    return "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)


def show_packet(packet: Any) -> str:
    """Return a source packet, a JSON list of ``{id, text}``, as it is shown; empty if there is none.

    Raises
    ------
    TableError
        If it is anything else.

    Examples
    --------
    >>> print(show_packet('[{"id": "p1", "text": "Water boils at 100 C at sea level."}]'))
    [p1] Water boils at 100 C at sea level.
    """
    if not isinstance(packet, str) or not packet.strip():
        return ""
    try:
        passages = json.loads(from_storable(packet))
        return "\n\n".join(f"[{passage['id']}] {passage['text']}" for passage in passages)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TableError(
            "A source packet cannot be shown.",
            [Problem("pairs, column source_packet", repr(packet)[:80], "a JSON list of {id, text}")],
            "correct the packet where the pair comes from",
        ) from None
