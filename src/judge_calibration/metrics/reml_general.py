"""REML for crossed designs with missing or unequal cells.

Missing or unreadable verdicts leave holes; nothing is imputed and no row is cut. The covariance matrix of
the cell means is block-diagonal over the facet with the most levels (the pairs) but for the terms that do
not contain it (judge, format, order, ...), which have few columns:

    V = blockdiag(V_1, ..., V_n) + Z D Z',   V_p = sum of terms with the pair + residual / cell size.

Pairs with the same cell sizes have the same V_p: it is factorised once for all of them, on the cells that
they have, and the rest is eliminated on the small border (Woodbury). One evaluation costs at most
pairs x cells^3, so 60,000 verdicts of 100 pairs take milliseconds. The components are found by
average-information scoring with the driver of :mod:`.reml_scoring`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judge_calibration.errors import RemlError, VarianceModelError
from judge_calibration.metrics.reml_balanced import (
    RESIDUAL,
    Term,
    check_model,
    fit_balanced,
    name_of,
    strata_of,
)
from judge_calibration.metrics.reml_scoring import Array, Evaluation, RemlFit, minimise

_KEPT_NUMBERS = 30_000_000
"""Blocks are kept between the two passes of an evaluation up to so many numbers (240 MB)."""


@dataclass(frozen=True)
class CellTable:
    """Cell sizes and means of a crossed design; the first facet makes the blocks.

    Attributes
    ----------
    facets : tuple of str
    counts : ndarray of shape (levels of facet 1, levels of facet 2, ...)
        Observations in each cell; 0 where there is none.
    means : ndarray of the same shape
        Any number where the count is 0.
    within_squares : float
        Sum of squared deviations from the cell means.
    """

    facets: tuple[str, ...]
    counts: NDArray[np.int64]
    means: Array
    within_squares: float


class _Pattern(NamedTuple):
    """The pairs that have the same observations in each cell, and their part of the design."""

    counts: Array  # (n_cells,), all above 0
    means: Array  # (n_cells, n_pairs)
    terms: tuple[Array, ...]  # for each block term, the 0/1 matrix (n_cells, levels)
    design: Array  # (n_cells, n_border + n_fixed)


class _Block(NamedTuple):
    """One pattern's V_p at a point: its inverse B, B times the design and the means, and log det V_p."""

    inverse: Array
    on_design: Array
    on_means: Array
    log_det: float


@dataclass(frozen=True)
class _Problem:
    """A cell table in the solver's shape.

    The border's columns belong to the terms without the block facet; ``order`` tells for each random term
    whether it is a block or a border term, and its number among those.
    """

    patterns: tuple[_Pattern, ...]
    border_term: NDArray[np.int64]  # for each border column, the number of its term
    n_fixed: int
    order: tuple[tuple[str, int], ...]
    observations: int
    cells: int
    log_counts: float
    within_squares: float

    @property
    def numbers(self) -> int:
        """How many numbers the blocks of all patterns hold."""
        return sum(
            p.counts.size * (p.counts.size + p.design.shape[1] + p.means.shape[1]) for p in self.patterns
        )


