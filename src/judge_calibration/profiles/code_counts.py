"""How often each judge gave each pair of directions on each attribute: enough for all rates of one judge.

Coverage, detection, order consistency, position preference and resolution rates are sums of these counts, and
the counts of disjoint sets of items add up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from judge_calibration.profiles.storage import CODES, STABLE_A, STABLE_B, unpack

_FIRST, _SECOND = unpack(np.arange(CODES, dtype=np.int8))


def code_counts(codes: np.ndarray, chunk: int = 4_000) -> np.ndarray:
    """Count the nine codes.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Packed reads.
    chunk : int
        Items a chunk: bounds the memory.

    Returns
    -------
    numpy.ndarray of int64, shape (n_judges, n_attributes, 9)

    Examples
    --------
    >>> code_counts(np.array([[[8], [8], [0]]], dtype=np.int8))[0, 0].tolist()
    [1, 0, 0, 0, 0, 0, 0, 0, 2]
    """
    n_judges, n_items, n_attributes = codes.shape
    counts = np.zeros((n_judges, n_attributes, CODES), dtype=np.int64)
    offset = (np.arange(n_attributes) * CODES).astype(np.int32)
    for j in range(n_judges):
        for start in range(0, n_items, chunk):
            cells = (codes[j, start : start + chunk] + offset).ravel()
            counts[j] += np.bincount(cells, minlength=n_attributes * CODES).reshape(n_attributes, CODES)
    return counts


def cells(counts: np.ndarray) -> np.ndarray:
    """Return how many cells there are."""
    return np.asarray(counts.sum(axis=-1))


def resolved_reads(counts: np.ndarray) -> np.ndarray:
    """Return how many single reads resolve: summed over the last axis."""
    return (counts * (np.abs(_FIRST) + np.abs(_SECOND))).sum(axis=-1)


def stable_cells(counts: np.ndarray) -> np.ndarray:
    """Return how many cells have a stable direction."""
    return np.asarray(counts[..., STABLE_A] + counts[..., STABLE_B])


def both_resolved(counts: np.ndarray) -> np.ndarray:
    """Return how many cells resolve in both orders, whichever way."""
    return (counts * ((_FIRST != 0) & (_SECOND != 0))).sum(axis=-1)


def first_shown_chosen(counts: np.ndarray) -> np.ndarray:
    """Return how many reads name the answer that was shown first (A in order AB, B in order BA)."""
    return (counts * ((_FIRST == 1).astype(int) + (_SECOND == -1).astype(int))).sum(axis=-1)


def ratio_error(
    counts: np.ndarray, top: Callable[[np.ndarray], np.ndarray], bottom: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return the standard error of a ratio of sums over cells.

    The cells of one group (an attribute of a judge, say) are draws of one distribution, those of different
    groups of different ones; both orders of a cell belong together. By linearisation.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (..., n_groups, 9)
    top, bottom : callable
        The functions of this module whose sums over groups are divided, e.g. :func:`first_shown_chosen` by
        :func:`resolved_reads`.

    Returns
    -------
    numpy.ndarray of float, shape (...)
        NaN where the lower sum is 0.

    Examples
    --------
    Of 100 cells 50 are stable: the root of .25 / 100.

    >>> counts = np.array([[50, 50, 0, 0, 0, 0, 0, 0, 0]])
    >>> float(ratio_error(counts, stable_cells, cells))
    0.05
    """
    each = np.eye(CODES, dtype=np.int64)
    below = bottom(counts).sum(axis=-1).astype(float)
    known = below > 0
    rate = np.divide(top(counts).sum(axis=-1), below, out=np.full(below.shape, np.nan), where=known)
    value = top(each) - rate[..., None, None] * bottom(each)
    n = np.maximum(1, counts.sum(axis=-1))
    squares = (counts * value**2).sum(axis=-1) - (counts * value).sum(axis=-1) ** 2 / n
    spread = np.sqrt(np.maximum(0.0, squares).sum(axis=-1))
    return np.divide(spread, below, out=np.full(below.shape, np.nan), where=known)
