"""How judges are adapted: budgets, resamples, and the simulated panel that ships with the project."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options


class SimulatedPanelOptions(Options):
    """The planted panel. Everything made from it is marked SIMULATED."""

    n_judges: int = Field(default=3, ge=2, le=100)
    n_items: int = Field(default=900, ge=20)
    n_attributes: int = Field(default=87, ge=1, le=1_000)
    n_sources: int = Field(default=2, ge=1)
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
    bootstrap: int = Field(default=10_000, ge=200)
    panel: SimulatedPanelOptions = SimulatedPanelOptions()

    @model_validator(mode="after")
    def _budgets_ascend(self) -> AdaptationOptions:
        if list(self.budgets) != sorted(set(self.budgets)) or any(b < 2 for b in self.budgets):
            raise ValueError(f"budgets {list(self.budgets)} must ascend, each once and at least 2")
        return self
