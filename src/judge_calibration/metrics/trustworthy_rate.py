"""The trustworthy verdict rate: reproducible, the same in both orders, and right."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats


def product_rate(
    consistency: npt.ArrayLike,
    accuracy: npt.ArrayLike,
    flip_rate: npt.ArrayLike,
    flipped: npt.ArrayLike = 0.5,
) -> Floats:
    """T_product = C (A - phi q), from the three rates alone.

    Parameters
    ----------
    consistency, accuracy, flip_rate, flipped : array-like
        C, A, phi and q, shares from 0 to 1. q is 1/2 under forced choice with both orders; with ties,
        abstentions or failures it has to be estimated.

    Returns
    -------
    numpy.ndarray of float64
        A share from 0 to 1; equal to C (1 - phi) A_dec.

    Notes
    -----
    Assumes that order agreement does not depend on being reproducible, and that being right, given order
    agreement, does not either. :func:`counted_rates` gives the joint rates without these assumptions; the
    product can be above or below them.

    References
    ----------
    Definitions, section 2, after "All Verdicts are Not Equal" (arXiv 2610.12083), section 3.5.

    Examples
    --------
    >>> float(product_rate(0.955, 0.874, 0.051).round(4))
    0.8103
    """
    phi = np.asarray(flip_rate, dtype=np.float64)
    lost = np.where(phi == 0, 0.0, phi * np.asarray(flipped, dtype=np.float64))
    return np.asarray(consistency, dtype=np.float64) * (np.asarray(accuracy, dtype=np.float64) - lost)


def printed_rate(consistency: str, flip_rate: str, accuracy: str, digits: int = 1) -> Decimal:
    """T of printed percentages, ``C (A - phi / 2) / 100``, rounded half up in decimal arithmetic.

    Parameters
    ----------
    consistency, flip_rate, accuracy : str
        C, phi and A in percent, as printed.
    digits : int
        Digits after the point.

    Returns
    -------
    decimal.Decimal
        T in percent.

    Notes
    -----
    Binary floating point would round some exact halves down; a table that was made in decimal arithmetic is
    reproduced only in decimal arithmetic.

    Examples
    --------
    >>> printed_rate("98.0", "14.3", "62.8")
    Decimal('54.5')
    """
    exact = Decimal(consistency) * (Decimal(accuracy) - Decimal(flip_rate) / 2) / 100
    return exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)


class CountedRates(NamedTuple):
    """Joint rates counted pair by pair.

    Attributes
    ----------
    direct : float
        T_direct, share of (pair, order) that are reproducible, order-invariant and right.
    pair : float
        T_pair, share of pairs with both orders reproducible, equal and right.
    """

    direct: float
    pair: float


def counted_rates(
    reproducible: npt.ArrayLike, invariant: npt.ArrayLike, right: npt.ArrayLike
) -> CountedRates:
    """T_direct and T_pair from the indicators N, P and R.

    Parameters
    ----------
    reproducible : array-like of bool, shape (n_pairs, 2)
        N of each order.
    invariant : array-like of bool, shape (n_pairs,)
        P.
    right : array-like of bool, shape (n_pairs, 2)
        R of each order.

    Returns
    -------
    CountedRates
        Shares from 0 to 1; NaN without a pair.

    References
    ----------
    Definitions, section 2.

    Examples
    --------
    Pair 1 is right and reproducible in both orders, pair 2 is reproducible in one order only: N P R is 1 in
    3 of 4 (pair, order), and in both orders of 1 pair of 2.

    >>> counted_rates([[1, 1], [1, 0]], [1, 1], [[1, 1], [1, 1]])
    CountedRates(direct=0.75, pair=0.5)
    """
    joint = np.asarray(reproducible, bool) & np.asarray(right, bool) & np.asarray(invariant, bool)[:, None]
    if not len(joint):
        return CountedRates(float("nan"), float("nan"))
    return CountedRates(float(joint.mean()), float(joint.all(axis=1).mean()))