def fit_general(table: CellTable, random: Sequence[Term], fixed: Sequence[Term] = ()) -> RemlFit:
    """Return the REML estimates of a crossed design with any cell sizes.

    Parameters
    ----------
    table : CellTable
    random : sequence of Term
        The random terms; with each, its margins (random or fixed).
    fixed : sequence of Term
        Terms without the first facet, coded by sum-to-zero contrasts.

    Returns
    -------
    RemlFit

    Raises
    ------
    VarianceModelError
        If the model does not fit the design, or there is no residual degree of freedom.
    RemlError
        If the criterion could not be minimised.

    Examples
    --------
    Two observations in each of two pairs, then one is lost.

    >>> table = CellTable(("pair", "order"), np.array([[1, 1], [1, 1], [1, 0]]),
    ...                   np.array([[0.0, 0.5], [1.0, 1.5], [2.0, 0.0]]), 0.0)
    >>> sorted(fit_general(table, [("pair",)]).components)
    ['pair', 'residual']
    """
    check_model(table.facets, random, fixed)
    whole = _arrange(table, random, fixed)
    start = _start(table, random, fixed)
    scale = float(start.sum())
    if scale <= 0:
        raise VarianceModelError("All verdicts are equal: there is no variance to decompose.")
    # Components at zero cost as much as the others, so the model is first fitted without them; those whose
    # slope says that the criterion would fall if they grew are let in.
    active = [i for i in range(len(random)) if start[i] > 0]
    iterations = 0
    while True:
        part = _arrange(table, [random[i] for i in active], fixed)
        solution, _, used = minimise(lambda at, p=part: _evaluate(p, at, scale), start[[*active, -1]])  # type: ignore[misc]
        iterations += used
        point = np.zeros(len(random) + 1)
        point[[*active, -1]] = solution
        here = _evaluate(whole, point, scale)
        fall = here.gradient**2 / np.maximum(np.diag(here.information), np.finfo(float).tiny)
        entering = [
            i for i in range(len(random)) if i not in active and here.gradient[i] < 0 and fall[i] > 1e-9
        ]
        if not entering:
            break
        active = sorted([*active, *entering])
        start = np.where(point > 0, point, 0.0)
        start[entering] = 0.01 * scale
    names = [name_of(term) for term in random] + [RESIDUAL]
    border = _eliminate_border(whole, point)
    return RemlFit(
        components=dict(zip(names, map(float, point), strict=True)),
        criterion=here.criterion,
        gradient=dict(zip(names, map(float, here.gradient), strict=True)),
        boundary=tuple(name for name, value in zip(names, point, strict=True) if value == 0),
        iterations=iterations,
        solver="blocks",
        information=here.information,
        fixed_effects=border.fixed_effects,
        fixed_covariance=border.fixed_covariance,
    )


def _start(table: CellTable, random: Sequence[Term], fixed: Sequence[Term]) -> Array:
    """Return where to begin: the balanced solution with every hole filled by the grand mean.

    Only a beginning: the answer does not depend on it, and no filled value enters a likelihood.
    """
    present = table.counts > 0
    observations = int(table.counts.sum())
    centre = float(np.average(table.means[present], weights=table.counts[present]))
    variance = float((table.counts * (table.means - centre) ** 2)[present].sum() + table.within_squares)
    even = np.full(len(random) + 1, variance / max(observations - 1, 1) / (len(random) + 1))
    repetitions = max(1, round(observations / table.counts.size))
    filled = np.where(present, table.means, centre)
    try:
        strata = strata_of(filled, table.facets, repetitions, table.within_squares)
        fit = fit_balanced(strata, random, fixed)
    except (VarianceModelError, RemlError):
        return even
    start = np.asarray(list(fit.components.values()))
    return start if start[-1] > 1e-6 * start.sum() else even


def upper_limit(
    table: CellTable,
    random: Sequence[Term],
    fixed: Sequence[Term],
    fit: RemlFit,
    term: Term,
    rise: float,
) -> float:
    """Return how large a component may be before the criterion has risen by `rise`, the others kept.

    For components at or near zero, where a standard error says nothing; with few levels (order) the limit
    is far out, as it should be.

    Returns
    -------
    float
        A variance; infinity if the criterion does not rise so far within 10^6 times the total variance.
    """
    kept = [t for t in random if t == term or fit.components[name_of(t)] > 0]
    problem = _arrange(table, kept, fixed)
    point = np.asarray([*(fit.components[name_of(t)] for t in kept), fit.components[RESIDUAL]])
    at = kept.index(term)
    lowest = _criterion(problem, point, _eliminate_border(problem, point))

    def risen(value: float) -> bool:
        moved = point.copy()
        moved[at] = value
        return _criterion(problem, moved, _eliminate_border(problem, moved)) - lowest > rise

    low = max(fit.components[name_of(term)], 1e-9 * fit.total)
    high = low
    while not risen(high):
        low, high = high, high * 10
        if high > 1e6 * fit.total:
            return float("inf")
    while high / low > 1.02:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if risen(middle) else (middle, high)
    return high


