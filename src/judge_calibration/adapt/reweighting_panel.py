"""Reweighting of a whole panel: every judge, source, budget and resample, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.adapt.reweighting import (
    Reweighting,
    decide,
    fit_reweighting,
    predict_probability,
    standard_errors,
)

FULL = "full"
Z95 = 1.959963984540054

CURVE_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "resample",
    "n_train",
    "fewer_than_budget",
    "n_test",
    "accuracy_base",
    "accuracy",
    "delta",
    "undefined",
)
COEFFICIENT_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "attribute",
    "coefficient",
    "low",
    "high",
    "stable_share",
    "n_train",
    "undefined",
)
PREDICTION_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "pair_id",
    "base_id",
    "reference",
    "probability",
    "predicted",
    "base_right",
)


@dataclass(frozen=True)
class LabelledReads:
    """A panel's stable directions beside the reference, the split and the shared training subsets.

    Attributes
    ----------
    judges, items, attributes : tuple of str
    stable : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Stable directions in {-1, 0, +1}.
    base_right : numpy.ndarray of float, shape (n_judges, n_items)
        Share of the unadapted judge's verdicts on the item that are right, in [0, 1]; no verdict is wrong.
        NaN where the judge was not asked.
    reference : numpy.ndarray of int8, shape (n_items,)
        +1, -1; 0 for ties and unlabelled pairs, which are in neither labelled split.
    source, clusters : numpy.ndarray of str, shape (n_items,)
    rank : numpy.ndarray of int, shape (n_resamples, n_items)
        Rank of each training pair in its source's subset order; -1 outside the training side.
    test : numpy.ndarray of bool, shape (n_items,)
    """

    judges: tuple[str, ...]
    items: tuple[str, ...]
    attributes: tuple[str, ...]
    stable: np.ndarray
    base_right: np.ndarray
    reference: np.ndarray
    source: np.ndarray
    clusters: np.ndarray
    rank: np.ndarray
    test: np.ndarray

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources, sorted."""
        return tuple(sorted(set(map(str, self.source))))


class Fitted(NamedTuple):
    """One fit: its place in the design, its rows and the model."""

    judge: int
    source: str
    budget: str
    resample: int
    train: np.ndarray
    test: np.ndarray
    fewer: bool
    model: Reweighting


class PanelReweighting(NamedTuple):
    """All fits of a panel as tables.

    Attributes
    ----------
    curves : pandas.DataFrame
        CURVE_COLUMNS, a row a fit: budget (text, "32" to "full"), n_train (pairs with reads that were used;
        `fewer_than_budget` says where the source has fewer), accuracies in [0, 1], delta in points, undefined
        (a reason; the accuracy is NaN then).
    coefficients : pandas.DataFrame
        COEFFICIENT_COLUMNS, of the frozen subsets (resample 0): coefficient, low and high in log-odds for A a
        unit of direction (approximate 95 % interval, biased towards 0 as the estimates are), stable_share of
        the training pairs in which the attribute has a stable direction.
    predictions : pandas.DataFrame
        PREDICTION_COLUMNS, of the frozen subsets on the test pairs: reference and predicted in {-1, 0, +1};
        base_right as in the panel; probability that the reference is A.
    """

    curves: pd.DataFrame
    coefficients: pd.DataFrame
    predictions: pd.DataFrame


def each_fit(
    panel: LabelledReads, budgets: Sequence[int], c: float = 1.0, intercept: bool = False
) -> Iterator[Fitted]:
    """Fit every judge, source, resample and budget; "full" with resample 0 only, as it has no resamples.

    A budget takes the pairs whose rank in the shared subset order is below it: where a pair of the subset has
    no reads, the fit has fewer pairs than the budget. Each fit starts where the smaller budget ended.
    """
    for source in panel.sources:
        here = (panel.source == source) & (panel.reference != 0)
        test = np.flatnonzero(here & panel.test)
        for resample in range(len(panel.rank)):
            rank = panel.rank[resample]
            ordered = np.flatnonzero(here & (rank >= 0))
            ordered = ordered[np.argsort(rank[ordered], kind="stable")]
            for judge in range(len(panel.judges)):
                start = None
                for budget in (*budgets, None):
                    if budget is None and resample:
                        continue
                    train = ordered if budget is None else ordered[rank[ordered] < budget]
                    model = fit_reweighting(
                        panel.stable[judge, train],
                        panel.reference[train],
                        c,
                        start,
                        with_covariance=resample == 0,
                        intercept=intercept,
                    )
                    start = None if model.fit is None else model.fit.coefficients
                    fewer = budget is not None and len(train) < budget
                    name = FULL if budget is None else str(budget)
                    yield Fitted(judge, source, name, resample, train, test, fewer, model)


