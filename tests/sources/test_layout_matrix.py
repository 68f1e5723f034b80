"""Every layout against every way in which its files are met, and every way in which they can be wrong."""

from __future__ import annotations

import bz2
import copy
import csv
import gzip
import io
import json
import lzma
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from layout_examples import EXAMPLES, as_json, is_flat

from judge_calibration.errors import SourceError
from judge_calibration.sources import (
    SourceFile,
    layout_names,
    load_layout,
    propose_layout,
    read_labels,
    read_logs,
    read_pairs,
)
from judge_calibration.text import from_storable

NAMES = sorted(EXAMPLES)
INSIDE = [name for name in NAMES if load_layout(name).records]
LINES = [
    (name, ending, end)
    for name in NAMES
    for ending, end in ((".json", "\n"), (".jsonl", "\r\n"), (".ndjson", "\n\n"))
    # One object called .json is a document, unless the layout says lines.
    if name not in INSIDE
    and (ending != ".json" or len(EXAMPLES[name].rows) > 1 or load_layout(name).format == "jsonl")
]
FLAT = [name for name in NAMES if is_flat(EXAMPLES[name].rows)]
ODD = "naïve 名 🙂 \u202e \u200b a\ud800b \x00 c\r\nd \u2028 &amp; =1+1 ' \" \\ \ufeff"

each = pytest.mark.parametrize("name", NAMES)


def test_every_packaged_layout_has_an_example() -> None:
    assert layout_names() == NAMES


@pytest.fixture
def read_as(tmp_path: Path):
    """Write bytes under the example's name, with other endings if wanted, and return what is read."""

    def read(name: str, content: bytes, ending: str = "", **over: Any) -> list[Any]:
        path = tmp_path / EXAMPLES[name].file
        if ending:
            path = path.with_name(path.name[: -len(path.suffix)] + ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return read_file(name, str(path), **over)

    return read


def read_file(name: str, path: str, **over: Any) -> list[Any]:
    kind = load_layout(name).kind
    source = [SourceFile(path=path, layout=name, set=over)]
    if kind == "pairs":
        return winners(read_pairs(source).pairs)
    if kind == "labels":
        return read_labels(source).labels["label"].tolist()
    verdicts = read_logs(source).verdicts
    told = verdicts["verdict"].where(verdicts["verdict"].notna(), verdicts["outcome"])
    return list(zip(verdicts["order"], told, strict=True))


def winners(pairs: pd.DataFrame) -> list[str | None]:
    sides = {"A": "response_a", "B": "response_b"}
    return [
        row[sides[label]] if (label := row["reference_label"]) in sides else label if label == "TIE" else None
        for row in pairs.to_dict("records")
    ]


def lines_of(rows: list[dict[str, Any]], end: str = "\n") -> str:
    return "".join(json.dumps(row) + end for row in rows)


def text_of(name: str, rows: list[dict[str, Any]]) -> str:
    """Return the rows as JSON lines, or as the document that the layout wants."""
    return as_json(EXAMPLES[name], rows) if name in INSIDE else lines_of(rows)


def ending_of(name: str) -> str:
    return ".json" if name in INSIDE else ".jsonl"


def csv_of(rows: list[dict[str, Any]], end: str = "\r\n") -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def zst(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


PRESSES = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zst)]


