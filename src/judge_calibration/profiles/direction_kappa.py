"""Cohen's kappa of two judges' directions: on jointly resolved cells, and with abstention as a category."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np


class DirectionKappa(NamedTuple):
    """kappa in [-1, 1], raw agreement in [0, 1] and cells; NaN with ``one_category`` or ``no_cells``."""

    kappa: float
    agreement: float
    cells: int
    undefined: str | None


def direction_kappa(
    first: np.ndarray, second: np.ndarray, marginals: Literal["joint", "own"] = "joint"
) -> DirectionKappa:
    """Kappa over the cells that both judges resolve.

    Parameters
    ----------
    first, second : numpy.ndarray of int8
        Directions of two judges on the same cells, in {-1, 0, +1}.
    marginals : {"joint", "own"}
        Chance agreement from the jointly resolved cells (default) or from each judge's own resolved cells.

    Examples
    --------
    >>> direction_kappa(np.array([1, 1, -1, -1, 0]), np.array([1, -1, -1, -1, 1])).kappa
    0.5
    """
    both = (first != 0) & (second != 0)
    n = int(both.sum())
    nan = float("nan")
    if not n:
        return DirectionKappa(nan, nan, 0, "no_cells")
    agreement = float((first[both] == second[both]).mean())
    if marginals == "joint":
        up = float((first[both] == 1).mean()), float((second[both] == 1).mean())
    else:
        up = float((first[first != 0] == 1).mean()), float((second[second != 0] == 1).mean())
    chance = up[0] * up[1] + (1 - up[0]) * (1 - up[1])
    if chance == 1:
        return DirectionKappa(nan, agreement, n, "one_category")
    return DirectionKappa((agreement - chance) / (1 - chance), agreement, n, None)


def three_category_kappa(table: np.ndarray) -> DirectionKappa:
    """Kappa of a 3 x 3 table of counts over {-1, 0, +1}: abstention counts as a category.

    Examples
    --------
    >>> round(three_category_kappa(np.array([[10, 2, 1], [3, 8, 1], [2, 1, 12]])).kappa, 4)
    0.6237
    """
    n = int(table.sum())
    nan = float("nan")
    if not n:
        return DirectionKappa(nan, nan, 0, "no_cells")
    agreement = float(np.trace(table) / n)
    chance = float((table.sum(axis=0) * table.sum(axis=1)).sum() / n**2)
    if chance == 1:
        return DirectionKappa(nan, agreement, n, "one_category")
    return DirectionKappa((agreement - chance) / (1 - chance), agreement, n, None)


def three_category_tables(
    joint: np.ndarray, agree: np.ndarray, up_1: np.ndarray, up_2: np.ndarray, own: np.ndarray, cells: int
) -> np.ndarray:
    """Return the 3 x 3 table of every judge pair, over all cells, from sums of per-item tables.

    Parameters
    ----------
    joint, agree, up_1, up_2 : numpy.ndarray, shape (n_judge_pairs,)
        Jointly resolved cells; agreements; joint cells that each judge gives to A.
    own : numpy.ndarray, shape (n_judge_pairs, 2, 2)
        Each judge's own cells for B and for A: ``own[pair, judge, 0 or 1]``.
    cells : int
        All cells.

    Returns
    -------
    numpy.ndarray of int64, shape (n_judge_pairs, 3, 3)
        Rows and columns in the order -1, 0, +1.

    Examples
    --------
    Directions (1, 1, 0, -1) and (1, -1, 1, 0): joint 2, agree 1.

    >>> own = np.array([[[1, 2], [1, 2]]])
    >>> three_category_tables(np.array([2]), np.array([1]), np.array([2]), np.array([1]), own, 4)[0].tolist()
    [[0, 1, 0], [0, 0, 1], [1, 0, 1]]
    """
    # agree = pp + mm, joint - agree = pm + mp, up_1 = pp + pm, up_2 = pp + mp
    up_down = (up_1 - up_2 + joint - agree) // 2
    down_up = joint - agree - up_down
    both_up = up_1 - up_down
    both_down = agree - both_up
    table = np.empty((len(joint), 3, 3), dtype=np.int64)
    table[:, 2, 2], table[:, 0, 0], table[:, 2, 0], table[:, 0, 2] = both_up, both_down, up_down, down_up
    table[:, 2, 1] = own[:, 0, 1] - both_up - up_down
    table[:, 0, 1] = own[:, 0, 0] - both_down - down_up
    table[:, 1, 2] = own[:, 1, 1] - both_up - down_up
    table[:, 1, 0] = own[:, 1, 0] - both_down - up_down
    table[:, 1, 1] = 0
    table[:, 1, 1] = cells - table.sum(axis=(1, 2))
    return table
