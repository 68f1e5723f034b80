"""Advice: which adaptation, if any, a source with so many labels should use, from the measured gains."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.stats import t

from judge_calibration.adapt.gains import Gains, cell_key
from judge_calibration.text import canonical_json

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
    "n_resamples",
    "sd_over_resamples",
    "reason",
    "simulated",
)
NONE_EARNED = "no method earned"
FULL = "full"
_TRAINED = ("method", "simulated", "judge_id", "source", "budget")


def advise(
    gains: Gains, labels: pd.DataFrame, curves: pd.DataFrame | None = None, seed: int = 7
) -> pd.DataFrame:
    """Return the advice for every judge, source and number of labels.

    A judge that learned from 32 labels learned from one choice of 32: another choice may give another judge.
    Where several rankings of the training pairs were tried, the expected gain is their mean, and its interval
    holds both what held-out pairs and what training pairs happened to be drawn.

    Parameters
    ----------
    gains : Gains
        What was measured on held-out pairs, with the frozen ranking of the training pairs.
    labels : pandas.DataFrame
        source, train_pairs: labelled training pairs of each source. Their number is what "full" stands for.
    curves : pandas.DataFrame, optional
        A row a trained judge: method, simulated, judge_id, source, budget, resample, accuracy_base, accuracy.
    seed : int
        Of the draws that stand for the choice of training pairs.

    Returns
    -------
    pandas.DataFrame
        ADVICE_COLUMNS. n_labels: a budget, or the number of labels of "full". advice: ``use`` or
        ``no method earned``; method and budget: of all methods, each with the largest budget that so many
        labels reach, the one with the largest gain among those that earned it, or else among all.
        expected_gain, low, high: its gain in points with its 95 % interval.
        n_resamples: rankings that the expected gain is the mean of; sd_over_resamples: their standard
        deviation in points, what one choice of training pairs may differ by (missing with one ranking; too
        small where the budget is most of the pairs, as its choices then share most of them).
        earned_low: the lower end of its interval at the level that holds for all n_candidates together
        (Bonferroni), by resampling or by Student's t, whichever is lower; a method is earned where it lies
        above 0, or where every base task gains as much (which leaves no interval) and a sign test says so at
        that level. One that was not measured is no candidate. reason: why a best candidate has no interval.
    """
    full = dict(zip(labels["source"], labels["train_pairs"], strict=True))
    by_ranking = _by_ranking(curves)
    rows: list[dict[str, Any]] = []
    keys = ["judge_id", "protocol", "source", "simulated"]
    for key, part in gains.table.groupby(keys, dropna=False, sort=True):
        own: dict[Any, Any] = dict(zip(keys, key, strict=True))
        size = full.get(str(own["source"]))
        known = part[part["delta"].notna()]
        at = known["budget"].map(lambda text, size=size: _labels(str(text), size))
        for n_labels in sorted({int(value) for value in at.dropna()}):
            # All labels that are there, of every method: the largest of several noisy gains at smaller
            # budgets would promise more than comes. Where a budget takes all labels, "full" is that judge.
            most = known.assign(_at=at, _full=known["budget"] == FULL)[at <= n_labels]
            most = most.sort_values(["_at", "_full"], kind="stable").drop_duplicates("method", keep="last")
            rows.append(own | {"n_labels": n_labels} | _choose(most.sort_index(), gains, by_ranking, seed))
    frame = pd.DataFrame(rows, columns=list(ADVICE_COLUMNS))
    types = {"n_labels": "Int64", "n_resamples": "Int64", "protocol": "str", "reason": "str"}
    return frame.astype({**types, "sd_over_resamples": "float64"})


def _by_ranking(curves: pd.DataFrame | None) -> dict[tuple[Any, ...], np.ndarray]:
    """Return the gains in points of every ranking, by the values of _TRAINED."""
    if curves is None:
        return {}
    known = curves.dropna(subset=["accuracy", "accuracy_base"])
    points = 100 * (known["accuracy"].astype(float) - known["accuracy_base"].astype(float))
    grouped = points.groupby([known[name].to_numpy() for name in _TRAINED], sort=False)
    return {cast("tuple[Any, ...]", key): own.to_numpy() for key, own in grouped}


def _expected(
    row: dict[Any, Any], gains: Gains, by_ranking: dict[tuple[Any, ...], np.ndarray], seed: int
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return the expected gain of a candidate with its 95 % interval, and draws of it where it has one."""
    found = {"expected_gain": row["delta"], "low": row["delta_low"], "high": row["delta_high"]}
    rankings = by_ranking.get(tuple(row[name] for name in _TRAINED), np.zeros(0))
    found |= {"n_resamples": max(1, len(rankings)), "sd_over_resamples": np.nan}
    draws = None if np.isnan(row["delta_low"]) else gains.draws[cell_key(row)].astype(float)
    if len(rankings) < 2:
        return found, draws
    found |= {"expected_gain": float(rankings.mean()), "sd_over_resamples": float(rankings.std(ddof=1))}
    if draws is not None:
        # Of the mean over rankings: held-out pairs move it about as much as the frozen judge, and the
        # rankings that were drawn by their standard error.
        text = canonical_json([seed, *(str(row[name]) for name in _TRAINED)])
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        noise = np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(len(draws))
        error = found["sd_over_resamples"] / np.sqrt(len(rankings))
        draws = draws - row["delta"] + found["expected_gain"] + error * noise
        found["low"], found["high"] = map(float, np.nanquantile(draws, [0.025, 0.975]))
    return found, draws


def _labels(budget: str, full: int | None) -> float:
    if budget == FULL:
        return float("nan") if full is None else float(full)
    return float(budget) if full is None else float(min(int(budget), full))


def _choose(
    candidates: pd.DataFrame, gains: Gains, by_ranking: dict[tuple[Any, ...], np.ndarray], seed: int
) -> dict[str, Any]:
    m = len(candidates)
    best: dict[str, Any] | None = None
    for row in candidates.to_dict("records"):
        expected, draws = _expected(row, gains, by_ranking, seed)
        level, n = 0.025 / m, int(row["n_clusters"])
        low = np.nan
        if draws is not None:
            # So far out the percentiles of few base tasks are too optimistic: the lower of the two counts.
            error = float(np.nanstd(draws)) * np.sqrt(n / (n - 1))
            by_t = expected["expected_gain"] - t.ppf(1 - level, n - 1) * error
            low = min(float(np.nanquantile(draws, level)), float(by_t))
        certain = row["undefined"] == "no_variation" and row["delta"] > 0 and 0.5**n <= level
        earned = low > 0 or (certain and expected["n_resamples"] == 1)
        found = expected | {
            "advice": "use" if earned else NONE_EARNED,
            "method": row["method"],
            "budget": row["budget"],
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
