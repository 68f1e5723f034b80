"""Packets as spreadsheets that are safe to open, and label rows back from what people made of them.

Out: CSV (UTF-8 with BOM, so that Excel shows it right) and XLSX with a drop-down of the labels. A cell that a
spreadsheet would take for a formula gets an apostrophe in front; text longer than a cell may hold goes on in
further columns. Back: UTF-8 with or without BOM, UTF-16, cp1252; comma, semicolon or tab; columns by name, in
any order.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from datetime import date, datetime

import pandas as pd

from judge_calibration.errors import Problem, SourceError
from judge_calibration.labelling.label_rows import rows_frame
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.labelling.rubric import LABEL_TEXTS, REASON_TEXTS, rubric_text
from judge_calibration.options.annotation import LabelFileOptions

CELL_LIMIT = 32_000
"""Characters of a text that go in one cell; a workbook's own limit is 32,767."""

ANSWER_COLUMNS = ["label", "reason_codes", "comment", "labelled_at"]
_ATTRIBUTE_LABEL = re.compile(r"(attribute_\d+)_label")
_SHOWN = ["packet_id", "sequence", "question", "source_packet", "answer_a", "answer_b"]
_FORMULA_START = re.compile(r"^['\s]*[=+\-@＝＋－＠\t\r]")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CONTINUED = re.compile(r"^(?P<name>.+) \(continued (?P<number>\d+)\)$")


def make_safe(text: str) -> str:
    """Return the text so that no spreadsheet takes it for a formula.

    Examples
    --------
    >>> make_safe("=1+1"), make_safe("plain"), make_safe("-5 degrees")
    ("'=1+1", 'plain', "'-5 degrees")
    """
    return f"'{text}" if _FORMULA_START.match(text) else text


