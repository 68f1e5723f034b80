"""Attribute against preference agreement on the same items, for every pair of judges."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles.agreement import item_tables


def matched_gap(stable: np.ndarray, verdicts: np.ndarray, judges: tuple[str, ...]) -> pd.DataFrame:
    """Compare attribute and preference agreement on matched items.

    An item is matched for a judge pair if both verdicts are definite and at least one attribute is stably
    resolved by both.

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Stable directions; pass one order's directions for the single-read control, or the columns of the core
        set for the core comparison.
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)

    Returns
    -------
    pandas.DataFrame
        judge_1, judge_2, items, preference (share of matched items with the same verdict), cell_pooled (share
        of their joint cells with the same direction), item_averaged (mean over items of that share), gap
        (cell_pooled - preference); NaN, reason ``no_matched_item``, without matched items.

    Examples
    --------
    >>> s = np.array([[[1, 1]], [[1, -1]]], dtype=np.int8); v = np.array([[1], [-1]], dtype=np.int8)
    >>> matched_gap(s, v, ("a", "b"))[["preference", "cell_pooled", "gap"]].iloc[0].tolist()
    [0.0, 0.5, 0.5]
    """
    n = len(judges)
    items, same, joint_sum, agree_sum, rate_sum = (np.zeros((n, n)) for _ in range(5))
    start = 0
    for joint, agree in item_tables(stable):
        v = verdicts[:, start : start + len(joint)].T.astype(np.int8)
        product = v[:, :, None] * v[:, None, :]
        matched = (product != 0) & (joint > 0)
        items += matched.sum(axis=0)
        same += (matched & (product == 1)).sum(axis=0)
        joint_sum += np.where(matched, joint, 0).sum(axis=0, dtype=np.int64)
        agree_sum += np.where(matched, agree, 0).sum(axis=0, dtype=np.int64)
        rate_sum += np.divide(agree, joint, out=np.zeros(joint.shape), where=matched).sum(axis=0)
        start += len(joint)
    upper = np.triu_indices(n, k=1)
    count = items[upper]
    frame = pd.DataFrame(
        {
            "judge_1": np.array(judges, dtype=object)[upper[0]],
            "judge_2": np.array(judges, dtype=object)[upper[1]],
            "items": count.astype(np.int64),
            "preference": _share(same[upper], count),
            "cell_pooled": _share(agree_sum[upper], joint_sum[upper]),
            "item_averaged": _share(rate_sum[upper], count),
        }
    )
    frame["gap"] = frame["cell_pooled"] - frame["preference"]
    frame["undefined"] = [None if c else "no_matched_item" for c in count]
    return frame


def _share(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    return np.divide(numerator, denominator, out=np.full(len(denominator), np.nan), where=denominator > 0)


def gap_summary(gaps: pd.DataFrame) -> dict[str, float | int]:
    """How many judge pairs and judges have a positive gap, and how many pairs agree above one half.

    Returns
    -------
    dict
        judge_pairs (defined), positive_pairs, pairs_above_half (cell_pooled > .5), judges, positive_judges
        (each judge's mean gap over the others), mean_gap; a mean over nothing is NaN.
    """
    defined = gaps.dropna(subset="gap")
    long = pd.concat(
        [
            defined[["judge_1", "gap"]].rename(columns={"judge_1": "judge_id"}),
            defined[["judge_2", "gap"]].rename(columns={"judge_2": "judge_id"}),
        ]
    )
    per_judge = long.groupby("judge_id")["gap"].mean()
    return {
        "judge_pairs": len(defined),
        "positive_pairs": int((defined["gap"] > 0).sum()),
        "pairs_above_half": int((defined["cell_pooled"] > 0.5).sum()),
        "judges": len(per_judge),
        "positive_judges": int((per_judge > 0).sum()),
        "mean_gap": float(defined["gap"].mean()) if len(defined) else float("nan"),
    }
