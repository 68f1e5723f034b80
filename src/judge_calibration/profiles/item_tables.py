"""Per item and judge pair: how many attributes both judges resolved, and on how many they agree.

These tables are enough for any subset of items and for resampling. They are counted with bits: a judge's
directions on an item are two words (what points to A, what points to B), and a pair of judges is compared by
four `and` and population counts. Exact, and an order of magnitude below matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

CHUNK = 4_000
Read = Literal["stable", "single"]
"""What stands for a judge's direction.

``stable``
    The direction that both orders share.
``single``
    The direction of the order AB alone: the control without a retest.
"""


class ItemTables(NamedTuple):
    """Counts for a chunk of items, each of shape (n_judge_pairs, n_items); pairs as in :func:`judge_pairs`.

    joint, agree : numpy.ndarray of unsigned integers
        Attributes that both judges resolve, and those of them with the same direction.
    up_1, up_2 : numpy.ndarray of unsigned integers
        Of the joint ones, those that the first and the second judge give to A.
    """

    joint: np.ndarray
    agree: np.ndarray
    up_1: np.ndarray
    up_2: np.ndarray


def judge_pairs(n_judges: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and second judge of every unordered pair.

    Examples
    --------
    >>> [axis.tolist() for axis in judge_pairs(3)]
    [[0, 0, 1], [1, 2, 2]]
    """
    first, second = np.triu_indices(n_judges, k=1)
    return first, second


def directions_up_down(codes: np.ndarray, read: Read) -> tuple[np.ndarray, np.ndarray]:
    """Return where packed reads point to A, and where to B.

    Examples
    --------
    >>> [part.tolist() for part in directions_up_down(np.array([8, 6, 0]), "stable")]
    [[True, False, False], [False, False, True]]
    >>> [part.tolist() for part in directions_up_down(np.array([8, 6, 0]), "single")]
    [[True, True, False], [False, False, True]]
    """
    if read == "stable":
        return codes == 8, codes == 0
    return codes >= 6, codes <= 2


def item_tables(
    codes: np.ndarray, read: Read = "stable", keep: np.ndarray | None = None, chunk: int = CHUNK
) -> Iterator[ItemTables]:
    """Yield the counts of each chunk of items.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Packed reads.
    read : {"stable", "single"}
    keep : numpy.ndarray of bool, shape (n_attributes,), optional
        The attributes that count; all by default.
    chunk : int
        Items a chunk: bounds the memory.
    """
    first, second = judge_pairs(len(codes))
    for start in range(0, codes.shape[1], chunk):
        up, down = directions_up_down(codes[:, start : start + chunk], read)
        if keep is not None:
            up, down = up[..., keep], down[..., keep]
        yield _compared(_words(up), _words(down), first, second)


def _words(mask: np.ndarray) -> np.ndarray:
    """Pack the last axis into 64-bit words: shape (n_words, n_judges, n_items)."""
    packed = np.packbits(mask, axis=-1)
    n_words = max(1, -(-packed.shape[-1] // 8))
    padded = np.zeros((*packed.shape[:-1], 8 * n_words), dtype=np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return np.ascontiguousarray(np.moveaxis(padded.view(np.uint64), -1, 0))


def _compared(up: np.ndarray, down: np.ndarray, first: np.ndarray, second: np.ndarray) -> ItemTables:
    n_words, _, n_items = up.shape
    kind = np.uint8 if n_words < 4 else np.uint16
    both_up, both_down, up_down, down_up = (np.zeros((len(first), n_items), dtype=kind) for _ in range(4))
    for word in range(n_words):
        up_1, up_2, down_1, down_2 = up[word][first], up[word][second], down[word][first], down[word][second]
        both_up += np.bitwise_count(up_1 & up_2)
        both_down += np.bitwise_count(down_1 & down_2)
        up_down += np.bitwise_count(up_1 & down_2)
        down_up += np.bitwise_count(down_1 & up_2)
    agree = both_up + both_down
    return ItemTables(agree + up_down + down_up, agree, both_up + up_down, both_up + down_up)
