"""The forms that a reply can have, each with its instruction, schema, grammar and reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from judge_calibration.judges.parsing import fields as f
from judge_calibration.judges.parsing.alphabet import Alphabet
from judge_calibration.judges.parsing.json_replies import read_json
from judge_calibration.judges.parsing.logprobs import read_first_token
from judge_calibration.judges.parsing.plain import read_plain
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import (
    Parsed,
    Reply,
    after_parsing,
    before_parsing,
    outer_stripped,
    truncated,
)
from judge_calibration.judges.parsing.xml_replies import ROOT, read_xml
from judge_calibration.options.judging import Constraint

_ANY_JSON: tuple[Constraint, ...] = ("none", "json_object", "json_schema", "grammar")


class Form(Protocol):
    """How a reply is asked for, constrained and read."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints under which the form can be asked for."""

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""

    def schema(self) -> dict[str, Any] | None:
        """The JSON schema, if the form has one."""

    def grammar(self) -> str | None:
        """The GBNF, if the form has one."""

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""


@dataclass(frozen=True)
class PlainForm:
    """One bare label."""

    alphabet: Alphabet
    words: str = ""
    """The instruction; empty: the one made of the alphabet."""

    constraints: tuple[Constraint, ...] = ("none", "grammar")

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return self.words or f"Reply with {self.alphabet.in_words()} and nothing else."

    def schema(self) -> dict[str, Any] | None:
        """None: a label is no JSON object."""
        return None

    def grammar(self) -> str | None:
        """The GBNF of one bare label."""
        return f.label_grammar(self.alphabet)

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {"form": "plain", "labels": list(self.alphabet.labels)}

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        text = reply.text or ""
        return before_parsing(reply) or after_parsing(read_plain(text, self.alphabet), text)


@dataclass(frozen=True)
class JsonForm:
    """One JSON object."""

    fields: f.Fields
    constraints: tuple[Constraint, ...] = _ANY_JSON

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return f.json_instruction(self.fields)

    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the object."""
        return f.json_schema(self.fields)

    def grammar(self) -> str | None:
        """The GBNF of the object."""
        return f.json_grammar(self.fields)

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {"form": "json", "schema": self.schema()}

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        text = reply.text or ""
        return before_parsing(reply) or after_parsing(read_json(text, self.fields), text)


@dataclass(frozen=True)
class XmlForm:
    """One XML element."""

    fields: f.Fields
    root: str = ROOT
    constraints: tuple[Constraint, ...] = ("none", "grammar")

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return f.xml_instruction(self.fields, self.root)

    def schema(self) -> dict[str, Any] | None:
        """None: an element is no JSON object."""
        return None

    def grammar(self) -> str | None:
        """The GBNF of the element."""
        return f.xml_grammar(self.fields, self.root)

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {"form": "xml", "root": self.root, "fields": f.json_schema(self.fields)}

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        text = reply.text or ""
        return before_parsing(reply) or after_parsing(read_xml(text, self.fields, self.root), text)


@dataclass(frozen=True)
class TextForm:
    """Free text that another step is shown, such as a checklist. Valid if there is any."""

    words: str
    gbnf: str | None = None
    """What a grammar constraint holds it to; it is free under every other."""
    constraints: tuple[Constraint, ...] = _ANY_JSON

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return self.words

    def schema(self) -> dict[str, Any] | None:
        """None: the text is free."""
        return None

    def grammar(self) -> str | None:
        """The GBNF of the text, if it has one."""
        return self.gbnf

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {"form": "text"}

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        settled = before_parsing(reply)
        if settled is not None:
            return settled
        text = reply.text or ""
        rest = without_reasoning(text)
        if rest is None:
            return truncated("unclosed_reasoning")
        if not outer_stripped(rest):
            return Parsed("empty", reason="only_reasoning")
        refused = after_parsing(Parsed("malformed"), rest)
        return refused if refused.outcome == "refusal" else Parsed("valid")


@dataclass(frozen=True)
class LikelihoodForm:
    """The first token's log-probabilities; the reply stops after it."""

    alphabet: Alphabet
    label_bias: Mapping[str, float] = field(default_factory=dict)
    words: str = ""
    constraints: tuple[Constraint, ...] = ("none", "grammar")

    @property
    def instruction(self) -> str:
        """What the prompt says about the form."""
        return self.words or f"Reply with {self.alphabet.in_words()} and nothing else."

    def schema(self) -> dict[str, Any] | None:
        """None: a label is no JSON object."""
        return None

    def grammar(self) -> str | None:
        """The GBNF of one bare label."""
        return f.label_grammar(self.alphabet)

    def describe(self) -> dict[str, Any]:
        """What is part of the instrument's identity."""
        return {
            "form": "first_token_logprobs",
            "labels": list(self.alphabet.labels),
            "label_bias": dict(sorted(self.label_bias.items())),
        }

    def read(self, reply: Reply) -> Parsed:
        """Return what the reply states. Never raises."""
        settled = before_parsing(reply, cap_is_planned=True)
        # The token may be white space to the tokenizer's mind; its probabilities are there all the same.
        if settled is not None and not (settled.outcome == "empty" and reply.logprobs):
            return settled
        return read_first_token(reply.logprobs, self.alphabet, self.label_bias)
