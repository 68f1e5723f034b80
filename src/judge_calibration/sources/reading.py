"""The three doors: files of pairs, logs of verdicts, files of people's labels. All or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration.options.layout import FieldFrom, Kind, Layout, SourceFile
from judge_calibration.schemas import LABELS, PAIRS, VERDICT_ROWS, Column, Table, check, conform, empty
from judge_calibration.sources.expand import expand_blocks
from judge_calibration.sources.fields import Reader
from judge_calibration.sources.files import OpenFile, UnreadableFileError, expand_path, open_file
from judge_calibration.sources.labels import LabelBuilder
from judge_calibration.sources.layouts import resolve_layout, written_as
from judge_calibration.sources.pairs import PairBuilder
from judge_calibration.sources.problems import Problems
from judge_calibration.sources.records import read_blocks
from judge_calibration.sources.verdicts import VerdictBuilder
from judge_calibration.text import canonical_json

SOURCE_FILES = Table(
    "source_files",
    (
        Column("path"),
        Column("layout"),
        Column("kind", allowed=("pairs", "verdicts", "labels")),
        Column("sha256"),
        Column("rows", "integer"),  # rows read
        Column("imported", "integer"),  # pairs, verdicts or labels made of them
        Column("licence", nullable=True),
        Column("layout_status", allowed=("verified", "unverified")),
        Column("notes"),  # JSON: how often each rule applied
    ),
    key=("path", "kind", "layout"),
)
_TOLD = 10
_NEXT = "correct the files, or describe them in the parameters (see docs/sources); nothing was written"


class Pairs(NamedTuple):
    """What files of pairs give."""

    pairs: pd.DataFrame
    source_files: pd.DataFrame


class Logs(NamedTuple):
    """What logs give."""

    verdicts: pd.DataFrame
    pairs: pd.DataFrame
    source_files: pd.DataFrame


class Labels(NamedTuple):
    """What files of labels give."""

    labels: pd.DataFrame
    source_files: pd.DataFrame


def read_pairs(files: Sequence[SourceFile]) -> Pairs:
    r"""Read files of pairs.

    Parameters
    ----------
    files : sequence of SourceFile
        Paths (or patterns, or URLs) with their layouts.

    Returns
    -------
    Pairs
        `pairs` obeys `schemas.PAIRS` with `split` null, and has the further column `import_flags` (JSON
        list or null); `source_files` has one row a file.

    Raises
    ------
    SourceError
        With every problem of every file. Then nothing is imported.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = path.write_text("question,response_a,response_b\n2+2?,4,5\n")
    >>> read_pairs([SourceFile(path=str(path), layout="pairs")]).pairs["response_b"].tolist()
    ['5']
    """
    problems = Problems()
    frames: list[pd.DataFrame] = []
    table: list[dict[str, Any]] = []
    for file, layout in _each(files, "pairs", problems):
        builder = PairBuilder(layout, file, problems)
        rows = _feed(builder, file, layout, problems)
        frame = builder.finish()
        _check_not_nothing(frame, rows, file, builder, problems)
        frame["_file"] = file.given
        frames.append(frame)
        table.append(_line(file, layout, rows, len(frame), builder))
    _check_across(frames, ["pair_id"], problems)
    problems.raise_any(_NEXT)
    pairs = _together(frames, PAIRS, sentinel=False)
    return Pairs(pairs, _file_table(table))


def read_logs(files: Sequence[SourceFile]) -> Logs:
    """Read logs of verdicts made elsewhere.

    Returns
    -------
    Logs
        `verdicts` obeys `schemas.VERDICT_ROWS`, every row flagged ``replayed``; `pairs` holds the pairs that
        the verdicts are about, with null texts where a log came without them; `source_files` as above.

    Raises
    ------
    SourceError
        With every problem of every log. Then nothing is imported.
    """
    problems = Problems()
    frames: list[pd.DataFrame] = []
    pair_frames: list[pd.DataFrame] = []
    table: list[dict[str, Any]] = []
    for file, layout in _each(files, "verdicts", problems):
        builder = VerdictBuilder(layout, file, problems)
        rows = _feed(builder, file, layout, problems)
        verdicts, pairs = builder.finish()
        _check_not_nothing(verdicts, rows, file, builder, problems)
        for frame in (verdicts, pairs):
            frame["_file"] = file.given
        frames.append(verdicts)
        pair_frames.append(pairs)
        table.append(_line(file, layout, rows, len(verdicts), builder))
    _check_across(frames, list(VERDICT_ROWS.key), problems)
    pair_frames = _same_pairs(pair_frames, problems)
    problems.raise_any(_NEXT)
    return Logs(
        _together(frames, VERDICT_ROWS), _together(pair_frames, PAIRS, sentinel=False), _file_table(table)
    )


def read_labels(files: Sequence[SourceFile]) -> Labels:
    """Read labels by people from public or own files (not the packets of this project's own rounds).

    Returns
    -------
    Labels
        `labels` obeys `schemas.LABELS` and has the further column `kind` (human or ai, by the layout's
        `reference_kind`); `order` is null where the file does not tell it.

    Raises
    ------
    SourceError
        With every problem of every file. Then nothing is imported.
    """
    problems = Problems()
    frames: list[pd.DataFrame] = []
    table: list[dict[str, Any]] = []
    for file, layout in _each(files, "labels", problems):
        builder = LabelBuilder(layout, file, problems)
        rows = _feed(builder, file, layout, problems)
        frame = builder.finish()
        _check_not_nothing(frame, rows, file, builder, problems)
        frame["_file"] = file.given
        frames.append(frame)
        table.append(_line(file, layout, rows, len(frame), builder))
    _check_across(frames, list(LABELS.key), problems)
    problems.raise_any(_NEXT)
    return Labels(_together(frames, LABELS), _file_table(table))


def read_split(path: str) -> pd.DataFrame:
    """Read a frozen split: CSV, TSV, JSON lines or Parquet with the columns source, base_id and split.

    Returns
    -------
    pandas.DataFrame
        source, base_id, split, one row for each row of the file.

    Raises
    ------
    SourceError
        If the file cannot be read or a value is missing.
    """
    problems = Problems()
    names = ("source", "base_id", "split")
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    layout = Layout(layout="split", title="A frozen split", kind="pairs")
    try:
        with open_file(expand_path(path)[0]) as file:
            reader = Reader(file, problems)
            for block in read_blocks(file, layout, problems):
                for name in names:
                    values = reader.names(FieldFrom(column=name), block, name)
                    columns[name] += values
                    for row, value in zip(block.rows, values, strict=True):
                        if value is None:
                            problems.add(path, row, name, "nothing", f"a {name}")
            reader.note_missing_columns()
    except UnreadableFileError as error:
        problems.add(path, None, None, error.found, error.wanted)
    problems.raise_any("correct the file, or take `frozen_split` out of the parameters")
    return pd.DataFrame({name: pd.array(values, dtype="str") for name, values in columns.items()})


def _each(files: Sequence[SourceFile], kind: Kind, problems: Problems) -> Iterator[tuple[OpenFile, Layout]]:
    """Give every file that the parameters name, opened, with its layout; note those that cannot be."""
    seen: set[tuple[str, str]] = set()
    for source in files:
        layout = resolve_layout(source, problems)
        try:
            paths = expand_path(source.path)
        except UnreadableFileError as error:
            problems.add(source.path, None, None, error.found, error.wanted)
            continue
        if layout is None:
            continue
        if layout.kind != kind:
            problems.add(
                source.path, None, None, f"a layout of {layout.kind} ('{layout.layout}')", f"one of {kind}"
            )
            continue
        for path in paths:
            if (path, source.layout) in seen:
                problems.add(path, None, None, "the same file twice in the parameters", "each file once")
                continue
            seen.add((path, source.layout))
            try:
                with open_file(path) as file:
                    own = source.layout.endswith((".yml", ".yaml")) or "format" in source.set
                    yield file, layout if own else written_as(layout, file.name)
            except UnreadableFileError as error:
                problems.add(path, None, None, error.found, error.wanted)


def _feed(builder: Any, file: OpenFile, layout: Layout, problems: Problems) -> int:
    rows = 0

    def counted() -> Iterator[Any]:
        nonlocal rows
        for block in read_blocks(file, layout, problems):
            rows += len(block.rows)
            yield block

    for block in expand_blocks(counted(), layout.expand, file.given, problems, builder.notes):
        builder.add(block)
    return rows


def _line(file: OpenFile, layout: Layout, rows: int, imported: int, builder: Any) -> dict[str, Any]:
    notes: dict[str, Any] = {name: count for name, count in sorted(builder.notes.items()) if count}
    if unread := [name for name in builder.reader.unread_columns() if not _laid_out(name, layout)]:
        notes["columns_not_read"] = unread
    if isinstance(builder, VerdictBuilder) and builder.odd_values:
        notes["verdicts_that_are_no_code"] = dict(builder.odd_values.most_common(_TOLD))
    return {
        "path": file.given,
        "layout": layout.layout,
        "kind": layout.kind,
        "sha256": file.sha256,
        "rows": rows,
        "imported": imported,
        "licence": layout.licence,
        "layout_status": layout.status,
        "notes": canonical_json(notes),
    }


def _check_not_nothing(
    frame: pd.DataFrame, rows: int, file: OpenFile, builder: Any, problems: Problems
) -> None:
    """Note a file of which nothing is left, and why; what is wrong in it was told before."""
    if rows and not len(frame) and not problems:
        why = ", ".join(f"{name} {count}" for name, count in sorted(builder.notes.items()) if count)
        problems.add(
            file.given, None, None, f"{rows} rows, of which nothing is left ({why or 'all are empty'})",
            "a row at least; `set: {rules: ...}` says what is left out",
        )  # fmt: skip


def _laid_out(name: str, layout: Layout) -> bool:
    """Say whether a column was read when records were laid out as rows."""
    for step in layout.expand:
        columns = [column.split(".")[0] for column in (*step.columns, *step.by)]
        if name in columns or (step.kind == "orders" and any(name.startswith(c) for c in columns)):
            return True
    return False


def _file_table(lines: list[dict[str, Any]]) -> pd.DataFrame:
    if not lines:
        return empty(SOURCE_FILES)
    return check(conform(pd.DataFrame(lines), SOURCE_FILES), SOURCE_FILES)


def _check_across(frames: list[pd.DataFrame], key: list[str], problems: Problems) -> None:
    """Note keys that occur in two files (those within one file have been noted with their rows)."""
    full = [frame[[*key, "_file", "_row"]] for frame in frames if len(frame)]
    if len(full) < 2:
        return
    keys = pd.concat(full, ignore_index=True)
    repeated = keys[keys.duplicated(key, keep=False)]
    for values, group in repeated.groupby(key, dropna=False, sort=False):
        if group["_file"].nunique() < 2:
            continue
        first, second = group.iloc[0], group[group["_file"] != group["_file"].iloc[0]].iloc[0]
        shown = ", ".join(str(value) for value in (values if isinstance(values, tuple) else (values,)))
        problems.add(
            str(second["_file"]), int(second["_row"]), ", ".join(key),
            f"{shown} as in {first['_file']}, row {int(first['_row'])}", "each once over all files",
        )  # fmt: skip


def _same_pairs(frames: list[pd.DataFrame], problems: Problems) -> list[pd.DataFrame]:
    """Keep one row for a pair that several logs are about; they have to say the same of it."""
    full = [frame for frame in frames if len(frame)]
    if not full:
        return []
    pairs = pd.concat(full, ignore_index=True)
    compared = [name for name in pairs.columns if name not in ("_file", "_row", "provenance")]
    distinct = pairs.drop_duplicates(compared)
    for pair_id, group in distinct[distinct["pair_id"].duplicated(keep=False)].groupby("pair_id", sort=False):
        different = [name for name in compared if len(set(group[name].map(str))) > 1]
        second = group.iloc[1]
        problems.add(
            str(second["_file"]), int(second["_row"]), ", ".join(different),
            f"pair {pair_id} otherwise than in {group['_file'].iloc[0]}", "one description of a pair",
        )  # fmt: skip
    return [distinct.drop_duplicates("pair_id")]


def _together(frames: list[pd.DataFrame], table: Table, **constants: Any) -> pd.DataFrame:
    full = [frame.drop(columns=["_file", "_row"]) for frame in frames if len(frame)]
    if not full:
        return empty(table)
    frame = pd.concat(full, ignore_index=True) if len(full) > 1 else full[0]
    for name, value in constants.items():
        frame[name] = value
    return check(conform(frame, table), table)
