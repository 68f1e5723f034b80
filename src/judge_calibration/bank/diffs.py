"""Character-level differences between two texts, small and exact."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TypedDict

# White space goes with the word after it: as tokens of their own, spaces would make the alignment slow.
_TOKEN = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")


class Change(TypedDict):
    """One changed span: where it starts in the old text, what stood there, and what stands there now."""

    start: int
    old: str
    new: str


def differences(old: str, new: str) -> list[Change]:
    """Return the changed spans that turn one text into the other, in order.

    Words are aligned first, so that a change reads as a person would mark it; each changed span is then cut
    down to the characters that differ.

    Examples
    --------
    >>> differences("It took 18 days.", "It took 81 days.")
    [{'start': 8, 'old': '18', 'new': '81'}]
    >>> differences("same", "same")
    []
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    left, right = (_TOKEN.findall(text[head : len(text) - tail]) for text in (old, new))
    offsets = [head]
    for token in left:
        offsets.append(offsets[-1] + len(token))
    found: list[Change] = []
    for tag, i, j, k, end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            found.append(_trimmed(offsets[i], "".join(left[i:j]), "".join(right[k:end])))
    return found


def _common(left: str, right: str) -> int:
    """Return the length of the longest common beginning."""
    shortest = min(len(left), len(right))
    return next((i for i in range(shortest) if left[i] != right[i]), shortest)


def _trimmed(start: int, old: str, new: str) -> Change:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    return {"start": start + head, "old": old[head : len(old) - tail], "new": new[head : len(new) - tail]}


def apply_differences(old: str, changes: list[Change]) -> str:
    """Return the new text that the changes make of the old one.

    Raises
    ------
    ValueError
        If what a change says stood there does not stand there.
    """
    out, end = [], 0
    for change in changes:
        start, stood = change["start"], change["old"]
        if start < end or old[start : start + len(stood)] != stood:
            raise ValueError(f"the text does not hold {stood!r} at {start}")
        out += [old[end:start], change["new"]]
        end = start + len(stood)
    return "".join(out) + old[end:]
