"""What the gate and the sentinel rest on: which runs, which judge, which rule, and when it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import GateInputError, RunError
from judge_calibration.metrics.audit_queue import audit_queue
from judge_calibration.metrics.authority import authority_table, calibration_shift, earned_slices
from judge_calibration.metrics.cell_choice import choose_cell
from judge_calibration.metrics.decision_rule import RuleStatus, check_rule, rule_status
from judge_calibration.metrics.judgments import CELL_COLUMNS
from judge_calibration.metrics.people import of_people
from judge_calibration.metrics.sentinel import SentinelResult, compare_sentinel
from judge_calibration.metrics.two_key_gate import GateDecision, new_side, two_key_gate
from judge_calibration.options.gate import GateOptions
from judge_calibration.options.gates import DecisionRule
from judge_calibration.options.reporting import AuditOptions, ReportingOptions
from judge_calibration.runs.manifest import Run
from judge_calibration.runs.results import (
    find_run,
    maker_of,
    path_in,
    read_table,
    rule_hash_when_asked,
    was_asked_after,
)
from judge_calibration.session.project import Project, environment_label

NOT_ASKED_AGAIN = "not_asked_again"
"""Reason code: the new run read the frozen run's own answers from the call store."""

ASK_AGAIN = (
    "kedro run --env sentinel --pipelines data_prep,judging --params judging.asking.store=data/calls-sentinel"
)
"""The command that asks the sentinel pairs anew, into a call store of its own."""

OTHER_INSTRUMENT = "the sentinel was judged by another instrument than the products were"


class Sentinel(NamedTuple):
    """One judge's sentinel comparison.

    Attributes
    ----------
    status : {"stable", "drift", "too_few"} or None
        None where nothing could be compared.
    reason : str
        Why it is not stable; empty else.
    result : SentinelResult or None
    cell : dict
        Judge, protocol, constraint and temperature.
    instruments : tuple of str
        Of the new run.
    """

    status: str | None
    reason: str
    result: SentinelResult | None
    cell: dict[str, Any]
    instruments: tuple[str, ...]


class Gate(NamedTuple):
    """A decision and everything that a person wants to see beside it.

    Attributes
    ----------
    decision : GateDecision
    authority, shift : pandas.DataFrame
        Tables of :mod:`judge_calibration.metrics.authority`; may be empty.
    sentinel : Sentinel
    cell : dict
        The judge, protocol, constraint and temperature that decided.
    pairs, verdicts, labels : pandas.DataFrame
        The products' pairs, the cell's verdicts on them and people's labels.
    run : Run
        The run with the products' verdicts.
    runs : dict of str to str or None
        Ids by what they were read for.
    """

    decision: GateDecision
    authority: pd.DataFrame
    shift: pd.DataFrame
    sentinel: Sentinel
    cell: dict[str, Any]
    pairs: pd.DataFrame
    verdicts: pd.DataFrame
    labels: pd.DataFrame
    run: Run
    runs: dict[str, str | None]

    def audit_queue(self, options: AuditOptions) -> pd.DataFrame:
        """Return which of these judgments a person should look at first, and why.

        Pairs that brought judge and people into conflict have that as a reason of its own.
        """
        first = self.verdicts.head(1).reindex(columns=list(CELL_COLUMNS))
        contradicted = self.decision.audit_pairs if self.decision.outcome == "conflict" else ()
        conflict = pd.DataFrame({"pair_id": list(contradicted)}, dtype="str")
        conflict = conflict.merge(first, how="cross").assign(reason="gate_conflict")
        return audit_queue(self.verdicts, self.pairs, self.labels, options, conflict)


def needed_rule(reporting: ReportingOptions) -> DecisionRule:
    """Return the decision rule.

    Raises
    ------
    RunError
        If there is none.
    """
    if reporting.rule is None:
        raise RunError(
            "There is no decision rule.",
            "write one under reporting.rule (conf/base/reporting/parameters.yml has an example), then judge",
        )
    return reporting.rule


