"""The description of a file's layout: where each value stands and what its codes mean. Nothing is guessed."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from judge_calibration.options.base import Options

Kind = Literal["pairs", "verdicts", "labels"]
"""What a row of the file is: a pair to be judged, a verdict that was given, or a person's label."""

Format = Literal["auto", "csv", "tsv", "jsonl", "json", "parquet", "xlsx"]
"""How the file is written; ``auto`` goes by its name (``.csv``, ``.jsonl.gz``, ``.xlsx``, ...).

Whether a file of ``json`` or ``jsonl`` is one document or one a line, its content says.
"""

OrderMode = Literal["identity", "shown"]
"""What a verdict names.

``identity``
    The candidate, whichever was shown first: a second order is already mapped back.
``shown``
    The place (first or second shown); it is mapped back with the order of the row.
"""

Status = Literal["verified", "unverified"]
"""Whether the layout was read in the publisher's own files or code (``verified``) or only described."""

Scalar = bool | int | float | str | None
"""A code as the file holds it. A number and its text are one code (1 and "1"); a boolean is no number."""


class FieldFrom(Options):
    """Where one value comes from: a column, a constant, the file's name, or several of them joined.

    A plain text in YAML is the name of a column; a list is joined with ``/``. A dotted name walks into
    nested values (``turns.0.content``); a column whose own name has dots is found first.
    """

    column: str | None = None
    const: Scalar = None
    file: str | None = Field(
        default=None, description="regular expression on the file's path; group 1 is the value"
    )
    join: tuple[FieldFrom, ...] = ()
    separator: str = "/"
    skip_empty: bool = Field(default=False, description="leave empty and null parts out of what is joined")
    any_of: tuple[FieldFrom, ...] = Field(default=(), description="the first of them that is not null")
    json_text: bool = Field(default=False, description="the column holds JSON as text")
    path: str | None = Field(default=None, description="dotted path walked after the JSON text is read")
    match: str | None = Field(
        default=None, description="regular expression; group 1 is the value, no match is null"
    )
    optional: bool = Field(default=False, description="the file may lack the column; then nothing is read")
    replace: dict[str, str] = Field(default_factory=dict, description="whole values replaced by others")

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"column": data}
        return {"join": data} if isinstance(data, (list, tuple)) else data

    @model_validator(mode="after")
    def _one_origin(self) -> FieldFrom:
        origins = [
            self.column is not None,
            "const" in self.model_fields_set,
            self.file is not None,
            bool(self.join),
            bool(self.any_of),
        ]
        if sum(origins) != 1:
            raise ValueError("give exactly one of column, const, file, join and any_of")
        return self


class NumericCodes(Options):
    """A preference given as a number: where A ends, where B starts, and what lies between is a tie."""

    lowest: float
    highest: float
    tie_from: float
    tie_to: float
    low: Literal["A", "B", "first", "second"] = "A"
    """What numbers below ``tie_from`` mean; those above ``tie_to`` mean the other one."""

    @model_validator(mode="after")
    def _ordered(self) -> NumericCodes:
        if not self.lowest <= self.tie_from <= self.tie_to <= self.highest:
            raise ValueError("lowest <= tie_from <= tie_to <= highest is wanted")
        return self


class VoteCodes(Options):
    """A label counted from votes: the label with most votes; no single one is a TIE, no vote is no label.

    Either the counts (`a`, `b`, `tie`) or the single votes (`labels`, read with the layout's codes).
    """

    a: FieldFrom | None = None
    b: FieldFrom | None = None
    tie: FieldFrom | None = None
    labels: tuple[FieldFrom, ...] = ()

    @model_validator(mode="after")
    def _counts_or_votes(self) -> VoteCodes:
        if bool(self.labels) == (self.a is not None and self.b is not None):
            raise ValueError("give either the counts a and b, or labels")
        return self


class Codes(Options):
    """What the values of a label or verdict column mean.

    In mode ``identity`` the meanings are A, B, TIE, ABSTAIN; in mode ``shown`` they are first, second, TIE,
    ABSTAIN. ``none`` lists the values that mean "no label". A value that is in no list is refused.
    """

    A: tuple[Scalar, ...] = ()
    B: tuple[Scalar, ...] = ()
    first: tuple[Scalar, ...] = ()
    second: tuple[Scalar, ...] = ()
    TIE: tuple[Scalar, ...] = ()
    ABSTAIN: tuple[Scalar, ...] = ()
    none: tuple[Scalar, ...] = ()
    numeric: NumericCodes | None = None


