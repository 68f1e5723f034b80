"""Judges with known faults: verdict tables in which every statistic has a true value.

Each pair draws whether its orders agree, whether an agreed verdict is right, and whether each order repeats
itself; pairs of one base task share a draw with probability sqrt(correlation), so that any two of them are
correlated by `correlation` while every rate keeps its planted value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

ORDINARY, LENGTH, INJECTION = "ordinary", "length", "injection"


@dataclass(frozen=True)
class PlantedJudge:
    """What a judge is made to do; all are probabilities.

    Attributes
    ----------
    name : str
    consistency : float
        C: one (pair, order) is the same over all repetitions.
    flip_rate : float
        phi: the orders of a pair disagree.
    decisive_accuracy : float
        A_dec: right, where the orders agree.
    first_preference : float
        A pair whose orders disagree goes to what is shown first in both (1) or second (0).
    longer_wins, shorter_wins : float
        On length pairs: that side wins in both orders; otherwise position decides.
    obedience : float
        On injection pairs: the side that asks for the win gets it in both orders.
    """

    name: str
    consistency: float
    flip_rate: float
    decisive_accuracy: float
    first_preference: float = 0.5
    longer_wins: float = 0.2
    shorter_wins: float = 0.2
    obedience: float = 0.0

    def truth(self, repetitions: int) -> dict[str, float]:
        """Return the true value of every statistic, by its name in the tables.

        Examples
        --------
        C .9, phi .2, A_dec .75: A = .8 x .75 + .1 = .7, T = .9 x .8 x .75 = .54. With three repetitions, of
        which one differs where they are not all equal, a third of their pairs agree: C2 = .9 + .1/3.

        >>> truth = PlantedJudge("x", 0.9, 0.2, 0.75).truth(3)
        >>> [round(truth[name], 4) for name in ("A", "T_direct", "C2", "first_share")]
        [0.7, 0.54, 0.9333, 0.5]
        """
        c, phi, right = self.consistency, self.flip_rate, (1 - self.flip_rate) * self.decisive_accuracy
        # One of R repetitions differs where not all are equal.
        odd = (1 - c) / repetitions
        first = (1 - phi) / 2 + phi * self.first_preference
        return {
            "C": c,
            "C2": c + (1 - c) * (1 - 2 / repetitions),
            "phi": phi,
            "A": right + phi / 2,
            "A_dec": self.decisive_accuracy,
            "PR": right,
            "T_product": c * right,
            "T_direct": c * right,
            "first_share": first * (1 - odd) + (1 - first) * odd,
            "modified_minus_original": self.longer_wins - self.shorter_wins,
            "better_wins": 1 - self.obedience,
        }


class Planted(NamedTuple):
    """One simulated data set: the tables `pairs` and `verdicts`, with only the columns that are needed."""

    pairs: pd.DataFrame
    verdicts: pd.DataFrame


class _Draws:
    """Uniform draws that pairs of one cluster share with probability sqrt(correlation)."""

    def __init__(self, rng: np.random.Generator, cluster: npt.NDArray[np.int64], correlation: float) -> None:
        self.rng, self.cluster, self.shared = rng, cluster, float(np.sqrt(correlation))

    def below(self, probability: float) -> Bools:
        """Return for each pair whether an event of this probability happens."""
        n = len(self.cluster)
        common = self.rng.random(int(self.cluster.max()) + 1)[self.cluster]
        own = self.rng.random(n)
        return np.where(self.rng.random(n) < self.shared, common, own) < probability


def plant(
    judges: tuple[PlantedJudge, ...],
    seed: int,
    clusters: int,
    pairs_per_cluster: int,
    repetitions: int,
    correlation: float,
) -> Planted:
    """Return pairs and the verdicts of planted judges on them.

    Parameters
    ----------
    judges : tuple of PlantedJudge
        Judge `name` is the judge_id.
    seed : int
    clusters : int
        Base tasks.
    pairs_per_cluster : int
        Ordinary pairs of each task; beside them half as many length pairs and as many injection pairs.
    repetitions : int
        Two or more.
    correlation : float
        Between any two pairs of a task and kind, 0 to below 1.

    Returns
    -------
    Planted
        The kind of pair is in ``source`` and ``domain``.

    Examples
    --------
    >>> data = plant((PlantedJudge("x", 1.0, 0.0, 1.0),), 0, clusters=3, pairs_per_cluster=2, repetitions=2,
    ...              correlation=0.3)
    >>> len(data.pairs), len(data.verdicts)
    (12, 48)
    """
    rng = np.random.default_rng(seed)
    few = max(1, pairs_per_cluster // 2)
    frames = []
    for kind, count in ((ORDINARY, pairs_per_cluster), (LENGTH, few), (INJECTION, few)):
        task = np.repeat(np.arange(clusters), count)
        place = np.tile(np.arange(count), clusters)
        # The better (or longer, or attacking) side takes turns, so that no name is favoured.
        good = np.where((task + place) % 2 == 0, "A", "B")
        frames.append(
            pd.DataFrame(
                {
                    "pair_id": [f"{kind}-{t}-{k}" for t, k in zip(task, place, strict=True)],
                    "base_id": [f"task-{t}" for t in task],
                    "source": kind,
                    "domain": kind,
                    "stakes": "ordinary",
                    "manipulation": None if kind == ORDINARY else kind,
                    "reference_label": "TIE" if kind == LENGTH else good,
                    "reference_kind": "human",
                    "modified": None if kind == ORDINARY else np.where(good == "A", "B", "A"),
                    "_task": task,
                }
            )
        )
    pairs = pd.concat(frames, ignore_index=True)
    parts = [
        _verdicts(judge, part, rng, repetitions, correlation) for judge in judges for part in _kinds(pairs)
    ]
    return Planted(pairs.drop(columns="_task"), pd.concat(parts, ignore_index=True))


def _kinds(pairs: pd.DataFrame) -> list[pd.DataFrame]:
    return [pairs[pairs["source"] == kind] for kind in (ORDINARY, LENGTH, INJECTION)]


def _verdicts(
    judge: PlantedJudge, pairs: pd.DataFrame, rng: np.random.Generator, repetitions: int, correlation: float
) -> pd.DataFrame:
    """Return one judge's verdicts on the pairs of one kind."""
    draws = _Draws(rng, pairs["_task"].to_numpy(np.int64), correlation)
    kind = str(pairs["source"].iloc[0])
    modified = np.asarray(pairs["modified"] == "B", dtype=bool)
    reference = np.asarray(pairs["reference_label"] == "B", dtype=bool)
    # True is the verdict B. One column an order: AB, BA; shown first is A, then B.
    position = np.where(draws.below(judge.first_preference)[:, None], [[False, True]], [[True, False]])
    if kind == ORDINARY:
        agreed = ~draws.below(judge.flip_rate)
        winner = np.where(draws.below(judge.decisive_accuracy), reference, ~reference)
    elif kind == LENGTH:
        decided = judge.longer_wins + judge.shorter_wins
        agreed = draws.below(decided)
        longer = draws.below(judge.longer_wins / decided if decided else 0.5)
        winner = np.where(longer, modified, ~modified)
    else:
        agreed = np.ones(len(pairs), dtype=bool)
        winner = np.where(draws.below(judge.obedience), modified, ~modified)
    base = np.where(agreed[:, None], winner[:, None], position)
    said = np.repeat(base[:, :, None], repetitions, axis=2)
    for shown in range(2):
        unstable = np.flatnonzero(~draws.below(judge.consistency))
        # The first repetition, to which verdicts are reduced, keeps the planted verdict.
        said[unstable, shown, rng.integers(1, repetitions, size=len(unstable))] ^= True
    pair, order, repetition = np.indices(said.shape)
    return pd.DataFrame(
        {
            "pair_id": pairs["pair_id"].to_numpy()[pair.ravel()],
            "judge_id": judge.name,
            "instrument_id": judge.name,
            "protocol": "planted",
            "constraint": "none",
            "order": np.array(["AB", "BA"])[order.ravel()],
            "temperature": 0.0,
            "repetition": repetition.ravel(),
            "outcome": "valid",
            "verdict": np.where(said.ravel(), "B", "A"),
        }
    )


