"""The list of everything that is wrong in the files at hand, so that it can be told at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import Problem, SourceError

if TYPE_CHECKING:
    import pandas as pd

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
        self._rows: defaultdict[str, set[int]] = defaultdict(set)
        self._advice: dict[str, None] = {}
        self._last: dict[tuple[str, str | None, str], tuple[int, str]] = {}

    def add(self, file: str, row: int | None, column: str | None, found: str, wanted: str) -> None:
        """Note one problem. Rows are numbered as `records` says: where one finds them in the file."""
        kind = (file, column, wanted)
        if row is not None:
            self._rows[file].add(row)
            # One record may be laid out as several rows; what is wrong in it is wrong once.
            if self._last.get(kind) == (row, found):
                return
            self._last[kind] = (row, found)
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

    def add_absent_column(self, file: str, column: str, found: str, fields: Iterable[str] = ()) -> None:
        """Note that a file lacks a column, once, in place of what was noted row by row of it.

        `fields` are the names under which values that are made of the column were told.
        """
        names = {column, *fields}
        consequences = {
            kind
            for kind in self._counts
            if kind[0] == file and names & {kind[1], *(kind[1] or "").split("/")}
        }
        for kind in consequences:
            del self._counts[kind]
        self._found = [one for one in self._found if one[0] not in consequences]
        self.add(file, None, column, found, f"a column '{column}'")

    def advise(self, text: str) -> None:
        """Add something to do to the next step, once."""
        self._advice[text] = None

    def sound(self, frame: pd.DataFrame, file: str) -> pd.DataFrame:
        """Return the rows of a file (column `_row`) that have no problem of their own.

        What is compared over rows, such as who judged a pair twice, would else be told of them as well.
        """
        wrong = self._rows[file]
        return frame[~frame["_row"].isin(wrong)].reset_index(drop=True) if wrong else frame

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
        steps = "\n    or ".join([next_step, *self._advice])
        raise SourceError(f"Nothing was imported: the files are wrong in {places}.", listed, steps)
