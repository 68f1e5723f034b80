"""Four simulated designs with known components, made from seeds, for the comparison with lme4.

`python tests/oracles/make_fixtures.py` fits them with R's lme4 (Debian: r-cran-lme4, r-cran-jsonlite) and
freezes the answers in lme4.json beside this file. The tests make the same data again and compare.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pandas as pd

FACETS = ("pair", "judge", "format", "order")
MAIN = (
    ("pair",),
    ("judge",),
    ("format",),
    ("order",),
    ("pair", "judge"),
    ("pair", "format"),
    ("pair", "order"),
)
EXTENDED = (
    *MAIN,
    ("judge", "format"),
    ("judge", "order"),
    ("format", "order"),
    ("pair", "judge", "order"),
)


@dataclass(frozen=True)
class Design:
    """One simulated data set and the models that are fitted to it."""

    name: str
    seed: int
    levels: tuple[int, int, int, int]
    repetitions: int
    deviations: dict[tuple[str, ...], float]
    residual: float
    binary: bool
    lost: float
    models: tuple[str, ...]


DESIGNS = (
    Design(
        "balanced",
        20260101,
        (25, 5, 4, 2),
        3,
        {
            ("pair",): 0.8,
            ("judge",): 0.3,
            ("format",): 0.2,
            ("order",): 0.3,
            ("pair", "judge"): 0.5,
            ("pair", "format"): 0.3,
            ("pair", "order"): 0.4,
            ("judge", "format"): 0.2,
            ("judge", "order"): 0.4,
            ("format", "order"): 0.2,
            ("pair", "judge", "order"): 0.3,
        },
        0.6,
        binary=False,
        lost=0.0,
        models=("main", "main_fixed", "extended"),
    ),
    Design(
        "boundary",
        20260102,
        (20, 4, 3, 2),
        2,
        {("pair",): 0.6, ("pair", "judge"): 0.2},
        1.0,
        binary=False,
        lost=0.0,
        models=("main", "main_fixed", "extended"),
    ),
    Design(
        "binary",
        20260103,
        (30, 4, 3, 2),
        3,
        {("pair",): 1.0, ("pair", "judge"): 0.8, ("pair", "order"): 0.5, ("judge", "order"): 0.5},
        0.4,
        binary=True,
        lost=0.0,
        models=("main", "main_fixed", "extended"),
    ),
    Design(
        "unbalanced",
        20260104,
        (25, 4, 3, 2),
        3,
        {
            ("pair",): 1.0,
            ("judge",): 0.3,
            ("order",): 0.3,
            ("pair", "judge"): 0.8,
            ("pair", "order"): 0.5,
            ("judge", "order"): 0.4,
        },
        0.5,
        binary=True,
        lost=0.3,
        models=("main", "main_fixed", "extended"),
    ),
)


def simulate(design: Design) -> pd.DataFrame:
    """Return the design's rows: the level of each facet as an integer, and y."""
    rng = np.random.default_rng(design.seed)
    sizes = dict(zip(FACETS, design.levels, strict=True))
    y = np.zeros(design.levels)
    for term, deviation in design.deviations.items():
        y = y + deviation * rng.normal(size=[sizes[f] if f in term else 1 for f in FACETS])
    full = y[..., None] + design.residual * rng.normal(size=(*design.levels, design.repetitions))
    kept = rng.random(full.shape) >= design.lost
    index = np.indices(full.shape)
    frame = pd.DataFrame({facet: index[axis][kept] for axis, facet in enumerate(FACETS)})
    values = full[kept]
    frame["y"] = (values > 0).astype(float) if design.binary else np.round(values, 6)
    return frame


def fingerprint(frame: pd.DataFrame) -> str:
    """Return a hash of the rows, so that a fixture is never compared with other data."""
    return hashlib.sha256(frame.to_csv(index=False, lineterminator="\n").encode()).hexdigest()


def model_of(name: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return random and fixed terms of `main`, `main_fixed` or `extended`."""
    terms = list(EXTENDED if name == "extended" else MAIN)
    if name.endswith("_fixed"):
        return [term for term in terms if term != ("order",)], [("order",)]
    return terms, []
