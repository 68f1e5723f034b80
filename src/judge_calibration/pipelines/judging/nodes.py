"""Nodes of the pipeline `judging`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration import schemas
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.call_plan import call_plan
from judge_calibration.judges.instrument import describe_instruments
from judge_calibration.judges.model_names import check_model_names
from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.reading import read_answers
from judge_calibration.judges.sequential import ask_sequentially, needed_calls, no_looks
from judge_calibration.metrics.decision_rule import rule_hash
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import ReportingOptions

RUN_ID_VARIABLE = "JUDGE_CALIBRATION_RUN_ID"
"""Holds the id of the run that is going; see :mod:`judge_calibration.hooks`."""


def plan_judging(
    judged_pairs: pd.DataFrame, options: JudgingOptions
) -> tuple[pd.DataFrame, dict[str, dict[str, Any]], pd.DataFrame]:
    """Plan every call, identify every instrument, and add up what the plan takes.

    Without a pair to judge (verdicts that all come from logs) no instrument is looked at. A model whose
    provider nobody knows is refused here, before anything is asked.
    """
    if judged_pairs.empty:
        calls = schemas.empty(schemas.CALLS)
        return calls, {}, call_plan(calls, {})
    if not options.asking.offline:
        check_model_names(options.judges)
    calls = plan_calls(judged_pairs, options)
    transports = {judge.judge_id: judge.transport for judge in options.judges}
    return calls, describe_instruments(options), call_plan(calls, transports)


def record_rule(options: ReportingOptions) -> dict[str, str | None]:
    """Keep the name and hash of the decision rule as it is when judging starts; nulls without a rule."""
    if options.rule is None:
        return {"name": None, "sha256": None}
    return {"name": options.rule.name, "sha256": rule_hash(options.rule)}


def ask_judges(
    calls: pd.DataFrame,
    judged_pairs: pd.DataFrame,
    call_store: Path,
    judge_keys: dict[str, str | None],
    options: JudgingOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Ask what the store has no answer to; return all answers, every attempt, and the looks at each cell.

    There are looks only where repetitions are asked one after the other (parameter `asking.sequential`).
    """
    store = Path(options.asking.store) if options.asking.store else call_store
    run_id = os.environ.get(RUN_ID_VARIABLE)
    if options.asking.sequential is not None and not calls.empty:
        return ask_sequentially(calls, judged_pairs, options, store, run_id, judge_keys)
    answers, attempts = ask_calls(calls, options, store, run_id, judge_keys)
    return answers, attempts, no_looks()


def read_verdicts(
    calls: pd.DataFrame,
    answers: pd.DataFrame,
    repetition_looks: pd.DataFrame,
    judged_pairs: pd.DataFrame,
    options: JudgingOptions,
) -> pd.DataFrame:
    """Read the answers with the parsers of their protocols; repetitions that no look needed are left out."""
    if calls.empty:
        return schemas.empty(schemas.VERDICT_ROWS)
    return read_answers(needed_calls(calls, repetition_looks), answers, judged_pairs, options)


def join_verdicts(judged_verdicts: pd.DataFrame, logged_verdicts: pd.DataFrame) -> pd.DataFrame:
    """Put the verdicts that were asked for and those from logs into one table."""
    parts = [part for part in (judged_verdicts, logged_verdicts) if not part.empty]
    if not parts:
        return schemas.empty(schemas.VERDICT_ROWS)
    return schemas.conform(pd.concat(parts, ignore_index=True), schemas.VERDICT_ROWS)
