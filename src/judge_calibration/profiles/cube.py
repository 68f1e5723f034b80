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
FILE, ROW = "_file", "_row"
"""Columns that say where a read was found; they are named in problems."""
_MOST = 20


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
    reads: pd.DataFrame,
    attributes: Sequence[str],
    pairs: Sequence[str] | None = None,
    problems: Sequence[Problem] = (),
) -> ReadCube:
    """Arrange a long table of reads as a cube.

    Parameters
    ----------
    reads : pandas.DataFrame
        The canonical table ``reads``; every judge must have every (item, attribute) in both orders. The
        columns FILE and ROW, where they are, say where a read was found.
    attributes : sequence of str
        The inventory's names; they fix the order of the last axis. Attributes without a read are left out.
    pairs : sequence of str, optional
        The known pair ids; reads of other items are refused.
    problems : sequence of Problem
        What was found wrong with the reads before: told with everything that is found here.

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
    found = list(problems)
    known = reads["attribute"].isin(attributes) & reads["order"].isin(_ORDERS)
    known &= reads["judge_id"].notna() & reads["pair_id"].notna()
    if pairs is not None:
        known &= reads["pair_id"].isin(pairs)
    if FILE not in reads.columns:
        found += _unknown(reads, attributes, pairs)
    found += _repeated(reads)
    judges = tuple(dict.fromkeys(reads["judge_id"].dropna()))
    items = tuple(dict.fromkeys(reads["pair_id"].dropna()))
    present = set(reads["attribute"])
    names = tuple(name for name in attributes if name in present)
    shape = (len(judges), len(items), len(names))
    missing = np.int8(2)
    cubes = {}
    for order in _ORDERS:
        part = reads[known & (reads["order"] == order)]
        cube = np.full(shape, missing, dtype=np.int8)
        direction = part["direction"].where(part["outcome"] == "valid").map(_DIRECTIONS).fillna(0)
        cube[
            pd.Categorical(part["judge_id"], judges).codes,
            pd.Categorical(part["pair_id"], items).codes,
            pd.Categorical(part["attribute"], names).codes,
        ] = direction.to_numpy(dtype=np.int8)
        cubes[order] = cube
    # Where names are unknown, what is absent is their consequence.
    absent = sum(int((cube == missing).sum()) for cube in cubes.values()) if known.all() else 0
    if absent:
        found += _absent(cubes, missing, judges, items, names)
    if found:
        told = f"; {absent:,} of {2 * int(np.prod(shape)):,} reads are absent" if absent else ""
        raise ReadsError(
            f"The reads do not make a complete panel: {problem_count(found)}{told}.",
            found,
            "correct the reads; one that failed is a row with its outcome, not an absent row",
        )
    return ReadCube.of_directions(judges, items, names, cubes["AB"], cubes["BA"])


def problem_count(problems: Sequence[Problem]) -> str:
    """Return how many problems there are, in words."""
    return "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"


def _unknown(reads: pd.DataFrame, attributes: Sequence[str], pairs: Sequence[str] | None) -> list[Problem]:
    problems = []
    for name in sorted(set(reads["attribute"]) - set(attributes))[:_MOST]:
        problems.append(Problem("reads, column attribute", repr(name), "an attribute of the inventory"))
    if pairs is not None:
        for item in sorted(set(reads["pair_id"]) - set(pairs))[:_MOST]:
            problems.append(Problem("reads, column pair_id", repr(item), "an item of the table pairs"))
    for order in sorted(set(reads["order"].astype(str)) - set(_ORDERS))[:_MOST]:
        n = int((reads["order"].astype(str) == order).sum())
        problems.append(
            Problem("reads, column order", f"{order!r} in {n:,} rows", "AB or BA: a cell has two orders")
        )
    return problems


def _repeated(reads: pd.DataFrame) -> list[Problem]:
    """Return the cells that have several values for one order, with their rows where those are known."""
    keys = ["judge_id", "pair_id", "attribute", "order"]
    repeated = reads[reads.duplicated(keys, keep=False)].dropna(subset=keys)
    problems = []
    for (judge, item, name, order), rows in repeated.groupby(keys, sort=False):
        where = f"judge {judge}, item {item}, attribute {name}, order {order}"
        first = "reads"
        if FILE in rows.columns:
            places = rows.groupby(FILE, sort=False, observed=True)[ROW].agg(list)
            first = "; ".join(
                f"{file}, row{'s' if len(found) > 1 else ''} {', '.join(map(str, found[:5]))}"
                for file, found in places.items()
            )
        problems.append(Problem(f"{first}, {where}", f"{len(rows)} values", "one read an order"))
        if len(problems) == _MOST:
            break
    return problems


def _absent(
    cubes: dict[str, np.ndarray],
    missing: np.int8,
    judges: tuple[str, ...],
    items: tuple[str, ...],
    names: tuple[str, ...],
) -> list[Problem]:
    problems = []
    for order, cube in cubes.items():
        for j, i, k in np.argwhere(cube == missing)[:_MOST]:
            where = f"reads, judge {judges[j]}, item {items[i]}, attribute {names[k]}"
            problems.append(Problem(where, f"no read in order {order}", "a read in both orders"))
    return problems
