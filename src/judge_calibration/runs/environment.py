"""Where a run took place: code, packages, platform and BLAS kernel, as far as they can change a number."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import platform
import socket
import subprocess
from pathlib import Path
from typing import Any

from judge_calibration.runs.files import sha256_of_file
from judge_calibration.text import sha256_of

_SKIPPED = {"__pycache__"}


def git_state(project: Path) -> dict[str, Any]:
    """Return the commit and whether the tracked files differ from it; nulls where git does not know."""
    try:
        commit = _git(project, "rev-parse", "HEAD")
        dirty = bool(_git(project, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def _git(project: Path, *arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        ["git", "-C", str(project), *arguments],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.strip()


def code_files(package: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a package by its path from the package's parent."""
    found = sorted(p for p in package.rglob("*") if p.is_file() and not _SKIPPED & set(p.parts))
    return {p.relative_to(package.parent).as_posix(): sha256_of_file(p) for p in found if p.suffix != ".pyc"}


def code_state(project: Path, package: Path) -> dict[str, Any]:
    """Return the git state and the hash of every file of the package."""
    hashes = code_files(package)
    return {**git_state(project), "sha256": sha256_of(hashes), "files": hashes}


def imports_of(module: str, package: Path) -> set[str]:
    """Return the files of the package that `module` uses, directly or not, itself included.

    Imports inside functions count. A package's other files (prompts, templates) are not seen here.
    """
    root = package.parent
    todo, seen = [module], set()
    while todo:
        name = todo.pop()
        path = _file_of(name, root)
        if path is None or path in seen:
            continue
        seen.add(path)
        todo.append(name.rpartition(".")[0])  # importing a module runs the packages above it
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                todo += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                todo += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return {path.relative_to(root).as_posix() for path in seen}


def _file_of(module: str, root: Path) -> Path | None:
    if not module:
        return None
    base = root.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def packages() -> dict[str, str]:
    """Return the version of every installed distribution by its name."""
    found = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    return {name: found[name] for name in sorted(found, key=str.lower) if name}


def platform_state() -> dict[str, Any]:
    """Return the platform and the BLAS kernels that are loaded (they may differ in the last bit)."""
    from threadpoolctl import threadpool_info

    kernels = sorted(
        {
            f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture', '')}".strip()
            for pool in threadpool_info()
            if pool.get("user_api") == "blas"
        }
    )
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "blas": kernels,
    }


def start_of_process(pid: int) -> str | None:
    """Return a mark of when the process started, so that a reused process id is not taken for it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def this_process() -> dict[str, Any]:
    """Return the id, host and start of this process."""
    pid = os.getpid()
    return {"pid": pid, "host": socket.gethostname(), "started": start_of_process(pid)}


def is_alive(process: dict[str, Any]) -> bool:
    """Say whether a process that :func:`this_process` described still runs; unknown counts as running."""
    if process.get("host") != socket.gethostname():
        return True
    pid = int(process.get("pid", -1))
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    started = start_of_process(pid)
    return started is None or process.get("started") in (None, started)
