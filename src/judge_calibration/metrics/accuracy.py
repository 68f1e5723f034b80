"""Accuracy, its parts by order agreement, and the ceiling that order flips put on it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio


def overall_accuracy(flip_rate: npt.ArrayLike, decisive: npt.ArrayLike, flipped: npt.ArrayLike) -> Floats:
    """A from its parts: ``A = (1 - phi) A_dec + phi q``.

    Parameters
    ----------
    flip_rate : array-like
        phi, share of pairs whose reduced verdicts differ between orders, 0 to 1.
    decisive : array-like
        A_dec, accuracy where both orders agree, 0 to 1; of no weight at phi = 1.
    flipped : array-like
        q, accuracy where they differ, 0 to 1; of no weight at phi = 0. Exactly 1/2 under forced choice with
        both orders weighted equally.

    Returns
    -------
    numpy.ndarray of float64
        A share from 0 to 1.

    References
    ----------
    Definitions, section 2.

    Examples
    --------
    >>> float(overall_accuracy(0.051, 0.894099, 0.5).round(4))
    0.874
    """
    phi = np.asarray(flip_rate, dtype=np.float64)
    first = np.where(phi == 1, 0.0, (1 - phi) * np.asarray(decisive, dtype=np.float64))
    second = np.where(phi == 0, 0.0, phi * np.asarray(flipped, dtype=np.float64))
    return first + second


def decisive_accuracy(
    accuracy: npt.ArrayLike, flip_rate: npt.ArrayLike, flipped: npt.ArrayLike = 0.5
) -> Floats:
    """A_dec from A: accuracy on the pairs whose orders agree.

    Parameters
    ----------
    accuracy, flip_rate, flipped : array-like
        A, phi and q, shares from 0 to 1.

    Returns
    -------
    numpy.ndarray of float64
        A share from 0 to 1; NaN at phi = 1 (``all_pairs_flip``).

    Examples
    --------
    >>> float(decisive_accuracy(0.874, 0.051).round(4))
    0.8941
    """
    phi = np.asarray(flip_rate, dtype=np.float64)
    right = np.asarray(accuracy, dtype=np.float64) - phi * np.asarray(flipped, dtype=np.float64)
    return ratio(right, 1 - phi)


def accuracy_ceiling(flip_rate: npt.ArrayLike, flipped: npt.ArrayLike = 0.5) -> Floats:
    """A_max: the accuracy of a judge that is right wherever its orders agree, ``1 - phi (1 - q)``.

    Parameters
    ----------
    flip_rate, flipped : array-like
        phi and q, shares from 0 to 1.

    Returns
    -------
    numpy.ndarray of float64
        A share from 0 to 1, never below A.

    References
    ----------
    Definitions, section 2.

    Examples
    --------
    >>> float(accuracy_ceiling(0.051).round(4))
    0.9745
    """
    phi = np.asarray(flip_rate, dtype=np.float64)
    return 1 - np.where(phi == 0, 0.0, phi * (1 - np.asarray(flipped, dtype=np.float64)))


def capability_gap(accuracy: npt.ArrayLike, flip_rate: npt.ArrayLike, flipped: npt.ArrayLike = 0.5) -> Floats:
    """Return A_max - A: the error that no mending of position bias would remove, 0 to 1.

    Examples
    --------
    >>> float(capability_gap(0.874, 0.051).round(4))
    0.1005
    """
    return accuracy_ceiling(flip_rate, flipped) - np.asarray(accuracy, dtype=np.float64)