class _Border(NamedTuple):
    """What is left after the pairs are eliminated, with V^-1 = B - B Z S Z' B (B: the blocks' inverses)."""

    gram: Array  # H' B H over the border's columns, the fixed effects' and the means
    s_border: Array  # S
    s_full: Array  # the same with the fixed effects eliminated too: P = B - B H s_full H' B
    log_det: float  # of V, for the cell means
    log_det_x: float  # of X' V^-1 X
    fixed_effects: Array
    fixed_covariance: Array


def _eliminate_border(problem: _Problem, point: Array, blocks: Sequence[_Block] | None = None) -> _Border:
    border_at = [i for i, (kind, _) in enumerate(problem.order) if kind == "border"]
    n_border, n_fixed = len(problem.border_term), problem.n_fixed
    width = n_border + n_fixed
    gram = np.zeros((width + 1, width + 1))
    log_det = 0.0
    for pattern, block in zip(problem.patterns, blocks or _blocks(problem, point), strict=True):
        n_pairs = pattern.means.shape[1]
        gram[:width, :width] += n_pairs * (pattern.design.T @ block.on_design)
        to_means = block.on_design.T @ pattern.means.sum(axis=1)
        gram[:width, width] += to_means
        gram[width, :width] += to_means
        gram[width, width] += float((pattern.means * block.on_means).sum())
        log_det += n_pairs * block.log_det
    # S is written so that a component at zero needs no inverse.
    root = np.sqrt(np.asarray([point[border_at[k]] for k in problem.border_term]))
    zz, zx = gram[:n_border, :n_border], gram[:n_border, n_border:width]
    inner = np.eye(n_border) + root[:, None] * zz * root[None, :]
    s_border = root[:, None] * np.linalg.inv(inner) * root[None, :]
    log_det += float(np.linalg.slogdet(inner)[1])
    information_x = gram[n_border:width, n_border:width] - zx.T @ s_border @ zx
    sign, log_det_x = np.linalg.slogdet(information_x)
    if sign <= 0:
        raise VarianceModelError("The fixed effects cannot be told apart: an order has no verdicts.")
    covariance = np.linalg.inv(information_x)
    projector = np.vstack([-s_border @ zx, np.eye(n_fixed)])
    s_full = projector @ covariance @ projector.T
    s_full[:n_border, :n_border] += s_border
    to_y = gram[:width, width]
    effects = covariance @ (to_y[n_border:] - zx.T @ s_border @ to_y[:n_border])
    return _Border(gram, s_border, s_full, log_det, float(log_det_x), effects, covariance)


