"""The trust table: every statistic of trust with its interval, for each cell, view and slice."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd

from judge_calibration.metrics.estimation import (
    GroupSums,
    SourceGroup,
    cell_batches,
    cells_of,
    estimate,
    source_groups,
    sum_groups,
)
from judge_calibration.metrics.intervals import Intervals
from judge_calibration.metrics.judgments import FAILED, A, B, Ints, Judgments, encode
from judge_calibration.metrics.max_t import critical_values
from judge_calibration.metrics.slices import WHOLE, Slicing
from judge_calibration.metrics.trust_statistics import METRICS, fractions
from judge_calibration.metrics.units import (
    FACTS,
    PairRows,
    Units,
    completed_codes,
    pair_rows,
    reduce_judgments,
)
from judge_calibration.options.reporting import ReportingOptions, View
from judge_calibration.text import canonical_json

KEYS = (
    "source",
    "judge_id",
    "protocol",
    "constraint",
    "temperature",
    "view",
    "reduction",
    "slice_by",
    "slice",
)
"""What identifies a row together with instrument_id."""

TRUST_COLUMNS = (
    *KEYS,
    "n_pairs",
    "n_clusters",
    "repetitions",
    *(f"{name}{end}" for name in METRICS for end in ("", "_low", "_high")),
    "undefined",
    "instrument_id",
    "share_kept",
    "flags",
)
"""Columns of the trust table, in order."""

INTERVAL_COLUMNS = (
    *KEYS,
    "instrument_id",
    "n_pairs",
    "n_clusters",
    "repetitions",
    "share_kept",
    "flags",
    "metric",
    "value",
    "numerator",
    "denominator",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "method",
    "jackknife_se",
    "jackknife_low",
    "jackknife_high",
    "clusters",
    "undefined_resamples",
    "reason",
    "interval_reason",
)
"""Columns of the long form, in order."""

_FACT = {name: k for k, name in enumerate(FACTS)}
_TRUST = ("T_product", "T_direct", "T_pair")
_REFERENCED = ("A", "A_dec", "q", "A_max", "gap", "PR", *_TRUST)
_BOTH_ORDERS = ("phi", "order_excess", "A_dec", "q", "A_max", "gap", "PR", *_TRUST)
_REPEATED = ("C", "C2", "order_excess", *_TRUST)


def _why_undefined(metric: str, facts: np.ndarray) -> str:
    """Return the first reason that leaves `metric` without a unit to count."""
    if not facts[_FACT["pairs"]]:
        return "no_pairs"
    if metric in (*_BOTH_ORDERS, "A") and not facts[_FACT["different"]]:
        return "identity_pairs_only"
    if metric in _REFERENCED and not facts[_FACT["answerable"]]:
        return "no_decisive_reference" if facts[_FACT["referenced"]] else "no_reference"
    if metric in _BOTH_ORDERS and not facts[_FACT["both_orders"]]:
        return "one_order"
    if metric in _REPEATED and not facts[_FACT["repeated"]]:
        return "one_repetition"
    if not facts[_FACT["kept"]]:
        return "nothing_left_in_view"
    if metric == "A_dec":
        return "all_pairs_flip"
    if metric == "q":
        return "no_pair_flips"
    if metric == "first_share":
        return "no_decisive_verdict"
    return "no_complete_pair"


def _flags(sums: GroupSums, i: int, cell: pd.Series, options: ReportingOptions) -> list[str]:
    flags = []
    if 0 < sums.clusters[i] < options.intervals.flag_below:
        flags.append("few_clusters")
    if sums.repetitions[i, 0] != sums.repetitions[i, 1]:
        flags.append("unequal_repetitions")
    in_process = str(cell["judge_id"]) in options.trust.deterministic_judges
    if in_process and cell["temperature"] == 0 and sums.repetitions[i, 1] > 1:
        flags.append("deterministic_by_construction")
    return flags


def _records(
    judgments: Judgments,
    group: SourceGroup,
    sums: GroupSums,
    intervals: Intervals,
    view: View,
    by: str,
    name: str,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Return the long rows of one slice: cells x metrics."""
    n, m = len(sums.cells), len(METRICS)
    cells = judgments.cells.iloc[sums.cells].reset_index(drop=True)
    parts = fractions(sums.by_cluster.sum(axis=1).T)
    empty = np.full(n, np.nan)
    numerator = np.stack([parts[k].numerator if k in parts else empty for k in METRICS], axis=1)
    denominator = np.stack([parts[k].denominator if k in parts else empty for k in METRICS], axis=1)
    facts = sums.facts
    policy = view == "policy"
    over, under = ("kept_units", "units") if policy else ("kept", "pairs")
    kept, there = facts[:, _FACT[over]], facts[:, _FACT[under]]
    share = np.divide(kept, there, out=np.full(n, np.nan), where=there > 0)
    flags = [canonical_json(_flags(sums, i, cells.iloc[i], options)) for i in range(n)]
    reason = [
        _why_undefined(metric, facts[i]) if np.isnan(intervals.value[i * m + k]) else ""
        for i in range(n)
        for k, metric in enumerate(METRICS)
    ]
    by_cell = {
        "source": np.full(n, group.name, dtype=object),
        **{
            column: cells[column].to_numpy()
            for column in ("judge_id", "protocol", "constraint", "temperature")
        },
        "view": np.full(n, view, dtype=object),
        "reduction": np.full(n, options.trust.reduction, dtype=object),
        "slice_by": np.full(n, by, dtype=object),
        "slice": np.full(n, name, dtype=object),
        "instrument_id": cells["instrument_id"].to_numpy(),
        "n_pairs": facts[:, _FACT["kept"]].astype(np.int64),
        "n_clusters": sums.clusters,
        "repetitions": sums.repetitions[:, 1],
        "share_kept": share,
        "flags": np.array(flags, dtype=object),
    }
    return pd.DataFrame(
        {
            **{column: np.repeat(values, m) for column, values in by_cell.items()},
            "metric": np.tile(np.array(METRICS, dtype=object), n),
            "value": intervals.value,
            "numerator": numerator.reshape(-1),
            "denominator": denominator.reshape(-1),
            "low": intervals.low,
            "high": intervals.high,
            "simultaneous_low": np.nan,
            "simultaneous_high": np.nan,
            "method": intervals.method.astype(object),
            "jackknife_se": intervals.se,
            "jackknife_low": intervals.jackknife_low,
            "jackknife_high": intervals.jackknife_high,
            "clusters": intervals.clusters,
            "undefined_resamples": intervals.undefined,
            "reason": np.array(reason, dtype=object),
            "interval_reason": intervals.reason.astype(object),
        }
    )


