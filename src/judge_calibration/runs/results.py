"""Results of earlier runs, found by their manifests and verified as they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.errors import RunError
from judge_calibration.runs import files
from judge_calibration.runs.manifest import Run, read, read_all
from judge_calibration.runs.versions import USABLE_STATUSES


def path_in(run: Run, name: str, root: Path) -> Path | None:
    """Return where a dataset is that the run wrote or, failing that, read; None if it did neither."""
    for kind in ("outputs", "inputs"):
        item = run.content.get(kind, {}).get(name)
        if item is not None:
            return root / str(item["path"])
    return None


def find_run(runs: Path, name: str, environment: str, run_id: str | None = None) -> Run:
    """Return the run whose dataset `name` is meant.

    Parameters
    ----------
    runs : pathlib.Path
        The folder of manifests.
    name : str
        A dataset that the run has to have written or read.
    environment : str
        Its environment, where no run is named.
    run_id : str, optional
        A run; else the newest of the environment that ended by itself and wrote the dataset.

    Raises
    ------
    RunError
        There is no such run, or it has no such dataset.
    """
    if run_id is not None:
        run = read(runs, run_id)
        if name not in run.content.get("outputs", {}) and name not in run.content.get("inputs", {}):
            raise RunError(f"The run {run_id} has no dataset '{name}'.", "choose another: kedro runs")
        return run
    for run in reversed(read_all(runs)):
        content = run.content
        usable = run.status in USABLE_STATUSES and content.get("environment") == environment
        if usable and name in content.get("outputs", {}):
            return run
    option = "" if environment == "base" else f" --env {environment}"
    raise RunError(
        f"No run of the environment '{environment}' has made the dataset '{name}'.",
        f"make it by: kedro run{option}",
    )


def read_table(run: Run, name: str, root: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of a run.

    Raises
    ------
    RunError
        The run has no such table.
    ChecksumError
        The file is not what was written.
    """
    path = path_in(run, name, root)
    if path is None:
        raise RunError(f"The run {run.run_id} has no dataset '{name}'.", "choose another: kedro runs")
    files.verify(path)
    return pd.read_parquet(path, columns=list(columns) if columns else None)


def read_json(run: Run, name: str, root: Path) -> Any:
    """Return a JSON document of a run; an empty mapping where the run has none.

    Raises
    ------
    ChecksumError
        The file is not what was written.
    """
    path = path_in(run, name, root)
    if path is None:
        return {}
    files.verify(path)
    return json.loads(path.read_text(encoding="utf-8"))


def maker_of(runs: Path, run: Run, name: str) -> Run:
    """Return the run that wrote the version of a dataset which `run` wrote or read."""
    if name in run.content.get("outputs", {}):
        return run
    version = run.content.get("inputs", {}).get(name, {}).get("version")
    return read(runs, str(version)) if version and (runs / str(version)).is_dir() else run


def asks_judges(run: Run) -> bool:
    """Say whether the run had a node that asks judges for verdicts."""
    return any("answers" in node["outputs"] for node in run.content.get("nodes", []))


def rule_hash_when_asked(runs: Path, run: Run) -> str | None:
    """Return the hash of the decision rule that was in force when the run's verdicts were first asked for.

    Answers are kept, so a run that is repeated under another rule reads old answers. What counts is the
    rule in the manifest of the run that was going when the first of its calls was asked.

    Parameters
    ----------
    runs : pathlib.Path
        The folder of manifests.
    run : Run
        The run whose verdicts are meant.

    Returns
    -------
    str or None
        None where no rule was recorded then, or no run of that time is on record.
    """
    made = maker_of(runs, run, "judged_verdicts")
    first = made.content.get("calls", {}).get("first")
    asking = made
    if first is not None:
        before = [
            other
            for other in read_all(runs)
            if asks_judges(other) and _time(other.content["started_at"]) <= _time(first)
        ]
        if not before:
            return None
        asking = before[-1]
    rule = asking.content.get("decision_rule")
    return None if rule is None else str(rule["sha256"])


def was_asked_after(run: Run, earlier: Run) -> bool | None:
    """Say whether all calls of a run were asked after those of an earlier one; None where no date tells."""
    first, last = run.content.get("calls", {}).get("first"), earlier.content.get("calls", {}).get("last")
    return None if first is None or last is None else _time(first) > _time(last)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
