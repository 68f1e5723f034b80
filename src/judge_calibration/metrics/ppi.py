"""Prediction-powered estimates: few human labels, many judge labels, and the judge's bias taken out.

The judge scores every pair, people a random part of them. The estimate is

    mean of human labels + lambda (mean of judge over all pairs - mean of judge over the labelled pairs),

so a judge that is systematically wrong moves nothing, and one that agrees with people makes the interval
narrower. lambda is chosen to make the variance smallest (PPI++): 0 ignores the judge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.errors import PredictionPoweredError, Problem
from judge_calibration.metrics.clusters import cluster_sums

Floats = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A prediction-powered mean or difference.

    Attributes
    ----------
    value, se, low, high : float
        The estimate, its standard error and its interval (Student's t with labelled clusters less one).
    human_only, human_only_se : float
        From the labelled pairs alone.
    judge_only : float
        The judge's mean over all pairs: biased unless the judge is right on average.
    judge_bias, judge_bias_low, judge_bias_high : float
        Judge minus people on the labelled pairs.
    tuning : float
        lambda, 0 to 1.
    n_labelled, n_pairs, clusters : int
        Pairs with a human label, all pairs, and clusters with a labelled pair.
    """

    value: float
    se: float
    low: float
    high: float
    human_only: float
    human_only_se: float
    judge_only: float
    judge_bias: float
    judge_bias_low: float
    judge_bias_high: float
    tuning: float
    n_labelled: int
    n_pairs: int
    clusters: int


class _Influence(NamedTuple):
    """What each pair adds to the estimate's error: a + lambda b, and to the bias's."""

    human: float
    judge_all: float
    judge_labelled: float
    a: Floats
    b: Floats
    bias: Floats
    labelled: npt.NDArray[np.bool_]


def ppi_mean(
    human: npt.ArrayLike,
    judge: npt.ArrayLike,
    probability: npt.ArrayLike | None,
    clusters: npt.ArrayLike | pd.Series,
    level: float = 0.95,
    tuning: float | None = None,
) -> Estimate:
    """Return the prediction-powered mean of a population of pairs.

    Parameters
    ----------
    human : array-like of shape (n,)
        Human values (1 for a win, 0 for a loss, or -1, 0, 1); NaN where there is no label.
    judge : array-like of shape (n,)
        The judge's values on the same scale, for every pair. A failed judgment has to be given a value
        that does not depend on the label, e.g. 0.5; NaN is refused.
    probability : array-like of shape (n,) or None
        The known probability with which each pair was drawn to be labelled, above 0, at most 1. None means
        that nobody knows how the labelled pairs were chosen.
    clusters : array-like of shape (n,)
        The base task of each pair.
    level : float
        Coverage of the intervals.
    tuning : float, optional
        lambda, if it was fixed beforehand; by default the value that makes the variance smallest.

    Returns
    -------
    Estimate

    Raises
    ------
    PredictionPoweredError
        Unless the labelled pairs are a random subset with known probabilities; with every problem.

    Notes
    -----
    Means are weighted by 1 / probability (Hajek). The judge's mean is over all pairs, labelled ones
    included; with a separate unlabelled sample of size N and n labels, as in the papers, their lambda is
    this one times N / (N + n). The variance is that of the clusters' summed influences, times G / (G - 1).

    References
    ----------
    Angelopoulos and others, Prediction-powered inference, Science 382 (2023); PPI++ (arXiv 2311.01453);
    definitions, section 5.

    Examples
    --------
    Worked by hand in ``tests/metrics/test_ppi.py``. A judge that says .2 too much on every pair:

    >>> human = [1, 0, 1, 0] + [math.nan] * 4
    >>> judge = [1.2, 0.2, 1.2, 0.2, 1.2, 1.2, 1.2, 0.2]
    >>> result = ppi_mean(human, judge, [0.5] * 8, list("abcdefgh"))
    >>> round(result.judge_only, 3), round(result.judge_bias, 3), result.human_only, round(result.value, 3)
    (0.825, 0.2, 0.5, 0.625)
    """
    part, g, codes = _influence(human, judge, probability, clusters)
    a, b = (cluster_sums(values, codes, g) for values in (part.a, part.b))
    chosen = _best_tuning(a, b) if tuning is None else float(tuning)
    return _finish(part, codes, g, chosen, level)


