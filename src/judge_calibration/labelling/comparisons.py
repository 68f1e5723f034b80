"""Every two people who labelled the same pair, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration import schemas

COMPARISON_COLUMNS = [
    "pair_id",
    "pair",
    "cluster",
    "attribute",
    "kind",
    "annotator_1",
    "annotator_2",
    "label_1",
    "label_2",
    "code_1",
    "code_2",
]


def primary_labels(labels: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the independent labels with codes of their pair (``pair``) and base task (``cluster``).

    Adjudications are left out: an adjudicator is called where two differ, so they are not independent.
    """
    primary = labels[labels["stage"] == "primary"].reset_index(drop=True)
    clusters = pd.Series(pd.factorize(pairs["base_id"])[0], index=pairs["pair_id"])
    return primary.assign(
        cluster=primary["pair_id"].map(clusters), pair=pd.factorize(primary["pair_id"], sort=True)[0]
    )


def compare_people(primary: pd.DataFrame) -> pd.DataFrame:
    """Return one row for every two people and pair (and attribute), the names in alphabetical order.

    Parameters
    ----------
    primary : pandas.DataFrame
        Labels with their codes, one a person, pair and attribute.

    Returns
    -------
    pandas.DataFrame
        COMPARISON_COLUMNS. A person is never compared with himself or herself, nor a label of one kind
        (human) with one of another (ai, simulated).
    """
    wanted = ["pair_id", "pair", "cluster", "attribute", "kind", "annotator_id", "label"]
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
    code = label_codes(ordered["label"])
    out["code_1"], out["code_2"] = code[one], code[two]
    return out[COMPARISON_COLUMNS]


def label_counts(primary: pd.DataFrame) -> pd.DataFrame:
    """Return how many people gave each label: a row a pair code, columns A, B, TIE, ABSTAIN."""
    k = len(schemas.VERDICTS)
    pair = primary["pair"].to_numpy(dtype=np.int64)
    n = int(pair.max()) + 1 if len(pair) else 0
    table = np.bincount(pair * k + label_codes(primary["label"]), minlength=n * k).reshape(n, k)
    return pd.DataFrame(table, columns=list(schemas.VERDICTS))


def label_codes(labels: pd.Series) -> np.ndarray:
    """Return each label's place in the alphabet A, B, TIE, ABSTAIN."""
    return pd.Categorical(labels, categories=list(schemas.VERDICTS)).codes.astype(np.int64)


def confusion_of(comparisons: pd.DataFrame) -> np.ndarray:
    """Return the 4 x 4 table of label_1 (rows) against label_2."""
    k = len(schemas.VERDICTS)
    cells = comparisons["code_1"].to_numpy() * k + comparisons["code_2"].to_numpy()
    return np.bincount(cells, minlength=k * k).reshape(k, k)