def _arrange(table: CellTable, random: Sequence[Term], fixed: Sequence[Term]) -> _Problem:
    block, inner = table.facets[0], table.facets[1:]
    shape = table.counts.shape[1:]
    cells = int(np.prod(shape, dtype=np.int64))
    level_of = dict(zip(inner, np.indices(shape).reshape(len(inner), cells), strict=True))
    size_of = dict(zip(inner, shape, strict=True))

    def levels(facets: Sequence[str]) -> tuple[NDArray[np.int64], int]:
        code, size = np.zeros(cells, dtype=np.int64), 1
        for facet in facets:
            code, size = code * size_of[facet] + level_of[facet], size * size_of[facet]
        return code, size

    block_cells: list[NDArray[np.int64]] = []
    border: list[Array] = []
    border_term: list[int] = []
    order: list[tuple[str, int]] = []
    for term in random:
        code, size = levels([facet for facet in term if facet != block])
        if block in term:
            order.append(("block", len(block_cells)))
            block_cells.append(code)
        else:
            number = sum(kind == "border" for kind, _ in order)
            order.append(("border", number))
            border.append(np.eye(size)[code])
            border_term += [number] * size
    columns = [np.ones((cells, 1))]
    for term in fixed:
        if block in term:
            raise VarianceModelError(f"The fixed term {name_of(term)} contains {block}.")
        contrast = np.ones((cells, 1))
        for facet in term:
            coded = np.vstack([np.eye(size_of[facet] - 1), -np.ones(size_of[facet] - 1)])[level_of[facet]]
            contrast = (contrast[:, :, None] * coded[:, None, :]).reshape(cells, -1)
        columns.append(contrast)
    n_border = len(border_term)
    design = np.hstack([*border, *columns])
    counts = table.counts.reshape(table.counts.shape[0], cells)
    means = table.means.reshape(counts.shape)
    # A border column without an observation would only cost.
    used = np.ones(design.shape[1], dtype=bool)
    used[:n_border] = design[counts.any(axis=0), :n_border].any(axis=0)
    design = design[:, used]
    sizes, which = np.unique(counts, axis=0, return_inverse=True)
    which = which.ravel()
    patterns = []
    for number, size in enumerate(sizes):
        present = np.flatnonzero(size)
        if not len(present):
            continue
        pairs = np.flatnonzero(which == number)
        patterns.append(
            _Pattern(
                size[present].astype(np.float64),
                means[np.ix_(pairs, present)].T.copy(),
                tuple(_indicator(code[present]) for code in block_cells),
                design[present],
            )
        )
    filled = table.counts[table.counts > 0]
    return _Problem(
        patterns=tuple(patterns),
        border_term=np.asarray(border_term, dtype=np.int64)[used[:n_border]],
        n_fixed=design.shape[1] - int(used[:n_border].sum()),
        order=tuple(order),
        observations=int(table.counts.sum()),
        cells=int(filled.size),
        log_counts=float(np.log(filled).sum()),
        within_squares=float(table.within_squares),
    )


def _blocks(problem: _Problem, point: Array) -> Iterator[_Block]:
    """Yield each pattern's block at a point."""
    variances = [point[i] for i, (kind, _) in enumerate(problem.order) if kind == "block"]
    for pattern in problem.patterns:
        matrix = np.diag(float(point[-1]) / pattern.counts)
        for variance, term in zip(variances, pattern.terms, strict=True):
            if variance > 0:
                matrix += variance * (term @ term.T)
        root = np.linalg.cholesky(matrix)
        inverse: Array = np.linalg.inv(matrix).astype(np.float64)
        yield _Block(
            inverse,
            inverse @ pattern.design,
            inverse @ pattern.means,
            2 * float(np.log(np.diag(root)).sum()),
        )


def _criterion(problem: _Problem, point: Array, border: _Border) -> float:
    """Return minus twice the restricted log-likelihood of all observations, from that of the cell means."""
    residual = float(point[-1])
    to_y = border.gram[:-1, -1]
    quadratic = float(border.gram[-1, -1] - to_y @ border.s_full @ to_y)
    return float(
        (problem.observations - problem.n_fixed) * np.log(2 * np.pi)
        + border.log_det
        + border.log_det_x
        + (problem.observations - problem.cells) * np.log(residual)
        + problem.log_counts
        + quadratic
        + problem.within_squares / residual
    )


