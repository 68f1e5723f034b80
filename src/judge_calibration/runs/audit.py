"""Verify every checksum on the disk, and that what the manifests promise is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judge_calibration.errors import ChecksumError
from judge_calibration.runs import files, manifest
from judge_calibration.runs.versions import MANIFEST, RUNS_FOLDER

Fault = Literal["changed", "absent", "unfinished", "killed", "interrupted"]
"""``changed``: bytes differ from those written. ``absent``: a file that a manifest lists is gone.
``unfinished``: a version without its checksum file. ``killed``, ``interrupted``: a run that did not end by
itself. Only the first two are failures; the others are never read by a run and are told for information."""

_RUN_ID = re.compile(r"\d{4}-\d{2}-\d{2}T")
FAILURES: tuple[Fault, ...] = ("changed", "absent")


@dataclass(frozen=True)
class Finding:
    """One thing that an audit found."""

    fault: Fault
    path: str
    detail: str

    @property
    def is_failure(self) -> bool:
        """Whether something that a run relies on is damaged."""
        return self.fault in FAILURES


@dataclass(frozen=True)
class Audit:
    """How many files were verified, and what was found."""

    verified: int
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that make the audit fail."""
        return tuple(finding for finding in self.findings if finding.is_failure)


def audit(data: Path, root: Path, run_id: str | None = None) -> Audit:
    """Verify all files under `data`, or those that one run read and wrote.

    Parameters
    ----------
    data : pathlib.Path
        The data folder; manifests are in its folder ``runs``.
    root : pathlib.Path
        The project, to which the manifests' paths are relative.
    run_id : str, optional
        Verify this run only.

    Returns
    -------
    Audit

    Raises
    ------
    RunError
        There is no such run.
    """
    runs = data / RUNS_FOLDER
    chosen = [manifest.read(runs, run_id)] if run_id is not None else manifest.read_all(runs)
    sidecars = (
        _sidecars_of(chosen, root) if run_id is not None else sorted(data.rglob(f"*{files.SIDECAR_SUFFIX}"))
    )
    actual: dict[Path, str] = {}
    findings: list[Finding] = []
    for sidecar in sidecars:
        findings += _verified(sidecar, root, actual)
    known = {Path(finding.path) for finding in findings}
    for run in chosen:
        findings += [finding for finding in _promised(run, root, actual) if Path(finding.path) not in known]
        known |= {Path(finding.path) for finding in findings}
        if run.status in ("killed", "interrupted"):
            where = manifest_path(run, root)
            findings.append(Finding(run.status, where, "its files are never taken as the latest"))  # type: ignore[arg-type]
    if run_id is None:
        findings += list(_unfinished(data, root, runs))
    return Audit(len(actual), tuple(findings))


def manifest_path(run: manifest.Run, root: Path) -> str:
    """Return the path of the run's manifest as a person would type it."""
    return files.relative(run.folder / MANIFEST, root)


def _artifacts(run: manifest.Run) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in ("inputs", "outputs"):
        yield from run.content.get(kind, {}).items()


def _sidecars_of(runs: list[manifest.Run], root: Path) -> list[Path]:
    found = []
    for run in runs:
        found += [
            files.sidecar_of(root / item["path"]) for _, item in _artifacts(run) if "content_sha256" in item
        ]
        # A CSV beside its table has a checksum of its own.
        found += [
            files.sidecar_of(beside)
            for _, item in _artifacts(run)
            if (beside := (root / item["path"]).with_suffix(".csv")).is_file()
        ]
        if run.content.get("status") != "running":
            found.append(files.sidecar_of(run.folder / MANIFEST))
    return sorted({sidecar for sidecar in found if sidecar.is_file()})


def _verified(sidecar: Path, root: Path, actual: dict[Path, str]) -> Iterator[Finding]:
    try:
        digests = files.read_sidecar(sidecar)
    except ChecksumError as error:
        yield Finding("changed", files.relative(sidecar, root), error.message)
        return
    for name, recorded in digests.items():
        path = sidecar.parent / name
        if not path.is_file():
            yield Finding("absent", files.relative(path, root), f"{sidecar.name} lists it")
            continue
        actual[path] = files.sha256_of_file(path)
        if actual[path] != recorded:
            yield Finding(
                "changed", files.relative(path, root), f"recorded SHA-256 {recorded}, actual {actual[path]}"
            )


def _promised(run: manifest.Run, root: Path, actual: dict[Path, str]) -> Iterator[Finding]:
    """Compare the disk with a manifest: this also finds a file that was changed together with its sidecar."""
    for name, item in _artifacts(run):
        path = root / item["path"]
        if "content_sha256" not in item:  # an authored input: it may change after the run
            continue
        if not path.exists() or not files.sidecar_of(path).is_file():
            yield Finding("absent", item["path"], f"dataset {name} of run {run.run_id}")
        elif path in actual and actual[path] != item["sha256"]:
            yield Finding(
                "changed",
                item["path"],
                f"run {run.run_id} recorded SHA-256 {item['sha256']}, actual {actual[path]}",
            )


def _unfinished(data: Path, root: Path, runs: Path) -> Iterator[Finding]:
    for version in sorted(data.glob("*/*/*")):
        path = version / version.parent.name
        if runs in version.parents or not _RUN_ID.match(version.name) or not version.is_dir():
            continue
        if not files.sidecar_of(path).is_file():
            yield Finding(
                "unfinished", files.relative(path, root), "no checksum file: never taken as the latest"
            )
