"""Parameters of the reporting pipeline: views, slices, intervals, comparisons and prices."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options
from judge_calibration.options.gates import DecisionRule, SelfTestOptions
from judge_calibration.options.variance import VarianceOptions

View = Literal["strict", "resolved", "policy", "failures_right", "failures_wrong"]
"""How failed, tied and abstained judgments are counted.

- ``strict``: a failed judgment is not reproduced, not order-invariant and not right; a TIE against a
  decisive reference is wrong.
- ``resolved``: pairs with a failed judgment leave every statistic; the share left is in ``share_kept``.
- ``policy``: TIE, ABSTAIN and failures go to people; accuracy of what was kept, coverage in ``share_kept``.
- ``failures_right`` and ``failures_wrong``: the two bounds; every failed judgment becomes the reference,
  or the other candidate.
"""

Reduction = Literal["first_read", "majority"]
"""How the repetitions of one (pair, order) become one verdict: the first, or the most frequent."""


class IntervalOptions(Options):
    """How uncertainty is expressed.

    Parameters
    ----------
    resamples : int
        Number of cluster resamples.
    seed : int
        Seed of the one weight matrix that all statistics share.
    level : float
        Coverage that the intervals aim at.
    flag_below : int
        Rows with fewer clusters carry the flag ``few_clusters``.
    refuse_below : int
        Rows with fewer clusters get no interval.
    undefined_limit : float
        Share of undefined resamples above which an interval is refused.
    """

    resamples: int = Field(default=10_000, ge=200, le=1_000_000)
    seed: int = Field(default=7, ge=0)
    level: float = Field(default=0.95, gt=0.5, lt=1)
    flag_below: int = Field(default=30, ge=2)
    refuse_below: int = Field(default=10, ge=2)
    undefined_limit: float = Field(default=0.10, ge=0, lt=1)


class TrustOptions(Options):
    """What the trust table holds.

    Parameters
    ----------
    reduction : {'first_read', 'majority'}
        The one verdict reduction of the report, used for N, P and R alike.
    majority_tie : {'unresolved', 'first_read'}
        What an even split of repetitions becomes under ``majority``.
    views : tuple of str
        Views, the default one first.
    sliced_views : tuple of str
        Views that are also given by slice; the others only for the whole.
    slices : tuple of str
        Columns of `pairs` to slice by; ``"a*b"`` crosses two. ``reference`` slices by kind of reference
        (decisive, tie, none). A column that is absent or empty is left out.
    pool_sources : bool
        Whether a cell that judged several sources also gets rows over all of them, with source ``all``.
    deterministic_judges : tuple of str
        Ids of judges whose greedy decoding cannot but repeat itself, as in-process models; at temperature 0
        their C is flagged ``deterministic_by_construction``. Judges of `judging` with an ``embedded/``
        model are added to them.
    """

    reduction: Reduction = "first_read"
    majority_tie: Literal["unresolved", "first_read"] = "unresolved"
    views: tuple[View, ...] = ("strict", "resolved", "policy", "failures_right", "failures_wrong")
    sliced_views: tuple[View, ...] = ("strict",)
    slices: tuple[str, ...] = (
        "domain",
        "difficulty",
        "manipulation",
        "severity",
        "stakes",
        "language",
        "split",
        "reference",
        "quality_gap",
        "manipulation*difficulty",
    )
    pool_sources: bool = True
    deterministic_judges: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _views_are_consistent(self) -> TrustOptions:
        if not self.views:
            raise ValueError("views is empty; name at least one, e.g. ['strict']")
        return self


class QualityGapOptions(Options):
    """How pairs are put into bands of quality gap.

    Parameters
    ----------
    edges : tuple of float
        Inner edges of the bands of the column ``quality_gap``, ascending; a value at an edge belongs to the
        band above it.
    """

    edges: tuple[float, ...] = (0.25, 0.5, 0.75)

    @model_validator(mode="after")
    def _edges_ascend(self) -> QualityGapOptions:
        if list(self.edges) != sorted(set(self.edges)):
            raise ValueError(f"quality_gap edges {list(self.edges)} do not rise; list each once, in order")
        return self


class ComparisonOptions(Options):
    """Which cells are compared pair by pair.

    Parameters
    ----------
    within : tuple of str
        Columns that two cells must share to be compared.
    metrics : tuple of str
        Statistics whose differences are given.
    slices : tuple of str
        Slices beside the whole.
    sliced_up_to : int
        Cells that share `within` are compared by slice only if they make at most so many comparisons.
    """

    within: tuple[str, ...] = ("judge_id",)
    metrics: tuple[str, ...] = ("C", "C2", "phi", "A", "PR", "T_product", "T_direct", "T_pair")
    slices: tuple[str, ...] = ("manipulation", "difficulty", "manipulation*difficulty")
    sliced_up_to: int = Field(default=105, ge=0)


class RegionOptions(Options):
    """Where the regions of the (C, phi) plane end.

    Parameters
    ----------
    min_consistency : float
        C at or above it counts as reproducible.
    max_flip_rate : float
        phi at or below it counts as fair between orders.
    """

    min_consistency: float = Field(default=0.90, ge=0, le=1)
    max_flip_rate: float = Field(default=0.15, ge=0, le=1)


class RemedyOptions(Options):
    """What the remedies are tried with.

    Parameters
    ----------
    votes : tuple of int
        Odd numbers of repetitions that vote.
    """

    votes: tuple[int, ...] = (3, 5)

    @model_validator(mode="after")
    def _votes_are_odd(self) -> RemedyOptions:
        even = [k for k in self.votes if k < 1 or k % 2 == 0]
        if even:
            raise ValueError(f"votes {even} can tie; give odd numbers of repetitions")
        return self


class FormatOptions(Options):
    """The fixed set of formats whose dispersion is measured.

    Parameters
    ----------
    formats : tuple of str
        Values of the column ``protocol``.
    statistic : str
        The statistic whose range is taken.
    permutations : int
        Exchanges of formats within pair that make the null distribution.
    seed : int
        Seed of the exchanges.
    """

    formats: tuple[str, ...] = ("direct", "json_verdict_first", "json_cot", "xml_verdict_first", "xml_cot")
    statistic: Literal["T_product", "T_direct", "T_pair", "PR", "A"] = "T_product"
    permutations: int = Field(default=1_000, ge=100)
    seed: int = Field(default=7, ge=0)


class ParadigmOptions(Options):
    """Paradigms to compare at equal calls: how many calls one verdict of each protocol costs."""

    calls_per_verdict: dict[str, int] = Field(
        default_factory=lambda: {
            "direct": 1,
            "json_verdict_first": 1,
            "json_cot": 1,
            "xml_verdict_first": 1,
            "xml_cot": 1,
            "geval": 1,
            "flask": 4,
            "likelihood": 1,
            "holistic": 1,
            "decomposed": 1,
            "reference_first": 1,
            "pointwise": 2,
        }
    )
    paradigms: tuple[str, ...] = ("direct", "geval", "flask")


class ConfidenceOptions(Options):
    """How confidence is compared with being right.

    Parameters
    ----------
    bins : int
        Equal-width bins of the reliability curve and of the calibration error.
    """

    bins: int = Field(default=10, ge=2, le=100)


class SelectiveOptions(Options):
    """How a judge that may abstain is given a threshold with a guarantee.

    Parameters
    ----------
    error_rate : float
        Error rate among kept verdicts that has to be guaranteed.
    confidence : float
        Probability with which the Clopper-Pearson guarantee holds.
    calibration_share : float
        Share of clusters on which the threshold is chosen; the rest shows what it gives.
    """

    error_rate: float = Field(default=0.10, gt=0, lt=1)
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    calibration_share: float = Field(default=0.5, gt=0, lt=1)


class WinRateOptions(Options):
    """Which prediction-powered win rates are given.

    Parameters
    ----------
    differences_up_to : int
        Products that share an opponent are compared with one another only if they make at most so many
        comparisons.
    """

    differences_up_to: int = Field(default=45, ge=0)


class AuditOptions(Options):
    """Which judgments a person is asked to look at.

    Parameters
    ----------
    size : int
        Judge and pair combinations that are put into packets and on the page; the table has all.
    stratify_by : tuple of str
        Columns of `pairs`; the queue is spread over their values within each reason.
    low_confidence : float
        Valid verdicts whose confidence (stated, or the probability of the chosen label) lies below it.
    judgments_per_item : int
        Judgments of one judge and pair whose raw request and reply the page shows.
    seed : int
        Breaks ties between equally pressing ones.
    """

    size: int = Field(default=60, ge=1, le=2_000)
    stratify_by: tuple[str, ...] = ("domain",)
    low_confidence: float = Field(default=0.6, ge=0, le=1)
    judgments_per_item: int = Field(default=6, ge=1, le=100)
    seed: int = Field(default=7, ge=0)


class ReportingOptions(Options):
    """All parameters of the pipeline `reporting`."""

    trust: TrustOptions = TrustOptions()
    intervals: IntervalOptions = IntervalOptions()
    quality_gap: QualityGapOptions = QualityGapOptions()
    comparisons: ComparisonOptions = ComparisonOptions()
    regions: RegionOptions = RegionOptions()
    remedies: RemedyOptions = RemedyOptions()
    formats: FormatOptions = FormatOptions()
    paradigms: ParadigmOptions = ParadigmOptions()
    confidence: ConfidenceOptions = ConfidenceOptions()
    selective: SelectiveOptions = SelectiveOptions()
    win_rates: WinRateOptions = WinRateOptions()
    audit: AuditOptions = AuditOptions()
    variance: VarianceOptions = VarianceOptions()
    rule: DecisionRule | None = None
    """The decision rule that slices are judged by; without one no slice is earned."""
    banners: tuple[str, ...] = ()
    """Warnings that stand at the head of the page, e.g. that a design is a reduced one."""
    selftest: SelfTestOptions | None = None
    """The self-test of the instrument; not run by default."""
