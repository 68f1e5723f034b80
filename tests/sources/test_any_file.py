"""Whatever a file holds, it is read or refused with one report: no other exception, no half import."""

import bz2
import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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

READERS = {"pairs": read_pairs, "verdicts": read_logs, "labels": read_labels}
NAMES = ("x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz", "x.jsonl.bz2", "x.json.xz")
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(
    ["A", "B", "AB", "BA", "1", "2", "model_a", "tie", "", "[1", '{"a": 1}']
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def refusal(read: Any, *args: Any) -> SourceError | None:
    """Return how the file was refused; None if it was read. Anything else is a failure of the test."""
    try:
        read(*args)
    except SourceError as error:
        return error
    return None


def read_or_refuse(kind: str, name: str, content: bytes, layout: str, **over: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        error = refusal(READERS[kind], [SourceFile(path=str(path), layout=layout, set=over)])
    problems = error.problems if error else []
    assert error is None or problems
    assert all(problem.where and problem.found and problem.wanted for problem in problems)


class TestAnyBytes:
    @given(st.sampled_from(NAMES), st.binary(max_size=200))
    @settings(max_examples=60, deadline=None)
    def test_random_bytes(self, name, content):
        read_or_refuse("pairs", name, content, "pairs")

    @given(st.sampled_from(["x.csv", "x.tsv"]), st.text(alphabet='qa",\t\n\r\x00é', max_size=60))
    @settings(max_examples=60, deadline=None)
    def test_random_tables(self, name, text):
        head = "question,response_a,response_b\n".replace(",", "\t" if name == "x.tsv" else ",")
        read_or_refuse("pairs", name, (head + text).encode(), "pairs")

    @given(st.integers(0, 200))
    @settings(max_examples=20, deadline=None)
    def test_files_that_break_off(self, end):
        whole = b"question,response_a,response_b\n" + b"why,so,not so\n" * 20
        read_or_refuse("pairs", "x.csv.gz", gzip.compress(whole)[:end], "pairs")
        read_or_refuse("pairs", "x.csv.bz2", bz2.compress(whole)[:end], "pairs")


def names_of(layout: str) -> list[str]:
    """Return the top-level columns that a layout reads."""
    text = json.dumps(load_layout(layout).model_dump())
    found: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("column"), str):
                found.add(value["column"].split(".")[0])
            found.update(c.split(".")[0] for c in value.get("columns", ()) if isinstance(c, str))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(json.loads(text))
    return sorted(name for name in found if not name.startswith("_"))


@pytest.mark.parametrize("layout", layout_names())
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_any_values_in_the_columns_of_a_layout(layout, data):
    described = load_layout(layout)
    names = names_of(layout)
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(names, values)), min_size=1, max_size=4))
    document: Any = rows
    for part in reversed((described.records or "").split(".") if described.records else []):
        document = {part: document}
    content = json.dumps(document).encode("utf-8")
    read_or_refuse(described.kind, "LLMBar/Natural/x.json", content, layout, format="json")


@given(st.lists(st.dictionaries(st.text(max_size=6), values, max_size=5), max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_proposal_for_anything(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.json")
        path.write_text(json.dumps(rows), "utf-8")
        error = refusal(propose_layout, str(path))
    assert error is None or error.problems
