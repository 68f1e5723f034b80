"""``kedro audit [RUN]``: verify every checksum."""

from __future__ import annotations

import click

from judge_calibration.console.exits import Exit, explained
from judge_calibration.session.project import find_project


@click.command("audit")
@click.argument("run", required=False)
@click.option("--env", "-e", help="Environment whose data folder is meant (base if not given).")
@explained
def command(run: str | None, env: str | None) -> Exit:
    """Verify the SHA-256 of every artifact, or of what one RUN read and wrote.

    Exit codes: 0 all intact, 1 a file was changed or is gone, 2 no such run, 4 the audit could not be done.
    """
    from judge_calibration.runs.audit import audit

    project = find_project(env)
    result = audit(project.data, project.root, run)
    for finding in result.findings:
        colour = "red" if finding.is_failure else "yellow"
        click.secho(f"{finding.fault:<12}", fg=colour, nl=False)
        click.echo(f"{finding.path}  ({finding.detail})")
    what = f"run {run}" if run else project.data.name
    if result.failures:
        click.echo(f"{what}: {len(result.failures)} of {result.verified} files are not what was written.")
        return Exit.FAIL
    click.echo(f"{what}: {result.verified} files verified, all intact.")
    return Exit.PASS
