"""What reweighting finds of the weights that were planted in a SIMULATED panel.

Judges see the latent directions imperfectly, so the best that can be done with their reads is less than with
the directions themselves. The planted weights, applied to the same reads of the same held-out pairs, are that
best: nothing is left to be estimated in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.profiles.storage import unpack_stable

RECOVERY_COLUMNS = (
    *("judge_id", "source", "planted", "n_train", "n_test", "spearman", "accuracy_base", "accuracy"),
    *("accuracy_planted", "below_planted", "delta", "delta_low", "delta_high", "undefined", "simulated"),
)
COIN = "coin"
WEIGHTS = "weights"
_FULL = "full"


def weight_recovery(
    simulated_panel: pd.DataFrame,
    planted: pd.DataFrame,
    coefficients: pd.DataFrame,
    gains: pd.DataFrame,
) -> pd.DataFrame:
    """Compare each judge's reweighting with all labels of a source with what was planted there.

    Parameters
    ----------
    simulated_panel : pandas.DataFrame
        judge_id, pair_id, source, split, reference_label (A or B) and packed reads in columns
        ``attribute_*``.
    planted : pandas.DataFrame
        source, attribute, weight (log-odds a unit of direction); all of a source 0: its references are
        drawn by a coin, and nothing can be gained there.
    coefficients, gains : pandas.DataFrame
        As reweighting and :func:`judge_calibration.adapt.gains.measure_gains` give them.

    Returns
    -------
    pandas.DataFrame
        RECOVERY_COLUMNS, a row a judge and source: planted (``weights`` or ``coin``); spearman of fitted and
        planted weights in [-1, 1]; accuracies in [0, 1] on held-out pairs, accuracy_planted that of the
        planted weights on the judge's reads (one half where the reference is a coin); below_planted =
        100 (accuracy_planted - accuracy), points; the gain with its interval. undefined: why there is no
        spearman.
    """
    names = [name for name in simulated_panel.columns if name.startswith("attribute_")]
    weights = {
        str(source): part.set_index("attribute")["weight"].reindex(names).to_numpy(float)
        for source, part in planted.groupby("source", sort=True)
    }
    full = coefficients[(coefficients["budget"] == _FULL)]
    fitted = {
        key: part.set_index("attribute").reindex(names)
        for key, part in full.groupby(["judge_id", "source"], sort=False)
    }
    measured = {
        (row["judge_id"], row["source"]): row for row in gains[gains["budget"] == _FULL].to_dict("records")
    }
    rows = []
    held_out = simulated_panel[simulated_panel["split"] == "test"]
    for (judge, source), part in held_out.groupby(["judge_id", "source"], sort=True):
        if (judge, source) not in fitted or (judge, source) not in measured:
            continue
        rows.append(
            {"judge_id": judge, "source": source, "simulated": True}
            | _one(part, names, weights[str(source)], fitted[judge, source], measured[judge, source])
        )
    frame = pd.DataFrame(rows, columns=list(RECOVERY_COLUMNS))
    return frame.astype({"undefined": "str", "n_train": "Int64", "n_test": "Int64"})


def _one(
    held_out: pd.DataFrame,
    names: list[str],
    weights: np.ndarray,
    fitted: pd.DataFrame,
    gain: Mapping[Any, Any],
) -> dict[str, Any]:
    coin = not weights.any()
    found = fitted["coefficient"].to_numpy(float)
    undefined = fitted["undefined"].iloc[0]
    reason = "references_by_a_coin" if coin else undefined
    row: dict[str, Any] = {
        "planted": COIN if coin else WEIGHTS,
        "n_train": int(fitted["n_train"].iloc[0]),
        "n_test": len(held_out),
        "spearman": spearman(found, weights) if pd.isna(reason) else np.nan,
        "undefined": None if pd.isna(reason) else reason,
    }
    for name in ("accuracy_base", "accuracy", "delta", "delta_low", "delta_high"):
        row[name] = gain[name]
    best = 0.5
    if not coin:
        stable = unpack_stable(held_out[names].to_numpy(dtype=np.int8))
        reference = held_out["reference_label"].map({"A": 1, "B": -1}).to_numpy()
        best = float(np.mean(np.sign(stable @ weights) == reference))
    row["accuracy_planted"] = best
    row["below_planted"] = 100 * (best - float(gain["accuracy"]))
    return row


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Return the correlation of ranks, in [-1, 1]; NaN where one of them does not vary.

    Examples
    --------
    >>> round(spearman(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 15.0])), 2)
    0.5
    """
    one, two = pd.Series(first).rank(), pd.Series(second).rank()
    return float("nan") if one.nunique() < 2 or two.nunique() < 2 else float(one.corr(two))
