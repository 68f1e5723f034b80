"""Records out of CSV, TSV, JSON lines, JSON, Parquet and workbooks, in blocks of columns, with row numbers.

The number of a row is where one finds it: the row as a spreadsheet shows it in CSV, TSV and workbooks (the
header is row 1, a cell of several lines is in one row), the line in JSON lines, the number of the record,
from 1, in JSON and Parquet.

The standard library's CSV reader is used on purpose: faster readers turn ``NA`` into nulls, guess types,
or pad short rows. Nothing is converted here; a cell is what the file holds.
"""

from __future__ import annotations

import csv
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from lzma import LZMAError
from typing import Any, Literal, Protocol

from judge_calibration.options.layout import Layout
from judge_calibration.sources.files import (
    OpenFile,
    UnreadableFileError,
    explain_undecodable,
    format_of,
    open_text,
)
from judge_calibration.sources.json_text import DECODER, elements_of
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.workbook import sheet_rows

BLOCK = 20_000
_START = 1 << 16
Form = Literal["list", "lines", "document"]


class Absent:
    """The value of a field that a record does not have (which is not the same as null)."""

    def __repr__(self) -> str:
        return "no such field"


ABSENT = Absent()


class Block(Protocol):
    """Some rows of a file."""

    rows: list[int]

    def column(self, name: str) -> list[Any] | None:
        """Return the values of a top-level column, or None where no row has it."""


@dataclass
class ColumnBlock:
    """Rows of a file with a header: every row has every column."""

    rows: list[int]
    columns: dict[str, list[Any]]

    def column(self, name: str) -> list[Any] | None:
        """Return the values of the column, or None if there is none."""
        return self.columns.get(name)


@dataclass
class RecordBlock:
    """Rows that are mappings: a field may be absent from some."""

    rows: list[int]
    records: list[dict[str, Any]]

    def column(self, name: str) -> list[Any] | None:
        """Return the values of the field, `ABSENT` where a record lacks it, or None if all do."""
        values = [record.get(name, ABSENT) for record in self.records]
        return None if all(value is ABSENT for value in values) else values


def records_of(block: Block) -> list[dict[str, Any]]:
    """Return the block as one mapping a row."""
    if isinstance(block, RecordBlock):
        return block.records
    assert isinstance(block, ColumnBlock)
    names = list(block.columns)
    return [dict(zip(names, values, strict=True)) for values in zip(*block.columns.values(), strict=True)]


