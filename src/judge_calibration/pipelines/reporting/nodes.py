"""Nodes of the pipeline `reporting` that make its tables."""

from __future__ import annotations

import pandas as pd

from judge_calibration.metrics.agreement import agreement_table, confusion_table
from judge_calibration.metrics.confidence import confidence_tables
from judge_calibration.metrics.costs import cost_table, spending_table
from judge_calibration.metrics.format_dispersion import format_dispersion
from judge_calibration.metrics.manipulations import manipulation_table
from judge_calibration.metrics.outcomes import outcome_table
from judge_calibration.metrics.paired_differences import paired_differences
from judge_calibration.metrics.paradigms import paradigm_table, trust_spread
from judge_calibration.metrics.positions import position_table
from judge_calibration.metrics.regions import region_table
from judge_calibration.metrics.remedies import remedy_table
from judge_calibration.metrics.selective import selective_tables
from judge_calibration.metrics.temperature import temperature_table
from judge_calibration.metrics.trust_table import trust_intervals, widen_intervals
from judge_calibration.metrics.win_rates import win_rates
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import ReportingOptions


def measure_trust(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions, judging: JudgingOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the trust table, wide and long."""
    embedded = tuple(judge.judge_id for judge in judging.judges if judge.model.startswith("embedded/"))
    known = (*options.trust.deterministic_judges, *embedded)
    trust = options.trust.model_copy(update={"deterministic_judges": known})
    intervals = trust_intervals(verdicts, pairs, options.model_copy(update={"trust": trust}))
    return widen_intervals(intervals), intervals


def count_outcomes(verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Count outcomes, verdicts and parse paths of every cell."""
    return outcome_table(verdicts, pairs, options)


def measure_manipulations(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what controlled changes and positions do to verdicts."""
    return manipulation_table(verdicts, pairs, options), position_table(verdicts, pairs, options)


def compare_cells(verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Compare the cells of each judge on the pairs that both judged."""
    return paired_differences(verdicts, pairs, options)


def measure_dispersion(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions
) -> pd.DataFrame:
    """Return how far T moves with the prompt format, beside its null."""
    return format_dispersion(verdicts, pairs, options)


def follow_temperature(trust: pd.DataFrame, differences: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return C, phi, A and T by temperature, and each judge's spread of T over protocols and sources."""
    return temperature_table(trust, differences), trust_spread(trust)


def try_remedies(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, trust: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return each cell's failure region, what remedies would give, and paradigms at equal calls."""
    remedies = remedy_table(verdicts, pairs, options)
    return region_table(trust, options.regions), remedies, paradigm_table(trust, remedies, options.paradigms)


def check_confidence(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare confidence with being right."""
    return confidence_tables(verdicts, pairs, options)


def judge_selectively(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return thresholds with a guaranteed error rate, and risk by coverage."""
    return selective_tables(verdicts, pairs, options)


def measure_agreement(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, labels: pd.DataFrame, options: ReportingOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return agreement and confusion with people and references."""
    agreement = agreement_table(verdicts, pairs, labels, options)
    return agreement, confusion_table(verdicts, pairs, labels, options)


def estimate_win_rates(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    adjudicated_labels: pd.DataFrame,
    labelling_frame: pd.DataFrame,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Return products' win rates from people's and the judge's labels together."""
    return win_rates(verdicts, pairs, adjudicated_labels, labelling_frame, options)


def add_up_costs(
    calls: pd.DataFrame, answers: pd.DataFrame, verdicts: pd.DataFrame, options: JudgingOptions
) -> pd.DataFrame:
    """Return what every cell's answers used and cost."""
    prices = {judge.judge_id: judge.transport.price for judge in options.judges}
    return cost_table(calls, answers, verdicts, prices)


def compare_with_plan(
    call_plan: pd.DataFrame, calls: pd.DataFrame, answers: pd.DataFrame, options: JudgingOptions
) -> pd.DataFrame:
    """Return what was planned before anything was asked beside what it took."""
    prices = {judge.judge_id: judge.transport.price for judge in options.judges}
    return spending_table(call_plan, calls, answers, prices)
