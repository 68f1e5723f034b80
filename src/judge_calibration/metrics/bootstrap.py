"""The cluster bootstrap of a ratio: all resamples by one matrix product."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.clusters import cluster_codes, cluster_sums, weight_blocks
from judge_calibration.metrics.rates import Floats, ratio

# float32 holds every integer up to here, so that sums of counts stay exact.
_EXACT_IN_FLOAT32 = float(2**24)
# Weights are kept (as bytes) between products while they are smaller than this.
_KEEP_BYTES = 64 * 2**20

# Columns of whole numbers with fewer non-zero clusters than this share are multiplied without their zeros, if
# there are enough of them: many small slices, or every two annotators. Whole numbers give the same sums.
_THIN = 0.1
_FEW = 16


def _packed(columns: Floats) -> Any:
    """Return the transposed columns without their zeros."""
    from scipy.sparse import csr_array

    return csr_array(columns.T.astype(np.float32))


class BootstrapInterval(NamedTuple):
    """A percentile interval over cluster resamples.

    Attributes
    ----------
    value : float
        The statistic on the data as they are; NaN if undefined.
    low, high : float
        Percentiles of the defined resamples; NaN if there is none.
    undefined : float
        Share of resamples in which the statistic was undefined, 0 to 1.
    """

    value: float
    low: float
    high: float
    undefined: float


class Resamples:
    """The resamples of one set of clusters, and products of their weights with cluster sums.

    Parameters
    ----------
    count : int
        Number of clusters.
    resamples : int
        Number of resamples, B.
    seed : int
        Seed; the same for all statistics of a report.
    """

    def __init__(self, count: int, resamples: int, seed: int) -> None:
        self.count = count
        self.resamples = resamples
        self.seed = seed
        self._kept: npt.NDArray[np.uint8] | None = None

    def _blocks(self, support: npt.NDArray[np.int64]):  # type: ignore[no-untyped-def]
        whole = len(support) == self.count
        if self._kept is None and self.resamples * self.count <= _KEEP_BYTES:
            kept = np.empty((self.resamples, self.count), dtype=np.uint8)
            start = 0
            for block in weight_blocks(self.count, self.resamples, self.seed):
                if block.max() > 255:
                    kept = np.empty((0, 0), dtype=np.uint8)
                    break
                kept[start : start + len(block)] = block
                start += len(block)
            self._kept = kept if kept.size else None
        if self._kept is not None:
            rows = max(1, 2_000_000 // max(1, len(support)))
            for start in range(0, self.resamples, rows):
                part = self._kept[start : start + rows]
                yield start, part if whole else part[:, support]
            return
        start = 0
        for block in weight_blocks(self.count, self.resamples, self.seed):
            yield start, block if whole else block[:, support]
            start += len(block)

    def totals(self, sums: Floats) -> Floats:
        """Return the sums of every resample, ``W @ sums``.

        Parameters
        ----------
        sums : numpy.ndarray of shape (count, n_columns)
            Cluster sums. Integer columns are summed exactly.

        Returns
        -------
        numpy.ndarray of float64, shape (n_columns, resamples)
        """
        n_columns = sums.shape[1]
        out = np.empty((n_columns, self.resamples))
        # Equal columns (denominators that judges share) are multiplied once.
        seen: dict[bytes, int] = {}
        place = np.empty(n_columns, dtype=np.int64)
        for k, column in enumerate(np.ascontiguousarray(sums.T)):
            place[k] = seen.setdefault(column.tobytes(), len(seen))
        first = np.unique(place, return_index=True)[1]
        distinct = sums[:, first]
        support = np.flatnonzero(distinct.any(axis=1))
        if len(support) > self.count // 2:
            support = np.arange(self.count)
        distinct = distinct[support]
        whole_numbers = (distinct == np.rint(distinct)).all(axis=0)
        # No resample can exceed the largest cluster drawn every time.
        small = np.abs(distinct).max(axis=0, initial=0) * self.count < _EXACT_IN_FLOAT32
        single = whole_numbers & small
        thin = single & (np.count_nonzero(distinct, axis=0) < _THIN * len(distinct))
        if thin.sum() < _FEW:
            thin[:] = False
        products = np.empty((distinct.shape[1], self.resamples))
        low, high = distinct[:, single & ~thin].astype(np.float32), distinct[:, ~single]
        packed = _packed(distinct[:, thin]) if thin.any() else None
        for start, block in self._blocks(support):
            stop = start + len(block)
            if low.shape[1]:
                products[single & ~thin, start:stop] = (block.astype(np.float32) @ low).T
            if packed is not None:
                products[thin, start:stop] = packed @ np.ascontiguousarray(block.T, dtype=np.float32)
            if high.shape[1]:
                products[~single, start:stop] = (block.astype(np.float64) @ high).T
        np.take(products, place, axis=0, out=out)
        return out


def percentiles(estimates: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Return the percentile interval of each row of `estimates`, and its share of undefined resamples.

    Parameters
    ----------
    estimates : numpy.ndarray of shape (n_statistics, resamples)
        Undefined resamples are NaN and left out of the percentiles.
    level : float
        Coverage that the interval aims at.

    Returns
    -------
    low, high, undefined : numpy.ndarray of shape (n_statistics,)
    """
    missing = np.isnan(estimates)
    undefined = missing.mean(axis=1) if estimates.shape[1] else np.ones(len(estimates))
    tails = [(1 - level) / 2, 1 - (1 - level) / 2]
    if level == 0.95:
        tails = [0.025, 0.975]  # as published; the expression above is off in the last bit
    low = np.full(len(estimates), np.nan)
    high = np.full(len(estimates), np.nan)
    complete = undefined == 0
    if complete.any():
        low[complete], high[complete] = np.quantile(estimates[complete], tails, axis=1)
    for row in np.flatnonzero(~complete & (undefined < 1)):
        low[row], high[row] = np.quantile(estimates[row][~missing[row]], tails)
    return low, high, undefined


