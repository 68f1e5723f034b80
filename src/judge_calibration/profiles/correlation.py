"""Correlation of judges' profiles, its reliability, and the null in which all judges prefer the same.

Definitions, section 6; JudgeProfile, appendix on priority profiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.profiles.many_fits import fit_many
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
    n_judges : int
        Judges with a weight profile; the others are left out of both means.
    undefined : str or None
        Also ``fewer_than_two_profiles``, and ``one_class_only`` where drawn verdicts have one class.
    """

    observed: float
    null: float
    ratio: float
    null_by_repetition: np.ndarray
    n_judges: int
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
    weights: np.ndarray | None = None,
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
    weights : numpy.ndarray, shape (n_judges, n_attributes), optional
        The judges' weights where they are fitted already (NaN where they are undefined).
    """
    if weights is None:
        weights = np.stack(
            [fit_weights(stable[j], verdicts[j], c, intercept).coefficients for j in range(len(stable))]
        )
    nan = float("nan")
    fitted = np.flatnonzero(~np.isnan(weights).any(axis=1))
    nothing = np.full(repetitions, nan)
    if len(fitted) < 2:
        return IdenticalPreferenceNull(nan, nan, nan, nothing, len(fitted), "fewer_than_two_profiles")
    observed = weights[fitted]
    directions = observed / np.linalg.norm(observed, axis=1, keepdims=True) if scale else observed
    common = directions.mean(axis=0)
    refitted = np.empty((repetitions, *observed.shape))
    for place, j in enumerate(fitted):
        # A stream a judge: leaving one judge out moves no other's draws.
        rng = np.random.default_rng([seed, int(j)])
        x = stable[j][verdicts[j] != 0].astype(float)
        probability = 1.0 / (1.0 + np.exp(-(x @ common)))
        drawn = np.where(rng.random((repetitions, len(x))) < probability, 1, -1).T
        if (np.abs(drawn.sum(axis=0)) == len(x)).any():
            return IdenticalPreferenceNull(nan, nan, nan, nothing, len(fitted), "one_class_only")
        refitted[:, place] = fit_many(x, drawn, common, c, intercept)
    null = np.array([mean_correlation(profiles) for profiles in refitted])
    mean_observed, mean_null = mean_correlation(observed), float(null.mean())
    near = abs(mean_null) < NEAR_ZERO
    ratio = nan if near else mean_observed / mean_null
    reason = "null_near_zero" if near else None
    return IdenticalPreferenceNull(mean_observed, mean_null, ratio, null, len(fitted), reason)


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
    stable: np.ndarray,
    verdicts: np.ndarray,
    seed: int,
    splits: int = 20,
    c: float = 1.0,
    intercept: bool = True,
    start: np.ndarray | None = None,
) -> pd.DataFrame:
    """Correlate one judge's profiles from random halves of the items.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n_items, n_attributes)
    verdicts : numpy.ndarray, shape (n_items,)
    seed : int
    splits : int
    c, intercept : as in :func:`fit_weights`
    start : numpy.ndarray, shape (n_attributes,), optional
        The judge's fitted weights: saves steps.

    Returns
    -------
    pandas.DataFrame
        A row a split and kind of profile (``weight``, ``perception``): kind, split, half (correlation over
        attributes), corrected (Spearman-Brown), flag; half is NaN (flag = the reason) where a half has no
        profile or a constant one.
    """
    n, n_attributes = stable.shape
    rng = np.random.default_rng(seed)
    in_first = np.zeros((n, splits), dtype=bool)
    for split in range(splits):
        in_first[rng.permutation(n)[: n // 2], split] = True
    resolved = (stable != 0).astype(np.float32)
    shares = [
        (part.astype(np.float32).T @ resolved) / np.maximum(1, part.sum(axis=0))[:, None]
        for part in (in_first, ~in_first)
    ]
    reasons, weights = _half_weights(stable, verdicts, in_first, c, intercept, start)
    rows = []
    for split in range(splits):
        for kind, halves, reason in (
            ("weight", (weights[0][split], weights[1][split]), reasons[split]),
            ("perception", (shares[0][split].astype(float), shares[1][split].astype(float)), None),
        ):
            if reason is None and (n_attributes < 2 or any(np.ptp(half) == 0 for half in halves)):
                reason = "constant_profile"
            if reason is not None:
                value = Reliability(float("nan"), float("nan"), reason)
            else:
                value = spearman_brown(_pearson(*halves))
            rows.append({"kind": kind, "split": split, **value._asdict()})
    return pd.DataFrame(rows, columns=["kind", "split", "half", "corrected", "flag"]).astype({"flag": "str"})


def _half_weights(
    stable: np.ndarray,
    verdicts: np.ndarray,
    in_first: np.ndarray,
    c: float,
    intercept: bool,
    start: np.ndarray | None,
) -> tuple[list[str | None], np.ndarray]:
    """Return why a split has no weight profile, and the weights of both halves of every split."""
    definite = verdicts != 0
    x, y, first = stable[definite].astype(float), verdicts[definite], in_first[definite]
    splits = in_first.shape[1]
    halves = np.concatenate([first, ~first], axis=1)
    for_a, for_b = (y[:, None] == 1) & halves, (y[:, None] == -1) & halves
    any_direction = (np.abs(x).sum(axis=1)[:, None] > 0) & halves
    single = np.select(
        [~halves.any(axis=0), ~for_a.any(axis=0) | ~for_b.any(axis=0), ~any_direction.any(axis=0)],
        ["no_definite_verdict", "one_class_only", "no_stable_direction"],
        "",
    )
    reasons = [str(one or other) or None for one, other in zip(single[:splits], single[splits:], strict=True)]
    weights = np.full((2 * splits, stable.shape[1]), np.nan)
    able = np.flatnonzero(single == "")
    if len(able):
        begin = np.zeros(stable.shape[1]) if start is None or np.isnan(start).any() else start
        outcomes = np.repeat(y[:, None], len(able), axis=1)
        weights[able] = fit_many(x, outcomes, begin, c, intercept, halves[:, able])
    return reasons, weights.reshape(2, splits, -1)
