"""JSON replies: strictly one object; else one in a single fenced block; else a single one in the text."""

from __future__ import annotations

import json
import re
from typing import Any

from judge_calibration.judges.parsing.fields import Fields, Unreadable, read_fields
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import (
    LONGEST_REPLY,
    Parsed,
    ParsePath,
    malformed,
    outer_stripped,
    truncated,
)


class _ConflictError(ValueError):
    """One object has the same key twice with different values."""


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in items:
        if key in out and not _same(out[key], value):
            raise _ConflictError(key)
        out[key] = value
    return out


def _same(left: Any, right: Any) -> bool:
    # 1, 1.0 and true are equal in Python; as JSON they are three values.
    return type(left) is type(right) and bool(left == right)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)
_UNREADABLE_KEYED_BRACE = re.compile(r'\{\s*"')
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([A-Za-z0-9_+-]*)[ \t]*$", re.MULTILINE)
_INLINE_FENCE = re.compile(
    r"^[ \t]*```[ \t]*(?:json)?[ \t]*(\{[^\n]*\})[ \t]*```[ \t]*$", re.MULTILINE | re.I
)


def read_json(text: str, fields: Fields) -> Parsed:
    """Read a reply that has to be one JSON object.

    Examples
    --------
    >>> from judge_calibration.judges.parsing.alphabet import Alphabet
    >>> from judge_calibration.judges.parsing.fields import LabelField
    >>> fields = (LabelField("winner", Alphabet()),)
    >>> read_json('{"winner": "B"}', fields).values["winner"]
    <Meaning.SECOND: 'second'>
    >>> read_json('{"winner": "A", "winner": "B"}', fields).reason
    'conflicting_keys'
    """
    found = find_object(text)
    if isinstance(found, Parsed):
        return found
    value, path, source = found
    try:
        values, flags = read_fields(fields, value)
    except Unreadable as problem:
        return malformed(str(problem))
    return Parsed("valid", values, path, flags=flags, found=source)


_Found = tuple[dict[str, Any], ParsePath, str | None]


def find_object(text: str) -> _Found | Parsed:
    """Return the one object of a reply and how it was found, or why there is not exactly one."""
    try:
        strict = _as_object(outer_stripped(text))
        if strict is not None:
            return strict, "strict", None
        if len(text) > LONGEST_REPLY:
            return malformed("too_long")
        rest = without_reasoning(text, skip=lambda position: _end_of_object(text, position))
        if rest is None:
            return truncated("unclosed_reasoning")
        rest = outer_stripped(rest)
        if not rest:
            return Parsed("empty", reason="only_reasoning")
        strict = _as_object(rest)
        if strict is not None:
            return strict, "strict", None
        return _fenced(rest) or _embedded(rest)
    except _ConflictError:
        return malformed("conflicting_keys")
    except RecursionError:
        return malformed("too_deep")


def _as_object(text: str) -> dict[str, Any] | None:
    """Return the object that the text strictly is, else None."""
    if not text.startswith("{"):
        return None
    try:
        value, end = _DECODER.raw_decode(text)
    except _ConflictError:
        raise
    except ValueError:
        return None
    return value if end == len(text) and isinstance(value, dict) else None


def _end_of_object(text: str, position: int) -> int | None:
    try:
        return _DECODER.raw_decode(text, position)[1]
    except _ConflictError:
        raise
    except ValueError:
        return None


def _fenced(text: str) -> _Found | Parsed | None:
    """Return the object of the single fenced block; None if there is no such block."""
    inline = list(_INLINE_FENCE.finditer(text))
    marks = list(_FENCE.finditer(text))
    if len(inline) == 1 and not marks:
        body, outside = inline[0][1], text[: inline[0].start()] + text[inline[0].end() :]
    elif len(marks) == 2 and not inline and marks[1][1] == marks[0][1] and not marks[1][2]:
        body = text[marks[0].end() : marks[1].start()]
        outside = text[: marks[0].start()] + text[marks[1].end() :]
    else:
        return None
    value = _as_object(body.strip())
    if value is None:
        return None
    if "{" in outside and _objects(outside) != []:
        return malformed("two_objects")
    return value, "fenced", body.strip()


def _embedded(text: str) -> _Found | Parsed:
    """Return the single object in the text."""
    if text.startswith("["):
        # A list of verdicts is not a verdict, even if it holds one only.
        try:
            if _DECODER.raw_decode(text)[1] == len(text):
                return malformed("not_an_object")
        except _ConflictError:
            raise
        except ValueError:
            pass
    objects = _objects(text)
    if objects is None:
        return malformed("broken_object")
    if len(objects) != 1:
        return malformed("two_objects" if objects else "no_object")
    value, source = objects[0]
    return value, "embedded", source


def _objects(text: str) -> list[tuple[dict[str, Any], str]] | None:
    """Return the objects in the text with their source, at most two; None if one was begun that is broken.

    A brace that does not open a key is prose. One that does, and then cannot be read, may be a draft with a
    whole object inside it, so nothing after it is trusted.
    """
    objects: list[tuple[dict[str, Any], str]] = []
    position = 0
    while len(objects) < 2:
        position = text.find("{", position)
        if position < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, position)
            objects.append((value, text[position:end]))
            position = end
        except _ConflictError:
            raise
        except ValueError:
            if _UNREADABLE_KEYED_BRACE.match(text, position):
                return None
            position += 1
    return objects
