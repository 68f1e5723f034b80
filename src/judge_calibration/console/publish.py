"""``kedro publish [RUN] --to FOLDER``: a run as a folder that others can check without us."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from judge_calibration.console.exits import Exit, explained, say_error
from judge_calibration.errors import RunError
from judge_calibration.session.project import Project, environment_label, find_project


@click.command("publish")
@click.argument("run", required=False)
@click.option("--to", "target", required=True, type=click.Path(file_okay=False), help="A folder to make.")
@click.option("--env", "-e", help="Environment whose newest run is meant where none is named (base).")
@click.option(
    "--review",
    type=click.Path(exists=True, dir_okay=False),
    help="YAML file with what a person declares: harmless findings, licences. It is published, too.",
)
@click.option(
    "--propose", type=click.Path(dir_okay=False), help="Where it is refused, write a form for the review."
)
@click.option(
    "--private",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Folder of a private sentinel that no run has named; nothing of it may leave.",
)
@explained
def command(
    run: str | None,
    target: str,
    env: str | None,
    review: str | None,
    propose: str | None,
    private: tuple[str, ...],
) -> Exit:
    """Write a RUN, with all that it takes to repeat it, into a folder for others.

    The folder is a project of its own: pairs, packets, prompts, labels under pseudonyms, answers, statistics,
    the report, code, parameters and the lock; SHA256SUMS, a Croissant description, a data card and the
    licence of every file. Without RUN, the newest finished one with a report is taken.

    It is refused, with every reason at once, on unknown licences, personal data, secrets, anything of a
    private sentinel, and what would not repeat the run.

    Exit codes: 0 written, 1 refused, 2 no such run, a folder that is not empty or a faulty review, 4 it could
    not be looked through.
    """
    from judge_calibration.publish.publishing import Project as Place
    from judge_calibration.publish.publishing import PublicationRefusedError, publish
    from judge_calibration.publish.review import proposed_review, read_review
    from judge_calibration.runs import manifest

    project = find_project(env)
    run_id = run or _newest(project, env)
    declared = Path(review) if review else None
    opinion = read_review(declared)
    content = manifest.read(project.runs, run_id).content
    place = Place(project.root, project.package, project.data)
    parameters = _parameters_now(project, content)
    folders = [Path(folder).resolve() for folder in private]
    click.echo(f"Looking through run {run_id}: {content.get('command', '')}")
    try:
        text = declared.read_text(encoding="utf-8") if declared else ""
        done = publish(run_id, Path(target), place, opinion, text, parameters, folders)
    except PublicationRefusedError as error:
        say_error(str(error))
        if propose:
            reviewable = [finding for finding in error.findings if finding.kind != "private sentinel"]
            form = proposed_review(reviewable, list(error.unlicensed))
            Path(propose).write_text(form, encoding="utf-8", newline="\n")
            click.echo(f"A form for the review: {propose}")
        return Exit.FAIL
    click.echo(f"Published {len(done.selection.files)} files of {len(done.selection.runs)} runs in {target}.")
    click.echo("To check it as others would:")
    click.echo(f"  cd {target} && sha256sum -c --quiet SHA256SUMS && make env")
    click.echo(f"  .venv/bin/kedro reproduce {run_id}")
    return Exit.PASS


def _newest(project: Project, env: str | None) -> str:
    from judge_calibration.runs.manifest import read_all

    label = environment_label(env)
    for run in reversed(read_all(project.runs)):
        content = run.content
        named = content.get("environment") == label and "report" in content.get("outputs", {})
        if run.status == "finished" and named:
            return run.run_id
    raise RunError(
        f"No run of the environment '{label}' has finished with a report.",
        f"make one: kedro run{f' --env {env}' if env else ''}; or name a run: kedro runs",
    )


def _parameters_now(project: Project, content: dict[str, Any]) -> dict[str, Any]:
    """Return what the run's parameters would be today, with the defaults of their models."""
    from kedro.framework.session import KedroSession

    from judge_calibration.session.recording import plain

    session = KedroSession.create(
        project_path=project.root,
        env=content.get("env_option"),
        runtime_params=content.get("runtime_parameters") or {},
        save_on_close=False,
    )
    with session:
        return dict(plain(session.load_context().params))
