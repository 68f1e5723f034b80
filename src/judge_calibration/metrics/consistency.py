"""Consistency: whether a judge repeats itself when the same prompt is asked again (C and C2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.judgments import FAILED
from judge_calibration.metrics.rates import Floats, ratio


def all_agree(counts: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """N: whether all repetitions of one (pair, order) gave the same verdict.

    Parameters
    ----------
    counts : array-like of shape (n_units, 5)
        How often the repetitions said A, B, TIE, ABSTAIN, and how often they failed.

    Returns
    -------
    numpy.ndarray of bool, shape (n_units,)
        False where a repetition failed. Without meaning (True) for a single repetition: the caller leaves
        such units out, and C is undefined (``one_repetition``) where no other is left.

    References
    ----------
    Definitions, section 2: C = Pr(N = 1) over (pair, order), a share from 0 to 1. It falls as repetitions
    are added, so it is published with their number.

    Examples
    --------
    >>> all_agree([[3, 0, 0, 0, 0], [2, 1, 0, 0, 0], [0, 0, 0, 0, 3]])
    array([ True, False, False])
    """
    table = np.asarray(counts)
    return table[:, :FAILED].max(axis=1, initial=0) == table.sum(axis=1)


def pair_agreement(counts: npt.ArrayLike) -> Floats:
    """C2 of one (pair, order): the probability that two of its repetitions agree.

    Parameters
    ----------
    counts : array-like of shape (n_units, 5)
        How often the repetitions said A, B, TIE, ABSTAIN, and how often they failed. A failed repetition
        agrees with none.

    Returns
    -------
    numpy.ndarray of float64, shape (n_units,)
        Shares from 0 to 1; NaN with fewer than two repetitions.

    Notes
    -----
    A U-statistic over pairs of repetitions: its expectation does not depend on their number.

    References
    ----------
    Definitions, section 2.

    Examples
    --------
    A, A, B has one agreeing pair of three; A, A, A, B has three of six.

    >>> pair_agreement([[2, 1, 0, 0, 0], [3, 1, 0, 0, 0], [1, 0, 0, 0, 0]]).round(4)
    array([0.3333, 0.5   ,    nan])
    """
    table = np.asarray(counts, dtype=np.float64)
    valid = table[:, :FAILED]
    n = table.sum(axis=1)
    return ratio((valid * (valid - 1)).sum(axis=1), n * (n - 1))
