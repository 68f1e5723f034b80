"""The audit queue: which judgments a person should look at first, and why.

One row a cell and pair. A row may have several reasons; the queue takes the rows in rounds over strata (the
row's rarest reason, crossed with slices of the pairs), so that no common fault crowds out a rare one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.metrics.cell_choice import rows_of_cell
from judge_calibration.metrics.judgments import CELL_COLUMNS
from judge_calibration.metrics.people import of_people
from judge_calibration.metrics.run_comparison import RunComparison
from judge_calibration.metrics.slices import slice_pairs
from judge_calibration.options.reporting import AuditOptions
from judge_calibration.schemas import DECISIVE

REASONS = {
    "gate_conflict": "the judge and people point to different products, and the gate is in conflict over it",
    "gained": "wrong before, right now",
    "lost": "right before, wrong now",
    "changed": "another verdict than before",
    "disagrees_with_people": "another verdict than the people's",
    "contradiction": "the two orders name opposite answers",
    "unsupported_citation": "prefers the answer whose citation supports nothing",
    "failed_outcome": "no verdict",
    "abstention": "abstains",
    "low_confidence": "unsure",
}
"""Reason codes, and what they say."""

AUDIT_COLUMNS = (
    "priority",
    "queued",
    "pair_id",
    "base_id",
    "source",
    *CELL_COLUMNS,
    "reasons",
    "stratum",
    "n_judgments",
)
"""``priority``: 1 is looked at first. ``queued``: within the size of the queue. ``reasons``: JSON list of
codes, the rarest first. ``stratum``: the rarest reason and the slice. ``n_judgments``: that have a reason."""


def audit_queue(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame | None = None,
    options: AuditOptions | None = None,
    changes: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return every cell and pair that has a reason to be looked at, the most pressing first.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    labels : pandas.DataFrame, optional
        Table ``labels``; only overall preferences of people count. A pair's people say A or B if an
        adjudicator does, or else all decisive labels.
    options : AuditOptions, optional
    changes : pandas.DataFrame, optional
        Columns pair_id, reason and those of a cell: further reasons, such as a verdict that changed.

    Returns
    -------
    pandas.DataFrame
        Columns AUDIT_COLUMNS; empty if nothing has a reason.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["1"], "base_id": ["t"], "source": ["s"], "domain": ["math"]})
    >>> verdicts = pd.DataFrame({"pair_id": "1", "judge_id": "j", "instrument_id": "i", "protocol": "direct",
    ...     "constraint": "none", "temperature": 0.0, "repetition": 0, "order": ["AB", "BA"],
    ...     "outcome": "valid", "verdict": ["A", "B"]})
    >>> audit_queue(verdicts, pairs)[["pair_id", "reasons", "stratum"]].values.tolist()
    [['1', '["contradiction"]', 'contradiction: math']]
    """
    chosen = options or AuditOptions()
    found = [_reasons_of(verdicts, pairs, labels, chosen)]
    if changes is not None and len(changes):
        # Each is a judgment of its own, beside those of `verdicts`.
        found.append(
            changes[["pair_id", *CELL_COLUMNS, "reason"]].assign(judgment=-1 - np.arange(len(changes)))
        )
    flagged = pd.concat(found, ignore_index=True)
    if flagged.empty:
        return _typed(pd.DataFrame(columns=list(AUDIT_COLUMNS)))
    keys = ["pair_id", *CELL_COLUMNS]
    counts = Counter(flagged.drop_duplicates([*keys, "reason"])["reason"])
    rank = {name: number for number, name in enumerate(REASONS)}
    rows = []
    for key, own in flagged.groupby(keys, dropna=False, sort=False):
        reasons = sorted(set(own["reason"]), key=lambda name: (counts[name], rank[name]))
        counted = {"reasons": reasons, "n_judgments": own["judgment"].nunique()}
        rows.append(dict(zip(keys, key, strict=True)) | counted)
    frame = pd.DataFrame(rows)
    about = pairs.drop_duplicates("pair_id").set_index("pair_id")[["base_id", "source"]]
    frame = frame.join(about, on="pair_id")
    frame["stratum"] = _strata(frame, pairs, chosen.stratify_by)
    order = _in_rounds(frame, chosen.seed)
    frame = frame.iloc[order].reset_index(drop=True)
    frame["priority"] = range(1, len(frame) + 1)
    frame["queued"] = frame["priority"] <= chosen.size
    frame["reasons"] = [json.dumps(reasons) for reasons in frame["reasons"]]
    return _typed(frame)


