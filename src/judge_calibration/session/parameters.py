"""All parameter blocks checked at once, before anything runs, every fault by its own name and file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.options.faults import Fault, faults_of, suggestion
from judge_calibration.session.project import environment_label

if TYPE_CHECKING:
    from kedro.pipeline import Pipeline


def check_parameters(
    parameters: Mapping[str, Any],
    pipelines: Mapping[str, Pipeline],
    conf: Path,
    env: str | None,
    given: Mapping[str, Any] | None = None,
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
    given : mapping, optional
        Those of the command line: each has to be read by something.

    Raises
    ------
    OptionsError
        With every fault of every block.
    """
    from kedro.validation.type_extractor import TypeExtractor
    from pydantic import BaseModel, ValidationError

    problems: list[Problem] = []
    blocks = {"gate"}  # read by a command, by no pipeline
    for key, hint in TypeExtractor(dict(pipelines)).extract_types_from_pipelines().items():
        blocks.add(key.split(".")[0])
        value = _at(parameters, key)
        if value is None or not (isinstance(hint, type) and issubclass(hint, BaseModel)):
            continue
        try:
            hint.model_validate(value)
        except ValidationError as error:
            problems.extend(_problem(key, fault, conf, env) for fault in faults_of(error, hint))
    problems.extend(_misspelt_blocks(parameters, blocks | set(given or {}), conf, env))
    problems.extend(
        Problem(
            f"parameter {name} (--params)",
            f"a block that nothing reads{suggestion(name, sorted(blocks))}",
            f"one of {', '.join(sorted(blocks))}",
        )
        for name in given or {}
        if name not in blocks
    )
    problems.extend(_no_pairs(parameters, conf, env))
    if problems:
        raise OptionsError(
            f"{len(problems)} parameters are not what they have to be; nothing was run."
            if len(problems) > 1
            else "A parameter is not what it has to be; nothing was run.",
            problems,
            "correct the named values in these files, or in --params if they came from there",
        )


def _no_pairs(parameters: Mapping[str, Any], conf: Path, env: str | None) -> Iterator[Problem]:
    """Tell that nothing would be judged, for without the bank and without files there is no pair."""
    block = parameters.get("data_prep")
    if not isinstance(block, Mapping) or block.get("use_bank", True):
        return
    if not block.get("pair_files") and not block.get("log_files"):
        yield Problem(
            f"parameter data_prep.use_bank ({_files('data_prep', conf, env)})",
            "false, and no pair_files or log_files: there would be 0 pairs",
            "use_bank: true, or a file, such as pair_files: [{path: my_pairs.csv, layout: pairs}] "
            "(`kedro doctor my_pairs.csv` says what a file is)",
        )


def _at(parameters: Mapping[str, Any], key: str) -> Any:
    value: Any = parameters
    for part in key.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _misspelt_blocks(
    parameters: Mapping[str, Any], blocks: set[str], conf: Path, env: str | None
) -> Iterator[Problem]:
    """Tell blocks that nothing reads and whose name is nearly that of one: they would change nothing."""
    for name in parameters:
        close = get_close_matches(name, sorted(blocks), n=1, cutoff=0.8) if name not in blocks else []
        if close:
            files = ", ".join(
                f"{conf.name}/{path.relative_to(conf).as_posix()}"
                for path in configuration_files(conf, env)
                if any(line.startswith(f"{name}:") for line in path.read_text("utf-8").splitlines())
            )
            where = f"parameter {name} ({files})" if files else f"parameter {name}"
            yield Problem(where, "a block that nothing reads", f"{close[0]!r}, or a name less like it")


def _problem(key: str, fault: Fault, conf: Path, env: str | None) -> Problem:
    name = ".".join([key, *fault.place])
    return Problem(f"parameter {name} ({_files(key, conf, env)})", fault.found, fault.wanted)


def _files(key: str, conf: Path, env: str | None) -> str:
    block = key.split(".")[0]
    label = environment_label(env)
    candidates = [Path(name) / block / "parameters.yml" for name in dict.fromkeys(["base", "local", label])]
    found = [f"{conf.name}/{path.as_posix()}" for path in candidates if (conf / path).is_file()]
    return ", ".join(found) or f"{conf.name}/*/{block}/parameters.yml"


def configuration_files(conf: Path, env: str | None) -> list[Path]:
    """Return the YAML files that an environment is made of: those of base, of local, and its own."""
    names = dict.fromkeys(["base", "local", environment_label(env)])
    return [
        path
        for name in names
        for path in sorted((conf / name).rglob("*"))
        if path.suffix in (".yml", ".yaml") and path.is_file()
    ]


def check_files(conf: Path, env: str | None) -> None:
    """Refuse configuration that is not YAML, or holds no names and values, every file at once.

    Raises
    ------
    OptionsError
        With the file and the line of every fault.
    """
    import yaml

    problems: list[Problem] = []
    for path in configuration_files(conf, env):
        shown = f"{conf.name}/{path.relative_to(conf).as_posix()}"
        try:
            content = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            line = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            problems.append(Problem(f"{shown}{line}", str(error.problem), "YAML"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            problems.append(Problem(shown, " ".join(str(error).split())[:200], "YAML in UTF-8"))
        else:
            if content is not None and not isinstance(content, dict):
                kind = "a list" if isinstance(content, list) else f"a {type(content).__name__}"
                problems.append(Problem(shown, kind, "names and their values (name: value)"))
    if problems:
        raise OptionsError(
            "The configuration cannot be read; nothing was run.",
            problems,
            "correct the named files: indent by spaces, close brackets and quotes, quote text with colons",
        )
