"""Folders of text files: authored ones that are read, and made ones that are versioned as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from kedro.io.core import AbstractDataset, AbstractVersionedDataset, DatasetError, Version

from judge_calibration.datasets.checksummed import Checksummed
from judge_calibration.datasets.marks import marked
from judge_calibration.runs import files
from judge_calibration.text import sha256_of


class Folder(AbstractDataset[dict[str, str], dict[str, str]]):
    """The text files of a folder that people write, by name. It is never written.

    Parameters
    ----------
    path : str
        The folder.
    glob : str, default "**/*"
        Which of its files.
    metadata : dict, optional
        For kedro-viz.

    Examples
    --------
    .. code-block:: yaml

        pair_bank:
          type: judge_calibration.datasets.Folder
          path: data/01_raw/pair_bank
          glob: "**/*.yml"

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "one.yml").write_text("a: 1")
    >>> Folder(path=str(folder), glob="*.yml").load()
    {'one.yml': 'a: 1'}
    """

    def __init__(
        self,
        *,
        path: str | os.PathLike[str],
        glob: str = "**/*",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._path = PurePosixPath(str(path))
        self._glob = glob
        self.metadata = metadata

    def _files(self) -> dict[str, Path]:
        root = Path(self._path)
        found = [p for p in root.glob(self._glob) if p.is_file() and not p.name.startswith(".")]
        return {p.relative_to(root).as_posix(): p for p in sorted(found)}

    def load(self) -> dict[str, str]:
        """Return the texts by their path below the folder, in the order of the paths.

        Raises
        ------
        DatasetError
            No file matches, or one is not UTF-8 (it is named).
        """
        found = self._files()
        if not found:
            raise DatasetError(f"no file matches '{self._glob}' in {self._path}; wanted at least one")
        texts = {}
        for name, path in found.items():
            try:
                texts[name] = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError as error:
                raise DatasetError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
        return texts

    def save(self, data: dict[str, str]) -> NoReturn:
        """Refuse: inputs are written by people."""
        raise DatasetError(f"{self._path} is an input: it is read, never written")

    def input_sha256(self) -> str:
        """Return one SHA-256 for the names and bytes of all files."""
        return sha256_of({name: files.sha256_of_file(path) for name, path in self._files().items()})

    def _describe(self) -> dict[str, Any]:
        return {"path": self._path, "glob": self._glob}

    def _exists(self) -> bool:
        return bool(self._files())


def _text_or_bytes(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


class Files(Checksummed, AbstractVersionedDataset[Mapping[str, "str | bytes"], dict[str, Any]]):
    r"""Several texts that belong together (one packet an annotator, say), versioned as one folder.

    The data are a mapping of relative path to text (or bytes, for a file that is not text). One checksum
    file beside the folder lists all of them.

    Examples
    --------
    .. code-block:: yaml

        blinded_packets:
          type: judge_calibration.datasets.Files
          filepath: data/02_intermediate/blinded_packets
          versioned: true

    >>> import tempfile
    >>> packets = Files(filepath=tempfile.mkdtemp() + "/packets")
    >>> packets.save({"ann_1.csv": "pair_id\n1\n"})
    >>> packets.load()
    {'ann_1.csv': 'pair_id\n1\n'}
    """

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        version: Version | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(filepath=PurePosixPath(str(filepath)), version=version)
        self.metadata = metadata

    def _marked(self, data: Mapping[str, str | bytes], word: str) -> Mapping[str, str | bytes]:
        # Each file has its own form (a sheet for labels, an adapter): whoever makes it puts the word there.
        # What is for reading only is marked here.
        return {
            name: marked(content, word) if isinstance(content, str) and _is_for_reading(name) else content
            for name, content in data.items()
        }

    def _put(self, data: Mapping[str, str | bytes], path: Path) -> None:
        if not data:
            raise DatasetError(f"no file to save in {path}; wanted at least one")
        for name in data:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\n" in name:
                raise DatasetError(f"found the file name {name!r} for {path}; wanted a path below the folder")
        files.write_folder(
            path,
            ((name, text.encode("utf-8") if isinstance(text, str) else text) for name, text in data.items()),
        )

    def load(self) -> dict[str, Any]:
        """Return the files by name if each is as it was written: texts, or bytes where it is no UTF-8."""
        path = self.checked_path()
        names = files.read_sidecar(files.sidecar_of(path))
        return {
            name.removeprefix(f"{path.name}/"): _text_or_bytes((path.parent / name).read_bytes())
            for name in names
        }

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self._filepath, "version": self._version}


def _is_for_reading(name: str) -> bool:
    path = PurePosixPath(name)
    return path.stem.upper() == "README" or path.suffix.lower() == ".html"
