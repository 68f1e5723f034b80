"""Equivalence by two one-sided tests: "not significant" is never "the same"."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.clustered_mean import clustered_mean

Equivalence = Literal["equivalent", "different", "inconclusive", "too_few"]


class EquivalenceTest(NamedTuple):
    """The result of :func:`equivalence_test`.

    Attributes
    ----------
    outcome : {"equivalent", "different", "inconclusive", "too_few"}
        ``equivalent``: both one-sided tests reject, so the mean lies within the margin. ``different``: the
        interval lies outside the margin on one side. ``too_few``: fewer than two clusters.
    difference, low, high : float
        The mean and its interval at level 1 - 2 alpha.
    p_lower, p_upper : float
        One-sided p-values against "the mean is at most -margin" and "at least +margin".
    margin, alpha : float
    n, clusters : int
    """

    outcome: Equivalence
    difference: float
    low: float
    high: float
    p_lower: float
    p_upper: float
    margin: float
    alpha: float
    n: int
    clusters: int

    @property
    def p_value(self) -> float:
        """The larger of both p-values: that of equivalence."""
        return max(self.p_lower, self.p_upper) if not math.isnan(self.p_lower) else math.nan


def equivalence_test(
    differences: npt.ArrayLike, clusters: npt.ArrayLike | pd.Series, margin: float, alpha: float = 0.05
) -> EquivalenceTest:
    """Test whether a mean difference lies within a margin.

    Parameters
    ----------
    differences : array-like of shape (n,)
        One difference a pair, in [-1, 1].
    clusters : array-like of shape (n,)
        The base task of each pair.
    margin : float
        Half-width of the range that counts as the same, above 0, in the differences' unit.
    alpha : float
        Level of each one-sided test.

    References
    ----------
    Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680; definitions,
    section 8.

    Examples
    --------
    Twelve clusters, six at .1 and six at -.1: mean 0, sd sqrt(12 x .01 / 11) = .10445, se .03015, but at
    least 1/13 = .07692. t(11) at .95 is 1.7959, so the interval is +/- .1381: within .15, not within .1.

    >>> values, tasks = [0.1, -0.1] * 6, list("abcdefghijkl")
    >>> equivalence_test(values, tasks, 0.15).outcome, equivalence_test(values, tasks, 0.1).outcome
    ('equivalent', 'inconclusive')
    """
    if not margin > 0:
        raise ValueError(f"margin is {margin}; wanted a number above 0")
    mean = clustered_mean(differences, clusters)
    low, high = mean.bounds(alpha)
    p_lower, p_upper = mean.p_above(-margin), mean.p_below(margin)
    outcome: Equivalence
    if math.isnan(low):
        outcome = "too_few"
    elif p_lower <= alpha and p_upper <= alpha:
        outcome = "equivalent"
    elif low > margin or high < -margin:
        outcome = "different"
    else:
        outcome = "inconclusive"
    return EquivalenceTest(
        outcome, mean.value, low, high, p_lower, p_upper, margin, alpha, mean.n, mean.clusters
    )
