"""Means and shares of clustered pairs with one-sided bounds: what the gates decide on.

Pairs of one base task depend on each other, so the standard error comes from the clusters (cluster
jackknife) and inference uses Student's t with clusters less one degrees of freedom. A share, whose
distribution is skewed near 0 and 1, gets binomial (Clopper-Pearson) bounds with the effective number of
pairs instead, as Korn and Graubard do for surveys.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.clusters import cluster_sums
from judge_calibration.metrics.jackknife import jackknife_interval


class Bounds(NamedTuple):
    """One-sided lower and upper bounds, each at level 1 - alpha; together an interval at 1 - 2 alpha."""

    low: float
    high: float


UNDEFINED = Bounds(math.nan, math.nan)


class ClusteredMean(NamedTuple):
    """A mean of values in [-1, 1] with what inference on it needs.

    Attributes
    ----------
    value : float
        NaN without a pair.
    se : float
        Standard error; NaN below two clusters.
    n, clusters : int
        Pairs and clusters.
    """

    value: float
    se: float
    n: int
    clusters: int

    def bounds(self, alpha: float) -> Bounds:
        """Return the t bounds; NaN below two clusters."""
        from scipy.special import stdtrit

        if math.isnan(self.se):
            return UNDEFINED
        half = float(stdtrit(self.clusters - 1, 1 - alpha)) * self.se
        return Bounds(self.value - half, self.value + half)

    def p_above(self, threshold: float) -> float:
        """Return the p-value against "the mean is at most `threshold`"; NaN below two clusters."""
        from scipy.special import stdtr

        if math.isnan(self.se):
            return math.nan
        return float(stdtr(self.clusters - 1, -(self.value - threshold) / self.se))

    def p_below(self, threshold: float) -> float:
        """Return the p-value against "the mean is at least `threshold`"; NaN below two clusters."""
        p = self.p_above(threshold)
        return 1 - p if not math.isnan(p) else p


class ClusteredShare(NamedTuple):
    """A share (0 to 1) with its effective number of independent pairs.

    Attributes
    ----------
    value : float
        NaN without a pair.
    effective_n : float
        Pairs that would give the same standard error if they were independent, at most the pairs there
        are; the number of clusters where every pair agrees and nothing else can be said.
    n, clusters : int
        Pairs and clusters.
    """

    value: float
    effective_n: float
    n: int
    clusters: int

    def _trials(self, alpha: float) -> float:
        """Return the effective number of pairs, less what estimating it from few clusters costs."""
        from scipy.special import stdtrit

        if self.value in (0.0, 1.0) or self.n < 2:
            return self.effective_n
        normal = float(stdtrit(self.n - 1, 1 - alpha))
        return self.effective_n * (normal / float(stdtrit(self.clusters - 1, 1 - alpha))) ** 2

    def bounds(self, alpha: float) -> Bounds:
        """Return the binomial bounds; NaN below two clusters."""
        from scipy.special import betaincinv

        if math.isnan(self.effective_n):
            return UNDEFINED
        n = self._trials(alpha)
        x = n * self.value
        low = 0.0 if self.value == 0 else float(betaincinv(x, n - x + 1, alpha))
        high = 1.0 if self.value == 1 else float(betaincinv(x + 1, n - x, 1 - alpha))
        return Bounds(low, high)

    def p_above(self, threshold: float, alpha: float = 0.05) -> float:
        """Return the p-value against "the share is at most `threshold`"; NaN below two clusters."""
        from scipy.special import betainc

        if math.isnan(self.effective_n):
            return math.nan
        if self.value == 0:
            return 1.0
        n = self._trials(alpha)
        x = n * self.value
        return float(betainc(x, n - x + 1, threshold))


def _jackknife(values: npt.ArrayLike, clusters: npt.ArrayLike | pd.Series) -> tuple[float, float, int, int]:
    """Return mean, cluster-jackknife standard error, pairs and clusters."""
    y = np.asarray(values, dtype=np.float64)
    if not len(y):
        return math.nan, math.nan, 0, 0
    codes, names = pd.factorize(pd.Series(np.asarray(clusters, dtype=object)))
    g = len(names)
    sums = cluster_sums(np.column_stack([y, np.ones(len(y))]), codes.astype(np.int64), g)
    total, weight = sums.sum(axis=0)
    value = float(total / weight)
    if g < 2:
        return value, math.nan, len(y), g
    left_out = (total - sums[:, 0]) / (weight - sums[:, 1])
    se = float(jackknife_interval(value, left_out, np.ones(g, dtype=bool)).se)
    return value, se, len(y), g


def clustered_mean(values: npt.ArrayLike, clusters: npt.ArrayLike | pd.Series) -> ClusteredMean:
    """Return the mean of values in [-1, 1] with its cluster-jackknife standard error.

    Parameters
    ----------
    values : array-like of shape (n,)
        One value a pair.
    clusters : array-like of shape (n,)
        The base task of each pair.

    Notes
    -----
    Clusters that all agree are no proof that the next one will. The standard error is therefore at least
    what G + 1 clusters would show of which G have the mean and one the farthest possible value:
    (1 + absolute mean) / (G + 1). It only matters where nearly all clusters are equal.

    Examples
    --------
    Clusters 1, 0, 1, 0: mean 1/2, standard deviation .57735, standard error .57735/2, but the floor is
    1.5/5 = .3.

    >>> clustered_mean([1, 0, 1, 0], ["a", "b", "c", "d"])
    ClusteredMean(value=0.5, se=0.3, n=4, clusters=4)
    """
    value, se, n, g = _jackknife(values, clusters)
    if not math.isnan(se):
        se = max(se, (1 + abs(value)) / (g + 1))
    return ClusteredMean(value, se, n, g)


def clustered_share(values: npt.ArrayLike, clusters: npt.ArrayLike | pd.Series) -> ClusteredShare:
    """Return a share with its effective number of pairs.

    Parameters
    ----------
    values : array-like of shape (n,)
        One value a pair, 0 to 1.
    clusters : array-like of shape (n,)
        The base task of each pair.

    References
    ----------
    Korn and Graubard, Survey Methodology 24 (1998), 193-201.

    Examples
    --------
    All of 20 clusters right: the lower bound at 5 % is .05^(1/20) = .8609.

    >>> share = clustered_share([1] * 40, [f"t{i // 2}" for i in range(40)])
    >>> share.effective_n, round(share.bounds(0.05).low, 4)
    (20.0, 0.8609)
    """
    value, se, n, g = _jackknife(values, clusters)
    if math.isnan(se):
        return ClusteredShare(value, math.nan, n, g)
    if se == 0 or value in (0.0, 1.0):
        return ClusteredShare(value, float(g), n, g)
    return ClusteredShare(value, min(value * (1 - value) / se**2, float(n)), n, g)
