"""The frozen 75/25 split: every cluster of a source falls on one side, by a hash of its own name only.

Definitions, section 7. Because a cluster's side depends on nothing but its source and name, adding or
reordering rows moves no old row. It is made before reference ties are dropped.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from judge_calibration.errors import Problem, TableError

SALT = "judge-calibration split 1"
FEW_CLUSTERS = 20


def unit_hash(*parts: str) -> float:
    """Return a number in [0, 1) that depends on the parts alone: the same on every machine.

    Examples
    --------
    >>> 0.0 <= unit_hash("a", "b") < 1.0 and unit_hash("a", "b") != unit_hash("ab", "")
    True
    """
    digest = hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def assign_split(pairs: pd.DataFrame, train_share: float = 0.75) -> pd.Series:
    """Return ``train`` or ``test`` for every pair.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With source and base_id (the cluster: base task or question text).
    train_share : float in (0, 1)
        The wanted share of clusters; the realised one varies and is printed by :func:`split_report`.

    Examples
    --------
    >>> pairs = pd.DataFrame({"source": ["s", "s", "s"], "base_id": ["1", "1", "2"]})
    >>> assign_split(pairs).nunique() <= 2 and assign_split(pairs)[0] == assign_split(pairs)[1]
    True
    """
    clusters = pairs[["source", "base_id"]].drop_duplicates()
    side = {
        (source, base): "train" if unit_hash(SALT, source, base) < train_share else "test"
        for source, base in clusters.itertuples(index=False)
    }
    keys = zip(pairs["source"], pairs["base_id"], strict=True)
    return pd.Series([side[key] for key in keys], index=pairs.index, name="split", dtype="str")


def apply_frozen_split(pairs: pd.DataFrame, frozen: pd.DataFrame) -> pd.Series:
    """Return the split with an existing file's sides kept and new clusters assigned by hash.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With source, base_id.
    frozen : pandas.DataFrame
        With source, base_id, split: what an earlier split file says. It wins.

    Raises
    ------
    TableError
        If the file puts one cluster on both sides or names another side than train or test.
    """
    problems = []
    for number, value in enumerate(frozen["split"], start=1):
        if value not in ("train", "test"):
            problems.append(
                Problem(f"frozen split, row {number}, column split", repr(value), "train or test")
            )
    sides = frozen.groupby(["source", "base_id"])["split"].nunique()
    for key in sides[sides > 1].index:
        problems.append(Problem(f"frozen split, cluster {key}", "train and test", "one side"))
    if problems:
        raise TableError("The frozen split file cannot be used.", problems, "correct the file or remove it")
    known = {
        (source, base): side
        for source, base, side in frozen[["source", "base_id", "split"]].itertuples(index=False)
    }
    hashed = assign_split(pairs)
    keys = zip(pairs["source"], pairs["base_id"], hashed, strict=True)
    return pd.Series(
        [known.get((s, b), side) for s, b, side in keys], index=pairs.index, name="split", dtype="str"
    )


def split_report(pairs: pd.DataFrame) -> pd.DataFrame:
    """Say what the split came to in each source.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With source, base_id, split, reference_label.

    Returns
    -------
    pandas.DataFrame
        source, clusters, train_share (realised, of clusters), train_pairs, test_pairs (decisive references
        only), ties (in neither), unlabelled, few_clusters (fewer than 20).
    """
    rows = []
    for source, part in pairs.groupby("source", sort=True):
        clusters = part.drop_duplicates("base_id")
        decisive = part["reference_label"].isin(("A", "B"))
        rows.append(
            {
                "source": source,
                "clusters": len(clusters),
                "train_share": float(np.mean(clusters["split"] == "train")),
                "train_pairs": int((decisive & (part["split"] == "train")).sum()),
                "test_pairs": int((decisive & (part["split"] == "test")).sum()),
                "ties": int((part["reference_label"] == "TIE").sum()),
                "unlabelled": int(part["reference_label"].isna().sum()),
                "few_clusters": len(clusters) < FEW_CLUSTERS,
            }
        )
    columns = [
        "source",
        "clusters",
        "train_share",
        "train_pairs",
        "test_pairs",
        "ties",
        "unlabelled",
        "few_clusters",
    ]
    return pd.DataFrame(rows, columns=columns)
