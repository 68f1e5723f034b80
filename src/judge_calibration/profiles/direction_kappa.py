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


def direction_table(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Count two judges' directions: shape (3, 3), rows and columns in the order -1, 0, +1."""
    codes = 3 * (first.astype(np.int64).ravel() + 1) + (second.astype(np.int64).ravel() + 1)
    return np.bincount(codes, minlength=9).reshape(3, 3)
