"""Whether anything but the content tells which answer of a correctness pair is right.

Each test gives an area under the ROC curve with a percentile interval from resampled base tasks. A bank
without leaks has intervals that cover one half. The intervals are simultaneous: with four tests each is a
98.75 % interval, so that a bank without leaks passes all four in 95 of 100 cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.bank.build import CANONICAL

FEWEST = 20
"""Correctness pairs below which nothing can be said."""
_RESAMPLES = 2000
_FOLDS = 5
_TESTS = 4


@dataclass(frozen=True)
class Leak:
    """One test's result: the area under the curve, its interval, and the number of base tasks."""

    name: str
    auc: float
    low: float
    high: float
    n_tasks: int

    @property
    def tells(self) -> bool:
        """Whether the interval leaves out one half."""
        return not self.low <= 0.5 <= self.high


def area_under_curve(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the probability that a positive scores above a negative, ties counting one half.

    NaN without positives or without negatives.

    Examples
    --------
    >>> area_under_curve(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    0.875
    """
    return float(_areas(scores, positive, np.ones((1, len(scores))))[0])


def _areas(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the area for each row of weights, which say how often each score was drawn."""
    above, below = scores[positive][:, None], scores[~positive][None, :]
    wins = (above > below) + 0.5 * (above == below)
    up, down = weights[:, positive], weights[:, ~positive]
    pairs = up.sum(axis=1) * down.sum(axis=1)
    won = ((up @ wins) * down).sum(axis=1)
    return np.divide(won, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)


def _tested(name: str, scores: Any, positive: Any, groups: Any, seed: int) -> Leak:
    scores, positive = np.asarray(scores, dtype=float), np.asarray(positive, dtype=bool)
    codes, ids = pd.factorize(np.asarray(groups, dtype=str))
    draws = np.random.default_rng(seed).integers(0, len(ids), size=(_RESAMPLES, len(ids)))
    times = np.stack([np.bincount(draw, minlength=len(ids)) for draw in draws]).astype(float)
    resampled = _areas(scores, positive, times[:, codes])
    tail = 0.05 / _TESTS / 2
    low, high = np.nanquantile(resampled, [tail, 1 - tail])
    return Leak(name, area_under_curve(scores, positive), float(low), float(high), len(ids))


def _out_of_fold(
    texts: list[str], positive: np.ndarray, groups: np.ndarray, analyzer: str, n: Any
) -> np.ndarray:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    scores = np.zeros(len(texts))
    for train, test in GroupKFold(_FOLDS).split(texts, positive, groups):
        if len(set(positive[train])) < 2:
            continue
        grams = TfidfVectorizer(analyzer=analyzer, ngram_range=n, sublinear_tf=True, min_df=2)
        model = LogisticRegression(C=10.0, max_iter=200)
        model.fit(grams.fit_transform([texts[i] for i in train]), positive[train])
        scores[test] = model.decision_function(grams.transform([texts[i] for i in test]))
    return scores


def leak_tests(pairs: pd.DataFrame, seed: int = 7) -> list[Leak]:
    """Test the correctness pairs for leaks of the expected answer.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The table `pairs`.
    seed : int
        Of the resampling.

    Returns
    -------
    list of Leak
        ``order`` (the row's place), ``length`` (difference of the answers' lengths in characters), ``ids``
        (character n-grams of both ids, cross-validated) and ``ngrams`` (word n-grams of single answers,
        cross-validated by base task). Empty below :data:`FEWEST` pairs.
    """
    places = pd.Series(np.arange(len(pairs)), index=pairs.index)
    chosen = pairs[(pairs["manipulation"] == "correctness") & pairs["expected"].isin(["A", "B"])]
    if len(chosen) < FEWEST or chosen["expected"].nunique() < 2:
        return []
    is_a = (chosen["expected"] == "A").to_numpy()
    groups = chosen["base_id"].to_numpy(dtype=str)
    ids = (chosen["pair_id"] + " " + chosen["base_id"]).tolist()
    gap = chosen["response_a"].str.len() - chosen["response_b"].str.len()
    answers = chosen["response_a"].tolist() + chosen["response_b"].tolist()
    right = np.concatenate(
        [(chosen["candidate_a"] == CANONICAL).to_numpy(), (chosen["candidate_b"] == CANONICAL).to_numpy()]
    )
    both = np.concatenate([groups, groups])
    return [
        _tested("order", places[chosen.index], is_a, groups, seed),
        _tested("length", gap, is_a, groups, seed),
        _tested("ids", _out_of_fold(ids, is_a, groups, "char", (1, 3)), is_a, groups, seed),
        _tested("ngrams", _out_of_fold(answers, right, both, "word", (1, 2)), right, both, seed),
    ]
