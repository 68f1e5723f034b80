"""One judge out of a table of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.errors import GateInputError, Problem

NAMES = ("judge_id", "protocol", "constraint", "temperature")
"""What names a judge to people; an instrument adds all that is not in these."""


def cells_in(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the distinct values of `NAMES`, sorted."""
    found = verdicts.reindex(columns=list(NAMES)).drop_duplicates()
    return found.sort_values(list(NAMES), na_position="first").reset_index(drop=True)


def rows_of_cell(verdicts: pd.DataFrame, cell: Mapping[Any, Any]) -> pd.DataFrame:
    """Return the verdicts whose `NAMES` are those of the cell; a null matches nulls."""
    keep = pd.Series(True, index=verdicts.index)
    for name in NAMES:
        values = verdicts[name] if name in verdicts.columns else pd.Series(None, index=verdicts.index)
        wanted = cell[name]
        keep &= values.isna() if pd.isna(wanted) else (values == wanted).fillna(False).astype(bool)
    return verdicts[keep]


def choose_cell(verdicts: pd.DataFrame, choice: Mapping[str, Any], what: str) -> pd.DataFrame:
    """Return the verdicts of the one cell that is chosen.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The table ``verdicts``.
    choice : mapping
        Values of `NAMES`; what is null may be anything.
    what : str
        How errors call the verdicts.

    Raises
    ------
    GateInputError
        If no cell or several are left.

    Examples
    --------
    >>> verdicts = pd.DataFrame({"judge_id": ["a", "b"], "protocol": "direct", "constraint": "none",
    ...     "temperature": 0.0})
    >>> len(choose_cell(verdicts, {"judge_id": "a"}, "verdicts"))
    1
    """
    cells = cells_in(verdicts)
    left = cells
    for name, value in choice.items():
        if value is not None:
            left = left[(left[name] == value).fillna(False).astype(bool)]
    if len(left) == 1:
        return rows_of_cell(verdicts, left.iloc[0].to_dict())
    shown = "; ".join(
        " ".join("-" if pd.isna(value) else str(value) for value in row)
        for row in (left if len(left) else cells).head(6).itertuples(index=False)
    )
    wanted = ", ".join(f"{name} {value}" for name, value in choice.items() if value is not None)
    raise GateInputError(
        f"One judge decides; {len(left)} cells of {what} fit.",
        [Problem(what, shown or "no verdict", wanted or "one judge, protocol, constraint and temperature")],
        "choose by gate.judge: judge_id, protocol, constraint, temperature (conf/*/gate/parameters.yml)",
    )
