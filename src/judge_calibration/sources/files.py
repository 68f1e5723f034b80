"""Files as they lie somewhere: local or remote, compressed or not, in one of several encodings.

Remote files (any fsspec URL, ``hf://`` included) are copied to a temporary folder first, so that every
reader and the checksum see the same bytes.
"""

from __future__ import annotations

import bz2
import codecs
import glob
import gzip
import hashlib
import io
import lzma
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from judge_calibration.errors import JudgeCalibrationError


def _open_zst(path: Path, mode: str) -> IO[bytes]:
    """Open a Zstandard file; Arrow brings the codec, which Python lacks before 3.14."""
    import pyarrow as pa

    return io.BufferedReader(_Stream(pa.input_stream(str(path), compression="zstd")))


class _Stream(io.RawIOBase):
    """An Arrow stream as Python's own, to be read once from its start."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        import pyarrow as pa

        try:
            piece = self._stream.read(len(buffer))
        except pa.ArrowException as error:
            raise OSError(str(error)) from error
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()


_COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zst,
}
_PACKED = (
    (re.compile(rb"\x1f\x8b"), ".gz"),
    (re.compile(rb"BZh[1-9]1AY&SY"), ".bz2"),
    (re.compile(rb"\xfd7zXZ\x00"), ".xz"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), ".zst"),
)
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class UnreadableFileError(JudgeCalibrationError):
    """A file cannot be opened or decoded; `found` and `wanted` go into the list of problems."""

    def __init__(self, found: str, wanted: str, row: int | None = None) -> None:
        super().__init__(f"found {found}; wanted {wanted}")
        self.found, self.wanted, self.row = found, wanted, row
        self.args = (found, wanted, row)


@dataclass(frozen=True)
class OpenFile:
    """A file on this machine, and how it is called in messages and provenance."""

    given: str
    """The path as it stands in the parameters (a pattern's match in place of the pattern)."""
    local: Path
    sha256: str

    @property
    def name(self) -> str:
        """The last part of the path, without the folders of this machine."""
        return PurePosixPath(self.given.replace("\\", "/")).name


def is_remote(path: str) -> bool:
    """Say whether the path is a URL. A local file whose name looks like one is local."""
    return "://" in path and not Path(path).exists()


def expand_path(path: str) -> list[str]:
    """Return the files that a path or a pattern names, sorted; an existing file is never a pattern.

    Raises
    ------
    UnreadableFileError
        If there is no such file.
    """
    if is_remote(path):
        if not any(char in path.split("://", 1)[1] for char in "*?["):
            return [path]
        protocol = path.split("://", 1)[0]
        with _told_if_unreachable():
            found = [f"{protocol}://{name}" for name in _remote(path).glob(path)]
    elif Path(path).is_file():
        return [path]
    elif Path(path).is_dir():
        raise UnreadableFileError("a folder", "a file, or a pattern such as folder/*.jsonl")
    else:
        found = [name for name in glob.glob(path, recursive=True) if Path(name).is_file()]
    if not found:
        parent = Path(path).parent
        hint = "" if is_remote(path) or parent.is_dir() or "*" in str(parent) else f" (nor a folder {parent})"
        raise UnreadableFileError(f"no such file{hint}", "an existing file; check the path in the parameters")
    return sorted(found)


@contextmanager
def _told_if_unreachable() -> Iterator[None]:
    """Turn whatever a file system raises for a file that it cannot fetch into one explained error."""
    import aiohttp
    import httpx

    try:
        yield
    except (OSError, ValueError, RuntimeError, aiohttp.ClientError, httpx.HTTPError) as error:
        text = str(error).strip().split("\n")[0][:200] or "no answer"
        raise UnreadableFileError(
            f"{type(error).__name__}: {text}", "a file that can be reached; check the URL and the network"
        ) from error


def _remote(path: str) -> Any:
    import fsspec

    try:
        return fsspec.url_to_fs(path)[0]
    except (ValueError, ImportError) as error:
        raise UnreadableFileError(
            str(error), "a URL whose protocol fsspec knows, e.g. hf:// or s3://"
        ) from error


@contextmanager
def open_file(given: str) -> Iterator[OpenFile]:
    """Give a file as bytes on this machine with its SHA-256; a remote one is copied first.

    Raises
    ------
    UnreadableFileError
        If it cannot be read or copied.
    """
    with tempfile.TemporaryDirectory(prefix="judge_calibration_") as folder:
        local = Path(given)
        if is_remote(given):
            local = Path(folder) / "file"
            with _told_if_unreachable():
                _remote(given).get_file(given, str(local))
        try:
            with open(local, "rb") as handle:
                digest = hashlib.file_digest(handle, "sha256").hexdigest()
        except OSError as error:
            raise UnreadableFileError(error.strerror or str(error), "a file that can be read") from error
        yield OpenFile(given, local, digest)


def format_of(name: str) -> str | None:
    """Return the format that a file's name tells, compression aside.

    Examples
    --------
    >>> format_of("a=1,b.csv.gz"), format_of("pairs.ods")
    ('csv', None)
    """
    path = PurePosixPath(name)
    if path.suffix.lower() in _COMPRESSED:
        path = PurePosixPath(path.stem)
    return _FORMATS.get(path.suffix.lower())


def open_bytes(file: OpenFile) -> IO[bytes]:
    """Open the file for reading, uncompressed by what its first bytes say.

    Names lie in both directions: what is fetched is often unpacked on the way and keeps its ``.gz``.
    """
    with open(file.local, "rb") as handle:
        start = handle.read(10)
    opener = next((_COMPRESSED[kind] for mark, kind in _PACKED if mark.match(start)), None)
    return cast(IO[bytes], opener(file.local, "rb") if opener else open(file.local, "rb"))


def open_text(file: OpenFile, encoding: str) -> io.TextIOWrapper:
    """Open the file as text with no change of line ends.

    With encoding ``auto`` a byte order mark decides and UTF-8 is the rule without one.
    """
    if encoding == "auto":
        with open_bytes(file) as handle:
            start = handle.read(4)
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise UnreadableFileError(
            f"encoding {encoding!r}", "an encoding that Python knows, e.g. cp1252"
        ) from error
    return io.TextIOWrapper(open_bytes(file), encoding=encoding, errors="strict", newline="")


def explain_undecodable(file: OpenFile, error: UnicodeDecodeError) -> UnreadableFileError:
    """Say which line of the file is not in its encoding, and what to declare instead."""
    line = None
    if error.encoding.replace("-", "").lower().startswith("utf8"):
        with open_bytes(file) as handle:
            for number, raw in enumerate(handle, start=1):
                try:
                    raw.decode("utf-8")
                except UnicodeDecodeError as own:
                    line, error = number, own
                    break
    byte = error.object[error.start : error.start + 1].hex()
    with open_bytes(file) as handle:
        start = handle.read(400)
    likely = "cp1252"
    if start.count(0) > len(start) // 4:  # every other byte of Latin text in UTF-16 is NUL
        likely = "utf-16-be" if start[:1] == b"\x00" else "utf-16-le"
    return UnreadableFileError(
        f"byte 0x{byte} in line {line if line else '?'}, which is not {error.encoding}",
        f"UTF-8, or the file's own encoding declared in its layout, e.g. `encoding: {likely}`",
    )
