"""The run manifest ``data/runs/<run id>/manifest.json``: what a run read, did and wrote, and how it ended.

It is written when the run starts (status ``running``) and again when it ends (``finished``, ``failed``,
``interrupted``); a run whose manifest still says ``running`` although its process is gone was killed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judge_calibration.errors import RunError
from judge_calibration.runs import files
from judge_calibration.runs.environment import is_alive
from judge_calibration.runs.versions import MANIFEST

VERSION = 1
_SECRET = re.compile(
    r"(^|_)(api_?key|secret|password|passwd|access_?token|auth_?token|authorization|credentials?)$", re.I
)
HIDDEN = "***"
_RESERVE = ".reserve"
_ROOM = 1 << 16


@dataclass
class Run:
    """One run's folder and the content of its manifest."""

    folder: Path
    content: dict[str, Any]

    @property
    def run_id(self) -> str:
        """The name of the run, which is also the version of what it wrote."""
        return self.folder.name

    @property
    def status(self) -> str:
        """``running``, ``finished``, ``failed``, ``interrupted``, ``killed`` or ``unreadable``."""
        status = str(self.content.get("status"))
        if status == "running" and not is_alive(self.content.get("process", {})):
            return "killed"
        return status

    def reserve(self, size: int) -> None:
        """Keep room on the disk for the manifest's last form, so that a full disk can be told in it."""
        files.write_bytes(self.folder / _RESERVE, bytes(size))

    def release(self) -> None:
        """Give the reserved room back, just before it is needed."""
        (self.folder / _RESERVE).unlink(missing_ok=True)

    def save(self) -> None:
        """Write the manifest; once the run has ended, its checksum too."""
        text = json.dumps(self.content, indent=2, sort_keys=False, ensure_ascii=False, allow_nan=False) + "\n"
        path = self.folder / MANIFEST
        if self.content["status"] == "running":
            files.write_bytes(path, text.encode("utf-8"))
        else:
            files.write_checked(path, lambda file: file.write(text.encode("utf-8")))


def create(runs: Path, run_id: str, content: dict[str, Any]) -> Run:
    """Start the manifest of a run.

    Raises
    ------
    RunError
        The run id is taken.
    StorageError
        The folder cannot be written.
    """
    folder = runs / run_id
    with files.explained(folder):
        runs.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except FileExistsError:
            raise RunError(
                f"A run named {run_id} exists: two runs started in the same millisecond.",
                "run the same command again",
            ) from None
    run = Run(folder, {"manifest_version": VERSION, "run_id": run_id, **content})
    run.save()
    run.reserve(2 * (folder / MANIFEST).stat().st_size + _ROOM)
    return run


def read(runs: Path, run_id: str) -> Run:
    """Return the run.

    Raises
    ------
    RunError
        There is no such run, or its manifest cannot be read.
    """
    folder = runs / run_id
    path = folder / MANIFEST
    if not path.is_file():
        raise RunError(f"There is no run {run_id!r} in {runs}.", "list the runs with: kedro runs")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(
            f"{path} is not JSON: {error}.", "restore the file; 'kedro audit' checks all"
        ) from error
    if not isinstance(content, dict):
        raise RunError(f"{path} is not a manifest: found a {type(content).__name__}.", "restore the file")
    return Run(folder, content)


def read_all(runs: Path) -> list[Run]:
    """Return the runs from the oldest to the newest; folders without a manifest are left out.

    A manifest that cannot be read is a run with the status ``unreadable``: its checksum tells that it was
    changed, and the others can still be listed and verified.
    """
    if not runs.is_dir():
        return []
    found = []
    for name in sorted(entry.name for entry in runs.iterdir() if (entry / MANIFEST).is_file()):
        try:
            found.append(read(runs, name))
        except RunError:
            found.append(Run(runs / name, {"status": "unreadable"}))
    return found


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def without_secrets(value: Any) -> Any:
    """Return parameters with the value of everything named like a key or password hidden.

    Examples
    --------
    >>> without_secrets({"api_key": "sk-1", "max_tokens": 32, "key_variable": "OPENAI_API_KEY"})
    {'api_key': '***', 'max_tokens': 32, 'key_variable': 'OPENAI_API_KEY'}
    """
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if item is not None and _SECRET.search(str(key)) else without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(item) for item in value]
    return value


def flattened(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested parameters by dotted name; lists are kept whole.

    Examples
    --------
    >>> flattened({"judging": {"repetitions": 3}})
    {'judging.repetitions': 3}
    """
    flat: dict[str, Any] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted names as nested mappings; the inverse of :func:`flattened`.

    Examples
    --------
    >>> nested({"judging.repetitions": 3})
    {'judging': {'repetitions': 3}}
    """
    out: dict[str, Any] = {}
    for name, value in flat.items():
        *parents, last = name.split(".")
        place = out
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return out


def command_of(
    environment: str | None,
    pipelines: list[str] | None,
    filters: Mapping[str, Any],
    parameters: Mapping[str, Any],
    load_versions: Mapping[str, str],
) -> str:
    """Return the command line that repeats a run, the versions of its inputs pinned.

    Examples
    --------
    >>> command_of("test", ["judging"], {}, {"judging": {"repetitions": 2}}, {"pairs": "2026-11-30"})
    'kedro run --env test --pipelines judging --params judging.repetitions=2 --load-versions pairs:2026-11-30'
    """
    parts = ["kedro", "run"]
    if environment:
        parts += ["--env", environment]
    if pipelines and pipelines != ["__default__"]:
        parts += ["--pipelines", ",".join(pipelines)]
    for option, value in filters.items():
        if value:
            parts += [f"--{option.replace('_', '-')}", value if isinstance(value, str) else ",".join(value)]
    flat = flattened(without_secrets(parameters))
    if flat:
        parts += ["--params", ",".join(f"{key}={_plain(value)}" for key, value in flat.items())]
    if load_versions:
        parts += [
            "--load-versions",
            ",".join(f"{name}:{load_versions[name]}" for name in sorted(load_versions)),
        ]
    return shlex.join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
