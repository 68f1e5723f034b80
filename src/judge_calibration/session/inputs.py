"""What a pipeline needs before it can start: missing inputs are found first, named, and explained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import MissingInputError, Problem
from judge_calibration.runs.versions import usable_versions
from judge_calibration.session.project import environment_label

if TYPE_CHECKING:
    from kedro.pipeline import Pipeline

BUILT_ON_DEMAND = ("data_prep",)
"""Pipelines that a run starts by itself when their outputs are missing: they ask no model, so they cost
seconds and no money. Any other one is named and left to the person."""


def is_parameter(name: str) -> bool:
    """Say whether a node's input is a parameter."""
    return name == "parameters" or name.startswith("params:")


def is_there(catalog: Any, name: str, env: str | None) -> bool:
    """Say whether a dataset has something that a run in this environment may read."""
    dataset = catalog.get(name)
    if dataset is None:
        return False
    if getattr(dataset, "_EPHEMERAL", False):
        # In memory: there if somebody put it in.
        return bool(dataset.exists())
    version = getattr(dataset, "_version", None)
    if version is not None and not version.load and hasattr(dataset, "artifact_path"):
        filepath = Path(str(dataset._filepath))
        return next(usable_versions(filepath, version.save, environment_label(env)), None) is not None
    return bool(dataset.exists())


def missing_inputs(pipeline: Pipeline, catalog: Any, env: str | None) -> list[str]:
    """Return the inputs of a pipeline that are not there, parameters included, sorted."""
    missing = []
    for name in sorted(pipeline.inputs()):
        there = name in catalog if is_parameter(name) else is_there(catalog, name, env)
        if not there:
            missing.append(name)
    return missing


def with_upstream(
    names: Iterable[str], pipelines: Mapping[str, Pipeline], catalog: Any, env: str | None
) -> tuple[list[str], list[str]]:
    """Put before the named pipelines those that have to be built first and cost nothing.

    Returns
    -------
    names : list of str
        The pipelines to run, in the registry's order.
    reasons : list of str
        The missing datasets that the added ones make.
    """
    wanted = list(names)
    reasons: list[str] = []
    for candidate in BUILT_ON_DEMAND:
        if candidate in wanted or candidate not in pipelines or any(n not in pipelines for n in wanted):
            continue
        needed = missing_inputs(sum((pipelines[n] for n in wanted[1:]), pipelines[wanted[0]]), catalog, env)
        made = sorted(set(needed) & pipelines[candidate].all_outputs())
        if made:
            wanted.insert(0, candidate)
            reasons += made
    return wanted, reasons


def check_inputs(pipeline: Pipeline, catalog: Any, env: str | None) -> None:
    """Refuse a pipeline whose inputs are not there.

    Raises
    ------
    MissingInputError
        Every missing input, and the command that makes it.
    """
    missing = missing_inputs(pipeline, catalog, env)
    if not missing:
        return
    from kedro.framework.project import pipelines

    problems = [_problem(name, catalog, pipelines, env) for name in missing]
    commands = list(dict.fromkeys(c for name in missing if (c := _command(name, pipelines, env))))
    raise MissingInputError(
        f"{len(missing)} inputs are missing; nothing was run."
        if len(missing) > 1
        else "An input is missing; nothing was run.",
        problems,
        " && ".join(commands) if commands else "put what is named above in its place, then run again",
    )


def _producer(name: str, pipelines: Mapping[str, Pipeline]) -> str | None:
    for pipeline_name, pipeline in pipelines.items():
        if pipeline_name != "__default__" and name in pipeline.all_outputs():
            return pipeline_name
    return None


def _command(name: str, pipelines: Mapping[str, Pipeline], env: str | None) -> str:
    producer = _producer(name, pipelines)
    if producer is None:
        return ""
    return f"kedro run{f' --env {env}' if env else ''} --pipelines {producer}"


def _problem(name: str, catalog: Any, pipelines: Mapping[str, Pipeline], env: str | None) -> Problem:
    label = environment_label(env)
    if is_parameter(name):
        key = name.removeprefix("params:").split(".")[0]
        return Problem(
            f"parameter {name.removeprefix('params:')}",
            "nothing",
            f"a value in conf/base/{key}/parameters.yml",
        )
    if name not in catalog:
        return Problem(f"dataset {name}", "no entry in the catalog", "an entry in a conf/base/*/catalog.yml")
    command = _command(name, pipelines, env)
    if command:
        return Problem(
            f"dataset {name}",
            f"no complete version made in the environment '{label}'",
            f"one made by: {command}",
        )
    dataset = catalog.get(name)
    place = getattr(dataset, "_filepath", None) or getattr(dataset, "_path", "memory")
    return Problem(f"dataset {name}", f"nothing at {place}", "an input that people put there")
