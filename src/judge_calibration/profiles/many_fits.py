"""Many logistic regressions on one design at a time: drawn verdicts, and random halves of the items.

All fits share the rows' features and start near one another, so they share one curvature (a chord method):
a step is two matrix products for all of them together. A fit that this does not bring to its tolerance is
done again alone by :func:`judge_calibration.metrics.logistic.fit_logistic`, which every result equals.
"""

from __future__ import annotations

import numpy as np

from judge_calibration.metrics.logistic import fit_logistic

STEPS = 30
TOLERANCE = 1e-7


def fit_many(
    x: np.ndarray,
    y: np.ndarray,
    start: np.ndarray,
    c: float = 1.0,
    intercept: bool = True,
    rows: np.ndarray | None = None,
) -> np.ndarray:
    """Fit one L2-penalised logistic regression for each column of outcomes.

    Parameters
    ----------
    x : numpy.ndarray of shape (n, n_features)
    y : numpy.ndarray of shape (n, n_fits)
        Classes in {-1, +1}; both occur in each column (among its rows).
    start : numpy.ndarray of shape (n_features,)
        Coefficients near the solutions.
    c, intercept
        As in :func:`judge_calibration.metrics.logistic.fit_logistic`.
    rows : numpy.ndarray of bool, shape (n, n_fits), optional
        Which rows each fit uses; all by default.

    Returns
    -------
    numpy.ndarray of shape (n_fits, n_features)
        Coefficients; the largest gradient component an observation is at most 1e-7.

    Examples
    --------
    >>> x = np.array([[1.0], [1.0], [-1.0], [-1.0], [1.0]]); y = np.array([[1, 1, -1, -1, -1]]).T
    >>> fit_many(x, y, np.zeros(1)).round(3).tolist()
    [[0.781]]
    """
    n, features = x.shape
    fits = y.shape[1]
    design = np.hstack([x, np.ones((n, 1))]) if intercept else np.asarray(x, dtype=float)
    penalty = np.ones((design.shape[1], 1))
    if intercept:
        penalty[-1] = 0.0
    beta = np.zeros((design.shape[1], fits))
    beta[:features] = start[:, None]
    target = (y + 1) / 2
    size = np.full(fits, n) if rows is None else rows.sum(axis=0)
    at_start = _probability(design @ beta[:, :1])
    weight = (at_start * (1 - at_start)) * (float(size.mean()) / max(1, n))
    curvature = c * (design.T * weight.T) @ design + np.diag(penalty[:, 0])
    limit = TOLERANCE * np.maximum(1.0, c * size)
    inverse = np.linalg.inv(curvature + 1e-12 * np.eye(len(curvature)))
    open_ = np.ones(fits, dtype=bool)
    last = np.full(fits, np.inf)
    for _ in range(STEPS):
        error = _probability(design @ beta[:, open_]) - target[:, open_]
        if rows is not None:
            error *= rows[:, open_]
        gradient = c * (design.T @ error) + penalty * beta[:, open_]
        steepest = np.abs(gradient).max(axis=0)
        where = np.flatnonzero(open_)
        # A gradient that grows says that the shared curvature does not fit here.
        lost = ~np.isfinite(steepest) | (steepest > 4 * last[where])
        done = steepest <= limit[where]
        last[where] = steepest
        step = ~done & ~lost
        beta[:, where[step]] -= inverse @ gradient[:, step]
        open_[where[~step]] = False
        if not open_.any():
            break
    for k in np.flatnonzero(~(last <= limit)):
        kept = slice(None) if rows is None else rows[:, k]
        fit = fit_logistic(x[kept], y[kept, k], c, intercept, TOLERANCE, start, with_covariance=False)
        beta[:features, k] = fit.coefficients
    return np.ascontiguousarray(beta[:features].T)


def _probability(z: np.ndarray) -> np.ndarray:
    # In place: this is the largest array of a step.
    np.clip(z, -700, 700, out=z)
    np.negative(z, out=z)
    np.exp(z, out=z)
    z += 1.0
    return np.reciprocal(z, out=z)