def _same_as_strict(judgments: Judgments, units: Units, view: View) -> np.ndarray:
    """Tell for which cells a view counts exactly what the strict view counts."""
    n = len(judgments.cells)
    failed = np.bincount(units.cell, weights=units.counts[:, FAILED], minlength=n) > 0
    unresolved = np.bincount(units.cell, weights=units.reduced == FAILED, minlength=n) > 0
    if view == "policy":
        undecided = (units.reduced != A) & (units.reduced != B)
        return np.bincount(units.cell, weights=undecided, minlength=n) == 0
    return ~failed & ~unresolved


def rows_of_view(judgments: Judgments, view: View, options: ReportingOptions) -> tuple[Units, PairRows]:
    """Return the units and the contributions of every (cell, pair) in one view."""
    codes = completed_codes(judgments, view)
    units = reduce_judgments(judgments, codes, options.trust.reduction, options.trust.majority_tie)
    return units, pair_rows(judgments, units, view)


def _covers_all(slicing: Slicing, group: SourceGroup) -> bool:
    """Tell whether a slicing has one slice that holds every pair of the group."""
    return len(slicing.names) == 1 and bool((slicing.codes[group.member] == 0).all())


def _computed(
    judgments: Judgments,
    rows: PairRows,
    group: SourceGroup,
    slicing: Slicing,
    cells: Ints,
    view: View,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Compute the rows of some cells for one slicing."""
    parts = []
    for batch in cell_batches(cells, group.n_clusters):
        # The slices of one slicing are a family for each cell and statistic; the whole is none.
        family = slicing.by != WHOLE and len(slicing.names) > 1
        largest = np.zeros((len(batch) * len(METRICS), group.resamples.resamples)) if family else None
        together = []
        for value, name in enumerate(slicing.names):
            sums = sum_groups(rows, group, slicing.codes, value, batch, _FACT["kept"])
            intervals = estimate(sums.by_cluster, group.resamples, options.intervals, largest)
            part = _records(judgments, group, sums, intervals, view, slicing.by, name, options)
            part["_cell"] = np.repeat(batch, len(METRICS))
            together.append(part)
        if largest is not None:
            critical = critical_values(largest, options.intervals.level)
            for part in together:
                half = np.where(part["method"] == "percentile", critical * part["jackknife_se"], np.nan)
                half[half == 0] = np.nan
                part["simultaneous_low"], part["simultaneous_high"] = (
                    part["value"] - half,
                    part["value"] + half,
                )
        parts += together
    return pd.concat(parts, ignore_index=True)


def _long_parts(judgments: Judgments, options: ReportingOptions) -> Iterator[pd.DataFrame]:
    """Yield the long rows by view, source and slicing, computing no row twice."""
    groups = source_groups(judgments, options, options.trust.slices)
    strict_units, strict_rows = rows_of_view(judgments, "strict", options)
    strict: dict[tuple[str, str], pd.DataFrame] = {}
    views: list[View] = sorted(options.trust.views, key=lambda view: view != "strict")
    for view in views:
        rows = strict_rows if view == "strict" else rows_of_view(judgments, view, options)[1]
        equal = _same_as_strict(judgments, strict_units, view)
        for group in groups:
            cells = cells_of(judgments, group)
            if not len(cells):
                continue
            whole: pd.DataFrame | None = None
            for slicing in group.slicings:
                if slicing.by != WHOLE and view not in options.trust.sliced_views:
                    continue
                known = None if view == "strict" else strict.get((group.name, slicing.by))
                todo = cells if known is None else cells[~equal[cells]]
                parts = []
                if known is not None:
                    # A cell without failures counts the same in this view as in the strict one.
                    parts.append(known[known["_cell"].isin(cells[equal[cells]])].assign(view=view))
                if len(todo) and whole is not None and _covers_all(slicing, group):
                    same = whole[whole["_cell"].isin(todo)]
                    parts.append(same.assign(slice_by=slicing.by, slice=slicing.names[0]))
                elif len(todo):
                    parts.append(_computed(judgments, rows, group, slicing, todo, view, options))
                frame = pd.concat([part for part in parts if len(part)], ignore_index=True)
                if slicing.by == WHOLE:
                    whole = frame
                if view == "strict":
                    strict[group.name, slicing.by] = frame
                yield frame


def _order(frame: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Sort rows by cell, then view and slicing in the order of the options, then slice and metric."""
    views = {view: i for i, view in enumerate(options.trust.views)}
    slicings = {by: i for i, by in enumerate((WHOLE, *options.trust.slices))}
    pooled = frame["source"] == WHOLE
    ranked = frame.assign(_pooled=pooled, _view=frame["view"].map(views), _by=frame["slice_by"].map(slicings))
    ranked["_metric"] = ranked["metric"].map({name: i for i, name in enumerate(METRICS)})
    ranked = ranked.sort_values(
        ["_pooled", "source", "_cell", "_view", "_by", "slice", "_metric"], kind="stable", ignore_index=True
    )
    return ranked.drop(columns=["_pooled", "_view", "_by", "_metric"])


_TEXT = (
    "source",
    "judge_id",
    "protocol",
    "constraint",
    "view",
    "reduction",
    "slice_by",
    "slice",
    "instrument_id",
    "flags",
    "metric",
    "method",
    "reason",
    "interval_reason",
    "undefined",
)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a frame the dtypes of the long tables: text, Int64 and float64."""
    counts = ("n_pairs", "n_clusters", "repetitions", "clusters")
    kinds = {
        column: "str" if column in _TEXT else "Int64" if column in counts else "float64"
        for column in frame.columns
    }
    return frame.astype(kinds)


def trust_intervals(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return the trust table in long form: one row a cell, view, slice and statistic.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        Table `verdicts` of :mod:`judge_calibration.schemas`.
    pairs : pandas.DataFrame
        Table `pairs`; pair_id, base_id and source at least.
    options : ReportingOptions, optional
        Views, slices, reduction and intervals.

    Returns
    -------
    pandas.DataFrame
        Columns INTERVAL_COLUMNS: the value with its numerator and denominator, the interval and how it was
        made, the bounds that hold together for all slices of one slicing (max-t; by cell and statistic, not
        cut off at 0 and 1; NaN for the whole, a single slice and where there is no percentile interval),
        the cluster-jackknife standard error with its t interval, the clusters that hold a unit of the
        statistic, the share of undefined resamples, and why a value or an interval is absent.

    Raises
    ------
    TableError
        If the verdicts cannot be counted; see :func:`judge_calibration.metrics.judgments.encode`.
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    # Many small products: several threads only wait for one another.
    with threadpool_limits(limits=1, user_api="blas"):
        parts = list(_long_parts(judgments, chosen))
    if not parts:
        return _typed(pd.DataFrame({column: [] for column in INTERVAL_COLUMNS}))
    frame = _order(pd.concat(parts, ignore_index=True), chosen)
    return _typed(frame[list(INTERVAL_COLUMNS)])


def widen_intervals(intervals: pd.DataFrame) -> pd.DataFrame:
    """Turn the long form into the trust table; see :func:`trust_table` for its columns."""
    if intervals.empty:
        return _typed(pd.DataFrame({column: [] for column in TRUST_COLUMNS}))
    m = len(METRICS)
    head = intervals.iloc[::m].reset_index(drop=True)
    out = {column: head[column] for column in (*KEYS, "n_pairs", "n_clusters", "repetitions")}
    for k, metric in enumerate(METRICS):
        rows = intervals.iloc[k::m]
        out[metric] = rows["value"].reset_index(drop=True)
        out[f"{metric}_low"] = rows["low"].reset_index(drop=True)
        out[f"{metric}_high"] = rows["high"].reset_index(drop=True)
    reason = intervals["reason"].to_numpy(object).reshape(-1, m)
    no_interval = intervals["interval_reason"].to_numpy(object).reshape(-1, m)
    undefined = []
    for row in range(len(head)):
        found = {metric: str(reason[row, k]) for k, metric in enumerate(METRICS) if reason[row, k]}
        for k, metric in enumerate(METRICS):
            if no_interval[row, k] and metric not in found:
                found[f"{metric}_interval"] = str(no_interval[row, k])
        undefined.append(canonical_json(found))
    out["undefined"] = pd.Series(undefined)
    for column in ("instrument_id", "share_kept", "flags"):
        out[column] = head[column]
    return _typed(pd.DataFrame(out)[list(TRUST_COLUMNS)])


def trust_table(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return how far each judge can be trusted: one row a cell, view and slice.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        Table `verdicts` of :mod:`judge_calibration.schemas`.
    pairs : pandas.DataFrame
        Table `pairs`; pair_id, base_id and source at least. Without ``reference_label`` A, q and every T
        are undefined (``no_reference``).
    options : ReportingOptions, optional
        Views, slices, reduction and intervals.

    Returns
    -------
    pandas.DataFrame
        Columns TRUST_COLUMNS. Statistics are shares from 0 to 1 (order_excess from -1 to 1), NaN where
        undefined; ``undefined`` is a JSON mapping from the statistic, or ``<statistic>_interval``, to the
        reason. ``n_pairs`` and ``n_clusters`` count the pairs that the view keeps, ``repetitions`` is the
        most repetitions of a (pair, order), ``share_kept`` the share that the view keeps (of pairs; of
        (pair, order) under ``policy``, where it is the coverage). The whole has slice_by ``all``.

    Raises
    ------
    TableError
        If the verdicts cannot be counted.

    Notes
    -----
    Units with unequal repetitions enter C with those that they have (at least two), flagged
    ``unequal_repetitions``; C2 does not depend on their number. Pairs with one order enter C, C2 and A, not
    phi or T. C, C2, phi and first_share need no reference and so may rest on more pairs than A and T;
    the slices by ``reference`` show the pairs with a decisive one apart, and there
    T_product = C (A - phi q) holds for the printed columns.

    References
    ----------
    Definitions, sections 1, 2 and 4.

    Examples
    --------
    >>> pairs = pd.DataFrame([("p1", "b1", "mine", "A")])
    >>> pairs.columns = ["pair_id", "base_id", "source", "reference_label"]
    >>> rows = [("p1", order, repetition) for order in ("AB", "BA") for repetition in (0, 1)]
    >>> verdicts = pd.DataFrame(rows, columns=["pair_id", "order", "repetition"]).assign(
    ...     judge_id="j", instrument_id="i", protocol="direct", outcome="valid", verdict="A")
    >>> table = trust_table(verdicts, pairs)
    >>> table.loc[0, ["C", "phi", "A", "T_direct"]].tolist()
    [1.0, 0.0, 1.0, 1.0]
    """
    return widen_intervals(trust_intervals(verdicts, pairs, options))


def undefined_reasons(row: pd.Series) -> dict[str, str]:
    """Return the reasons of one row of the trust table as a mapping.

    Examples
    --------
    >>> undefined_reasons(pd.Series({"undefined": '{"C":"one_repetition"}'}))
    {'C': 'one_repetition'}
    """
    return dict(json.loads(row["undefined"]))
