"""Attribute reads as an array: judges x items x attributes, both orders, mapped back to identity.

A direction is +1 (candidate A shows more), -1 (candidate B) or 0 (no resolved direction: "none", or a read
that failed; failures are counted apart by :func:`judge_calibration.profiles.coverage.coverage_table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judge_calibration.errors import Problem, ProblemsError
from judge_calibration.profiles.storage import pack, unpack, unpack_first, unpack_stable

_DIRECTIONS = {"A": 1, "B": -1, "NONE": 0}
_ORDERS = ("AB", "BA")


class ReadsError(ProblemsError):
    """A table of reads does not form a complete design: unknown attribute, order missing, cell repeated."""


@dataclass(frozen=True)
class ReadCube:
    """Reads of a panel.

    Attributes
    ----------
    judges, items, attributes : tuple of str
        The labels of the axes.
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Both directions of a cell, packed (:mod:`judge_calibration.profiles.storage`).

    Examples
    --------
    >>> cube = ReadCube(("j",), ("p",), ("x", "y"), np.array([[[8, 2]]], dtype=np.int8))
    >>> cube.first.tolist(), cube.second.tolist(), cube.stable.tolist()
    ([[[1, -1]]], [[[1, 1]]], [[[1, 0]]])
    """

    judges: tuple[str, ...]
    items: tuple[str, ...]
    attributes: tuple[str, ...]
    codes: np.ndarray

    @classmethod
    def of_directions(
        cls,
        judges: tuple[str, ...],
        items: tuple[str, ...],
        attributes: tuple[str, ...],
        first: np.ndarray,
        second: np.ndarray,
    ) -> ReadCube:
        """Return the cube of directions in {-1, 0, +1} from the orders AB and BA, mapped to identity."""
        return cls(judges, items, attributes, pack(first, second))

    @property
    def first(self) -> np.ndarray:
        """Directions of the order AB, mapped back to candidate identity."""
        return unpack_first(self.codes)

    @property
    def second(self) -> np.ndarray:
        """Directions of the order BA, mapped back to candidate identity."""
        return unpack(self.codes)[1]

    @property
    def stable(self) -> np.ndarray:
        """Stable directions: the common direction of both orders, else 0.

        Definitions, section 6: (1, 1) gives 1; (1, -1), (1, 0) and (0, 0) give 0. Never undefined.
        """
        return unpack_stable(self.codes)

    def of_judges(self, keep: Sequence[str]) -> ReadCube:
        """Return the cube of some of the judges, in their order here."""
        rows = [j for j, judge in enumerate(self.judges) if judge in set(keep)]
        return ReadCube(tuple(self.judges[j] for j in rows), self.items, self.attributes, self.codes[rows])

    def of_items(self, keep: np.ndarray) -> ReadCube:
        """Return the cube of the items that a mask of shape (n_items,) keeps."""
        items = tuple(item for item, kept in zip(self.items, keep, strict=True) if kept)
        return ReadCube(self.judges, items, self.attributes, self.codes[:, keep])


def cube_from_reads(
    reads: pd.DataFrame, attributes: Sequence[str], pairs: Sequence[str] | None = None
) -> ReadCube:
    """Arrange a long table of reads as a cube.

    Parameters
    ----------
    reads : pandas.DataFrame
        The canonical table ``reads``; every judge must have every (item, attribute) in both orders.
    attributes : sequence of str
        The inventory's names; they fix the order of the last axis. Attributes without a read are left out.
    pairs : sequence of str, optional
        The known pair ids; reads of other items are refused.

    Raises
    ------
    ReadsError
        Unknown attributes, items or orders, a cell without one of its orders, a cell with several values for
        one order.

    Examples
    --------
    >>> reads = pd.DataFrame({"pair_id": ["p", "p"], "judge_id": ["j", "j"], "attribute": ["depth", "depth"],
    ...     "order": ["AB", "BA"], "direction": ["A", "A"], "outcome": ["valid", "valid"]})
    >>> int(cube_from_reads(reads, ["depth"]).stable[0, 0, 0])
    1
    """
    problems: list[Problem] = []
    for name in sorted(set(reads["attribute"]) - set(attributes)):
        problems.append(Problem("reads, column attribute", repr(name), "an attribute of the inventory"))
    if pairs is not None:
        for item in sorted(set(reads["pair_id"]) - set(pairs))[:20]:
            problems.append(Problem("reads, column pair_id", repr(item), "an item of the table pairs"))
    for order in sorted(set(reads["order"].astype(str)) - set(_ORDERS)):
        n = int((reads["order"].astype(str) == order).sum())
        problems.append(
            Problem("reads, column order", f"{order!r} in {n:,} rows", "AB or BA: a cell has two orders")
        )
    cell = ["judge_id", "pair_id", "attribute"]
    repeated = reads[reads.duplicated([*cell, "order"], keep=False)]
    for key, n in list(repeated.groupby([*cell, "order"], sort=False).size().items())[:20]:
        judge, item, name, order = map(str, key)  # type: ignore[call-overload]
        where = f"reads, judge {judge}, item {item}, attribute {name}, order {order}"
        problems.append(Problem(where, f"{n} values", "one read an order"))
    if problems:
        raise ReadsError(f"The table reads has {len(problems)} problems.", problems, "correct the reads")

    judges = tuple(dict.fromkeys(reads["judge_id"]))
    items = tuple(dict.fromkeys(reads["pair_id"]))
    present = set(reads["attribute"])
    names = tuple(name for name in attributes if name in present)
    shape = (len(judges), len(items), len(names))
    missing = np.int8(2)
    cubes = {}
    for order in _ORDERS:
        part = reads[reads["order"] == order]
        cube = np.full(shape, missing, dtype=np.int8)
        direction = part["direction"].where(part["outcome"] == "valid").map(_DIRECTIONS).fillna(0)
        cube[
            pd.Categorical(part["judge_id"], judges).codes,
            pd.Categorical(part["pair_id"], items).codes,
            pd.Categorical(part["attribute"], names).codes,
        ] = direction.to_numpy(dtype=np.int8)
        cubes[order] = cube
    for order, cube in cubes.items():
        for j, i, k in np.argwhere(cube == missing)[:20]:
            where = f"reads, judge {judges[j]}, item {items[i]}, attribute {names[k]}"
            problems.append(Problem(where, f"no read in order {order}", "a read in both orders"))
    if problems:
        total = sum(int((cube == missing).sum()) for cube in cubes.values())
        raise ReadsError(
            f"The table reads is incomplete: {total} of {2 * int(np.prod(shape))} reads are absent.",
            problems,
            "read the missing cells; a read that failed is a row with its outcome, not an absent row",
        )
    return ReadCube.of_directions(judges, items, names, cubes["AB"], cubes["BA"])
