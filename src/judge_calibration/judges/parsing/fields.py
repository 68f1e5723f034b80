"""The fields of a structured reply: one declaration gives the instruction, schema, grammar and reading.

A field knows how to ask for itself in words, what its JSON schema and its GBNF rule are, and how to read a
value. Fields that the verdict rests on are required: without them the reply is malformed. The others
(a rationale, a stated confidence, reason codes) are read if they are there and flagged if they are odd.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from judge_calibration.judges.parsing.alphabet import Alphabet

_MOST_CHARACTERS = 240  # of a text under a grammar, so that a small model comes to the verdict
_MOST_CODES = 4


class Unreadable(ValueError):  # noqa: N818 - a signal inside the parser, never seen outside
    """A required field is missing or says what it may not; the message is the reason code."""


class Field(Protocol):
    """What a structured reply holds under one name."""

    @property
    def name(self) -> str:
        """The key in JSON, the element in XML."""

    def asked(self) -> str:
        """How the value is described to the judge."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return the value, or raise Unreadable; harmless oddities go to `flags`."""


@dataclass(frozen=True)
class LabelField:
    """One label of an alphabet. Required."""

    name: str
    alphabet: Alphabet
    description: str = ""

    def asked(self) -> str:
        """How the value is described to the judge."""
        words = " or ".join(f'"{label}"' for label in self.alphabet.labels)
        return f"{words}{', ' + self.description if self.description else ''}"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": "string", "enum": list(self.alphabet.labels)}

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""
        return _choice(list(self.alphabet.labels), quoted=not xml)

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return the label's meaning."""
        if self.name not in raw:
            raise Unreadable(f"no_{self.name}")
        value = raw[self.name]
        if value is None:
            raise Unreadable(f"null_{self.name}")
        meaning = self.alphabet.read(value) if isinstance(value, str) else None
        if meaning is None:
            raise Unreadable(f"unknown_{self.name}")
        return meaning


@dataclass(frozen=True)
class TextField:
    """Free text that no verdict is read from. Optional."""

    name: str
    description: str

    def asked(self) -> str:
        """How the value is described to the judge."""
        return self.description

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": "string"}

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""
        character = r"[^<&\x00-\x1F]" if xml else r'([^"\\\x00-\x1F] | "\\" ["\\/bfnrt])'
        body = f"{character}{{1,{_MOST_CHARACTERS}}}"
        return body if xml else f'"\\"" {body} "\\""'

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return nothing: a rationale is kept in the answer, not in the verdict."""
        return None


@dataclass(frozen=True)
class ScoreField:
    """A whole number on a scale. Required."""

    name: str
    description: str
    low: int = 1
    high: int = 5

    def asked(self) -> str:
        """How the value is described to the judge."""
        return f"{self.description}, a whole number from {self.low} to {self.high}"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": "integer", "enum": list(range(self.low, self.high + 1))}

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""
        return _choice([str(n) for n in range(self.low, self.high + 1)], quoted=False)

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return the score."""
        if self.name not in raw:
            raise Unreadable("no_score")
        number = _number(raw[self.name])
        if number is None or number != round(number) or not self.low <= number <= self.high:
            raise Unreadable("score_off_scale")
        return int(number)


@dataclass(frozen=True)
class UnitField:
    """A number from 0 to 1, or null, such as a stated confidence. Optional."""

    name: str
    description: str

    def asked(self) -> str:
        """How the value is described to the judge."""
        return f"{self.description}, a number from 0 to 1"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": ["number", "null"]}

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""
        return '("0." [0-9] [0-9]? | "1.0")'

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return the number, or None where it is absent or no number from 0 to 1."""
        value = raw.get(self.name)
        if value is None or (isinstance(value, str) and value.strip().lower() in {"", "null"}):
            return None
        number = _number(value)
        if number is None or not 0 <= number <= 1:
            flags.append(f"{self.name}_unreadable")
            return None
        return float(number)


@dataclass(frozen=True)
class CodesField:
    """A list of reason codes. Optional; codes that were not offered are left out and flagged."""

    name: str
    description: str
    codes: tuple[str, ...]

    def asked(self) -> str:
        """How the value is described to the judge."""
        return f"{self.description}, a list of none or some of {', '.join(self.codes)}"

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        items = {"type": "string", "enum": list(self.codes)}
        return {"type": "array", "items": items, "maxItems": _MOST_CODES}

    def grammar(self, xml: bool) -> str:
        """The GBNF expression of the value."""
        code = _choice(list(self.codes), quoted=not xml)
        items = f'({code} (", " {code}){{0,{_MOST_CODES - 1}}})?'
        return items if xml else f'"[" {items} "]"'

    def read(self, raw: Mapping[str, Any], flags: list[str]) -> Any:
        """Return the codes that were offered, in the order stated, each once."""
        value = raw.get(self.name)
        if isinstance(value, str):
            value = [part for part in re.split(r"[,;]\s*", value.strip()) if part]
        if value is None:
            return []
        if not isinstance(value, list):
            flags.append(f"{self.name}_unreadable")
            return []
        stated = [_snake(item) if isinstance(item, str) else None for item in value]
        if any(code not in self.codes for code in stated):
            flags.append(f"{self.name}_unknown")
        return list(dict.fromkeys(code for code in stated if code in self.codes))


Fields = tuple[Field, ...]


def read_fields(fields: Fields, raw: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields' values and flags.

    Raises
    ------
    Unreadable
        If a required field is missing or off its alphabet or scale.
    """
    flags: list[str] = []
    values = {field.name: field.read(raw, flags) for field in fields}
    return values, tuple(flags)


