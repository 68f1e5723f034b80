"""A SIMULATED panel with planted perception and preference, so that every statistic has a known answer.

An item has latent attribute differences; a judge resolves an attribute with its own probability and, when it
does, sees the latent sign with its own accuracy; order matters with its own probability of following the
position. The judge's verdict is drawn from a logistic model of its own stable directions with its own planted
weights; the reference from the latent signs with the source's planted weights.
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
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B.
    reference : numpy.ndarray of int8, shape (n_items,)
        +1 for A, -1 for B.
    source : numpy.ndarray of int, shape (n_items,)
        Source of each item.
    weights : numpy.ndarray, shape (n_judges, n_attributes)
        Planted preference of each judge (log-odds a unit of direction).
    reference_weights : numpy.ndarray, shape (n_sources, n_attributes)
        Planted preference behind each source's reference.
    """

    first: np.ndarray
    second: np.ndarray
    verdicts: np.ndarray
    reference: np.ndarray
    source: np.ndarray
    weights: np.ndarray
    reference_weights: np.ndarray

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

    shape = (n_judges, n_items, n_attributes)
    first = np.empty(shape, dtype=np.int8)
    second = np.empty(shape, dtype=np.int8)
    verdicts = np.empty((n_judges, n_items), dtype=np.int8)
    for j in range(n_judges):
        resolves, sees = rng.uniform(*resolution), rng.uniform(*accuracy)
        seen = np.where(rng.random((n_items, n_attributes)) < sees, truth, -truth).astype(np.int8)
        resolved = rng.random((n_items, n_attributes)) < resolves
        for shown_first, reads in ((np.int8(1), first), (np.int8(-1), second)):
            by_position = rng.random((n_items, n_attributes)) < position_share
            reads[j] = np.where(resolved, np.where(by_position, shown_first, seen), 0)
        stable = np.where(first[j] == second[j], first[j], 0)
        verdicts[j] = _draw(rng, stable @ weights[j])
    return SimulatedPanel(first, second, verdicts, reference, source, weights, reference_weights)


def _draw(rng: np.random.Generator, log_odds: np.ndarray) -> np.ndarray:
    probability = 1.0 / (1.0 + np.exp(-log_odds))
    return np.where(rng.random(log_odds.shape) < probability, 1, -1).astype(np.int8)
