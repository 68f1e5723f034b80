"""Pairs in Excel workbooks: read as their export to CSV, refused where Excel has altered what was typed."""

import datetime
import io
import zipfile

import pytest
from openpyxl import Workbook

from judge_calibration.errors import SourceError
from judge_calibration.sources import SourceFile, propose_layout, read_pairs

HEADER = ["question", "response_a", "response_b", "reference_label"]


def book_of(*sheets, titles=("Tabelle1", "Tabelle2", "Tabelle3")):
    book = Workbook()
    book.remove(book.active)
    for rows, title in zip(sheets, titles, strict=False):
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


@pytest.fixture
def pairs_in(write):
    def read(content, name="pairs.xlsx", **over):
        path = write(name, content)
        source = SourceFile(path=path, layout="pairs", set={"reference_kind": "human", **over})
        return read_pairs([source]).pairs

    return read


def refused(read, *args, **over):
    with pytest.raises(SourceError) as caught:
        read(*args, **over)
    return str(caught.value)


class TestCells:
    def test_numbers_are_the_text_that_csv_has_and_empty_cells_are_empty(self, pairs_in):
        rows = [HEADER, ["2 + 2?", 4, 4.5, None], ["And?", "x", "y", "A"]]
        pairs = pairs_in(book_of(rows))
        assert pairs.loc[0, ["response_a", "response_b"]].tolist() == ["4", "4.5"]
        assert pairs["reference_label"].isna().tolist() == [True, False]

    def test_rows_have_the_numbers_that_the_spreadsheet_shows(self, pairs_in):
        rows = [[], HEADER, ["q1", "a", "b", "A"], [], ["q2", "a", "b", "C"]]
        told = refused(pairs_in, book_of(rows))
        assert "row 5, column reference_label" in told
        ours = pairs_in(book_of(rows[:4]))["provenance"].tolist()
        assert ours[0].endswith("row 3")

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (datetime.datetime(2026, 3, 4), "a spreadsheet makes of what is typed"),
            (1234567890123456789, "rounds to 15 digits"),
            ("=A1&B1", "a formula without a result"),
            ("#N/A", "the error #N/A"),
            (True, "true (boolean)"),
        ],
    )
    def test_what_excel_has_altered_is_refused_with_its_place(self, pairs_in, value, told):
        text = refused(pairs_in, book_of([HEADER, ["q", value, "b", "A"]]))
        assert told in text
        assert "row 2" in text

    def test_line_breaks_and_odd_characters_stay(self, pairs_in):
        odd = "naïve 名 🙂 \u202e\nsecond line\ttab"
        assert pairs_in(book_of([HEADER, ["q", odd, "b", "A"]])).loc[0, "response_a"] == odd

    def test_carriage_returns_that_excel_writes_as_codes_are_characters_again(self, pairs_in):
        pairs = pairs_in(book_of([HEADER, ["q", "one_x000D_\ntwo", "b", "A"]]))
        assert pairs.loc[0, "response_a"] == "one\r\ntwo"

    def test_a_value_under_no_header_is_refused(self, pairs_in):
        assert "5 fields" in refused(pairs_in, book_of([HEADER, ["q", "a", "b", "A", "stray"]]))

    def test_a_column_twice(self, pairs_in):
        assert "twice" in refused(pairs_in, book_of([[*HEADER, "question"], ["q", "a", "b", "A", "q"]]))


class TestSheets:
    ROWS = [HEADER, ["q", "a", "b", "A"]]

    def test_the_only_sheet_with_content_is_read(self, pairs_in):
        assert len(pairs_in(book_of([], self.ROWS))) == 1

    def test_one_of_several_has_to_be_named(self, pairs_in):
        both = book_of(self.ROWS, [["x"], ["y"]])
        told = refused(pairs_in, both)
        assert "several sheets: Tabelle1, Tabelle2" in told
        assert "sheet: Tabelle1" in told
        assert len(pairs_in(both, sheet="Tabelle1")) == 1
        assert "did you mean 'Tabelle1'" in refused(pairs_in, both, sheet="Tabele1")

    @pytest.mark.parametrize("rows", [[], [HEADER]])
    def test_no_rows(self, pairs_in, rows):
        told = refused(pairs_in, book_of(rows))
        assert "no rows" in told or "an empty workbook" in told


class TestWrongFiles:
    @pytest.mark.parametrize("content", [b"x", b"PK\x03\x04 cut", b"\xd0\xcf\x11\xe0 old"])
    def test_no_workbook(self, pairs_in, content):
        assert "xlsx" in refused(pairs_in, content)

    def test_an_archive_that_is_none(self, pairs_in):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("hello.txt", "x")
        assert "no workbook that can be read" in refused(pairs_in, out.getvalue())

    def test_a_workbook_that_breaks_off(self, pairs_in):
        assert "xlsx" in refused(pairs_in, book_of(TestSheets.ROWS)[:-30])


def test_a_proposal_for_an_unknown_workbook(write):
    rows = [["Frage", "Antwort 1", "Antwort 2", "besser"], ["q", "the first", "the second", 1]]
    text = propose_layout(write("x.xlsx", book_of(rows))).text
    assert "response_a: Antwort 1" in text
    assert "response_b: Antwort 2" in text
