"""Holm's adjustment: p values of a predeclared family, at the price of its size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Adjust p values so that the chance of any false claim in the family stays below the level.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        p values from 0 to 1. NaN (no test could be made) stays NaN and does not count as a test.

    Returns
    -------
    numpy.ndarray of float64, shape (n,)
        Adjusted p values, at most 1.

    Raises
    ------
    ValueError
        If a p value is outside 0 to 1.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70; definitions, section 4.

    Examples
    --------
    3 x .01 = .03; 2 x .04 = .08; .05 may not be below its predecessor.

    >>> holm([0.04, 0.01, 0.05]).round(4).tolist()
    [0.08, 0.03, 0.08]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("p values must lie between 0 and 1")
    out = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out
