"""``kedro doctor [FILE]``: what a file is, which analyses it allows, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from kedro.framework.cli.utils import _split_params  # as `kedro run` reads --params

from judge_calibration.console.exits import Exit, explained, say_error
from judge_calibration.console.file_kinds import delimiter_of, kind_of
from judge_calibration.errors import RunError, SourceError
from judge_calibration.session.project import environment_label, find_project

if TYPE_CHECKING:
    import pandas as pd

_TABLES = ("pairs", "verdicts", "labels")
_PARAMETERS = {
    "pairs": "data_prep.pair_files",
    "verdicts": "data_prep.log_files",
    "labels": "annotation.labels.files",
}


class _Read(NamedTuple):
    """The tables that a file gives, by name, and what to say of the file."""

    tables: dict[str, pd.DataFrame]
    lines: list[str]


@click.command("doctor")
@click.argument("file", required=False)
@click.option("--layout", help="Read FILE with this layout: a packaged one's name, or a .yml file of yours.")
@click.option(
    "--set",
    "settings",
    default="",
    callback=_split_params,
    help="What the layout leaves open, as in parameters: reference_kind=human,licence=CC-BY-4.0.",
)
@click.option(
    "--reference-kind",
    type=click.Choice(["human", "ai", "benchmark", "constructed"]),
    help="Who made the labels of FILE, where the layout leaves it open.",
)
@click.option("--delimiter", help="What separates the columns of FILE, where it is no comma; ';' is noticed.")
@click.option("--write", "target", type=click.Path(dir_okay=False), help="Write the proposed layout here.")
@click.option(
    "--env", "-e", help="Without FILE: the environment whose data are looked at (base if not given)."
)
@explained
def command(
    file: str | None,
    layout: str | None,
    settings: dict[str, Any],
    reference_kind: str | None,
    delimiter: str | None,
    target: str | None,
    env: str | None,
) -> Exit:
    """Say of a FILE what it is, which analyses it allows and what is missing.

    A file that no packaged layout describes gets a proposal in YAML: names of columns are proposed, meanings
    are left to you. Without FILE, the newest pairs, verdicts and labels of the environment are looked at.

    Exit codes: 0 it is read as it is, 1 it fits a layout but rows of it are refused, 2 no such file, layout
    or data, 3 something has to be said first (a layout, who made the labels), 4 it could not be looked at.
    """
    if file is None:
        found = _at_hand(env)
    else:
        if not _is_there(file):
            raise RunError(f"There is no file {file}.", "its path is taken from the working folder")
        kind = kind_of(Path(file)) if Path(file).exists() else None
        if kind is not None and layout is None:
            click.echo(f"{file}: {kind.what}. No analysis starts from it as it is.")
            click.echo(f"What to do: {kind.step}")
            return Exit.PAUSE
        settings = _with_options(settings, file, reference_kind, delimiter)
        names = [layout] if layout else []
        artifact = None if layout else _artifact(Path(file))
        if artifact is None and not names:
            try:
                proposal = _proposal(file, settings)
            except SourceError as error:
                # Nothing of it can be read as it is: what it is or how it is written has to be said first.
                say_error(str(error))
                return Exit.PAUSE
            names = list(proposal.fitting)
            if not names:
                return _propose(file, proposal, target)
        try:
            found = artifact if artifact is not None else _read_first(file, names, settings)
        except SourceError as error:
            say_error(str(error))
            return _refused(file, names[0], error)
    for line in found.lines:
        click.echo(line)
    _say_analyses(found.tables)
    return Exit.PASS


def _is_there(file: str) -> bool:
    return "://" in file or any(char in file for char in "*?[") or Path(file).exists()


def _with_options(
    settings: dict[str, Any], file: str, reference_kind: str | None, delimiter: str | None
) -> dict[str, Any]:
    """Return the settings with what the options say, and with a delimiter that the file's header shows."""
    found = dict(settings)
    if reference_kind is not None:
        found["reference_kind"] = reference_kind
    if delimiter is not None:
        found["delimiter"] = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if "delimiter" not in found and Path(file).is_file():
        seen = delimiter_of(Path(file))
        if seen is not None:
            found["delimiter"] = seen
            click.echo(f"{file}: its columns are separated by {seen!r}, not by commas.")
    return found


def _proposal(file: str, settings: dict[str, Any]) -> Any:
    from judge_calibration.sources import propose_layout

    return propose_layout(file, settings)


def _artifact(path: Path) -> _Read | None:
    """Return a table of a run of ours; None if the file is something else."""
    from judge_calibration import schemas
    from judge_calibration.runs import files

    if path.suffix != ".parquet" or not files.sidecar_of(path).is_file():
        return None
    import pandas as pd

    files.verify(path)
    frame = pd.read_parquet(path)
    lines = [f"{path.name}: an artifact of run {path.parent.name}, {len(frame)} rows; its checksum is right."]
    for name in _TABLES:
        if set(schemas.TABLES[name].column_names) <= set(frame.columns):
            return _Read({name: frame}, [*lines, f"It is a table of {name}."])
    return _Read({}, [*lines, "It is a result, not an input: no analysis starts from it."])


