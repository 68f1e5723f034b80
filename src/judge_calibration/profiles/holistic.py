"""A judge's overall choice on each item, taken from the table of verdicts by a declared rule."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

_SIGNS = {"A": 1, "B": -1}
_CELL = ("protocol", "constraint", "temperature")


def holistic_verdicts(
    verdicts: pd.DataFrame,
    judges: tuple[str, ...],
    items: tuple[str, ...],
    rule: Literal["first_order", "order_stable"] = "first_order",
    protocol: str | None = None,
    constraint: str | None = None,
    temperature: float | None = None,
) -> np.ndarray:
    """Return overall choices.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The canonical table `verdicts`; repetition 0 is taken.
    judges, items : tuple of str
        Axes of the result.
    rule : {"first_order", "order_stable"}
        The verdict in order AB, as in the paper (definitions, section 6), or the one that both orders share.
    protocol, constraint, temperature
        The cell to take; where null, each judge's first cell in the table.

    Returns
    -------
    numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 where there is none (a tie, a failure, an order conflict, no such judgment).

    Examples
    --------
    >>> verdicts = pd.DataFrame({"judge_id": "j", "pair_id": "p", "order": ["AB", "BA"], "repetition": 0,
    ...     "protocol": "direct", "constraint": "none", "temperature": 0.0, "verdict": ["A", "B"]})
    >>> holistic_verdicts(verdicts, ("j",), ("p",)).tolist()
    [[1]]
    >>> holistic_verdicts(verdicts, ("j",), ("p",), "order_stable").tolist()
    [[0]]
    """
    chosen = np.zeros((len(judges), len(items)), dtype=np.int8)
    rows = verdicts[(verdicts["repetition"] == 0) & verdicts["pair_id"].isin(items)]
    rows = rows[_in_cell(rows, protocol, constraint, temperature)]
    cell = list(_CELL)
    column = {item: i for i, item in enumerate(items)}
    for j, judge in enumerate(judges):
        own = rows[rows["judge_id"] == judge]
        if own.empty:
            continue
        first_cell = own.groupby(cell, dropna=False, sort=False).ngroup() == 0
        own = own[first_cell]
        by_order = np.zeros((2, len(items)), dtype=np.int8)
        place = own["pair_id"].map(column).to_numpy(dtype=np.int64)
        sign = own["verdict"].map(_SIGNS).fillna(0).to_numpy(dtype=np.int8)
        by_order[(own["order"] == "BA").to_numpy().astype(np.int64), place] = sign
        first, second = by_order
        chosen[j] = first if rule == "first_order" else np.where(first == second, first, 0)
    return chosen


def other_cells(
    verdicts: pd.DataFrame,
    judges: tuple[str, ...],
    items: tuple[str, ...],
    protocol: str | None = None,
    constraint: str | None = None,
    temperature: float | None = None,
) -> dict[str, list[str]]:
    """Return, of judges whose verdicts on the items are all of other cells than the named one, those cells.

    Examples
    --------
    >>> verdicts = pd.DataFrame({"judge_id": ["j"], "pair_id": ["p"], "protocol": ["as_logged"],
    ...     "constraint": [None], "temperature": [0.0]})
    >>> other_cells(verdicts, ("j",), ("p",), "direct")
    {'j': ['as_logged, null, 0.0']}
    """
    rows = verdicts[verdicts["judge_id"].isin(judges) & verdicts["pair_id"].isin(items)]
    fits = _in_cell(rows, protocol, constraint, temperature)
    lost = sorted(set(rows["judge_id"]) - set(rows.loc[fits, "judge_id"]))
    there = rows[["judge_id", *_CELL]].drop_duplicates()
    return {
        judge: [
            ", ".join("null" if pd.isna(value) else str(value) for value in cell)
            for cell in there.loc[there["judge_id"] == judge, list(_CELL)].itertuples(index=False)
        ]
        for judge in lost
    }


def _in_cell(
    rows: pd.DataFrame, protocol: str | None, constraint: str | None, temperature: float | None
) -> pd.Series:
    fits = pd.Series(True, index=rows.index)
    for name, value in zip(_CELL, (protocol, constraint, temperature), strict=True):
        if value is not None:
            fits &= (rows[name] == value).fillna(False).astype(bool)
    return fits
