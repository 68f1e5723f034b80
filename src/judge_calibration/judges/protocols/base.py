"""What a protocol is: steps that show a pair, the form of each reply, and how replies make a judgment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judge_calibration.judges.parsing.alphabet import Alphabet, Meaning
from judge_calibration.judges.parsing.forms import Form
from judge_calibration.judges.parsing.replies import Parsed

Shows = Literal["pair", "task", "answer_a", "answer_b"]
"""What a step shows of a pair.

``pair``
    The question and both candidates, in an order.
``task``
    The question only (and the source packet); no candidate.
``answer_a``, ``answer_b``
    The question and one candidate, by identity.
"""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Step:
    """One call of a judgment.

    Attributes
    ----------
    name : str
        The value of the column `step`.
    user : str
        Template of the user message. Names in braces are replaced in one pass; braces around anything else
        stay as they are, and what is put in is never looked at again.
    form : Form
        How the reply is asked for and read.
    shows : str
        What the step shows of the pair. Only a step that shows the pair depends on the order.
    repeated : bool
        Whether it is asked anew in every repetition.
    max_tokens : int
        Cap of the reply unless the parameters say otherwise.
    after : str or None
        A step that is asked before, whose answer stands in place of ``{checklist}``.
    texts : tuple of (str, str)
        Fixed texts for further placeholders.
    top_logprobs : int
        How many alternatives of each token are asked for.
    system : str or None
        A system prompt of its own; None: the protocol's.
    """

    name: str
    user: str
    form: Form
    shows: Shows = "pair"
    repeated: bool = True
    max_tokens: int = 16
    after: str | None = None
    texts: tuple[tuple[str, str], ...] = ()
    top_logprobs: int = 0
    system: str | None = None

    @property
    def kind(self) -> str:
        """The step's name in a call's id: the same for both answers of a pair scored alone."""
        return "answer" if self.shows in ("answer_a", "answer_b") else self.name

    @property
    def ordered(self) -> bool:
        """Whether the step depends on which candidate is shown first."""
        return self.shows == "pair"


@dataclass(frozen=True)
class Judgment:
    """What one judgment says, in shown positions (or, for steps without an order, by identity).

    Attributes
    ----------
    outcome : str
        That of the first failed step, else ``valid``.
    winner : Meaning or None
        ``FIRST`` and ``SECOND`` are the shown positions; None unless valid.
    by_identity : bool
        Whether first and second mean the pair's own first and second instead.
    scores : mapping or None
        May hold meanings as keys and values; they are mapped back to identity with the winner.
    """

    outcome: str
    winner: Meaning | None = None
    by_identity: bool = False
    scores: Mapping[Any, Any] | None = None
    confidence: float | None = None
    logprob_confidence: float | None = None
    reason_codes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    path: str | None = None
    magnitude: float | None = None


@dataclass(frozen=True)
class Protocol:
    """A protocol: its system prompt, its steps in the order in which they are asked, and its aggregation.

    The base class reads the verdict from the field ``winner`` of its last step.
    """

    name: str
    alphabet: Alphabet
    system: str
    steps: tuple[Step, ...]
    rubric: Mapping[str, Any] = field(default_factory=dict)
    """Criteria, hierarchy and the like: part of the instrument's identity."""
    probe: bool = False
    """Whether it asks for one attribute at a time, not for a verdict."""
    verdict_field: str = "winner"
    """The field of the last step's reply that holds the verdict."""

    aggregation_version = "1"

    def describe(self) -> dict[str, Any]:
        """Return what is part of the instrument's identity, but for what the judge's parameters set."""
        return {
            "protocol": self.name,
            "user_template": {step.name: step.user for step in self.steps},
            "output_instruction": {step.name: step.form.instruction for step in self.steps},
            "reading": {step.name: step.form.describe() for step in self.steps},
            "fixed_texts": {step.name: dict(step.texts) for step in self.steps if step.texts},
            "step_system_prompt": {step.name: step.system for step in self.steps if step.system is not None},
            "rubric": dict(self.rubric),
            "aggregation": {"class": type(self).__name__, "version": self.aggregation_version},
        }

    def combine(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return the judgment that the steps' valid replies make. Called only when all are valid."""
        last = parsed[self.steps[-1].name]
        return judgment_of(last, field=self.verdict_field)

    def judge(self, parsed: Mapping[str, Parsed]) -> Judgment:
        """Return the judgment of one reply a step: that of the first failed step, else the combined one."""
        for step in self.steps:
            if parsed[step.name].outcome != "valid":
                return Judgment(parsed[step.name].outcome, flags=flags_of(parsed))
        return self.combine(parsed)


def judgment_of(parsed: Parsed, flags: tuple[str, ...] = (), field: str = "winner") -> Judgment:
    """Return the judgment that one valid reply states by itself."""
    values = parsed.values
    return Judgment(
        "valid",
        values["winner"] if "winner" in values else values[field],
        scores={"label_logprobs": values["label_logprobs"]} if "label_logprobs" in values else None,
        confidence=values.get("confidence"),
        logprob_confidence=values.get("logprob_confidence"),
        reason_codes=tuple(values.get("reason_codes") or ()),
        flags=(*parsed.flags, *flags),
        path=parsed.path,
        magnitude=values.get("magnitude"),
    )


def flags_of(parsed: Mapping[str, Parsed]) -> tuple[str, ...]:
    """Return the flags of all steps, each once, with the reason of those that failed."""
    flags = [flag for one in parsed.values() for flag in one.flags]
    reasons = [one.reason for one in parsed.values() if one.reason is not None]
    return tuple(dict.fromkeys([*flags, *reasons]))


def weakest_path(parsed: Mapping[str, Parsed]) -> str | None:
    """Return the least strict of the ways in which the steps' objects were found."""
    ranks = ("embedded", "fenced", "strict")
    paths = {one.path for one in parsed.values()}
    return next((rank for rank in ranks if rank in paths), None)


def fill(template: str, texts: Mapping[str, str]) -> str:
    r"""Return the template with its placeholders replaced, in one pass.

    A placeholder alone on its line takes the line with it when its text is empty. Braces around any other
    word, and every brace in what is put in, stay as they are.

    Examples
    --------
    >>> fill('{question} {"winner": {answer_a}}', {"question": "{answer_a}?", "answer_a": "x"})
    '{answer_a}? {"winner": x}'
    >>> fill("a\n{sources}\nb", {"sources": ""})
    'a\nb'
    """
    lines = []
    for line in template.split("\n"):
        alone = _PLACEHOLDER.fullmatch(line.strip())
        if alone and texts.get(alone[1]) == "":
            continue
        lines.append(_PLACEHOLDER.sub(lambda match: texts[match[1]] if match[1] in texts else match[0], line))
    return "\n".join(lines)


def placeholders(template: str) -> set[str]:
    """Return the names in braces that a template holds."""
    return set(_PLACEHOLDER.findall(template))
