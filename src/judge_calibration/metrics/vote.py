"""The verdict that a vote of k fresh repetitions would give, by resampling the repetitions at hand."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.judgments import FAILED
from judge_calibration.metrics.rates import Floats, ratio

_CHUNK = 4_000_000


@lru_cache(maxsize=16)
def _compositions(k: int, symbols: int) -> npt.NDArray[np.int64]:
    """Return every way to spread k votes over the symbols, one a row."""
    rows = [
        np.bincount(chosen, minlength=symbols) for chosen in combinations_with_replacement(range(symbols), k)
    ]
    return np.array(rows, dtype=np.int64)


def vote_distribution(counts: npt.ArrayLike, k: int) -> Floats:
    """Return the probability of each result of a vote of k repetitions drawn from those at hand.

    Parameters
    ----------
    counts : array-like of shape (n_units, 5)
        How often the repetitions said A, B, TIE, ABSTAIN, and how often they failed.
    k : int
        Number of repetitions that vote, drawn with replacement; 1 is a single read.

    Returns
    -------
    numpy.ndarray of float64, shape (n_units, 5)
        Rows sum to 1; a split vote counts as failed (unresolved). NaN for a unit without a repetition.

    Notes
    -----
    Exact: every composition of the k votes is weighted by its multinomial probability, so no random
    number is needed. Resampling R repetitions makes the judge look a little more repeatable than it is,
    the more so the smaller R.

    Examples
    --------
    A, A, B: a vote of three gives A with probability (2/3)^3 + 3 (2/3)^2 (1/3) = 20/27 = .7407.

    >>> vote_distribution([[2, 1, 0, 0, 0]], 3).round(4).tolist()
    [[0.7407, 0.2593, 0.0, 0.0, 0.0]]
    """
    table = np.asarray(counts, dtype=np.float64)
    share = ratio(table, table.sum(axis=1, keepdims=True))
    if k == 1:
        return share
    symbols = table.shape[1]
    ways = _compositions(k, symbols)
    weight = np.array([factorial(k) / np.prod([factorial(int(n)) for n in way]) for way in ways])
    most = ways.max(axis=1, keepdims=True)
    split = (ways == most).sum(axis=1) > 1
    winner = np.where(split, FAILED, ways.argmax(axis=1))
    out = np.zeros(table.shape)
    rows = max(1, _CHUNK // len(ways))
    for start in range(0, len(share), rows):
        part = share[start : start + rows]
        chance = np.repeat(weight[None, :], len(part), axis=0)
        for symbol in range(symbols):
            chance *= part[:, symbol : symbol + 1] ** ways[None, :, symbol]
        for symbol in range(symbols):
            out[start : start + rows, symbol] = chance[:, winner == symbol].sum(axis=1)
    out[np.isnan(share).any(axis=1)] = np.nan
    return out
