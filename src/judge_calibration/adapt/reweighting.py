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


def fit_reweighting(stable: np.ndarray, reference: np.ndarray, c: float = 1.0) -> Reweighting:
    """Fit one judge's reweighting on one source's training pairs.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n, n_attributes)
        Stable directions in {-1, 0, +1}.
    reference : numpy.ndarray, shape (n,)
        +1 for A, -1 for B.
    c : float
        Inverse penalty.

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
    return Reweighting(fit_logistic(stable.astype(float), reference, c), len(reference), None)


def predict_probability(model: Reweighting, stable: np.ndarray) -> np.ndarray:
    """Return the probability, in (0, 1), that the reference is A; NaN where the model is undefined."""
    if model.fit is None:
        return np.full(len(stable), np.nan)
    return 1.0 / (1.0 + np.exp(-(stable @ model.fit.coefficients + model.fit.intercept)))


def predict(model: Reweighting, stable: np.ndarray) -> np.ndarray:
    """Return +1 or -1 for every pair, 0 (no verdict: wrong in every accuracy) where nothing decides.

    A probability of exactly one half decides nothing: a tie is not broken towards A.
    """
    probability = predict_probability(model, stable)
    signs = np.sign(np.nan_to_num(probability, nan=0.5) - 0.5)
    return np.asarray(signs, dtype=np.int8)