def decide_gate(
    project: Project,
    env: str | None,
    options: GateOptions,
    reporting: ReportingOptions,
    run_id: str | None = None,
) -> Gate:
    """Put both keys, the judge's authority and the sentinel together.

    Parameters
    ----------
    project : Project
    env : str or None
        The environment in which the two products' answers were judged.
    options : GateOptions
    reporting : ReportingOptions
        The decision rule, and the verdict reduction.
    run_id : str, optional
        The run with the products' verdicts; else the environment's newest.

    Raises
    ------
    RuleRefusedError
        For the shipped example rule.
    RunError
        If a run is not there.
    GateInputError
        If the verdicts are not one judge's on pairs of both products.
    """
    rule = check_rule(needed_rule(reporting))
    product = find_run(project.runs, "verdicts", environment_label(env), run_id)
    choice = options.judge.model_dump()
    pairs = read_table(product, "pairs", project.root)
    side = new_side(pairs, options.old, options.new)
    pairs = pairs[side >= 0].reset_index(drop=True)
    everything = read_table(product, "verdicts", project.root)
    verdicts = choose_cell(
        everything[everything["pair_id"].isin(pairs["pair_id"])], choice, f"verdicts of run {product.run_id}"
    )
    cell = _named(verdicts)
    instruments = set(verdicts["instrument_id"].astype(str))
    calibration, calibrated, known_pairs, why = _calibrated(project, options, cell)
    authority = pd.DataFrame()
    sentinel = Sentinel(None, why, None, cell, ())
    if calibration is not None:
        same = calibrated[calibrated["instrument_id"].astype(str).isin(instruments)]
        if len(same):
            known_labels = _labels(calibration, project, env)
            authority = authority_table(same, known_pairs, rule, known_labels, pairs, reporting)
        sentinel = _sentinel_of(project, options, calibration, calibrated, known_pairs, rule, instruments)
    labels = _labels(product, project, env)
    decision = two_key_gate(
        verdicts,
        pairs,
        labels,
        rule,
        options.old,
        options.new,
        earned_slices(authority) if len(authority) else {},
        set(calibrated["instrument_id"].astype(str)) if calibration is not None else set(),
        sentinel.status,
        rule_state_of(project, product, verdicts, rule),
        reporting,
    )
    shift = pd.DataFrame()
    if calibration is not None:
        judged_before = known_pairs[known_pairs["pair_id"].isin(calibrated["pair_id"])]
        shift = calibration_shift(judged_before.reset_index(drop=True), pairs, rule.slice_by)
    runs = {
        "product": product.run_id,
        "calibration": calibration.run_id if calibration is not None else None,
        "sentinel": options.sentinel_run or _latest_id(project, options),
    }
    return Gate(decision, authority, shift, sentinel, cell, pairs, verdicts, labels, product, runs)


def _calibrated(
    project: Project, options: GateOptions, cell: Mapping[str, Any]
) -> tuple[Run | None, pd.DataFrame, pd.DataFrame, str]:
    """Return the calibration run, the cell's verdicts there and its pairs; no run and why where none fits.

    A judge that was never calibrated is a reason to pause, not a fault of whoever asks.
    """
    try:
        run = find_run(project.runs, "verdicts", options.calibration_environment, options.calibration_run)
        verdicts = choose_cell(
            read_table(run, "verdicts", project.root),
            cell_choice(cell),
            f"verdicts of run {run.run_id} (calibration)",
        )
    except GateInputError as error:
        return None, pd.DataFrame(), pd.DataFrame(), str(error.problems[0])
    except RunError as error:
        if options.calibration_run is not None:
            raise
        return None, pd.DataFrame(), pd.DataFrame(), error.message
    return run, verdicts, read_table(run, "pairs", project.root), ""


