"""Benjamini and Hochberg's adjustment: the share of false claims among exploratory ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def benjamini_hochberg(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Adjust p values so that the expected share of false claims stays below the level.

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
    Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300; definitions,
    section 4.

    Examples
    --------
    .01 x 4/1 = .04; .02 x 4/2 = .04; .03 x 4/3 = .04; .5 x 4/4 = .5.

    >>> benjamini_hochberg([0.01, 0.5, 0.03, 0.02]).round(4).tolist()
    [0.04, 0.5, 0.04, 0.04]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("p values must lie between 0 and 1")
    out = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    n = len(order)
    steps = p[order] * n / np.arange(1, n + 1)
    out[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return out
