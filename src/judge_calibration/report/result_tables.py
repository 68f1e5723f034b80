"""Result tables as the sections use them: absent or empty ones are none, the leading cells come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from judge_calibration.metrics.people import kinds_of
from judge_calibration.report.blocks import FigureBlock, TableBlock
from judge_calibration.report.sections import CELL, cell_labels, readable, whole_rows
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import count_noun, is_missing

Tables = Mapping[str, pd.DataFrame]


def some(tables: Tables, name: str) -> pd.DataFrame | None:
    """Return the table; None if it is absent or has no row."""
    frame = tables.get(name)
    return None if frame is None or frame.empty else frame


def has_simulated_labels(tables: Tables) -> bool:
    """Return whether labels of the run were made by a program."""
    labels = some(tables, "labels")
    return labels is not None and bool((kinds_of(labels) == "simulated").any())


def plain_table(
    id: str,
    title: str,
    note: str,
    frame: pd.DataFrame,
    columns: list[str] | None = None,
    exact: pd.DataFrame | None = None,
) -> TableBlock:
    """Return a result table as it is: its first rows on the page, all of it (or of `exact`) to download."""
    chosen = frame if columns is None else frame[[name for name in columns if name in frame.columns]]
    table = short_table(id, title, note, readable(chosen), frame if exact is None else exact)
    shown = table.shown
    # Columns that say nothing in any row are left to the download.
    kept = [name for name in shown.columns if len(shown) == 0 or (shown[name] != "–").any()]
    return replace(table, shown=shown[kept])


def cell_order(trust: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the keys of all cells, the most trustworthy first (by T, then by being right in both orders)."""
    rows = whole_rows(trust)
    ranked = []
    for row in rows.to_dict("records"):
        rank = tuple(-1.0 if is_missing(row[name]) else float(row[name]) for name in ("T_direct", "PR"))
        ranked.append((rank, _key(row, list(CELL))))
    return [key for _, key in sorted(ranked, key=lambda pair: pair[0], reverse=True)]


def _key(row: Mapping[object, object], columns: list[str]) -> tuple[str, ...]:
    return tuple("" if is_missing(row[name]) else str(row[name]) for name in columns)


def leading(frame: pd.DataFrame, trust: pd.DataFrame, most: int) -> tuple[pd.DataFrame, str]:
    """Return the rows of at most `most` cells in the order of the answers, and a sentence if cells are left.

    Parameters
    ----------
    frame : pandas.DataFrame
        A result table with the columns of a cell, or some of them.
    trust : pandas.DataFrame
        The trust table, which gives the order.
    most : int
    """
    columns = [name for name in CELL if name in frame.columns]
    at = [CELL.index(name) for name in columns]
    places: dict[tuple[str, ...], int] = {}
    for key in cell_order(trust):
        places.setdefault(tuple(key[i] for i in at), len(places))
    keys = [_key(row, columns) for row in frame[columns].to_dict("records")]
    present = sorted(set(keys), key=lambda key: (places.get(key, len(places)), key))
    chosen = {key: number for number, key in enumerate(present[:most])}
    place = pd.Series([chosen.get(key, -1) for key in keys], index=frame.index)
    rows = frame[place >= 0].assign(_place=place[place >= 0]).sort_values("_place", kind="stable")
    more = "" if len(present) <= most else f"The first {most} of {count_noun(len(present), 'cell')}."
    return rows.drop(columns="_place"), more


def labelled(frame: pd.DataFrame) -> list[str]:
    """Name the cell of each row, with its source only where sources differ."""
    if "source" not in frame.columns:
        return cell_labels(frame.assign(source=""))
    return cell_labels(frame)


def _lacks_intervals(figure: Any) -> bool:
    """Return whether single marks are open; a whole series of open ones means something else."""
    symbols = [getattr(getattr(trace, "marker", None), "symbol", None) for trace in figure.data]
    return any("-open" in str(one) for some in symbols if isinstance(some, (list, tuple)) for one in some)


_OPEN = "Open marks have no interval: too few base tasks, or the same in all of them; the table says which."


def figure_block(
    id: str, title: str, note: str, alternative: str, figure: object, table: TableBlock
) -> FigureBlock:
    """Return a figure with its numbers.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    """
    text = str(figure.to_json(engine="json"))  # type: ignore[attr-defined]
    note = f"{note.strip()} {_OPEN}" if _lacks_intervals(figure) else note.strip()
    return FigureBlock(id, title, note, alternative, text, table)
