"""Outcome counts: how often a judgment was valid, and how the others failed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.metrics.judgments import CELL_COLUMNS, encode

OUTCOME_COLUMNS = (
    "source",
    *CELL_COLUMNS,
    "kind",
    "name",
    "count",
    "judgments",
    "share",
)
"""Columns of the outcome table, in order."""


def outcome_table(verdicts: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Count outcomes, verdicts and parse paths of every cell.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.

    Returns
    -------
    pandas.DataFrame
        One row a source, cell and name. ``kind`` is ``outcome`` (all eleven, those that never happened
        with count 0; they sum to ``judgments``), ``verdict`` (A, B, TIE, ABSTAIN), ``shown`` (first,
        second: decisive verdicts by position) or ``parse_path`` (strict, fenced, embedded).
        ``judgments`` is the number of judgments of the cell, ``share`` is count / judgments, 0 to 1.

    Raises
    ------
    TableError
        If the verdicts cannot be counted.

    References
    ----------
    Definitions, section 1.
    """
    encode(verdicts, pairs)
    frame = verdicts.reindex(columns=[*CELL_COLUMNS, "pair_id", "order", "outcome", "verdict", "parse_path"])
    source = pairs.set_index("pair_id")["source"]
    frame = frame.assign(source=frame["pair_id"].map(source))
    decisive = frame["verdict"].isin(schemas.DECISIVE)
    first = (frame["order"] == "AB") == (frame["verdict"] == "A")
    frame["shown"] = pd.Series(np.where(first, "first", "second"), index=frame.index).where(decisive)
    keys = ["source", *CELL_COLUMNS]
    total = frame.groupby(keys, dropna=False).size()
    kinds = {
        "outcome": schemas.OUTCOMES,
        "verdict": schemas.VERDICTS,
        "shown": ("first", "second"),
        "parse_path": schemas.PARSE_PATHS,
    }
    parts: list[pd.DataFrame] = []
    for kind, names in kinds.items():
        counts = frame.groupby([*keys, kind], dropna=False).size().rename("count").reset_index()
        counts = counts[counts[kind].notna()]
        wide = total.rename("judgments").reset_index()
        wide = wide.merge(
            pd.DataFrame({"kind": kind, "name": names, "_rank": range(len(names))}), how="cross"
        )
        counts = counts.rename(columns={kind: "name"})
        parts.append(wide.merge(counts, on=[*keys, "name"], how="left").assign(_kind=len(parts)))
    out = pd.concat(parts, ignore_index=True)
    out["count"] = out["count"].fillna(0)
    out["share"] = out["count"] / out["judgments"]
    out = out.sort_values([*keys, "_kind", "_rank"], kind="stable", ignore_index=True)[list(OUTCOME_COLUMNS)]
    kinds_of = dict.fromkeys(out.columns, "str") | {"count": "Int64", "judgments": "Int64"}
    return out.astype(kinds_of | {"share": "float64", "temperature": "float64"})
