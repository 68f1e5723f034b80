"""A round of human labelling: who labels what, how it is shown, and what is accepted back."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field, field_validator, model_validator

from judge_calibration.errors import Problem
from judge_calibration.options.base import Options

DrawMode = Literal["half_width", "pairs", "everything"]
"""How many pairs are labelled.

``half_width``
    As many base tasks as the critical slices need for their half-width or margin.
``pairs``
    A stated number of pairs, spread over the strata in proportion.
``everything``
    Every pair.
"""

Target = Literal["agreement", "margin"]
"""What a critical slice is labelled for.

``agreement``
    A rate whose interval has at most the given half-width.
``margin``
    A difference (wins - losses)/n that a gate has to tell from its margin with the given power.
"""

ConflictRule = Literal["refuse", "last"]
"""Two different labels of one person for one pair: ``refuse`` both, or keep the ``last`` one by its time."""

ProblemRule = Literal["refuse", "set_aside"]
"""A row that cannot be accepted: ``refuse`` the whole import, or ``set_aside`` the row with its reason."""

AdjudicationRule = Literal["third_decides", "majority"]
"""How a disagreement is settled.

``third_decides``
    The adjudicator's label stands, whatever the two primary labels were.
``majority``
    It stands only where it equals one of the two; else the pair stays ``unresolved``.
"""

MadeBy = Literal["human", "ai", "simulated"]
"""Who made the labels of a file. Only ``human`` ones are ever called human."""

_CODE = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")


def parse_time(text: str) -> datetime:
    """Return the moment that an ISO 8601 text names; one without a zone is read as UTC.

    Examples
    --------
    >>> parse_time("2026-03-01T12:00:00+02:00").isoformat()
    '2026-03-01T10:00:00+00:00'
    """
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _joined(problems: list[Problem]) -> str:
    return "; ".join(map(str, problems))


def _is_code(text: str) -> bool:
    return bool(_CODE.fullmatch(text)) and len(text) <= 40


class AnnotatorOptions(Options):
    """One annotator, under a code name, with what he or she declares to be competent in."""

    code: str
    """A code name such as ``annotator_1``; never a name or an address (those stay in `identities`)."""
    domains: tuple[str, ...] | None = None
    """Domains the annotator may label; null: any."""
    languages: tuple[str, ...] | None = None
    """Languages the annotator may label; null: any."""
    stakes: tuple[str, ...] = ("ordinary",)
    """Stakes the annotator is qualified for. Medical, legal and the like have to be declared."""
    labels: bool = True
    """Whether the annotator may give primary labels."""
    adjudicates: bool = True
    """Whether the annotator may be the third, who settles disagreements."""
    capacity: int | None = Field(default=None, ge=0)
    """The most pairs this annotator takes in the round, all roles together; null: no limit."""

    @field_validator("code")
    @classmethod
    def _code_is_no_name(cls, value: str) -> str:
        if not _is_code(value):
            raise ValueError(
                f"{value!r} is no code name: wanted lower-case letters, digits, '_' and '-', such as "
                "annotator_1. Names and addresses belong in the file of `identities`, not in parameters"
            )
        return value


class HandOverOptions(Options):
    """An annotator who left, or is slow: what is not labelled yet goes to others."""

    annotator: str
    """Code name of who hands over."""
    at: str
    """Moment of the hand-over, ISO 8601. Labels given until then stand, whoever looks at them later."""
    count: int | None = Field(default=None, ge=1)
    """How many of the last unlabelled pairs are handed over; null: all (the annotator left)."""

    @field_validator("at")
    @classmethod
    def _at_is_a_time(cls, value: str) -> str:
        parse_time(value)
        return value


class CriticalSliceOptions(Options):
    """A slice that has to be known well, and how well."""

    slice_by: str
    """Column of the pairs, such as ``manipulation``; ``all`` for the whole."""
    slice: str
    """Value of that column; ``all`` for the whole."""
    target: Target = "agreement"
    half_width: float | None = Field(default=None, gt=0, lt=0.5)
    """Target ``agreement``: the wanted half-width of the interval, as a share."""
    expected: float = Field(default=0.8, gt=0, lt=1)
    """Target ``agreement``: the agreement that is expected, as a share."""
    margin: float | None = Field(default=None, ge=0, lt=1)
    """Target ``margin``: the gate's margin; the lower bound has to lie above minus this."""
    difference: float = Field(default=0.1, gt=-1, lt=1)
    """Target ``margin``: the true (wins - losses)/n at which the gate should pass."""
    tie_share: float = Field(default=0.2, ge=0, lt=1)
    """Target ``margin``: the share of ties, which lowers the variance of (wins - losses)/n."""
    power: float = Field(default=0.8, gt=0.5, lt=1)

    @model_validator(mode="after")
    def _target_has_its_number(self) -> CriticalSliceOptions:
        place = f"annotation.draw.critical_slices, {self.slice_by}={self.slice}"
        problems = []
        if self.target == "agreement" and self.half_width is None:
            problems.append(Problem(place, "target agreement without half_width", "a half_width"))
        if self.target == "margin" and self.margin is None:
            problems.append(Problem(place, "target margin without margin", "a margin"))
        if self.target == "margin" and self.margin is not None and self.difference <= -self.margin:
            problems.append(
                Problem(place, f"difference {self.difference} not above -margin", "a difference above it")
            )
        if self.target == "margin" and abs(self.difference) > 1 - self.tie_share:
            problems.append(
                Problem(
                    place, f"difference {self.difference} with tie_share {self.tie_share}", "at most 1 - ties"
                )
            )
        if problems:
            raise ValueError(_joined(problems))
        return self


