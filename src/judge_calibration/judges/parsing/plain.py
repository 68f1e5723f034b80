"""Plain replies: the whole reply is one label, or it is malformed."""

from __future__ import annotations

import re

from judge_calibration.judges.parsing.alphabet import Alphabet
from judge_calibration.judges.parsing.reasoning import without_reasoning
from judge_calibration.judges.parsing.replies import (
    LONGEST_REPLY,
    Parsed,
    malformed,
    outer_stripped,
    truncated,
)

_PREFIX = re.compile(r"(?:answer|verdict|winner)\s*:\s*", re.IGNORECASE | re.ASCII)
_PAIRS = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "‘": "’",
    "«": "»",
    "[": "]",
    "(": ")",
    "{": "}",
    "*": "*",
}
_MOST_WRAPPERS = 6


def read_plain(text: str, alphabet: Alphabet) -> Parsed:
    """Read a reply that has to be one label and nothing else.

    Allowed around the label: closed reasoning blocks before or after it, white space, one ``Answer:``,
    ``Verdict:`` or ``Winner:`` before it, quotes, brackets or asterisks in pairs, and one full stop. Any
    other text, two labels, or a label in a sentence is malformed.

    Examples
    --------
    >>> read_plain("Answer: **B**.", Alphabet()).values["winner"]
    <Meaning.SECOND: 'second'>
    >>> read_plain("A is better", Alphabet()).outcome
    'malformed'
    """
    if len(text) > LONGEST_REPLY:
        return malformed("too_long")
    rest = without_reasoning(text)
    if rest is None:
        return truncated("unclosed_reasoning")
    rest = outer_stripped(rest)
    if not rest:
        return Parsed("empty", reason="only_reasoning")
    meaning = alphabet.read(_core(rest))
    if meaning is None:
        return malformed("not_one_label")
    return Parsed("valid", {"winner": meaning})


def _core(text: str) -> str:
    """Return what is left when the allowed trimmings are taken off."""
    prefix = _PREFIX.match(text)
    core = text[prefix.end() :] if prefix else text
    if "\n" in core or "\r" in core:
        return text  # a fence or a list, not a label in its trimmings
    stop_left = True
    for _ in range(_MOST_WRAPPERS):
        if stop_left and core.endswith("."):
            core, stop_left = core[:-1].rstrip(), False
        if len(core) > 2 and _PAIRS.get(core[0]) == core[-1]:
            core = core[1:-1].strip()
        else:
            break
    if stop_left and core.endswith("."):
        core = core[:-1].rstrip()
    return core
