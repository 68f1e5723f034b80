"""The frozen, nested training subsets that every method shares: 32 in 64 in 128 in 256 in full."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from judge_calibration.adapt.split import unit_hash

BUDGETS = (32, 64, 128, 256)
SALT = "judge-calibration subset 1"


def training_subsets(
    pairs: pd.DataFrame, budgets: Sequence[int] = BUDGETS, resamples: int = 1
) -> pd.DataFrame:
    """Rank the labelled training pairs of every source; a budget takes the first so many.

    Ranks come from a hash of (resample, source, pair id), so subsets are nested within a resample and no
    pair's rank relative to another depends on which other pairs are there.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With pair_id, source, split, reference_label. Only decisive references on the side ``train`` enter.
    budgets : sequence of int
        Labelled pairs a source.
    resamples : int
        Independent rankings; number 0 is the frozen subset of the main comparison.

    Returns
    -------
    pandas.DataFrame
        resample, source, pair_id, rank (from 0), smallest_budget (the smallest budget that holds the pair;
        null: only in full), n_train (so that a reader sees where a source has fewer than the budget).

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": list("abc"), "source": "s", "split": "train",
    ...     "reference_label": ["A", "B", "TIE"]})
    >>> training_subsets(pairs, budgets=(1,))["smallest_budget"].notna().sum()
    np.int64(1)
    """
    usable = pairs[(pairs["split"] == "train") & pairs["reference_label"].isin(("A", "B"))]
    frames = []
    for resample in range(resamples):
        for source, part in usable.groupby("source", sort=True):
            keys = [(unit_hash(SALT, str(resample), str(source), pair), pair) for pair in part["pair_id"]]
            ordered = [pair for _, pair in sorted(keys)]
            rank = range(len(ordered))
            smallest = [next((b for b in sorted(budgets) if r < b), None) for r in rank]
            frames.append(
                pd.DataFrame(
                    {
                        "resample": resample,
                        "source": str(source),
                        "pair_id": ordered,
                        "rank": list(rank),
                        "smallest_budget": pd.array(smallest, dtype="Int64"),
                        "n_train": len(ordered),
                    }
                )
            )
    columns = ["resample", "source", "pair_id", "rank", "smallest_budget", "n_train"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)
