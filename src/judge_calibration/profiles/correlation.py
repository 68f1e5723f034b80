"""Correlation of judges' profiles, its reliability, and the null in which all judges prefer the same.

Definitions, section 6; JudgeProfile, appendix on priority profiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.logistic import fit_logistic
from judge_calibration.profiles.weights import fit_weights


def profile_correlations(profiles: np.ndarray, judges: tuple[str, ...]) -> pd.DataFrame:
    """Pearson and Spearman correlation over attributes for every pair of judges.

    Parameters
    ----------
    profiles : numpy.ndarray, shape (n_judges, n_attributes)
        Perception (resolution rates) or weight profiles; a row with NaN is undefined.

    Returns
    -------
    pandas.DataFrame
        judge_1, judge_2, pearson, spearman in [-1, 1]; NaN with the reason ``constant_profile`` or
        ``undefined_profile``.

    Examples
    --------
    >>> profiles = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 9.0], [1.0, 1.0, 1.0]])
    >>> table = profile_correlations(profiles, ("a", "b", "c"))
    >>> table["spearman"].round(3).tolist()[0], table["undefined"].tolist()[1]
    (1.0, 'constant_profile')
    """
    from scipy.stats import rankdata

    rows = []
    for a in range(len(judges)):
        for b in range(a + 1, len(judges)):
            x, y = profiles[a], profiles[b]
            reason = None
            if np.isnan(x).any() or np.isnan(y).any():
                reason = "undefined_profile"
            elif np.ptp(x) == 0 or np.ptp(y) == 0:
                reason = "constant_profile"
            rows.append(
                {
                    "judge_1": judges[a],
                    "judge_2": judges[b],
                    "pearson": np.nan if reason else _pearson(x, y),
                    "spearman": np.nan if reason else _pearson(rankdata(x), rankdata(y)),
                    "undefined": reason,
                }
            )
    return pd.DataFrame(rows, columns=["judge_1", "judge_2", "pearson", "spearman", "undefined"])


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


class IdenticalPreferenceNull(NamedTuple):
    """Observed mean correlation of weight profiles against judges that share one preference.

    observed, null : float
        Mean Pearson correlations over judge pairs; null is the mean over repetitions.
    ratio : float
        observed / null; NaN, reason ``null_near_zero``, where the null is within 0.05 of 0.
    null_by_repetition : numpy.ndarray, shape (repetitions,)
    undefined : str or None
        Also ``undefined_profile`` where a judge's weights cannot be fitted.
    """

    observed: float
    null: float
    ratio: float
    null_by_repetition: np.ndarray
    undefined: str | None


NEAR_ZERO = 0.05


def identical_preference_null(
    stable: np.ndarray,
    verdicts: np.ndarray,
    seed: int,
    repetitions: int = 20,
    c: float = 1.0,
    intercept: bool = True,
    scale: bool = False,
) -> IdenticalPreferenceNull:
    """Compare weight profiles with those of judges that all share the mean weights.

    Every judge keeps its own stable directions and the items with a definite verdict; its verdicts are drawn
    anew from sigmoid(w . s) with the common w; the weights are fitted again.

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
    seed : int
    repetitions : int
    c, intercept : as in :func:`fit_weights`
    scale : bool
        Whether each judge's weights are scaled to unit length before averaging (the paper does not say;
        unscaled by default).
    """
    fits = [fit_weights(stable[j], verdicts[j], c, intercept) for j in range(len(stable))]
    observed = np.stack([fit.coefficients for fit in fits])
    nan = float("nan")
    if any(fit.undefined for fit in fits):
        return IdenticalPreferenceNull(nan, nan, nan, np.full(repetitions, nan), "undefined_profile")
    directions = observed / np.linalg.norm(observed, axis=1, keepdims=True) if scale else observed
    common = directions.mean(axis=0)
    rng = np.random.default_rng(seed)
    refitted = np.empty((repetitions, *observed.shape))
    for j in range(len(stable)):
        x = stable[j][verdicts[j] != 0].astype(float)
        probability = 1.0 / (1.0 + np.exp(-(x @ common)))
        for repetition in range(repetitions):
            drawn = np.where(rng.random(len(x)) < probability, 1, -1)
            if len(np.unique(drawn)) < 2:
                return IdenticalPreferenceNull(nan, nan, nan, np.full(repetitions, nan), "one_class_only")
            fit = fit_logistic(x, drawn, c, intercept, 1e-7, start=common, with_covariance=False)
            refitted[repetition, j] = fit.coefficients
    null = np.array([mean_correlation(profiles) for profiles in refitted])
    mean_observed, mean_null = mean_correlation(observed), float(null.mean())
    near = abs(mean_null) < NEAR_ZERO
    ratio = nan if near else mean_observed / mean_null
    return IdenticalPreferenceNull(mean_observed, mean_null, ratio, null, "null_near_zero" if near else None)


def mean_correlation(profiles: np.ndarray) -> float:
    """Mean Pearson correlation over all pairs of rows, in [-1, 1].

    Examples
    --------
    >>> mean_correlation(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    -1.0
    """
    centred = profiles - profiles.mean(axis=1, keepdims=True)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    products = unit @ unit.T
    return float(products[np.triu_indices(len(profiles), k=1)].mean().round(15))


class Reliability(NamedTuple):
    """Half-sample correlation and its Spearman-Brown correction; `flag` is ``negative_half_correlation``."""

    half: float
    corrected: float
    flag: str | None


def spearman_brown(half: float) -> Reliability:
    """Correct a half-sample correlation: 2 r / (1 + r); undefined at r = -1, flagged below 0.

    Examples
    --------
    >>> round(spearman_brown(0.5).corrected, 3)
    0.667
    """
    if half == -1:
        return Reliability(half, float("nan"), "undefined_at_minus_one")
    return Reliability(half, 2 * half / (1 + half), "negative_half_correlation" if half < 0 else None)


def half_sample_reliability(
    stable: np.ndarray, verdicts: np.ndarray, seed: int, splits: int = 20, c: float = 1.0
) -> pd.DataFrame:
    """Correlate one judge's weight profiles from random halves of the items.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n_items, n_attributes)
    verdicts : numpy.ndarray, shape (n_items,)

    Returns
    -------
    pandas.DataFrame
        split, half, corrected, flag; half is NaN (flag = the reason) where a half has no profile.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for split in range(splits):
        order = rng.permutation(len(verdicts))
        halves = order[: len(order) // 2], order[len(order) // 2 :]
        fits = [fit_weights(stable[half], verdicts[half], c) for half in halves]
        reason = next((fit.undefined for fit in fits if fit.undefined), None)
        if reason:
            rows.append({"split": split, "half": np.nan, "corrected": np.nan, "flag": reason})
            continue
        value = spearman_brown(_pearson(fits[0].coefficients, fits[1].coefficients))
        rows.append({"split": split, "half": value.half, "corrected": value.corrected, "flag": value.flag})
    return pd.DataFrame(rows)
