"""Reads that others made: long tables (a row a read), or one packed file a judge."""

from __future__ import annotations

import codecs
import csv
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration.errors import Problem
from judge_calibration.options.attributes import ReadsFile
from judge_calibration.profiles.cube import (
    FILE,
    ROW,
    ReadCube,
    ReadsError,
    cube_from_reads,
    problem_count,
)
from judge_calibration.profiles.inventory import column_name
from judge_calibration.profiles.packed_tables import from_tables, joined
from judge_calibration.schemas import OUTCOMES

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KEYS = ("pair_id", "judge_id", "attribute", "order")
_LONG = (*_KEYS, "direction")
_UNIT = ("confidence", "magnitude")
_MOST = 20


class ImportedReads(NamedTuple):
    """Reads from files.

    cube : ReadCube
    outcomes : pandas.DataFrame
        judge_id and outcome of every read of the long files; packed files do not tell outcomes.
    """

    cube: ReadCube
    outcomes: pd.DataFrame


def import_reads(
    files: Sequence[ReadsFile], attributes: Sequence[str], pairs: Sequence[str] | None = None
) -> ImportedReads:
    """Read files of reads.

    Parameters
    ----------
    files : sequence of ReadsFile
        Paths, patterns or folders, and how they are laid out.
    attributes : sequence of str
        The inventory's names (as in tables: underscores).
    pairs : sequence of str, optional
        The known pair ids; other items are refused.

    Raises
    ------
    ReadsError
        No such file, an unknown format, or anything that keeps the reads from being a complete panel. All
        problems of one layout are told together, each with its file and row; nothing is imported half.

    Notes
    -----
    A row is numbered as a spreadsheet shows it in CSV (the header is row 1), and from 1 in Parquet.
    """
    problems: list[Problem] = []
    long: list[pd.DataFrame] = []
    packed: dict[str, pd.DataFrame] = {}
    for file in files:
        for path in _paths(file.path, problems):
            frame = _frame(path, file, problems)
            if frame is None:
                continue
            if file.layout == "long":
                long.append(_long_frame(frame, file, str(path), attributes, pairs, problems))
            else:
                judge = file.judge_id
                if judge is None and "judge_id" not in frame.columns:
                    judge = path.stem
                packed[_unique(str(path), packed)] = frame if judge is None else frame.assign(judge_id=judge)
    cubes = []
    reads = pd.concat(long, ignore_index=True) if long else None
    if reads is not None:
        cubes.append(cube_from_reads(reads, attributes, pairs, problems))
    elif problems:
        raise ReadsError(
            f"Files of reads: {problem_count(problems)}; nothing was imported.",
            problems,
            "correct the files",
        )
    if packed:
        cubes.append(from_tables(packed, attributes, pairs))
    cube = cubes[0] if len(cubes) == 1 else joined(cubes)
    outcomes = pd.DataFrame({"judge_id": [], "outcome": []}, dtype="str")
    return ImportedReads(cube, outcomes if reads is None else reads[["judge_id", "outcome"]])


def _paths(given: str, problems: list[Problem]) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        found = sorted(
            p for p in path.iterdir() if p.suffix.lower() in _FORMATS and not p.name.startswith(".")
        )
    elif path.is_file():
        found = [path]
    else:
        found = [Path(name) for name in sorted(glob.glob(given, recursive=True))]
    if not found:
        problems.append(Problem(given, "no such file", "a CSV or Parquet file, a folder, or a pattern"))
    return found


def _unique(name: str, taken: dict[str, pd.DataFrame]) -> str:
    n, tried = 2, name
    while tried in taken:
        tried, n = f"{name} ({n})", n + 1
    return tried


