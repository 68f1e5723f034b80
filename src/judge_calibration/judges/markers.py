"""Markers: what fences a candidate's text off from the judge's instructions.

A candidate is untrusted data: it may say that it has won, or write a line that looks like the end of its own
block. So every block of data in a prompt stands between two lines that carry a code which nobody without the
project's salt can guess. The code follows from the salt and the content alone, so it is the same in both
orders, in every repetition, attribute and protocol: repetitions stay identical and prefix caches work.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from judge_calibration.text import canonical_json

MARKER_VERSION = 2
_DIGITS = 12  # 48 bits: not to be guessed by a candidate, and few tokens


def make_marker(salt: str, content: Sequence[str], beside: Sequence[str] = (), digits: int = _DIGITS) -> str:
    """Return the code that fences `content` off.

    Parameters
    ----------
    salt : str
        The project's salt.
    content : sequence of str
        The texts that it fences off, in the pair's own order (not the shown one).
    beside : sequence of str
        The prompt's other texts, which must not hold the code either. They do not change it otherwise.
    digits : int
        Hex digits of the code.

    Returns
    -------
    str
        Lower-case hex digits that occur in none of the texts. On a collision the code is drawn again with
        a counter.

    Examples
    --------
    >>> make_marker("salt", ["2+2?", "4", "5"])
    'b8c7d2c23106'
    >>> make_marker("salt", ["2+2?", "4", "5"]) == make_marker("salt", ["2+2?", "5", "4"])
    False
    """
    counter = 0
    while True:
        message = canonical_json({"content": list(content), "counter": counter}).encode("ascii")
        code = hmac.new(salt.encode("utf-8", "surrogatepass"), message, hashlib.sha256).hexdigest()[:digits]
        if not any(code in text.lower() for text in (*content, *beside)):
            return code
        counter += 1


def fence(name: str, marker: str, text: str) -> str:
    """Return `text` between the two lines that carry the marker.

    Examples
    --------
    >>> print(fence("ANSWER A", "b8c7d2c23106", "four"))
    [BEGIN ANSWER A b8c7d2c23106]
    four
    [END ANSWER A b8c7d2c23106]
    """
    return f"[BEGIN {name} {marker}]\n{text}\n[END {name} {marker}]"