def _read_first(file: str, names: list[str], settings: dict[str, Any]) -> _Read:
    """Read the file with the first layout that reads every row; else tell what the first one refused."""
    refused: SourceError | None = None
    for name in names:
        try:
            return _read(file, name, settings)
        except SourceError as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _refused(file: str, name: str, error: SourceError) -> Exit:
    """Tell a file whose rows are wrong from one of which only its owner can say something."""
    places = [problem.where for problem in error.problems]
    if places and all(place.endswith("column reference_kind") for place in places):
        click.echo(f"The layout '{name}' fits; who made the labels has to be said, for instance by")
        click.echo(f"  kedro doctor {file} --layout {name} --reference-kind human")
        return Exit.PAUSE
    if places and all(place.startswith("layout ") for place in places):
        return Exit.USAGE
    return Exit.FAIL


def _read(file: str, name: str, settings: dict[str, Any]) -> _Read:
    from judge_calibration.sources import SourceFile, read_labels, read_logs, read_pairs
    from judge_calibration.sources.layouts import resolve_layout
    from judge_calibration.sources.problems import Problems

    source = SourceFile(path=file, layout=name, set=settings)
    problems = Problems()
    described = resolve_layout(source, problems)
    problems.raise_any("name a packaged layout (docs/sources) or a complete .yml file")
    assert described is not None
    tables: dict[str, pd.DataFrame]
    if described.kind == "pairs":
        read = read_pairs([source])
        tables, table = {"pairs": read.pairs}, read.source_files
    elif described.kind == "verdicts":
        logs = read_logs([source])
        tables, table = {"pairs": logs.pairs, "verdicts": logs.verdicts}, logs.source_files
    else:
        people = read_labels([source])
        tables, table = {"labels": people.labels}, people.source_files
    rows = int(table["rows"].sum())
    licence = ", ".join(sorted({str(value) for value in table["licence"].dropna()})) or "not told"
    own = name.endswith((".yml", ".yaml"))
    unseen = described.status != "verified" and not own
    status = " (this layout was not seen at its source: unverified)" if unseen else ""
    lines = [
        f"{file}: {described.title}{status}.",
        f"Layout '{name}', {described.kind}: {rows} rows read, "
        + ", ".join(f"{len(frame)} {kind}" for kind, frame in tables.items())
        + f"; licence: {licence}.",
        *_noted(table),
        f"To use it: {_PARAMETERS[described.kind]}: [{{path: {file}, layout: {name}{_set(settings)}}}]",
    ]
    return _Read(tables, lines)


def _noted(table: pd.DataFrame) -> list[str]:
    """Return a line with what was left out, merged or not read, by how often; none where nothing was."""
    import json

    told = []
    for notes in table["notes"]:
        for name, value in json.loads(notes).items():
            shown = value if isinstance(value, int) else ", ".join(map(str, value))
            told.append(f"{name.replace('_', ' ')}: {shown}")
    return [f"Noted: {'; '.join(told)}."] if told else []


def _set(settings: dict[str, Any]) -> str:
    inside = ", ".join(f"{name}: {_yaml(value)}" for name, value in settings.items())
    return f", set: {{{inside}}}" if settings else ""


def _yaml(value: Any) -> str:
    # A lone punctuation mark is no plain YAML value.
    return f'"{value}"' if isinstance(value, str) and not value.isalnum() else str(value)


def _propose(file: str, proposal: Any, target: str | None) -> Exit:
    click.echo(f"{file}: no packaged layout describes it.")
    for remark in proposal.remarks:
        click.echo(f"  {remark}")
    if target is not None:
        from judge_calibration.runs import files

        if Path(target).exists():
            raise RunError(f"{target} is there already.", "name another file")
        files.write_bytes(Path(target), proposal.text.encode("utf-8"))
    place = target or "mine.yml"
    done = "was written" if target else "could begin like this"
    click.echo(f"A layout {done} ({place}); replace every '?':\n")
    click.echo(proposal.text)
    click.echo(f"Then: kedro doctor {file} --layout {place}")
    return Exit.PAUSE


def _at_hand(env: str | None) -> _Read:
    """Return the newest pairs, verdicts and labels of an environment."""
    from judge_calibration.runs.results import find_run, read_table

    project = find_project(env)
    tables, lines = {}, []
    for name in _TABLES:
        try:
            run = find_run(project.runs, name, environment_label(env))
        except RunError as error:
            lines.append(f"{name}: {error.message}")
            continue
        tables[name] = read_table(run, name, project.root)
        lines.append(f"{name}: {len(tables[name])} rows, of run {run.run_id}")
    if not tables:
        raise RunError(
            f"The environment '{environment_label(env)}' has no data yet.",
            "name a FILE, or make data by: kedro run",
        )
    return _Read(tables, lines)


def _say_analyses(tables: dict[str, pd.DataFrame]) -> None:
    from judge_calibration.metrics.analyses import possible_analyses

    if not tables:
        return
    analyses = possible_analyses(tables.get("pairs"), tables.get("verdicts"), tables.get("labels"))
    click.echo("\nAllowed:")
    for item in analyses:
        if item.allowed:
            click.echo(f"  {item.name}: {item.found}")
    click.echo("Not yet, and what is missing:")
    for item in analyses:
        if not item.allowed:
            click.echo(f"  {item.name}: {item.missing} (found: {item.found})")
