"""Whether a reweighting's probability means what it says: Brier score and reliability curve on test pairs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from judge_calibration.metrics.bootstrap import cluster_bootstrap
from judge_calibration.metrics.confidence import (
    brier_score,
    calibration_error,
    expected_calibration_error_if_calibrated,
)
from judge_calibration.metrics.rates import ratio

CALIBRATION_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "n_test",
    "n_clusters",
    "brier",
    "brier_low",
    "brier_high",
    "brier_of_one_half",
    "calibration_error",
    "expected_if_calibrated",
    "mean_probability",
    "share_a",
    "undefined",
)
CURVE_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "bin",
    "low_edge",
    "high_edge",
    "n_pairs",
    "mean_probability",
    "share_a",
)
_KEYS = ["judge_id", "source", "budget"]


def probability_calibration(
    predictions: pd.DataFrame, bins: int = 10, resamples: int = 10_000, seed: int = 7
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the probability that the reference is A with how often it is.

    Parameters
    ----------
    predictions : pandas.DataFrame
        judge_id, source, budget, base_id, reference in {-1, +1}, probability in (0, 1).
    bins : int
        Of equal width, from 0 to 1.
    resamples, seed : int
        Of the Brier score's interval over base tasks.

    Returns
    -------
    summary : pandas.DataFrame
        CALIBRATION_COLUMNS. brier: mean squared difference, 0 (best) to 1; brier_of_one_half is .25, what a
        constant one half has. calibration_error is biased upwards: expected_if_calibrated is what a perfectly
        calibrated model with the same probabilities would show.
    curve : pandas.DataFrame
        CURVE_COLUMNS: the reliability curve; an empty bin has no mean and no share.

    Examples
    --------
    Squared differences .04, .04, .01: mean .03.

    >>> frame = pd.DataFrame({"judge_id": "j", "source": "s", "budget": "full", "base_id": list("abc"),
    ...     "reference": [1, -1, 1], "probability": [0.8, 0.2, 0.9]})
    >>> summary, curve = probability_calibration(frame)
    >>> float(summary["brier"].round(3).iloc[0]), summary["undefined"].iloc[0], int(curve["n_pairs"].sum())
    (0.03, 'fewer_than_10_clusters', 3)
    """
    rows: list[dict[str, Any]] = []
    curves: list[pd.DataFrame] = []
    for key, part in predictions.groupby(_KEYS, sort=False):
        names = dict(zip(_KEYS, cast("tuple[Any, ...]", key), strict=True))
        p = part["probability"].to_numpy(float)
        y = (part["reference"].to_numpy(float) + 1) / 2
        bin_of = np.minimum((p * bins).astype(np.int64), bins - 1)
        count = np.bincount(bin_of, minlength=bins)
        said = np.bincount(bin_of, weights=p, minlength=bins)
        was = np.bincount(bin_of, weights=y, minlength=bins)
        clusters = part["base_id"].nunique()
        low = high = np.nan
        if clusters >= 10:
            interval = cluster_bootstrap((p - y) ** 2, np.ones(len(p)), part["base_id"], resamples, seed)
            low, high = interval.low, interval.high
        rows.append(
            names
            | {
                "n_test": len(p),
                "n_clusters": clusters,
                "brier": brier_score(p, y),
                "brier_low": low,
                "brier_high": high,
                "brier_of_one_half": 0.25,
                "calibration_error": float(calibration_error(count, said, was)),
                "expected_if_calibrated": expected_calibration_error_if_calibrated(p, bin_of, bins),
                "mean_probability": float(p.mean()),
                "share_a": float(y.mean()),
                "undefined": None if clusters >= 10 else "fewer_than_10_clusters",
            }
        )
        curves.append(
            pd.DataFrame(
                names
                | {
                    "bin": np.arange(bins),
                    "low_edge": np.arange(bins) / bins,
                    "high_edge": np.arange(1, bins + 1) / bins,
                    "n_pairs": count,
                    "mean_probability": ratio(said, count),
                    "share_a": ratio(was, count),
                }
            )
        )
    summary = pd.DataFrame(rows, columns=list(CALIBRATION_COLUMNS)).astype({"undefined": "str"})
    if not curves:
        return summary, pd.DataFrame(columns=list(CURVE_COLUMNS))
    return summary, pd.concat(curves, ignore_index=True)[list(CURVE_COLUMNS)]