class DrawOptions(Options):
    """Which pairs are labelled."""

    mode: DrawMode = "half_width"
    seed: int = Field(default=20_260, ge=0)
    sources: tuple[str, ...] | None = None
    """Sources whose pairs may be drawn; null: all."""
    strata: tuple[str, ...] = ("domain", "difficulty")
    """Columns whose combinations are the strata of the draw."""
    pairs: int | None = Field(default=None, ge=1)
    """Mode ``pairs``: how many."""
    critical_slices: tuple[CriticalSliceOptions, ...] = ()
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    within_task_correlation: float = Field(default=0.3, ge=0, le=1)
    """Correlation of the outcomes of two pairs of one base task, for the design effect."""
    expected_disagreement: float = Field(default=0.25, ge=0, le=1)
    """Share of pairs that will need the adjudicator, for the number of labels."""

    @model_validator(mode="after")
    def _mode_has_its_numbers(self) -> DrawOptions:
        problems = []
        if self.mode == "pairs" and self.pairs is None:
            problems.append(Problem("annotation.draw", "mode pairs without `pairs`", "a number of pairs"))
        if self.mode == "half_width" and not self.critical_slices:
            problems.append(
                Problem(
                    "annotation.draw",
                    "mode half_width without critical_slices",
                    "one or more critical slices",
                )
            )
        if problems:
            raise ValueError(_joined(problems))
        return self


class LabelFileOptions(Options):
    """A file of labels: a spreadsheet that came back, or Label Studio's JSON export."""

    path: str
    layout: Literal["auto", "spreadsheet", "label_studio"] = "auto"
    """``auto`` goes by the ending: .csv, .tsv, .xlsx are spreadsheets, .json is Label Studio's export."""
    made_by: MadeBy = "human"
    annotator: str | None = None
    """Code name of who filled the file in, where the file itself does not say."""
    sheet: str | None = None
    """Sheet of a workbook; null: the first."""


class ImportOptions(Options):
    """What is accepted back."""

    files: tuple[LabelFileOptions, ...] = ()
    identities: str | None = None
    """CSV with the columns ``known_as`` and ``annotator``: the names, addresses or Label Studio user ids that
    stand in label files, and the code name of each. It stays outside git and outside every artifact."""
    conflict: ConflictRule = "refuse"
    on_problem: ProblemRule = "refuse"
    require_reason: bool = False
    """Whether a decisive label without a reason code is refused."""


class StudyOptions(Options):
    """The human attribute study: overall preference first, then two or three attributes.

    A study is a round of its own: enabled, its cases take the place of the draw, `primaries` people label
    each of them, and nobody adjudicates. With `beside_draw` its cases join the pairs that are drawn, in
    packets and files of their own.
    """

    enabled: bool = False
    beside_draw: bool = False
    """Whether the round labels the drawn pairs too; disagreements on overall preferences are then settled."""
    cases_file: str | None = None
    """CSV of cases that were chosen elsewhere, in place of logged verdicts: ``pair_id``, ``role`` (witness or
    control) and, where they are known, ``judges_a`` and ``judges_b`` (judges that prefer each side)."""
    judge_protocol: str | None = None
    """Protocol of the panel's verdicts that cases are selected by; null: all."""
    witnesses: int = Field(default=20, ge=1)
    """Pairs on which the panel disagrees most."""
    controls: int = Field(default=2, ge=0)
    """Pairs on which the panel agrees."""
    minority_at_least: float = Field(default=1 / 3, gt=0, le=0.5)
    """Smallest minority share of a witness case, compared in integers (inclusive)."""
    minority_at_most_control: float = Field(default=0.0, ge=0, lt=0.5)
    """Largest minority share of a control case (inclusive)."""
    judges_at_least: int = Field(default=3, ge=2)
    """Judges with a definite verdict that a case needs."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attribute key and the question that is put to people about it."""
    attributes_per_pair: int = Field(default=2, ge=1, le=3)

    @property
    def alone(self) -> bool:
        """Whether the study's cases take the place of the draw."""
        return self.enabled and not self.beside_draw

    @model_validator(mode="after")
    def _enough_attributes(self) -> StudyOptions:
        if self.enabled and len(self.attributes) < self.attributes_per_pair:
            raise ValueError(
                f"annotation.study.attributes: found {len(self.attributes)} attributes; "
                f"wanted at least attributes_per_pair = {self.attributes_per_pair}"
            )
        return self


