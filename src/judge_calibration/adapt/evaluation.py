"""Accuracy before and after adaptation on the common test set, and the curves over budgets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.adapt.reweighting import fit_reweighting, predict
from judge_calibration.metrics.bootstrap import cluster_bootstrap


def accuracy(predicted: np.ndarray, reference: np.ndarray) -> float:
    """Share of pairs in [0, 1] whose verdict equals the reference; no verdict (0) is wrong and stays in.

    NaN where there is no pair.

    Examples
    --------
    >>> accuracy(np.array([1, 0, -1, 1]), np.array([1, 1, -1, -1]))
    0.5
    """
    return float(np.mean(predicted == reference)) if len(reference) else float("nan")


FEWEST_CLUSTERS = 10


class PairedGain(NamedTuple):
    """Gain in percentage points with its paired interval by cluster; `reason` says why there is none."""

    delta: float
    low: float
    high: float
    reason: str | None


def paired_gain(
    adapted: np.ndarray,
    base: np.ndarray,
    reference: np.ndarray,
    clusters: np.ndarray,
    resamples: int = 10_000,
    seed: int = 7,
) -> PairedGain:
    """Compare two sets of verdicts on the same pairs.

    Parameters
    ----------
    adapted, base, reference : numpy.ndarray of int, shape (n,)
        +1 for A, -1 for B; 0 for no verdict, which is wrong.
    clusters : numpy.ndarray, shape (n,)
        Base task or question of each pair; whole clusters are resampled.

    Returns
    -------
    PairedGain
        Delta = 100 (accuracy of adapted - accuracy of base), definitions section 7; NaN, reason
        ``no_test_pair``, without pairs; no interval, reason ``fewer_than_10_clusters``, below ten clusters.

    Examples
    --------
    >>> one = np.ones(4, dtype=int)
    >>> paired_gain(one, -one, one, np.array(list("abcd"))).delta
    100.0
    """
    if not len(reference):
        return PairedGain(float("nan"), float("nan"), float("nan"), "no_test_pair")
    change = (adapted == reference).astype(float) - (base == reference)
    if len(np.unique(clusters)) < FEWEST_CLUSTERS:
        return PairedGain(100 * float(change.mean()), float("nan"), float("nan"), "fewer_than_10_clusters")
    interval = cluster_bootstrap(change, np.ones(len(change)), clusters, resamples, seed)
    return PairedGain(100 * interval.value, 100 * interval.low, 100 * interval.high, None)


def reweighting_table(
    stable: np.ndarray,
    verdicts: np.ndarray,
    reference: np.ndarray,
    clusters: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    c: float = 1.0,
    resamples: int = 10_000,
    seed: int = 7,
) -> dict[str, float | int | str | None]:
    """Adapt one judge on one source's training rows and compare it with itself on the test rows.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n_items, n_attributes)
    verdicts, reference, clusters : numpy.ndarray, shape (n_items,)
    train, test : numpy.ndarray of int
        Row numbers.

    Returns
    -------
    dict
        n_train, n_test, accuracy_base, accuracy, delta, delta_low, delta_high, undefined: a row of the
        adaptation table.
    """
    model = fit_reweighting(stable[train], reference[train], c)
    base = accuracy(verdicts[test], reference[test])
    row: dict[str, float | int | str | None] = {
        "n_train": model.n_train,
        "n_test": len(test),
        "accuracy_base": base,
        "accuracy": float("nan"),
        "delta": float("nan"),
        "delta_low": float("nan"),
        "delta_high": float("nan"),
        "undefined": model.undefined,
    }
    if model.undefined is None:
        predicted = predict(model, stable[test])
        gain = paired_gain(predicted, verdicts[test], reference[test], clusters[test], resamples, seed)
        row |= {"accuracy": accuracy(predicted, reference[test]), "delta": gain.delta}
        row |= {"delta_low": gain.low, "delta_high": gain.high, "undefined": gain.reason}
    return row


def reweighting_curves(
    stable: np.ndarray,
    verdicts: np.ndarray,
    reference: np.ndarray,
    source: np.ndarray,
    rank: np.ndarray,
    test: np.ndarray,
    judges: tuple[str, ...],
    sources: tuple[str, ...],
    budgets: tuple[int, ...],
) -> pd.DataFrame:
    """Fit every judge x source x budget x resample and score each on the source's test pairs.

    Parameters
    ----------
    stable : numpy.ndarray, shape (n_judges, n_items, n_attributes)
    verdicts : numpy.ndarray, shape (n_judges, n_items)
        The unadapted judges' verdicts: +1, -1, or 0 for none.
    reference : numpy.ndarray, shape (n_items,)
        +1, -1; 0 for ties and unlabelled pairs, which are in neither labelled split.
    source : numpy.ndarray of int, shape (n_items,)
        Index into `sources`.
    rank : numpy.ndarray, shape (n_resamples, n_items)
        Rank of each training pair in its source's subset order; -1 outside the training side.
    test : numpy.ndarray of bool, shape (n_items,)
    budgets : tuple of int
        Labels a source; "full" is always added, with resample 0 only.

    Returns
    -------
    pandas.DataFrame
        judge_id, source, budget (text, "32" to "full"), resample, n_train, n_test, accuracy_base, accuracy
        (both in [0, 1]), delta (points), undefined (reason; the accuracy is NaN then).
    """
    rows = []
    for s, source_name in enumerate(sources):
        here = source == s
        test_rows = np.flatnonzero(here & test & (reference != 0))
        for j, judge in enumerate(judges):
            base = accuracy(verdicts[j, test_rows], reference[test_rows])
            for resample in range(len(rank)):
                ordered = np.flatnonzero(here & (rank[resample] >= 0) & (reference != 0))
                ordered = ordered[np.argsort(rank[resample, ordered], kind="stable")]
                for budget in (*budgets, None):
                    if budget is None and resample > 0:
                        continue
                    train_rows = ordered[:budget]
                    model = fit_reweighting(stable[j, train_rows], reference[train_rows])
                    reached = (
                        accuracy(predict(model, stable[j, test_rows]), reference[test_rows])
                        if model.undefined is None
                        else float("nan")
                    )
                    rows.append(
                        {
                            "judge_id": judge,
                            "source": source_name,
                            "budget": "full" if budget is None else str(budget),
                            "resample": resample,
                            "n_train": model.n_train,
                            "n_test": len(test_rows),
                            "accuracy_base": base,
                            "accuracy": reached,
                            "delta": 100 * (reached - base),
                            "undefined": model.undefined or (None if len(test_rows) else "no_test_pair"),
                        }
                    )
    return pd.DataFrame(rows)


def sample_efficiency(curves: pd.DataFrame) -> pd.DataFrame:
    """Mean over judges and sources at each budget, and the spread over resamples.

    Returns
    -------
    pandas.DataFrame
        budget, accuracy (mean over judges, sources and resamples), sd_over_resamples (standard deviation of
        the resample means; not an interval; NaN with one resample), n_fits, n_undefined.
    """
    rows = []
    for budget, part in curves.groupby("budget", sort=False):
        defined = part.dropna(subset="accuracy")
        means = defined.groupby("resample")["accuracy"].mean()
        rows.append(
            {
                "budget": budget,
                "accuracy": float(means.mean()) if len(means) else float("nan"),
                "accuracy_base": float(defined["accuracy_base"].mean()) if len(defined) else float("nan"),
                "sd_over_resamples": float(means.std(ddof=1)) if len(means) > 1 else float("nan"),
                "n_fits": len(part),
                "n_undefined": int(part["accuracy"].isna().sum()),
            }
        )
    return pd.DataFrame(rows)