def json_instruction(fields: Fields) -> str:
    """Return the sentence that asks for a JSON object of these fields in this order."""
    lines = "\n".join(f'- "{field.name}": {field.asked()}' for field in fields)
    return (
        "Reply with one JSON object and nothing else: no text around it, no code fence. "
        f"Its keys, in this order:\n{lines}"
    )


def json_schema(fields: Fields) -> dict[str, Any]:
    """Return the JSON schema of an object of these fields and no others."""
    return {
        "type": "object",
        "properties": {field.name: field.schema() for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }


def in_declared_order(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its properties in the order of its list `required`.

    Canonical JSON sorts keys, and decoders write a constrained object's keys in the schema's order: without
    this a verdict-first protocol would be asked for its reasons first. To be called where a request leaves.

    Examples
    --------
    >>> schema = {"required": ["winner", "rationale"], "properties": {"rationale": {}, "winner": {}}}
    >>> list(in_declared_order(schema)["properties"])
    ['winner', 'rationale']
    """
    properties = schema.get("properties", {})
    first = [name for name in schema.get("required", []) if name in properties]
    ordered = [*first, *(name for name in properties if name not in first)]
    return {**schema, "properties": {name: properties[name] for name in ordered}}


def json_grammar(fields: Fields) -> str:
    r"""Return the GBNF of a JSON object of these fields in this order.

    Examples
    --------
    >>> print(json_grammar((LabelField("winner", Alphabet()),)))
    root ::= "{\"winner\": " f0 "}"
    f0 ::= ("\"A\"" | "\"B\"")
    """
    parts = []
    for i, field in enumerate(fields):
        key = json.dumps(("{" if i == 0 else ", ") + json.dumps(field.name) + ": ")
        parts.append(f"{key} f{i}")
    rules = [f'root ::= {" ".join(parts)} "}}"']
    rules += [f"f{i} ::= {field.grammar(xml=False)}" for i, field in enumerate(fields)]
    return "\n".join(rules)


def xml_instruction(fields: Fields, root: str) -> str:
    """Return the sentence that asks for an XML element of these fields in this order."""
    lines = "\n".join(f"- <{field.name}>: {field.asked()}" for field in fields)
    return (
        f"Reply with one XML element <{root}> and nothing else: no text around it, no code fence. "
        f"Write &lt; for < and &amp; for & in its text. Its children, in this order:\n{lines}"
    )


def xml_grammar(fields: Fields, root: str) -> str:
    """Return the GBNF of an XML element of these fields in this order."""
    parts = [json.dumps(f"<{root}>")]
    for i, field in enumerate(fields):
        parts.append(f"{json.dumps(f'<{field.name}>')} f{i} {json.dumps(f'</{field.name}>')}")
    parts.append(json.dumps(f"</{root}>"))
    rules = [f"root ::= {' '.join(parts)}"]
    rules += [f"f{i} ::= {field.grammar(xml=True)}" for i, field in enumerate(fields)]
    return "\n".join(rules)


def label_grammar(alphabet: Alphabet) -> str:
    """Return the GBNF of one bare label.

    Examples
    --------
    >>> label_grammar(Alphabet())
    'root ::= ("A" | "B")'
    """
    return f"root ::= {_choice(list(alphabet.labels), quoted=False)}"


def _choice(values: list[str], quoted: bool) -> str:
    literals = [json.dumps(json.dumps(value) if quoted else value) for value in values]
    return f"({' | '.join(literals)})"


def _number(value: Any) -> float | None:
    """Return a finite number, also from the text of one (as XML has it); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if not re.fullmatch(r"\s*-?[0-9]{1,9}(?:\.[0-9]{1,18})?\s*", value, re.ASCII):
            return None
        return float(value)
    if isinstance(value, int):
        return float(value) if abs(value) < 10**15 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None


def _snake(text: str) -> str:
    return re.sub(r"[\s-]+", "_", text.strip().lower())