class SimulatedAnnotatorOptions(Options):
    """An annotator who does not exist, with planted skill and habits."""

    code: str
    skill: float = Field(default=0.85, ge=0, le=1)
    """Probability of giving the expected label; the other labels share the rest."""
    first_bias: float = Field(default=0.0, ge=0, le=1)
    """Probability of choosing whichever answer is shown first, whatever it says."""
    abstains: float = Field(default=0.02, ge=0, le=1)
    drift_per_100: float = Field(default=0.0, ge=-1, le=1)
    """Change of skill for every 100 pairs labelled."""


class SimulationOptions(Options):
    """The simulated panel of the demonstration. Everything it touches is marked SIMULATED."""

    enabled: bool = False
    seed: int = Field(default=11, ge=0)
    annotators: tuple[SimulatedAnnotatorOptions, ...] = ()
    minutes_per_pair: int = Field(default=3, ge=1)
    share_done: float = Field(default=1.0, ge=0, le=1)
    """Share of the assigned pairs that are labelled, from the start of each annotator's list."""
    share_adjudicated: float = Field(default=1.0, ge=0, le=1)
    """Share of each adjudicator's disputed pairs that are settled; the rest waits in the queue."""


class AnalysisOptions(Options):
    """How labels are summarised."""

    slice_by: tuple[str, ...] = ("manipulation", "difficulty", "domain", "stakes", "language", "source")
    drift_blocks: int = Field(default=4, ge=2, le=50)
    """Equal blocks of an annotator's labels, in order of time, between which drift is shown."""
    low_agreement: float = Field(default=0.6, gt=0, lt=1)
    """Raw agreement below which an item, slice or reason code is listed as hard to agree on."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    bootstrap: int = Field(default=2_000, ge=100)
    seed: int = Field(default=7, ge=0)


class AnnotationOptions(Options):
    """One round of labelling, from the draw to the analysis."""

    round_id: str = "round-1"
    issued_at: str = "2026-01-01T00:00:00+00:00"
    """When the packets were given out. A label with an earlier time is refused."""
    annotators: tuple[AnnotatorOptions, ...]
    primaries: int = Field(default=2, ge=2, le=9)
    """Independent labels a pair gets before anyone adjudicates."""
    draw: DrawOptions
    issued_plan: str | None = None
    """Path of the ``annotation_plan.parquet`` of the run whose packets were handed out: pairs and annotators
    may be added afterwards without moving a packet. Null: every run draws and assigns the round anew."""
    hand_overs: tuple[HandOverOptions, ...] = ()
    labels: ImportOptions = ImportOptions()
    adjudication: AdjudicationRule = "third_decides"
    study: StudyOptions = StudyOptions()
    analysis: AnalysisOptions = AnalysisOptions()
    simulation: SimulationOptions = SimulationOptions()

    @field_validator("issued_at")
    @classmethod
    def _issued_at_is_a_time(cls, value: str) -> str:
        parse_time(value)
        return value

    @property
    def codes(self) -> tuple[str, ...]:
        """The annotators' code names, in their declared order."""
        return tuple(annotator.code for annotator in self.annotators)

    @model_validator(mode="after")
    def _round_is_possible(self) -> AnnotationOptions:
        problems: list[Problem] = []
        repeated = sorted({code for code in self.codes if self.codes.count(code) > 1})
        if repeated:
            problems.append(
                Problem("annotation.annotators", f"{repeated} more than once", "each code name once")
            )
        needed = self.primaries if self.study.alone else self.primaries + 1
        if len(self.codes) < needed:
            why = "" if self.study.alone else " and a different adjudicator"
            problems.append(
                Problem(
                    "annotation.annotators",
                    f"{len(self.codes)} annotators",
                    f"at least {needed}: {self.primaries} primaries{why}",
                )
            )
        known = set(self.codes)
        for hand_over in self.hand_overs:
            if hand_over.annotator not in known:
                problems.append(
                    Problem("annotation.hand_overs", repr(hand_over.annotator), "an annotator of the round")
                )
        for file in self.labels.files:
            if file.annotator is not None and file.annotator not in known:
                problems.append(
                    Problem(
                        f"annotation.labels.files, {file.path}",
                        repr(file.annotator),
                        "an annotator of the round",
                    )
                )
        if self.simulation.enabled:
            for simulated in self.simulation.annotators:
                if simulated.code not in known:
                    problems.append(
                        Problem("annotation.simulation", repr(simulated.code), "an annotator of the round")
                    )
            if any(file.made_by != "simulated" for file in self.labels.files):
                problems.append(
                    Problem(
                        "annotation.labels.files",
                        "people's labels beside a simulated panel",
                        "one or the other",
                    )
                )
        if problems:
            raise ValueError(_joined(problems))
        return self
