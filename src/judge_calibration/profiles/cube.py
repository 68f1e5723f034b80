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

_DIRECTIONS = {"A": 1, "B": -1, "NONE": 0}


class ReadsError(ProblemsError):
    """A table of reads does not form a complete design: unknown attribute, order missing, cell repeated."""


@dataclass(frozen=True)
class ReadCube:
    """Reads of a panel.

    Attributes
    ----------
    judges, items, attributes : tuple of str
        The labels of the axes.
    first, second : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Directions in {-1, 0, +1} from the orders AB and BA, mapped back to candidate identity.
    """

    judges: tuple[str, ...]
    items: tuple[str, ...]
    attributes: tuple[str, ...]
    first: np.ndarray
    second: np.ndarray

    @property
    def stable(self) -> np.ndarray:
        """Stable directions: the common direction of both orders, else 0.

        Definitions, section 6: (1, 1) gives 1; (1, -1), (1, 0) and (0, 0) give 0. Never undefined.
        """
        return np.where(self.first == self.second, self.first, np.int8(0))


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
        Unknown attributes or items, a cell without one of its orders, a cell read twice in one order.

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
    cell = ["judge_id", "pair_id", "attribute"]
    repeated = reads[reads.duplicated([*cell, "order"], keep=False)]
    for key in repeated[[*cell, "order"]].drop_duplicates().head(20).itertuples(index=False):
        problems.append(Problem(f"reads, {tuple(key)}", "several reads", "one read an order"))
    if problems:
        raise ReadsError(f"The table reads has {len(problems)} problems.", problems, "correct the reads")

    judges = tuple(dict.fromkeys(reads["judge_id"]))
    items = tuple(dict.fromkeys(reads["pair_id"]))
    present = set(reads["attribute"])
    names = tuple(name for name in attributes if name in present)
    shape = (len(judges), len(items), len(names))
    missing = np.int8(2)
    cubes = {}
    for order in ("AB", "BA"):
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
    return ReadCube(judges, items, names, cubes["AB"], cubes["BA"])