class TestAsItIsWritten:
    @each
    @pytest.mark.parametrize("pretty", [None, 2])
    def test_a_json_list(self, read_as, name, pretty):
        example = EXAMPLES[name]
        assert read_as(name, as_json(example, example.rows, indent=pretty).encode(), ".json") == example.read

    @pytest.mark.parametrize(("name", "ending", "end"), LINES)
    def test_json_lines(self, read_as, name, ending, end):
        assert read_as(name, lines_of(EXAMPLES[name].rows, end).encode(), ending) == EXAMPLES[name].read

    @pytest.mark.parametrize("name", [n for n in NAMES if n not in INSIDE])
    def test_parquet(self, tmp_path, name):
        example = EXAMPLES[name]
        path = tmp_path / Path(example.file).with_suffix(".parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = json.loads(json.dumps(example.rows).replace("{}", '{"x": 1}'))  # Parquet has no empty mapping
        pd.DataFrame(rows).to_parquet(path)
        assert read_file(name, str(path)) == example.read

    @pytest.mark.parametrize("name", FLAT)
    @pytest.mark.parametrize(
        ("end", "encoding"), [("\n", "utf-8"), ("\r\n", "utf-8-sig"), ("\r", "utf-8"), ("\r\n", "utf-16")]
    )
    def test_csv(self, read_as, name, end, encoding):
        text = csv_of(EXAMPLES[name].rows, end)
        assert read_as(name, text.encode(encoding), ".csv") == EXAMPLES[name].read

    @pytest.mark.parametrize("name", FLAT)
    def test_csv_with_semicolons_by_its_own_word(self, read_as, name):
        text = csv_of(EXAMPLES[name].rows, "\n")
        rows = list(csv.reader(io.StringIO(text)))
        out = io.StringIO()
        csv.writer(out, delimiter=";", lineterminator="\n").writerows(rows)
        assert read_as(name, out.getvalue().encode(), ".csv", delimiter=";") == EXAMPLES[name].read
        assert read_as(name, b"sep=;\n" + out.getvalue().encode(), ".csv") == EXAMPLES[name].read

    @pytest.mark.parametrize("name", FLAT)
    def test_a_workbook(self, tmp_path, name):
        path = tmp_path / Path(EXAMPLES[name].file).with_suffix(".xlsx")
        path.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(EXAMPLES[name].rows).to_excel(path, index=False)
        assert read_file(name, str(path)) == EXAMPLES[name].read

    @each
    @pytest.mark.parametrize("place", [0, 1])
    def test_compressed(self, read_as, name, place):
        ending, press = PRESSES[(NAMES.index(name) + 2 * place) % 4]
        text = text_of(name, EXAMPLES[name].rows)
        assert read_as(name, press(text.encode()), ending_of(name) + ending) == EXAMPLES[name].read

    @each
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
    def test_a_byte_order_mark(self, read_as, name, encoding):
        text = text_of(name, EXAMPLES[name].rows)
        assert read_as(name, text.encode(encoding), ending_of(name)) == EXAMPLES[name].read


class TestWhatElseIsThere:
    @each
    def test_columns_that_nothing_reads_change_nothing(self, read_as, name):
        rows = [{"zz_more": {"deep": [1, None]}, **row, "zz_last": None} for row in EXAMPLES[name].rows]
        assert read_as(name, text_of(name, rows).encode(), ending_of(name)) == EXAMPLES[name].read

    @each
    def test_columns_in_another_order(self, read_as, name):
        rows = [dict(reversed(row.items())) for row in EXAMPLES[name].rows]
        assert read_as(name, text_of(name, rows).encode(), ending_of(name)) == EXAMPLES[name].read

    @each
    def test_rows_in_another_order_give_the_same(self, read_as, name):
        rows = EXAMPLES[name].rows[::-1]
        read = read_as(name, text_of(name, rows).encode(), ending_of(name))
        assert sorted(map(str, read)) == sorted(map(str, EXAMPLES[name].read))

    @each
    def test_without_what_is_not_needed(self, read_as, name):
        optional = {"zz"} | set(EXAMPLES[name].optional)
        fields = load_layout(name).fields
        optional |= {
            field.column for key, field in fields.items()
            if key != "verdict" and field.optional and field.column and "." not in field.column
        }  # fmt: skip
        optional -= {"turn"}  # rows of one turn would be the same judgment
        if name == "pairs":
            optional -= {"reference_label", "reference_kind"}
        rows = [
            {key: value for key, value in row.items() if key not in optional} for row in EXAMPLES[name].rows
        ]
        if name == "alpacaeval_annotations":
            rows = EXAMPLES[name].rows
        assert read_as(name, text_of(name, rows).encode(), ending_of(name)) == EXAMPLES[name].read


def put(record: dict[str, Any], path: str, value: Any) -> None:
    *folders, last = path.split(".")
    place: Any = record
    for part in folders:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value


TEXTS = [(name, path) for name in NAMES for path in EXAMPLES[name].texts]
LABELS = [name for name in NAMES if EXAMPLES[name].label]


class TestOddTexts:
    @pytest.mark.parametrize(("name", "path"), TEXTS)
    def test_no_character_is_lost(self, tmp_path, name, path):
        example = EXAMPLES[name]
        rows = copy.deepcopy(example.rows)
        for row in rows if name == "helpsteer2_ratings" else rows[:1]:  # whose rows share a prompt
            put(row, path, ODD if path != "response" else f"{ODD}{row['helpfulness']}")
        place = tmp_path / Path(example.file).with_suffix(ending_of(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text_of(name, rows))
        source = [SourceFile(path=str(place), layout=name)]
        layout = load_layout(name)
        read = read_pairs(source).pairs if layout.kind == "pairs" else read_logs(source).pairs
        shown = [
            from_storable(text) for text in read[["question", "response_a", "response_b"]].to_numpy().ravel()
        ]
        wanted = ODD.replace("&amp;", "&") if layout.rules.html_entities == "unescape" else ODD
        assert any(wanted in text for text in shown)


def refusal(name: str, path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        read_file(name, str(path))
    assert all(problem.where and problem.found and problem.wanted for problem in caught.value.problems)
    return str(caught.value)


def write_rows(tmp_path: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = tmp_path / Path(EXAMPLES[name].file).with_suffix(ending_of(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(name, rows))
    return path


class TestWrongFiles:
    @pytest.mark.parametrize("name", LABELS)
    @pytest.mark.parametrize("value", ["?!", True, {"a": 1}, 99])
    def test_a_label_that_no_code_names_is_told_with_its_place_and_once(self, tmp_path, name, value):
        rows = copy.deepcopy(EXAMPLES[name].rows)
        put(rows[0], EXAMPLES[name].label, value)
        if value == 99 and name in ("mtbench_items", "arena_55k", "helpsteer2_ratings", "ultrafeedback"):
            assert read_file(name, str(write_rows(tmp_path, name, rows)))  # votes and scores are any number
            return
        told = refusal(name, write_rows(tmp_path, name, rows))
        where = EXAMPLES[name].label.split(".")[0]
        problems = [line for line in told.splitlines() if line.startswith("  - ")]
        assert len(problems) == 1, told
        assert "row 1" in problems[0] or load_layout(name).expand, told
        assert where in problems[0] or where.removeprefix("g1_") in problems[0], told

    @pytest.mark.parametrize(("name", "path"), TEXTS)
    @pytest.mark.parametrize("value", [None, True])
    def test_a_text_that_is_none_is_refused_or_left_out_and_counted(self, tmp_path, name, path, value):
        rows = copy.deepcopy(EXAMPLES[name].rows)
        put(rows[0], path, value)
        place = write_rows(tmp_path, name, rows)
        try:
            read_file(name, str(place))
        except SourceError as error:
            refused = str(error)
        else:
            refused = ""
        if refused:
            assert "row 1" in refused or "nothing is left (records_without_a_row 2)" in refused
            return
        layout = load_layout(name)
        notes = json.loads(
            read_pairs([SourceFile(path=str(place), layout=name)]).source_files.loc[0, "notes"]
        )
        missing_part = path in ("instruction", "info.post")  # joined with another, or one of two places
        dropped = layout.rules.response_no_text == "drop" and notes["response_no_text"] == 1
        assert dropped or missing_part

    @each
    def test_each_needed_column_is_named_when_it_is_absent(self, tmp_path, name):
        example = EXAMPLES[name]
        untouched = {"turn", *example.optional} if name == "fastchat_pair" else {"zz", *example.optional}
        for column in example.rows[0]:
            if column in untouched:
                continue
            rows = [{key: value for key, value in row.items() if key != column} for row in example.rows]
            told = ""
            try:
                read_file(name, str(write_rows(tmp_path, name, rows)))
            except SourceError as error:
                told = str(error)
            assert not told or column.removeprefix("g1_").removeprefix("g2_") in told, (column, told)
            assert sum(line.startswith("  - ") for line in told.splitlines()) <= 3, told

    @each
    def test_no_rows_is_told(self, tmp_path, name):
        assert "no rows" in refusal(name, write_rows(tmp_path, name, []))

    @each
    def test_a_file_that_breaks_off_is_told(self, tmp_path, name):
        path = write_rows(tmp_path, name, EXAMPLES[name].rows)
        path.write_bytes(path.read_bytes()[:-9])
        assert str(path) in refusal(name, path)


@pytest.mark.parametrize("name", [n for n in NAMES if load_layout(n).kind == "verdicts"])
def test_the_second_order_is_mapped_back_where_labels_name_places_only(name):
    """The same value in both orders is the same candidate in mode identity, the other one in mode shown."""
    layout = load_layout(name)
    both = [told for told in EXAMPLES[name].read if told[1] in ("A", "B")]
    orders = {order for order, _ in both}
    if orders != {"AB", "BA"} or name == "llmbar_results":
        return
    first, second = (next(told for order, told in both if order == wanted) for wanted in ("AB", "BA"))
    assert (first == second) == (layout.order_mode == "identity")


@each
def test_the_doctor_recognises_it(tmp_path, name):
    path = write_rows(tmp_path, name, EXAMPLES[name].rows)
    fitting = propose_layout(str(path)).fitting
    twins = {
        "alpacaeval_annotations": "alpacaeval", "mtbench_votes": "mtbench_items",
        "judgebench": "judgebench_outputs",
    }  # fmt: skip
    assert name in fitting or twins.get(name) in fitting
