"""Reweighting: predict a source's reference from a judge's stable attribute directions, and nothing else.

Definitions, section 7; JudgeProfile, section on adaptation. Fitted for each judge and source on the shared
training subsets; evaluated on all labelled test pairs of the source.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from judge_calibration.metrics.logistic import LogisticFit, fit_logistic


class Reweighting(NamedTuple):
    """A fitted reweighting, or the reason why there is none.

    fit : LogisticFit or None
    n_train : int
        Labelled pairs that were used.
    undefined : str or None
        ``no_training_pair``, ``one_class_only`` or ``no_stable_direction``.
    """

    fit: LogisticFit | None
    n_train: int
    undefined: str | None


def fit_reweighting(
    stable: np.ndarray,
    reference: np.ndarray,
    c: float = 1.0,
    start: np.ndarray | None = None,
    with_covariance: bool = True,
    intercept: bool = False,
) -> Reweighting:
    """Fit one judge's reweighting on one source's training pairs.

    Which answer of a pair is called A says nothing about it. Without an intercept a pair and the same pair
    listed the other way round get opposite verdicts, and a pair without a stable direction gets none. With
    one, a source that lists its better answers first mostly is "predicted" by calling A, whatever was read.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n, n_attributes)
        Stable directions in {-1, 0, +1}.
    reference : numpy.ndarray, shape (n,)
        +1 for A, -1 for B.
    c : float
        Inverse penalty.
    start : numpy.ndarray, optional
        Coefficients to begin from; they save steps and never change the answer.
    with_covariance : bool
        False saves one Hessian where no interval is wanted.
    intercept : bool
        True is scikit-learn's default.

    Examples
    --------
    >>> fit_reweighting(np.zeros((4, 2)), np.array([1, 1, -1, 1])).undefined
    'no_stable_direction'
    """
    if not len(reference):
        return Reweighting(None, 0, "no_training_pair")
    if len(np.unique(reference)) < 2:
        return Reweighting(None, len(reference), "one_class_only")
    if not stable.any():
        return Reweighting(None, len(reference), "no_stable_direction")
    fit = fit_logistic(
        stable.astype(float), reference, c, intercept, start=start, with_covariance=with_covariance
    )
    return Reweighting(fit, len(reference), None)


def predict_probability(model: Reweighting, stable: np.ndarray) -> np.ndarray:
    """Return the probability, in (0, 1), that the reference is A; NaN where the model is undefined."""
    if model.fit is None:
        return np.full(len(stable), np.nan)
    return 1.0 / (1.0 + np.exp(-(stable @ model.fit.coefficients + model.fit.intercept)))


def predict(model: Reweighting, stable: np.ndarray) -> np.ndarray:
    """Return +1 or -1 for every pair, 0 (no verdict: wrong in every accuracy) where nothing decides.

    A probability of exactly one half decides nothing: a tie is not broken towards A.
    """
    return decide(predict_probability(model, stable))


def decide(probability: np.ndarray) -> np.ndarray:
    """Return +1 above one half, -1 below, 0 at one half and where there is no probability.

    Examples
    --------
    >>> decide(np.array([0.7, 0.5, 0.1, np.nan])).tolist()
    [1, 0, -1, 0]
    """
    return np.asarray(np.sign(np.nan_to_num(probability, nan=0.5) - 0.5), dtype=np.int8)


def standard_errors(
    model: Reweighting, stable: np.ndarray, reference: np.ndarray, clusters: np.ndarray, c: float = 1.0
) -> np.ndarray:
    """Return each coefficient's standard error, in log-odds a unit; NaN where the model is undefined.

    The larger of two: the square root of the penalised Hessian's inverse (the Laplace posterior under the
    penalty's normal prior), which takes pairs for independent, and the cluster-robust one, which does not.

    Parameters
    ----------
    stable, reference, c
        As the model was fitted with.
    clusters : numpy.ndarray, shape (n,)
        Base task of each training pair.

    Examples
    --------
    >>> x = np.array([[1.0], [1.0], [-1.0], [-1.0], [1.0]]); y = np.array([1, 1, -1, -1, -1])
    >>> round(float(standard_errors(fit_reweighting(x, y), x, y, np.arange(5))[0]), 2)
    0.69
    """
    if model.fit is None:
        return np.full(stable.shape[1], np.nan)
    probability = predict_probability(model, stable)
    covariance = model.fit.covariance
    residual = (reference + 1) / 2 - probability
    _, codes = np.unique(clusters.astype(str), return_inverse=True)
    scores = np.zeros((int(codes.max()) + 1, stable.shape[1]))
    np.add.at(scores, codes, c * residual[:, None] * stable)
    g = len(scores)
    meat = scores.T @ scores * (g / max(1, g - 1))
    robust = covariance @ meat @ covariance
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance), np.diag(robust))))