def _evaluate(problem: _Problem, point: Array, scale: float) -> Evaluation:
    """Return minus twice the restricted log-likelihood with its gradient and average information."""
    n_terms = len(problem.order)
    residual = float(point[-1])
    outside = Evaluation(np.inf, np.zeros(n_terms + 1), np.eye(n_terms + 1))
    if residual <= 1e-12 * scale:
        return outside
    block_at = [i for i, (kind, _) in enumerate(problem.order) if kind == "block"]
    border_at = [i for i, (kind, _) in enumerate(problem.order) if kind == "border"]
    n_border = len(problem.border_term)
    width = n_border + problem.n_fixed
    blocks = list(_blocks(problem, point)) if problem.numbers <= _KEPT_NUMBERS else None
    border = _eliminate_border(problem, point, blocks)
    gram, s_full = border.gram, border.s_full

    # P y = B H v, with v = (-S H'B y, 1).
    v = np.append(-s_full @ gram[:width, width], 1.0)
    spare = problem.observations - problem.cells
    criterion = _criterion(problem, point, border)

    # Derivatives: tr(P V_i) - y'P V_i P y, and y'P V_i P V_j P y.
    n_all = n_terms + 1
    trace = np.zeros(n_all)
    square = np.zeros(n_all)
    to_border = np.zeros((width, n_all))  # H'B w_i, with w_i = V_i P y
    cross = np.zeros((n_all, n_all))  # w_i' B w_j over blocks
    coefficients = np.zeros((width, n_all))
    gv = gram[:width] @ v
    centred = gram[:n_border, :n_border] - gram[:n_border, :width] @ s_full @ gram[:width, :n_border]
    for number, i in enumerate(border_at):
        mine = problem.border_term == number
        trace[i] = float(np.diag(centred)[mine].sum())
        score = gv[:n_border][mine]
        square[i] = float(score @ score)
        coefficients[np.flatnonzero(mine), i] = score
    trace[-1] = spare / residual
    square[-1] = problem.within_squares / residual**2
    cross[-1, -1] = problem.within_squares / residual**3
    for pattern, block in zip(problem.patterns, blocks or _blocks(problem, point), strict=True):
        n_cells, n_pairs = pattern.means.shape
        py = block.on_means + (block.on_design @ v[:width])[:, None]
        derived = np.zeros((n_cells, n_all, n_pairs))
        for i, term in zip(block_at, pattern.terms, strict=True):
            summed = term.T @ block.on_design
            diagonal = float(((term.T @ block.inverse) * term.T).sum())
            trace[i] += n_pairs * (diagonal - float(((summed @ s_full) * summed).sum()))
            totals = term.T @ py
            square[i] += float((totals**2).sum())
            derived[:, i] = term @ totals
        per_cell = 1 / pattern.counts
        weighted = block.on_design * np.sqrt(per_cell)[:, None]
        diagonal = float(np.diag(block.inverse) @ per_cell)
        trace[-1] += n_pairs * (diagonal - float(((weighted @ s_full) * weighted).sum()))
        square[-1] += float((py**2 * per_cell[:, None]).sum())
        derived[:, -1] = py * per_cell[:, None]
        derived[:, border_at] = (pattern.design @ coefficients[:, border_at])[:, :, None]
        to_border += block.on_design.T @ derived.sum(axis=2)
        again = (block.inverse @ derived.reshape(n_cells, -1)).reshape(derived.shape)
        cross += np.tensordot(derived, again, axes=([0, 2], [0, 2]))
    information = cross - to_border.T @ s_full @ to_border
    return Evaluation(criterion, trace - square, (information + information.T) / 2)


def _indicator(code: NDArray[np.int64]) -> Array:
    """Return the 0/1 matrix of shape (cells, levels) of a block term, over the levels that occur."""
    levels, place = np.unique(code, return_inverse=True)
    return np.eye(len(levels))[place]


def cell_table(
    codes: Sequence[ArrayLike], sizes: Sequence[int], values: ArrayLike, facets: Sequence[str]
) -> CellTable:
    """Return the cell table of observations given by the level of each facet.

    Parameters
    ----------
    codes : sequence of array-like of shape (n_observations,)
        Integer levels, one array a facet.
    sizes : sequence of int
        Levels of each facet.
    values : array-like of shape (n_observations,)
    facets : sequence of str

    Examples
    --------
    >>> table = cell_table([[0, 0, 1], [0, 0, 1]], [2, 2], [1.0, 0.0, 1.0], ["pair", "order"])
    >>> table.counts.tolist(), table.within_squares
    ([[2, 0], [0, 1]], 0.5)
    """
    y = np.asarray(values, dtype=np.float64)
    shape = tuple(sizes)
    cell = np.ravel_multi_index(tuple(np.asarray(code) for code in codes), shape)
    n_cells = int(np.prod(shape, dtype=np.int64))
    counts = np.bincount(cell, minlength=n_cells)
    sums = np.bincount(cell, weights=y, minlength=n_cells)
    squares = np.bincount(cell, weights=y * y, minlength=n_cells)
    means = sums / np.maximum(counts, 1)
    within = np.maximum(squares - sums * means, 0.0)
    return CellTable(tuple(facets), counts.reshape(shape), means.reshape(shape), float(within.sum()))
