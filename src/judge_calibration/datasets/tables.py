"""Tables: Parquet with the same bytes for the same rows, and CSV that a spreadsheet opens safely."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
from kedro.io.core import DatasetError, Version
from kedro_datasets._typing import TablePreview
from kedro_datasets.pandas import CSVDataset, ParquetDataset

from judge_calibration.datasets.checksummed import ChecksummedFile
from judge_calibration.datasets.marks import COLUMN
from judge_calibration.runs import files

# A spreadsheet takes a cell that starts so for a formula. An apostrophe before it makes it text.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r\n]")


def _is_text(values: pd.Series) -> bool:
    return isinstance(values.dtype, (pd.StringDtype, pd.CategoricalDtype)) or values.dtype == object


def escape_formulae(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with an apostrophe before every text that a spreadsheet would compute.

    Examples
    --------
    >>> escape_formulae(pd.DataFrame({"a": ["=1+1", "plain", None], "n": [-1, 2, 3]})).a.tolist()[:2]
    ["'=1+1", 'plain']
    """
    out = frame.copy()
    for name in out.columns[[_is_text(out[column]) for column in out.columns]] if len(out.columns) else []:
        out[name] = out[name].map(
            lambda v: "'" + v if isinstance(v, str) and _FORMULA.match(v) else v, na_action="ignore"
        )
    out.columns = ["'" + str(name) if _FORMULA.match(str(name)) else str(name) for name in out.columns]
    return out


def unescape_formulae(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame that :func:`escape_formulae` was given."""
    out = frame.copy()
    for name in out.columns[[_is_text(out[column]) for column in out.columns]] if len(out.columns) else []:
        out[name] = out[name].map(
            lambda v: v[1:] if isinstance(v, str) and _ESCAPED.match(v) else v, na_action="ignore"
        )
    out.columns = [str(name)[1:] if _ESCAPED.match(str(name)) else str(name) for name in out.columns]
    return out


def csv_bytes(frame: pd.DataFrame, **save_args: Any) -> bytes:
    """Return the frame as CSV: UTF-8, line feeds, shortest exact floats, no cell a formula."""
    settings = {"index": False, "lineterminator": "\n", **save_args}
    text = escape_formulae(frame).to_csv(**settings)
    return str(text).encode("utf-8")


def parquet_bytes(frame: pd.DataFrame, row_group_size: int = 100_000, mark: str | None = None) -> bytes:
    """Return the frame as Parquet with fixed settings: the same rows give the same bytes.

    A `mark` also stands in the file's own metadata, so that a table without a row carries it too.

    Raises
    ------
    ValueError
        The index has a name: it holds data that would be lost.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if any(name is not None for name in frame.index.names):
        raise ValueError(
            f"the index {list(frame.index.names)} would be lost; wanted a plain index (use reset_index())"
        )
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if mark is not None:
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), COLUMN: mark})
    sink = io.BytesIO()
    # One chunk a column: pages must depend on the rows, not on how the frame was put together.
    pq.write_table(
        table.combine_chunks(),
        sink,
        version="2.6",
        compression="zstd",
        compression_level=3,
        row_group_size=row_group_size,
        data_page_version="1.0",
        write_statistics=True,
        use_dictionary=True,
    )
    return sink.getvalue()


class Parquet(ChecksummedFile, ParquetDataset):
    """A table as a checksummed Parquet file, with a CSV beside it on request.

    Examples
    --------
    In a catalog:

    .. code-block:: yaml

        trust_table:
          type: judge_calibration.datasets.Parquet
          filepath: data/08_reporting/trust_table.parquet
          versioned: true
          csv: true

    In Python:

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = Parquet(filepath=str(folder / "t.parquet"), csv=True)
    >>> table.save(pd.DataFrame({"C": [0.5]}))
    >>> sorted(p.name for p in folder.iterdir())
    ['t.csv', 't.csv.sha256', 't.parquet', 't.parquet.sha256']
    >>> table.load().C.item()
    0.5
    """

    def __init__(
        self,
        *,
        filepath: str | os.PathLike[str],
        csv: bool = False,
        load_args: dict[str, Any] | None = None,
        version: Version | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        ParquetDataset.__init__(
            self, filepath=filepath, load_args=load_args, version=version, metadata=metadata
        )
        self._csv = csv

    def _write(self, data: pd.DataFrame, file: BinaryIO) -> None:
        file.write(parquet_bytes(data, mark=self.mark))

    def _write_beside(self, data: pd.DataFrame, path: Path) -> None:
        if self._csv:
            if data.empty and self.mark is not None:
                # Without a row only the header can say it; the table itself keeps its column's name.
                data = data.rename(columns={COLUMN: f"{COLUMN}: {self.mark}"})
            content = csv_bytes(data)
            files.write_checked(path.with_suffix(".csv"), lambda file: file.write(content))

    def preview(self, nrows: int = 5) -> TablePreview:
        """Return the first rows for kedro-viz, a missing value as null."""
        rows = self.load().head(nrows)
        shown = rows.astype(object).where(rows.notna(), None)
        return TablePreview(shown.to_dict(orient="split"))

    def save(self, data: pd.DataFrame) -> None:
        """Write the table (and its CSV), then the checksums."""
        if not isinstance(data, pd.DataFrame):
            raise DatasetError(
                f"found a {type(data).__name__} for {self._filepath}, wanted a pandas DataFrame"
            )
        super().save(data)


class Csv(ChecksummedFile, CSVDataset):
    """A table as a checksummed CSV file whose cells no spreadsheet computes.

    Text that starts with ``=``, ``+``, ``-``, ``@``, a tab or a line end gets an apostrophe in the file and
    loses it again when loaded. Give ``load_args: {dtype: str}`` where numbers are names.

    Examples
    --------
    >>> import tempfile
    >>> table = Csv(filepath=tempfile.mkdtemp() + "/t.csv")
    >>> table.save(pd.DataFrame({"note": ["=1+1"]}))
    >>> table.load().note.item()
    '=1+1'
    """

    def _write(self, data: pd.DataFrame, file: BinaryIO) -> None:
        file.write(csv_bytes(data, **{k: v for k, v in self._save_args.items() if k != "index"}))

    def load(self) -> pd.DataFrame:
        """Return the table if the file is the one that was written."""
        return unescape_formulae(super().load())
