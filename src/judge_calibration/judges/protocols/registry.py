"""From the parameters to protocols."""

from __future__ import annotations

from collections.abc import Sequence

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.protocols.attribute import attribute
from judge_calibration.judges.protocols.base import Protocol
from judge_calibration.judges.protocols.lab import decomposed, holistic, reference_first
from judge_calibration.judges.protocols.own import load_own_prompt
from judge_calibration.judges.protocols.pairwise import FORMATS, likelihood, pairwise
from judge_calibration.judges.protocols.rubric import CRITERIA_SETS, flask, geval, pointwise
from judge_calibration.options.judging import Criterion, Example, JudgingOptions, ProtocolUse

PROTOCOL_NAMES = (
    *FORMATS,
    "holistic",
    "decomposed",
    "reference_first",
    "geval",
    "flask",
    "pointwise",
    "likelihood",
    "attribute",
)
"""The protocols that come along."""

_TAKES = {
    "criteria": ("geval", "flask"),
    "variant": ("geval", "attribute"),
    "examples": ("likelihood", "attribute"),
    "label_bias": ("likelihood", "attribute"),
}
_VARIANTS = {"geval": ("overall", "per_criterion"), "attribute": ("stated", "likelihood")}


def load_own_prompts(options: JudgingOptions) -> dict[str, Protocol]:
    """Return the protocols of the prompt files by their names.

    Raises
    ------
    OptionsError
        With the problems of all files together.
    """
    problems: list[Problem] = []
    loaded: dict[str, Protocol] = {}
    for path in options.prompt_files:
        try:
            protocol = load_own_prompt(path)
        except OptionsError as error:
            problems += error.problems
            continue
        if protocol.name in PROTOCOL_NAMES or protocol.name in loaded:
            problems.append(Problem(f"{path}, key name", protocol.name, "a name that is not taken"))
        loaded[protocol.name] = protocol
    if problems:
        raise OptionsError(
            "Prompt files cannot be used.", problems, "docs/own-prompt.md shows a file from empty to working"
        )
    return loaded


def build_protocol(
    use: ProtocolUse,
    options: JudgingOptions,
    own: dict[str, Protocol] | None = None,
    where: str = "protocols",
) -> Protocol:
    """Return the protocol that `use` names, made with its criteria, variant and examples.

    Raises
    ------
    OptionsError
        If the name is unknown, or something is set that the protocol does not take.
    """
    own = load_own_prompts(options) if own is None else own
    problems = _misfits(use, options, own, where)
    if problems:
        raise OptionsError(f"The protocol {use.name} cannot be used as it is set.", problems, "correct them")
    if use.name in own:
        return own[use.name]
    if use.name in FORMATS:
        return pairwise(use.name)
    variant = use.variant or _VARIANTS.get(use.name, ("",))[0]
    if use.name == "likelihood":
        return likelihood(_examples(use, options), use.label_bias)
    if use.name == "attribute":
        return attribute(variant, _examples(use, options), use.label_bias)
    if use.name == "geval":
        return geval(_criteria(use, options), variant)
    if use.name == "flask":
        return flask(_criteria(use, options))
    if use.name == "decomposed":
        return decomposed(options.hierarchy)
    return {"holistic": holistic, "reference_first": reference_first, "pointwise": pointwise}[use.name]()


def _misfits(
    use: ProtocolUse, options: JudgingOptions, own: dict[str, Protocol], where: str
) -> list[Problem]:
    if use.name not in PROTOCOL_NAMES and use.name not in own:
        names = ", ".join([*PROTOCOL_NAMES, *own])
        return [Problem(where, repr(use.name), f"one of {names}, or a name from a file in prompt_files")]
    problems = [
        Problem(
            f"{where}, {use.name}.{setting}",
            repr(getattr(use, setting)),
            f"set for {' and '.join(takers)} only",
        )
        for setting, takers in _TAKES.items()
        if getattr(use, setting) and use.name not in takers
    ]
    variants = _VARIANTS.get(use.name, ())
    if use.variant and variants and use.variant not in variants:
        problems.append(
            Problem(f"{where}, {use.name}.variant", repr(use.variant), f"one of {', '.join(variants)}")
        )
    sets = {**CRITERIA_SETS, **options.criteria_sets}
    if use.criteria and use.criteria not in sets:
        problems.append(
            Problem(f"{where}, {use.name}.criteria", repr(use.criteria), f"one of {', '.join(sets)}")
        )
    elif use.criteria and not sets[use.criteria]:
        problems.append(Problem(f"criteria_sets.{use.criteria}", "no criterion", "at least one"))
    if use.examples and use.examples not in options.example_sets:
        known = ", ".join(options.example_sets) or "none is declared"
        problems.append(
            Problem(f"{where}, {use.name}.examples", repr(use.examples), f"a name in example_sets ({known})")
        )
    return problems


def _criteria(use: ProtocolUse, options: JudgingOptions) -> Sequence[Criterion]:
    return {**CRITERIA_SETS, **options.criteria_sets}[use.criteria or "correctness_first"]


def _examples(use: ProtocolUse, options: JudgingOptions) -> Sequence[Example]:
    return options.example_sets[use.examples] if use.examples else ()
