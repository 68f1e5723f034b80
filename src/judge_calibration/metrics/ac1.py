"""Gwet's AC1: chance-adjusted agreement that does not collapse when one category prevails."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.kappa import observed_agreement
from judge_calibration.metrics.rates import Floats, ratio


def gwet_ac1(confusion: npt.ArrayLike) -> Floats:
    """Return Gwet's AC1 of two raters from one or many confusion matrices.

    Parameters
    ----------
    confusion : array-like of shape (..., k, k)
        Counts. k is the number of categories that could have been used, whether or not they were: chance
        agreement falls as k grows.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
        From -1 / (k - 1) or above to 1; NaN without a count (``no_items``). Defined (1) where both raters
        used one category only.

    Notes
    -----
    AC1 = (po - pe) / (1 - pe) with pe = sum of m (1 - m) / (k - 1), m being the mean of both raters' shares
    of a category.

    References
    ----------
    Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, 29-48; definitions,
    section 5.

    Examples
    --------
    [[85, 5], [5, 5]]: po = .9; both shares of the first category are .9, so pe = 2 x .9 x .1 = .18 and
    AC1 = .72 / .82 = .8780, where kappa is .4444.

    >>> float(gwet_ac1([[85, 5], [5, 5]]).round(4))
    0.878
    """
    table = np.asarray(confusion, dtype=np.float64)
    k = table.shape[-1]
    if k < 2:
        raise ValueError("AC1 needs the table of at least two categories that could have been used")
    n = table.sum(axis=(-2, -1))
    mean = ratio((table.sum(axis=-1) + table.sum(axis=-2)) / 2, n[..., None])
    chance = (mean * (1 - mean)).sum(axis=-1) / (k - 1)
    return ratio(observed_agreement(table) - chance, 1 - chance)
