"""Many shares at once with intervals over clusters of dependent pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.rates import ratio
from judge_calibration.options.annotation import AnalysisOptions
from judge_calibration.options.reporting import IntervalOptions

RATE_COLUMNS = ["value", "low", "high", "method", "jackknife_se", "n", "n_clusters", "undefined"]
"""Columns of a rate: the share, its interval, units and clusters, and why a number is missing."""


class Rate(NamedTuple):
    """One share to be estimated.

    Attributes
    ----------
    numerator, denominator : array-like of shape (n_rows,)
        Contributions of the rows; the share is the ratio of the sums.
    clusters : array-like of int or str, shape (n_rows,)
        Base task of each row (codes are faster than ids).
    signed : bool
        Whether the numerator may be negative (a difference and not a share).
    """

    numerator: npt.ArrayLike
    denominator: npt.ArrayLike
    clusters: npt.ArrayLike | pd.Series
    signed: bool = False


def estimate_rates(rates: list[Rate], options: AnalysisOptions) -> pd.DataFrame:
    """Return every rate with its interval.

    Parameters
    ----------
    rates : list of Rate
        What to estimate; all share one set of clusters and one set of resamples.
    options : AnalysisOptions
        Resamples, seed and confidence.

    Returns
    -------
    pandas.DataFrame
        RATE_COLUMNS, a row a rate in their order. Undefined rates are NaN with reason ``nothing_to_count``;
        a rate without an interval keeps its value and says why (for example ``fewer_than_10_clusters``).

    Examples
    --------
    >>> rate = Rate([1, 1, 0, 1], [1, 1, 1, 1], ["t1", "t1", "t2", "t3"])
    >>> estimate_rates([rate], AnalysisOptions())[["value", "n", "n_clusters", "undefined"]].values.tolist()
    [[0.75, 4, 3, 'fewer_than_10_clusters']]
    """
    if not rates:
        return _typed(pd.DataFrame(columns=RATE_COLUMNS))
    lengths = [len(np.asarray(rate.denominator)) for rate in rates]
    found = cluster_codes(pd.Series(np.concatenate([np.asarray(rate.clusters) for rate in rates])))
    starts = np.cumsum([0, *lengths])
    over = np.zeros((max(found.size, 1), len(rates)))
    under = np.zeros_like(over)
    for column, rate in enumerate(rates):
        codes = found.codes[starts[column] : starts[column + 1]]
        over[:, column] = cluster_sums(np.asarray(rate.numerator, dtype=np.float64), codes, len(over))
        under[:, column] = cluster_sums(np.asarray(rate.denominator, dtype=np.float64), codes, len(over))
    n = under.sum(axis=0)
    value = ratio(over.sum(axis=0), n)
    resamples = Resamples(len(over), options.bootstrap, options.seed)
    drawn = resamples.totals(np.concatenate([over, under], axis=1))
    left_out = ratio(over.sum(axis=0) - over, n - under)
    intervals = choose_intervals(
        value,
        ratio(drawn[: len(rates)], drawn[len(rates) :]),
        left_out,
        under > 0,
        np.array([not rate.signed for rate in rates]),
        IntervalOptions(resamples=options.bootstrap, seed=options.seed, level=options.confidence),
    )
    reason = np.where(np.isnan(value), "nothing_to_count", intervals.reason.astype(object))
    return _typed(
        pd.DataFrame(
            {
                "value": value,
                "low": intervals.low,
                "high": intervals.high,
                "method": intervals.method.astype(object),
                "jackknife_se": intervals.se,
                "n": n,
                "n_clusters": intervals.clusters,
                "undefined": [str(text) or None for text in reason],
            }
        )
    )


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = dict.fromkeys(["value", "low", "high", "jackknife_se"], "float64")
    return frame.astype(numbers | {"n": "Int64", "n_clusters": "Int64", "method": "str", "undefined": "str"})