def _frame(path: Path, file: ReadsFile, problems: list[Problem]) -> pd.DataFrame | None:
    """Return a file's rows, indexed by their numbers, under this project's names; None with a problem."""
    kind = _FORMATS.get(path.suffix.lower())
    before = len(problems)
    if kind is None:
        problems.append(Problem(str(path), f"the ending {path.suffix!r}", ".csv or .parquet"))
        return None
    try:
        if kind == "parquet":
            frame = pd.read_parquet(path).reset_index(drop=True)
            frame.index += 1
        else:
            given = _csv(path, file, problems)
            if given is None:
                return None
            frame = given
    except UnicodeDecodeError as error:
        problems.append(_undecodable(path, error))
        return None
    except (ValueError, OSError, NotImplementedError, csv.Error) as error:
        problems.append(Problem(str(path), str(error).splitlines()[0][:200], f"a readable {kind} file"))
        return None
    for theirs in sorted(set(file.columns.values()) - set(map(str, frame.columns))):
        found, wanted = "no such column", f"what `columns` names: one of {', '.join(map(str, frame.columns))}"
        problems.append(Problem(f"{path}, column {theirs}", found, wanted[:300]))
    ours = {theirs: name for name, theirs in file.columns.items()}
    frame.columns = pd.Index([ours.get(str(name), str(name)) for name in frame.columns])
    for name in frame.columns[frame.columns.duplicated()].unique():
        problems.append(
            Problem(f"{path}, column {name}", "several columns of this name", "one; `columns` renames")
        )
    if frame.empty:
        problems.append(Problem(str(path), "no rows", "a row a read" if file.layout == "long" else "an item"))
    return None if len(problems) > before else frame


def _csv(path: Path, file: ReadsFile, problems: list[Problem]) -> pd.DataFrame | None:
    with open(path, "rb") as handle:
        start = handle.read(4)
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    header = _check_shape(path, encoding, problems)
    if header is None:
        return None
    keys = {file.columns.get(name, name): "str" for name in ("pair_id", "judge_id")}
    frame = pd.read_csv(
        path,
        dtype="str" if file.layout == "long" else keys,
        keep_default_na=False,
        na_values=[""],
        encoding=encoding,
        # Empty lines count as rows, so that numbers are those of a spreadsheet.
        skip_blank_lines=False,
    )
    frame.columns = header  # pandas renames a column that is there twice
    frame.index += 2
    return frame.dropna(how="all")


def _check_shape(path: Path, encoding: str, problems: list[Problem]) -> list[str] | None:
    """Return the header; None, with problems, where rows have other numbers of cells (pandas pads them)."""
    before = len(problems)
    with open(path, encoding=encoding, newline="") as handle:
        rows = csv.reader(handle)
        header = next(rows, None)
        if not header:
            problems.append(Problem(str(path), "no header", "a first row with the names of the columns"))
            return None
        for number, row in enumerate(rows, start=2):
            if len(row) != len(header) and row:
                found, wanted = f"{len(row)} cells", f"{len(header)}, as in the header"
                problems.append(Problem(f"{path}, row {number}", found, wanted))
                if len(problems) >= before + _MOST:
                    break
    return header if len(problems) == before else None


