"""REML for balanced crossed designs, exactly, from sums of squares.

In a balanced design the covariance matrix is a sum of orthogonal strata projectors, so the restricted
likelihood depends on the data through one sum of squares a stratum:

    -2 log REML = sum over strata U of [df_U log lambda_U + SS_U / lambda_U] + constants,
    lambda_U    = sigma^2_residual + sum over terms S containing U of c_S sigma^2_S,

with c_S the number of observations that share one level of S. The analysis-of-variance solution is the
answer if it is nonnegative; otherwise the criterion is minimised over nonnegative components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from judge_calibration.errors import VarianceModelError
from judge_calibration.metrics.reml_scoring import Array, Evaluation, RemlFit, minimise

Term = tuple[str, ...]
"""A set of facets in the order of the design, e.g. ``("pair", "judge")``."""

RESIDUAL = "residual"


@dataclass(frozen=True)
class Strata:
    """The sums of squares of a balanced crossed design.

    Attributes
    ----------
    facets, levels : tuple
        The crossed facets and their numbers of levels.
    repetitions : int
        Observations in each cell.
    degrees, squares : dict of Term to number
        Degrees of freedom and sum of squares of each stratum; the empty term (grand mean) is left out.
    within_degrees, within_squares : number
        Of the repetitions within cells.
    """

    facets: tuple[str, ...]
    levels: tuple[int, ...]
    repetitions: int
    degrees: dict[Term, int]
    squares: dict[Term, float]
    within_degrees: int
    within_squares: float

    @property
    def observations(self) -> int:
        """All observations."""
        return int(np.prod(self.levels)) * self.repetitions

    def multiplicity(self, term: Term) -> int:
        """How many observations share one level of `term`: c_S."""
        size = dict(zip(self.facets, self.levels, strict=True))
        return self.observations // int(np.prod([size[facet] for facet in term]))


def name_of(term: Term) -> str:
    """Return a term's name, e.g. ``pair:judge``."""
    return ":".join(term)


def subsets(facets: Sequence[str]) -> list[Term]:
    """Return all non-empty subsets of the facets, small ones first, in the order of the design."""
    return [term for size in range(1, len(facets) + 1) for term in combinations(facets, size)]


