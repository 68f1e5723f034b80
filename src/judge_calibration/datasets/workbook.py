"""Excel workbooks with the same bytes for the same tables."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO

import pandas as pd
from kedro.io.core import AbstractVersionedDataset, Version

from judge_calibration.datasets.checksummed import ChecksummedFile

# A workbook is a ZIP archive with dates inside; both are fixed, so that equal tables give equal bytes.
_EPOCH = datetime(2000, 1, 1)
_ZIP_DATE = (2000, 1, 1, 0, 0, 0)


def workbook_bytes(sheets: Mapping[str, pd.DataFrame]) -> bytes:
    """Return the tables as one workbook, a sheet each; every text cell stays text, none a formula."""
    from openpyxl import Workbook as OpenpyxlWorkbook

    book = OpenpyxlWorkbook()
    book.remove(book.worksheets[0])
    for title, frame in sheets.items():
        sheet = book.create_sheet(title[:31])
        for row in [tuple(frame.columns), *frame.itertuples(index=False, name=None)]:
            sheet.append([_cell(value) for value in row])
            for cell in sheet[sheet.max_row]:
                if cell.data_type == "f":
                    cell.data_type = "s"
        sheet.freeze_panes = "A2"
    raw = io.BytesIO()
    book.properties.created = book.properties.modified = _EPOCH
    book.save(raw)
    fixed = io.BytesIO()
    with zipfile.ZipFile(raw) as source, zipfile.ZipFile(fixed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(source.namelist()):
            content = source.read(name)
            if name == "docProps/core.xml":
                content = _without_save_date(content)
            entry = zipfile.ZipInfo(name, date_time=_ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            target.writestr(entry, content)
    return fixed.getvalue()


def _cell(value: Any) -> Any:
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    return value.item() if hasattr(value, "item") else value


def _without_save_date(core: bytes) -> bytes:
    # openpyxl sets the date of the last change when it saves, whatever the property says.
    import re

    stamp = _EPOCH.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return re.sub(rb"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", stamp, core)


class Workbook(ChecksummedFile, AbstractVersionedDataset[Any, dict[str, pd.DataFrame]]):
    """One table or several, as an Excel workbook: a mapping of sheet title to table, or one table.

    Loading gives a mapping of sheet title to table, every cell as text.

    Examples
    --------
    >>> import tempfile
    >>> book = Workbook(filepath=tempfile.mkdtemp() + "/b.xlsx")
    >>> book.save({"pairs": pd.DataFrame({"pair_id": ["1"], "note": ["=1+1"]})})
    >>> book.load()["pairs"].note.item()
    '=1+1'
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

    def _write(self, data: Any, file: BinaryIO) -> None:
        sheets = {"table": data} if isinstance(data, pd.DataFrame) else data
        file.write(workbook_bytes(sheets))

    def load(self) -> dict[str, pd.DataFrame]:
        """Return the sheets by title if the file is the one that was written."""
        return dict(pd.read_excel(self.checked_path(), sheet_name=None, dtype=str, engine="openpyxl"))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self._filepath, "version": self._version}
