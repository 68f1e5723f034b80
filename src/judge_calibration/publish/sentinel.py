"""Nothing of a private sentinel leaves: neither its pairs, nor its texts under another name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from judge_calibration.bank.build import PRIVATE_SOURCE, build_pairs
from judge_calibration.bank.tasks import load_bank
from judge_calibration.publish.detectors import Finding
from judge_calibration.publish.texts import Text
from judge_calibration.runs.manifest import Run
from judge_calibration.runs.results import path_in

_TEXTS = ("question", "response_a", "response_b")
_SHORTEST = 40
"""Shorter texts stand in other tasks, too, and tell nothing."""


def private_texts(runs: Iterable[Run], root: Path, bank: Path, folders: Iterable[Path]) -> dict[str, str]:
    """Return the texts and ids of every private sentinel that is known here, each with where it comes from.

    Parameters
    ----------
    runs : iterable of Run
        All runs of the project: their pairs say which were private.
    root : pathlib.Path
        The project.
    bank : pathlib.Path
        The pair bank, beside which a private folder is read.
    folders : iterable of pathlib.Path
        Private folders that are named now.
    """
    known: dict[str, str] = {}
    for run in runs:
        if not (run.content.get("parameters", {}).get("data_prep") or {}).get("private_sentinel"):
            continue
        path = path_in(run, "pairs", root)
        if path is not None and path.is_file():
            _add(pd.read_parquet(path), f"run {run.run_id}", known)
    for folder in folders:
        if folder.is_dir() and bank.is_dir():
            _add(build_pairs(load_bank(bank, str(folder))), f"private sentinel {folder.name}", known)
    return known


def _add(pairs: pd.DataFrame, where: str, known: dict[str, str]) -> None:
    private = pairs[pairs["source"] == PRIVATE_SOURCE]
    others = pairs[pairs["source"] != PRIVATE_SOURCE]
    public = {_plain(text) for column in _TEXTS for text in others[column].dropna()}
    for row in private.to_dict("records"):
        known.setdefault(str(row["pair_id"]), where)
        for column in _TEXTS:
            text = _plain(str(row[column]))
            if len(text) >= _SHORTEST and text not in public:
                known.setdefault(text, where)


def find_private(texts: Iterable[Text], known: dict[str, str]) -> Iterator[Finding]:
    """Yield the places where a private text or id stands, whatever is around it; each once."""
    if not known:
        return
    told: set[str] = set()
    for where, text in texts:
        plain = _plain(text)
        for private, origin in known.items():
            if private not in told and private in plain:
                told.add(private)
                yield Finding("private sentinel", f"a text or an id of {origin}", where, private)


def _plain(text: str) -> str:
    return " ".join(text.split())
