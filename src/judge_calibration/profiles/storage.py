"""Reads in the compact form: one table a judge, one row an item, one small integer an attribute.

The integer is 3 (r1 + 1) + (r2 + 1), from 0 to 8, for the directions r1 (order AB) and r2 (order BA). 182.7
million reads are 91 million such integers: about 35 MB in Parquet, and 91 MB in memory.
"""

from __future__ import annotations

import numpy as np

CODES = 9
STABLE_A, STABLE_B = 8, 0


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
    return unpack_first(codes), (codes % 3 - 1).astype(np.int8)


def unpack_first(codes: np.ndarray) -> np.ndarray:
    """Return the directions of the order AB alone: what a single read says."""
    return (codes // 3 - 1).astype(np.int8)


def unpack_stable(codes: np.ndarray) -> np.ndarray:
    """Return stable directions: +1 for code 8, -1 for code 0, else 0."""
    return ((codes == STABLE_A).astype(np.int8) - (codes == STABLE_B).astype(np.int8)).astype(np.int8)
