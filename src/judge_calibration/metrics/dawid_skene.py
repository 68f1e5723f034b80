"""Dawid and Skene's model: the likely true label of each item and each annotator's error rates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio


class DawidSkene(NamedTuple):
    """A fitted model.

    Attributes
    ----------
    posterior : numpy.ndarray, shape (n_items, k)
        Probability of each true label, rows sum to 1; NaN for an item without a label.
    prevalence : numpy.ndarray, shape (k,)
        Share of each true label.
    confusion : numpy.ndarray, shape (n_annotators, k, k)
        Probability that an annotator gives a label (column) when another (row) is true.
    iterations : int
        Rounds of expectation and maximisation.
    converged : bool
        Whether posteriors stopped moving before the limit.
    """

    posterior: Floats
    prevalence: Floats
    confusion: Floats
    iterations: int
    converged: bool


def maximise(votes: npt.ArrayLike, posterior: npt.ArrayLike, smoothing: float) -> tuple[Floats, Floats]:
    """Return prevalence and confusion given posteriors (the M step).

    Parameters
    ----------
    votes : array-like of shape (n_items, n_annotators, k)
        How often an annotator gave an item a label, mostly 0 or 1.
    posterior : array-like of shape (n_items, k)
        Probability of each true label; zeros for items that do not count.
    smoothing : float
        Added to every count of a confusion matrix.
    """
    given, belief = np.asarray(votes, dtype=np.float64), np.asarray(posterior, dtype=np.float64)
    prevalence = belief.sum(axis=0) / belief.sum()
    n, raters, k = given.shape
    # A matrix product in place of einsum("ik,ial->akl"): ten times faster.
    counts = (belief.T @ given.reshape(n, raters * k)).reshape(k, raters, k).swapaxes(0, 1) + smoothing
    uniform = np.full(counts.shape, 1 / counts.shape[-1])
    confusion = ratio(counts, counts.sum(axis=-1, keepdims=True))
    return prevalence, np.where(np.isnan(confusion), uniform, confusion)


def expect(votes: npt.ArrayLike, prevalence: npt.ArrayLike, confusion: npt.ArrayLike) -> Floats:
    """Return posteriors given prevalence and confusion (the E step)."""
    given = np.asarray(votes, dtype=np.float64)
    tiny = np.finfo(np.float64).tiny
    log_prior = np.log(np.maximum(np.asarray(prevalence, dtype=np.float64), tiny))
    log_confusion = np.log(np.maximum(np.asarray(confusion, dtype=np.float64), tiny))
    n, raters, k = given.shape
    by_label = log_confusion.swapaxes(1, 2).reshape(raters * k, k)
    log_joint = log_prior + given.reshape(n, raters * k) @ by_label
    joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return joint / joint.sum(axis=1, keepdims=True)


def dawid_skene(
    votes: npt.ArrayLike,
    smoothing: float = 0.01,
    tolerance: float = 1e-8,
    limit: int = 500,
    weights: npt.ArrayLike | None = None,
) -> DawidSkene:
    """Fit Dawid and Skene's model by expectation and maximisation, from the majority vote.

    Parameters
    ----------
    votes : array-like of shape (n_items, n_annotators, k)
        How often an annotator gave an item a label; all zeros where there is none.
    smoothing : float
        Added to every count of a confusion matrix, so that a label never seen is not held impossible.
    tolerance : float
        Largest change of a posterior at which fitting stops.
    limit : int
        Most rounds.
    weights : array-like of shape (n_items,), optional
        How many items have each row's votes, so that equal rows are fitted once; one each by default.

    Returns
    -------
    DawidSkene
        Labels' meaning is anchored by the majority vote; with two annotators the model mostly repeats their
        prior shares, so the report fits it from three on.

    References
    ----------
    Dawid and Skene (1979), Applied Statistics 28, 20-28; definitions, section 5.

    Examples
    --------
    >>> votes = np.zeros((2, 3, 2))
    >>> votes[0, :, 0] = 1  # three annotators say the first label
    >>> votes[1, :, 1] = 1
    >>> dawid_skene(votes).posterior.round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> dawid_skene(votes, weights=[3, 1]).prevalence.round(3).tolist()
    [0.75, 0.25]
    """
    from threadpoolctl import threadpool_limits

    given = np.asarray(votes, dtype=np.float64)
    labelled = given.sum(axis=(1, 2)) > 0
    k = given.shape[2]
    posterior = np.full((len(given), k), np.nan)
    if not labelled.any():
        nothing = np.full(k, np.nan)
        return DawidSkene(posterior, nothing, np.full((given.shape[1], k, k), np.nan), 0, False)
    seen = given[labelled]
    times = np.ones(len(seen)) if weights is None else np.asarray(weights, dtype=np.float64)[labelled]
    belief = seen.sum(axis=1)
    belief = belief / belief.sum(axis=1, keepdims=True)
    converged, rounds = False, 0
    # Small products, many times over: threads would wait for one another longer than they work.
    with threadpool_limits(limits=1, user_api="blas"):
        prevalence, confusion = maximise(seen, belief * times[:, None], smoothing)
        while rounds < limit and not converged:
            rounds += 1
            updated = expect(seen, prevalence, confusion)
            converged = bool(np.abs(updated - belief).max() < tolerance)
            belief = updated
            prevalence, confusion = maximise(seen, belief * times[:, None], smoothing)
    posterior[labelled] = belief
    return DawidSkene(posterior, prevalence, confusion, rounds, converged)
