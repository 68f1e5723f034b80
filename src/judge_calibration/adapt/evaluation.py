"""Accuracy before and after adaptation on the common test set, and the curves over budgets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.adapt.reweighting import fit_reweighting, predict


def accuracy(predicted: np.ndarray, reference: np.ndarray) -> float:
    """Share of pairs in [0, 1] whose verdict equals the reference; no verdict (0) is wrong and stays in.

    NaN where there is no pair.

    Examples
    --------
    >>> accuracy(np.array([1, 0, -1, 1]), np.array([1, 1, -1, -1]))
    0.5
    """
    return float(np.mean(predicted == reference)) if len(reference) else float("nan")


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