def reweight_panel(
    panel: LabelledReads, budgets: Sequence[int], c: float = 1.0, intercept: bool = False
) -> PanelReweighting:
    """Fit a whole panel and score it on the test pairs.

    Parameters
    ----------
    panel : LabelledReads
    budgets : sequence of int
        Labels a source; "full" is always added.
    c : float
        Inverse penalty of the logistic regression.
    intercept : bool
        See :func:`judge_calibration.adapt.reweighting.fit_reweighting`.
    """
    from threadpoolctl import threadpool_limits

    items = np.array(panel.items, dtype=object)
    curves: list[dict[str, Any]] = []
    coefficients: list[pd.DataFrame] = []
    predictions: list[pd.DataFrame] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for one in each_fit(panel, budgets, c, intercept):
            keys = {
                "judge_id": panel.judges[one.judge],
                "source": one.source,
                "budget": one.budget,
            }
            reference, base = panel.reference[one.test], panel.base_right[one.judge, one.test]
            stable = panel.stable[one.judge, one.test]
            probability = predict_probability(one.model, stable)
            predicted = decide(probability)
            known = one.model.undefined is None and len(one.test) > 0
            before = _share(base)
            after = _share(predicted == reference) if known else float("nan")
            curves.append(
                keys
                | {
                    "resample": one.resample,
                    "n_train": one.model.n_train,
                    "fewer_than_budget": one.fewer,
                    "n_test": len(one.test),
                    "accuracy_base": before,
                    "accuracy": after,
                    "delta": 100 * (after - before),
                    "undefined": one.model.undefined or (None if len(one.test) else "no_test_pair"),
                }
            )
            if one.resample:
                continue
            coefficients.append(_coefficients(panel, one, c).assign(**keys))
            if known:
                frame = pd.DataFrame(
                    {
                        "pair_id": items[one.test],
                        "base_id": panel.clusters[one.test],
                        "reference": reference,
                        "probability": probability,
                        "predicted": predicted,
                        "base_right": base,
                    }
                )
                predictions.append(frame.assign(**keys))
    return PanelReweighting(
        pd.DataFrame(curves, columns=list(CURVE_COLUMNS)).astype({"undefined": "str"}),
        _joined(coefficients, COEFFICIENT_COLUMNS).astype({"undefined": "str"}),
        _joined(predictions, PREDICTION_COLUMNS),
    )


def _share(right: np.ndarray) -> float:
    return float(np.mean(right)) if len(right) else float("nan")


def _coefficients(panel: LabelledReads, one: Fitted, c: float) -> pd.DataFrame:
    stable = panel.stable[one.judge, one.train].astype(float)
    count = len(panel.attributes)
    value = np.full(count, np.nan) if one.model.fit is None else one.model.fit.coefficients
    error = standard_errors(one.model, stable, panel.reference[one.train], panel.clusters[one.train], c)
    return pd.DataFrame(
        {
            "attribute": list(panel.attributes),
            "coefficient": value,
            "low": value - Z95 * error,
            "high": value + Z95 * error,
            "stable_share": (stable != 0).mean(axis=0) if len(stable) else np.full(count, np.nan),
            "n_train": one.model.n_train,
            "undefined": one.model.undefined,
        }
    )


def prediction_hits(predictions: pd.DataFrame, method: str = "reweighting") -> pd.DataFrame:
    """Return predictions as rows of the table of hits (:mod:`judge_calibration.adapt.gains`)."""
    right = predictions["predicted"] == predictions["reference"]
    return predictions[["judge_id", "source", "budget", "pair_id", "base_id", "base_right"]].assign(
        method=method,
        protocol=None,
        right=right.astype(float),
        no_verdict=(predictions["predicted"] == 0).astype(float),
        base_no_verdict=np.nan,
    )


def _joined(frames: list[pd.DataFrame], columns: tuple[str, ...]) -> pd.DataFrame:
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype="object") for name in columns})
    return pd.concat(frames, ignore_index=True)[list(columns)]
