"""Codes of labels, verdicts and orders: what a file's value means, or that it means nothing known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from judge_calibration.options.layout import Codes, Scalar
from judge_calibration.sources.fields import as_number
from judge_calibration.sources.problems import show

UNKNOWN = "?"
_DECIMAL = re.compile(r"-?\d{1,15}\.\d{1,15}")
NONE = ""
_MEANINGS = ("A", "B", "first", "second", "TIE", "ABSTAIN")
_OTHER = {"A": "B", "B": "A", "first": "second", "second": "first"}


def code_key(value: Any) -> str | None:
    """Return the form in which codes are compared: a number and its text are one, a boolean is apart.

    Examples
    --------
    >>> code_key(1) == code_key("1") == code_key(1.0) == code_key("1.0"), code_key(True), code_key(" A ")
    (True, 'true (boolean)', 'A')
    """
    if value is None or value != value:  # NaN is how a column of numbers says nothing
        return None
    if isinstance(value, bool):
        return f"{str(value).lower()} (boolean)"
    if isinstance(value, str) and _DECIMAL.fullmatch(value.strip()):
        value = float(value)  # whole numbers beside an empty cell are often written as 1.0
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (int, float)):
        return repr(value)
    return value.strip() if isinstance(value, str) else f"{type(value).__name__}"


class CodeTable:
    """Looks up meanings; NONE is "no label", UNKNOWN a value that no list names."""

    def __init__(self, codes: Codes) -> None:
        self._numeric = codes.numeric
        self._meanings: dict[str | None, str] = {}
        for meaning in (*_MEANINGS, "none"):
            for code in getattr(codes, meaning):
                self._meanings[code_key(code)] = NONE if meaning == "none" else meaning
        listed = [
            f"{meaning} ({', '.join(show(code) for code in getattr(codes, meaning))})"
            for meaning in (*_MEANINGS, "none")
            if getattr(codes, meaning)
        ]
        if self._numeric:
            listed.append(f"a number from {self._numeric.lowest} to {self._numeric.highest}")
        self.wanted = "one of " + ", ".join(listed)
        self._known = [code for code in self._meanings if code]

    def told(self, value: Any) -> str:
        """Return a value that no list names as a message shows it, with the code that it is nearly.

        Examples
        --------
        >>> CodeTable(Codes(A=("A",), TIE=("Tie",))).told("tie.")
        "'tie.' (is 'Tie' meant? codes are compared letter by letter)"
        """
        return show(value) + nearly(value, self._known)

    def meaning(self, value: Any) -> str:
        """Return the meaning of one value."""
        found = self._meanings.get(code_key(value), UNKNOWN)
        if found == UNKNOWN and self._numeric:
            number = as_number(value)
            if number is not None and self._numeric.lowest <= number <= self._numeric.highest:
                if number < self._numeric.tie_from:
                    return self._numeric.low
                return _OTHER[self._numeric.low] if number > self._numeric.tie_to else "TIE"
        return found


def nearly(value: Any, known: Sequence[str | None]) -> str:
    """Return which code a value is but for case, brackets and full stops; nothing if it is none."""
    if not isinstance(value, str):
        return ""
    plain = _plain(value)
    if re.fullmatch(r"-?\d+,\d+", plain) and code_key(plain.replace(",", ".")) in known:
        return f" (is {code_key(plain.replace(',', '.'))} meant? it is written with a comma)"
    close = next((code for code in known if code and plain and _plain(code) == plain), None)
    return f" (is {close!r} meant? codes are compared letter by letter)" if close else ""


def _plain(text: str) -> str:
    return text.casefold().strip(" .:;!*'\"`[](){}<>\t\n\r")


def lookup(codes: Sequence[Scalar], others: Sequence[Scalar]) -> dict[str | None, bool]:
    """Return a table that is true for the first codes and false for the others."""
    return {code_key(code): True for code in codes} | {code_key(code): False for code in others}
