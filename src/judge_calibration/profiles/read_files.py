"""Reads that others made: long tables (a row a read), or one packed file a judge."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judge_calibration.errors import Problem
from judge_calibration.options.attributes import ReadsFile
from judge_calibration.profiles.cube import ReadCube, ReadsError, cube_from_reads
from judge_calibration.profiles.inventory import column_name
from judge_calibration.profiles.packed_tables import from_tables, joined
from judge_calibration.schemas import OUTCOMES

_FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_LONG = ("pair_id", "judge_id", "attribute", "order", "direction")
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
        problems of one layout are told together; nothing is imported half.
    """
    problems: list[Problem] = []
    long: list[pd.DataFrame] = []
    packed: dict[str, pd.DataFrame] = {}
    for file in files:
        for path in _paths(file.path, problems):
            frame = _frame(path, file.layout == "long", problems)
            if frame is None:
                continue
            frame = frame.rename(columns={given: name for name, given in file.columns.items()})
            if file.layout == "long":
                long.append(_long_frame(frame, file, str(path), problems))
            else:
                if file.judge_id is not None:
                    frame = frame.assign(judge_id=file.judge_id)
                packed[_unique(path.stem, packed)] = frame
    if problems:
        raise ReadsError(
            f"Files of reads have {len(problems)} problems; nothing was imported.",
            problems,
            "correct the files",
        )
    cubes = []
    reads = pd.concat(long, ignore_index=True) if long else None
    if reads is not None:
        cubes.append(cube_from_reads(reads, attributes, pairs))
    if packed:
        cubes.append(from_tables(packed, attributes, pairs))
    cube = cubes[0] if len(cubes) == 1 else joined(cubes)
    outcomes = pd.DataFrame({"judge_id": [], "outcome": []}, dtype="str")
    return ImportedReads(cube, outcomes if reads is None else reads[["judge_id", "outcome"]])


def _paths(given: str, problems: list[Problem]) -> list[Path]:
    path = Path(given)
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix in _FORMATS and not p.name.startswith("."))
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


def _frame(path: Path, as_text: bool, problems: list[Problem]) -> pd.DataFrame | None:
    kind = _FORMATS.get(path.suffix.lower())
    if kind is None:
        problems.append(Problem(str(path), f"the ending {path.suffix!r}", ".csv or .parquet"))
        return None
    try:
        if kind == "parquet":
            return pd.read_parquet(path)
        return pd.read_csv(
            path,
            dtype="str" if as_text else {"pair_id": "str", "judge_id": "str"},
            keep_default_na=False,
            na_values=[""],
        )
    except (ValueError, OSError) as error:
        problems.append(Problem(str(path), str(error).splitlines()[0][:200], f"a readable {kind} file"))
        return None


def _long_frame(frame: pd.DataFrame, file: ReadsFile, where: str, problems: list[Problem]) -> pd.DataFrame:
    frame = frame.copy()
    if file.judge_id is not None:
        frame["judge_id"] = file.judge_id
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
        return pd.DataFrame({name: pd.Series(dtype="str") for name in (*_LONG, "outcome")})
    text = frame[list(_LONG)].astype("str")
    for name in ("pair_id", "judge_id", "attribute", "order"):
        for row in text.index[text[name].isna()][:3]:
            problems.append(Problem(f"{where}, row {int(row) + 1}, column {name}", "nothing", "a text"))
    text["attribute"] = text["attribute"].map(column_name, na_action="ignore")
    meaning = {**{"A": "A", "B": "B", "NONE": "NONE"}, **file.directions}
    direction = text["direction"].map(lambda v: meaning.get(v, "?"), na_action="ignore")
    outcome = (
        frame["outcome"].astype("str")
        if "outcome" in frame.columns
        else pd.Series(None, index=frame.index, dtype="str")
    )
    # Without an outcome a read that says nothing did not arrive; with one, it says why.
    outcome = outcome.where(outcome.notna(), direction.isna().map({True: "missing", False: "valid"}))
    for value, n in text.loc[direction == "?", "direction"].value_counts().head(_MOST).items():
        problems.append(
            Problem(
                f"{where}, column direction",
                f"{value!r} in {n:,} rows",
                "A, B, NONE, or a value named in `directions`",
            )
        )
    for value, n in outcome[~outcome.isin(OUTCOMES)].value_counts().head(_MOST).items():
        problems.append(
            Problem(f"{where}, column outcome", f"{value!r} in {n:,} rows", "one of " + ", ".join(OUTCOMES))
        )
    if file.direction_names == "shown":
        swapped = direction.map({"A": "B", "B": "A"}).where(text["order"] == "BA")
        direction = swapped.where(swapped.notna(), direction)
    return text.assign(direction=direction, outcome=outcome)
