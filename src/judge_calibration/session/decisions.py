"""Where the commands keep what they decided: a JSON document, a page and tables, with checksums."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.runs import files, manifest

FOLDER = "08_reporting"


def decision_id() -> str:
    """Return the name of a decision that is made now, in the form of a run id."""
    return manifest.now().replace(":", ".")


def keep(
    data: Path,
    name: str,
    version: str,
    document: Mapping[str, Any],
    page: str,
    tables: Mapping[str, pd.DataFrame],
    simulated: bool = False,
) -> dict[str, Path]:
    """Write a decision.

    Parameters
    ----------
    data : pathlib.Path
        The data folder.
    name, version : str
        ``<name>.json/<version>/<name>.json``, and ``<name>.html`` likewise.
    document : mapping
        For machines; no NaN.
    page : str
        For people.
    tables : mapping of str to pandas.DataFrame
        Each as Parquet and CSV under its own name.
    simulated : bool
        Marks the tables SIMULATED; the document and the page say it themselves.

    Returns
    -------
    dict of str to pathlib.Path
        What was written, by kind: ``json``, ``html`` and the tables' names.
    """
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    written = {
        "json": _write(data, f"{name}.json", version, text.encode("utf-8")),
        "html": _write(data, f"{name}.html", version, page.encode("utf-8")),
    }
    return written | keep_tables(data, version, tables, simulated=simulated)


def keep_tables(
    data: Path,
    version: str,
    tables: Mapping[str, pd.DataFrame],
    csv: bool = True,
    simulated: bool = False,
) -> dict[str, Path]:
    """Write tables of a decision as Parquet (and CSV), and return their places by name."""
    from judge_calibration.datasets import Parquet

    written = {}
    for title, table in tables.items():
        path = data / FOLDER / f"{title}.parquet" / version / f"{title}.parquet"
        dataset = Parquet(filepath=path.as_posix(), csv=csv)
        dataset.mark = "SIMULATED" if simulated else None
        dataset.save(table)
        written[title] = path
    return written


def keep_page(data: Path, name: str, version: str, page: str) -> Path:
    """Write one more page of a decision, ``<name>.html/<version>/<name>.html``, and return its place."""
    return _write(data, f"{name}.html", version, page.encode("utf-8"))


def _write(data: Path, name: str, version: str, content: bytes) -> Path:
    path = data / FOLDER / name / version / name
    files.write_checked(path, lambda file: file.write(content))
    return path