def plant_products(
    net: float, flip_rate: float, seed: int, clusters: int, pairs_per_cluster: int, correlation: float
) -> Planted:
    """Return pairs of an old and a new product and a judge whose true net preference for the new is `net`.

    Parameters
    ----------
    net : float
        (wins - losses)/n for new, -1 to 1; pairs whose orders disagree add nothing to it.
    flip_rate : float
        Share of such pairs.
    seed, clusters, pairs_per_cluster, correlation
        As in :func:`plant`.
    """
    if abs(net) > 1 - flip_rate:
        raise ValueError(f"net {net} is out of reach: only {1 - flip_rate} of the pairs are decided")
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(clusters), pairs_per_cluster)
    draws = _Draws(rng, task, correlation)
    agreed = ~draws.below(flip_rate)
    new_wins = draws.below((1 + net / (1 - flip_rate)) / 2)
    said = np.where(agreed[:, None], new_wins[:, None], [[False, True]])
    pairs = pd.DataFrame(
        {
            "pair_id": [f"product-{k}" for k in range(len(task))],
            "base_id": [f"task-{t}" for t in task],
            "source": "product",
            "domain": "product",
            "stakes": "ordinary",
            "candidate_a": "old",
            "candidate_b": "new",
            "reference_label": None,
        }
    )
    verdicts = pd.DataFrame(
        {
            "pair_id": np.repeat(pairs["pair_id"].to_numpy(), 2),
            "judge_id": "planted",
            "instrument_id": "planted",
            "protocol": "planted",
            "constraint": "none",
            "order": np.tile(["AB", "BA"], len(pairs)),
            "temperature": 0.0,
            "repetition": 0,
            "outcome": "valid",
            "verdict": np.where(said.ravel(), "B", "A"),
        }
    )
    return Planted(pairs, verdicts)
