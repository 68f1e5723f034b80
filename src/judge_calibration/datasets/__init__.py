"""Checksummed, versioned forms of the kedro-datasets classes, under the short names that catalogs use.

Every save writes a temporary file, hashes it, renames it and then writes ``<file>.sha256``; every load
checks that hash first and refuses a file that does not match. A version without its checksum file is not a
version. The previews of kedro-viz are those of the parent classes.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "CallStore": "calling",
    "Keys": "calling",
    "Parquet": "tables",
    "Csv": "tables",
    "Workbook": "workbook",
    "Json": "documents",
    "Text": "documents",
    "Html": "documents",
    "Files": "folders",
    "Folder": "folders",
    "PlotlyFigure": "figures",
    "Tables": "tables_folder",
    "Yaml": "inputs",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    # Loaded on first use: plotly and pandas would slow every Kedro command down.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
