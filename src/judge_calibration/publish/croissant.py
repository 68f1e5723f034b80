"""The Croissant description (1.1) of a publication: JSON-LD that catalogs of data sets read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge_calibration.bank.publish import CONTEXT, field_object, file_object, licence_address

_FORMATS = {
    ".parquet": "application/x-parquet",
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".html": "text/html",
    ".yml": "application/yaml",
    ".yaml": "application/yaml",
    ".md": "text/markdown",
}
_BINARY = "application/octet-stream"
_PLAIN = "text/plain"


def describe(
    folder: Path,
    digests: Mapping[str, str],
    tables: Mapping[str, str],
    licences: Sequence[str],
    about: Mapping[str, str],
) -> dict[str, Any]:
    """Return the description.

    Parameters
    ----------
    folder : pathlib.Path
        The publication as it is written.
    digests : mapping
        SHA-256 of every file by its path.
    tables : mapping
        The Parquet files that are described column by column: path by dataset.
    licences : sequence of str
        SPDX names of all licences in it.
    about : mapping
        ``name``, ``description``, ``version``, ``date``, ``collection``, ``personal``.
    """
    names = sorted({part for licence in licences for part in licence.strip("()").split(" AND ")})
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": about["name"],
        "description": about["description"],
        "citeAs": f"{about['name']}, {about['date']}.",
        "creator": {"@type": "sc:Organization", "name": about.get("creator") or "not told"},
        "datePublished": about["date"],
        "isLiveDataset": False,
        "keywords": ["LLM-as-a-judge", "pairwise comparison", "evaluation", "calibration"],
        "license": [licence_address(name) for name in names],
        "version": about["version"],
        "rai:dataCollection": about["collection"],
        "rai:personalSensitiveInformation": about["personal"],
        "distribution": [_file_object(folder, path, digests[path]) for path in sorted(digests)],
        "recordSet": [
            records for name, path in sorted(tables.items()) if (records := _record_set(folder, name, path))
        ],
    }


def _file_object(folder: Path, path: str, digest: str) -> dict[str, Any]:
    suffix = Path(path).suffix
    text = suffix in (".py", ".txt", ".toml", ".lock", ".sha256", ".j2", ".css", ".js", "")
    encoding = _FORMATS.get(suffix, _PLAIN if text else _BINARY)
    return file_object(path, (folder / path).stat().st_size, digest, encoding)


def _record_set(folder: Path, name: str, path: str) -> dict[str, Any] | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(folder / path)
    fields = []
    for column in schema:
        kind = "sc:Text"
        if pa.types.is_boolean(column.type):
            kind = "sc:Boolean"
        elif pa.types.is_integer(column.type):
            kind = "sc:Integer"
        elif pa.types.is_floating(column.type):
            kind = "sc:Float"
        fields.append(field_object(name, column.name, kind, path))
    if not fields:
        return None
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"The table {name}; docs/definitions.md and schemas.py say what its columns mean.",
        "field": fields,
    }