def read_blocks(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[Block]:
    """Yield the file's rows in blocks.

    Problems of single rows are noted and the row is left out; what makes the whole file unreadable ends
    the reading with one problem.
    """
    form = layout.format if layout.format != "auto" else format_of(file.name)
    if form is None:
        problems.add(
            file.given,
            None,
            None,
            f"a file name that tells no known format ({file.name})",
            "a name that ends in .csv, .tsv, .jsonl, .json, .parquet or .xlsx (or these and .gz, .bz2, .xz, "
            ".zst), or `format:` declared",
        )
        return
    reader = {
        "csv": _delimited, "tsv": _delimited, "jsonl": _json, "json": _json, "parquet": _parquet,
        "xlsx": _workbook,
    }[form]  # fmt: skip
    count = 0
    try:
        for block in reader(file, layout, problems):
            count += len(block.rows)
            yield block
    except UnreadableFileError as error:
        problems.add(file.given, error.row, None, error.found, error.wanted)
        return
    except UnicodeDecodeError as error:
        reason = explain_undecodable(file, error)
        problems.add(file.given, None, None, reason.found, reason.wanted)
        return
    except UnicodeError as error:
        problems.add(file.given, None, None, str(error), "text in the declared encoding")
        return
    except (EOFError, zlib.error, LZMAError, OSError) as error:
        problems.add(
            file.given,
            None,
            None,
            f"a file that breaks off or is damaged ({error})",
            "a whole compressed file",
        )
        return
    if count == 0 and not problems:
        problems.add(file.given, None, None, "no rows", "at least one row")


def _delimited(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[Block]:
    form = layout.format if layout.format != "auto" else format_of(file.name)
    declared = _declared_delimiter(file, layout)
    delimiter = layout.delimiter or declared or ("\t" if form == "tsv" else ",")
    previous_limit = csv.field_size_limit(sys.maxsize)
    try:
        with open_text(file, layout.encoding) as handle:
            reader = csv.reader(
                handle,
                delimiter=delimiter,
                strict=True,
                quoting=csv.QUOTE_MINIMAL if layout.quoting else csv.QUOTE_NONE,
            )
            rows = ((row, cells) for row, cells in enumerate(reader, start=1) if cells)
            if declared:
                next(rows)
            _, header = next(rows, (0, None))
            if header is None:
                raise UnreadableFileError("an empty file", "a header and rows")
            _check_header(header)
            _check_delimiter(header, delimiter)
            yield from _rows_of_width(rows, header, file, problems, lambda: f" (line {reader.line_num})")
    except csv.Error as error:
        raise UnreadableFileError(
            f"line {reader.line_num}: {error}",
            "quotes that are closed, and doubled inside a field; `quoting: false` where they are plain text",
        ) from error
    finally:
        csv.field_size_limit(previous_limit)


def _declared_delimiter(file: OpenFile, layout: Layout) -> str | None:
    """Return the delimiter that a first line ``sep=;`` declares, as spreadsheets write it."""
    with open_text(file, layout.encoding) as handle:
        found = re.fullmatch(r"sep=(.)[\r\n]*", handle.readline(16))
    return found[1] if found else None


def _check_header(header: list[str]) -> None:
    if any("\x00" in name for name in header):
        raise UnreadableFileError(
            "NUL characters in the header", "UTF-8; for UTF-16 declare `encoding: utf-16-le`"
        )
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise UnreadableFileError(f"the columns {repeated} twice in the header", "each column once")


def _check_delimiter(header: list[str], delimiter: str) -> None:
    other = next((mark for mark in ";\t|," if mark in header[0]), None)
    if len(header) == 1 and other and other != delimiter:
        raise UnreadableFileError(
            f"a single column, {header[0]!r:.80}",
            f"several, parted by {delimiter!r}; declare `delimiter: {other!r}` if that is what parts them",
        )


def _rows_of_width(
    numbered: Iterable[tuple[int, list[Any]]],
    header: list[str],
    file: OpenFile,
    problems: Problems,
    place: Callable[[], str],
) -> Iterator[ColumnBlock]:
    """Yield the rows in blocks; one of another width than the header's is noted and left out."""
    width = len(header)
    rows: list[int] = []
    cells: list[list[Any]] = []
    # Rows are counted as a spreadsheet shows them: the header and empty lines are rows, too.
    for row, record in numbered:
        if len(record) != width:
            problems.add(
                file.given, row, None, f"{len(record)} fields{place()}", f"{width} fields, as in the header"
            )
            continue
        rows.append(row)
        cells.append(record)
        if len(rows) == BLOCK:
            yield ColumnBlock(rows, dict(zip(header, map(list, zip(*cells, strict=True)), strict=True)))
            rows, cells = [], []
    if rows:
        yield ColumnBlock(rows, dict(zip(header, map(list, zip(*cells, strict=True)), strict=True)))


def _workbook(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[ColumnBlock]:
    rows = sheet_rows(file, layout.sheet, problems)
    _, cells = next(rows, (0, None))
    if cells is None:
        raise UnreadableFileError("an empty sheet", "a header and rows")
    header = [str(cell) for cell in cells]
    while header and not header[-1]:
        header.pop()
    _check_header([name for name in header if name])
    yield from _rows_of_width(_padded(rows, len(header)), header, file, problems, lambda: "")


def _padded(rows: Iterable[tuple[int, list[Any]]], width: int) -> Iterator[tuple[int, list[Any]]]:
    """Give every row the header's width: a sheet ends a row at its last cell, and may go on emptily."""
    for row, cells in rows:
        while len(cells) > width and cells[-1] == "":
            cells.pop()
        yield row, [*cells, *[""] * (width - len(cells))]


def _json_lines(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[RecordBlock]:
    rows: list[int] = []
    records: list[dict[str, Any]] = []
    with open_text(file, layout.encoding) as handle:
        # Only a line feed ends a record: U+2028 and its like may stand in a text.
        for row, line in enumerate(_lines(handle), start=1):
            if not line.strip():
                continue
            try:
                record = DECODER.decode(line)
            except ValueError as error:
                problems.add(file.given, row, None, f"{error} in {show(line[:60])}", "one JSON object a line")
                continue
            except RecursionError:
                problems.add(file.given, row, None, "JSON nested too deeply", "one JSON object a line")
                continue
            if not isinstance(record, dict):
                problems.add(
                    file.given, row, None, f"a JSON {type(record).__name__}", "one JSON object a line"
                )
                continue
            rows.append(row)
            records.append(record)
            if len(rows) == BLOCK:
                yield RecordBlock(rows, records)
                rows, records = [], []
    if rows:
        yield RecordBlock(rows, records)


def _lines(handle: Any) -> Iterator[str]:
    """Yield lines that end in a line feed only (a bare carriage return is text)."""
    handle.reconfigure(newline="\n")
    yield from handle


def _json(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[RecordBlock]:
    """Read JSON however it is written: a list, one object a line, or a document with a list inside."""
    with open_text(file, layout.encoding) as handle:
        form = _form_of(handle, layout, file)
    if form == "lines":
        yield from _json_lines(file, layout, problems)
        return
    with open_text(file, layout.encoding) as handle:
        elements = elements_of(handle) if form == "list" else _records_inside(handle.read(), layout)
        yield from _blocks(elements, file, problems)


def _form_of(handle: Any, layout: Layout, file: OpenFile) -> Form:
    """Say how a text of JSON is written: by its start, and by what is declared where that leaves it open."""
    if layout.records is not None:
        return "document"
    handle.reconfigure(newline="\n")
    start = ""
    while not start.strip():
        piece = handle.read(_START)
        start += piece
        if not piece:
            break
    start = start.lstrip()
    if start.startswith("["):
        return "list"
    first, _, rest = (start if "\n" in start else start + handle.readline()).partition("\n")
    if "jsonl" in (layout.format, format_of(file.name)):
        return "document" if first.strip() == "{" else "lines"
    second = rest.lstrip() or handle.read(_START).lstrip()
    return "lines" if first.rstrip().endswith("}") and second.startswith("{") else "document"


def _blocks(elements: Iterable[tuple[int, Any]], file: OpenFile, problems: Problems) -> Iterator[RecordBlock]:
    rows: list[int] = []
    records: list[dict[str, Any]] = []
    for row, record in elements:
        if not isinstance(record, dict):
            problems.add(file.given, row, None, show(record), "a JSON object")
            continue
        rows.append(row)
        records.append(record)
        if len(rows) == BLOCK:
            yield RecordBlock(rows, records)
            rows, records = [], []
    if rows:
        yield RecordBlock(rows, records)


def _records_inside(text: str, layout: Layout) -> Iterator[tuple[int, Any]]:
    """Yield the records that stand somewhere in one JSON document."""
    try:
        document = DECODER.decode(text)
    except ValueError as error:
        hint = (
            " (if each line is a document of its own: `format: jsonl`)" if "Extra data" in str(error) else ""
        )
        raise UnreadableFileError(str(error), f"one JSON document{hint}") from error
    except RecursionError as error:
        raise UnreadableFileError("JSON nested too deeply", "a list of records") from error
    whole = document
    for part in layout.records.split(".") if layout.records else []:
        if part == "*" and isinstance(document, dict):  # the records are a mapping's values
            document = [
                {"_key": key, **value} if isinstance(value, dict) else value
                for key, value in document.items()
            ]
            continue
        if not isinstance(document, dict) or part not in document:
            names = sorted(document)[:10] if isinstance(document, dict) else type(document).__name__
            raise UnreadableFileError(
                f"no '{part}' in the document ({names})", f"records at '{layout.records}'"
            )
        document = document[part]
    if not isinstance(document, list):
        raise UnreadableFileError(
            f"a JSON {type(document).__name__}", "a list of records, or `records:` with the path to one"
        )
    for row, record in enumerate(document, start=1):
        # What stands beside the records, such as the model, is at hand in each.
        yield (
            row,
            {**record, "_document": whole} if isinstance(record, dict) and whole is not document else record,
        )


def _parquet(file: OpenFile, layout: Layout, problems: Problems) -> Iterator[ColumnBlock]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file.local) as parquet:
            row = 0
            for batch in parquet.iter_batches(batch_size=BLOCK):
                columns = {
                    name: batch.column(index).to_pylist() for index, name in enumerate(batch.schema.names)
                }
                yield ColumnBlock(list(range(row + 1, row + batch.num_rows + 1)), columns)
                row += batch.num_rows
    except pa.ArrowException as error:
        raise UnreadableFileError(str(error).split("\n")[0][:200], "a Parquet file") from error


def unknown_column(name: str, known: list[str]) -> str:
    """Return how a missing column is told: with the nearest names, or all of them.

    Examples
    --------
    >>> unknown_column("lable", ["label", "question"])
    "no such column (did you mean 'label'?)"
    """
    known = [other for other in known if not other.startswith("_")]
    close = get_close_matches(name, known, n=1)
    if close:
        return f"no such column (did you mean '{close[0]}'?)"
    return f"no such column (there are {', '.join(known[:20])})"
