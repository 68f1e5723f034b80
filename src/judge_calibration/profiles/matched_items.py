"""Attribute against preference agreement on the same items, for every pair of judges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judge_calibration.profiles.agreement import ratio
from judge_calibration.profiles.item_tables import judge_pairs
from judge_calibration.profiles.pair_counts import PairCounts


def matched_gap(counts: PairCounts, judges: Sequence[str], group: int = 0) -> pd.DataFrame:
    """Compare attribute and preference agreement on matched items.

    An item is matched for a judge pair if both verdicts are definite and both resolve at least one attribute
    (the strata ``same`` and ``opposite`` together).

    Parameters
    ----------
    counts : PairCounts
        Of stable or single reads, over all attributes or the core set.
    judges : sequence of str
    group : int
        Which group of items of the counts.

    Returns
    -------
    pandas.DataFrame
        judge_1, judge_2, items (matched), preference (share of matched items with the same verdict),
        cell_pooled (share of their joint cells with the same direction), item_averaged (mean over items of
        that share), gap (cell_pooled - preference); NaN, reason ``no_matched_item``, without matched items.

    Examples
    --------
    >>> from judge_calibration.profiles.pair_counts import count_pairs
    >>> codes = np.array([[[8, 8]], [[8, 0]]], dtype=np.int8)
    >>> counts = count_pairs(codes, np.array([[1], [-1]], dtype=np.int8))
    >>> matched_gap(counts, ("a", "b"))[["preference", "cell_pooled", "gap"]].iloc[0].tolist()
    [0.0, 0.5, 0.5]
    """
    same, opposite = counts.strata.index("same"), counts.strata.index("opposite")

    def both(name: str) -> np.ndarray:
        return np.asarray(counts.sums[name][same, :, group] + counts.sums[name][opposite, :, group])

    matched = both("matched")
    first, second = judge_pairs(len(judges))
    names = np.array(list(judges), dtype=object)
    frame = pd.DataFrame(
        {
            "judge_1": names[first],
            "judge_2": names[second],
            "items": matched.astype(np.int64),
            "preference": ratio(counts.sums["matched"][same, :, group], matched),
            "cell_pooled": ratio(both("agree"), both("joint")),
            "item_averaged": ratio(both("rate_sum"), matched),
        }
    )
    frame["gap"] = frame["cell_pooled"] - frame["preference"]
    frame["undefined"] = [None if n else "no_matched_item" for n in matched]
    return frame.astype({"judge_1": "str", "judge_2": "str", "undefined": "str"})


def per_judge(pairs: pd.DataFrame, values: Sequence[str]) -> pd.DataFrame:
    """Return each judge's mean over the other judges of values of judge pairs; NaN where none is defined.

    Examples
    --------
    >>> pairs = pd.DataFrame({"judge_1": ["a", "a"], "judge_2": ["b", "c"], "gap": [0.25, 0.75]})
    >>> per_judge(pairs, ["gap"])["gap"].tolist()
    [0.5, 0.25, 0.75]
    """
    sides = [pairs[[side, *values]].rename(columns={side: "judge_id"}) for side in ("judge_1", "judge_2")]
    return pd.concat(sides).groupby("judge_id", sort=False)[list(values)].mean().reset_index()
