"""Which judges read which pairs, with which protocols, in which orders, how often and how.

What is set here (but for the road to a judge and how calls are asked, which are in
:mod:`judge_calibration.options.asking`) is part of an instrument's identity or of its cells: change it and
it is another instrument, whose sentinel set has to be run again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from judge_calibration.options.asking import AskingOptions, TransportOptions
from judge_calibration.options.base import Options

Constraint = Literal["none", "json_object", "json_schema", "grammar"]
"""How a reply's form is enforced while it is decoded.

``none``
    The prompt asks for the form; the parser says whether it was kept.
``json_object``
    Any JSON object (the provider's JSON mode).
``json_schema``
    An object of the protocol's own schema.
``grammar``
    A text of the protocol's own grammar (GBNF), for servers and models that take one.
"""

Order = Literal["AB", "BA"]
"""Which candidate is shown first: ``AB`` the pair's first, ``BA`` its second."""

Reduction = Literal["first_read", "majority"]
"""How repetitions become one verdict: the first repetition, or the majority (an even split is unresolved)."""

SourceAccess = Literal["none", "packet"]
"""Whether a judge is shown a pair's source packet, where the pair has one."""

Setting = Literal["temperature", "seed", "top_p", "max_tokens", "reasoning_effort", "top_logprobs"]
"""A decoding setting that a provider may refuse to take."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:+/@-]*$"


class Criterion(Options):
    """One criterion of a rubric: its key in replies and what it means."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    description: str = Field(min_length=1, max_length=2000)


class Example(Options):
    """One solved pair, shown before the question by protocols that take examples."""

    question: str = Field(min_length=1)
    first: str = Field(min_length=1)
    second: str = Field(min_length=1)
    label: str = Field(min_length=1)
    """The right answer in shown labels: ``A`` is the candidate shown first."""
    attribute: str | None = None
    """For the attribute probe: the attribute that was asked for."""


class ProtocolUse(Options):
    """A protocol as one judge uses it. A bare name is short for ``{name: ...}``."""

    name: str = Field(pattern=_NAME)
    """A protocol of the project, or the name in a prompt file named in `prompt_files`."""
    constraints: tuple[Constraint, ...] = ("none",)
    """Each is an instrument of its own."""
    max_tokens: int | None = Field(default=None, ge=1, le=131_072)
    """Cap of a reply; null: the judge's cap, else the protocol's own."""
    system_prompt: str | None = None
    """In place of the judge's and the protocol's system prompt."""
    temperatures: tuple[float | None, ...] | None = None
    """In place of the judge's."""
    repetitions: int | None = Field(default=None, ge=1, le=10_000)
    """In place of the judge's."""
    criteria: str | None = None
    """For geval and flask: the name of a set in `criteria_sets`."""
    variant: str | None = None
    """For geval: ``overall`` or ``per_criterion`` scores; for attribute: ``stated`` or ``likelihood``."""
    examples: str | None = None
    """For likelihood and attribute: the name of a set in `example_sets`."""
    label_bias: dict[str, float] = Field(default_factory=dict)
    """For readings of log-probabilities: natural-log units taken off each shown label's log-probability."""

    @field_validator("constraints")
    @classmethod
    def _some_constraint_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return _distinct(values, "constraints")

    @field_validator("temperatures")
    @classmethod
    def _temperatures_in_range(
        cls, values: tuple[float | None, ...] | None
    ) -> tuple[float | None, ...] | None:
        return None if values is None else _temperatures(values)


class Weights(Options):
    """What is known of weights that one serves oneself. All of it is part of the instrument."""

    file_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    quantisation: str | None = None
    runtime: str | None = None
    runtime_version: str | None = None
    adapter_sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")


class JudgeSpec(Options):
    """One judge: a model, how it is reached, and what it is asked to do."""

    judge_id: str = Field(pattern=_NAME, max_length=120)
    """The judge's name in tables and reports."""
    model: str = Field(min_length=1)
    """The model's name as litellm spells it, e.g. ``openai/gpt-5.2-2026-01-15``."""
    served_model: str | None = None
    """The id that the server is expected to give back; null: the part of `model` after the provider."""
    protocols: tuple[ProtocolUse, ...] = Field(min_length=1)
    temperatures: tuple[float | None, ...] = (0.0,)
    """Each makes one cell; null where the model cannot set one (name it in `not_settable`)."""
    repetitions: int = Field(default=1, ge=1, le=10_000)
    orders: tuple[Order, ...] = ("AB", "BA")
    max_tokens: int | None = Field(default=None, ge=1, le=131_072)
    """Cap of a reply; null: the protocol's own."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    system_prompt: str | None = None
    """In place of the protocols' system prompts; empty: no system message."""
    not_settable: tuple[Setting, ...] = ()
    """Settings that the provider cannot take: recorded, never sent."""
    source_access: SourceAccess | None = None
    """Null: the run's policy."""
    serving: str | None = None
    """A declared label of how the model is served (batch size, hardware); part of the instrument."""
    weights: Weights | None = None
    """For weights that one serves oneself; for the embedded model it is found out."""
    transport: TransportOptions = TransportOptions()

    @field_validator("protocols", mode="before")
    @classmethod
    def _names_are_uses(cls, values: Any) -> Any:
        if isinstance(values, (list, tuple)):
            return tuple({"name": value} if isinstance(value, str) else value for value in values)
        return values

    @field_validator("temperatures")
    @classmethod
    def _temperatures_in_range(cls, values: tuple[float | None, ...]) -> tuple[float | None, ...]:
        return _temperatures(values)

    @field_validator("orders")
    @classmethod
    def _some_order_once(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return _distinct(values, "orders")

    @model_validator(mode="after")
    def _temperature_is_settable(self) -> JudgeSpec:
        fixed = "temperature" in self.not_settable
        for temperatures in [self.temperatures, *(use.temperatures for use in self.protocols)]:
            if temperatures is None:
                continue
            if fixed and any(value is not None for value in temperatures):
                raise ValueError(
                    f"judge {self.judge_id} cannot set a temperature (not_settable), yet one is asked for; "
                    "write temperatures: [null]"
                )
            if not fixed and None in temperatures:
                raise ValueError(
                    f"judge {self.judge_id} has a null temperature, which leaves it to the provider; "
                    "give a number, or name temperature in not_settable"
                )
        return self


class JudgingOptions(Options):
    """The parameters of the pipeline `judging`."""

    judges: tuple[JudgeSpec, ...] = Field(min_length=1)
    marker_salt: str = Field(default="judge-calibration", min_length=1)
    """Key of the markers that fence candidates off; give each project its own, kept from candidates."""
    reduction: Reduction = "first_read"
    source_access: SourceAccess = "packet"
    """What judges may see beside the question: nothing, or the pair's source packet where it has one."""
    hierarchy: tuple[str, ...] = (
        "instruction_following",
        "correctness",
        "evidence_support",
        "completeness",
        "style",
    )
    """The order in which `decomposed` weighs its five assessments: the first that is not a tie decides."""
    criteria_sets: dict[str, tuple[Criterion, ...]] = Field(default_factory=dict)
    """Sets of criteria beside, or in place of, the two that come along (correctness_first,
    instruction_first)."""
    example_sets: dict[str, tuple[Example, ...]] = Field(default_factory=dict)
    prompt_files: tuple[str, ...] = ()
    """YAML files of one's own prompts, each a protocol; paths from the project's root."""
    asking: AskingOptions = AskingOptions()

    @field_validator("hierarchy")
    @classmethod
    def _all_five(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        known = {"instruction_following", "correctness", "evidence_support", "completeness", "style"}
        if set(values) != known or len(values) != len(known):
            raise ValueError(
                f"the hierarchy holds each of {', '.join(sorted(known))} once; got {list(values)}"
            )
        return values

    @field_validator("criteria_sets")
    @classmethod
    def _criteria_once(cls, sets: dict[str, tuple[Criterion, ...]]) -> dict[str, tuple[Criterion, ...]]:
        for name, criteria in sets.items():
            _distinct(tuple(criterion.name for criterion in criteria), f"criteria_sets.{name}")
        return sets

    @model_validator(mode="after")
    def _judges_once(self) -> JudgingOptions:
        repeated = [name for name, n in Counter(judge.judge_id for judge in self.judges).items() if n > 1]
        if repeated:
            raise ValueError(f"judge_id has to be unique; repeated: {', '.join(sorted(repeated))}")
        return self

    def judge(self, judge_id: str) -> JudgeSpec:
        """Return the judge of that name.

        Raises
        ------
        KeyError
            If no judge has it.
        """
        for judge in self.judges:
            if judge.judge_id == judge_id:
                return judge
        raise KeyError(judge_id)


def _distinct(values: tuple[str, ...], name: str) -> tuple[str, ...]:
    if not values:
        raise ValueError(f"{name} is empty; give at least one")
    repeated = [value for value, n in Counter(values).items() if n > 1]
    if repeated:
        raise ValueError(f"{name} names {', '.join(map(str, repeated))} twice")
    return values


def _temperatures(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
    if not values or len(set(values)) != len(values):
        raise ValueError(f"temperatures has to hold at least one value, each once; got {list(values)}")
    outside = [value for value in values if value is not None and not 0 <= value <= 2]
    if outside:
        raise ValueError(f"a temperature lies between 0 and 2; got {outside}")
    # -0.0 and 0.0 are one temperature and must have one hash.
    return tuple(None if value is None else value + 0.0 for value in values)
