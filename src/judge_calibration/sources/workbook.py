"""Rows of a sheet of an Excel workbook (.xlsx), as its export to CSV would have them, less what Excel alters.

A spreadsheet changes what is typed: ``3/4`` becomes a date, a long id is rounded to 15 digits, ``true`` is no
text any more, and a formula may have no result. Such cells are refused with their place, never read as
something near.
"""

from __future__ import annotations

import datetime
import re
import zipfile
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any
from xml.etree.ElementTree import ParseError

from judge_calibration.options.faults import suggestion
from judge_calibration.sources.files import OpenFile, UnreadableFileError, open_bytes
from judge_calibration.sources.problems import Problems, show

_EXACT = 10**15
"""Whole numbers from here on are rounded in a workbook."""
_LOOKED_AT = 50
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_CONTROL = re.compile(r"_x00([01][0-9A-Fa-f])_")
_DATES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)


def sheet_rows(file: OpenFile, sheet: str | None, problems: Problems) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows that hold anything, each with the number that a spreadsheet shows, the header first.

    Cells are text, numbers as the text that a CSV file has, an empty cell the empty text; a boolean stays
    one. A row with a cell that a workbook has altered is noted and left out.

    Parameters
    ----------
    file : OpenFile
        The workbook.
    sheet : str or None
        Its sheet; None if only one has content.
    problems : Problems
        Where altered cells are noted.

    Raises
    ------
    UnreadableFileError
        If it is no workbook, or does not say which of its sheets is meant.
    """
    with open_bytes(file) as handle:
        if handle.read(4) == _OLD_OFFICE:
            raise UnreadableFileError(
                "a workbook of the old form (.xls), or one that is locked with a password",
                "an .xlsx file without a password, or CSV",
            )
    try:
        yield from _rows(file, sheet, problems)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, TypeError, ParseError) as error:
        told = " ".join(str(error).split())[:200]
        raise UnreadableFileError(f"no workbook that can be read ({told})", "an .xlsx file") from error


def _rows(file: OpenFile, name: str | None, problems: Problems) -> Iterator[tuple[int, list[Any]]]:
    with open_bytes(file) as handle, open_bytes(file) as other:
        sheet = _chosen(_load(handle, results=True), name)
        # As it was written, a formula shows where a result is lacking. Most sheets have none.
        written = _load(other, results=False)[sheet.title] if _has_formulas(file) else None
        formulas = written.iter_rows(values_only=True) if written is not None else None
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            texts = next(formulas) if formulas is not None else cells
            read = [_read(value, text) for value, text in zip(cells, texts, strict=True)]
            if all(value == "" for value in read):
                continue
            wrong = [k for k, value in enumerate(read) if isinstance(value, _Altered)]
            for k in wrong:
                problems.add(file.given, number, _letters(k + 1), read[k].found, read[k].wanted)
            if not wrong:
                yield number, read


def _load(handle: Any, results: bool) -> Any:
    from openpyxl import load_workbook

    book = load_workbook(handle, read_only=True, data_only=results)
    for sheet in book.worksheets:
        # What a program wrote as the size of a sheet is often wrong, and would cut it.
        sheet.reset_dimensions()
    return book


def _chosen(book: Any, name: str | None) -> Any:
    titles = [sheet.title for sheet in book.worksheets]
    if name is not None:
        if name not in titles:
            hint = suggestion(name, titles)
            raise UnreadableFileError(f"no sheet {name!r}{hint} (there are {', '.join(titles)})", "its sheet")
        return book[name]
    full = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible" and _has_content(sheet)]
    if not full:
        raise UnreadableFileError("an empty workbook", "a sheet with a header and rows")
    if len(full) > 1:
        found = ", ".join(sheet.title for sheet in full)
        raise UnreadableFileError(f"several sheets: {found}", f"which one, e.g. `sheet: {full[0].title}`")
    return full[0]


def _has_content(sheet: Any) -> bool:
    rows = islice(sheet.iter_rows(values_only=True), _LOOKED_AT)
    return any(value is not None for row in rows for value in row)


def _has_formulas(file: OpenFile) -> bool:
    with open_bytes(file) as handle, zipfile.ZipFile(handle) as archive:
        names = [name for name in archive.namelist() if name.startswith("xl/worksheets/")]
        return any(b"<f>" in part or b"<f " in part for part in map(archive.read, names))


class _Altered:
    """A cell whose text the workbook does not hold any more."""

    def __init__(self, found: str, wanted: str) -> None:
        self.found, self.wanted = found, wanted


def _read(value: Any, written: Any) -> Any:
    if value is None:
        if written is None:
            return ""
        return _Altered(
            f"a formula without a result, {show(str(written))}", "its result: open the file and save it once"
        )
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in _ERRORS:
            return _Altered(f"the error {value}", "a value")
        return _CONTROL.sub(lambda match: chr(int(match[1], 16)), value)
    if isinstance(value, _DATES):
        return _Altered(
            f"the date or time {value}, which a spreadsheet makes of what is typed",
            "text: format the column as text, and type it again",
        )
    if isinstance(value, (int, float)):
        if abs(value) >= _EXACT:
            return _Altered(
                f"{value!r}, a number that a spreadsheet rounds to 15 digits",
                "text: format the column as text",
            )
        return str(int(value)) if value == int(value) else repr(value)
    return _Altered(f"a {type(value).__name__}", "text or a number")


_ERRORS = ("#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!")


def _letters(place: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(place))
