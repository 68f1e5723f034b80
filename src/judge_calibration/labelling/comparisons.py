"""Every two people who labelled the same pair, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration import schemas

COMPARISON_COLUMNS = [
    "pair_id",
    "base_id",
    "attribute",
    "kind",
    "annotator_1",
    "annotator_2",
    "label_1",
    "label_2",
]


def primary_labels(labels: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the independent labels with their base task; adjudications are not independent and left out."""
    primary = labels[labels["stage"] == "primary"]
    return primary.merge(pairs[["pair_id", "base_id"]], on="pair_id", how="left")


def compare_people(primary: pd.DataFrame) -> pd.DataFrame:
    """Return one row for every two people and pair (and attribute), the names in alphabetical order.

    Parameters
    ----------
    primary : pandas.DataFrame
        Labels with base_id, one a person, pair and attribute.

    Returns
    -------
    pandas.DataFrame
        COMPARISON_COLUMNS. A person is never compared with himself or herself, nor a label of one kind
        (human) with one of another (ai, simulated).
    """
    wanted = ["pair_id", "base_id", "attribute", "kind", "annotator_id", "label"]
    ordered = primary[wanted].sort_values("annotator_id", kind="stable").reset_index(drop=True)
    # Row numbers within a cell of pair, attribute and kind: each meets every later one.
    cell = ordered.groupby(["pair_id", "attribute", "kind"], dropna=False, sort=True).ngroup().to_numpy()
    by_cell = np.argsort(cell, kind="stable")
    sizes = np.bincount(cell) if len(cell) else np.array([], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if len(sizes) else sizes
    first: list[np.ndarray] = []
    second: list[np.ndarray] = []
    for size in np.unique(sizes):
        if size < 2:
            continue
        left, right = np.triu_indices(int(size), 1)
        begin = starts[sizes == size]
        first.append((begin[:, None] + left).ravel())
        second.append((begin[:, None] + right).ravel())
    one = by_cell[np.concatenate(first)] if first else np.array([], dtype=np.int64)
    two = by_cell[np.concatenate(second)] if second else np.array([], dtype=np.int64)
    left_rows, right_rows = ordered.iloc[one].reset_index(drop=True), ordered.iloc[two].reset_index(drop=True)
    out = left_rows.rename(columns={"annotator_id": "annotator_1", "label": "label_1"})
    out["annotator_2"], out["label_2"] = right_rows["annotator_id"], right_rows["label"]
    return out[COMPARISON_COLUMNS]


def label_counts(primary: pd.DataFrame) -> pd.DataFrame:
    """Return how many people gave each pair each label: index pair_id, columns A, B, TIE, ABSTAIN."""
    counts = pd.crosstab(primary["pair_id"], primary["label"])
    return counts.reindex(columns=list(schemas.VERDICTS), fill_value=0)


def confusion_of(comparisons: pd.DataFrame) -> np.ndarray:
    """Return the 4 x 4 table of label_1 (rows) against label_2."""
    k = len(schemas.VERDICTS)
    codes = {label: place for place, label in enumerate(schemas.VERDICTS)}
    one = comparisons["label_1"].map(codes).to_numpy(dtype=np.int64)
    two = comparisons["label_2"].map(codes).to_numpy(dtype=np.int64)
    return np.bincount(one * k + two, minlength=k * k).reshape(k, k)
