"""What a parameter model refuses, in the words of this project: what was found, and what is wanted.

Files of parameters, layouts, prompts and reviews are all checked by pydantic models; this is the one place
that translates pydantic's faults, with a suggestion where a name is nearly right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from judge_calibration.errors import Problem

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "names and their values (name: value)",
    "mapping": "names and their values (name: value)",
    "model": "names and their values (name: value)",
    "dataclass": "names and their values (name: value)",
    "none": "null",
    "finite": "a number that is not NaN or infinity",
    "date": "a date",
    "datetime": "a date and a time",
}
_BOUNDS = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "less than {}"),
}
_LONGEST = 80
_MOST_NAMES = 12


class Fault(NamedTuple):
    """One thing that a model refuses.

    Attributes
    ----------
    place : tuple of str
        The names that lead to it; entries of a list by their number, from 0.
    found, wanted : str
        In words.
    """

    place: tuple[str, ...]
    found: str
    wanted: str


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """Return every fault of a refused mapping.

    Parameters
    ----------
    error : pydantic.ValidationError
        What the model raised.
    model : type
        The model, for the names that there are.

    Examples
    --------
    >>> from pydantic import ValidationError
    >>> from judge_calibration.options.data_prep import DataPrepOptions
    >>> try:
    ...     DataPrepOptions.model_validate({"use_bnk": False, "judged": {"size": -1}})
    ... except ValidationError as error:
    ...     for fault in faults_of(error, DataPrepOptions):
    ...         print(".".join(fault.place), "|", fault.found, "|", fault.wanted[:23])
    judged.size | -1 | 0 or more
    use_bnk | an unknown name (did you mean 'use_bank'?) | one of use_bank, privat
    """
    told = _without_consequences(error.errors(include_url=False))
    merged: dict[tuple[str, ...], Fault] = {}
    for one in told:
        place, branch = _place(one["loc"], model)
        fault = Fault(place, _found(one, place, model), _wanted(one, place, model))
        before = merged.get(place) if branch else None
        if before is not None and fault.wanted not in before.wanted:
            # Several forms are allowed here, and none of them fits.
            fault = Fault(place, before.found, f"{before.wanted}, or {fault.wanted}")
        merged[place] = fault if branch or place not in merged else merged[place]
    return list(merged.values())


def problems_of(error: ValidationError, model: type[BaseModel], file: str) -> list[Problem]:
    """Return the faults of a file as problems, each with the file and the key."""
    return [
        Problem(f"{file}, {'.'.join(fault.place)}" if fault.place else file, fault.found, fault.wanted)
        for fault in faults_of(error, model)
    ]


def suggestion(name: str, known: Sequence[str]) -> str:
    """Return ``(did you mean 'x'?)`` with a leading space, or nothing.

    Examples
    --------
    >>> suggestion("temperture", ["temperatures", "judge_id"])
    " (did you mean 'temperatures'?)"
    >>> suggestion("xyz", ["temperatures", "judge_id"])
    ''
    """
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""


def names_of(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    """Return the names that a model knows at a place; none where the place is no block of names.

    Examples
    --------
    >>> from judge_calibration.options.data_prep import DataPrepOptions
    >>> names_of(DataPrepOptions, ["judged"])
    ['size', 'salt', 'sources', 'splits', 'manipulations', 'only_sentinel']
    """
    models = [model]
    for name in place:
        if name.isdigit():
            continue
        inner: list[type[BaseModel]] = []
        for one in models:
            field = one.model_fields.get(name)
            if field is not None:
                inner += _models_in(field.annotation)
        # The key of a mapping of blocks is no field: the blocks are those that were found before it.
        models = inner or ([] if any(name in one.model_fields for one in models) else models)
    return list(dict.fromkeys(name for one in models for name in one.model_fields))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _without_consequences(faults: Sequence[Any]) -> list[Any]:
    """Leave out that a list is too short where that is only because an entry of it is faulty."""
    places = [fault["loc"] for fault in faults]
    return [
        fault
        for fault in faults
        if fault["type"] != "too_short"
        or not any(
            len(place) > len(fault["loc"]) and place[: len(fault["loc"])] == fault["loc"] for place in places
        )
    ]


def _place(loc: Sequence[int | str], model: type[BaseModel]) -> tuple[tuple[str, ...], bool]:
    """Return the names that lead to a fault, and whether pydantic named one of several allowed forms."""
    parts = [str(part) for part in loc]
    kept: list[str] = []
    branch = False
    for depth, part in enumerate(parts):
        names = names_of(model, kept)
        form = part in _KINDS or part in ("str", "literal") or "[" in part or part[:1].isupper()
        if depth and form and part not in names:
            branch = True
            continue
        kept.append(part)
    return tuple(kept), branch


def _found(fault: Mapping[str, Any], place: tuple[str, ...], model: type[BaseModel]) -> str:
    kind = fault["type"]
    if kind == "missing":
        return "nothing"
    if kind == "extra_forbidden":
        return f"an unknown name{suggestion(place[-1], names_of(model, place[:-1]))}"
    shown = repr(fault["input"])
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
    if kind in ("literal_error", "enum") and isinstance(fault["input"], str):
        return shown + suggestion(fault["input"], _choices(fault))
    return shown


def _wanted(fault: Mapping[str, Any], place: tuple[str, ...], model: type[BaseModel]) -> str:
    kind, context = str(fault["type"]), fault.get("ctx") or {}
    if kind == "missing":
        return "a value: it has no default"
    if kind == "extra_forbidden":
        known = names_of(model, place[:-1])
        shown = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
        return f"one of {shown}" if known else "nothing by this name"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return words.format(context.get(key))
    if kind in ("literal_error", "enum"):
        choices = _choices(fault)
        return f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        return f"at least {least} {_unit(kind, least)}"
    if kind in ("too_long", "string_too_long"):
        most = context.get("max_length", 1)
        return f"at most {most} {_unit(kind, most)}"
    if kind == "string_pattern_mismatch":
        return f"text of the form {context.get('pattern')}"
    if kind == "value_error":
        return str(context.get("error", fault["msg"]))
    for start, words in _KINDS.items():
        if kind in (f"{start}_type", f"{start}_parsing", f"{start}_from_float", f"{start}_number"):
            return words
    return _plain(str(fault["msg"]))


def _unit(kind: str, count: int) -> str:
    word = "character" if kind.startswith("string") else "entry"
    return word if count == 1 else {"character": "characters", "entry": "entries"}[word]


def _choices(fault: Mapping[str, Any]) -> list[str]:
    """Return the allowed values that pydantic lists as ``'a', 'b' or 'c'``."""
    text = str((fault.get("ctx") or {}).get("expected", ""))
    return [part.strip().strip("'\"") for part in text.replace(" or ", ", ").split(",") if part.strip()]


def _plain(message: str) -> str:
    text = message.removeprefix("Value error, ").removeprefix("Input should be ")
    return text[:1].lower() + text[1:]
