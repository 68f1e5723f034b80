"""How judges are adapted: budgets, resamples, and the simulated panel that ships with the project."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options
from judge_calibration.options.judging import Constraint
from judge_calibration.options.sft import Budget, SftOptions


class HeldOutOptions(Options):
    """Which held-out pairs adapted judges are asked about: the same for every method."""

    size: int | None = Field(default=None, ge=1)
    """Pairs a source, drawn by hash and spread over manipulations, domains and difficulties; null: all."""
    salt: str = "held out 1"
    sources: tuple[str, ...] = ()
    """Empty: all."""
    manipulations: tuple[str, ...] = ()
    """Of the pairs that have a controlled change only those with one of these. Empty: all."""


class EditedRubric(Options):
    """A rubric that a person wrote or changed, in place of the one that would be written."""

    judge_id: str
    source: str
    file: str
    """A text file, path from the project's root."""
    budget: Budget | None = None
    """Null: at every budget."""


class RubricOptions(Options):
    """How rubrics are written from training pairs, and which judges judge with them."""

    judges: tuple[str, ...] = Field(min_length=1)
    """Judges of `judging` that are adapted; they are asked with and without the rubric."""
    protocol: str = "direct"
    constraint: Constraint | None = None
    """Null: the first that the judge uses the protocol with."""
    temperature: float | None = None
    """Null: the judge's first."""
    repetitions: int = Field(default=1, ge=1, le=100)
    """C and T need two or more."""
    writer: str = "weights"
    """``weights``: a fixed form, from the weights of the judge's own attribute reads; ``own``: the judge's
    own model; else the id of a judge of `judging` whose model writes."""
    budgets: tuple[Budget, ...] = Field(default=("full",), min_length=1)
    resamples: int = Field(default=1, ge=1, le=100)
    """Rubrics for so many of the rankings of the training pairs, below full; at most `resamples` of the
    adaptation."""
    attributes: int = Field(default=6, ge=1, le=87)
    """Attributes that the writer ``weights`` names at most."""
    most_words: int = Field(default=250, ge=10, le=5_000)
    """A longer rubric is refused, not cut."""
    shown_pairs: int = Field(default=8, ge=1, le=1_000)
    """Training pairs that a writing model is shown at most, spread evenly over the ranking of its budget."""
    shown_words: int = Field(default=120, ge=5)
    """Words of each text that a writing model is shown; what is cut is marked and counted."""
    write_tokens: int = Field(default=400, ge=16, le=16_384)
    edited: tuple[EditedRubric, ...] = ()

    @model_validator(mode="after")
    def _each_once(self) -> RubricOptions:
        for name, values in (("judges", self.judges), ("budgets", self.budgets)):
            if len(set(values)) != len(values):
                raise ValueError(f"{name} {list(values)} must name each once")
        return self


class SimulatedPanelOptions(Options):
    """The planted panel. Everything made from it is marked SIMULATED."""

    n_judges: int = Field(default=3, ge=2, le=100)
    n_items: int = Field(default=900, ge=20)
    n_attributes: int = Field(default=87, ge=1, le=1_000)
    n_sources: int = Field(default=2, ge=1)
    coin_sources: int = Field(default=0, ge=0)
    """The last so many sources have references by a coin: nothing can be gained there."""
    preferences: Literal["own", "identical", "opposite"] = "own"
    resolution_low: float = Field(default=0.3, ge=0, le=1)
    resolution_high: float = Field(default=0.7, ge=0, le=1)
    accuracy_low: float = Field(default=0.8, ge=0, le=1)
    accuracy_high: float = Field(default=0.98, ge=0, le=1)
    position_share: float = Field(default=0.1, ge=0, le=1)
    strength: float = Field(default=1.0, ge=0, le=10)

    @model_validator(mode="after")
    def _ranges_ascend(self) -> SimulatedPanelOptions:
        if self.resolution_low > self.resolution_high or self.accuracy_low > self.accuracy_high:
            raise ValueError("the lower end of resolution or accuracy is above its upper end; swap them")
        if self.coin_sources >= self.n_sources:
            raise ValueError(
                f"coin_sources {self.coin_sources} must be fewer than n_sources {self.n_sources}"
            )
        return self


class AdaptationOptions(Options):
    """All parameters of the pipeline `adaptation`."""

    seed: int = Field(default=7, ge=0)
    budgets: tuple[int, ...] = (32, 64, 128, 256)
    """Labelled training pairs a source; "full" is always added."""
    resamples: int = Field(default=10, ge=1, le=1_000)
    """Rankings of the training pairs; number 0 is the frozen one of the main table."""
    penalty: float = Field(default=1.0, gt=0)
    """C of the logistic regression, as in scikit-learn."""
    intercept: bool = False
    """Whether a reweighting may learn how often A is the better answer. That is a habit of the list of pairs
    and of no answer: with it, verdicts depend on which answer is called A."""
    bootstrap: int = Field(default=10_000, ge=200)
    population: Literal["pairs", "judged_pairs"] = "pairs"
    """What training subsets and held-out pairs are taken from: all pairs, or those that are judged (and so
    may have attribute reads, which reweighting and rubrics from weights need)."""
    bins: int = Field(default=10, ge=2, le=100)
    """Of the reliability curve."""
    held_out: HeldOutOptions = HeldOutOptions()
    controlled: HeldOutOptions | None = None
    """Held-out pairs with a controlled change that every adapted judge and its base are asked about as well,
    whatever source the judge learned from: does it now choose length, style, an injection? They count in
    `adaptation_changes`, by controlled change, and in no gain. Null: none beside those of `held_out`."""
    rubrics: RubricOptions | None = None
    """Null: no rubric is written and nothing is asked for one."""
    sft: SftOptions | None = None
    """Null: no judge is trained. Needs the environment of `make env-sft`."""
    work_pairs: int = Field(default=1_000, ge=1)
    """New pairs to be judged, for which methods are compared at equal cost."""
    panel: SimulatedPanelOptions = SimulatedPanelOptions()

    @model_validator(mode="after")
    def _budgets_ascend(self) -> AdaptationOptions:
        if list(self.budgets) != sorted(set(self.budgets)) or any(b < 2 for b in self.budgets):
            raise ValueError(f"budgets {list(self.budgets)} must ascend, each once and at least 2")
        return self
