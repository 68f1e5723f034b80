"""Result tables with a row a statistic, turned so that a person can read them: a row a cell and slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_calibration.report.blocks import TableBlock
from judge_calibration.report.sections import CELL, column_title
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import (
    against_name,
    cell_name,
    is_missing,
    percent,
    reason_text,
    slice_name,
)


def value_text(row: Mapping[Any, Any], share: bool = True) -> str:
    r"""Return a row's value with its interval on a second line, or why it is undefined.

    Examples
    --------
    >>> value_text({"value": 0.5, "low": 0.25, "high": 0.75})
    '50.0 %\n(25.0 to 75.0)'
    >>> value_text({"value": 0.5, "interval_reason": "no_variation"})
    '50.0 %\n(no interval: the same in every base task)'
    >>> value_text({"value": float("nan"), "reason": "no_pairs"})
    'undefined: no pairs'
    """
    if is_missing(row.get("value")):
        reason = row.get("reason")
        return "–" if is_missing(reason) or not reason else f"undefined: {reason_text(str(reason))}"
    factor = 100 if share else 1
    text = percent(row["value"]) if share else f"{float(row['value']):.3g}"
    if is_missing(row.get("low")) or is_missing(row.get("high")):
        why = row.get("interval_reason")
        return text if is_missing(why) or not why else f"{text}\n(no interval: {reason_text(str(why))})"
    form = ".1f" if share else ".3g"
    return f"{text}\n({factor * float(row['low']):{form}} to {factor * float(row['high']):{form}})"


def turned(
    frame: pd.DataFrame, statistics: Mapping[str, str], extra: Sequence[str] = (), share: bool = True
) -> pd.DataFrame:
    """Return one row a cell (and value of `extra`), one text column a statistic, in the given order."""
    several = len(set(frame["source"].dropna())) > 1 if "source" in frame.columns else False
    keys = [name for name in (*CELL, *extra) if name in frame.columns]
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in frame.to_dict("records"):
        title = statistics.get(str(row["statistic"]))
        if title is None:
            continue
        key = tuple(str(row[name]) for name in keys)
        entry = rows.setdefault(key, {"Cell": cell_name(row, with_source=several)})
        for name in extra:
            entry[column_title(name)] = "–" if is_missing(row[name]) else _said(name, row)
        entry.setdefault("Pairs", "–" if is_missing(row.get("n_pairs")) else str(row["n_pairs"]))
        entry[title] = value_text(row, share)
    table = pd.DataFrame(list(rows.values()))
    ordered = [title for title in statistics.values() if title in table.columns]
    return table[[name for name in table.columns if name not in ordered] + ordered].fillna("–")


def _said(name: str, row: Mapping[Any, Any]) -> str:
    if name == "slice":
        return slice_name(row.get("slice_by"), row[name])
    return against_name(str(row[name])) if name == "against" else reason_text(str(row[name]))


def share_block(
    id: str,
    title: str,
    note: str,
    frame: pd.DataFrame,
    statistics: Mapping[str, str],
    extra: Sequence[str] = (),
    share: bool = True,
) -> TableBlock:
    """Return the table for people, its first rows on the page and all of it in the download."""
    return short_table(id, title, note, turned(frame, statistics, extra, share), frame)
