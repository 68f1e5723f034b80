"""Agreement and joint coverage of judge pairs on single attributes and on families of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.profiles.agreement import ratio
from judge_calibration.profiles.item_tables import judge_pairs
from judge_calibration.profiles.pair_counts import VERDICT_STRATA, stratum_masks

_CHUNK = 6_400  # a multiple of 64: items are packed into words


class AttributeCounts(NamedTuple):
    """Counts by stratum, attribute and judge pair.

    items : numpy.ndarray of int64, shape (n_strata, n_judge_pairs)
    joint, agree : numpy.ndarray of int64, shape (n_strata, n_attributes, n_judge_pairs)
        Strata in the order all, same, opposite.
    """

    items: np.ndarray
    joint: np.ndarray
    agree: np.ndarray


def count_by_attribute(codes: np.ndarray, verdicts: np.ndarray) -> AttributeCounts:
    """Count joint stable cells and agreements, attribute by attribute.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)

    Examples
    --------
    >>> codes = np.array([[[8, 4]], [[8, 0]]], dtype=np.int8)
    >>> counts = count_by_attribute(codes, np.array([[1], [-1]], dtype=np.int8))
    >>> counts.joint[0, :, 0].tolist(), counts.agree[2, :, 0].tolist()
    ([1, 0], [1, 0])
    """
    n_judges, n_items, n_attributes = codes.shape
    first, second = judge_pairs(n_judges)
    shape = (len(VERDICT_STRATA), n_attributes, len(first))
    joint, agree = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    items = np.zeros((len(VERDICT_STRATA), len(first)), dtype=np.int64)
    for start in range(0, n_items, _CHUNK):
        part = codes[:, start : start + _CHUNK].transpose(2, 0, 1)
        up, down = _item_words(part == 8), _item_words(part == 0)
        n = part.shape[2]
        for place, mask in enumerate(stratum_masks(verdicts[:, start : start + _CHUNK]).values()):
            words = None if mask is None else _item_words(mask)
            items[place] += n if mask is None else mask.sum(axis=1)
            for k in range(n_attributes):
                up_1, up_2, down_1, down_2 = up[k][first], up[k][second], down[k][first], down[k][second]
                same = (up_1 & up_2) | (down_1 & down_2)
                both = (up_1 | down_1) & (up_2 | down_2)
                if words is not None:
                    same, both = same & words, both & words
                agree[place, k] += np.bitwise_count(same).sum(axis=1, dtype=np.int64)
                joint[place, k] += np.bitwise_count(both).sum(axis=1, dtype=np.int64)
    return AttributeCounts(items, joint, agree)


def _item_words(mask: np.ndarray) -> np.ndarray:
    packed = np.packbits(mask, axis=-1)
    padded = np.zeros((*packed.shape[:-1], -(-packed.shape[-1] // 8) * 8), dtype=np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.view(np.uint64)


def agreement_by_group(
    counts: AttributeCounts, groups: Sequence[np.ndarray], pairs: np.ndarray | None = None
) -> pd.DataFrame:
    """Mean agreement and joint coverage over judge pairs, for groups of attributes.

    Parameters
    ----------
    counts : AttributeCounts
    groups : sequence of numpy.ndarray of bool, each of shape (n_attributes,)
        One attribute each, or families: a judge pair's cells are pooled within a group.
    pairs : numpy.ndarray of bool, shape (n_judge_pairs,), optional
        The judge pairs of a smaller panel.

    Returns
    -------
    pandas.DataFrame
        A row a group: for each stratum agreement (mean of defined rates), joint_coverage (mean over judge
        pairs with items) and judge_pairs (how many rates were defined), e.g. ``agreement_opposite``; NaN
        where no judge pair shares a stable cell.
    """
    chosen = np.ones(counts.items.shape[1], dtype=bool) if pairs is None else pairs
    rows = []
    for group in groups:
        row: dict[str, float | int] = {}
        for place, stratum in enumerate(VERDICT_STRATA):
            joint = counts.joint[place][group][:, chosen].sum(axis=0)
            agree = counts.agree[place][group][:, chosen].sum(axis=0)
            row[f"agreement_{stratum}"] = mean_defined(ratio(agree, joint))
            cells = counts.items[place, chosen] * int(group.sum())
            row[f"joint_coverage_{stratum}"] = mean_defined(ratio(joint, cells))
            row[f"judge_pairs_{stratum}"] = int((joint > 0).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def mean_defined(values: np.ndarray) -> float:
    """Return the mean of the values that are defined; NaN where none is.

    Examples
    --------
    >>> mean_defined(np.array([0.5, np.nan, 1.0]))
    0.75
    """
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
