"""What adaptation gains on held-out pairs: Delta with paired intervals, macro averages, methods compared.

Everything here reads one table of *hits*: for each adapted judge and held-out pair, how right it was and how
right the unadapted judge was on the same pair. A verdict that was not given is wrong and stays in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from scipy.stats import norm

from judge_calibration.metrics.bootstrap import Resamples, percentiles
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.rates import ratio
from judge_calibration.options.reporting import IntervalOptions

HIT_COLUMNS = (
    "method",
    "judge_id",
    "protocol",
    "source",
    "budget",
    "pair_id",
    "base_id",
    "right",
    "base_right",
    "no_verdict",
    "base_no_verdict",
    "simulated",
)
"""right and base_right: share of the pair's verdicts (both orders) that equal the reference, in [0, 1];
base_right is missing where there is no unadapted judge to compare with."""

CELL = ("method", "judge_id", "protocol", "source", "budget", "simulated")
"""What tells one adapted judge from another."""

GAIN_COLUMNS = (
    *CELL,
    "n_test",
    "n_clusters",
    "accuracy_base",
    "accuracy",
    "delta",
    "delta_low",
    "delta_high",
    "detectable",
    "no_verdict_base",
    "no_verdict",
    "undefined",
)
MACRO_COLUMNS = (
    "method",
    "budget",
    "simulated",
    "n_cells",
    "n_judges",
    "n_sources",
    "accuracy_base",
    "accuracy",
    "delta",
    "delta_low",
    "delta_high",
    "undefined",
)
COMPARISON_COLUMNS = (
    "judge_id",
    "protocol",
    "source",
    "budget",
    "method_1",
    "method_2",
    "n_test",
    "n_clusters",
    "accuracy_1",
    "accuracy_2",
    "difference",
    "low",
    "high",
    "undefined",
    "simulated",
)


MIN_CLUSTERS = 10
"""Base tasks below which there is no interval."""


class Gains(NamedTuple):
    """Tables of gains, and the resampled gains that advice needs.

    Attributes
    ----------
    table : pandas.DataFrame
        GAIN_COLUMNS, a row an adapted judge: the whole matrix. Accuracies in [0, 1]; delta in points, with
        its paired interval over base tasks; detectable: see :func:`detectable_gain`; undefined: why there is
        no delta or no interval.
    macro : pandas.DataFrame
        MACRO_COLUMNS: mean over judge x source cells, each with equal weight.
    draws : dict
        By the values of CELL: delta of each resample, in points.
    """

    table: pd.DataFrame
    macro: pd.DataFrame
    draws: dict[tuple[Any, ...], np.ndarray]


def measure_gains(hits: pd.DataFrame, resamples: int = 10_000, seed: int = 7) -> Gains:
    """Return Delta = 100 (accuracy adapted - accuracy base) of every adapted judge, and the macro averages.

    Parameters
    ----------
    hits : pandas.DataFrame
        HIT_COLUMNS.
    resamples, seed : int
        Of the cluster bootstrap. Adapted judges of one source share its resamples, so that what they share
        cancels in every difference; sources are resampled independently.

    References
    ----------
    Definitions, sections 4 and 7.
    """
    rows: list[dict[str, Any]] = []
    draws: dict[tuple[Any, ...], np.ndarray] = {}
    for source, part in hits.groupby("source", sort=True):
        clusters = cluster_codes(part["base_id"])
        cells = list(part.groupby(list(CELL), dropna=False, sort=False).indices.items())
        drawn = Resamples(clusters.size, resamples, seed)
        columns = []
        for _, index in cells:
            own = part.iloc[index]
            gain = own["right"].to_numpy(float) - own["base_right"].to_numpy(float, na_value=np.nan)
            values = np.stack([np.nan_to_num(gain), (~np.isnan(gain)).astype(float)], axis=1)
            columns.append(cluster_sums(values, clusters.codes[index], clusters.size))
        sums = np.concatenate(columns, axis=1)
        totals = drawn.totals(sums)
        estimates = 100 * ratio(totals[0::2], totals[1::2])
        whole = sums.sum(axis=0)
        rest = np.where(np.abs(whole - sums) < 1e-9, 0.0, whole - sums)
        found = choose_intervals(
            100 * ratio(whole[0::2], whole[1::2]),
            estimates,
            100 * ratio(rest[:, 0::2], rest[:, 1::2]),
            sums[:, 1::2] > 0,
            np.zeros(len(cells), dtype=bool),
            IntervalOptions(resamples=max(200, resamples), seed=seed),
        )
        order = _order_of(str(source), resamples, seed)
        for k, (key, index) in enumerate(cells):
            own = part.iloc[index]
            has_base = bool(own["base_right"].notna().any())
            reason = None if found.reason[k] == "" else str(found.reason[k])
            rows.append(
                dict(zip(CELL, cast("tuple[Any, ...]", key), strict=True))
                | {
                    "n_test": len(own),
                    "n_clusters": int(found.clusters[k]) if has_base else own["base_id"].nunique(),
                    "accuracy_base": float(own["base_right"].mean()) if has_base else float("nan"),
                    "accuracy": float(own["right"].mean()),
                    "delta": found.value[k],
                    "delta_low": found.low[k],
                    "delta_high": found.high[k],
                    "detectable": detectable_gain(int(found.clusters[k]) if has_base else 0),
                    "no_verdict_base": float(own["base_no_verdict"].mean()) if has_base else float("nan"),
                    "no_verdict": float(own["no_verdict"].mean()),
                    "undefined": reason if has_base else "no_base_verdict",
                }
            )
            # Resamples of different sources are independent: without this, sources with the same number of
            # base tasks would rise and fall together.
            draws[tuple(map(_plain, cast("tuple[Any, ...]", key)))] = estimates[k][order].astype(np.float32)
    table = pd.DataFrame(rows, columns=list(GAIN_COLUMNS)).astype({"undefined": "str", "protocol": "str"})
    return Gains(table, _macro(table, draws), draws)


def detectable_gain(n_clusters: int) -> float:
    """Return the true gain, in points, that a test with so many base tasks finds at least four times in five.

    It depends on no result: 100 (z_.975 + z_.8) sqrt(.5) / sqrt(n). The square root of one half is the spread
    of a base task's change where two judges that are right half of the time know nothing of each other; of a
    judge that flips with the order, and so is half right on every pair, it is .5 at most, and less of a judge
    that changes little. A smaller gain may be there and not be found. NaN below ten base tasks, which have no
    interval at all.

    Examples
    --------
    >>> round(detectable_gain(30), 1)
    36.2
    """
    if n_clusters < MIN_CLUSTERS:
        return float("nan")
    return float(100 * norm.ppf([0.975, 0.8]).sum() * np.sqrt(0.5 / n_clusters))


def _order_of(source: str, resamples: int, seed: int) -> np.ndarray:
    digest = hashlib.sha256(f"{seed}\x1f{source}".encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(resamples)


def _plain(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and np.isnan(value)) else value


def cell_key(row: dict[Any, Any]) -> tuple[Any, ...]:
    """Return the key of a row of the table of gains in `Gains.draws`."""
    return tuple(_plain(row[name]) for name in CELL)


def _macro(table: pd.DataFrame, draws: dict[tuple[Any, ...], np.ndarray]) -> pd.DataFrame:
    rows = []
    for (method, budget, simulated), part in table.groupby(["method", "budget", "simulated"], sort=False):
        known = part[part["delta"].notna()]
        row: dict[str, Any] = {
            "method": method,
            "budget": budget,
            "simulated": simulated,
            "n_cells": len(known),
            "n_judges": known["judge_id"].nunique(),
            "n_sources": known["source"].nunique(),
            "accuracy_base": known["accuracy_base"].mean(),
            "accuracy": known["accuracy"].mean(),
            "delta": known["delta"].mean(),
            "delta_low": np.nan,
            "delta_high": np.nan,
            "undefined": None if len(known) else "no_cell_with_base_and_adapted",
        }
        # A cell below ten base tasks has no interval of its own and would lend the mean a false certainty.
        thin = known["n_clusters"] < MIN_CLUSTERS
        if len(known) and not thin.any():
            each = np.stack([draws[cell_key(record)] for record in known.to_dict("records")])
            low, high, _ = percentiles(each.astype(float).mean(axis=0)[None, :], 0.95)
            if high[0] - low[0] < 1e-12:
                row["undefined"] = "no_variation"
            else:
                row |= {"delta_low": float(low[0]), "delta_high": float(high[0])}
        elif len(known):
            row["undefined"] = "a_cell_with_fewer_than_10_clusters"
        rows.append(row)
    return pd.DataFrame(rows, columns=list(MACRO_COLUMNS)).astype({"undefined": "str"})


def compare_methods(hits: pd.DataFrame, resamples: int = 10_000, seed: int = 7) -> pd.DataFrame:
    """Compare two methods at equal labels, on the held-out pairs that both judged.

    Parameters
    ----------
    hits : pandas.DataFrame
        HIT_COLUMNS.

    Returns
    -------
    pandas.DataFrame
        COMPARISON_COLUMNS: difference = 100 (accuracy_1 - accuracy_2), points, with a paired interval.
    """
    rows: list[dict[str, Any]] = []
    keys = ["judge_id", "protocol", "source", "budget", "simulated"]
    for key, part in hits.groupby(keys, dropna=False, sort=True):
        by_method = {str(name): own.set_index("pair_id") for name, own in part.groupby("method", sort=True)}
        for one, two in combinations(by_method, 2):
            common = by_method[one].index.intersection(by_method[two].index, sort=False)
            first, second = by_method[one].loc[common], by_method[two].loc[common]
            row: dict[str, Any] = dict(zip(keys, cast("tuple[Any, ...]", key), strict=True))
            row |= {"method_1": one, "method_2": two, "n_test": len(common)}
            if len(common):
                row |= _difference(first, second, resamples, seed)
            else:
                row |= {"undefined": "no_common_pair"}
            rows.append(row)
    frame = pd.DataFrame(rows).reindex(columns=list(COMPARISON_COLUMNS))
    return frame.astype({"undefined": "str", "protocol": "str", "difference": "float64"})


def _difference(first: pd.DataFrame, second: pd.DataFrame, resamples: int, seed: int) -> dict[str, Any]:
    clusters = cluster_codes(first["base_id"])
    change = first["right"].to_numpy(float) - second["right"].to_numpy(float)
    sums = cluster_sums(np.stack([change, np.ones(len(change))], axis=1), clusters.codes, clusters.size)
    over, under = Resamples(clusters.size, resamples, seed).totals(sums)
    low, high, _ = percentiles(100 * ratio(over, under)[None, :], 0.95)
    reason = None
    if clusters.size < MIN_CLUSTERS:
        reason = "fewer_than_10_clusters"
    elif high[0] - low[0] < 1e-12:
        reason = "no_variation"
    return {
        "n_clusters": clusters.size,
        "accuracy_1": float(first["right"].mean()),
        "accuracy_2": float(second["right"].mean()),
        "difference": 100 * float(change.mean()),
        "low": np.nan if reason else float(low[0]),
        "high": np.nan if reason else float(high[0]),
        "undefined": reason,
    }


def sample_efficiency(curves: pd.DataFrame, by: Sequence[str] = ("method", "simulated")) -> pd.DataFrame:
    """Return the mean accuracy at each budget over judges and sources, and its spread over resamples.

    Parameters
    ----------
    curves : pandas.DataFrame
        A row a trained judge: the columns of `by`, judge_id, source, budget, resample, accuracy_base,
        accuracy, n_train (training pairs that it learned from), all_pairs (whether its budget takes all that
        there are).

    Returns
    -------
    pandas.DataFrame
        The columns of `by`, source ("all": macro over judges and sources; then each source), budget, n_train
        (mean), accuracy, accuracy_base, sd_over_resamples (standard deviation of the resample means; not an
        interval; NaN with one resample, and where every ranking holds all pairs, so that all are the same
        set), n_resamples, n_fits, n_undefined.
    """
    rows = []
    parts = [("all", curves)] + [(str(name), own) for name, own in curves.groupby("source", sort=True)]
    for source, part in parts:
        for key, own in part.groupby([*by, "budget"], sort=False, dropna=False):
            defined = own.dropna(subset="accuracy")
            means = defined.groupby("resample")["accuracy"].mean()
            varied = len(means) > 1 and not own["all_pairs"].all()
            rows.append(
                dict(zip([*by, "budget"], cast("tuple[Any, ...]", key), strict=True))
                | {
                    "source": source,
                    "n_train": float(own["n_train"].astype(float).mean()),
                    "accuracy": float(means.mean()) if len(means) else float("nan"),
                    "accuracy_base": float(defined["accuracy_base"].mean()),
                    "sd_over_resamples": float(means.std(ddof=1)) if varied else float("nan"),
                    "n_resamples": len(means),
                    "n_fits": len(own),
                    "n_undefined": int(own["accuracy"].isna().sum()),
                }
            )
    columns = [*by, "source", "budget", "n_train", "accuracy", "accuracy_base", "sd_over_resamples"]
    return pd.DataFrame(rows, columns=[*columns, "n_resamples", "n_fits", "n_undefined"])
