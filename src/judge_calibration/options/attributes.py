"""Which attributes are read, by which judges, on how many pairs, and how profiles are made."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options
from judge_calibration.options.judging import JudgingOptions

_READ_COLUMNS = (
    *("pair_id", "judge_id", "attribute", "order", "direction", "outcome", "confidence", "magnitude"),
)


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


class ReadsFile(Options):
    """Reads that were made elsewhere: a file, a folder of files, or a pattern (CSV or Parquet).

    Parameters
    ----------
    layout : {"long", "packed"}
        ``long``: a row a read, with pair_id, judge_id, attribute, order (AB, BA), direction, and outcome if
        it is known; confidence and magnitude, where they are, are checked (0 to 1). ``packed``: one file a
        judge, a row an item (pair_id), a column an attribute holding 3 (r1 + 1) + (r2 + 1), with r = 1 for
        A, -1 for B, 0 for neither in the orders AB and BA.
    judge_id
        The judge of the file; null: its column judge_id, else (packed) the file's name without its ending.
    columns
        For files with other column names: ours to theirs, e.g. ``{pair_id: item}``.
    directions
        For other codes of the direction: theirs to A, B or NONE, e.g. ``{"1": A, "-1": B, "0": NONE}``.
    direction_names : {"identity", "shown"}
        Whether a direction names the pair's own candidate in both orders, or the answer as it was shown (then
        it is swapped in order BA). A wrong choice looks plausible: say what the file's maker says.
    """

    path: str = Field(min_length=1)
    layout: Literal["long", "packed"]
    judge_id: str | None = Field(default=None, min_length=1)
    columns: dict[str, str] = Field(default_factory=dict)
    directions: dict[str, Literal["A", "B", "NONE"]] = Field(default_factory=dict)
    direction_names: Literal["identity", "shown"] = "identity"

    @model_validator(mode="after")
    def _columns_are_ours(self) -> ReadsFile:
        unknown = sorted(set(self.columns) - set(_READ_COLUMNS)) if self.layout == "long" else []
        if unknown:
            raise ValueError(
                f"columns names {', '.join(map(repr, unknown))}, which no read has; "
                f"write ours to theirs, ours being {', '.join(_READ_COLUMNS)}"
            )
        return self


class PanelOptions(Options):
    """A SIMULATED panel over the inventory's attributes, with planted perception and preference."""

    n_judges: int = Field(default=21, ge=2, le=200)
    n_items: int = Field(default=50_013, ge=20)
    n_sources: int = Field(default=17, ge=1)
    preferences: Literal["own", "identical", "opposite"] = "own"
    resolution_low: float = Field(default=0.3, ge=0, le=1)
    resolution_high: float = Field(default=0.8, ge=0, le=1)
    accuracy_low: float = Field(default=0.8, ge=0, le=1)
    accuracy_high: float = Field(default=0.98, ge=0, le=1)
    position_share: float = Field(default=0.15, ge=0, le=1)
    attribute_spread: float = Field(default=0.5, ge=0, lt=1)
    """How far attributes differ in resolution and in position reads."""
    strength: float = Field(default=0.4, ge=0, le=10)
    """Standard deviation of the planted weights."""
    biased_judges: int = Field(default=2, ge=0)
    """The last so many judges name the second answer, whatever it is, in `biased_share` of reads."""
    biased_share: float = Field(default=0.7, ge=0, le=1)
    unresolved_share: float = Field(default=0.03, ge=0, lt=1)
    """Share of holistic verdicts that are ties or unread."""
    check_items: int = Field(default=10_000, ge=20)
    """Items of the two further panels, of identical and of opposite preferences, of the recovery check."""

    @model_validator(mode="after")
    def _ranges_ascend(self) -> PanelOptions:
        if self.resolution_low > self.resolution_high or self.accuracy_low > self.accuracy_high:
            raise ValueError("the lower end of resolution or accuracy is above its upper end; swap them")
        if self.biased_judges >= self.n_judges:
            raise ValueError("biased_judges leaves no other judge; have more judges, or fewer biased ones")
        return self


class ScreeningOptions(Options):
    """Keep only items on which one named judge has order-stable reads, as JudgeProfile did."""

    judge: str = Field(min_length=1)
    least_stable: int = Field(default=1, ge=1)
    """Attributes with a stable direction that an item needs."""


class NullOptions(Options):
    """The identical-preference null and the reliability of profiles."""

    repetitions: int = Field(default=20, ge=1, le=1_000)
    scale: bool = False
    """Whether weights are scaled to unit length before they are averaged (the paper does not say)."""
    splits: int = Field(default=20, ge=1, le=1_000)
    """Random halves of the items."""


class AttributesOptions(Options):
    """All parameters of the pipeline `attributes`."""

    seed: int = Field(default=7, ge=0)
    pairs: int | None = Field(default=4, ge=0)
    """Pairs that are read, drawn by hash from the judged ones and stratified; null: all of them; 0: none."""
    reads_files: tuple[ReadsFile, ...] = ()
    """Reads made elsewhere; they join the asked ones, over the same items."""
    panel: PanelOptions | None = None
    """A SIMULATED panel in place of all other reads and verdicts."""
    screening: ScreeningOptions | None = None
    salt: str = "attribute reads 1"
    attributes: tuple[str, ...] = ()
    """Names of the inventory to read; empty: all."""
    description: Literal["full", "definition"] = "full"
    """What a judge is told of an attribute: its definition, what more of it looks like and what it is not, or
    the definition alone (less than half the tokens of a read whose pair is in the prefix cache)."""
    detection_unit: Literal["reads", "cells"] = "reads"
    position_limit: float = Field(default=0.8, gt=0.5, le=1)
    """A judge that names one position in at least this share of its resolved reads is left out of the
    reduced panel."""
    subjective_threshold: str = "1/3"
    """Minority share from which an item belongs to the SubjectiveSet, as a fraction or decimal."""
    kappa_marginals: Literal["joint", "own"] = "joint"
    """Chance agreement from the jointly resolved cells, or from all that each judge resolves."""
    penalty: float = Field(default=1.0, gt=0)
    """C of the weight profiles' logistic regression, as in scikit-learn."""
    intercept: bool = True
    """Whether weight profiles have an unpenalised intercept."""
    profile_null: NullOptions = NullOptions()
    resamples: int = Field(default=1_000, ge=100)
    """Of items and judges, for two-way intervals."""
    holistic: HolisticOptions = HolisticOptions()
    judging: JudgingOptions
    """Judges that use the protocol `attribute`."""

    @model_validator(mode="after")
    def _panel_stands_alone(self) -> AttributesOptions:
        if self.panel is not None and (self.reads_files or self.pairs != 0):
            raise ValueError(
                "a SIMULATED panel never mixes with other reads: set pairs: 0 and no reads_files"
            )
        return self

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
