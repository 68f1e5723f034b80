"""``kedro reproduce RUN``: run again from the call store and compare every artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from judge_calibration.console.exits import Exit, explained
from judge_calibration.errors import RunError
from judge_calibration.publish.given import read_given
from judge_calibration.runs import files, manifest
from judge_calibration.runs.compare import TOLERANCE, Comparison, agreement, compare, without_control
from judge_calibration.session.project import Project, find_project

FRESH_STORES = "calls-fresh"


@click.command("reproduce")
@click.argument("run")
@click.option(
    "--fresh", is_flag=True, help="Ask the judges again, into a store of its own, and report agreement."
)
@click.option("--env", "-e", help="Environment whose data folder is meant (base if not given).")
@explained
def command(run: str, fresh: bool, env: str | None) -> Exit:
    """Repeat RUN from the call store and name the first artifact that differs, and why.

    The run is repeated with today's code, configuration and packages, in its environment and with its inputs'
    versions; no model is asked. With --fresh the models are asked again, which is another question: the
    share of equal verdicts is reported.

    Exit codes: 0 reproduced, 1 an artifact differs, 2 no such run, 4 it could not be repeated.
    """
    project = find_project(env)
    old = manifest.read(project.runs, run)
    if old.status == "running":
        raise RunError(f"The run {run} is still going.", "wait until it has ended: kedro runs")
    if not old.content["outputs"]:
        raise RunError(
            f"The run {run} ({old.status}) has made nothing to compare.", "choose another: kedro runs"
        )
    given = read_given(project.root)
    if not fresh:
        _check_store(old, project)
    click.echo(f"Repeating {run}: {old.content['command']}")
    new = _repeat(old, project, fresh, given)
    if new is None or new.status != "finished":
        click.echo("The run could not be repeated; nothing is said about whether it reproduces.", err=True)
        return Exit.ERROR
    if fresh:
        return _report_fresh(old, new, project)
    return _report(old, new, project, given)


def _check_store(old: manifest.Run, project: Project) -> None:
    """Refuse to repeat a run whose answers are not kept any more, and say how many are not.

    Raises
    ------
    RunError
        The call store lacks answers that the run had.
    """
    from judge_calibration.publish.answers import kept_answers

    kept = kept_answers(old, project.root, project.data)
    if kept.lacking:
        stores = ", ".join(files.relative(store, project.root) for store in kept.stores)
        raise RunError(
            f"The call store {stores} lacks {kept.lacking} of the {kept.had} answers that run {old.run_id} "
            "had, so it cannot be repeated without asking.",
            f"bring the store back from a copy; or ask again: kedro reproduce {old.run_id} --fresh",
        )


def _repeat(
    old: manifest.Run, project: Project, fresh: bool, given: Sequence[str] = ()
) -> manifest.Run | None:
    from kedro.framework.project import settings
    from kedro.framework.session import KedroSession
    from kedro.runner import SequentialRunner

    from judge_calibration.console.exits import say_error
    from judge_calibration.hooks import RunHooks
    from judge_calibration.session.failures import explain

    content = old.content
    hooks = next(hook for hook in settings.HOOKS if isinstance(hook, RunHooks))
    before = hooks.folder
    pinned = {name: item["version"] for name, item in content["inputs"].items() if item.get("version")}
    filters = content["filters"]
    nodes = filters.get("nodes")
    if given:
        # A publication holds what these nodes made, and not the secret or the files that they need.
        kept = {name: item for name, item in content["outputs"].items() if _maker(content, name) in given}
        pinned |= {name: item["version"] for name, item in kept.items() if item.get("version")}
        nodes = [node["name"] for node in content["nodes"] if node["name"] not in given]
    try:
        session = KedroSession.create(
            project_path=project.root,
            env=content["env_option"],
            runtime_params=_parameters(content, project, fresh),
            save_on_close=False,
        )
        with session:
            session.run(
                pipeline_names=content["pipelines"],
                runner=SequentialRunner(),
                load_versions={**pinned, **content["load_versions"]},
                tags=filters.get("tags"),
                from_nodes=filters.get("from-nodes"),
                to_nodes=filters.get("to-nodes"),
                node_names=nodes,
                from_inputs=filters.get("from-inputs"),
                to_outputs=filters.get("to-outputs"),
                namespaces=filters.get("namespaces"),
            )
    except Exception as error:
        say_error(explain(error))
    if hooks.folder is None or hooks.folder == before:
        return None
    return manifest.read(hooks.folder.parent, hooks.folder.name)


def _parameters(content: dict[str, Any], project: Project, fresh: bool) -> dict[str, Any]:
    """Return the run's own overrides, and those that keep a repetition from spending."""
    flat = manifest.flattened(content["runtime_parameters"])
    store = project.data / FRESH_STORES / manifest.now().replace(":", ".")
    for name in manifest.flattened(content["parameters"]):
        if fresh and name.endswith(".asking.store"):
            flat[name] = str(store)
        elif not fresh and name.endswith(".asking.offline"):
            flat[name] = True
    return manifest.nested(flat)


