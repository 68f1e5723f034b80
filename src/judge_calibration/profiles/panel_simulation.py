"""A SIMULATED panel with planted perception and preference, so that every statistic has a known answer.

An item has latent attribute differences; a judge resolves an attribute with a probability of the two and,
when it does, sees the latent sign with its own accuracy; each order follows the position instead with a
probability of judge and attribute. The judge's verdicts (one an order, drawn apart) come from a logistic
model of its own stable directions with its own planted weights; the reference from the latent signs with the
source's planted weights. What every statistic ought to be then follows: see
:mod:`judge_calibration.profiles.planted`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Preferences = Literal["own", "identical", "opposite"]


@dataclass(frozen=True)
class SimulatedPanel:
    """What was planted, and what the panel says. SIMULATED.

    Attributes
    ----------
    first, second : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Directions by order, mapped back to identity.
    verdicts, second_verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 unresolved; drawn apart for the orders AB and BA.
    reference : numpy.ndarray of int8, shape (n_items,)
        +1 for A, -1 for B.
    source : numpy.ndarray of int, shape (n_items,)
        Source of each item.
    weights : numpy.ndarray, shape (n_judges, n_attributes)
        Planted preference of each judge (log-odds a unit of direction).
    reference_weights : numpy.ndarray, shape (n_sources, n_attributes)
        Planted preference behind each source's reference.
    resolution, position : numpy.ndarray, shape (n_judges, n_attributes)
        Planted probability of resolving a cell, and of a read that follows the position.
    accuracy : numpy.ndarray, shape (n_judges,)
        Planted probability of seeing the true sign.
    picks_second : numpy.ndarray of bool, shape (n_judges,)
        Judges whose position reads name the second answer.
    """

    first: np.ndarray
    second: np.ndarray
    verdicts: np.ndarray
    reference: np.ndarray
    source: np.ndarray
    weights: np.ndarray
    reference_weights: np.ndarray
    second_verdicts: np.ndarray
    resolution: np.ndarray
    position: np.ndarray
    accuracy: np.ndarray
    picks_second: np.ndarray

    @property
    def stable(self) -> np.ndarray:
        """Stable directions, shape (n_judges, n_items, n_attributes)."""
        return np.where(self.first == self.second, self.first, np.int8(0))


def simulate_panel(
    seed: int,
    n_judges: int,
    n_items: int,
    n_attributes: int,
    n_sources: int = 1,
    preferences: Preferences = "own",
    resolution: tuple[float, float] = (0.3, 0.7),
    accuracy: tuple[float, float] = (0.8, 0.98),
    position_share: float = 0.1,
    strength: float = 1.0,
    attribute_spread: float = 0.0,
    biased_judges: int = 0,
    biased_share: float = 0.7,
    unresolved_share: float = 0.0,
) -> SimulatedPanel:
    """Draw a panel.

    Parameters
    ----------
    seed : int
        Of the generator; the same seed gives the same panel.
    n_judges, n_items, n_attributes, n_sources : int
        Sizes.
    preferences : {"own", "identical", "opposite"}
        Judges' planted weights: independent draws, one shared vector, or two camps with opposite signs.
    resolution, accuracy : pair of float in [0, 1]
        Ranges from which each judge's probability of resolving a read, and of seeing the true sign, is drawn.
    position_share : float in [0, 1]
        Share of reads in which a judge names a position instead of an answer.
    strength : float
        Standard deviation of the planted weights.
    attribute_spread : float in [0, 1)
        How far attributes differ: an attribute's resolution is the judge's times a factor in [1 - spread, 1],
        its position share the judge's times one in [1 - spread, 1 + spread].
    biased_judges : int
        The last so many judges follow the position in `biased_share` of reads, and name the second answer.
    biased_share : float in [0, 1]
    unresolved_share : float in [0, 1)
        Share of holistic verdicts that are ties or unread.

    Examples
    --------
    >>> panel = simulate_panel(0, n_judges=2, n_items=5, n_attributes=3)
    >>> panel.first.shape, sorted(set(panel.verdicts.ravel().tolist())) == [-1, 1]
    ((2, 5, 3), True)
    """
    rng = np.random.default_rng(seed)
    truth = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n_items, n_attributes))
    source = rng.integers(0, n_sources, size=n_items)
    reference_weights = rng.normal(0.0, strength, size=(n_sources, n_attributes))
    reference = _draw(rng, (truth * reference_weights[source]).sum(axis=1))

    shared = rng.normal(0.0, strength, size=n_attributes)
    if preferences == "own":
        weights = rng.normal(0.0, strength, size=(n_judges, n_attributes))
    elif preferences == "identical":
        weights = np.tile(shared, (n_judges, 1))
    else:
        weights = shared * np.where(np.arange(n_judges) % 2 == 0, 1.0, -1.0)[:, None]

    # Streams of their own: without spread, retests and biased judges the panel is the same as before.
    apart, retest = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    grid = np.linspace(0.0, 1.0, n_attributes) if n_attributes > 1 else np.zeros(1)
    resolves_by = 1 - attribute_spread * apart.permutation(grid)
    follows_by = 1 + attribute_spread * (2 * apart.permutation(grid) - 1)
    picks_second = np.arange(n_judges) >= n_judges - biased_judges
    shape = (n_judges, n_items, n_attributes)
    first = np.empty(shape, dtype=np.int8)
    second = np.empty(shape, dtype=np.int8)
    verdicts = np.empty((2, n_judges, n_items), dtype=np.int8)
    resolves, position = np.empty((n_judges, n_attributes)), np.empty((n_judges, n_attributes))
    sees = np.empty(n_judges)
    for j in range(n_judges):
        resolves[j], sees[j] = rng.uniform(*resolution) * resolves_by, rng.uniform(*accuracy)
        position[j] = np.clip((biased_share if picks_second[j] else position_share) * follows_by, 0, 1)
        seen = np.where(rng.random((n_items, n_attributes)) < sees[j], truth, -truth).astype(np.int8)
        resolved = rng.random((n_items, n_attributes)) < resolves[j]
        chosen = np.int8(-1 if picks_second[j] else 1)
        for shown_first, reads in ((np.int8(1), first), (np.int8(-1), second)):
            by_position = rng.random((n_items, n_attributes)) < position[j]
            reads[j] = np.where(resolved, np.where(by_position, chosen * shown_first, seen), 0)
        log_odds = np.where(first[j] == second[j], first[j], 0) @ weights[j]
        verdicts[0, j], verdicts[1, j] = _draw(rng, log_odds), _draw(retest, log_odds)
    if unresolved_share:
        verdicts[retest.random(verdicts.shape) < unresolved_share] = 0
    return SimulatedPanel(
        first,
        second,
        verdicts[0],
        reference,
        source,
        weights,
        reference_weights,
        verdicts[1],
        resolves,
        position,
        sees,
        picks_second,
    )


def draw_verdicts(stable: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw one judge's verdicts from sigmoid(w . s): +1 for A, -1 for B.

    Examples
    --------
    >>> draw_verdicts(np.array([[1], [-1]]), np.array([50.0]), np.random.default_rng(0)).tolist()
    [1, -1]
    """
    return _draw(rng, stable @ weights)


def _draw(rng: np.random.Generator, log_odds: np.ndarray) -> np.ndarray:
    probability = 1.0 / (1.0 + np.exp(-log_odds))
    return np.where(rng.random(log_odds.shape) < probability, 1, -1).astype(np.int8)
