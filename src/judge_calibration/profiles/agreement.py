"""Agreement of judges on the attributes of the same items, over the cells that both resolve stably.

Definitions, section 6; JudgeProfile, appendix on attribute agreement. The per-item tables (how many
attributes two judges both resolved, and on how many of those they point the same way) are sufficient for
any item subset and for resampling, so they are computed once, by a batched matrix product in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

CHUNK = 2_000


class ItemTables(NamedTuple):
    """Counts for a chunk of items.

    joint, agree : numpy.ndarray of int16, shape (n_items, n_judges, n_judges)
        Attributes that both judges resolved stably, and those of them with the same direction.
    """

    joint: np.ndarray
    agree: np.ndarray


def item_tables(stable: np.ndarray, chunk: int = CHUNK) -> Iterator[ItemTables]:
    """Yield the joint and agreement counts of each chunk of items.

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Stable directions in {-1, 0, +1}.
    chunk : int
        Items a chunk: bounds the memory.

    Notes
    -----
    With R = 1[s != 0], joint = R R' and agree = (R R' + s s') / 2, since s s' counts agreements minus
    disagreements. float32 holds these counts exactly (they are at most the number of attributes).
    """
    for start in range(0, stable.shape[1], chunk):
        part = np.ascontiguousarray(stable[:, start : start + chunk].transpose(1, 0, 2)).astype(np.float32)
        resolved = np.abs(part)
        joint = resolved @ resolved.transpose(0, 2, 1)
        signed = part @ part.transpose(0, 2, 1)
        yield ItemTables(joint.astype(np.int16), ((joint + signed) / 2).astype(np.int16))


STRATA = ("all", "same", "opposite")


def agreement_by_judge_pair(
    stable: np.ndarray, verdicts: np.ndarray, judges: tuple[str, ...]
) -> pd.DataFrame:
    """Attribute agreement and joint coverage of every pair of judges, by verdict stratum.

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Stable directions.
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        Holistic verdicts: +1 for A, -1 for B, 0 unresolved.
    judges : tuple of str
        Names for the rows.

    Returns
    -------
    pandas.DataFrame
        One row a judge pair and stratum (all items; both verdicts resolved and the same; opposite):
        n_items, joint, agree (counts), agreement in [0, 1] (NaN where joint is 0, reason
        ``no_shared_stable_cell``), joint_coverage in [0, 1] (NaN where n_items is 0, reason ``no_items``).

    Examples
    --------
    >>> s = np.array([[[1, 1, 0, -1]], [[1, -1, 0, -1]]], dtype=np.int8)
    >>> table = agreement_by_judge_pair(s, np.zeros((2, 1), dtype=np.int8), ("j1", "j2"))
    >>> table.loc[0, ["joint", "agree"]].tolist()
    [3, 2]
    """
    n_judges, _, n_attributes = stable.shape
    counts = {stratum: np.zeros((3, n_judges, n_judges), dtype=np.int64) for stratum in STRATA}
    start = 0
    for joint, agree in item_tables(stable):
        v = verdicts[:, start : start + len(joint)].T.astype(np.int8)
        product = v[:, :, None] * v[:, None, :]
        for stratum, inside in (
            ("all", np.ones_like(product)),
            ("same", product == 1),
            ("opposite", product == -1),
        ):
            counts[stratum][0] += inside.sum(axis=0)
            counts[stratum][1] += (joint * inside).sum(axis=0, dtype=np.int64)
            counts[stratum][2] += (agree * inside).sum(axis=0, dtype=np.int64)
        start += len(joint)
    upper = np.triu_indices(n_judges, k=1)
    frames = []
    for stratum, (items, joint, agree) in counts.items():
        frame = pd.DataFrame(
            {
                "judge_1": np.array(judges, dtype=object)[upper[0]],
                "judge_2": np.array(judges, dtype=object)[upper[1]],
                "stratum": stratum,
                "n_items": items[upper],
                "joint": joint[upper],
                "agree": agree[upper],
            }
        )
        frame["agreement"] = _ratio(frame["agree"], frame["joint"])
        frame["joint_coverage"] = _ratio(frame["joint"], frame["n_items"] * n_attributes)
        frame["undefined"] = [
            "no_items" if not items_ else "no_shared_stable_cell" if not joint_ else None
            for items_, joint_ in zip(frame["n_items"], frame["joint"], strict=True)
        ]
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _ratio(numerator: pd.Series, denominator: pd.Series) -> pd.Series:
    return (numerator / denominator.where(denominator > 0)).astype("float64")


class PanelAgreement(NamedTuple):
    """Agreement over judge pairs: the mean of defined rates, the ratio of sums, and how many were defined."""

    mean: float
    pooled: float
    n_defined: int
    n_judge_pairs: int


def panel_agreement(agree: np.ndarray, joint: np.ndarray) -> PanelAgreement:
    """Summarise judge pairs: each defined rate with equal weight, and all cells pooled.

    Undefined (NaN) where no judge pair shares a stable cell.

    Examples
    --------
    >>> result = panel_agreement(np.array([3, 4]), np.array([4, 4]))
    >>> result.mean, result.pooled
    (0.875, 0.875)
    """
    defined = joint > 0
    if not defined.any():
        return PanelAgreement(float("nan"), float("nan"), 0, int(joint.size))
    rates = agree[defined] / joint[defined]
    pooled = float(agree[defined].sum() / joint[defined].sum())
    return PanelAgreement(float(rates.mean()), pooled, int(defined.sum()), int(joint.size))


def item_agreement(stable: np.ndarray) -> pd.DataFrame:
    """Agreement among the judges of a panel, for each item.

    For an attribute with n stable judges, a for A and b for B, G = [C(a, 2) + C(b, 2)] / C(n, 2).

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)

    Returns
    -------
    pandas.DataFrame
        A row an item: comparable (attributes with n >= 2), unanimous, g_pooled (weights C(n, 2)), g_macro
        (equal weights), both NaN where no attribute is comparable (reason ``no_comparable_attribute``).

    Examples
    --------
    >>> s = np.array([[[1]], [[1]], [[-1]]], dtype=np.int8)
    >>> round(float(item_agreement(s)["g_pooled"][0]), 4)
    0.3333
    """
    for_a = (stable > 0).sum(axis=0)
    for_b = (stable < 0).sum(axis=0)
    n = for_a + for_b
    same = for_a * (for_a - 1) // 2 + for_b * (for_b - 1) // 2
    pairs = n * (n - 1) // 2
    comparable = n >= 2
    g = np.divide(same, pairs, out=np.full(same.shape, np.nan), where=comparable)
    count = comparable.sum(axis=1)
    total = np.where(comparable, pairs, 0).sum(axis=1)
    g_sum = np.where(comparable, g, 0.0).sum(axis=1)
    result = pd.DataFrame(
        {
            "comparable": count,
            "unanimous": (comparable & (same == pairs)).sum(axis=1),
            "g_pooled": np.divide(same.sum(axis=1), total, out=np.full(len(count), np.nan), where=total > 0),
            "g_macro": np.divide(g_sum, count, out=np.full(len(count), np.nan), where=count > 0),
        }
    )
    result["undefined"] = [None if n_ else "no_comparable_attribute" for n_ in count]
    return result