def undo_safe(text: str) -> str:
    """Return the text that :func:`make_safe` was given.

    Examples
    --------
    >>> undo_safe(make_safe("=1+1")), undo_safe("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and _FORMULA_START.match(text[1:]) else text


def _sheet_table(packets: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of one annotator's sheet, all cells text and safe."""
    pieces = {
        name: 1
        + max((max(len(text) - 1, 0) // CELL_LIMIT for text in packets[name].astype("str")), default=0)
        for name in ("question", "source_packet", "answer_a", "answer_b")
    }
    header: list[str] = []
    for name in _SHOWN:
        header.append(name)
        header += [f"{name} (continued {number})" for number in range(2, pieces.get(name, 1) + 1)]
    header.append("label")
    slots = attribute_slots(packets)
    for slot in slots:
        header += [slot, f"{slot}_question", f"{slot}_label"]
    header += ANSWER_COLUMNS[1:]
    marked = "mark" in packets.columns
    if marked:
        header.append("mark")
    rows = []
    for record in packets.to_dict("records"):
        row: list[str] = []
        for name in _SHOWN:
            text = str(record[name])
            for number in range(pieces.get(name, 1)):
                row.append(make_safe(text[number * CELL_LIMIT : (number + 1) * CELL_LIMIT]))
        row.append("")
        for slot in slots:
            row += [make_safe(record[slot]), make_safe(record[f"{slot}_question"]), ""]
        row += [""] * len(ANSWER_COLUMNS[1:])
        if marked:
            row.append(str(record["mark"]))
        rows.append(row)
    return header, rows


def packets_as_csv(packets: pd.DataFrame) -> bytes:
    """Return one annotator's packets as a CSV file with empty columns for the answers.

    Parameters
    ----------
    packets : pandas.DataFrame
        Packets (packets.PACKET_COLUMNS) of one annotator.

    Returns
    -------
    bytes
        UTF-8 with BOM, CRLF line ends, every cell quoted.
    """
    header, rows = _sheet_table(packets)
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode("utf-8-sig")


def packets_as_xlsx(packets: pd.DataFrame) -> bytes:
    """Return one annotator's packets as a workbook: a sheet to fill in, and the rubric.

    Parameters and cells are those of :func:`packets_as_csv`. Labels have a drop-down, every cell is text, and
    the file holds no date, so that the same packets give the same bytes.
    """
    from openpyxl import Workbook
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    header, rows = _sheet_table(packets)
    book = Workbook()
    moment = datetime(2000, 1, 1)
    book.properties.created = book.properties.modified = moment
    sheet = book.active
    assert sheet is not None  # a new workbook has one
    sheet.title = "labels"
    for place, name in enumerate(header, start=1):
        sheet.cell(1, place, name).font = Font(bold=True)
        wide = name.split(" (")[0] in ("question", "source_packet", "answer_a", "answer_b")
        sheet.column_dimensions[get_column_letter(place)].width = 60 if wide else 22
    for number, row in enumerate(rows, start=2):
        for place, text in enumerate(row, start=1):
            cell = sheet.cell(number, place)
            cell.value = text if text else None
            # The answer columns are text too: an id or a time that is typed stays as it was typed.
            cell.number_format = "@"
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            if text:
                cell.data_type = "s"
    sheet.freeze_panes = "C2"
    last = max(len(rows) + 1, 2)
    choice_columns = [i for i, name in enumerate(header, start=1) if name == "label"]
    choice_columns += [i for i, name in enumerate(header, start=1) if _ATTRIBUTE_LABEL.fullmatch(name)]
    choices = DataValidation(type="list", formula1=f'"{",".join(LABEL_TEXTS)}"', allow_blank=True)
    choices.error, choices.errorTitle = f"Choose one of {', '.join(LABEL_TEXTS)}.", "Label"
    choices.showErrorMessage = True
    sheet.add_data_validation(choices)
    for place in choice_columns:
        letter = get_column_letter(place)
        choices.add(f"{letter}2:{letter}{last}")
    guide = book.create_sheet("rubric")
    lines = [*rubric_text().splitlines(), ""]
    lines += [f"{label}: {text}" for label, text in LABEL_TEXTS.items()] + [""]
    lines += ["reason_codes: one or more, with semicolons between them:"]
    lines += [f"  {code}: {text}" for code, text in REASON_TEXTS.items()]
    for number, line in enumerate(lines, start=1):
        guide.cell(number, 1, make_safe(line)).alignment = Alignment(wrap_text=True, vertical="top")
    guide.column_dimensions["A"].width = 110
    return _without_dates(book)


def _without_dates(book: object) -> bytes:
    import zipfile

    out, fixed = io.BytesIO(), io.BytesIO()
    book.save(out)  # type: ignore[attr-defined]
    with zipfile.ZipFile(out) as source, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                # openpyxl stamps the time of saving over whatever was set before.
                data = re.sub(rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>2000-01-01T00:00:00Z", data)
            target.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), data)
    return fixed.getvalue()


def decode(data: bytes, name: str) -> str:
    """Return the text of a file in UTF-8 (BOM or not), UTF-16 (BOM or not) or cp1252.

    Raises
    ------
    SourceError
        If it is none of them.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        tried = ["utf-16"]
    elif data[:200].count(b"\x00") > len(data[:200]) // 4:
        # Text in UTF-16 without a mark: every other byte of Latin text is NUL.
        tried = ["utf-16-le" if data[1:2] == b"\x00" else "utf-16-be"]
    else:
        tried = ["utf-8-sig", "cp1252"]
    for encoding in tried:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise SourceError(
        f"{name} is in no encoding that can be read.",
        [Problem(name, "bytes that are none of " + ", ".join(tried), "UTF-8, UTF-16 or cp1252")],
        "save it as 'CSV UTF-8' and import it again",
    )


def _csv_rows(data: bytes, name: str) -> list[list[str]]:
    text = decode(data, name)
    first = text.lstrip("\r\n").split("\n", 1)[0]
    if first.lower().startswith("sep="):
        text = text.lstrip("\r\n").split("\n", 1)[1] if "\n" in text else ""
        first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    csv.field_size_limit(2**31 - 1)
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _xlsx_rows(data: bytes, name: str, sheet: str | None) -> list[list[str]]:
    from zipfile import BadZipFile

    from openpyxl import load_workbook

    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        written = load_workbook(io.BytesIO(data), read_only=True)
    except (BadZipFile, KeyError, ValueError) as error:
        raise SourceError(
            f"{name} is no workbook that can be read.", [Problem(name, str(error), "an .xlsx file")]
        ) from error
    if sheet is not None and sheet not in book.sheetnames:
        raise SourceError(
            f"{name} has no sheet '{sheet}'.",
            [Problem(name, f"sheets {book.sheetnames}", f"a sheet '{sheet}'")],
        )
    title = sheet if sheet is not None else book.worksheets[0].title
    rows = []
    for values, texts in zip(
        book[title].iter_rows(values_only=True), written[title].iter_rows(values_only=True), strict=True
    ):
        # A formula whose result nobody computed has no value. As it was written it is refused, and not lost.
        pairs = zip(values, texts, strict=True)
        rows.append([_cell_text(text if value is None else value) for value, text in pairs])
    return rows


def _joined_continuations(header: list[str]) -> dict[str, list[int]]:
    """Return for each column the places of its cells, continued ones in their order."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, name in enumerate(header):
        match = _CONTINUED.match(name)
        base, number = (match["name"], int(match["number"])) if match else (name, 1)
        found.setdefault(base, []).append((number, place))
    return {name: [place for _, place in sorted(parts)] for name, parts in found.items()}


def _check_header(header: list[str], name: str) -> None:
    problems = []
    named = [column for column in header if column]
    for column in sorted({column for column in named if named.count(column) > 1}):
        problems.append(Problem(f"{name}, row 1", f"the column {column} twice", "each column once"))
    if "packet_id" not in named and "pair_id" not in named:
        problems.append(
            Problem(f"{name}, row 1", f"columns {named}"[:200], "a column packet_id (or pair_id)")
        )
    if "label" not in named:
        problems.append(Problem(f"{name}, row 1", f"columns {named}"[:200], "a column label"))
    if problems:
        raise SourceError(
            f"{name} is no sheet of labels.", problems, "keep the header row of the packets as it was"
        )


def read_label_sheet(data: bytes, options: LabelFileOptions) -> pd.DataFrame:
    """Return the label rows of a CSV, TSV or XLSX file.

    Parameters
    ----------
    data : bytes
        The file's content.
    options : LabelFileOptions
        Its name, sheet, and whose labels it holds.

    Returns
    -------
    pandas.DataFrame
        Columns label_rows.ROW_COLUMNS. A row without a label has state ``open``.

    Raises
    ------
    SourceError
        If it has no header with ``packet_id`` (or ``pair_id``) and ``label``, or cannot be decoded.
    """
    name = options.path
    is_book = data.startswith(b"PK\x03\x04")
    if data.startswith(_OLD_OFFICE):
        raise SourceError(
            f"{name} is a workbook of an old form (.xls), or locked with a password.",
            [Problem(name, "a file of the old Office form", "an .xlsx or a CSV file without a password")],
            "open it and save it as .xlsx without a password",
        )
    try:
        table = _xlsx_rows(data, name, options.sheet) if is_book else _csv_rows(data, name)
    except csv.Error as error:
        raise SourceError(
            f"{name} is no CSV file.", [Problem(name, str(error), "CSV with quoted cells")]
        ) from error
    if not table:
        raise SourceError(f"{name} is empty.", [Problem(name, "no row", "a header row and labels")])
    header = [column.strip().lstrip("\ufeff").lower() for column in table[0]]
    _check_header(header, name)
    columns = _joined_continuations(header)
    slots = [match[1] for column in columns if (match := _ATTRIBUTE_LABEL.fullmatch(column))]
    records: list[dict[str, object]] = []
    for number, cells in enumerate(table[1:], start=2):
        if not any(cell.strip() for cell in cells):
            continue
        records += _row_records(cells, number, name, columns, slots, options)
    return rows_frame(records)


def _row_records(
    cells: list[str],
    number: int,
    name: str,
    columns: dict[str, list[int]],
    slots: list[str],
    options: LabelFileOptions,
) -> Iterable[dict[str, object]]:
    def cell(column: str) -> str | None:
        places = columns.get(column)
        if places is None:
            return None
        if len(places) == 1:  # as good as always: many labels are read faster so
            return undo_safe(cells[places[0]]) if places[0] < len(cells) else ""
        return "".join(undo_safe(cells[place]) for place in places if place < len(cells))

    def stripped(column: str) -> str | None:
        text = cell(column)
        return (text.strip() or None) if text is not None else None

    said_by = stripped("annotator") or stripped("annotator_id")
    common: dict[str, object] = {
        "file": name,
        "row": number,
        "place": f"row {number}",
        "layout": "spreadsheet",
        "made_by": options.made_by,
        "annotator": options.annotator or said_by,
        "said_by": said_by,
        "declared": options.annotator,
        "packet_id": stripped("packet_id"),
        "pair_id": stripped("pair_id") if "packet_id" not in columns else None,
        "comment": stripped("comment"),
        "labelled_at": stripped("labelled_at"),
        "question": cell("question"),
        "answer_a": cell("answer_a"),
        "answer_b": cell("answer_b"),
    }
    label = stripped("label")
    yield common | {
        "attribute": stripped("attribute"),
        "label": label,
        "label_column": "label",
        "reason_codes": stripped("reason_codes"),
        "state": "completed" if label else "open",
    }
    for slot in slots:
        answer = stripped(f"{slot}_label")
        if answer is not None:
            attribute = stripped(slot) or slot
            yield common | {
                "attribute": attribute,
                "label": answer,
                "label_column": f"{slot}_label",
                "state": "completed",
            }
