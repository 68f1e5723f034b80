"""The canonical tables: their columns, keys and alphabets, and the check that every one has to pass.

A table is a pandas frame in long form. The same column has the same name everywhere. Text columns hold
text that UTF-8 can store (see :mod:`judge_calibration.text` for lone surrogates); lists and mappings are
JSON text with sorted keys; a missing value is null (``isna()``), never an empty string or 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from judge_calibration.errors import Problem, TableError

Kind = Literal["text", "integer", "number", "boolean"]

VERDICTS = ("A", "B", "TIE", "ABSTAIN")
DECISIVE = ("A", "B")
ORDERS = ("AB", "BA")
OUTCOMES = (
    "valid",
    "malformed",
    "truncated",
    "empty",
    "refusal",
    "timeout",
    "rate_limited",
    "context_overflow",
    "unavailable",
    "error",
    "missing",
)
PARSE_PATHS = ("strict", "fenced", "embedded")
REFERENCE_KINDS = ("human", "ai", "benchmark", "constructed")
STAKES = ("ordinary", "medical", "legal", "financial", "employment", "safety", "access")
MANIPULATIONS = (
    "length",
    "style",
    "citation",
    "correctness",
    "identity",
    "polished_but_wrong",
    "injection",
)


@dataclass(frozen=True)
class Column:
    """One column: its kind, whether it may be null, and the values it may take (empty: any)."""

    name: str
    kind: Kind = "text"
    nullable: bool = False
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table's columns and the columns that together identify a row."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    extra: bool = field(default=True)
    """Whether further columns are allowed (they are kept and not checked)."""

    @property
    def column_names(self) -> list[str]:
        """The declared columns in their order."""
        return [column.name for column in self.columns]


def _text(name: str, *allowed: str, nullable: bool = False) -> Column:
    return Column(name, "text", nullable, tuple(allowed))


PAIRS = Table(
    "pairs",
    (
        _text("pair_id"),
        _text("base_id"),
        _text("source"),
        _text("split", "train", "test", nullable=True),
        _text("domain", nullable=True),
        _text("difficulty", nullable=True),
        _text("stakes", *STAKES),
        _text("manipulation", nullable=True),
        _text("variant", nullable=True),
        _text("severity", nullable=True),
        _text("modified", *DECISIVE, nullable=True),
        _text("twin_pair_id", nullable=True),
        _text("language", nullable=True),
        # Null texts: the pair is known from a log that came without them; it is never judged.
        _text("question", nullable=True),
        _text("response_a", nullable=True),
        _text("response_b", nullable=True),
        _text("candidate_a", nullable=True),
        _text("candidate_b", nullable=True),
        _text("reference_label", "A", "B", "TIE", nullable=True),
        _text("reference_kind", *REFERENCE_KINDS, nullable=True),
        _text("expected", "A", "B", "TIE", nullable=True),
        Column("quality_gap", "number", nullable=True),
        _text("source_packet_ids", nullable=True),  # JSON list of passage ids
        _text("source_packet", nullable=True),  # JSON list of {id, text}: what the judge may see
        _text("mutation_note", nullable=True),
        _text("mutation_diff", nullable=True),  # JSON list of character-level edits
        Column("sentinel", "boolean"),
        _text("license", nullable=True),
        _text("provenance", nullable=True),
        _text("content_hash"),
    ),
    key=("pair_id",),
)

# A call that several pairs share (a checklist, a pointwise score) has one call_id and a row for each pair.
CALLS = Table(
    "calls",
    (
        _text("call_id"),
        _text("pair_id"),
        _text("judge_id"),
        _text("instrument_id"),
        _text("protocol"),
        _text("constraint", "none", "json_object", "json_schema", "grammar"),
        _text("step"),
        _text("order", *ORDERS),
        Column("temperature", "number", nullable=True),  # null: the model cannot set one
        Column("repetition", "integer"),
        _text("request"),  # canonical JSON of the planned request
    ),
    key=("pair_id", "judge_id", "instrument_id", "step", "order", "temperature", "repetition"),
)

ANSWERS = Table(
    "answers",
    (
        _text("call_id"),
        _text("request"),
        # Null: an answer arrived. Else why none did: the last attempt's class.
        _text(
            "failure",
            "refusal",
            "timeout",
            "rate_limited",
            "context_overflow",
            "unavailable",
            "error",
            "missing",
            nullable=True,
        ),
        _text("text", nullable=True),
        _text("reasoning", nullable=True),
        _text("finish_reason", nullable=True),
        _text("served_model", nullable=True),
        _text("logprobs", nullable=True),  # JSON: [{token, logprob, top: [{token, logprob}]}]
        Column("prompt_tokens", "integer", nullable=True),
        Column("completion_tokens", "integer", nullable=True),
        Column("cached_tokens", "integer", nullable=True),
        Column("reasoning_tokens", "integer", nullable=True),
    ),
    key=("call_id",),
)

VERDICT_ROWS = Table(
    "verdicts",
    (
        _text("pair_id"),
        _text("judge_id"),
        _text("instrument_id"),
        _text("protocol"),
        _text("constraint", nullable=True),
        _text("order", *ORDERS),
        Column("temperature", "number", nullable=True),
        Column("repetition", "integer"),
        _text("outcome", *OUTCOMES),
        _text("verdict", *VERDICTS, nullable=True),  # by candidate identity; null unless valid
        _text("shown_winner", "first", "second", nullable=True),
        _text("scores", nullable=True),  # JSON
        Column("confidence", "number", nullable=True),  # as stated by the judge, 0 to 1
        Column("logprob_confidence", "number", nullable=True),  # probability of the chosen label
        _text("reason_codes", nullable=True),  # JSON list
        _text("flags", nullable=True),  # JSON list, e.g. ["score_winner_conflict"]
        _text("parse_path", *PARSE_PATHS, nullable=True),
    ),
    key=("pair_id", "judge_id", "instrument_id", "order", "temperature", "repetition"),
)

LABELS = Table(
    "labels",
    (
        _text("pair_id"),
        _text("attribute", nullable=True),  # null: the overall preference
        _text("annotator_id"),
        _text("label", *VERDICTS),
        _text("reason_codes", nullable=True),
        _text("order", *ORDERS, nullable=True),  # null: the file does not tell it
        _text("stage", "primary", "adjudication"),
        _text("labelled_at", nullable=True),  # ISO 8601
    ),
    key=("pair_id", "attribute", "annotator_id", "stage"),
)

READS = Table(
    "reads",
    (
        _text("pair_id"),
        _text("judge_id"),
        _text("attribute"),
        _text("order", *ORDERS),
        _text("direction", "A", "B", "NONE", nullable=True),  # by candidate identity
        Column("confidence", "number", nullable=True),
        Column("magnitude", "number", nullable=True),
        _text("outcome", *OUTCOMES),
    ),
    key=("pair_id", "judge_id", "attribute", "order"),
)

TABLES = {table.name: table for table in (PAIRS, CALLS, ANSWERS, VERDICT_ROWS, LABELS, READS)}


def _is_kind(values: pd.Series, kind: Kind) -> pd.Series:
    present = values.dropna()
    if kind == "boolean":
        return present.map(lambda v: isinstance(v, bool) or type(v).__name__ == "bool_")
    if kind == "text":
        if isinstance(values.dtype, pd.StringDtype):
            return pd.Series(True, index=present.index)
        return present.map(lambda v: isinstance(v, str))
    if pd.api.types.is_bool_dtype(values.dtype):
        return pd.Series(False, index=present.index)
    numbers = pd.to_numeric(present, errors="coerce")
    fine = numbers.notna()
    return fine & (numbers == numbers.round()) if kind == "integer" else fine


def problems_of(frame: pd.DataFrame, table: Table, where: str | None = None) -> list[Problem]:
    """List everything that breaks the table's schema.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a record.
    table : Table
        The schema.
    where : str, optional
        How to call the frame in the problems; the table's name by default.

    Returns
    -------
    list of Problem
        Empty when the frame is fine. Rows are counted from 1 as a person would.
    """
    place = where or table.name
    problems: list[Problem] = []
    for column in table.columns:
        if column.name not in frame.columns:
            problems.append(Problem(f"{place}, column {column.name}", "no such column", column.kind))
            continue
        values = frame[column.name].reset_index(drop=True)
        missing = values.isna()
        if not column.nullable and missing.any():
            rows = [int(i) + 1 for i in missing[missing].index[:5]]
            problems.append(
                Problem(
                    f"{place}, column {column.name}, rows {rows}", f"{int(missing.sum())} nulls", "a value"
                )
            )
        fine = _is_kind(values, column.kind)
        for row in fine[~fine].index[:5]:
            problems.append(
                Problem(
                    f"{place}, row {int(row) + 1}, column {column.name}", repr(values[row])[:80], column.kind
                )
            )
        if column.allowed:
            unknown = values[~missing & ~values.isin(column.allowed)]
            for row, value in list(unknown.items())[:5]:
                problems.append(
                    Problem(
                        f"{place}, row {int(str(row)) + 1}, column {column.name}",
                        repr(value)[:80],
                        "one of " + ", ".join(column.allowed),
                    )
                )
    if all(name in frame.columns for name in table.key):
        keys = frame[list(table.key)].reset_index(drop=True)
        repeated = keys[keys.duplicated(keep=False)]
        by = list(table.key) if len(table.key) > 1 else table.key[0]
        for key, same in list(repeated.groupby(by, dropna=False).groups.items())[:5]:
            shown = key if isinstance(key, tuple) else (key,)
            problems.append(
                Problem(
                    f"{place}, rows {[int(r) + 1 for r in same][:6]}",
                    f"the same {', '.join(table.key)} {tuple(map(str, shown))}",
                    "one row each",
                )
            )
    return problems


def check(frame: pd.DataFrame, table: Table, where: str | None = None) -> pd.DataFrame:
    """Return the frame if it obeys the table's schema.

    Raises
    ------
    TableError
        With every problem that was found.
    """
    problems = problems_of(frame, table, where)
    if problems:
        raise TableError(
            f"The table '{where or table.name}' breaks its schema in {len(problems)} places.",
            problems,
            "correct what made this table; its columns are declared in judge_calibration/schemas.py",
        )
    return frame


def validator(name: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the check for the table called `name`, as the catalog's ``validator:`` key wants it."""
    table = TABLES[name]
    return lambda frame: check(frame, table)


def empty(table: Table) -> pd.DataFrame:
    """Return a frame with the table's columns, their dtypes and no row."""
    return conform(pd.DataFrame({column.name: [] for column in table.columns}), table)


_DTYPES: dict[str, Any] = {"text": "str", "integer": "Int64", "number": "float64", "boolean": "bool"}


def conform(frame: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return the frame with the table's column order and dtypes, absent nullable columns added as null.

    Further columns follow in their order. The result is not checked; see :func:`check`.
    """
    out = frame.copy()
    for column in table.columns:
        if column.name not in out.columns and column.nullable:
            out[column.name] = None
        if column.name in out.columns:
            out[column.name] = out[column.name].astype(_DTYPES[column.kind])
    ordered = [name for name in table.column_names if name in out.columns]
    return out[ordered + [name for name in out.columns if name not in ordered]]
