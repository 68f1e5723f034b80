"""The decision rule's identity: its hash, whether it may be used, and whether it came before the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import ValidationError

from judge_calibration.errors import Problem, RuleRefusedError
from judge_calibration.options.gates import DecisionRule
from judge_calibration.text import sha256_of

RuleStatus = Literal["declared", "rule_changed_after_judging", "exploratory", "not_recorded"]
"""``declared``: the hash recorded when judging started is this rule's. ``rule_changed_after_judging``:
another one was. ``exploratory``: the verdicts are older than the rule (replayed logs). ``not_recorded``:
judging started without a rule."""

STATUS_TEXT: dict[RuleStatus, str] = {
    "declared": "the rule was declared before judging",
    "rule_changed_after_judging": "rule_changed_after_judging",
    "exploratory": "rule_after_verdicts: exploratory",
    "not_recorded": "rule_not_recorded_at_judging: exploratory",
}

EXAMPLE = "EXAMPLE"


def read_rule(values: Mapping[str, Any]) -> DecisionRule:
    """Return the rule that a parameters file holds.

    Parameters
    ----------
    values : mapping
        The file's content.

    Raises
    ------
    RuleRefusedError
        With every problem of the file.
    """
    try:
        return DecisionRule.model_validate(dict(values))
    except ValidationError as error:
        problems = [_problem(dict(item)) for item in error.errors()]
        raise RuleRefusedError(
            "The decision rule cannot be read.", problems, "correct the rule's file and declare it anew"
        ) from error


def _problem(item: Mapping[str, Any]) -> Problem:
    """Return what pydantic found in the project's own form."""
    place = ".".join(map(str, item["loc"]))
    wanted = str(item["msg"]).removeprefix("Value error, ")
    if not place:
        return Problem("decision rule", "a contradiction", wanted)
    found = "nothing" if item["type"] == "missing" else repr(item.get("input"))[:60]
    return Problem(f"decision rule, {place}", found, wanted)


def rule_hash(rule: DecisionRule) -> str:
    """Return the SHA-256 of the rule's canonical JSON; any change of a value changes it."""
    return sha256_of(rule.model_dump(mode="json"))


def check_rule(rule: DecisionRule) -> DecisionRule:
    """Return the rule if a gate may use it.

    Raises
    ------
    RuleRefusedError
        If it is the shipped example: its floors are nobody's decision.
    """
    if rule.name.strip().upper().startswith(EXAMPLE):
        raise RuleRefusedError(
            f"The decision rule '{rule.name}' is the shipped example.",
            [Problem("decision rule, name", rule.name, "a name of your own, with floors that you chose")],
            "copy the example, choose every floor and margin, rename it, and start judging with it",
        )
    return rule


def rule_status(rule: DecisionRule, recorded_hash: str | None, replayed: bool = False) -> RuleStatus:
    """Return whether the rule came before the verdicts.

    Parameters
    ----------
    rule : DecisionRule
        The rule that is applied now.
    recorded_hash : str or None
        The hash in the manifest of the judging run; None if there was no rule.
    replayed : bool
        Whether the verdicts were imported from logs, and so are older than any rule here.
    """
    if replayed:
        return "exploratory"
    if recorded_hash is None:
        return "not_recorded"
    return "declared" if recorded_hash == rule_hash(rule) else "rule_changed_after_judging"