def strata_of(
    cell_means: ArrayLike, facets: Sequence[str], repetitions: int, within_squares: float
) -> Strata:
    """Return the sums of squares of a complete table of cell means.

    Parameters
    ----------
    cell_means : array-like of shape (levels of facet 1, levels of facet 2, ...)
    facets : sequence of str
        One name an axis.
    repetitions : int
        Observations in each cell.
    within_squares : float
        Sum of squared deviations from the cell means.

    Examples
    --------
    Rows 1, 2 and columns with a constant difference of 2: no interaction.

    >>> strata = strata_of([[0.0, 2.0], [1.0, 3.0]], ["row", "column"], 1, 0.0)
    >>> {name_of(term): value for term, value in strata.squares.items()}
    {'row': 1.0, 'column': 4.0, 'row:column': 0.0}
    """
    table = np.asarray(cell_means, dtype=np.float64)
    parts: dict[Term, Array] = {(): table}
    for axis, facet in enumerate(facets):
        split: dict[Term, Array] = {}
        for term, values in parts.items():
            mean = values.mean(axis=axis, keepdims=True)
            split[term] = mean
            split[(*term, facet)] = values - mean
        parts = split
    size = dict(zip(facets, table.shape, strict=True))
    cells = table.size
    squares = {}
    degrees = {}
    for term in subsets(facets):
        values = parts[term]
        squares[term] = float(np.vdot(values, values)) * repetitions * (cells // values.size)
        degrees[term] = int(np.prod([size[facet] - 1 for facet in term]))
    return Strata(
        tuple(facets), table.shape, repetitions, degrees, squares, cells * (repetitions - 1), within_squares
    )


def check_model(facets: Sequence[str], random: Sequence[Term], fixed: Sequence[Term]) -> None:
    """Refuse a model with a term whose margins are not in it, since they would be hidden in that term.

    Raises
    ------
    VarianceModelError
    """
    known = set(random) | set(fixed)
    unknown = [term for term in known if not set(term) <= set(facets)]
    if unknown:
        raise VarianceModelError(
            f"The model has the terms {sorted(map(name_of, unknown))}, the design the facets {list(facets)}.",
            "use terms of the design's own facets",
        )
    hidden = sorted(
        {
            f"{name_of(margin)} (of {name_of(term)})"
            for term in random
            for margin in subsets(term)
            if margin not in known
        }
    )
    if hidden:
        raise VarianceModelError(
            f"The model lacks the margins {', '.join(hidden)}.", "add these terms to the model"
        )


def pooled(
    strata: Strata, random: Sequence[Term], fixed: Sequence[Term]
) -> tuple[list[str], Array, Array, Array]:
    """Return component names, the matrix from components to eigenvalues, degrees and sums of squares.

    Strata of random terms keep their own row; all strata outside the model, and the repetitions within
    cells, are pooled into the last row, the residual's.
    """
    check_model(strata.facets, random, fixed)
    names = [name_of(term) for term in random] + [RESIDUAL]
    matrix = np.zeros((len(names), len(names)))
    matrix[:, -1] = 1.0
    degrees = np.zeros(len(names))
    squares = np.zeros(len(names))
    for row, stratum in enumerate(random):
        degrees[row], squares[row] = strata.degrees[stratum], strata.squares[stratum]
        for column, term in enumerate(random):
            if set(stratum) <= set(term):
                matrix[row, column] = strata.multiplicity(term)
    outside = [term for term in subsets(strata.facets) if term not in random and term not in fixed]
    degrees[-1] = sum(strata.degrees[term] for term in outside) + strata.within_degrees
    squares[-1] = sum(strata.squares[term] for term in outside) + strata.within_squares
    if (degrees <= 0).any():
        empty = [name for name, df in zip(names, degrees, strict=True) if df <= 0]
        raise VarianceModelError(
            f"There is nothing to estimate {', '.join(empty)} from: no degree of freedom is left.",
            "leave out the highest interaction, or facets with a single level, or add repetitions",
        )
    return names, matrix, degrees, squares


def fit_balanced(strata: Strata, random: Sequence[Term], fixed: Sequence[Term] = ()) -> RemlFit:
    """Return the REML estimates of a balanced crossed design.

    Parameters
    ----------
    strata : Strata
        From :func:`strata_of`.
    random : sequence of Term
        The random terms; with each, its margins (random or fixed).
    fixed : sequence of Term
        Terms whose levels are all there are; their strata leave the likelihood.

    Returns
    -------
    RemlFit

    Examples
    --------
    Three pairs by two orders, one observation a cell. Pair means .25, 1.25, 2.25: SS_pair = 2 (1 + 0 + 1) = 4
    with df 2; the residual pools SS_order = 3 x 2 x .25^2 = .375 and the interaction's 0 with df 1 + 2. So
    sigma^2 = .375/3 = .125 and sigma^2_pair = (4/2 - .125)/2 = .9375.

    >>> strata = strata_of([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], ["pair", "order"], 1, 0.0)
    >>> fit = fit_balanced(strata, [("pair",)])
    >>> {name: round(value, 4) for name, value in fit.components.items()}
    {'pair': 0.9375, 'residual': 0.125}
    """
    names, matrix, degrees, squares = pooled(strata, random, fixed)
    solution: Array = np.linalg.solve(matrix, squares / degrees).astype(np.float64)
    solution[np.abs(solution) < 1e-14 * max(np.abs(solution).max(), 1e-300)] = 0.0
    constant = _constant(strata, fixed)
    iterations, solver = 0, "anova"
    exact_zero_residual = squares[-1] <= 1e-13 * max(squares.sum(), 1e-300)
    if (solution < 0).any():
        solver = "strata"
        if exact_zero_residual:
            raise VarianceModelError(
                "The residual variance is exactly zero and another component is negative.",
                "leave the highest interactions out of the model",
            )
        start = np.maximum(solution, 0.0)
        solution, _, iterations = minimise(lambda point: _evaluate(point, matrix, degrees, squares), start)
    here = _evaluate(solution, matrix, degrees, squares) if not exact_zero_residual else None
    gradient = here.gradient if here else np.zeros(len(names))
    return RemlFit(
        components=dict(zip(names, map(float, solution), strict=True)),
        criterion=here.criterion + constant if here else -np.inf,
        gradient=dict(zip(names, map(float, gradient), strict=True)),
        boundary=tuple(name for name, value in zip(names, solution, strict=True) if value == 0),
        iterations=iterations,
        solver=solver,
        information=here.information if here else np.full((len(names), len(names)), np.nan),
    )


def _evaluate(point: Array, matrix: Array, degrees: Array, squares: Array) -> Evaluation:
    eigenvalues = matrix @ point
    if (eigenvalues <= 0).any():
        return Evaluation(np.inf, np.zeros_like(point), np.eye(len(point)))
    criterion = float(degrees @ np.log(eigenvalues) + (squares / eigenvalues).sum())
    slope = (degrees - squares / eigenvalues) / eigenvalues
    weight = degrees / eigenvalues**2
    return Evaluation(criterion, matrix.T @ slope, matrix.T @ (weight[:, None] * matrix))


def _constant(strata: Strata, fixed: Sequence[Term]) -> float:
    """Return what the criterion needs to equal that of a regression with orthogonal 0/1-sum contrasts.

    log det(X'X) depends on how the fixed effects are coded; here the intercept is a column of ones and each
    fixed stratum has contrasts of length one per observation (for two levels: +1 and -1).
    """
    n_fixed = 1 + sum(strata.degrees[term] for term in fixed)
    return float((strata.observations - n_fixed) * np.log(2 * np.pi) + n_fixed * np.log(strata.observations))


def pivotal_draws(
    strata: Strata,
    random: Sequence[Term],
    fixed: Sequence[Term],
    draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return draws of the components from their generalized pivotal distribution.

    SS_U / lambda_U is chi-squared in each stratum, independently, so lambda_U is drawn as SS_U over a
    chi-squared variate, the components follow by the analysis-of-variance equations, and draws below zero
    are set to zero. Quantiles over draws are generalized confidence limits; with one degree of freedom
    (order) they are as wide as the data deserve.

    Returns
    -------
    ndarray of shape (draws, n_components)
        Columns in the order of ``random``, then the residual.
    """
    _, matrix, degrees, squares = pooled(strata, random, fixed)
    eigenvalues = squares / rng.chisquare(degrees, size=(draws, len(degrees)))
    return np.maximum(np.linalg.solve(matrix, eigenvalues.T).T, 0.0)
