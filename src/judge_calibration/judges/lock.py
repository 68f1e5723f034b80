"""Locks between processes that the operating system takes back when their owner dies.

The owner writes who it is into the lock file, so that whoever is refused can name it. A file that a dead
process left behind is no obstacle: the operating system's lock went with the process, and the next owner
takes the file over.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from judge_calibration.errors import JudgeCalibrationError, StorageError


class StoreLockedError(JudgeCalibrationError):
    """Another run is writing to the call store."""


@dataclass(frozen=True)
class Owner:
    """Who holds a lock: its run, its process, and the machine that the process is on."""

    run_id: str
    pid: int
    host: str

    @classmethod
    def of_this_process(cls, run_id: str) -> Owner:
        """Return the owner that this process is, for the run `run_id`."""
        return cls(run_id, os.getpid(), socket.gethostname())

    def __str__(self) -> str:
        return f"run {self.run_id} (process {self.pid} on {self.host})"


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    # The locked byte lies far behind the text, which others have to be able to read.
    _BYTE = 1 << 30

    def _take(handle: IO[bytes], wait: bool) -> bool:
        handle.seek(_BYTE)
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _give_back(handle: IO[bytes]) -> None:
        handle.seek(_BYTE)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(handle: IO[bytes], wait: bool) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _give_back(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def waiting_lock(path: Path) -> Iterator[None]:
    """Hold the lock at `path`, waiting for it as long as it takes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as handle:
        _take(handle, wait=True)
        try:
            yield
        finally:
            _give_back(handle)


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock at `path`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = Path(folder) / "lock"
    ...     with waiting_lock(lock):
    ...         held = is_held(lock)
    ...     held, is_held(lock)
    (True, False)
    """
    try:
        handle = path.open("r+b")
    except FileNotFoundError:
        return False
    with handle:
        if not _take(handle, wait=False):
            return True
        _give_back(handle)
        return False


def owner_of(path: Path) -> Owner | None:
    """Return who wrote the lock file last, or None where that cannot be read.

    The owner may be dead: only trying to take the lock tells.
    """
    try:
        return Owner(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """Turn what the disk says into one message."""
    try:
        yield
    except OSError as problem:
        raise StorageError(
            f"The lock {path} cannot be written: {problem.strerror}.",
            "free space there, or make the folder writable, and run again",
        ) from problem


@contextmanager
def owned_lock(path: Path, run_id: str) -> Iterator[Owner | None]:
    """Hold the lock at `path` as the run `run_id`; refuse at once if a live process holds it.

    Parameters
    ----------
    path : pathlib.Path
        The lock file, made if it is absent. It stays behind, empty, when the lock is given back.
    run_id : str
        Named to whoever is refused.

    Yields
    ------
    Owner or None
        The dead owner whose lock was taken over, if there was one.

    Raises
    ------
    StoreLockedError
        If another process holds the lock, with its run and process.
    StorageError
        If the disk is full, or the folder may not be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with owned_lock(Path(folder) / "lock", "run-1") as dead:
    ...         print(dead, owner_of(Path(folder) / "lock").run_id)
    None run-1
    """
    with _said(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("ab", buffering=0)
    with handle:
        if not _take(handle, wait=False):
            owner = owner_of(path)
            raise StoreLockedError(
                f"The call store {path.parent} is in use by {owner or 'another process'}.",
                "wait until that run ends or stop it, or give this run another store",
            )
        dead = owner_of(path)
        try:
            with _said(path):
                handle.truncate(0)
                handle.write(json.dumps(asdict(Owner.of_this_process(run_id))).encode())
            yield dead
        finally:
            handle.truncate(0)
            _give_back(handle)
