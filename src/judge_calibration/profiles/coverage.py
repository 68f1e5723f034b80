"""How much of the attribute design a judge resolves, and whether it only chooses a position."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles.cube import ReadCube

COLUMNS = (
    *("judge_id", "reads", "valid", "resolved", "coverage", "first_share"),
    *("order_consistency", "position_biased", "undefined"),
)


def coverage_table(cube: ReadCube, reads: pd.DataFrame, position_limit: float = 0.75) -> pd.DataFrame:
    """Stable coverage and position preference of each judge's attribute reads.

    Parameters
    ----------
    cube : ReadCube
        The panel's reads.
    reads : pandas.DataFrame
        The same reads in long form (for the outcomes).
    position_limit : float in (0.5, 1]
        The declared rule of JudgeProfile: a judge that picks one position in at least this share of its
        resolved reads, on order-balanced data, is flagged ``position_biased`` and left out of the reduced
        panel. Results for the full panel are always kept beside.

    Returns
    -------
    pandas.DataFrame
        A row a judge: reads, valid, resolved (counts); coverage in [0, 1] (share of cells with a stable
        direction); first_share in [0, 1] (share of resolved reads for whichever answer was shown first;
        NaN where nothing is resolved); order_consistency in [0, 1] (NaN where no cell is resolved in both
        orders); position_biased.

    Examples
    --------
    >>> ab = np.array([[[1], [1]]], dtype=np.int8); ba = np.array([[[1], [-1]]], dtype=np.int8)
    >>> cube = ReadCube(("j",), ("p", "q"), ("depth",), ab, ba)
    >>> reads = pd.DataFrame({"judge_id": ["j"] * 4, "outcome": ["valid"] * 4})
    >>> coverage_table(cube, reads)[["coverage", "first_share", "order_consistency"]].iloc[0].tolist()
    [0.5, 0.75, 0.5]
    """
    rows = []
    for j, judge in enumerate(cube.judges):
        first, second = cube.first[j], cube.second[j]
        outcomes = reads.loc[reads["judge_id"] == judge, "outcome"]
        resolved = int((first != 0).sum() + (second != 0).sum())
        # In order AB the first answer is A (+1); in order BA it is B (-1).
        chose_first = int((first == 1).sum() + (second == -1).sum())
        both = (first != 0) & (second != 0)
        first_share = chose_first / resolved if resolved else np.nan
        rows.append(
            {
                "judge_id": judge,
                "reads": len(outcomes),
                "valid": int((outcomes == "valid").sum()),
                "resolved": resolved,
                "coverage": float(((first == second) & (first != 0)).mean()) if first.size else np.nan,
                "first_share": first_share,
                "order_consistency": float((first == second)[both].mean()) if both.any() else np.nan,
                "position_biased": bool(resolved and max(first_share, 1 - first_share) >= position_limit),
                "undefined": None if resolved else "nothing_resolved",
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))
