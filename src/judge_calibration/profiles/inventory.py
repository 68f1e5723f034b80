"""The attribute inventory: what may be read of an answer, and the checks that its file has to pass."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge_calibration.errors import Problem, ProblemsError

_FIELDS = ("name", "family", "origin", "definition", "more", "not")
_ORIGINS = ("paper", "ours")
_KEYS = ("judge_id", "pair_id", "mark")


class InventoryError(ProblemsError):
    """The attribute inventory cannot be used as it stands."""


@dataclass(frozen=True)
class Attribute:
    """One attribute of an answer; more of it is never the same as better.

    Attributes
    ----------
    name : str
        Unique, lower case.
    family : str
        One of the inventory's families.
    origin : {"paper", "ours"}
        Whether the name stands in the JudgeProfile paper; the wording is this project's in both cases.
    definition, more, not_ : str
        A sentence each: what it is, what more of it looks like, what it must not be taken for.
    """

    name: str
    family: str
    origin: str
    definition: str
    more: str
    not_: str


def column_name(attribute: str) -> str:
    """Return an attribute's name as tables hold it: spaces and hyphens as underscores.

    Examples
    --------
    >>> column_name("list structure")
    'list_structure'
    """
    return attribute.replace(" ", "_").replace("-", "_")


def read_inventory(content: Mapping[str, Any], where: str = "attribute inventory") -> tuple[Attribute, ...]:
    """Return the attributes of an inventory file in their order.

    Parameters
    ----------
    content : mapping
        The parsed YAML: ``families`` (name to description) and ``attributes`` (a list of mappings).
    where : str
        How to call the file in messages.

    Raises
    ------
    InventoryError
        With every problem: missing or unknown fields, unknown families, repeated names, names that differ
        by spelling or word order only, definitions that are the same sentence.

    Examples
    --------
    >>> entry = {"name": "depth", "family": "f", "origin": "ours", "definition": "How deep it goes."}
    >>> entry |= {"more": "It goes deep.", "not": "Not length."}
    >>> read_inventory({"families": {"f": "x"}, "attributes": [entry]})[0].name
    'depth'
    """
    problems: list[Problem] = []
    families = _part(content, "families", dict, "a mapping of names to descriptions", where, problems)
    entries = _part(content, "attributes", list, "a list of attributes", where, problems)
    if not entries:
        problems.append(Problem(f"{where}, attributes", "none", "at least one attribute"))
    attributes: list[Attribute] = []
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, Mapping):
            wanted = f"a mapping with the fields {', '.join(_FIELDS)}"
            problems.append(Problem(f"{where}, attribute {number}", repr(entry)[:60], wanted))
            continue
        place = f"{where}, attribute {number} ({entry.get('name', 'no name')})"
        for name in _FIELDS:
            value = entry.get(name)
            if not isinstance(value, str) or not value.strip():
                problems.append(Problem(f"{place}, field {name}", repr(value), "a text"))
        given = str(entry.get("name", ""))
        if given != given.strip().lower() or column_name(given) in _KEYS:
            problems.append(
                Problem(f"{place}, field name", repr(given), "lower case, and no column of reads")
            )
        for name in sorted(map(str, set(entry) - set(_FIELDS))):
            problems.append(Problem(f"{place}, field {name}", "an unknown field", ", ".join(_FIELDS)))
        if not isinstance(entry.get("family"), str) or entry["family"] not in families:
            problems.append(
                Problem(
                    f"{place}, field family",
                    repr(entry.get("family")),
                    "one of " + ", ".join(map(str, families)),
                )
            )
        if entry.get("origin") not in _ORIGINS:
            problems.append(
                Problem(f"{place}, field origin", repr(entry.get("origin")), " or ".join(_ORIGINS))
            )
        attributes.append(Attribute(*(str(entry.get(name, "")) for name in _FIELDS)))
    problems += _synonym_problems(attributes, where)
    if problems:
        raise InventoryError(
            f"{where}: {len(problems)} problems.",
            problems,
            "edit the file; each attribute needs a name of its own",
        )
    return tuple(attributes)


def _part(content: Any, name: str, kind: type, wanted: str, where: str, problems: list[Problem]) -> Any:
    """Return a part of the file; an empty one, with a problem, where it is something else."""
    found = content.get(name) if isinstance(content, Mapping) else content
    if found is None or isinstance(found, kind):
        return found or kind()
    problems.append(Problem(f"{where}, {name}", type(found).__name__, wanted))
    return kind()


def _words(text: str) -> tuple[str, ...]:
    return tuple(sorted(re.findall(r"[^\W_]+", text.casefold())))


def _synonym_problems(attributes: list[Attribute], where: str) -> list[Problem]:
    problems = []
    for later, second in enumerate(attributes):
        for first in attributes[:later]:
            place = f"{where}, attributes {first.name!r} and {second.name!r}"
            same_words = _words(first.name) == _words(second.name)
            near = difflib.SequenceMatcher(None, first.name.casefold(), second.name.casefold()).ratio() >= 0.9
            if same_words or near:
                problems.append(
                    Problem(place, "the same or nearly the same name", "names that differ in meaning")
                )
            elif _words(first.definition) == _words(second.definition):
                problems.append(Problem(place, "the same definition", "a definition of its own"))
    return problems
