"""Cluster-jackknife standard errors and their t intervals, for designs with few clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Jackknife(NamedTuple):
    """Standard errors and t intervals.

    Attributes
    ----------
    se : numpy.ndarray
        Standard error of each statistic, in its own units; NaN where undefined.
    low, high : numpy.ndarray
        ``value -/+ t(G - 1) se``. Not cut at 0 or 1.
    """

    se: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def t_quantile(level: float, degrees: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the two-sided quantile of Student's t; NaN below one degree of freedom.

    Examples
    --------
    >>> float(t_quantile(0.95, 3).round(4))
    3.1824
    """
    from scipy.special import stdtrit

    df = np.asarray(degrees, dtype=np.float64)
    out = np.full(df.shape, np.nan)
    np.copyto(out, stdtrit(np.maximum(df, 1), 0.5 + level / 2), where=df >= 1)
    return out


def jackknife_interval(
    value: npt.ArrayLike, left_out: npt.ArrayLike, contributes: npt.ArrayLike, level: float = 0.95
) -> Jackknife:
    """Return the delete-one-cluster jackknife of one or many statistics.

    Parameters
    ----------
    value : array-like of shape (...)
        The statistics on all clusters.
    left_out : array-like of shape (G, ...)
        The statistics without the first cluster, without the second, and so on.
    contributes : array-like of bool, shape (G, ...)
        Which clusters hold a unit of the statistic; the others are not counted in G.
    level : float
        Coverage that the interval aims at.

    Returns
    -------
    Jackknife
        Undefined (NaN) with fewer than two contributing clusters, or where a statistic is undefined without
        one of them.

    Notes
    -----
    The squared standard error is (G - 1) / G times the sum of squared differences from the mean of the
    left-out statistics. For a mean of equal clusters it equals the usual standard error of the mean.

    References
    ----------
    Definitions, section 4.

    Examples
    --------
    Cluster means 0, 0, 1, 1: mean 1/2; without one of them 2/3, 2/3, 1/3, 1/3, which differ from their mean
    by 1/6 each; se = sqrt(3/4 * 4/36) = .288675, the same as sd / sqrt(4) = .57735 / 2.

    >>> result = jackknife_interval(0.5, [2 / 3, 2 / 3, 1 / 3, 1 / 3], [True] * 4)
    >>> round(float(result.se), 6), round(float(result.high), 6)
    (0.288675, 1.418693)
    """
    point = np.asarray(value, dtype=np.float64)
    without = np.asarray(left_out, dtype=np.float64)
    counted = np.broadcast_to(np.asarray(contributes, dtype=bool), without.shape)
    g = counted.sum(axis=0).astype(np.float64)
    broken = (counted & np.isnan(without)).any(axis=0) | (g < 2)
    safe = np.where(counted & ~np.isnan(without), without, 0.0)
    mean = safe.sum(axis=0) / np.maximum(g, 1)
    squares = np.where(counted, (safe - mean) ** 2, 0.0).sum(axis=0)
    se = np.where(broken, np.nan, np.sqrt(squares * (g - 1) / np.maximum(g, 1)))
    half = t_quantile(level, g - 1) * se
    return Jackknife(se, point - half, point + half)
