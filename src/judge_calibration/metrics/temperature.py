"""Temperature: what sampling does to consistency, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pandas as pd

_SERIES = ("source", "judge_id", "protocol", "constraint", "instrument_id")
_STATISTICS = ("C", "C2", "phi", "A", "PR", "T_product")

TEMPERATURE_COLUMNS = (
    *_SERIES,
    "temperature",
    "lowest_temperature",
    "statistic",
    "value",
    "low",
    "high",
    "change",
    "change_low",
    "change_high",
    "reason",
)
"""Columns of the temperature table, in order."""


def temperature_table(trust: pd.DataFrame, differences: pd.DataFrame) -> pd.DataFrame:
    """Return C, phi, A, T and A - phi q by temperature, with the change from the lowest.

    Parameters
    ----------
    trust : pandas.DataFrame
        The trust table.
    differences : pandas.DataFrame
        The table of paired differences, which compares the temperatures of one judge.

    Returns
    -------
    pandas.DataFrame
        Columns TEMPERATURE_COLUMNS, for every source and instrument with two temperatures or more. ``PR``
        is A - phi q, the share of pairs right in both orders. ``change`` is value minus that at the lowest
        temperature, on common pairs, with the paired interval; NaN with a reason where it was not compared.

    References
    ----------
    Definitions, section 2, after "All Verdicts are Not Equal" (arXiv 2610.12083), section 5.4: C falls with
    temperature while A - phi q barely moves.
    """
    whole = trust[(trust["slice_by"] == "all") & (trust["view"] == "strict") & trust["temperature"].notna()]
    paired = differences[differences["slice_by"] == "all"]
    rows = []
    for key, part in whole.groupby(list(_SERIES), dropna=False, sort=True):
        if part["temperature"].nunique() < 2:
            continue
        part = part.sort_values("temperature")
        lowest = float(part["temperature"].iloc[0])
        for _, cell in part.iterrows():
            for statistic in _STATISTICS:
                warmer = float(cell["temperature"])
                change = _change(paired, cell, lowest, statistic) if warmer != lowest else (0.0, 0.0, 0.0)
                rows.append(
                    (
                        *key,
                        warmer,
                        lowest,
                        statistic,
                        cell[statistic],
                        cell[f"{statistic}_low"],
                        cell[f"{statistic}_high"],
                        *(change if warmer != lowest else (np.nan, np.nan, np.nan)),
                        "lowest_temperature"
                        if warmer == lowest
                        else ""
                        if not np.isnan(change[0])
                        else "not_compared",
                    )
                )
    numbers = {
        "temperature",
        "lowest_temperature",
        "value",
        "low",
        "high",
        "change",
        "change_low",
        "change_high",
    }
    kinds = {c: "float64" if c in numbers else "str" for c in TEMPERATURE_COLUMNS}
    return pd.DataFrame(rows, columns=list(TEMPERATURE_COLUMNS)).astype(kinds)


def _change(
    paired: pd.DataFrame, cell: pd.Series, lowest: float, statistic: str
) -> tuple[float, float, float]:
    """Return the paired difference to the lowest temperature and its interval."""
    same = (paired["metric"] == statistic) & (paired["source"] == cell["source"])
    for side in (1, 2):
        same &= paired[f"instrument_id_{side}"] == cell["instrument_id"]
        same &= paired[f"judge_id_{side}"] == cell["judge_id"]
        same &= paired[f"protocol_{side}"] == cell["protocol"]
    warm = float(cell["temperature"])
    for one, two, sign in ((1, 2, 1.0), (2, 1, -1.0)):
        found = paired[
            same & (paired[f"temperature_{one}"] == warm) & (paired[f"temperature_{two}"] == lowest)
        ]
        if len(found):
            row = found.iloc[0]
            ends = sorted((sign * row["low"], sign * row["high"]))
            return (sign * row["difference"], ends[0], ends[1])
    return (np.nan, np.nan, np.nan)
