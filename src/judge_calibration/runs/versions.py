"""Which version of a dataset is its latest: the newest one that is complete and that may be trusted.

A version is a folder ``<name>/<run id>/<name>``. It counts as usable when its checksum file is there and
its run ended by itself. The rules, and why:

- A run reads what it has written itself; otherwise only versions of earlier runs. A run that started
  later and finished sooner does not change under the feet of one that is still going.
- A run reads only versions of its own environment: parameters differ between environments, so the
  judgments of one are not the input of another. Outside a run (notebook, kedro-viz) any environment counts.
- Versions of a run that is still going, was killed or was interrupted are never read by others.
- Versions of a run that *failed* with an error are read if they are complete: what was written before the
  error is whole and checked, so a person can mend the report and run only the pipeline ``reporting``.
- A version whose run left no manifest was saved by hand (a notebook) and counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge_calibration.runs.files import is_complete

RUNS_FOLDER = "runs"
MANIFEST = "manifest.json"
USABLE_STATUSES = ("finished", "failed")


def runs_folder_of(path: Path) -> Path | None:
    """Return the folder of run manifests that belongs to a dataset's path, if there is one.

    It is the folder ``runs`` in the nearest folder above `path` that has one: ``data/runs`` for
    ``data/08_reporting/report.html``.
    """
    return next((p / RUNS_FOLDER for p in path.parents if (p / RUNS_FOLDER).is_dir()), None)


def read_status(runs: Path | None, run_id: str | None) -> dict[str, Any] | None:
    """Return the run's manifest, or None where there is none. One that cannot be read counts as running."""
    if runs is None or run_id is None:
        return None
    manifest = runs / run_id / MANIFEST
    if not manifest.is_file():
        return None
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError:
        return {"status": "running"}
    return found if isinstance(found, dict) else {"status": "running"}


def complete_versions(filepath: Path) -> list[str]:
    """Return the versions that have a checksum file, newest first, whatever became of their runs."""
    if not filepath.is_dir():
        return []
    names = sorted((entry.name for entry in filepath.iterdir() if entry.is_dir()), reverse=True)
    return [name for name in names if is_complete(filepath / name / filepath.name)]


def usable_versions(filepath: Path, own: str | None = None, environment: str | None = None) -> Iterator[str]:
    """Yield the versions that may be read, best first.

    Parameters
    ----------
    filepath : pathlib.Path
        The dataset's path without a version.
    own : str, optional
        The run that asks. Where it has no manifest, nobody's run asks (a notebook).
    environment : str, optional
        Only versions of this environment, where no run asks that has one.

    Yields
    ------
    str
        The own version if there is one, then the others from the newest to the oldest.
    """
    runs = runs_folder_of(filepath)
    own_run = read_status(runs, own)
    if own_run is not None:
        environment = own_run.get("environment")
    versions = complete_versions(filepath)
    if own is not None and own in versions:
        yield own
    for version in versions:
        if version == own:
            continue
        run = read_status(runs, version)
        if run is not None and run.get("status") not in USABLE_STATUSES:
            continue
        if own_run is not None and own is not None and version > own:
            continue
        if environment is not None and run is not None and run.get("environment") != environment:
            continue
        yield version
