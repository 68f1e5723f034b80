"""What a manifest says of one file: its version, SHA-256, bytes, rows, and a hash of its content.

The content hash does not depend on the order of a table's rows or on how the file is encoded, so two files
whose bytes differ can still be shown to say the same.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.runs import files
from judge_calibration.text import sha256_of


def rows_digest(frame: pd.DataFrame) -> np.ndarray:
    """Return one 64-bit hash a row (values only, without the index)."""
    return pd.util.hash_pandas_object(frame, index=False).to_numpy(dtype="uint64")


def content_sha256(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of a table's sorted rows and of its column names.

    Examples
    --------
    >>> table = pd.DataFrame({"pair_id": ["1", "2"], "C": [0.5, 1.0]})
    >>> content_sha256(table) == content_sha256(table.iloc[::-1])
    True
    >>> content_sha256(table) == content_sha256(table.assign(C=[0.5, 0.9]))
    False
    """
    return _combined(list(map(str, frame.columns)), [rows_digest(frame)])


def _combined(columns: list[str], hashes: list[np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(columns).encode("utf-8"))
    digest.update(np.sort(np.concatenate(hashes or [np.zeros(0, dtype="uint64")])).tobytes())
    return digest.hexdigest()


def _parquet_content(path: Path) -> tuple[int, str]:
    # In batches: a table of reads may be larger than the memory.
    import pyarrow as pa
    import pyarrow.parquet as pq

    nullable = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    with pq.ParquetFile(path) as file:
        columns = list(file.schema_arrow.names)
        hashes = [
            rows_digest(batch.to_pandas(types_mapper=nullable.get))
            for batch in file.iter_batches(batch_size=50_000)
            if columns
        ]
        return int(file.metadata.num_rows), _combined(columns, hashes)


def _content(path: Path, digests: dict[str, str]) -> tuple[int | None, str]:
    """Return the number of rows (or entries, or files) and the content hash."""
    if path.is_dir():
        return len(digests), sha256_of(digests)
    if path.suffix == ".parquet":
        return _parquet_content(path)
    if path.suffix == ".csv":
        frame = (
            pd.read_csv(path, dtype=str, keep_default_na=False) if path.stat().st_size > 1 else pd.DataFrame()
        )
        return len(frame), content_sha256(frame)
    if path.suffix == ".json":
        value = json.loads(path.read_text(encoding="utf-8"))
        return (len(value) if isinstance(value, list) else None), sha256_of(value)
    return None, digests[path.name]


def describe(path: Path, root: Path) -> dict[str, Any]:
    """Describe a complete artifact by reading it.

    Parameters
    ----------
    path : pathlib.Path
        The file (or folder) of one version.
    root : pathlib.Path
        The project; paths inside it are kept relative to it, with forward slashes.

    Returns
    -------
    dict
        ``path``, ``version`` (null where not versioned), ``sha256``, ``content_sha256``, ``bytes``, ``rows``.

    Raises
    ------
    ChecksumError
        The file is not the one that was written.
    """
    digests = files.verify(path)
    rows, content = _content(path, digests)
    members = [path.parent / name for name in digests]
    return {
        "path": files.relative(path, root),
        "version": path.parent.name if path.parent.parent.name == path.name else None,
        "sha256": digests[path.name] if path.name in digests else sha256_of(digests),
        "content_sha256": content,
        "bytes": sum(member.stat().st_size for member in members),
        "rows": rows,
    }
