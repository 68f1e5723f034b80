"""``kedro runs``: list the runs."""

from __future__ import annotations

from datetime import datetime

import click

from judge_calibration.console.exits import Exit, explained
from judge_calibration.runs.manifest import Run, read_all
from judge_calibration.session.project import find_project

_COLOURS = {"finished": "green", "running": "cyan"}


@click.command("runs")
@click.option("--env", "-e", help="Environment whose data folder is meant (base if not given).")
@click.option("--last", "-n", type=click.IntRange(min=1), help="Show the newest N only.")
@explained
def command(env: str | None, last: int | None) -> Exit:
    """List the runs from the oldest to the newest: how each ended, its environment and its command."""
    project = find_project(env)
    runs = read_all(project.runs)
    if not runs:
        click.echo(f"No run yet in {project.runs}. Start one by: kedro run")
        return Exit.PASS
    click.echo(f"{'run':<26}{'status':<13}{'env':<12}{'took':>8}  command")
    for run in runs[-last:] if last else runs:
        click.echo(f"{run.run_id:<26}", nl=False)
        click.secho(f"{run.status:<13}", fg=_COLOURS.get(run.status, "red"), nl=False)
        click.echo(
            f"{run.content.get('environment', ''):<12}{_took(run):>8}  {run.content.get('command', '')}"
        )
        failure = run.content.get("failure")
        if failure:
            click.echo(f"{'':<26}{failure['where']}: {failure['message'].splitlines()[0]}")
    return Exit.PASS


def _took(run: Run) -> str:
    start, end = run.content.get("started_at"), run.content.get("finished_at")
    if not start or not end:
        return "-"
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"
