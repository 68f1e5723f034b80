"""Parameters of the variance analyses: the G-study, the ANOVA of T and the D-study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options

GModel = Literal["main", "extended"]
"""``main``: p, j, f, o, pj, pf, po and the residual, as in the audit. ``extended``: every interaction that
the data can tell from the residual."""

OrderAs = Literal["random", "fixed"]
"""Whether the two presentation orders are a random sample of orders or the only two there are."""


class DStudyOptions(Options):
    """What a design has to reach, which designs are looked at, and what they cost.

    Attributes
    ----------
    target_coefficient : float or None
        The wanted generalizability coefficient, above 0 and below 1.
    target_standard_error : float or None
        The wanted standard error of the mean direction over pairs, in the verdict's unit (A is 1, B is 0).
    pairs, judges, formats, orders, repetitions : tuple of int
        The numbers of levels to try.
    price_per_call, price_per_pair : float
        In one currency. A pair's price is what it costs to obtain it (writing, labelling).
    """

    target_coefficient: float | None = Field(default=0.8, gt=0, lt=1)
    target_standard_error: float | None = Field(default=None, gt=0)
    pairs: tuple[int, ...] = (25, 50, 100, 200, 400, 800, 1600)
    judges: tuple[int, ...] = (1, 2, 3, 4, 6)
    formats: tuple[int, ...] = (1, 2, 3, 5)
    orders: tuple[int, ...] = (1, 2)
    repetitions: tuple[int, ...] = (1, 2, 3, 5, 10)
    price_per_call: float = Field(default=1.0, ge=0)
    price_per_pair: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _has_levels(self) -> DStudyOptions:
        problems = [
            f"{name} is {list(levels)}: give at least one number, each 1 or more"
            for name in ("pairs", "judges", "formats", "orders", "repetitions")
            if not (levels := getattr(self, name)) or min(levels) < 1
        ]
        if max(self.orders, default=1) > 2:
            problems.append(f"orders is {list(self.orders)}: a pair has one or two")
        if problems:
            raise ValueError("; ".join(problems))
        return self


class VarianceOptions(Options):
    """How verdicts are decomposed.

    Attributes
    ----------
    models : tuple
        Which random-effects models to fit.
    orders : tuple
        How presentation order enters each of them.
    tie : {"half", "missing"}
        A tie lies between A (1) and B (0), or is left out and counted. An abstention and a failed
        judgment are always left out and counted.
    level : float
        Coverage of the intervals.
    draws : int
        Draws of the pivotal intervals.
    resamples : int
        Resamples of pairs for the ANOVA's intervals.
    seed : int
        Of draws and resamples.
    d_study : DStudyOptions
        The designs to compare.
    """

    models: tuple[GModel, ...] = ("main", "extended")
    orders: tuple[OrderAs, ...] = ("random", "fixed")
    tie: Literal["half", "missing"] = "half"
    level: float = Field(default=0.95, gt=0.5, lt=1)
    draws: int = Field(default=10_000, ge=100)
    resamples: int = Field(default=2_000, ge=100)
    seed: int = Field(default=7, ge=0)
    d_study: DStudyOptions = DStudyOptions()
