"""Reads in the compact form: one row a judge and item, one small integer an attribute.

The integer is 3 (r1 + 1) + (r2 + 1), from 0 to 8, for the directions r1 (order AB) and r2 (order BA).
"""

from __future__ import annotations

import numpy as np


def pack(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the codes, int8 in 0 to 8, of two arrays of directions in {-1, 0, +1}.

    Examples
    --------
    >>> pack(np.array([1, -1], dtype=np.int8), np.array([1, 0], dtype=np.int8)).tolist()
    [8, 1]
    """
    return (3 * (first.astype(np.int8) + 1) + (second.astype(np.int8) + 1)).astype(np.int8)


def unpack(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the directions of both orders.

    Examples
    --------
    >>> [part.tolist() for part in unpack(np.array([8, 1], dtype=np.int8))]
    [[1, -1], [1, 0]]
    """
    return (codes // 3 - 1).astype(np.int8), (codes % 3 - 1).astype(np.int8)


def unpack_stable(codes: np.ndarray) -> np.ndarray:
    """Return stable directions: +1 for code 8, -1 for code 0, else 0."""
    return ((codes == 8).astype(np.int8) - (codes == 0).astype(np.int8)).astype(np.int8)
