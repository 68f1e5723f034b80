"""``kedro compare RUN RUN``: what changed between two runs, verdict by verdict."""

from __future__ import annotations

import json
from typing import Any

import click

from judge_calibration.console.exits import Exit, explained
from judge_calibration.errors import RunError
from judge_calibration.runs import files
from judge_calibration.session.project import find_project

AUDIT = "comparison_audit"
"""Beginning of the names of the audit queue's artifacts."""

CELL_NAMES = ("judge_id", "protocol", "constraint", "temperature")


def _choice(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        if not equals or name not in CELL_NAMES:
            raise click.BadParameter(f"{text!r}: wanted NAME=VALUE with NAME of {', '.join(CELL_NAMES)}")
        chosen[name] = _temperature(value) if name == "temperature" else value
    return chosen


def _temperature(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"temperature={text!r}: wanted a number") from None


@click.command("compare")
@click.argument("before")
@click.argument("after")
@click.option(
    "--before",
    "before_cell",
    multiple=True,
    callback=_choice,
    help="Of the first run only this judge: judge_id=X.",
)
@click.option(
    "--after", "after_cell", multiple=True, callback=_choice, help="Of the second run only this judge."
)
@click.option("--env", "-e", help="Environment whose data folder and parameters are meant.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON and nothing else.")
@explained
def command(
    before: str,
    after: str,
    before_cell: dict[str, Any],
    after_cell: dict[str, Any],
    env: str | None,
    as_json: bool,
) -> Exit:
    """Compare the verdicts of two runs, judgment by judgment, and their statistics with paired intervals.

    Judges are matched by judge_id, protocol, constraint and temperature. To compare two instruments, choose
    one of each run by --before NAME=VALUE and --after NAME=VALUE (both runs may be the same).

    Exit codes: 0 no verdict changed, 1 some did, 2 no such run or judge, 3 no judgment in common,
    4 they could not be compared.
    """
    import pandas as pd

    from judge_calibration.metrics.audit_queue import queue_changes
    from judge_calibration.metrics.run_comparison import compare_verdicts
    from judge_calibration.options.reporting import ReportingOptions
    from judge_calibration.report.audit_page import Before
    from judge_calibration.report.comparison_page import (
        cells_name,
        comparison_document,
        comparison_page,
        headline,
    )
    from judge_calibration.runs.results import find_run, read_table
    from judge_calibration.session.auditing import asked_in, is_simulated, keep_audit, labels_in
    from judge_calibration.session.configuration import block_of, read_parameters
    from judge_calibration.session.decisions import decision_id, keep

    project = find_project(env)
    reporting = block_of(read_parameters(project.root, env), "reporting", ReportingOptions)
    runs = [find_run(project.runs, "verdicts", "", run_id) for run_id in (before, after)]
    verdicts = [
        _chosen(read_table(run, "verdicts", project.root), choice, run.run_id)
        for run, choice in zip(runs, (before_cell, after_cell), strict=True)
    ]
    pairs = [
        read_table(run, "pairs" if "pairs" in _names(run) else "judged_pairs", project.root) for run in runs
    ]
    result = compare_verdicts(verdicts[0], verdicts[1], pairs[0], pairs[1], reporting)
    n, changed = len(result.judgments), len(result.changed)
    code = Exit.PAUSE if not n else Exit.FAIL if changed else Exit.PASS
    simulated = any(is_simulated(run, project.root) for run in runs)
    about = {"before": before, "after": after, "simulated": simulated, "exit_code": int(code)}
    document = comparison_document(result, about)
    summary = f"Before: run {before}. After: run {after}."
    page = comparison_page(result, "Two runs compared", summary, simulated, AUDIT)
    known = pd.concat(pairs, ignore_index=True).drop_duplicates("pair_id")
    queue = queue_changes(result, known, reporting.audit)
    version = decision_id()
    tables = {"changed_verdicts": result.changed}
    written = keep(project.data, "comparison", version, document, page, tables, simulated)
    audit = keep_audit(
        project.data,
        AUDIT,
        version,
        queue,
        known,
        verdicts[1],
        asked_in(runs[1], project.root),
        labels_in(runs[1], project.root),
        reporting.audit,
        "Changed verdicts to look at",
        simulated,
        Before(verdicts[0], *asked_in(runs[0], project.root), result.cells),
    )
    if as_json:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
        return code
    for row, cells in zip(result.summary.to_dict("records"), result.cells, strict=True):
        click.echo(f"{cells_name(*cells)}: {headline(row)}")
        parts = [
            f"{row[name]} {name}"
            for name in ("gained", "lost", "changed", "failed", "recovered")
            if row[name]
        ]
        if parts:
            click.echo(f"  {', '.join(parts)}")
        if row["only_before"] or row["only_after"]:
            click.echo(f"  not compared: {row['only_before']} only before, {row['only_after']} only after")
    for row in result.differences.to_dict("records"):
        if row["low"] > 0 or row["high"] < 0:
            click.echo(
                f"  {row['source']}, {row['metric']}: {row['value_2']:.3f} before, {row['value_1']:.3f} now, "
                f"difference {row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
            )
    if not n:
        click.echo("The two runs have no judgment in common.")
    click.echo(f"The page: {files.relative(written['html'], project.root)}")
    if len(queue):
        browse = files.relative(audit[f"{AUDIT}_page"], project.root)
        click.echo(f"Changed verdicts to browse: {browse}")
    if f"{AUDIT}_packets" in audit:
        packets = files.relative(audit[f"{AUDIT}_packets"], project.root)
        click.echo(f"The same pairs blinded, for people to label: {packets}")
    return code


def _names(run: Any) -> set[str]:
    return set(run.content.get("outputs", {})) | set(run.content.get("inputs", {}))


def _chosen(verdicts: Any, choice: dict[str, Any], run_id: str) -> Any:
    for name, value in choice.items():
        verdicts = verdicts[(verdicts[name] == value).fillna(False).astype(bool)]
        if verdicts.empty:
            raise RunError(f"The run {run_id} has no verdict with {name} = {value}.", "see its trust_table")
    return verdicts
