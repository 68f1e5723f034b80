"""The five pairwise formats and the reading of log-probabilities: one call, one of two labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge_calibration.judges.parsing.alphabet import FORCED
from judge_calibration.judges.parsing.fields import Fields, LabelField, TextField
from judge_calibration.judges.parsing.forms import Form, JsonForm, LikelihoodForm, PlainForm, XmlForm
from judge_calibration.judges.prompts import load_prompts
from judge_calibration.judges.protocols.base import Protocol, Step, fill
from judge_calibration.options.judging import Example

WINNER = LabelField("winner", FORCED)
RATIONALE = TextField("rationale", "your reasons in at most 120 words")

_VERDICT_FIRST: Fields = (WINNER, RATIONALE)
_REASONS_FIRST: Fields = (RATIONALE, WINNER)

_ONE_LETTER = "Reply with one letter and nothing else: A if answer A is better, B if answer B is better."
_FORMS: dict[str, tuple[Form, int]] = {
    "direct": (PlainForm(FORCED, _ONE_LETTER), 16),
    "json_verdict_first": (JsonForm(_VERDICT_FIRST), 512),
    "json_cot": (JsonForm(_REASONS_FIRST), 512),
    "xml_verdict_first": (XmlForm(_VERDICT_FIRST), 512),
    "xml_cot": (XmlForm(_REASONS_FIRST), 512),
}
FORMATS = tuple(_FORMS)


def system_prompt(family: str, name: str, texts: Mapping[str, str] | None = None) -> str:
    """Return a system prompt with the rule about data in it."""
    rule = load_prompts("pairwise")["data_rule"]
    return fill(load_prompts(family)[name], {"data_rule": rule, **(texts or {})})


def pairwise(name: str) -> Protocol:
    """Return one of the five formats.

    Examples
    --------
    >>> pairwise("json_cot").steps[0].form.schema()["required"]
    ['rationale', 'winner']
    """
    form, cap = _FORMS[name]
    user = load_prompts("pairwise")["direct" if name == "direct" else "structured"]
    return Protocol(
        name, FORCED, system_prompt("pairwise", "system"), (Step("verdict", user, form, max_tokens=cap),)
    )


def likelihood(examples: Sequence[Example] = (), label_bias: Mapping[str, float] | None = None) -> Protocol:
    """Return the protocol that reads the verdict from the first answer token's log-probabilities."""
    form = LikelihoodForm(FORCED, dict(label_bias or {}), _ONE_LETTER)
    user = "{examples}\n" + load_prompts("pairwise")["direct"]
    step = Step(
        "verdict",
        user,
        form,
        max_tokens=1,
        texts=(("examples", show_examples(examples)),),
        top_logprobs=5,
    )
    return Protocol("likelihood", FORCED, system_prompt("pairwise", "system"), (step,))


def show_examples(examples: Sequence[Example]) -> str:
    """Return solved pairs as text, or an empty text for none."""
    shown = []
    for number, example in enumerate(examples, start=1):
        asked = f"\nThe property: {example.attribute}" if example.attribute else ""
        shown.append(
            f"Example {number}\nQuestion: {example.question}\nAnswer A: {example.first}\n"
            f"Answer B: {example.second}{asked}\nReply: {example.label}\n"
        )
    return "\n".join(shown)