def _maker(content: dict[str, Any], name: str) -> str | None:
    return next((node["name"] for node in content["nodes"] if name in node["outputs"]), None)


def _report(old: manifest.Run, new: manifest.Run, project: Project, given: Sequence[str] = ()) -> Exit:
    before = without_control(old.content)
    before["nodes"] = [node for node in before["nodes"] if node["name"] not in given]
    result = compare(before, without_control(new.content), project.root, project.package)
    checked = "bytes" if result.mode == "bytes" else f"counts, text and numbers within {TOLERANCE:g} relative"
    click.echo(f"Compared {len(result.compared)} artifacts of {old.run_id} with {new.run_id}: {checked}.")
    if result.mode == "tolerance":
        click.echo("(Not by bytes: the platform, the packages or the BLAS kernel are not the same.)")
    if given:
        click.echo(
            "Taken as published, for its ids are keyed with a secret or its files name people: labelling."
        )
    if result.not_compared:
        click.echo(f"Not compared: {', '.join(result.not_compared)}.")
    if not result.differences:
        click.secho("Reproduced: no artifact differs.", fg="green")
        return Exit.PASS
    _say_differences(result)
    return Exit.FAIL


def _say_differences(result: Comparison) -> None:
    first = result.differences[0]
    click.secho(f"The first artifact that differs: {first.name} (node {first.node})", fg="red")
    click.echo(f"  {first.detail}")
    for cause in result.causes:
        click.echo(f"  because of {cause}")
    others = [difference.name for difference in result.differences[1:]]
    if others:
        click.echo(f"  after it: {', '.join(others)}")


def _report_fresh(old: manifest.Run, new: manifest.Run, project: Project) -> Exit:
    """Say how often the models gave the same verdict again. This is their repeat agreement, not a test."""
    name = next((n for n in ("judged_verdicts", "verdicts") if n in old.content["outputs"]), None)
    if name is None or name not in new.content["outputs"]:
        raise RunError(f"The run {old.run_id} has no verdicts.", "choose a run of the pipeline judging")
    table = agreement(
        project.root / old.content["outputs"][name]["path"],
        project.root / new.content["outputs"][name]["path"],
    )
    click.echo(f"Asked again as run {new.run_id}. Judgments with the same outcome and verdict:")
    for row in table.to_dict(orient="records"):
        temperature = "not set" if row["temperature"] is None else f"{row['temperature']:g}"
        shown = f"{row['same'] / row['n']:.3f} ({row['same']} of {row['n']})"
        click.echo(f"  {row['judge_id']}  {row['protocol']}  temperature {temperature}: {shown}")
    if table.empty:
        click.echo("  undefined: the two runs have no judgment in common (the instruments are not the same)")
    return Exit.PASS
