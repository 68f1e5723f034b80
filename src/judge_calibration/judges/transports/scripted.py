"""A judge made of rules, with planted faults of character: for tests and dry runs. No network, no model.

Everything that it does is in its model name, so that the name identifies the instrument::

    scripted/steady                                  always right by its own lights, never noisy
    scripted/position=0.3,noise=0.1,malformed=0.02   a biased and noisy one
    scripted/skill=0.8,position=0.2                  a biased one that mostly knows what is right

Its own lights are a fixed preference for one candidate of each pair, drawn from the pair's name.

=============  ==================================================================================
``position``   share of pairs on which it takes whichever candidate is shown first, both orders
``noise``      probability that a reply is turned round at temperature 1 (in proportion below;
               none at 0), drawn from the seed
``malformed``  share of replies that are no verdict, drawn from the request
``skill``      share of pairs on which its own lights are right; what is right is said by the file that
               the transport's ``answer_key`` names (columns pair_id, label)
``taste``      text mixed into the preferences: two judges of one taste agree
=============  ==================================================================================
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.transports.base import PlannedCall, Reply
from judge_calibration.text import canonical_json

PREFIX: Final = "scripted/"
_FIELD: Final = re.compile(r'^- [<"]([a-z_]+)[>"]: (.*)$', re.MULTILINE)
_ELEMENT: Final = re.compile(r"one XML element <([a-z_]+)>")
_SCALE: Final = re.compile(r"whole number from (-?\d+) to (-?\d+)")


class ScriptError(JudgeCalibrationError):
    """The name of a scripted judge cannot be read, or it is asked what it cannot answer."""


@dataclass(frozen=True)
class Character:
    """What is planted in a scripted judge; shares and probabilities in [0, 1]."""

    position: float = 0.0
    noise: float = 0.0
    malformed: float = 0.0
    skill: float | None = None
    taste: str = ""


def character_of(model: str) -> Character:
    """Return the character that a model name spells out.

    Examples
    --------
    >>> character_of("scripted/position=0.3,noise=0.1")
    Character(position=0.3, noise=0.1, malformed=0.0, skill=None, taste='')

    Raises
    ------
    ScriptError
        For an unknown word, or a share outside [0, 1].
    """
    name = model.removeprefix(PREFIX)
    values: dict[str, Any] = {}
    for part in name.split(","):
        key, given, value = part.partition("=")
        if not given:
            continue  # a mere label
        if key == "taste":
            values[key] = value
            continue
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if key not in ("position", "noise", "malformed", "skill") or not 0 <= share <= 1:
            raise ScriptError(
                f"The scripted judge '{model}' has '{part}'; wanted position, noise, malformed or skill with "
                "a share from 0 to 1, or taste with a word.",
                "correct the judge's model",
            )
        values[key] = share
    return Character(**values)


def _draw(*parts: object) -> float:
    """A number in [0, 1) made from the parts."""
    digest = hashlib.sha256(canonical_json([str(part) for part in parts]).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def read_answer_key(path: str) -> dict[str, str]:
    """Return what is right, by pair, from a CSV file with the columns pair_id and label (A, B or others).

    Raises
    ------
    ScriptError
        If there is no such file, or a column lacks.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8") as file:
            rows = [(row["pair_id"], row["label"]) for row in csv.DictReader(file)]
    except (OSError, KeyError) as error:
        raise ScriptError(
            f"The answer key {path} cannot be read ({type(error).__name__}: {error}); wanted a CSV file with "
            "the columns pair_id and label.",
            "correct transport.answer_key of the scripted judge",
        ) from error
    return {pair_id: label for pair_id, label in rows if label in ("A", "B")}