class OrderCodes(Options):
    """What the values of the order column mean: AB shows candidate A first."""

    AB: tuple[Scalar, ...] = ("AB",)
    BA: tuple[Scalar, ...] = ("BA",)


class OutcomeRule(Options):
    """Why a row has no verdict, by the value of one column. The first rule that fits is taken."""

    outcome: Literal[
        "malformed", "truncated", "empty", "refusal", "timeout", "rate_limited", "context_overflow",
        "unavailable", "error", "missing",
    ]  # fmt: skip
    column: FieldFrom | None = None
    values: tuple[Scalar, ...] = ()
    matches: str | None = Field(default=None, description="regular expression searched in the value")
    over_verdict: bool = Field(
        default=False, description="true: the rule beats a verdict that the file states"
    )

    @model_validator(mode="after")
    def _something_to_test(self) -> OutcomeRule:
        if self.column is not None and not self.values and self.matches is None:
            raise ValueError("a rule with a column needs values or matches")
        if self.column is None and self.over_verdict:
            raise ValueError("a rule that beats verdicts needs a column")
        return self


class FlagRule(Options):
    """A flag put on rows by the value of one column, e.g. several verdicts found in one text."""

    flag: str
    column: FieldFrom
    values: tuple[Scalar, ...] = ()
    matches: str | None = None


class Shown(Options):
    """Who was shown first and second, where the file names candidates instead of an order."""

    first: FieldFrom
    second: FieldFrom


class Expand(Options):
    """How one record of the file becomes several rows before the fields are read.

    ``parallel``
        Lists of equal length side by side: one row an element (``columns``).
    ``elements``
        One list of mappings or values: one row an element, put under the list's own name.
    ``chosen_rejected``
        Lists of chosen and rejected answers: one row for each combination (``columns``: chosen, rejected).
    ``scored``
        One list of answers with scores: one row for each two answers, with chosen, rejected and the
        difference of their scores; equal scores are a tie.
    ``grouped``
        Records that share ``by`` are answers to one question, each with a score: as ``scored``.
    ``edges``
        A list of preferences between numbered answers (``columns``: preferences, answers; ``by``: where a
        preference holds the numbers of the chosen and of the rejected answer).
    ``orders``
        One record holds both orders: one row for each, under ``_shown`` and with ``_order`` AB or BA.
        ``columns`` name two mappings, or two prefixes of the columns that belong to each order.
    """

    kind: Literal["parallel", "elements", "chosen_rejected", "scored", "grouped", "edges", "orders"]
    columns: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    text: str | None = None
    score: str | None = None
    who: str | None = None


class Conversation(Options):
    """Two whole conversations: what they share at the start is the question, the rest are the answers."""

    a: FieldFrom
    b: FieldFrom
    a_is: Literal["A", "chosen"] = "A"
    form: Literal["messages", "transcript", "turns"] = "messages"
    """How a conversation is written.

    ``messages``
        A list of {role, content}.
    ``transcript``
        One text with a marker before each turn.
    ``turns``
        The answers alone, one a turn; ``asked`` has the questions, as many.
    """
    asked: FieldFrom | None = Field(default=None, description="form turns: the list of questions")
    turns: FieldFrom | None = Field(default=None, description="how many of the first turns count")
    user_marker: str = "\n\nHuman: "
    assistant_marker: str = "\n\nAssistant: "

    @model_validator(mode="after")
    def _questions_of_turns(self) -> Conversation:
        if (self.form == "turns") != (self.asked is not None):
            raise ValueError("`asked` names the questions of form turns, and of no other form")
        return self


