"""Sums of the per-item tables by judge pair, stratum and group of items. They add up over disjoint items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge_calibration.profiles.item_tables import (
    CHUNK,
    ItemTables,
    Read,
    directions_up_down,
    item_tables,
    judge_pairs,
)

VERDICT_STRATA = ("all", "same", "opposite")
REFERENCE_STRATA = ("both_right", "both_wrong", "one_right")
_FIELDS = ("items", "matched", "joint", "agree", "up_1", "up_2", "rate_sum")
_OWN = ("own_1", "own_2", "own_up_1", "own_up_2")


@dataclass(frozen=True)
class PairCounts:
    """Sums over items.

    Attributes
    ----------
    strata : tuple of str
        ``all`` items; both verdicts resolved and the ``same`` or ``opposite``; with a reference also
        ``both_right``, ``both_wrong``, ``one_right`` (definite verdicts on items whose reference is A or B).
    sums : dict of str to numpy.ndarray, each of shape (n_strata, n_judge_pairs, n_groups)
        items; matched (items with a jointly resolved attribute); joint and agree (cells); up_1 and up_2
        (joint cells that the first and second judge give to A); rate_sum (sum over matched items of
        agree / joint); where asked for own_1, own_2, own_up_1, own_up_2 (each judge's resolved cells in the
        stratum's items, and those of them for A).
    """

    strata: tuple[str, ...]
    sums: dict[str, np.ndarray]

    def __add__(self, other: PairCounts) -> PairCounts:
        """Add the counts of other items."""
        return PairCounts(self.strata, {name: self.sums[name] + other.sums[name] for name in self.sums})


def stratum_masks(verdicts: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray | None]:
    """Return which items of a chunk belong to each stratum of each judge pair; None for all.

    Parameters
    ----------
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 unresolved.
    reference : numpy.ndarray of int8, shape (n_items,), optional
        +1, -1, or 0 (a tie, or none).
    """
    first, second = judge_pairs(len(verdicts))
    product = verdicts[first] * verdicts[second]
    masks: dict[str, np.ndarray | None] = {"all": None, "same": product == 1, "opposite": product == -1}
    if reference is not None:
        right = verdicts[first] * reference
        masks["both_right"] = (product == 1) & (right == 1)
        masks["both_wrong"] = (product == 1) & (right == -1)
        masks["one_right"] = (product == -1) & (reference != 0)
    return masks


def count_pairs(
    codes: np.ndarray,
    verdicts: np.ndarray,
    groups: np.ndarray | None = None,
    reference: np.ndarray | None = None,
    read: Read = "stable",
    keep: np.ndarray | None = None,
    own: bool = False,
    chunk: int = CHUNK,
) -> PairCounts:
    """Sum the per-item tables.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Packed reads.
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
    groups : numpy.ndarray of bool, shape (n_groups, n_items), optional
        Which items each group holds; groups may overlap. One group of all items by default.
    reference : numpy.ndarray of int8, shape (n_items,), optional
        Adds the reference strata.
    read, keep
        As in :func:`judge_calibration.profiles.item_tables.item_tables`.
    own : bool
        Whether to sum each judge's own resolved cells (for kappa with own marginals).
    chunk : int
        Items a chunk. Results do not depend on it, but for the last digits of rate_sum.
    """
    from threadpoolctl import threadpool_limits

    n_items = codes.shape[1]
    member = np.ones((1, n_items), dtype=bool) if groups is None else groups
    total: PairCounts | None = None
    # Small products: threads only wait for one another here.
    with threadpool_limits(limits=1, user_api="blas"):
        for number, tables in enumerate(item_tables(codes, read, keep, chunk)):
            part = slice(number * chunk, number * chunk + tables.joint.shape[1])
            extra = _own_cells(codes[:, part], read, keep) if own else {}
            masks = stratum_masks(verdicts[:, part], None if reference is None else reference[part])
            counted = _summed(tables, extra, masks, member[:, part])
            total = counted if total is None else total + counted
    if total is None:
        strata = VERDICT_STRATA + (() if reference is None else REFERENCE_STRATA)
        shape = (len(strata), len(judge_pairs(len(codes))[0]), len(member))
        names = _FIELDS + (_OWN if own else ())
        total = PairCounts(strata, {name: np.zeros(shape) for name in names})
    return total


def _own_cells(codes: np.ndarray, read: Read, keep: np.ndarray | None) -> dict[str, np.ndarray]:
    up, down = directions_up_down(codes if keep is None else codes[..., keep], read)
    n_up = up.sum(axis=-1).astype(np.float32)
    resolved = n_up + down.sum(axis=-1)
    first, second = judge_pairs(len(codes))
    parts = (resolved[first], resolved[second], n_up[first], n_up[second])
    return dict(zip(_OWN, parts, strict=True))


def _summed(
    tables: ItemTables,
    extra: dict[str, np.ndarray],
    masks: dict[str, np.ndarray | None],
    member: np.ndarray,
) -> PairCounts:
    joint = tables.joint.astype(np.float32)
    agree = tables.agree.astype(np.float32)
    matched = joint > 0
    rate = np.divide(agree, joint, out=np.zeros_like(joint), where=matched).astype(np.float64)
    fields: dict[str, np.ndarray] = {
        "items": np.ones_like(joint),
        "matched": matched.astype(np.float32),
        "joint": joint,
        "agree": agree,
        "up_1": tables.up_1.astype(np.float32),
        "up_2": tables.up_2.astype(np.float32),
        "rate_sum": rate,
        **extra,
    }
    # float32 holds these counts exactly: a chunk has at most a few hundred thousand cells a judge pair.
    columns = {np.dtype(kind): member.T.astype(kind) for kind in (np.float32, np.float64)}
    shape = (len(masks), len(joint), len(member))
    sums = {name: np.zeros(shape) for name in fields}
    for place, mask in enumerate(masks.values()):
        for name, values in fields.items():
            inside = values if mask is None else values * mask
            sums[name][place] = inside @ columns[values.dtype]
    return PairCounts(tuple(masks), sums)
