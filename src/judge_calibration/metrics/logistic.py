"""L2-penalised logistic regression by Newton's method, for many small fits.

Minimises c * sum_i log(1 + exp(-y_i (b + x_i w))) + w'w / 2 with an unpenalised intercept b: the objective
of scikit-learn's ``LogisticRegression(C=c)``, whose coefficients it equals to 1e-4 and better. The Newton
steps are halved until the objective falls, so that separable data converge too (the penalty bounds w).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judge_calibration.errors import JudgeCalibrationError

MAX_STEPS = 200


class NotConvergedError(JudgeCalibrationError):
    """A logistic fit did not reach its tolerance."""


class LogisticFit(NamedTuple):
    """Result of a fit.

    coefficients : numpy.ndarray of shape (n_features,)
        Log-odds of the class +1 per unit.
    intercept : float
        Log-odds where all features are 0 (0.0 when none was fitted).
    covariance : numpy.ndarray of shape (n_features, n_features)
        Inverse of the penalised Hessian at the solution (the Laplace posterior under the penalty's normal
        prior); its diagonal gives approximate squared standard errors, biased towards 0 like the estimates.
    """

    coefficients: np.ndarray
    intercept: float
    covariance: np.ndarray


def fit_logistic(
    x: np.ndarray,
    y: np.ndarray,
    c: float = 1.0,
    intercept: bool = True,
    tolerance: float = 1e-9,
    start: np.ndarray | None = None,
    with_covariance: bool = True,
) -> LogisticFit:
    """Fit the regression.

    Parameters
    ----------
    x : numpy.ndarray of shape (n, n_features)
        Features.
    y : numpy.ndarray of shape (n,)
        Classes in {-1, +1}; both have to occur (the caller reports ``one_class_only`` otherwise).
    c : float > 0
        Inverse strength of the penalty.
    intercept : bool
        Whether to fit an unpenalised intercept.
    tolerance : float
        Largest absolute gradient component, per observation, at the solution.
    start : numpy.ndarray of shape (n_features,), optional
        Where to begin; a good guess saves steps and never changes the answer.
    with_covariance : bool
        False leaves the covariance NaN and saves one Hessian.

    Raises
    ------
    ValueError
        If y holds other values than -1 and +1, or only one of them.
    NotConvergedError
        If 200 steps do not reach the tolerance.

    Notes
    -----
    The Hessian is kept over steps while the gradient falls at least fourfold a step (a chord method), since
    it costs n_features times as much as a gradient.

    Examples
    --------
    >>> x = np.array([[1.0], [1.0], [-1.0], [-1.0], [1.0]]); y = np.array([1, 1, -1, -1, -1])
    >>> round(float(fit_logistic(x, y).coefficients[0]), 3)
    0.781
    """
    classes = set(np.unique(y).tolist())
    if classes != {-1, 1}:
        raise ValueError(f"y must hold both classes -1 and +1 and nothing else, found {sorted(classes)}")
    n, features = x.shape
    design = np.hstack([x, np.ones((n, 1))]) if intercept else np.asarray(x, dtype=float)
    penalty = np.ones(design.shape[1])
    if intercept:
        penalty[-1] = 0.0
    beta = np.zeros(design.shape[1])
    if start is not None:
        beta[:features] = start
    target = (np.asarray(y) + 1) / 2

    def state(b: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        z = design @ b
        # log(1 + exp(z)) - target z, without overflow
        loss = np.maximum(z, 0.0) + np.log1p(np.exp(-np.abs(z))) - target * z
        probability = 1.0 / (1.0 + np.exp(-np.clip(z, -700, 700)))
        gradient = c * (design.T @ (probability - target)) + penalty * b
        return float(c * loss.sum() + (penalty * b * b).sum() / 2), gradient, probability

    def hessian(probability: np.ndarray) -> np.ndarray:
        return c * (design.T * (probability * (1 - probability))) @ design + np.diag(penalty)

    value, gradient, probability = state(beta)
    curvature = None
    limit = tolerance * max(1.0, c * n)
    for _ in range(MAX_STEPS):
        size = float(np.abs(gradient).max())
        if size <= limit:
            covariance = (
                np.linalg.inv(hessian(probability))[:features, :features]
                if with_covariance
                else np.full((features, features), np.nan)
            )
            return LogisticFit(beta[:features], float(beta[-1]) if intercept else 0.0, covariance)
        fresh = curvature is None
        if curvature is None:
            curvature = hessian(probability)
        step = np.linalg.solve(curvature, gradient)
        scale = 1.0
        trial = state(beta - step)
        # A step below the value's rounding is accepted: the gradient decides.
        while trial[0] > value + 1e-12 * abs(value) and scale > 1e-8 and fresh:
            scale /= 2
            trial = state(beta - scale * step)
        if not fresh and trial[0] > value + 1e-12 * abs(value):
            curvature = None
            continue
        beta = beta - scale * step
        value, gradient, probability = trial
        if np.abs(gradient).max() > 0.25 * size:
            curvature = None
    raise NotConvergedError(
        f"A logistic fit with {n} rows and {features} features did not converge in {MAX_STEPS} steps.",
        "check the features for infinite or enormous values",
    )
