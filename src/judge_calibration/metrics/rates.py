"""Ratios of counts that stay undefined where there is nothing to count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> Floats:
    """Return numerator / denominator, and NaN (never 0 or 1) where the denominator is 0.

    Parameters
    ----------
    numerator, denominator : array-like
        Counts or sums that broadcast against each other.

    Returns
    -------
    numpy.ndarray of float64
        Units of the numerator over units of the denominator. No warning is given for 0 / 0.

    Examples
    --------
    >>> ratio([3, 0], [4, 0])
    array([0.75,  nan])
    """
    over = np.asarray(numerator, dtype=np.float64)
    under = np.asarray(denominator, dtype=np.float64)
    out = np.full(np.broadcast_shapes(over.shape, under.shape), np.nan)
    np.divide(over, under, out=out, where=under != 0)
    return out
