"""How many base tasks a slice needs: from a wanted half-width, or from a gate's margin, to numbers.

Pairs of one base task are dependent, so the count is of base tasks and the variance carries the design
effect 1 + (m - 1) rho, with m pairs of the slice a base task and rho their correlation. The quantile is
Student's t with G - 1 degrees of freedom for G base tasks, as in the intervals that will be published, so
the equation is solved by search and not by one formula.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from judge_calibration.options.annotation import CriticalSliceOptions, DrawOptions


class Requirement(NamedTuple):
    """What one critical slice needs.

    Attributes
    ----------
    base_tasks : int
        Base tasks, at least 2.
    pairs : int
        Pairs, at `pairs_per_task` a base task, rounded up.
    labels : int
        Labels: the primaries of every pair and the expected adjudications, rounded up.
    half_width : float
        Half-width of the interval at that number of base tasks (target ``agreement``), or of the interval
        of (wins - losses)/n (target ``margin``).
    """

    base_tasks: int
    pairs: int
    labels: int
    half_width: float


def _variance(slice_: CriticalSliceOptions) -> float:
    """Return the variance of one pair's outcome: 0/1 for agreement, -1/0/+1 for wins minus losses."""
    if slice_.target == "agreement":
        return slice_.expected * (1 - slice_.expected)
    return (1 - slice_.tie_share) - slice_.difference**2


def half_width(
    slice_: CriticalSliceOptions, base_tasks: int, pairs_per_task: float, options: DrawOptions
) -> float:
    """Return the half-width that a number of base tasks gives; NaN below two base tasks.

    Parameters
    ----------
    slice_ : CriticalSliceOptions
        What is expected there.
    base_tasks : int
        Base tasks in the slice.
    pairs_per_task : float
        Mean number of the slice's pairs a base task.
    options : DrawOptions
        Confidence level and correlation within a base task.

    Returns
    -------
    float
        As a share (agreement) or in (wins - losses)/n.
    """
    from scipy.stats import t

    if base_tasks < 2:
        return math.nan
    effect = 1 + (pairs_per_task - 1) * options.within_task_correlation
    error = math.sqrt(_variance(slice_) * effect / (pairs_per_task * base_tasks))
    return float(t.ppf((1 + options.confidence) / 2, base_tasks - 1)) * error


def _suffices(
    slice_: CriticalSliceOptions, base_tasks: int, pairs_per_task: float, options: DrawOptions
) -> bool:
    from scipy.stats import t

    reached = half_width(slice_, base_tasks, pairs_per_task, options)
    if slice_.target == "agreement":
        return reached <= (slice_.half_width or 0)
    # The lower bound lies above -margin with the wanted power when the true difference is as declared.
    error = reached / float(t.ppf((1 + options.confidence) / 2, base_tasks - 1))
    slack = slice_.difference + (slice_.margin or 0)
    return reached + float(t.ppf(slice_.power, base_tasks - 1)) * error <= slack


def require(
    slice_: CriticalSliceOptions, pairs_per_task: float, primaries: int, options: DrawOptions
) -> Requirement:
    """Return how much one critical slice needs.

    Parameters
    ----------
    slice_ : CriticalSliceOptions
        The slice with its target.
    pairs_per_task : float
        Mean number of the slice's pairs a base task, at least 1.
    primaries : int
        Primary labels a pair.
    options : DrawOptions
        Confidence, correlation within a base task, expected share of disagreements.

    Returns
    -------
    Requirement
        The smallest number of base tasks that reaches the target.

    Examples
    --------
    Independent pairs at 80 % agreement and half-width .1: 1.96^2 .16 / .01 = 61.5, and a few more for t.

    >>> slice_ = CriticalSliceOptions(slice_by="manipulation", slice="correctness", half_width=0.1)
    >>> options = DrawOptions(mode="half_width", critical_slices=(slice_,), expected_disagreement=0.25)
    >>> require(slice_, 1, 2, options)[:3]
    (64, 64, 144)
    """
    low, high = 2, 4
    while not _suffices(slice_, high, pairs_per_task, options):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if _suffices(slice_, middle, pairs_per_task, options):
            high = middle
        else:
            low = middle + 1
    pairs = math.ceil(high * pairs_per_task - 1e-9)
    labels = pairs * primaries + math.ceil(pairs * options.expected_disagreement - 1e-9)
    return Requirement(high, pairs, labels, half_width(slice_, high, pairs_per_task, options))
