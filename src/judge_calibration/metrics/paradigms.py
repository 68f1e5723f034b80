"""Paradigms side by side: direct, geval and flask, also at equal numbers of calls."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.metrics.share_rows import CELL_KEYS
from judge_calibration.options.reporting import ParadigmOptions

PARADIGM_COLUMNS = (
    *CELL_KEYS,
    "calls_per_verdict",
    *(f"{name}{end}" for name in ("C", "phi", "A", "T_product", "T_direct") for end in ("", "_low", "_high")),
    "T_product_per_call",
    "equal_calls",
    "votes_at_equal_calls",
    "trustworthy_at_equal_calls",
    "trustworthy_at_equal_calls_low",
    "trustworthy_at_equal_calls_high",
    "reason",
)
"""Columns of the paradigm table, in order."""


def paradigm_table(
    trust: pd.DataFrame, remedies: pd.DataFrame, options: ParadigmOptions | None = None
) -> pd.DataFrame:
    """Return the paradigms of each judge side by side.

    Parameters
    ----------
    trust : pandas.DataFrame
        The trust table.
    remedies : pandas.DataFrame
        The remedy table, for what a vote of several cheap verdicts would give.
    options : ParadigmOptions, optional
        Which protocols, and how many calls one verdict of each costs.

    Returns
    -------
    pandas.DataFrame
        Columns PARADIGM_COLUMNS, for judges with two paradigms or more in a source. ``equal_calls`` is what
        the dearest of the judge's paradigms costs a verdict; ``votes_at_equal_calls`` the largest odd vote
        that the paradigm affords at that price, and ``trustworthy_at_equal_calls`` the share of
        (pair, order) that would then be right, right again when repeated, and right in the other order.

    References
    ----------
    Definitions, section 2.
    """
    chosen = options or ParadigmOptions()
    whole = trust[(trust["slice_by"] == "all") & (trust["view"] == "strict")]
    whole = whole[whole["protocol"].isin(chosen.paradigms)]
    votes = remedies[(remedies["statistic"] == "trustworthy") & remedies["remedy"].isin(("none", "vote"))]
    rows = []
    for _, part in whole.groupby(["source", "judge_id", "temperature"], dropna=False, sort=True):
        if part["protocol"].nunique() < 2:
            continue
        calls = part["protocol"].map(chosen.calls_per_verdict)
        budget = int(calls.max()) if calls.notna().all() else 0
        for (_, cell), cost in zip(part.iterrows(), calls, strict=True):
            row = {column: cell[column] for column in PARADIGM_COLUMNS if column in cell.index}
            row["reason"] = ""
            if not budget or pd.isna(cost):
                rows.append(row | {"reason": "calls_per_verdict_not_declared"})
                continue
            affordable = budget // int(cost)
            k = affordable if affordable % 2 else affordable - 1
            row |= {"calls_per_verdict": int(cost), "equal_calls": budget, "votes_at_equal_calls": k}
            row["T_product_per_call"] = cell["T_product"] / int(cost)
            same = votes["votes"] == k
            for column in CELL_KEYS:
                own = cell[column]
                same &= votes[column].isna() if pd.isna(own) else votes[column] == own
            found = votes[same]
            if found.empty or np.isnan(found["predicted"].iloc[0]):
                row["reason"] = "vote_not_predicted" if found.empty else str(found["reason"].iloc[0])
            else:
                row["trustworthy_at_equal_calls"] = found["predicted"].iloc[0]
                row["trustworthy_at_equal_calls_low"] = found["low"].iloc[0]
                row["trustworthy_at_equal_calls_high"] = found["high"].iloc[0]
            rows.append(row)
    text = {"source", "judge_id", "protocol", "constraint", "instrument_id", "reason"}
    integers = {"calls_per_verdict", "equal_calls", "votes_at_equal_calls"}
    kinds = {c: "str" if c in text else "Int64" if c in integers else "float64" for c in PARADIGM_COLUMNS}
    return pd.DataFrame(rows, columns=list(PARADIGM_COLUMNS)).astype(kinds)


def iso_trust_curve(trustworthy: float, consistency: np.ndarray) -> np.ndarray:
    """Return A - phi q along the curve of equal T in the plane of C and A - phi q.

    Parameters
    ----------
    trustworthy : float
        T, 0 to 1.
    consistency : numpy.ndarray
        Values of C, above 0.

    Returns
    -------
    numpy.ndarray
        T / C; NaN where that is above 1.

    Examples
    --------
    >>> iso_trust_curve(0.5, np.array([0.4, 0.5, 1.0])).tolist()
    [nan, 1.0, 0.5]
    """
    values = trustworthy / np.asarray(consistency, dtype=np.float64)
    return np.where(values <= 1, values, np.nan)


def trust_spread(trust: pd.DataFrame) -> pd.DataFrame:
    """Return each judge's spread of T over its protocols and sources.

    Parameters
    ----------
    trust : pandas.DataFrame
        The trust table.

    Returns
    -------
    pandas.DataFrame
        judge_id, temperature, n_cells, mean, minimum, maximum of T_product over the cells where it is
        defined; pooled rows (source ``all``) are left out.
    """
    whole = trust[(trust["slice_by"] == "all") & (trust["view"] == "strict") & (trust["source"] != "all")]
    whole = whole[whole["T_product"].notna()]
    grouped = whole.groupby(["judge_id", "temperature"], dropna=False)["T_product"]
    out = grouped.agg(n_cells="size", mean="mean", minimum="min", maximum="max").reset_index()
    numbers = dict.fromkeys(("temperature", "mean", "minimum", "maximum"), "float64")
    return out.astype({"n_cells": "Int64", "judge_id": "str", **numbers})
