"""JSON read strictly, and a list element by element, so that a long one never stands in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from judge_calibration.sources.files import UnreadableFileError

_CHUNK = 1 << 20
_SPACE = " \t\n\r"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields; one that stands there twice has no value that could be told."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} twice in one object")
    return fields


DECODER = json.JSONDecoder(object_pairs_hook=_once)
"""Decodes JSON, and refuses (by ValueError) an object that names a key twice."""


def elements_of(handle: TextIO, chunk: int = _CHUNK) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON list with their numbers, from 1.

    Parameters
    ----------
    handle : text file
        At its start; the text is one JSON list.
    chunk : int
        Characters read at once.

    Raises
    ------
    UnreadableFileError
        With the number of the element at which the text stops being a JSON list.

    Examples
    --------
    >>> import io
    >>> list(elements_of(io.StringIO('[{"a": 1}, 2 ]'), chunk=3))
    [(1, {'a': 1}), (2, 2)]
    """
    window = _Window(handle, chunk)
    window.take("[", 1)
    row = 1
    if window.peek() == "]":
        window.take("]", 1)
    else:
        while True:
            window.peek()
            yield row, window.value(row)
            if window.peek() == "]":
                window.take("]", row)
                break
            window.take(",", row)
            row += 1
    if window.peek():
        raise UnreadableFileError(
            f"text after the end of the list: {window.rest()!r}", "one JSON list and nothing after it", row
        )


class _Window:
    """The part of the text that has been read and not been used."""

    def __init__(self, handle: TextIO, chunk: int) -> None:
        self._handle = handle
        self._chunk = chunk
        self._text = ""
        self._at = 0
        self._ended = False

    def _more(self) -> bool:
        if self._ended:
            return False
        # What is short so far is doubled, so that one long element is not decoded over and over.
        piece = self._handle.read(max(self._chunk, len(self._text) - self._at))
        if not piece:  # places in the text stay what they are
            self._ended = True
            return False
        self._text = self._text[self._at :] + piece
        self._at = 0
        return True

    def peek(self) -> str:
        """Skip white space and return the next character, or nothing at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str, row: int) -> None:
        """Use the next character, which has to be the wanted one."""
        found = self.peek()
        if found != wanted:
            told = repr(self.rest()) if found else "the end of the file"
            raise UnreadableFileError(told, f"'{wanted}' (a JSON list of records)", row)
        self._at += 1

    def value(self, row: int) -> Any:
        """Use the next value. One that touches the end of what was read may go on, so more is read first."""
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._more():
                    continue
                raise UnreadableFileError(f"{error.msg}: {self.rest()!r}", "a JSON value", row) from error
            except ValueError as error:
                raise UnreadableFileError(f"{error}: {self.rest()!r}", "each key once", row) from error
            except RecursionError as error:
                raise UnreadableFileError("JSON nested too deeply", "a record", row) from error
            ended = end < len(self._text) and self._text[end] in _SPACE + ",]"
            if not ended and self._more():  # 0 may be the start of 0.5
                continue
            self._at = end
            return value

    def rest(self) -> str:
        """Return the beginning of what comes next, for a message."""
        return self._text[self._at : self._at + 60]
