"""The packaged descriptions of layouts, and a user's own in a YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from judge_calibration.options.faults import faults_of
from judge_calibration.options.layout import Layout, SourceFile
from judge_calibration.sources.files import format_of
from judge_calibration.sources.problems import Problems

_FOLDER = files("judge_calibration.sources") / "layouts"


def layout_names() -> list[str]:
    """Return the names of the packaged layouts.

    Examples
    --------
    >>> {"pairs", "verdicts", "llmbar"} <= set(layout_names())
    True
    """
    return sorted(entry.name[: -len(".yml")] for entry in _FOLDER.iterdir() if entry.name.endswith(".yml"))


def load_layout(name: str) -> Layout:
    """Return a packaged layout by its name.

    Raises
    ------
    SourceError
        If there is none of that name.
    """
    problems = Problems()
    layout = resolve_layout(SourceFile(path="-", layout=name), problems)
    problems.raise_any("name one of " + ", ".join(layout_names()))
    assert layout is not None
    return layout


def resolve_layout(source: SourceFile, problems: Problems) -> Layout | None:
    """Return the layout of a source file with its own settings laid over it; else note why not."""
    described = _description(source, problems)
    if described is None:
        return None
    merged = _merge(described, source.set)
    try:
        return Layout.model_validate(merged)
    except ValidationError as error:
        for fault in faults_of(error, Layout):
            where = ".".join(fault.place) or "the description"
            problems.add(
                f"layout '{source.layout}' for {source.path}", None, where, fault.found, fault.wanted
            )
        return None


def written_as(layout: Layout, name: str) -> Layout:
    """Return the layout with the format that a file's name tells, where the same rows are written otherwise.

    A public data set is met as Parquet, JSON lines and CSV alike. Whether JSON is a list or one object a line
    is left to its content.

    Examples
    --------
    >>> written_as(load_layout("rewardbench"), "filtered.jsonl.gz").format
    'jsonl'
    >>> written_as(load_layout("shp"), "train.json").format
    'jsonl'
    """
    named = format_of(name)
    if named is None or layout.format == "auto" or {named, layout.format} <= {"json", "jsonl"}:
        return layout
    return layout.model_copy(update={"format": named})


def _description(source: SourceFile, problems: Problems) -> dict[str, Any] | None:
    own = source.layout.endswith((".yml", ".yaml"))
    if not own and source.layout not in layout_names():
        close = get_close_matches(source.layout, layout_names(), n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        problems.add(
            f"layout for {source.path}",
            None,
            None,
            f"'{source.layout}'{hint}",
            "a .yml file or one of " + ", ".join(layout_names()),
        )
        return None
    place = Path(source.layout) if own else _FOLDER / f"{source.layout}.yml"
    try:
        described = yaml.load(place.read_text("utf-8"), yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        text = " ".join(str(error).split())[:200]
        problems.add(f"layout file {source.layout}", None, None, text, "a YAML file that can be read")
        return None
    if not isinstance(described, dict):
        problems.add(f"layout file {source.layout}", None, None, f"a {type(described).__name__}", "a mapping")
        return None
    return described


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one mapping over another; only `fields` and `rules` are merged name by name, all else is replaced.

    Codes are replaced as a whole: a code that stays behind from the layout would be a guess.
    """
    merged = dict(base)
    for name, value in over.items():
        if (
            name in ("fields", "rules")
            and isinstance(value, Mapping)
            and isinstance(merged.get(name), Mapping)
        ):
            # Null takes a field away.
            merged[name] = {k: v for k, v in {**merged[name], **value}.items() if v is not None}
        else:
            merged[name] = value
    return merged