def _reasons_of(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, labels: pd.DataFrame | None, options: AuditOptions
) -> pd.DataFrame:
    """Return one row a judgment and reason: pair_id, the cell, reason, the judgment's number."""
    verdicts = verdicts.reset_index(drop=True)
    valid = verdicts["outcome"] == "valid"
    decisive = valid & verdicts["verdict"].isin(DECISIVE)
    parts = [
        _named(verdicts[~valid], "failed_outcome"),
        _named(verdicts[valid & (verdicts["verdict"] == "ABSTAIN")], "abstention"),
        _named(verdicts[valid & _unsure(verdicts, options.low_confidence)], "low_confidence"),
    ]
    sides = verdicts[decisive]
    units = ["pair_id", *CELL_COLUMNS, "repetition"]
    both = sides.groupby(units, dropna=False, sort=False)
    opposite = (both["verdict"].transform("nunique") > 1) & (both["order"].transform("nunique") > 1)
    parts.append(_named(sides[opposite], "contradiction"))
    about = pairs.drop_duplicates("pair_id").set_index("pair_id")
    if "manipulation" in about.columns:
        kind = sides["pair_id"].map(about["manipulation"])
        modified = sides["pair_id"].map(about["modified"])
        taken = (kind == "citation") & (sides["verdict"] == modified)
        parts.append(_named(sides[taken.fillna(False).astype(bool)], "unsupported_citation"))
    people = people_say(labels)
    said = sides["pair_id"].map(people)
    parts.append(_named(sides[said.notna() & (said != sides["verdict"])], "disagrees_with_people"))
    return pd.concat(parts, ignore_index=True)


def _named(rows: pd.DataFrame, reason: str) -> pd.DataFrame:
    return rows[["pair_id", *CELL_COLUMNS]].assign(reason=reason, judgment=rows.index)


def _unsure(verdicts: pd.DataFrame, below: float) -> pd.Series:
    unsure = pd.Series(False, index=verdicts.index)
    for column in ("confidence", "logprob_confidence"):
        if column in verdicts.columns:
            unsure |= (verdicts[column].astype("float64") < below).fillna(False)
    return unsure


def queue_changes(
    comparison: RunComparison, pairs: pd.DataFrame, options: AuditOptions | None = None
) -> pd.DataFrame:
    """Return the queue of the verdicts that changed between two runs, gains and losses in turns.

    Parameters
    ----------
    comparison : RunComparison
    pairs : pandas.DataFrame
    options : AuditOptions, optional

    Returns
    -------
    pandas.DataFrame
        Columns AUDIT_COLUMNS, under the names of the later run's cells; verdicts that were failures before
        and are not now have no reason.
    """
    changed = comparison.changed
    parts = [changed.head(0).assign(instrument_id=None)]
    for (before, after), about in zip(comparison.cells, comparison.summary.to_dict("records"), strict=True):
        own = rows_of_cell(changed, before)
        parts.append(own.assign(**after, instrument_id=about["instrument_after"]))
    rows = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    rows = rows[rows["change"] != "recovered"]
    reasons = rows["change"].replace({"failed": "failed_outcome"})
    nothing = pd.DataFrame({name: [] for name in (*_NEEDED, *CELL_COLUMNS)}, dtype="str")
    return audit_queue(nothing, pairs, None, options, rows.assign(reason=reasons))


_NEEDED = ("pair_id", "order", "repetition", "outcome", "verdict")


def people_say(labels: pd.DataFrame | None) -> dict[str, str]:
    """Return what people say of each pair, where they say A or B with one voice or by an adjudicator."""
    if labels is None or labels.empty:
        return {}
    overall = of_people(labels)
    if "attribute" in overall.columns:
        overall = overall[overall["attribute"].isna()]
    decisive = overall[overall["label"].isin(DECISIVE)]
    said: dict[str, str] = {}
    for pair_id, own in decisive.groupby("pair_id", sort=False):
        settled = own[own["stage"] == "adjudication"] if "stage" in own.columns else own.head(0)
        voices = set((settled if len(settled) else own)["label"])
        if len(voices) == 1:
            said[str(pair_id)] = str(voices.pop())
    return said


def _strata(frame: pd.DataFrame, pairs: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    known = pairs.drop_duplicates("pair_id").reset_index(drop=True)
    parts: list[pd.Series] = []
    for column in columns:
        sliced = slice_pairs(known, column)
        if sliced is None:
            continue
        names = pd.Series([sliced.names[code] if code >= 0 else "none" for code in sliced.codes])
        parts.append(frame["pair_id"].map(dict(zip(known["pair_id"], names, strict=True))).fillna("none"))
    slices = [" / ".join(values) for values in zip(*parts, strict=True)] if parts else ["all"] * len(frame)
    return [f"{reasons[0]}: {name}" for reasons, name in zip(frame["reasons"], slices, strict=True)]


def _in_rounds(frame: pd.DataFrame, seed: int) -> list[int]:
    """Return the rows' order: round after round, one row of each stratum, more reasons first within it.

    Within a round judges take turns too: ties are broken by a hash of the seed, the cell and the pair.
    """
    within: dict[str, list[tuple[int, str, int]]] = {}
    for position, row in enumerate(frame.to_dict("records")):
        text = json.dumps([seed, *(str(row[name]) for name in ("pair_id", *CELL_COLUMNS))])
        digest = hashlib.sha256(text.encode()).hexdigest()
        within.setdefault(row["stratum"], []).append((-len(row["reasons"]), digest, position))
    placed = []
    for stratum, members in within.items():
        for round_, (_, _, position) in enumerate(sorted(members)):
            placed.append((round_, len(members), stratum, position))
    return [position for *_, position in sorted(placed)]


_KINDS: dict[str, Any] = {
    "priority": "Int64",
    "queued": "bool",
    "n_judgments": "Int64",
    "temperature": "float64",
}


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = {name: _KINDS.get(name, "str") for name in AUDIT_COLUMNS}
    return frame.reindex(columns=list(AUDIT_COLUMNS)).astype(kinds)