def _undecodable(path: Path, error: UnicodeDecodeError) -> Problem:
    with open(path, "rb") as handle:
        for number, line in enumerate(handle, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as own:
                byte = line[own.start : own.start + 1].hex()
                return Problem(f"{path}, line {number}", f"byte 0x{byte}, which is not UTF-8", "UTF-8")
    return Problem(str(path), str(error)[:200], "UTF-8")


def _long_frame(
    frame: pd.DataFrame,
    file: ReadsFile,
    where: str,
    attributes: Sequence[str],
    pairs: Sequence[str] | None,
    problems: list[Problem],
) -> pd.DataFrame:
    if file.judge_id is not None:
        frame = frame.assign(judge_id=file.judge_id)
    absent = [name for name in _LONG if name not in frame.columns]
    for name in absent:
        problems.append(
            Problem(
                f"{where}, column {name}",
                "no such column",
                f"one of {', '.join(map(str, frame.columns))[:200]} under `columns`",
            )
        )
    if absent:
        return pd.DataFrame({name: pd.Series(dtype="str") for name in (*_LONG, "outcome", FILE, ROW)})
    text = pd.DataFrame({name: _text(frame[name]) for name in _LONG})
    for name in _KEYS:
        _tell(problems, where, name, text[name].isna(), None, "a text")
    text["attribute"] = text["attribute"].map(column_name, na_action="ignore")
    known = text["attribute"].isna() | text["attribute"].isin(attributes)
    _tell(problems, where, "attribute", ~known, text["attribute"], "an attribute of the inventory")
    if pairs is not None:
        known = text["pair_id"].isna() | text["pair_id"].isin(pairs)
        _tell(problems, where, "pair_id", ~known, text["pair_id"], "an item of the table pairs")
    known = text["order"].isna() | text["order"].isin(("AB", "BA"))
    _tell(problems, where, "order", ~known, text["order"], "AB or BA: a cell has two orders")
    meaning = {**{"A": "A", "B": "B", "NONE": "NONE"}, **file.directions}
    direction = text["direction"].map(lambda v: meaning.get(v, "?"), na_action="ignore")
    _tell(
        problems,
        where,
        "direction",
        direction == "?",
        text["direction"],
        "A, B, NONE, or a value named in `directions`",
    )
    given = "outcome" in frame.columns
    outcome = _text(frame["outcome"]) if given else pd.Series(None, index=frame.index, dtype="str")
    # Without an outcome a read that says nothing did not arrive; with one, it says why.
    outcome = outcome.where(outcome.notna(), direction.isna().map({True: "missing", False: "valid"}))
    _tell(problems, where, "outcome", ~outcome.isin(OUTCOMES), outcome, "one of " + ", ".join(OUTCOMES))
    silent = (outcome == "valid") & direction.isna()
    _tell(problems, where, "direction", silent, None, "a direction, since the outcome is valid")
    spoken = outcome.isin(OUTCOMES) & (outcome != "valid") & direction.notna()
    _tell(problems, where, "direction", spoken, text["direction"], "nothing, since the outcome is not valid")
    for name in _UNIT:
        if name in frame.columns:
            value = pd.to_numeric(frame[name], errors="coerce")
            wrong = frame[name].notna() & ~value.between(0, 1)
            _tell(problems, where, name, wrong, _text(frame[name]), "a number from 0 to 1, or nothing")
    if file.direction_names == "shown":
        swapped = direction.map({"A": "B", "B": "A"}).where(text["order"] == "BA")
        direction = swapped.where(swapped.notna(), direction)
    found = text.assign(direction=direction, outcome=outcome)
    found[FILE] = pd.Categorical([where] * len(found))
    found[ROW] = found.index
    return found.reset_index(drop=True)


def _text(values: pd.Series) -> pd.Series:
    """Return values as text: whole numbers without a decimal point, outer white space taken off."""
    if pd.api.types.is_float_dtype(values) and (values.dropna() % 1 == 0).all():
        values = values.astype("Int64")
    text = values.astype("str").str.strip()
    return text.where(values.notna() & (text != ""))


def _tell(
    problems: list[Problem], where: str, column: str, wrong: pd.Series, values: Any, wanted: str
) -> None:
    """Note each wrong value once, with its first row and how many rows have it."""
    if not wrong.any():
        return
    rows = wrong.index[wrong].to_series()
    grouped = rows.groupby(rows * 0 if values is None else values[wrong], sort=False)
    counted = grouped.agg(["first", "size"])
    for value, first, n in list(zip(counted.index, counted["first"], counted["size"], strict=True))[:_MOST]:
        found = "nothing" if values is None else repr(str(value))
        where_first = f"{where}, row {first}, column {column}"
        problems.append(Problem(where_first, found if n == 1 else f"{found} in {n:,} rows", wanted))
