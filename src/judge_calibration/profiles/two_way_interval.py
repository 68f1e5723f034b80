"""Intervals for a panel's mean agreement by resampling items and judges together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class TwoWayInterval(NamedTuple):
    """Mean agreement over judge pairs with percentile intervals by item, by judge, and by both.

    Each interval is (low, high), NaN where fewer than 10 items or 4 judges are there; undefined is the share
    of two-way resamples in which no judge pair had a shared cell.
    """

    value: float
    by_item: tuple[float, float]
    by_judge: tuple[float, float]
    two_way: tuple[float, float]
    undefined: float


FEWEST_ITEMS = 10
FEWEST_JUDGES = 4


def two_way_interval(
    joint: np.ndarray, agree: np.ndarray, seed: int, resamples: int = 1_000, level: float = 0.95
) -> TwoWayInterval:
    """Resample items with multiplicity (sums of per-item tables) and judges with multiplicity.

    A judge drawn twice is not paired with itself: its copies agree by construction and would say nothing.

    Parameters
    ----------
    joint, agree : numpy.ndarray, shape (n_items, n_judges, n_judges)
        From :func:`judge_calibration.profiles.agreement.item_tables`.
    seed : int
    resamples : int
    level : float

    Examples
    --------
    >>> joint = np.full((12, 4, 4), 5); agree = np.full((12, 4, 4), 4)
    >>> two_way_interval(joint, agree, 0, 200).two_way
    (0.8, 0.8)
    """
    n_items, n_judges = joint.shape[:2]
    upper = np.triu_indices(n_judges, k=1)
    joint_flat = joint[:, upper[0], upper[1]].astype(np.float64)
    agree_flat = agree[:, upper[0], upper[1]].astype(np.float64)
    rng = np.random.default_rng(seed)
    item_weights = np.stack(
        [np.bincount(rng.integers(0, n_items, n_items), minlength=n_items) for _ in range(resamples)]
    ).astype(np.float64)
    judge_weights = np.stack(
        [np.bincount(rng.integers(0, n_judges, n_judges), minlength=n_judges) for _ in range(resamples)]
    )
    pair_weights = (judge_weights[:, upper[0]] * judge_weights[:, upper[1]]).astype(np.float64)
    whole = _rates(agree_flat.sum(axis=0)[None], joint_flat.sum(axis=0)[None])
    resampled = _rates(item_weights @ agree_flat, item_weights @ joint_flat)
    ones = np.ones((1, len(upper[0])))
    enough_items, enough_judges = n_items >= FEWEST_ITEMS, n_judges >= FEWEST_JUDGES
    by_item = _mean(resampled, ones) if enough_items else np.full(1, np.nan)
    by_judge = _mean(whole, pair_weights) if enough_judges else np.full(1, np.nan)
    both = _mean(resampled, pair_weights) if enough_items and enough_judges else np.full(1, np.nan)
    return TwoWayInterval(
        float(_mean(whole, ones)[0]),
        _percentiles(by_item, level),
        _percentiles(by_judge, level),
        _percentiles(both, level),
        float(np.isnan(both).mean()),
    )


def _rates(agree: np.ndarray, joint: np.ndarray) -> np.ndarray:
    return np.divide(agree, joint, out=np.full(joint.shape, np.nan), where=joint > 0)


def _mean(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    defined = ~np.isnan(rates)
    total = (weights * defined).sum(axis=1)
    sums = (weights * np.where(defined, rates, 0.0)).sum(axis=1)
    return np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)


def _percentiles(values: np.ndarray, level: float) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if not known.size:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(round(low, 12)), float(round(high, 12))