def cluster_bootstrap(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    clusters: npt.ArrayLike | pd.Series,
    resamples: int = 10_000,
    seed: int = 7,
    level: float = 0.95,
) -> BootstrapInterval:
    """Return the percentile interval of a ratio when whole clusters are resampled.

    Parameters
    ----------
    numerator, denominator : array-like of shape (n_rows,)
        Contributions of each row; a share of rows has a denominator of ones.
    clusters : array-like of str, shape (n_rows,)
        The cluster of each row.
    resamples, seed, level
        As in the report's parameters.

    Returns
    -------
    BootstrapInterval
        In the units of the ratio. Undefined on no row, or where the denominator sums to 0.

    Notes
    -----
    The resamples are, draw for draw, those of a loop that calls ``rng.choice`` on the distinct cluster ids
    and concatenates the chosen clusters' rows: the same seed gives the same interval to the last bit.

    References
    ----------
    Definitions, section 4.

    Examples
    --------
    >>> right = [1, 1, 0, 1, 0, 1]
    >>> interval = cluster_bootstrap(right, [1] * 6, ["a", "a", "b", "b", "c", "c"])
    >>> round(interval.value, 4), interval.low, interval.high
    (0.6667, 0.5, 1.0)
    """
    found = cluster_codes(clusters)
    columns = np.stack([np.asarray(numerator, np.float64), np.asarray(denominator, np.float64)], axis=1)
    if found.size == 0:
        return BootstrapInterval(np.nan, np.nan, np.nan, 1.0)
    sums = cluster_sums(columns, found.codes, found.size)
    over, under = Resamples(found.size, resamples, seed).totals(sums)
    low, high, undefined = percentiles(ratio(over, under)[None, :], level)
    value = ratio(*sums.sum(axis=0))
    return BootstrapInterval(float(value), float(low[0]), float(high[0]), float(undefined[0]))
