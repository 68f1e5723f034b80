"""Where a run's answers are kept, and whether all of them still are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judge_calibration.judges.store import StoreReader
from judge_calibration.runs.manifest import Run, flattened

DEFAULT_STORE = "calls"
"""Below the data folder, where `asking.store` names no other."""


class Kept(NamedTuple):
    """How many answers a run had, and how many of them the stores have not.

    Attributes
    ----------
    had, lacking : int
        Numbers of calls.
    stores : list of pathlib.Path
        Where was looked.
    """

    had: int
    lacking: int
    stores: list[Path]


def stores_of(run: Run, root: Path, data: Path) -> list[Path]:
    """Return the call stores of a run's parameters, each once."""
    named = [
        root / str(value) if value else data / DEFAULT_STORE
        for name, value in flattened(run.content["parameters"]).items()
        if name.endswith(".asking.store")
    ]
    return list(dict.fromkeys(named))


def kept_answers(run: Run, root: Path, data: Path) -> Kept:
    """Count the answers that a run had and that no store has any more."""
    wanted: set[str] = set()
    for name, item in run.content["outputs"].items():
        path = root / item["path"]
        if (name == "answers" or name.endswith("_answers")) and path.is_file():
            answers = pd.read_parquet(path, columns=["call_id", "text"])
            wanted |= set(answers.loc[answers["text"].notna(), "call_id"])
    had = len(wanted)
    stores = stores_of(run, root, data)
    for store in stores:
        wanted -= set(StoreReader(store).answers(wanted))
    return Kept(had, len(wanted), stores)
