"""Wilson's interval: what a share of 0 or 1 gets in place of a resampling interval of width zero."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple


class Bounds(NamedTuple):
    """The ends of an interval."""

    low: float
    high: float


def wilson_interval(successes: float, n: float, level: float = 0.95) -> Bounds:
    """Return Wilson's score interval of a share.

    Parameters
    ----------
    successes : float
        Number of successes, 0 to `n`.
    n : float
        Number of independent units. For clustered pairs the caller gives the number of clusters, which is
        the cautious choice: at a share of 0 or 1 every cluster agrees with itself.
    level : float
        Coverage that the interval aims at.

    Returns
    -------
    Bounds
        Shares from 0 to 1; both NaN for ``n = 0``.

    Raises
    ------
    ValueError
        If `successes` is not between 0 and `n`.

    References
    ----------
    Wilson (1927), Journal of the American Statistical Association 22, 209-212; definitions, section 4.

    Examples
    --------
    With z = 1.959964, 0 of 20 gives an upper end z^2 / (20 + z^2) = 3.841459 / 23.841459.

    >>> low, high = wilson_interval(0, 20)
    >>> low, round(high, 6)
    (0.0, 0.161125)
    """
    if n == 0:
        return Bounds(math.nan, math.nan)
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}; wanted a number from 0 to n")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return Bounds(low, high)
