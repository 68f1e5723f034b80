"""Simultaneous intervals by max-t: one multiple of the standard errors for a whole family."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class SimultaneousIntervals(NamedTuple):
    """Intervals that all hold together.

    Attributes
    ----------
    critical : float
        The multiple of the standard errors; NaN if no statistic could be used.
    low, high : numpy.ndarray of shape (n,)
        ``value -/+ critical * se``; NaN for statistics that could not be used.
    """

    critical: float
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


def max_t_intervals(
    value: npt.ArrayLike, estimates: npt.ArrayLike, se: npt.ArrayLike, level: float = 0.95
) -> SimultaneousIntervals:
    """Return intervals that cover all statistics of a family at once.

    Parameters
    ----------
    value : array-like of shape (n,)
        The statistics.
    estimates : array-like of shape (n, resamples)
        The statistics on shared resamples, so that their dependence is used. Undefined resamples of a
        statistic (NaN) are passed over.
    se : array-like of shape (n,)
        Standard errors; a statistic with a standard error of 0 or NaN is left out and gets no interval.
    level : float
        Probability with which all intervals hold.

    Returns
    -------
    SimultaneousIntervals

    Notes
    -----
    The multiple is the `level` quantile, over resamples, of the largest absolute deviation in standard
    errors. It is never below that of a single statistic and never above Bonferroni's for the same resamples.

    References
    ----------
    Definitions, section 4.

    Examples
    --------
    Two statistics, four resamples, standard errors 1 and 2: deviations in standard errors are (1, -1, 0, 2)
    and (0.5, 2, -3, 0); the largest in each resample 1, 2, 3, 2; their median 2.

    >>> found = max_t_intervals([0, 0], [[1, -1, 0, 2], [1, 4, -6, 0]], [1, 2], level=0.5)
    >>> found.critical, found.high.tolist()
    (2.0, [2.0, 4.0])
    """
    point, spread = np.asarray(value, dtype=np.float64), np.asarray(se, dtype=np.float64)
    drawn = np.asarray(estimates, dtype=np.float64)
    usable = ~np.isnan(point) & ~np.isnan(spread) & (spread > 0)
    if not usable.any() or not drawn.shape[1]:
        nothing = np.full(point.shape, np.nan)
        return SimultaneousIntervals(float("nan"), nothing, nothing.copy())
    deviations = np.abs(drawn[usable] - point[usable, None]) / spread[usable, None]
    largest = np.nan_to_num(deviations, nan=0.0).max(axis=0)
    critical = float(np.quantile(largest, level))
    half = np.where(usable, critical * np.where(usable, spread, 0.0), np.nan)
    return SimultaneousIntervals(critical, point - half, point + half)


def raise_largest(
    largest: npt.NDArray[np.float64],
    rows: npt.NDArray[np.int64],
    drawn: npt.NDArray[np.float64],
    value: npt.NDArray[np.float64],
    se: npt.NDArray[np.float64],
) -> None:
    """Raise the largest deviations so far, in place, by one more member of each family.

    Parameters
    ----------
    largest : numpy.ndarray of shape (n_families, resamples)
        Largest absolute deviations in standard errors; 0 at the start.
    rows : numpy.ndarray of shape (k,)
        Whose family each statistic belongs to; no family twice.
    drawn : numpy.ndarray of shape (k, resamples)
        The statistics on the resamples; NaN is passed over.
    value, se : numpy.ndarray of shape (k,)
        The statistics and their standard errors, above 0.
    """
    deviations = np.abs(drawn - value[:, None])
    deviations /= se[:, None]
    largest[rows] = np.fmax(largest[rows], deviations)


def critical_values(largest: npt.NDArray[np.float64], level: float) -> npt.NDArray[np.float64]:
    """Return each family's multiple of the standard errors; NaN for a family without a member.

    Examples
    --------
    The two statistics of :func:`max_t_intervals`, one after the other:

    >>> largest = np.zeros((1, 4))
    >>> for drawn, se in (([1, -1, 0, 2], 1.0), ([1, 4, -6, 0], 2.0)):
    ...     raise_largest(largest, np.array([0]), np.array([drawn], float), np.zeros(1), np.array([se]))
    >>> critical_values(largest, 0.5).tolist()
    [2.0]
    """
    if not largest.size:
        return np.full(len(largest), np.nan)
    found = np.quantile(largest, level, axis=1)
    return np.where(largest.any(axis=1), found, np.nan)
