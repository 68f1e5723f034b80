"""All parameter blocks checked at once, before anything runs, every fault by its own name and file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.session.project import environment_label

if TYPE_CHECKING:
    from kedro.pipeline import Pipeline


def check_parameters(
    parameters: Mapping[str, Any], pipelines: Mapping[str, Pipeline], conf: Path, env: str | None
) -> None:
    """Validate every parameter block by the type hint of the nodes that read it.

    Parameters
    ----------
    parameters : mapping
        As the configuration and the command line give them.
    pipelines : mapping
        Whose nodes' hints count.
    conf : pathlib.Path
        The folder of the configuration, to name the files.
    env : str or None
        The environment.

    Raises
    ------
    OptionsError
        With every fault of every block.
    """
    from kedro.validation.type_extractor import TypeExtractor
    from pydantic import BaseModel, ValidationError

    problems: list[Problem] = []
    for key, hint in TypeExtractor(dict(pipelines)).extract_types_from_pipelines().items():
        value = _at(parameters, key)
        if value is None or not (isinstance(hint, type) and issubclass(hint, BaseModel)):
            continue
        try:
            hint.model_validate(value)
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                problems.append(_problem(key, fault, conf, env))
    if problems:
        raise OptionsError(
            f"{len(problems)} parameters are not what they have to be; nothing was run."
            if len(problems) > 1
            else "A parameter is not what it has to be; nothing was run.",
            problems,
            "correct the named values in these files, or in --params if they came from there",
        )


def _at(parameters: Mapping[str, Any], key: str) -> Any:
    value: Any = parameters
    for part in key.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _problem(key: str, fault: Any, conf: Path, env: str | None) -> Problem:
    name = ".".join([key, *(str(part) for part in fault["loc"])])
    found = repr(fault["input"])
    shown = found if len(found) <= 80 else f"{found[:77]}..."
    wanted = "no such parameter" if fault["type"] == "extra_forbidden" else _lower(fault["msg"])
    missing = fault["type"] == "missing"
    return Problem(f"parameter {name} ({_files(key, conf, env)})", "nothing" if missing else shown, wanted)


def _lower(message: str) -> str:
    text = message.removeprefix("Value error, ").removeprefix("Input should be ")
    return text[:1].lower() + text[1:]


def _files(key: str, conf: Path, env: str | None) -> str:
    block = key.split(".")[0]
    label = environment_label(env)
    candidates = [Path(name) / block / "parameters.yml" for name in dict.fromkeys(["base", "local", label])]
    found = [f"{conf.name}/{path.as_posix()}" for path in candidates if (conf / path).is_file()]
    return ", ".join(found) or f"{conf.name}/*/{block}/parameters.yml"
