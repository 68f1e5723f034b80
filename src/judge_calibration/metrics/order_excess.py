"""Order excess: how much more two reads differ when their order differs (position bias without noise)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.consistency import pair_agreement
from judge_calibration.metrics.judgments import FAILED
from judge_calibration.metrics.rates import Floats, ratio


def order_excess(first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Return Pr(reads of different order differ) - Pr(reads of the same order differ), pair by pair.

    Parameters
    ----------
    first, second : array-like of shape (n_pairs, 5)
        How often the repetitions in order AB, and those in order BA, said A, B, TIE, ABSTAIN (by candidate),
        and how often they failed. A failed read differs from every other read.

    Returns
    -------
    numpy.ndarray of float64, shape (n_pairs,)
        From -1 to 1; its expectation is 0 for a judge that is noisy but fair between orders. NaN for a pair
        with fewer than two repetitions in either order (``one_repetition``).

    References
    ----------
    Definitions, section 2.

    Examples
    --------
    AB reads A, A, B and BA reads B, B, B: of 9 read pairs across orders 6 differ (.6667); within, 2/3 of the
    AB pairs and none of the BA pairs differ (mean .3333); the excess is .3333.

    >>> order_excess([[2, 1, 0, 0, 0]], [[0, 3, 0, 0, 0]]).round(4)
    array([0.3333])
    """
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    between = 1 - ratio((one[:, :FAILED] * two[:, :FAILED]).sum(axis=1), one.sum(axis=1) * two.sum(axis=1))
    within = 1 - (pair_agreement(one) + pair_agreement(two)) / 2
    return between - within
