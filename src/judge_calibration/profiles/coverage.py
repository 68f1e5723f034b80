"""How much of the attribute design a judge resolves, and whether it only chooses a position."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles import code_counts as cc

COLUMNS = (
    *("judge_id", "items", "attributes", "reads", "resolved", "coverage", "first_share"),
    *("second_share", "order_consistency", "position_biased", "undefined"),
)


def coverage_table(
    counts: np.ndarray,
    judges: tuple[str, ...],
    n_items: int,
    position_limit: float = 0.8,
) -> pd.DataFrame:
    """Stable coverage and position preference of each judge's attribute reads.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (n_judges, n_attributes, 9)
        From :func:`judge_calibration.profiles.code_counts.code_counts`.
    judges : tuple of str
    n_items : int
    position_limit : float in (0.5, 1]
        The declared rule of JudgeProfile: a judge that names one position in at least this share of its
        resolved reads, on order-balanced data, is flagged ``position_biased`` and left out of the reduced
        panel. Results for the full panel are always kept beside.

    Returns
    -------
    pandas.DataFrame
        A row a judge: items, attributes, reads, resolved (counts); coverage in [0, 1] (share of cells
        with a stable direction; NaN, reason ``no_cells``, without cells); first_share and second_share in
        [0, 1] (shares of resolved reads for whichever answer was shown first or second; NaN, reason
        ``nothing_resolved``); order_consistency in [0, 1] (NaN where no cell is resolved in both orders);
        position_biased.

    Examples
    --------
    >>> counts = cc.code_counts(np.array([[[8], [6]]], dtype=np.int8))
    >>> table = coverage_table(counts, ("j",), 2)
    >>> table[["coverage", "first_share", "order_consistency"]].iloc[0].tolist()
    [0.5, 0.75, 0.5]
    """
    n_attributes = counts.shape[1]
    cells = n_items * n_attributes
    rows = []
    for j, judge in enumerate(judges):
        whole = counts[j].sum(axis=0)
        resolved, both = int(cc.resolved_reads(whole)), int(cc.both_resolved(whole))
        first_share = int(cc.first_shown_chosen(whole)) / resolved if resolved else np.nan
        rows.append(
            {
                "judge_id": judge,
                "items": n_items,
                "attributes": n_attributes,
                "reads": 2 * cells,
                "resolved": resolved,
                "coverage": int(cc.stable_cells(whole)) / cells if cells else np.nan,
                "first_share": first_share,
                "second_share": 1 - first_share,
                "order_consistency": int(cc.stable_cells(whole)) / both if both else np.nan,
                "position_biased": bool(resolved and max(first_share, 1 - first_share) >= position_limit),
                "undefined": None if resolved else "nothing_resolved" if cells else "no_cells",
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"undefined": "str"})
