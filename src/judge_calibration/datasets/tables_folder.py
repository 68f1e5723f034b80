"""Several tables that belong together (one a judge, say), as one versioned folder of Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import pandas as pd
from kedro.io.core import AbstractVersionedDataset, DatasetError, Version

from judge_calibration.datasets.checksummed import Checksummed
from judge_calibration.datasets.marks import marked
from judge_calibration.datasets.tables import parquet_bytes
from judge_calibration.runs import files

_INDEX = "index.json"


class Tables(Checksummed, AbstractVersionedDataset[Mapping[str, pd.DataFrame], dict[str, pd.DataFrame]]):
    """A mapping of name to table: one Parquet file each, and ``index.json`` with the names in their order.

    One checksum file beside the folder lists all of them. A name becomes a file name in percent encoding, so
    that ``openai/gpt`` is one file on every system.

    Parameters
    ----------
    filepath : str
        The folder.
    row_group_size : int, default 10000
        Rows a row group: what a reader of a part of the rows has to decode.

    Examples
    --------
    .. code-block:: yaml

        read_panel:
          type: judge_calibration.datasets.Tables
          filepath: data/04_feature/read_panel
          versioned: true

    >>> import tempfile
    >>> tables = Tables(filepath=tempfile.mkdtemp() + "/panel")
    >>> tables.save({"openai/gpt": pd.DataFrame({"a": [1]})})
    >>> tables.load()["openai/gpt"].a.item()
    1
    """

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        row_group_size: int = 10_000,
        version: Version | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(filepath=PurePosixPath(str(filepath)), version=version)
        self._row_group_size = row_group_size
        self.metadata = metadata

    def _marked(self, data: Mapping[str, pd.DataFrame], word: str) -> Mapping[str, pd.DataFrame]:
        return {name: marked(table, word) for name, table in data.items()}

    def _put(self, data: Mapping[str, pd.DataFrame], path: Path) -> None:
        for name, table in data.items():
            if not isinstance(table, pd.DataFrame):
                raise DatasetError(
                    f"found a {type(table).__name__} named {name!r} for {path}, wanted pandas DataFrames"
                )
        names = {name: f"{quote(name, safe='')}.parquet" for name in data}
        index = json.dumps(names, ensure_ascii=False, indent=1).encode("utf-8")
        tables = (
            (names[name], parquet_bytes(table, self._row_group_size, self.mark))
            for name, table in data.items()
        )
        files.write_folder(path, chain([(_INDEX, index)], tables))

    def load(self) -> dict[str, pd.DataFrame]:
        """Return the tables by name if every file is the one that was written."""
        path: Path = self.checked_path()
        names = json.loads((path / _INDEX).read_text(encoding="utf-8"))
        return {name: pd.read_parquet(path / file) for name, file in names.items()}

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self._filepath, "version": self._version}
