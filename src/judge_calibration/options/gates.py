"""The decision rule: what has to be true before a judge's numbers may decide something.

It is written before results, its hash is recorded when judging starts, and no floor is shipped as a
default: a rule says all of them itself.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options

Criterion = Literal[
    "agreement",
    "order_consistency",
    "invariance_length",
    "invariance_style",
    "invariance_identity",
    "sensitivity_citation",
    "sensitivity_correctness",
    "sensitivity_polished_but_wrong",
    "resistance_injection",
]
"""What a judge has to show in a slice; all are shares from 0 to 1, 1 being best.

- ``agreement``: verdicts equal to the human label, of (pair, order).
- ``order_consistency``: pairs whose two orders agree.
- ``invariance_length``, ``invariance_style``: 1 less the absolute difference between the shares of pairs
  in which the modified and the original side wins in both orders.
- ``invariance_identity``: 1 less the absolute difference between first and second position, on pairs that
  show the same answer twice.
- ``sensitivity_*``, ``resistance_injection``: pairs in which the better side wins in both orders.
"""

Claim = Literal["improvement", "no_regression"]
"""``improvement``: the new product is better. ``no_regression``: it is not worse by more than the margin."""


class SentinelRule(Options):
    """When a judge still counts as the one that was calibrated.

    Attributes
    ----------
    max_changed : float
        Largest share of verdicts that may have changed beyond the judge's own noise.
    accuracy_margin : float
        Largest change of the share of right verdicts that counts as none.
    min_tasks : int
        Base tasks below which the answer is ``too_few``.
    """

    max_changed: float = Field(gt=0, lt=1)
    accuracy_margin: float = Field(gt=0, lt=1)
    min_tasks: int = Field(ge=2)


class DecisionRule(Options):
    """The predeclared rule of a gate.

    Attributes
    ----------
    name : str
        A rule whose name begins with EXAMPLE is refused.
    declared_by, declared_on : str
        Who wrote it, and when (ISO 8601).
    alpha : float
        Level of every one-sided test.
    claim : {"improvement", "no_regression"}
    margin : float
        For ``no_regression``: how much worse, in (wins - losses)/n, is tolerated. 0 for ``improvement``.
    human_margin : float
        The lower bound of the human sample has to lie above minus this on every critical slice.
    slice_by : tuple of str
        Columns of `pairs`; a slice is a combination of their values, joined by " / ".
    critical_slices : tuple of str
        The predeclared gate family: the slices that the judge must have earned and people must confirm.
    floors : dict of Criterion to float
        What has to be exceeded in every slice.
    exempt : dict of str to tuple of Criterion
        For a slice: criteria that do not apply to it.
    min_tasks : int
        Base tasks that every criterion needs.
    min_human_tasks : int
        Labelled base tasks that every critical slice needs.
    min_valid_share : float
        Share of judgments that have to be valid.
    sentinel : SentinelRule
    """

    name: str = Field(min_length=1)
    declared_by: str = ""
    declared_on: str = ""
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    claim: Claim
    margin: float = Field(default=0.0, ge=0, lt=1)
    human_margin: float = Field(default=0.0, ge=0, lt=1)
    slice_by: tuple[str, ...] = ("domain",)
    critical_slices: tuple[str, ...]
    floors: dict[Criterion, float]
    exempt: dict[str, tuple[Criterion, ...]] = Field(default_factory=dict)
    min_tasks: int = Field(ge=2)
    min_human_tasks: int = Field(ge=2)
    min_valid_share: float = Field(gt=0, le=1)
    sentinel: SentinelRule

    @model_validator(mode="after")
    def _does_not_contradict_itself(self) -> DecisionRule:
        problems = []
        if self.claim == "improvement" and self.margin > 0:
            problems.append(f"margin is {self.margin}: the claim 'improvement' has none, 'no_regression' has")
        if self.claim == "no_regression" and self.margin == 0:
            problems.append("margin is 0: 'no_regression' says how much worse is tolerated, above 0")
        if not self.floors:
            problems.append("floors is empty: give at least one criterion with its floor")
        problems += [
            f"floors.{name} is {floor}: a floor lies above 0 and below 1"
            for name, floor in self.floors.items()
            if not 0 < floor < 1
        ]
        if not self.slice_by:
            problems.append("slice_by is empty: give at least one column of pairs")
        if not self.critical_slices:
            problems.append("critical_slices is empty: name the slices that decide")
        if problems:
            raise ValueError("; ".join(problems))
        return self


class SelfTestOptions(Options):
    """The self-test of the instrument: judges with known faults, and whether the numbers find them.

    Attributes
    ----------
    seeds : int
        Data sets, at the seeds 0, 1, ..., fixed before the first run.
    clusters, pairs_per_cluster, repetitions : int
        Size of each data set.
    correlation : float
        How alike pairs of one base task are, 0 to 1.
    resamples : int
        Cluster resamples of every interval.
    level : float
        Level of the trust table's intervals.
    alpha : float
        Level of the gate's one-sided tests.
    power : float
        Power that every planted fault has to be found with.
    cluster_by : {"task", "row"}
        ``row`` is the broken control: it treats dependent pairs as independent and has to fail.
    """

    seeds: int = Field(default=20, ge=5)
    clusters: int = Field(default=60, ge=30)
    pairs_per_cluster: int = Field(default=6, ge=1)
    repetitions: int = Field(default=3, ge=2)
    correlation: float = Field(default=0.3, ge=0, lt=1)
    resamples: int = Field(default=1_000, ge=200)
    level: float = Field(default=0.95, gt=0.5, lt=1)
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    power: float = Field(default=0.8, gt=0, lt=1)
    cluster_by: Literal["task", "row"] = "task"
