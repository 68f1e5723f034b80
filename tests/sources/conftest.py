"""Helpers of the importers' tests: hand-made files and how to read them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge_calibration.sources import SourceFile, read_pairs

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of text, bytes, or records (JSON lines, or a JSON list for .json) and return its path."""

    def write_file(name: str, content: Any, encoding: str = "utf-8") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, pd.DataFrame):
            content.to_parquet(path)
        elif isinstance(content, str):
            path.write_bytes(content.encode(encoding))
        elif name.endswith(".json"):
            path.write_text(json.dumps(content), "utf-8")
        else:
            path.write_text("".join(json.dumps(record) + "\n" for record in content), "utf-8")
        return str(path)

    return write_file


@pytest.fixture
def pairs_of(write: Write) -> Callable[..., pd.DataFrame]:
    """Write one file and return the pairs that a layout (the generic one by default) makes of it."""

    def read(
        name: str, content: Any, layout: str = "pairs", encoding: str = "utf-8", **over: Any
    ) -> pd.DataFrame:
        path = write(name, content, encoding)
        return read_pairs([SourceFile(path=path, layout=layout, set=over)]).pairs

    return read
