"""One item for people: who chose what, and what each judge sees in the two answers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles.panel import Panel

COLUMNS = ("pair_id", "judge_id", "choice", "attribute", "family", "direction")
_LABELS = np.array(["B", "NONE", "A"], dtype=object)


def choose_case(items: pd.DataFrame) -> str | None:
    """Return the item that shows most: the panel is split overall, yet comparable on many attributes.

    The largest minority share, then the most comparable attributes, then the first in the table. None without
    items.

    Examples
    --------
    >>> items = pd.DataFrame({"pair_id": ["p", "q"], "minority_share": [0.1, 0.4], "comparable": [9, 3]})
    >>> choose_case(items)
    'q'
    """
    if items.empty:
        return None
    ranked = items.assign(_share=items["minority_share"].fillna(-1.0)).sort_values(
        ["_share", "comparable"], ascending=False, kind="stable"
    )
    return str(ranked["pair_id"].iloc[0])


def case_rows(panel: Panel, pair_id: str | None, families: dict[str, str]) -> pd.DataFrame:
    """Return what every judge chose and saw on one item.

    Returns
    -------
    pandas.DataFrame
        A row a judge and attribute: pair_id, judge_id, choice {A, B, NONE}, attribute, family, direction (the
        stable one: A, B or NONE).
    """
    if pair_id is None:
        return pd.DataFrame(columns=list(COLUMNS), dtype="str")
    cube = panel.cube
    row = cube.items.index(pair_id)
    stable = (cube.codes[:, row] == 8).astype(np.int64) - (cube.codes[:, row] == 0)
    n = len(cube.attributes)
    frame = pd.DataFrame(
        {
            "pair_id": pair_id,
            "judge_id": np.repeat(np.array(cube.judges, dtype=object), n),
            "choice": np.repeat(_LABELS[panel.verdicts[:, row].astype(np.int64) + 1], n),
            "attribute": list(cube.attributes) * len(cube.judges),
            "direction": _LABELS[stable.ravel() + 1],
        }
    )
    frame["family"] = frame["attribute"].map(families)
    return frame[list(COLUMNS)].astype("str")
