"""Which interval a statistic gets: percentile, Wilson, or none and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.bootstrap import percentiles
from judge_calibration.metrics.jackknife import jackknife_interval
from judge_calibration.metrics.rates import Floats
from judge_calibration.metrics.wilson import wilson_interval
from judge_calibration.options.reporting import IntervalOptions

Bools = npt.NDArray[np.bool_]

NOT_DEFINED = "statistic_undefined"
TOO_FEW = "fewer_than_{}_clusters"
TOO_OFTEN_UNDEFINED = "undefined_resamples"
NO_VARIATION = "no_variation"


@dataclass(frozen=True)
class Intervals:
    """Intervals of many statistics; every attribute is an array over them.

    Attributes
    ----------
    value : numpy.ndarray of float64
        The statistic; NaN if undefined.
    low, high : numpy.ndarray of float64
        The interval; NaN if none is given.
    method : numpy.ndarray of str
        ``percentile``, ``wilson`` or ``none``.
    reason : numpy.ndarray of str
        Why none is given; empty if one is.
    se, jackknife_low, jackknife_high : numpy.ndarray of float64
        Cluster-jackknife standard error and t interval.
    clusters : numpy.ndarray of int64
        Clusters that hold a unit of the statistic.
    undefined : numpy.ndarray of float64
        Share of resamples in which the statistic was undefined.
    """

    value: Floats
    low: Floats
    high: Floats
    method: npt.NDArray[np.str_]
    reason: npt.NDArray[np.str_]
    se: Floats
    jackknife_low: Floats
    jackknife_high: Floats
    clusters: npt.NDArray[np.int64]
    undefined: Floats


def choose_intervals(
    value: Floats,
    estimates: Floats,
    left_out: Floats,
    contributes: Bools,
    proportion: Bools,
    options: IntervalOptions,
) -> Intervals:
    """Choose an interval for each statistic by the rules of the report.

    Parameters
    ----------
    value : numpy.ndarray of shape (n,)
        The statistics on the data.
    estimates : numpy.ndarray of shape (n, resamples)
        The statistics on the resamples.
    left_out : numpy.ndarray of shape (G, n)
        The statistics without each cluster.
    contributes : numpy.ndarray of bool, shape (G, n)
        Which clusters hold a unit of the statistic.
    proportion : numpy.ndarray of bool, shape (n,)
        Which statistics are shares; at 0 or 1 they get Wilson's interval with the clusters as units.
    options : IntervalOptions
        Numbers of clusters, level and limits.

    Returns
    -------
    Intervals

    Notes
    -----
    In order: an undefined statistic has no interval; fewer clusters than ``refuse_below`` give none; a
    share of 0 or 1 gets Wilson's; more undefined resamples than ``undefined_limit`` give none; resamples
    that all agree give none (``no_variation``), since an interval of width zero reads as certainty.

    References
    ----------
    Definitions, section 4.
    """
    low, high, undefined = percentiles(estimates, options.level)
    jackknife = jackknife_interval(value, left_out, contributes, options.level)
    clusters = contributes.sum(axis=0).astype(np.int64)
    method = np.full(len(value), "percentile", dtype="<U24")
    reason = np.full(len(value), "", dtype="<U32")

    def refuse(where: Bools, why: str) -> None:
        where = where & (method == "percentile")
        method[where], reason[where] = "none", why

    refuse(np.isnan(value), NOT_DEFINED)
    refuse(clusters < options.refuse_below, TOO_FEW.format(options.refuse_below))
    at_end = proportion & (method == "percentile") & ((value <= 0) | (value >= 1))
    for i in np.flatnonzero(at_end):
        n = int(clusters[i])
        low[i], high[i] = wilson_interval(n if value[i] >= 1 else 0, n, options.level)
        method[i] = "wilson"
    refuse(undefined > options.undefined_limit, TOO_OFTEN_UNDEFINED)
    refuse(high - low < 1e-12, NO_VARIATION)
    none = method == "none"
    low[none], high[none] = np.nan, np.nan
    return Intervals(
        value, low, high, method, reason, jackknife.se, jackknife.low, jackknife.high, clusters, undefined
    )


def spread_intervals(
    some: Intervals, places: npt.NDArray[np.int64], value: Floats, clusters: npt.NDArray[np.int64]
) -> Intervals:
    """Put the intervals of the defined statistics among those of the undefined ones, which have none.

    Parameters
    ----------
    some : Intervals
        Of the statistics at `places`.
    places : numpy.ndarray of int64
        Positions of the defined statistics.
    value : numpy.ndarray of shape (n,)
        All statistics; NaN away from `places`.
    clusters : numpy.ndarray of int64, shape (n,)
        Clusters that hold a unit of each statistic.
    """

    def numbers(part: Floats, fill: float = np.nan) -> Floats:
        out = np.full(len(value), fill)
        out[places] = part
        return out

    method = np.full(len(value), "none", dtype="<U24")
    method[places] = some.method
    reason = np.full(len(value), NOT_DEFINED, dtype="<U32")
    reason[places] = some.reason
    return Intervals(
        value,
        numbers(some.low),
        numbers(some.high),
        method,
        reason,
        numbers(some.se),
        numbers(some.jackknife_low),
        numbers(some.jackknife_high),
        np.asarray(clusters, dtype=np.int64),
        numbers(some.undefined, 1.0),
    )