def shown_choice(
    character: Character, request: dict[str, Any], call: PlannedCall, key: Mapping[str, str] | None = None
) -> str:
    """Return the label, A for the candidate shown first, that a judge of this character gives."""
    subject = (call.pair_id, call.step) if call.protocol == "attribute" else (call.pair_id,)
    if _draw("position", character.taste, *subject) < character.position:
        label = "A"
    else:
        prefers_a = _draw("taste", character.taste, *subject) < 0.5
        right = (key or {}).get(call.pair_id)
        if character.skill is not None and right is not None and call.protocol != "attribute":
            knows = _draw("skill", request["model"], *subject) < character.skill
            prefers_a = (right == "A") == knows
        label = "A" if prefers_a == (call.order != "BA") else "B"
    temperature = request.get("temperature")
    turned = character.noise * min(1.0, 1.0 if temperature is None else temperature)
    if _draw("noise", request.get("seed"), call.call_id) < turned:
        label = "B" if label == "A" else "A"
    return label


class Scripted:
    """Answers by rules.

    Parameters
    ----------
    answer_key : str, optional
        Path of the file that says what is right; a judge with ``skill`` needs it.
    """

    def __init__(self, answer_key: str | None = None) -> None:
        self._key = read_answer_key(answer_key) if answer_key is not None else None

    async def complete(self, request: dict[str, Any], call: PlannedCall) -> Reply:
        """Answer at once. See :class:`~judge_calibration.judges.transports.base.Transport`."""
        character = character_of(request["model"])
        if character.skill is not None and self._key is None:
            raise ScriptError(
                f"The scripted judge '{request['model']}' has a skill and no answer key.",
                "name one: transport.answer_key, a CSV file with the columns pair_id and label",
            )
        if _draw("malformed", call.call_id) < character.malformed:
            text = "It depends on the reader."
        else:
            label = shown_choice(character, request, call, self._key)
            text = phrase(label, request["messages"][-1]["content"], lambda name: _draw(call.call_id, name))
        size = sum(len(message["content"]) for message in request["messages"])
        answer = {"text": text, "prompt_tokens": size // 4 + 1, "completion_tokens": len(text) // 4 + 1}
        return Reply(
            finish_reason="stop",
            served_model=request["model"].removeprefix(PREFIX),
            status=200,
            body=json.dumps(answer, sort_keys=True),
            **answer,  # type: ignore[arg-type]
        )

    async def close(self) -> None:
        """Nothing to give back."""


def phrase(label: str, prompt: str, draw: Callable[[str], float]) -> str:
    r"""Return a reply of the form that the prompt's last instruction asks for, with one verdict.

    Parameters
    ----------
    label : str
        The verdict, in shown labels.
    prompt : str
        The user message. Only what stands after its last "Reply with" is read.
    draw : callable
        From a field's name to a number in [0, 1), for whatever is not the verdict.

    Examples
    --------
    >>> phrase("B", "Reply with A or B and nothing else.", lambda name: 0.5)
    'B'
    >>> asks = 'Reply with one JSON object.\n- "why": your reasons\n- "winner": "A" or "B"'
    >>> phrase("B", asks, lambda name: 0.5)
    '{"why": "Scripted.", "winner": "B"}'
    """
    instruction = prompt[prompt.rfind("Reply with") :]
    fields = {name: _value(label, name, asked, draw) for name, asked in _FIELD.findall(instruction)}
    element = _ELEMENT.search(instruction)
    if element:
        inner = "".join(f"<{name}>{_as_text(value)}</{name}>" for name, value in fields.items())
        return f"<{element[1]}>{inner}</{element[1]}>"
    if fields:
        return json.dumps(fields)
    return label if "nothing else" in instruction else "- It does what was asked.\n- It is true."


def _value(label: str, name: str, asked: str, draw: Callable[[str], float]) -> Any:
    """A value for one field, from the words that ask for it."""
    scale = _SCALE.search(asked)
    if asked.startswith('"'):
        return label
    if scale:
        low, high = int(scale[1]), int(scale[2])
        return low + int(draw(name) * (high - low + 1))
    if "number from 0 to 1" in asked:
        return round(0.5 + draw(name) / 2, 2)
    return [] if asked.rpartition(", ")[0] and "a list of none or some of" in asked else "Scripted."


def _as_text(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)
