"""The one thing that all artifact classes share: a checked save, a checked load and a strict "latest"."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kedro.io.core import AbstractVersionedDataset, DatasetError, VersionNotFoundError

from judge_calibration.datasets.marks import marked
from judge_calibration.runs import files, versions

if TYPE_CHECKING:
    from collections.abc import Callable

    _Base = AbstractVersionedDataset[Any, Any]
else:
    _Base = ABC


class Checksummed(_Base):
    """Put before a kedro-datasets class, replaces how its files are written, found and trusted.

    A subclass says in :meth:`_put` what is written. Everything else (arguments, parsing, preview) is the
    parent's.
    """

    mark: str | None = None
    """A word that everything saved carries (marks.marked); null: nothing is added."""

    @abstractmethod
    def _put(self, data: Any, path: Path) -> None:
        """Write the data to the path, then the checksum: the same bytes for the same data on every run."""

    def _marked(self, data: Any, word: str) -> Any:
        """Return the data with the word that everything saved has to carry."""
        return marked(data, word)

    def save(self, data: Any) -> None:
        """Write the data, then its checksum."""
        path = self._local(self._get_save_path())
        self._put(data if self.mark is None else self._marked(data, self.mark), path)

    def load(self) -> Any:
        """Return the data if the file is the one that was written.

        Raises
        ------
        ChecksumError
            The file and its checksum differ (both are named), or the checksum is not there.
        """
        self.checked_path()
        return super().load()  # type: ignore[safe-super]  # the kedro-datasets class comes next

    def checked_path(self) -> Path:
        """Return the path of the version that :meth:`load` reads, after checking its SHA-256."""
        path = self._local(self._get_load_path())
        files.verify(path)
        return path

    def artifact_path(self, saved: bool = False) -> Path | None:
        """Return the path of the version that was saved in this run, or that a load reads; None if none."""
        try:
            if not saved or self._version is None or self._version.save is None:
                path = self._local(self._get_load_path())
            else:
                path = self._local(self._get_versioned_path(self._version.save))
        except VersionNotFoundError:
            return None
        return path if files.is_complete(path) else None

    def _local(self, path: Any) -> Path:
        if getattr(self, "_protocol", "file") != "file":
            raise DatasetError(
                f"{type(self).__name__} keeps checksums on a local file system only, "
                f"found '{self._protocol}://' for {self._filepath}"  # type: ignore[attr-defined]
            )
        return Path(str(path))

    def _get_versions(self) -> list[str]:
        own = self._version.save if self._version else None
        filepath = self._local(self._filepath)
        return [str(self._get_versioned_path(v)) for v in versions.usable_versions(filepath, own)]

    def _fetch_latest_load_version(self) -> str:
        if self._cached_load_version is None:
            own = self._version.save if self._version else None
            found = next(versions.usable_versions(self._local(self._filepath), own), None)
            if found is None:
                raise VersionNotFoundError(f"Did not find any complete version of {self._filepath}")
            self._cached_load_version = found
        return self._cached_load_version

    def _exists(self) -> bool:
        return self.artifact_path() is not None


class ChecksummedFile(Checksummed):
    """A dataset of one file. A subclass says in :meth:`_write` how the data become bytes."""

    @abstractmethod
    def _write(self, data: Any, file: BinaryIO) -> None:
        """Write the data to an open binary file."""

    def _write_beside(self, data: Any, path: Path) -> None:
        """Write what stands beside the file; called before it, so that its checksum comes last."""

    def _put(self, data: Any, path: Path) -> None:
        self._write_beside(data, path)
        files.write_checked(path, lambda file: self._write(data, file))


def writer_of_text(text: str) -> Callable[[BinaryIO], object]:
    """Return a function that writes `text` as UTF-8 and changes no line end."""
    return lambda file: file.write(text.encode("utf-8"))