class Rules(Options):
    """What is done with rows that are legal but dangerous. Each that applies is counted in `source_files`."""

    empty_response: Literal["refuse", "keep", "drop"] = "refuse"
    response_no_text: Literal["refuse", "drop"] = "refuse"
    """A null, a boolean or a number in place of an answer or of one turn of it. ``drop`` leaves the pair
    out and counts it."""
    identical_responses: Literal["keep", "unlabel", "drop", "refuse"] = "keep"
    """Byte-identical answers. ``keep`` makes them an identity pair, so that they never enter A, phi or T."""
    repeated_rows: Literal["refuse", "merge", "merge_unlabel", "majority"] = "refuse"
    """The same pair twice.

    ``merge`` keeps one where their labels agree and refuses a conflict; ``merge_unlabel`` keeps one and takes
    the label away where they conflict; ``majority`` keeps the label with most rows, a draw is a TIE.
    """
    missing_label: Literal["keep", "drop"] = "keep"
    unknown_verdict: Literal["refuse", "malformed"] = "refuse"
    """Verdict logs that hold a judge's own words: what is no code is ``malformed``, not a wrong file."""
    repeated_votes: Literal["refuse", "merge"] = "refuse"
    """One person twice on one pair. ``merge`` keeps one where the labels agree; a conflict is refused."""
    html_entities: Literal["keep", "unescape"] = "keep"
    missing_texts: Literal["refuse", "allow"] = "refuse"
    """``allow`` only for logs without the texts: their pairs have null texts and are never judged."""


class Layout(Options):
    """One layout, described. The packaged ones stand in ``judge_calibration/sources/layouts``."""

    layout: str
    title: str
    kind: Kind
    status: Status = "unverified"
    seen: str = Field(default="", description="where the layout was read: repository, commit, file")
    format: Format = "auto"
    encoding: str = Field(default="auto", description="auto: UTF-8, or what a byte order mark says")
    delimiter: str | None = Field(default=None, min_length=1, max_length=1)
    quoting: bool = Field(default=True, description="CSV and TSV: fields may stand in double quotes")
    records: str | None = Field(default=None, description="JSON: dotted path to the list of records")
    sheet: str | None = Field(default=None, description="workbooks: the sheet, where there are several")
    licence: str | None = None
    reference_kind: Literal["human", "ai", "benchmark", "constructed"] | None = None
    language: str | None = None
    order_mode: OrderMode = "identity"
    expand: tuple[Expand, ...] = ()
    conversation: Conversation | None = None
    shown: Shown | None = None
    fields: dict[str, FieldFrom] = Field(default_factory=dict)
    codes: Codes | None = None
    reference_codes: Codes | None = Field(
        default=None, description="verdict logs: the codes of the reference label"
    )
    reference_order_mode: OrderMode = "identity"
    order_codes: OrderCodes = OrderCodes()
    votes: VoteCodes | None = None
    outcomes: tuple[OutcomeRule, ...] = ()
    flags: tuple[FlagRule, ...] = ()
    repetition_starts_at: int = 0
    number_repetitions: bool = Field(
        default=False,
        description="number the repetitions anew within pair, judge, instrument, order, temperature",
    )
    order_recorded: bool = Field(
        default=True, description="false: the log does not tell which answer was shown first"
    )
    sort_candidates: bool = Field(
        default=False, description="pairs: candidate A is the one whose name sorts first, in every row"
    )
    instrument: tuple[FieldFrom, ...] = Field(default=(), description="what else makes it another instrument")
    rules: Rules = Rules()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _codes_fit_the_mode(self) -> Layout:
        for codes, mode, name in (
            (self.codes, self.order_mode, "codes"),
            (self.reference_codes, self.reference_order_mode, "reference_codes"),
        ):
            if codes is None:
                continue
            wrong = (codes.first or codes.second) if mode == "identity" else (codes.A or codes.B)
            if wrong:
                wanted = "A and B" if mode == "identity" else "first and second"
                example = (
                    "{A: [1], B: [2], TIE: [0]}"
                    if mode == "identity"
                    else "{first: [A], second: [B], TIE: [C]}"
                )
                raise ValueError(
                    f"order mode '{mode}' with the meanings {wanted}, for instance {name}: {example}; "
                    "or another order_mode, if the file's codes mean that"
                )
        return self


class SourceFile(Options):
    """One file, or a pattern of files, and the layout it is written in.

    Examples
    --------
    >>> SourceFile(path="pairs.csv", layout="pairs", set={"licence": "CC-BY-4.0"}).layout
    'pairs'
    """

    path: str = Field(min_length=1, description="local path, pattern with *, or fsspec URL such as hf://...")
    layout: str = Field(min_length=1, description="name of a packaged layout, or path of a .yml file")
    set: dict[str, Any] = Field(
        default_factory=dict, description="what differs from the layout: fields, codes, licence, rules, ..."
    )