def _latest_id(project: Project, options: GateOptions) -> str | None:
    try:
        return find_run(project.runs, "verdicts", options.sentinel_environment).run_id
    except RunError:
        return None


def _sentinel_of(
    project: Project,
    options: GateOptions,
    calibration: Run,
    calibrated: pd.DataFrame,
    known_pairs: pd.DataFrame,
    rule: DecisionRule,
    instruments: set[str],
) -> Sentinel:
    """Compare the sentinel for the gate; whatever stands in the way pauses the gate and is told."""
    cell = _named(calibrated)
    try:
        current = find_run(project.runs, "verdicts", options.sentinel_environment, options.sentinel_run)
        verdicts = choose_cell(
            read_table(current, "verdicts", project.root), cell_choice(cell), f"verdicts of {current.run_id}"
        )
        found = compare_cell(calibration, calibrated, current, verdicts, known_pairs, rule)
    except (RunError, GateInputError) as error:
        return Sentinel(None, error.message, None, cell, ())
    if found.status is not None and set(found.instruments) != instruments:
        # What another instrument did says nothing about this one: it is not shown beside its keys.
        return found._replace(status=None, reason=OTHER_INSTRUMENT, result=None)
    return found


def compare_cell(
    frozen_run: Run,
    frozen: pd.DataFrame,
    current_run: Run,
    current: pd.DataFrame,
    pairs: pd.DataFrame,
    rule: DecisionRule,
) -> Sentinel:
    """Compare one cell's verdicts on the sentinel pairs with the frozen ones.

    A run that was given the frozen answers by the call store has asked nothing: it is not compared.

    Raises
    ------
    GateInputError
        If there is no sentinel pair, or a run holds several instruments.
    """
    cell = _named(frozen)
    instruments = tuple(sorted(set(current["instrument_id"].astype(str))))
    if frozen_run.run_id == current_run.run_id or was_asked_after(current_run, frozen_run) is False:
        return Sentinel(None, f"{NOT_ASKED_AGAIN}: the answers are the frozen run's", None, cell, instruments)
    result = compare_sentinel(frozen, current, pairs, rule.sentinel, rule.alpha)
    return Sentinel(result.status, result.reason, result, cell, instruments)


def rule_state_of(project: Project, run: Run, verdicts: pd.DataFrame, rule: DecisionRule) -> RuleStatus:
    """Return whether the rule was written before the verdicts of `run` were asked for."""
    replayed = True
    if path_in(run, "judged_verdicts", project.root) is not None or "verdicts" in run.content["inputs"]:
        made = maker_of(project.runs, run, "verdicts")
        if path_in(made, "judged_verdicts", project.root) is not None:
            asked = read_table(made, "judged_verdicts", project.root, ["instrument_id"])
            replayed = not set(verdicts["instrument_id"]) <= set(asked["instrument_id"])
        run = made
    return rule_status(rule, None if replayed else rule_hash_when_asked(project.runs, run), replayed)


def cell_choice(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cell as a choice: a null temperature asks for nothing."""
    return {name: None if pd.isna(value) else value for name, value in cell.items()}


def _named(verdicts: pd.DataFrame) -> dict[str, Any]:
    first = verdicts.reindex(columns=["judge_id", "protocol", "constraint", "temperature"]).iloc[0]
    return {str(name): None if pd.isna(value) else value for name, value in first.items()}


def _labels(run: Run, project: Project, env: str | None) -> pd.DataFrame:
    """Return the newest labels of a run's environment, else the run's own; none is no fault.

    People label after the judge, so a later run has them. An adjudicator's are among them. Labels of a
    simulated panel are nobody's, and are left out.
    """
    environment = str(run.content.get("environment", environment_label(env)))
    try:
        source = find_run(project.runs, "labels", environment)
    except RunError:
        if path_in(run, "labels", project.root) is None:
            return schemas.empty(schemas.LABELS)
        source = run
    return of_people(read_table(source, "labels", project.root)).reset_index(drop=True)
