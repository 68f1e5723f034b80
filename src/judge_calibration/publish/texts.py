"""The text of a published file, value by value: what a person or a detector would read in it.

Numbers are left out (a score of 0.4155551234 is no telephone number); JSON inside a column is opened.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

_SCRIPTS = re.compile(r"<(script|style|svg)\b.*?</\1\s*>", re.I | re.S)
_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?\s*")


class Text(NamedTuple):
    """A value that holds letters, and where it stands."""

    where: str
    text: str


def texts_of(path: Path, name: str) -> Iterator[Text]:
    """Yield every text of a file.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    name : str
        How it is called in messages.
    """
    reader = {
        ".parquet": _parquet,
        ".csv": _csv,
        ".json": _json,
        ".jsonl": _lines_of_json,
        ".yml": _yaml,
        ".yaml": _yaml,
        ".html": _html,
        ".xlsx": _workbook,
    }.get(path.suffix)
    for where, text in reader(path) if reader else _lines(path):
        if text.strip() and not _NUMBER.fullmatch(text):
            yield Text(f"{name}{where}", text)


def _parquet(path: Path) -> Iterator[tuple[str, str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        row = 1
        for batch in file.iter_batches(batch_size=20_000):
            for column, values in zip(batch.schema.names, batch.columns, strict=True):
                kind = values.type
                if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                    continue
                for number, value in enumerate(values.to_pylist(), start=row):
                    for text in _opened(value):
                        yield f", row {number}, column {column}", text
            row += batch.num_rows


def _csv(path: Path) -> Iterator[tuple[str, str]]:
    rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8", errors="replace"), newline=""))
    header = next(rows, [])
    for number, row in enumerate(rows, start=2):
        for column, value in zip(header, row, strict=False):
            for text in _opened(value):
                yield f", row {number}, column {column}", text
    for name in header:
        yield ", row 1", name


def _json(path: Path) -> Iterator[tuple[str, str]]:
    for text in strings_of(json.loads(path.read_text(encoding="utf-8"))):
        yield "", text


def _lines_of_json(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for text in _opened(line):
            yield f", line {number}", text


def _yaml(path: Path) -> Iterator[tuple[str, str]]:
    content = path.read_text(encoding="utf-8")
    try:
        documents = list(yaml.load_all(content, yaml.CSafeLoader))
    except yaml.YAMLError:
        yield from _lines(path)
        return
    for document in documents:
        for text in strings_of(document):
            yield "", text
    for number, line in enumerate(content.splitlines(), start=1):
        if "#" in line:
            yield f", line {number}", line.partition("#")[2]


def _html(path: Path) -> Iterator[tuple[str, str]]:
    import html

    body = _SCRIPTS.sub(" ", path.read_text(encoding="utf-8"))
    for line in _TAG.sub("\n", body).splitlines():
        if any(char.isalpha() or char == "@" for char in line):
            yield "", html.unescape(line)


def _workbook(path: Path) -> Iterator[tuple[str, str]]:
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        for sheet in book.worksheets:
            for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                for value in row:
                    if isinstance(value, str):
                        yield f", sheet {sheet.title}, row {number}", value
    finally:
        book.close()


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        yield f", line {number}", line


def _opened(value: Any) -> Iterator[str]:
    """Yield the texts of a value; one that holds JSON gives the texts inside."""
    if not isinstance(value, str) or not value:
        return
    if value[0] in "{[" and value[-1] in "}]":
        try:
            yield from strings_of(json.loads(value))
            return
        except ValueError:
            pass
    yield value


def strings_of(value: Any) -> Iterator[str]:
    """Yield every text in a document, names included."""
    if isinstance(value, str):
        yield from _opened(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings_of(str(key))
            yield from strings_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings_of(inner)
