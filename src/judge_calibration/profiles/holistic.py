"""A judge's overall choice on each item, taken from the table of verdicts by a declared rule."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

_SIGNS = {"A": 1, "B": -1}


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
    cell = ["protocol", "constraint", "temperature"]
    for name, value in zip(cell, (protocol, constraint, temperature), strict=True):
        if value is not None:
            rows = rows[rows[name] == value]
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
