"""Krippendorff's alpha for nominal labels, with missing ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio


def coincidences(counts: npt.ArrayLike) -> Floats:
    """Return each item's contribution to the coincidence matrix.

    Parameters
    ----------
    counts : array-like of shape (n_items, k)
        How many raters gave the item each label.

    Returns
    -------
    numpy.ndarray of float64, shape (n_items, k, k)
        Ordered pairs of labels over (number of raters - 1); zeros for items with fewer than two labels.

    Examples
    --------
    >>> coincidences([[2, 1]]).tolist()
    [[[1.0, 1.0], [1.0, 0.0]]]
    """
    table = np.asarray(counts, dtype=np.float64)
    raters = table.sum(axis=1)
    pairs = table[:, :, None] * table[:, None, :]
    diagonal = np.arange(table.shape[1])
    pairs[:, diagonal, diagonal] -= table
    return pairs / np.maximum(raters - 1, 1)[:, None, None] * (raters >= 2)[:, None, None]


def alpha_of(coincidence: npt.ArrayLike) -> Floats:
    """Return alpha of one or many coincidence matrices, for resamples.

    Parameters
    ----------
    coincidence : array-like of shape (..., k, k)
        Sums of :func:`coincidences`.

    Returns
    -------
    numpy.ndarray of float64, shape (...)
        At most 1; NaN where only one category was used or nothing can be paired.
    """
    table = np.asarray(coincidence, dtype=np.float64)
    margin = table.sum(axis=-1)
    n = margin.sum(axis=-1)
    differing = n - np.trace(table, axis1=-2, axis2=-1)
    expected = n * n - (margin * margin).sum(axis=-1)
    return 1 - ratio((n - 1) * differing, np.where(np.abs(expected) < 1e-9, 0.0, expected))


def krippendorff_alpha(counts: npt.ArrayLike) -> float:
    """Return Krippendorff's nominal alpha over items labelled by any number of raters.

    Parameters
    ----------
    counts : array-like of shape (n_items, k)
        How many raters gave the item each label. Items with fewer than two labels do not count.

    Returns
    -------
    float
        At most 1; NaN where only one category was used (``one_category``) or nothing can be paired
        (``no_items``).

    Notes
    -----
    The value is the package `krippendorff`'s, from label counts (its cost does not grow with the square of
    the ratings). Where that package raises an error, on a single category, alpha is undefined here.

    References
    ----------
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability"; definitions, section 5.

    Examples
    --------
    Two raters on four items: AA, AA, BB, AB. Coincidences: AA 4, BB 2, AB 1, BA 1; n = 8, margins 5 and 3;
    alpha = 1 - 7 x 2 / (64 - 34) = .5333.

    >>> round(krippendorff_alpha([[2, 0], [2, 0], [0, 2], [1, 1]]), 4)
    0.5333
    """
    import krippendorff

    table = np.asarray(counts, dtype=np.int64)
    table = table[table.sum(axis=1) >= 2]
    if not len(table) or (table.sum(axis=0) > 0).sum() < 2:
        return float("nan")
    return float(krippendorff.alpha(value_counts=table, level_of_measurement="nominal"))
