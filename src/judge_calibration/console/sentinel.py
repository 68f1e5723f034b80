"""``kedro sentinel``: is each judge still the one that was calibrated?"""

from __future__ import annotations

import json
from typing import Any

import click
from kedro.framework.cli.utils import _split_params  # as `kedro run` reads --params

from judge_calibration.console.exits import Exit, explained
from judge_calibration.errors import GateInputError
from judge_calibration.runs import files
from judge_calibration.runs.manifest import Run
from judge_calibration.session.project import environment_label, find_project

_COLOURS = {"stable": "green", "drift": "red"}


@click.command("sentinel")
@click.argument("run", required=False)
@click.option(
    "--frozen", help="The frozen run (parameters gate.calibration_run, gate.calibration_environment)."
)
@click.option(
    "--env", "-e", help="Environment of RUN, where none is named (parameter gate.sentinel_environment)."
)
@click.option("--params", default="", callback=_split_params, help="Parameters in place of those in files.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON and nothing else.")
@explained
def command(
    run: str | None, frozen: str | None, env: str | None, params: dict[str, Any], as_json: bool
) -> Exit:
    """Compare a RUN's verdicts on the protected pairs with a frozen run's, pair by pair, judge by judge.

    The pairs have to be asked anew, into a call store of their own: answers that the store gives back prove
    nothing, and such a run is told as not_asked_again.

    Exit codes: 0 every judge is stable, 1 one drifted, 2 no such run, 3 too few pairs or not asked again,
    4 it could not be compared.
    """
    from judge_calibration.options.gate import GateOptions
    from judge_calibration.options.reporting import ReportingOptions
    from judge_calibration.report.gate_page import sentinel_document, sentinel_page
    from judge_calibration.runs.results import find_run
    from judge_calibration.session.auditing import is_simulated
    from judge_calibration.session.configuration import block_of, read_parameters
    from judge_calibration.session.decisions import decision_id, keep
    from judge_calibration.session.gating import needed_rule

    project = find_project(env)
    parameters = read_parameters(project.root, env, params)
    options = block_of(parameters, "gate", GateOptions)
    rule = needed_rule(block_of(parameters, "reporting", ReportingOptions))
    wanted = environment_label(env) if env else options.sentinel_environment
    current = find_run(project.runs, "verdicts", wanted, run or options.sentinel_run)
    before = find_run(
        project.runs, "verdicts", options.calibration_environment, frozen or options.calibration_run
    )
    found = _compared(before, current, project.root, rule, options.judge.model_dump())
    documents = [sentinel_document(one.cell, one.status, one.reason, one.result) for one in found]
    code = _code([one.status for one in found])
    example = rule.name.upper().startswith("EXAMPLE")
    simulated = any(is_simulated(run, project.root) for run in (before, current))
    document = {
        "frozen": before.run_id,
        "current": current.run_id,
        "rule": rule.name,
        "simulated": simulated,
        "exit_code": int(code),
        "cells": documents,
    }
    banners = ["The margins are those of the shipped EXAMPLE rule: nobody chose them."] if example else []
    summary = f"Run {current.run_id} beside the frozen run {before.run_id}, by the rule '{rule.name}'."
    page = sentinel_page(documents, summary, banners, simulated)
    written = keep(project.data, "sentinel", decision_id(), document, page, {})
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return code
    for one in found:
        name = " ".join(str(value) for value in one.cell.values() if value is not None)
        status = str(one.status or "not compared")
        click.secho(f"{status:<13}", fg=_COLOURS.get(status, "yellow"), nl=False)
        click.echo(f"{name}{f'  ({one.reason})' if one.reason else ''}")
        for measure in one.result.measures if one.result is not None else ():
            click.echo(
                f"{'':<13}{measure.name}: {measure.value:+.3f} ({measure.low:+.3f} to {measure.high:+.3f}), "
                f"allowed {measure.margin:g}: {measure.status}"
            )
    if banners:
        click.echo(banners[0])
    click.echo(f"The page: {files.relative(written['html'], project.root)}")
    return code


def _compared(before: Run, current: Run, root: Any, rule: Any, choice: dict[str, Any]) -> list[Any]:
    """Compare every cell of the frozen run that the new run has, too, and that fits the choice."""
    from judge_calibration.metrics.cell_choice import cells_in, rows_of_cell
    from judge_calibration.runs.results import read_table
    from judge_calibration.session.gating import compare_cell

    frozen, verdicts = (read_table(run, "verdicts", root) for run in (before, current))
    pairs = read_table(before, "pairs", root)
    found = []
    for cell in cells_in(frozen).to_dict("records"):
        if any(value is not None and cell[name] != value for name, value in choice.items()):
            continue
        own = rows_of_cell(verdicts, cell)
        if len(own):
            found.append(compare_cell(before, rows_of_cell(frozen, cell), current, own, pairs, rule))
    if not found:
        raise GateInputError(
            f"The runs {before.run_id} and {current.run_id} have no judge in common that fits.",
            [],
            "name runs of the same judge, protocol, constraint and temperature; gate.judge chooses one",
        )
    return found


def _code(statuses: list[str | None]) -> Exit:
    if "drift" in statuses:
        return Exit.FAIL
    return Exit.PASS if all(status == "stable" for status in statuses) else Exit.PAUSE
