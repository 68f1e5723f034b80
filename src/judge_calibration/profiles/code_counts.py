"""How often each judge gave each pair of directions on each attribute: enough for all rates of one judge.

Coverage, detection, order consistency, position preference and resolution rates are sums of these counts, and
the counts of disjoint sets of items add up.
"""

from __future__ import annotations

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