def ppi_difference(
    human: tuple[npt.ArrayLike, npt.ArrayLike],
    judge: tuple[npt.ArrayLike, npt.ArrayLike],
    probability: tuple[npt.ArrayLike | None, npt.ArrayLike | None],
    clusters: tuple[npt.ArrayLike | pd.Series, npt.ArrayLike | pd.Series],
    level: float = 0.95,
) -> Estimate:
    """Return the first product's prediction-powered mean minus the second's.

    Parameters
    ----------
    human, judge, probability, clusters : pair of what :func:`ppi_mean` takes
        One of each product. A base task that occurs in both is one cluster, so that the difference is
        paired where the tasks are.
    level : float

    Returns
    -------
    Estimate
        Of the difference; ``tuning`` is the mean of both.

    Raises
    ------
    PredictionPoweredError
        As :func:`ppi_mean`, for both.
    """
    problems: list[Problem] = []
    parts, names = [], []
    for k in range(2):
        try:
            part, _, _ = _influence(human[k], judge[k], probability[k], clusters[k])
        except PredictionPoweredError as error:
            problems += [Problem(f"product {k + 1}, {p.where}", p.found, p.wanted) for p in error.problems]
            continue
        parts.append(part)
        names.append(np.asarray(clusters[k], dtype=object))
    if problems:
        raise _refused(problems)
    codes, distinct = pd.factorize(pd.Series(np.concatenate(names)))
    codes = codes.astype(np.int64)
    g, split = len(distinct), len(names[0])
    tunings, joined = [], []
    for k, part in enumerate(parts):
        mine = codes[:split] if k == 0 else codes[split:]
        chosen = _best_tuning(cluster_sums(part.a, mine, g), cluster_sums(part.b, mine, g))
        tunings.append(chosen)
        joined.append(part)
    first, second = joined
    combined = _Influence(
        first.human + tunings[0] * (first.judge_all - first.judge_labelled)
        - second.human - tunings[1] * (second.judge_all - second.judge_labelled),
        0.0,
        0.0,
        np.concatenate([first.a + tunings[0] * first.b, -second.a - tunings[1] * second.b]),
        np.zeros(len(codes)),
        np.concatenate([first.bias, -second.bias]),
        np.concatenate([first.labelled, second.labelled]),
    )  # fmt: skip
    result = _finish(combined, codes, g, 0.0, level)
    plain = cluster_sums(np.concatenate([first.a, -second.a]), codes, g)
    judge_bias = (first.judge_labelled - first.human) - (second.judge_labelled - second.human)
    shift = judge_bias - result.judge_bias
    return result._replace(
        human_only=first.human - second.human,
        human_only_se=_clustered_se(plain),
        judge_only=first.judge_all - second.judge_all,
        judge_bias=judge_bias,
        judge_bias_low=result.judge_bias_low + shift,
        judge_bias_high=result.judge_bias_high + shift,
        tuning=float(np.mean(tunings)),
    )


def _refused(problems: list[Problem]) -> PredictionPoweredError:
    return PredictionPoweredError(
        "A prediction-powered estimate needs a random labelled subset with known probabilities.",
        problems,
        "draw the pairs to be labelled with 'annotation', which records each pair's probability, or report "
        "the human and the judge means apart",
    )


def _influence(
    human: npt.ArrayLike,
    judge: npt.ArrayLike,
    probability: npt.ArrayLike | None,
    clusters: npt.ArrayLike | pd.Series,
) -> tuple[_Influence, int, npt.NDArray[np.int64]]:
    y = np.asarray(human, dtype=np.float64)
    f = np.asarray(judge, dtype=np.float64)
    labelled = ~np.isnan(y)
    codes, names = pd.factorize(pd.Series(np.asarray(clusters, dtype=object)))
    problems: list[Problem] = []
    if probability is None:
        problems.append(Problem("probability", "none", "each pair's probability of being labelled"))
        pi = np.ones(len(y))
    else:
        pi = np.asarray(probability, dtype=np.float64)
        wrong = ~((pi > 0) & (pi <= 1))
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            problems.append(
                Problem(
                    f"probability, pair {first + 1} and {int(wrong.sum()) - 1} more",
                    str(pi[first]),
                    "above 0, at most 1",
                )
            )
        certain = (pi == 1) & ~labelled
        if certain.any():
            problems.append(
                Problem(
                    f"human, {int(certain.sum())} pairs",
                    "no label, although each was to be labelled for certain",
                    "a label, or the probability with which it was really obtained",
                )
            )
    if not len(y) == len(f) == len(codes) == len(pi):
        problems.append(
            Problem("lengths", f"{len(y)} human, {len(f)} judge, {len(pi)} probabilities", "one a pair")
        )
        raise _refused(problems)
    if np.isnan(f).any():
        problems.append(
            Problem(f"judge, {int(np.isnan(f).sum())} pairs", "no value", "a value for every pair")
        )
    if len(np.unique(codes[labelled])) < 2:
        problems.append(
            Problem("human", f"{len(np.unique(codes[labelled]))} labelled base tasks", "at least 2")
        )
    if problems:
        raise _refused(problems)
    weight = np.where(labelled, 1 / pi, 0.0)
    scale = weight.sum()
    value = np.where(labelled, y, 0.0)
    mean_y = float((weight * value).sum() / scale)
    mean_f = float((weight * f).sum() / scale)
    all_f = float(f.mean())
    a = weight * (value - mean_y) / scale
    b = (f - all_f) / len(f) - weight * (f - mean_f) / scale
    bias = weight * (f - value - (mean_f - mean_y)) / scale
    return _Influence(mean_y, all_f, mean_f, a, b, bias, labelled), len(names), codes.astype(np.int64)


def _best_tuning(a: Floats, b: Floats) -> float:
    """Return the lambda in [0, 1] that makes the variance of a + lambda b smallest."""
    spread = float(b @ b)
    return 0.0 if spread == 0 else float(np.clip(-(a @ b) / spread, 0.0, 1.0))


def _clustered_se(sums: Floats) -> float:
    """Return the standard error from influences summed within clusters; empty clusters add nothing."""
    g = int(np.count_nonzero(sums))
    return math.sqrt(float(sums @ sums) * (g / (g - 1) if g > 1 else 1.0))


def _finish(part: _Influence, codes: npt.NDArray[np.int64], g: int, tuning: float, level: float) -> Estimate:
    from scipy.special import stdtrit

    clusters = len(np.unique(codes[part.labelled]))
    t = float(stdtrit(clusters - 1, 0.5 + level / 2))
    value = part.human + tuning * (part.judge_all - part.judge_labelled)
    se = _clustered_se(cluster_sums(part.a + tuning * part.b, codes, g))
    bias = part.judge_labelled - part.human
    bias_se = _clustered_se(cluster_sums(part.bias, codes, g))
    return Estimate(
        value, se, value - t * se, value + t * se,
        part.human, _clustered_se(cluster_sums(part.a, codes, g)), part.judge_all,
        bias, bias - t * bias_se, bias + t * bias_se,
        tuning, int(part.labelled.sum()), len(codes), clusters,
    )  # fmt: skip
