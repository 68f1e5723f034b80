"""Files that are complete or absent, and the ``.sha256`` file beside each that proves what they hold.

A sidecar ``name.sha256`` holds one line a file in the form that ``sha256sum -c`` reads. It is written
last, so a file without one was never finished.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from judge_calibration.errors import ChecksumError, StorageError

SIDECAR_SUFFIX = ".sha256"
_CHUNK = 1 << 20
_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_OUT_OF_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of the file's bytes as 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def relative(path: Path, root: Path) -> str:
    """Return the path below `root` with forward slashes, or the whole path where it is outside."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def sidecar_of(path: Path) -> Path:
    """Return where the checksum of `path` is kept.

    Examples
    --------
    >>> sidecar_of(Path("data/pairs.parquet")).name
    'pairs.parquet.sha256'
    """
    return path.with_name(path.name + SIDECAR_SUFFIX)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about `path` into a :class:`StorageError` with a next step."""
    try:
        yield
    except OSError as error:
        if error.errno in _OUT_OF_SPACE:
            raise StorageError(
                f"The disk is full: {path} was not written.",
                "free some space and run the same command again; everything written before is intact",
            ) from error
        if error.errno in _NOT_OURS:
            raise StorageError(
                f"{path} cannot be written: {os.strerror(error.errno or 0).lower()}.",
                f"make the folder writable (ls -ld {path.parent}), then run the same command again",
            ) from error
        raise


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> str:
    """Write a file so that it is there whole or not at all, and return its SHA-256.

    Parameters
    ----------
    path : pathlib.Path
        The file; its folder is created. What was there before is replaced.
    write : callable
        Gets the open binary file and writes the content to it.

    Returns
    -------
    str
        64 hex digits, taken from the disk after writing.

    Raises
    ------
    StorageError
        The disk is full or the folder is not writable; nothing is left behind.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            digest = sha256_of_file(temporary)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return digest


def write_bytes(path: Path, content: bytes) -> str:
    """Write `content` whole or not at all, and return its SHA-256."""
    return write_atomically(path, lambda file: file.write(content))


def write_sidecar(path: Path, digests: Mapping[str, str]) -> Path:
    """Write the sidecar of `path`.

    Parameters
    ----------
    path : pathlib.Path
        The file or folder that the sidecar stands beside.
    digests : mapping of str to str
        SHA-256 by path relative to the sidecar's folder.
    """
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    sidecar = sidecar_of(path)
    write_bytes(sidecar, lines.encode("utf-8"))
    return sidecar


def write_checked(path: Path, write: Callable[[BinaryIO], object]) -> str:
    """Write a file and then its sidecar; return the SHA-256. A reader never sees one that is half there."""
    sidecar_of(path).unlink(missing_ok=True)
    digest = write_atomically(path, write)
    write_sidecar(path, {path.name: digest})
    return digest


def write_folder(path: Path, contents: Iterable[tuple[str, bytes]]) -> None:
    """Write the files of a folder one after the other, then one sidecar beside it that lists all of them.

    Parameters
    ----------
    path : pathlib.Path
        The folder.
    contents : iterable of (str, bytes)
        Each file's path below the folder, and what it holds; read as the files are written.
    """
    sidecar_of(path).unlink(missing_ok=True)
    write_sidecar(path, {f"{path.name}/{name}": write_bytes(path / name, raw) for name, raw in contents})


def read_sidecar(sidecar: Path) -> dict[str, str]:
    """Return the SHA-256 by relative path that a sidecar lists.

    Raises
    ------
    ChecksumError
        A line is not of the form ``<64 hex digits>  <path>``.
    """
    digests: dict[str, str] = {}
    for number, line in enumerate(
        sidecar.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
    ):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ChecksumError(
                f"{sidecar}, line {number}: found {line[:80]!r}, wanted '<64 hex digits>  <file name>'.",
                "make the dataset again by the command in its run's manifest; its checksum is not readable",
            )
        digests[match.group(2)] = match.group(1)
    if not digests:
        raise ChecksumError(f"{sidecar} is empty.", "make the dataset again; its checksum is lost")
    return digests


def is_complete(path: Path) -> bool:
    """Say whether `path` and its sidecar are both there (not whether they agree)."""
    return sidecar_of(path).is_file() and path.exists()


def verify(path: Path) -> dict[str, str]:
    """Check everything that the sidecar of `path` lists and return it.

    Returns
    -------
    dict of str to str
        SHA-256 by path relative to the sidecar's folder.

    Raises
    ------
    ChecksumError
        There is no sidecar, a listed file is absent, or its bytes are not those that were written.
    """
    sidecar = sidecar_of(path)
    if not sidecar.is_file():
        raise ChecksumError(
            f"{path} has no checksum file {sidecar.name}: it was never finished.",
            "make the dataset again",
        )
    digests = read_sidecar(sidecar)
    for name, recorded in digests.items():
        file = sidecar.parent / name
        if not file.is_file():
            raise ChecksumError(f"{file} is absent, but {sidecar.name} lists it.", "make the dataset again")
        actual = sha256_of_file(file)
        if actual != recorded:
            raise ChecksumError(
                f"{file} was changed after it was written.\n"
                f"  recorded SHA-256: {recorded}\n"
                f"  actual SHA-256:   {actual}",
                "restore the file, or delete its version folder and make the dataset again; "
                "'kedro audit' lists every such file",
            )
    return digests
