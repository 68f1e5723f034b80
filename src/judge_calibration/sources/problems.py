"""The list of everything that is wrong in the files at hand, so that it can be told at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from judge_calibration.errors import Problem, SourceError

_EACH = 5


def show(value: Any) -> str:
    r"""Return a value as an error message prints it: typed, in one line, and short.

    Examples
    --------
    >>> show(True), show(None), show("a\nb"), show(1.5)
    ('true (boolean)', 'null', "'a\\nb'", '1.5 (number)')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"{str(value).lower()} (boolean)"
    if isinstance(value, (int, float)):
        return f"{value!r} (number)"
    text = ascii(value) if _has_surrogate(value) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _has_surrogate(value: Any) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


class Problems:
    """Collects problems; of each kind in each column of each file the first five and a count.

    A file of a million rows with one wrong code would else give a million lines.
    """

    def __init__(self) -> None:
        self._found: list[tuple[tuple[str, str | None, str], Problem]] = []
        self._counts: Counter[tuple[str, str | None, str]] = Counter()

    def add(self, file: str, row: int | None, column: str | None, found: str, wanted: str) -> None:
        """Note one problem. Rows are numbered as `records` says: where one finds them in the file."""
        kind = (file, column, wanted)
        self._counts[kind] += 1
        if self._counts[kind] <= _EACH:
            where = ", ".join(
                part
                for part in (
                    file,
                    f"row {row}" if row is not None else "",
                    f"column {column}" if column else "",
                )
                if part
            )
            self._found.append((kind, Problem(where, found, wanted)))

    def add_absent_column(self, file: str, column: str, found: str) -> None:
        """Note that a file lacks a column, once, in place of what was noted of it row by row."""
        consequences = {kind for kind in self._counts if kind[:2] == (file, column)}
        for kind in consequences:
            del self._counts[kind]
        self._found = [one for one in self._found if one[0] not in consequences]
        self.add(file, None, column, found, f"a column '{column}'")

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def count(self) -> int:
        """How many problems there are, those beyond the first five of a kind included."""
        return sum(self._counts.values())

    def raise_any(self, next_step: str) -> None:
        """Raise one error with all problems, if there are any.

        Raises
        ------
        SourceError
            With the problems in the order of files and rows.
        """
        if not self._found:
            return
        listed = [problem for _, problem in self._found]
        for (file, column, wanted), count in self._counts.items():
            if count > _EACH:
                where = f"{file}, column {column}" if column else file
                listed.append(Problem(where, f"{count - _EACH} more rows of this kind", wanted))
        places = "1 place" if self.count == 1 else f"{self.count} places"
        raise SourceError(f"Nothing was imported: the files are wrong in {places}.", listed, next_step)
