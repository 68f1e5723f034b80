"""Maximise a restricted likelihood over nonnegative variance components.

One driver for both solvers (:mod:`.reml_balanced`, :mod:`.reml_general`): projected Fisher scoring with an
active set. A component at zero stays there while the criterion would rise if it grew; the answer is
accepted only if the Karush-Kuhn-Tucker conditions hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge_calibration.errors import RemlError

Array = NDArray[np.float64]


class Evaluation(NamedTuple):
    """The REML criterion at one point.

    Attributes
    ----------
    criterion : float
        Minus twice the restricted log-likelihood.
    gradient : ndarray of shape (n_components,)
    information : ndarray of shape (n_components, n_components)
        Expected or average information of the criterion (its approximate Hessian).
    """

    criterion: float
    gradient: Array
    information: Array


@dataclass(frozen=True)
class RemlFit:
    """Variance components of one model.

    Attributes
    ----------
    components : dict of str to float
        By name, in the model's order; ``residual`` is the last. Never negative.
    criterion : float
        Minus twice the restricted log-likelihood, all constants included (lme4's ``REMLcrit``); minus
        infinity where the residual variance is exactly zero.
    gradient : dict of str to float
        Of the criterion, at the answer: 0 inside, not negative at the boundary.
    boundary : tuple of str
        The components that are exactly zero.
    iterations : int
        0 where the analysis-of-variance solution was already the answer.
    solver : {"anova", "strata", "blocks"}
        Closed form, exact strata with scoring, or the general solver.
    information : ndarray
        Approximate Hessian of the criterion at the answer.
    fixed_effects, fixed_covariance : ndarray
        Intercept and contrasts of the fixed terms, and their covariance; empty from the balanced solver.
    """

    components: dict[str, float]
    criterion: float
    gradient: dict[str, float]
    boundary: tuple[str, ...]
    iterations: int
    solver: str
    information: Array = field(repr=False)
    fixed_effects: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    fixed_covariance: Array = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @property
    def total(self) -> float:
        """The sum of all components."""
        return float(sum(self.components.values()))


def minimise(
    evaluate: Callable[[Array], Evaluation], start: Array, tolerance: float = 1e-11, limit: int = 200
) -> tuple[Array, Evaluation, int]:
    """Return the nonnegative minimiser of a REML criterion, its evaluation and the iterations.

    Parameters
    ----------
    evaluate : callable
        Gives the criterion, its gradient and its information; a criterion that is not finite marks a point
        outside (the residual variance has to be positive).
    start : ndarray of shape (n_components,)
        A point inside.
    tolerance : float
        Largest expected fall of the criterion that is still called converged.
    limit : int
        Largest number of iterations.

    Raises
    ------
    RemlError
        If the conditions of a constrained minimum do not hold after `limit` iterations.
    """
    point = np.maximum(start, 0.0)
    here = evaluate(point)
    last_fall = np.inf
    for iteration in range(limit):
        free = (point > 0) | (here.gradient < 0)
        step = np.zeros_like(point)
        step[free] = _scoring_step(here.information[np.ix_(free, free)], here.gradient[free])
        expected_fall = float(-here.gradient[free] @ step[free])
        # Below this the criterion is only rounding error; the gradient still tells the way.
        noise = 1e-12 * max(1.0, abs(here.criterion))
        if expected_fall < tolerance or (last_fall < noise and expected_fall >= last_fall / 2):
            return point, here, iteration
        length = 1.0
        while True:
            candidate = np.maximum(point + length * step, 0.0)
            there = evaluate(candidate)
            gain = min(float(here.gradient @ (candidate - point)), 0.0)
            allowed = here.criterion + (noise if expected_fall < noise else 1e-4 * gain + noise)
            if np.isfinite(there.criterion) and there.criterion <= allowed:
                break
            length /= 2
            if length < 1e-12:
                if expected_fall < 1e3 * noise:
                    return point, here, iteration
                break
        if length < 1e-12:
            break
        point, here, last_fall = candidate, there, expected_fall
    raise RemlError(
        f"The restricted likelihood did not converge in {limit} iterations "
        f"(last criterion {here.criterion:.6g}).",
        "fit a smaller model, or look for a facet with a single level or a cell with a constant verdict",
    )


def _scoring_step(information: Array, gradient: Array) -> Array:
    """Return minus information^-1 gradient; a direction without information moves by its own scale."""
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information / np.outer(scale, scale)
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    values = np.maximum(values, 1e-10 * max(values.max(), 1e-300))
    return -(vectors @ ((vectors.T @ (gradient / scale)) / values)) / scale
