"""Nodes of the pipeline `reporting` that decompose variance, judge authority and test the instrument."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.metrics.anova import anova_table
from judge_calibration.metrics.authority import AUTHORITY_COLUMNS, authority_table
from judge_calibration.metrics.decision_rule import EXAMPLE, STATUS_TEXT, rule_hash, rule_status
from judge_calibration.metrics.dstudy import d_study_table
from judge_calibration.metrics.gstudy import gstudy
from judge_calibration.metrics.selftest import SELFTEST_COLUMNS, run_self_test
from judge_calibration.metrics.set_shifts import set_shifts
from judge_calibration.options.reporting import ReportingOptions

logger = logging.getLogger(__name__)


def decompose_variance(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the variance components of verdict direction, what was missing, and the designs they advise."""
    study = gstudy(verdicts, pairs, options.variance)
    components = study.components.assign(note=study.note)
    return components, study.missing, d_study_table(study.components, options.variance)


def analyse_trust(verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Return the analysis of variance of T over judge, format and source."""
    return anova_table(verdicts, pairs, options, options.variance)


def judge_authority(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    options: ReportingOptions,
    judging_rule: Mapping[str, str | None] | None = None,
    instruments: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return in which slices each judge may influence a decision, by the decision rule.

    The shipped example rule shows what such a table looks like and earns nothing: its floors are nobody's
    decision. ``rule_status`` says whether the rule is the one that was there when judging started;
    instruments that were not asked here are of logs, and so older than the rule.
    """
    if options.rule is None:
        columns = [*AUTHORITY_COLUMNS, "rule", "rule_hash", "rule_status"]
        return pd.DataFrame(columns=columns).astype("str")
    table = authority_table(verdicts, pairs, options.rule, labels, reporting=options)
    if options.rule.name.upper().startswith(EXAMPLE):
        table = table.assign(earned=False, reason="no_declared_rule; with the example: " + table["reason"])
    recorded = (judging_rule or {}).get("sha256")
    asked = set(instruments or {})
    status = [
        STATUS_TEXT[rule_status(options.rule, recorded, replayed=str(instrument) not in asked)]
        for instrument in table["instrument_id"]
    ]
    return table.assign(
        rule=options.rule.name,
        rule_hash=rule_hash(options.rule),
        rule_status=pd.Series(status, index=table.index, dtype="str"),
    )


def compare_sets(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, labels: pd.DataFrame, options: ReportingOptions
) -> pd.DataFrame:
    """Return how the pairs with human labels, the judged ones and all pairs differ."""
    slice_by = options.rule.slice_by if options.rule is not None else ("domain",)
    return set_shifts(verdicts, pairs, labels, slice_by)


def check_instrument(options: ReportingOptions) -> pd.DataFrame:
    """Return whether planted judges are found as often, and wrongly accused as rarely, as is claimed."""
    if options.selftest is None:
        return pd.DataFrame(columns=list(SELFTEST_COLUMNS)).astype("str")
    result = run_self_test(options.selftest)
    failed = result.table[~result.table["passed"]]
    if failed.empty:
        logger.info("Self-test: all %d checks passed.", len(result.table))
    for row in failed.itertuples():
        logger.error(
            "Self-test: %s of %s (%s): %s of %s seeds; wanted %s to %s.",
            row.check, row.quantity, row.judge, row.count, row.seeds, row.lowest, row.highest,
        )  # fmt: skip
    return result.table
