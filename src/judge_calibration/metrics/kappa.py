"""Cohen's kappa from a confusion matrix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio


def observed_agreement(confusion: npt.ArrayLike) -> Floats:
    """Return the share on the diagonal of confusion matrices, 0 to 1; NaN without a count.

    Parameters
    ----------
    confusion : array-like of shape (..., k, k)
        Counts.

    Examples
    --------
    >>> float(observed_agreement([[20, 5], [10, 15]]))
    0.7
    """
    table = np.asarray(confusion, dtype=np.float64)
    return ratio(np.trace(table, axis1=-2, axis2=-1), table.sum(axis=(-2, -1)))


def cohen_kappa(confusion: npt.ArrayLike) -> Floats:
    """Return Cohen's kappa, (po - pe) / (1 - pe), of one or many confusion matrices.

    Parameters
    ----------
    confusion : array-like of shape (..., k, k)
        Counts: rows by the first rater, columns by the second.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
        From -1 to 1. NaN where both raters used one and the same category only (pe = 1, reason
        ``one_category``) and without a count (``no_items``).

    Notes
    -----
    scikit-learn's ``cohen_kappa_score`` agrees to rounding wherever kappa is defined; on one category it
    returns NaN with a warning, other tools 0 or 1. Here it is undefined, beside raw agreement and n.

    References
    ----------
    Cohen (1960), Educational and Psychological Measurement 20, 37-46; definitions, section 5.

    Examples
    --------
    po = .7, pe = .5 x .6 + .5 x .4 = .5.

    >>> float(cohen_kappa([[20, 5], [10, 15]]).round(4))
    0.4
    >>> float(cohen_kappa([[45, 5], [5, 45]]).round(4)), float(cohen_kappa([[85, 5], [5, 5]]).round(4))
    (0.8, 0.4444)
    >>> float(cohen_kappa([[10, 2, 1], [3, 8, 1], [2, 1, 12]]).round(4))
    0.6237
    """
    table = np.asarray(confusion, dtype=np.float64)
    n = table.sum(axis=(-2, -1))
    # In counts: (n sum of diagonal - sum of products) / (n^2 - sum of products); exact for integers.
    products = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    diagonal = np.trace(table, axis1=-2, axis2=-1)
    return ratio(n * diagonal - products, n * n - products)


def why_no_kappa(confusion: npt.ArrayLike) -> str:
    """Return the reason why kappa (or AC1, or alpha) is undefined; empty if it is defined.

    Examples
    --------
    >>> why_no_kappa([[7, 0], [0, 0]])
    'one_category'
    """
    table = np.asarray(confusion, dtype=np.float64)
    if not table.sum():
        return "no_items"
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    return "one_category" if (rows * columns).sum() == table.sum() ** 2 else ""
