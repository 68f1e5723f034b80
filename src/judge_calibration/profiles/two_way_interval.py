"""Intervals for a panel's mean rate by resampling items and judges together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from judge_calibration.profiles.item_tables import judge_pairs

FEWEST_CLUSTERS = 10
FEWEST_JUDGES = 4
_BLOCK = 100


class TwoWayInterval(NamedTuple):
    """A mean over judge pairs with percentile intervals by item, by judge, and by both.

    Each interval is (low, high). `undefined` names why there is none: ``fewer_than_10_clusters``,
    ``fewer_than_4_judges`` or ``often_undefined`` (more than a tenth of the two-way resamples had no judge
    pair with a shared cell).
    """

    value: float
    by_item: tuple[float, float]
    by_judge: tuple[float, float]
    two_way: tuple[float, float]
    undefined: str | None


class Term(NamedTuple):
    """One ratio of sums by judge pair, with its sign in the statistic (agreement minus preference, say).

    numerator, denominator : numpy.ndarray, shape (n_judge_pairs, n_clusters)
    """

    numerator: np.ndarray
    denominator: np.ndarray
    sign: int = 1


def item_resamples(n_clusters: int, resamples: int, seed: int) -> np.ndarray:
    """Draw how often each cluster of items is in each resample: shape (resamples, n_clusters).

    Examples
    --------
    >>> item_resamples(3, 2, 0).sum(axis=1).tolist()
    [3, 3]
    """
    rng = np.random.default_rng(seed)
    weights = np.empty((resamples, n_clusters), dtype=np.uint16)
    for row in weights:
        row[:] = np.bincount(rng.integers(0, n_clusters, n_clusters), minlength=n_clusters)
    return weights


def by_cluster(table: np.ndarray, cluster: np.ndarray | None, n_clusters: int) -> np.ndarray:
    """Sum a table of shape (n_judge_pairs, n_items) within clusters of items (None: each item is one)."""
    if cluster is None:
        return table.astype(np.float32)
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(n_clusters))
    return np.add.reduceat(table[:, order].astype(np.float32), starts, axis=1)


def two_way_interval(
    terms: Sequence[Term],
    n_judges: int,
    item_weights: np.ndarray,
    seed: int,
    panels: Sequence[np.ndarray] | None = None,
    level: float = 0.95,
) -> list[TwoWayInterval]:
    """Resample clusters of items with multiplicity, judges with multiplicity, and both.

    Parameters
    ----------
    terms : sequence of Term
        The statistic of a judge pair is the signed sum of its ratios; a pair is left out where one of them is
        undefined. The panel's statistic is the mean over judge pairs.
    n_judges : int
        Pairs are in the order of :func:`judge_calibration.profiles.item_tables.judge_pairs`.
    item_weights : numpy.ndarray, shape (resamples, n_clusters)
        From :func:`item_resamples`.
    seed : int
        For the judges.
    panels : sequence of numpy.ndarray of bool, each of shape (n_judges,), optional
        The judges of each panel; one panel of all by default.
    level : float

    Returns
    -------
    list of TwoWayInterval
        One a panel.

    Notes
    -----
    A judge drawn twice is not paired with itself: its copies agree by construction and would say nothing.

    Plain percentiles are too narrow for a handful of judges (they held for 78 % of SIMULATED panels of four).
    The ends are therefore the expanded percentiles of Hesterberg (2015, What Teachers Should Know About the
    Bootstrap): those that would make the interval of a mean of n Student's. n is the clusters by item, the
    judges by judge, the fewer of both for the two-way interval.

    Examples
    --------
    >>> term = Term(np.full((6, 12), 4.0), np.full((6, 12), 5.0))
    >>> two_way_interval([term], 4, item_resamples(12, 200, 0), 0)[0].two_way
    (0.8, 0.8)
    """
    from threadpoolctl import threadpool_limits

    resamples, n_clusters = item_weights.shape
    whole = _statistic(
        [(t.numerator.sum(axis=1)[None], t.denominator.sum(axis=1)[None], t.sign) for t in terms]
    )
    resampled = None
    if n_clusters >= FEWEST_CLUSTERS:
        stacked = np.concatenate([part for t in terms for part in (t.numerator, t.denominator)])
        columns = np.ascontiguousarray(stacked.T, dtype=np.float32)
        blocks = []
        with threadpool_limits(limits=1, user_api="blas"):
            for start in range(0, resamples, _BLOCK):
                blocks.append(item_weights[start : start + _BLOCK].astype(np.float32) @ columns)
        sums = np.concatenate(blocks).astype(np.float64).reshape(resamples, 2 * len(terms), -1)
        resampled = _statistic([(sums[:, 2 * n], sums[:, 2 * n + 1], t.sign) for n, t in enumerate(terms)])
    first, second = judge_pairs(n_judges)
    results = []
    for judges in [np.ones(n_judges, dtype=bool)] if panels is None else panels:
        chosen = judges[first] & judges[second]
        own = None if resampled is None else resampled[:, chosen]
        results.append(
            _interval(whole[:, chosen], own, int(judges.sum()), n_clusters, resamples, seed, level)
        )
    return results


def _interval(
    whole: np.ndarray,
    resampled: np.ndarray | None,
    n_judges: int,
    n_clusters: int,
    resamples: int,
    seed: int,
    level: float,
) -> TwoWayInterval:
    ones = np.ones((1, whole.shape[1]))
    value = float(_mean(whole, ones)[0])
    by_judge = by_item = (float("nan"), float("nan"))
    nan = by_judge
    drawn = np.zeros((0, 0))
    if n_judges >= FEWEST_JUDGES:
        rng = np.random.default_rng(seed)
        first, second = judge_pairs(n_judges)
        counts = np.stack(
            [np.bincount(rng.integers(0, n_judges, n_judges), minlength=n_judges) for _ in range(resamples)]
        )
        drawn = (counts[:, first] * counts[:, second]).astype(np.float64)
        by_judge = _percentiles(_mean(whole, drawn), level, n_judges)
    if resampled is None:
        return TwoWayInterval(value, nan, by_judge, nan, "fewer_than_10_clusters")
    by_item = _percentiles(_mean(resampled, ones), level, n_clusters)
    if n_judges < FEWEST_JUDGES:
        return TwoWayInterval(value, by_item, nan, nan, "fewer_than_4_judges")
    both = _mean(resampled, drawn)
    if np.isnan(both).mean() > 0.1:
        return TwoWayInterval(value, by_item, by_judge, nan, "often_undefined")
    two_way = _percentiles(both, level, min(n_judges, n_clusters))
    return TwoWayInterval(value, by_item, by_judge, two_way, None)


def _statistic(terms: Sequence[tuple[np.ndarray, np.ndarray, int]]) -> np.ndarray:
    total = np.zeros(terms[0][0].shape)
    for numerator, denominator, sign in terms:
        rate = np.divide(numerator, denominator, out=np.full(total.shape, np.nan), where=denominator > 0)
        total = total + sign * rate
    return total


def _mean(rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    defined = ~np.isnan(rates)
    total = (weights * defined).sum(axis=1)
    sums = (weights * np.where(defined, rates, 0.0)).sum(axis=1)
    return np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)


def _percentiles(values: np.ndarray, level: float, n: int) -> tuple[float, float]:
    """Return the ends of an interval from resamples of `n` units: percentiles, expanded for small n."""
    from scipy import stats

    known = values[~np.isnan(values)]
    if not known.size:
        return float("nan"), float("nan")
    tail = float(stats.norm.cdf(-np.sqrt(n / (n - 1)) * stats.t.ppf((1 + level) / 2, n - 1)))
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(round(low, 7)), float(round(high, 7))
