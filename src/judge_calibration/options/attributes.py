"""Which attributes are read, by which judges, on how many pairs, and how profiles are made."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options
from judge_calibration.options.judging import JudgingOptions


class HolisticOptions(Options):
    """Which of a judge's verdicts stands for its overall choice.

    Parameters
    ----------
    rule : {"first_order", "order_stable"}
        The verdict in the order AB (as in the paper), or the one that both orders share.
    protocol, constraint, temperature
        The judge's cell that is taken; null takes the judge's first in the table.
    """

    rule: Literal["first_order", "order_stable"] = "first_order"
    protocol: str | None = None
    constraint: str | None = None
    temperature: float | None = None


class AttributesOptions(Options):
    """All parameters of the pipeline `attributes`."""

    seed: int = Field(default=7, ge=0)
    pairs: int | None = Field(default=4, ge=1)
    """Pairs that are read, drawn by hash from the judged ones and stratified; null: all of them."""
    salt: str = "attribute reads 1"
    attributes: tuple[str, ...] = ()
    """Names of the inventory to read; empty: all."""
    detection_unit: Literal["reads", "cells"] = "reads"
    position_limit: float = Field(default=0.75, gt=0.5, le=1)
    """A judge that names one position in at least this share of its resolved reads is left out of the
    reduced panel."""
    subjective_threshold: str = "1/3"
    """Minority share from which an item belongs to the SubjectiveSet, as a fraction or decimal."""
    holistic: HolisticOptions = HolisticOptions()
    judging: JudgingOptions
    """Judges that use the protocol `attribute`."""

    @model_validator(mode="after")
    def _threshold_is_a_share(self) -> AttributesOptions:
        try:
            value = Fraction(self.subjective_threshold)
        except (ValueError, ZeroDivisionError) as problem:
            raise ValueError(
                f"subjective_threshold {self.subjective_threshold!r} is no fraction such as '1/3'"
            ) from problem
        if not 0 < value <= Fraction(1, 2):
            raise ValueError(
                f"subjective_threshold {self.subjective_threshold!r} is not above 0 and up to 1/2"
            )
        return self
