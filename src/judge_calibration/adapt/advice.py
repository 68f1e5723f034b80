"""Advice: which adaptation, if any, a source with so many labels should use, from the measured gains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.adapt.gains import Gains, cell_key

ADVICE_COLUMNS = (
    "judge_id",
    "protocol",
    "source",
    "n_labels",
    "advice",
    "method",
    "budget",
    "expected_gain",
    "low",
    "high",
    "earned_low",
    "n_candidates",
    "reason",
    "simulated",
)
NONE_EARNED = "no method earned"
FULL = "full"


def advise(gains: Gains, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the advice for every judge, source and number of labels.

    Parameters
    ----------
    gains : Gains
        What was measured on held-out pairs.
    labels : pandas.DataFrame
        source, train_pairs: labelled training pairs of each source. Their number is what "full" stands for.

    Returns
    -------
    pandas.DataFrame
        ADVICE_COLUMNS. n_labels: a budget, or the number of labels of "full". advice: ``use`` or
        ``no method earned``; method and budget: the one with the largest gain among those that earned it, or
        the best of those tried. expected_gain, low, high: its Delta in points with its 95 % interval.
        earned_low: the lower end of its interval at the level that holds for all n_candidates together
        (Bonferroni); a method is earned where it lies above 0. One that was not measured is no candidate, and
        a budget that takes all labels counts once, as "full". reason: why a best candidate has no interval.
    """
    full = dict(zip(labels["source"], labels["train_pairs"], strict=True))
    rows: list[dict[str, Any]] = []
    keys = ["judge_id", "protocol", "source", "simulated"]
    for key, part in gains.table.groupby(keys, dropna=False, sort=True):
        own: dict[Any, Any] = dict(zip(keys, key, strict=True))
        size = full.get(str(own["source"]))
        known = part[part["delta"].notna()]
        at = known["budget"].map(lambda text, size=size: _labels(str(text), size))
        for n_labels in sorted({int(value) for value in at.dropna()}):
            whole = known["budget"].ne(FULL) & at.eq(float("nan") if size is None else size)
            whole &= known["method"].isin(known.loc[known["budget"] == FULL, "method"])
            reachable = known[(at <= n_labels) & ~whole]
            rows.append(own | {"n_labels": n_labels} | _choose(reachable, gains))
    frame = pd.DataFrame(rows, columns=list(ADVICE_COLUMNS))
    return frame.astype({"n_labels": "Int64", "protocol": "str", "reason": "str"})


def _labels(budget: str, full: int | None) -> float:
    if budget == FULL:
        return float("nan") if full is None else float(full)
    return float(budget) if full is None else float(min(int(budget), full))


def _choose(candidates: pd.DataFrame, gains: Gains) -> dict[str, Any]:
    m = len(candidates)
    best: dict[str, Any] | None = None
    for row in candidates.to_dict("records"):
        low = np.nan
        if not np.isnan(row["delta_low"]):
            low = float(np.nanquantile(gains.draws[cell_key(row)].astype(float), 0.025 / m))
        found = {
            "advice": "use" if low > 0 else NONE_EARNED,
            "method": row["method"],
            "budget": row["budget"],
            "expected_gain": row["delta"],
            "low": row["delta_low"],
            "high": row["delta_high"],
            "earned_low": low,
            "n_candidates": m,
            "reason": row["undefined"],
        }
        if best is None or (found["advice"] == "use", found["expected_gain"]) > (
            best["advice"] == "use",
            best["expected_gain"],
        ):
            best = found
    return best or {}
