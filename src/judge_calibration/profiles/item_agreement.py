"""Agreement among the judges of a panel on one item: over all judge pairs, and within and across camps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles.agreement import ratio
from judge_calibration.profiles.item_tables import CHUNK, item_tables, judge_pairs


def item_agreement(codes: np.ndarray, chunk: int = CHUNK) -> pd.DataFrame:
    """Agreement among the judges of a panel on their stable directions, for each item.

    For an attribute with n stable judges, a for A and b for B, G = [C(a, 2) + C(b, 2)] / C(n, 2).

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Packed reads.

    Returns
    -------
    pandas.DataFrame
        A row an item: comparable (attributes with n >= 2), unanimous, g_pooled (weights C(n, 2)), g_macro
        (equal weights), both NaN where no attribute is comparable (reason ``no_comparable_attribute``).

    Examples
    --------
    >>> codes = np.array([[[8]], [[8]], [[0]]], dtype=np.int8)
    >>> round(float(item_agreement(codes)["g_pooled"][0]), 4)
    0.3333
    """
    parts = [np.zeros((4, 0))]
    for start in range(0, codes.shape[1], chunk):
        part = codes[:, start : start + chunk]
        for_a = (part == 8).sum(axis=0, dtype=np.int32)
        for_b = (part == 0).sum(axis=0, dtype=np.int32)
        n = for_a + for_b
        same = for_a * (for_a - 1) // 2 + for_b * (for_b - 1) // 2
        pairs = n * (n - 1) // 2
        comparable = n >= 2
        g = np.divide(same, pairs, out=np.zeros(same.shape), where=comparable)
        count = comparable.sum(axis=1)
        parts.append(
            np.stack(
                [
                    count,
                    (comparable & (same == pairs)).sum(axis=1),
                    ratio(same.sum(axis=1), pairs.sum(axis=1)),
                    ratio(g.sum(axis=1), count),
                ]
            )
        )
    count, unanimous, pooled, macro = np.concatenate(parts, axis=1)
    return pd.DataFrame(
        {
            "comparable": count.astype(np.int64),
            "unanimous": unanimous.astype(np.int64),
            "g_pooled": pooled,
            "g_macro": macro,
            "undefined": [None if n_ else "no_comparable_attribute" for n_ in count],
        }
    ).astype({"undefined": "str"})


def camp_agreement(codes: np.ndarray, verdicts: np.ndarray, chunk: int = CHUNK) -> pd.DataFrame:
    """Agreement on attributes within and across the camps that an item's holistic verdicts form.

    The same as :func:`judge_calibration.profiles.camps.camps`, for all items at once.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 in no camp.

    Returns
    -------
    pandas.DataFrame
        A row an item: verdict_agreement (share of judge pairs of the same camp; NaN below two definite
        verdicts), within_camps and across_camps (attribute agreement of those judge pairs, pooled; NaN where
        they share no stable cell), undefined (``camp_under_two`` where a camp has fewer than two judges).

    Examples
    --------
    >>> codes = np.array([[[8]], [[8]], [[8]], [[0]]], dtype=np.int8)
    >>> camp_agreement(codes, np.array([[1], [1], [-1], [-1]])).iloc[0, 1:3].tolist()
    [0.5, 0.5]
    """
    first, second = judge_pairs(len(codes))
    parts = [np.zeros((3, 0))]
    for number, tables in enumerate(item_tables(codes, chunk=chunk)):
        part = slice(number * chunk, number * chunk + tables.joint.shape[1])
        product = verdicts[first, part] * verdicts[second, part]
        same, opposite = product == 1, product == -1
        sums = [
            [(table * mask).sum(axis=0, dtype=np.int64) for table in (tables.agree, tables.joint)]
            for mask in (same, opposite)
        ]
        n_same, n_opposite = same.sum(axis=0), opposite.sum(axis=0)
        parts.append(np.stack([ratio(n_same, n_same + n_opposite), ratio(*sums[0]), ratio(*sums[1])]))
    verdict_agreement, within, across = np.concatenate(parts, axis=1)
    smaller = np.minimum((verdicts == 1).sum(axis=0), (verdicts == -1).sum(axis=0))
    return pd.DataFrame(
        {
            "verdict_agreement": verdict_agreement,
            "within_camps": within,
            "across_camps": across,
            "undefined": ["camp_under_two" if n < 2 else None for n in smaller],
        }
    ).astype({"undefined": "str"})
