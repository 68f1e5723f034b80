"""Schemas and grammars follow from the same fields as instruction and reading."""

from __future__ import annotations

import json
import random
import re

import pytest

from judge_calibration.judges.parsing.alphabet import LAB, PROBE
from judge_calibration.judges.parsing.fields import in_declared_order, json_schema
from judge_calibration.judges.parsing.forms import JsonForm, PlainForm
from judge_calibration.judges.parsing.replies import Reply
from judge_calibration.judges.protocols.attribute import attribute
from judge_calibration.judges.protocols.lab import decomposed, holistic, reference_first
from judge_calibration.judges.protocols.pairwise import FORMATS, pairwise
from judge_calibration.judges.protocols.rubric import CRITERIA_SETS, flask, geval, pointwise
from judge_calibration.text import canonical_json

CRITERIA = CRITERIA_SETS["instruction_first"]
STEPS = {
    f"{protocol.name}-{protocol.rubric.get('variant', '')}-{step.name}": step
    for protocol in [
        *(pairwise(name) for name in FORMATS),
        holistic(),
        decomposed(),
        reference_first(),
        geval(CRITERIA),
        geval(CRITERIA, "per_criterion"),
        flask(CRITERIA),
        pointwise(),
        attribute(),
    ]
    for step in protocol.steps
}


class Grammar:
    """The part of GBNF that the project writes: literals, classes, groups, rules, counts; drawn at random."""

    token = re.compile(
        r'\s*(?:(?P<literal>"(?:\\.|[^"\\])*")|(?P<set>\[(?:\\.|[^\]\\])*\])|(?P<name>[a-z][a-z0-9]*)'
        r"|(?P<mark>[()|?*])|\{(?P<low>\d+),(?P<high>\d+)\})"
    )

    def __init__(self, text, rng):
        self.rng = rng
        self.rules = {}
        for line in text.split("\n"):
            name, body = line.split(" ::= ", 1)
            self.rules[name] = self.tokens(body)

    def tokens(self, body):
        out, position = [], 0
        while position < len(body.rstrip()):
            match = self.token.match(body, position)
            assert match, body[position:]
            out.append(match)
            position = match.end()
        return out

    def draw(self, name="root"):
        text, rest = self.choice(self.rules[name])
        assert not rest
        return text

    def choice(self, tokens):
        options = []
        while True:
            text, tokens = self.sequence(tokens)
            options.append(text)
            if not tokens or tokens[0]["mark"] != "|":
                return self.rng.choice(options), tokens
            tokens = tokens[1:]

    def sequence(self, tokens):
        text = ""
        while tokens and tokens[0]["mark"] not in ("|", ")"):
            start = tokens
            part, tokens = self.one(start)
            low, high = 1, 1
            if tokens and tokens[0]["low"]:
                low, high, tokens = int(tokens[0]["low"]), int(tokens[0]["high"]), tokens[1:]
            elif tokens and tokens[0]["mark"] == "?":
                low, high, tokens = 0, 1, tokens[1:]
            times = self.rng.randint(low, min(high, low + 6))
            text += "".join(self.one(start)[0] for _ in range(times)) if (low, high) != (1, 1) else part
        return text, tokens

    def one(self, tokens):
        first, rest = tokens[0], tokens[1:]
        if first["literal"]:
            return json.loads(first["literal"]), rest
        if first["set"]:
            excluded = first["set"].startswith("[^")
            pool = "abcXYZ 019.,'" if excluded else "".join(chr(c) for c in range(32, 127))
            inside = re.compile(first["set"])
            return self.rng.choice([c for c in pool if inside.fullmatch(c)]), rest
        if first["name"]:
            return self.draw(first["name"]), rest
        text, rest = self.choice(rest)
        assert rest[0]["mark"] == ")"
        return text, rest[1:]


@pytest.mark.parametrize("name", STEPS)
def test_what_a_grammar_allows_is_always_valid(name):
    rng = random.Random(name)
    form = STEPS[name].form
    for _ in range(60):
        text = Grammar(form.grammar(), rng).draw()
        parsed = form.read(Reply(text, "stop"))
        assert parsed.outcome == "valid", (text, parsed)
        assert not parsed.flags
        assert parsed.path in ("strict", None)


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if isinstance(step.form, JsonForm)])
def test_a_schema_keeps_the_order_of_its_fields_through_canonical_json(name):
    form = STEPS[name].form
    schema = json.loads(canonical_json(form.schema()))
    assert list(in_declared_order(schema)["properties"]) == [field.name for field in form.fields]
    assert schema["additionalProperties"] is False


def test_verdict_first_and_reasons_first_differ_in_the_schema():
    first, last = (
        list(
            in_declared_order(json.loads(canonical_json(json_schema(pairwise(name).steps[0].form.fields))))[
                "properties"
            ]
        )
        for name in ("json_verdict_first", "json_cot")
    )
    assert first == last[::-1] == ["winner", "rationale"]


@pytest.mark.parametrize("alphabet", [LAB, PROBE])
def test_every_label_is_asked_for_and_read(alphabet):
    form = PlainForm(alphabet)
    for label, meaning in alphabet.labels.items():
        assert label in form.instruction
        assert form.read(Reply(label)).values["winner"] is meaning
