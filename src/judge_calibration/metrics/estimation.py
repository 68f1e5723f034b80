"""Estimates with intervals for every cell, view and slice, from one set of resamples a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.clusters import cluster_codes
from judge_calibration.metrics.intervals import Intervals, choose_intervals, spread_intervals
from judge_calibration.metrics.judgments import Ints, Judgments
from judge_calibration.metrics.max_t import raise_largest
from judge_calibration.metrics.rates import Floats
from judge_calibration.metrics.slices import WHOLE, Slicing, slice_pairs
from judge_calibration.metrics.trust_statistics import METRICS, PROPORTIONS, denominators, statistics
from judge_calibration.metrics.units import COLUMNS, PairRows, reference_kind
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

_FIRST = COLUMNS.index("first_n")
# Groups (cells of one slice) that are resampled together: bounds the memory, not the result.
_TOGETHER = 8


@dataclass(frozen=True)
class SourceGroup:
    """The pairs of one source (or of all), their clusters and slices.

    Attributes
    ----------
    name : str
        The source, or ``all``.
    member : numpy.ndarray of bool, shape (n_pairs,)
        Which judged pairs belong to it.
    cluster : numpy.ndarray, shape (n_pairs,)
        Cluster of each member, numbered by first appearance; -1 for the others.
    n_clusters : int
        Number of clusters.
    resamples : Resamples
        The resamples that all statistics of the group share.
    slicings : tuple of Slicing
        The whole first.
    """

    name: str
    member: np.ndarray
    cluster: Ints
    n_clusters: int
    resamples: Resamples
    slicings: tuple[Slicing, ...]


def _spanning(by: str, names: list[str], codes: Ints, source: pd.Series) -> Slicing:
    """Keep the slices that lie in several sources; the others are in their own source's rows."""
    met = pd.DataFrame({"code": codes, "source": source}).drop_duplicates()
    sizes = met[met["code"] >= 0].groupby("code").size()
    kept = [code for code in range(len(names)) if sizes.get(code, 0) > 1]
    renumbered = np.full(len(names) + 1, -1, dtype=np.int64)
    renumbered[kept] = np.arange(len(kept))
    return Slicing(by, [names[code] for code in kept], renumbered[codes])


def source_groups(
    judgments: Judgments, options: ReportingOptions, slices: tuple[str, ...]
) -> list[SourceGroup]:
    """Return one group a source, sorted by name, and one of all if there are several."""
    pairs = judgments.pairs.assign(reference=reference_kind(judgments.reference))
    names = sorted(pairs["source"].astype(str).unique())
    if len(names) > 1 and options.trust.pool_sources:
        names = [*names, WHOLE]
    groups = []
    for name in names:
        member = np.ones(len(pairs), bool) if name == WHOLE else (pairs["source"] == name).to_numpy(bool)
        codes = cluster_codes(pairs.loc[member, "base_id"])
        cluster = np.full(len(pairs), -1, dtype=np.int64)
        cluster[member] = codes.codes
        slicings = []
        for by in (WHOLE, *slices):
            slicing = slice_pairs(pairs[member], by, options.quality_gap.edges)
            if slicing is None:
                continue
            spread = np.full(len(pairs), -1, dtype=np.int64)
            spread[member] = slicing.codes
            if name == WHOLE:
                slicing = _spanning(slicing.by, slicing.names, spread, pairs["source"])
                if not slicing.names:
                    continue
                spread = slicing.codes
            slicings.append(Slicing(slicing.by, slicing.names, spread))
        resamples = Resamples(codes.size, options.intervals.resamples, options.intervals.seed)
        groups.append(SourceGroup(name, member, cluster, codes.size, resamples, tuple(slicings)))
    return groups


@dataclass(frozen=True)
class GroupSums:
    """Sums over pairs for the cells of one slice.

    Attributes
    ----------
    cells : numpy.ndarray, shape (n_cells,)
        Which cells.
    by_cluster : numpy.ndarray, shape (n_cells, n_clusters, len(COLUMNS))
        Contributions summed within clusters.
    facts : numpy.ndarray, shape (n_cells, len(FACTS))
        Counts for reason codes.
    repetitions : numpy.ndarray, shape (n_cells, 2)
        The fewest and the most repetitions of a (pair, order); 0 without rows.
    clusters : numpy.ndarray, shape (n_cells,)
        Clusters with a pair that is kept in the view.
    """

    cells: Ints
    by_cluster: Floats
    facts: Floats
    repetitions: Ints
    clusters: Ints


def sum_groups(
    rows: PairRows, group: SourceGroup, codes: Ints, value: int, cells: Ints, kept_column: int
) -> GroupSums:
    """Sum the rows of `cells` over the pairs of one slice, within clusters."""
    starts = np.searchsorted(rows.cell, cells, side="left")
    stops = np.searchsorted(rows.cell, cells, side="right")
    taken = np.concatenate(
        [np.arange(a, b) for a, b in zip(starts, stops, strict=True)] or [np.zeros(0, int)]
    )
    local = np.repeat(np.arange(len(cells)), stops - starts)
    pair = rows.pair[taken]
    inside = (group.cluster[pair] >= 0) & (codes[pair] == value)
    taken, local, pair = taken[inside], local[inside], pair[inside]
    n, g = len(cells), group.n_clusters
    slot = local * g + group.cluster[pair]

    def summed(values: Floats) -> Floats:
        return np.bincount(slot, weights=values, minlength=n * g).astype(np.float64).reshape(n, g)

    by_cluster = np.stack([summed(rows.sums[taken, k]) for k in range(len(COLUMNS))], axis=2)
    identity = np.stack([summed(rows.identity_first[taken, k]) for k in range(2)], axis=2)
    # Identity pairs are shown apart: they give the first-position share only where there is no other pair.
    alone = by_cluster[:, :, _FIRST + 1].sum(axis=1) == 0
    by_cluster[alone, :, _FIRST : _FIRST + 2] = identity[alone]
    facts = np.stack(
        [np.bincount(local, weights=rows.facts[taken, k], minlength=n) for k in range(rows.facts.shape[1])],
        axis=1,
    ).astype(np.float64)
    repetitions = np.zeros((n, 2), dtype=np.int64)
    if len(taken):
        fewest = np.full(n, np.iinfo(np.int64).max)
        np.minimum.at(fewest, local, rows.repetitions[taken, 0])
        np.maximum.at(repetitions[:, 1], local, rows.repetitions[taken, 1])
        repetitions[:, 0] = np.where(repetitions[:, 1] > 0, fewest, 0)
    clusters: Ints = np.count_nonzero(summed(rows.facts[taken, kept_column]), axis=1)
    return GroupSums(cells, by_cluster, facts, repetitions, clusters)


def resampled_statistics(by_cluster: Floats, resamples: Resamples, names: Sequence[str] = METRICS) -> Floats:
    """Return statistics of every resample, shape (len(names), n_cells, resamples)."""
    n, g, k = by_cluster.shape
    flat = by_cluster.transpose(1, 0, 2).reshape(g, n * k)
    totals = resamples.totals(flat).reshape(n, k, resamples.resamples).transpose(1, 0, 2)
    return statistics(totals, names)


def left_out_statistics(by_cluster: Floats) -> Floats:
    """Return the statistics without each cluster, shape (len(METRICS), n_cells, n_clusters)."""
    rest = by_cluster.sum(axis=1, keepdims=True) - by_cluster
    # Sums of fractions leave rounding dust where nothing is left.
    rest[np.abs(rest) < 1e-9] = 0.0
    return statistics(rest.transpose(2, 0, 1))


def estimate(
    by_cluster: Floats, resamples: Resamples, options: IntervalOptions, largest: Floats | None = None
) -> Intervals:
    """Return every statistic with its interval; arrays over (cell, metric), the metric running faster.

    Parameters
    ----------
    by_cluster : numpy.ndarray, shape (n_cells, n_clusters, len(COLUMNS))
        Contributions summed within clusters.
    resamples : Resamples
        The group's resamples.
    options : IntervalOptions
        Rules for intervals.
    largest : numpy.ndarray, shape (n_cells * len(METRICS), resamples), optional
        Raised, in place, to each resample's deviation in standard errors where that is larger: over several
        calls (slices) it gathers what :func:`.max_t.critical_values` needs, one array for all of them.
    """
    n, g, _ = by_cluster.shape
    m = len(METRICS)
    value = statistics(by_cluster.sum(axis=1).T).T.reshape(n * m)
    # What is undefined on the data is not resampled: a log with one repetition has no C and no T.
    defined = np.flatnonzero(~np.isnan(value))
    kinds = np.unique(defined % m)
    drawn = np.empty((len(defined), resamples.resamples))
    if len(defined):
        found = resampled_statistics(by_cluster, resamples, [METRICS[k] for k in kinds])
        drawn = found[np.searchsorted(kinds, defined % m), defined // m]
    contributes = (denominators(by_cluster.transpose(2, 0, 1)) > 0).transpose(2, 1, 0).reshape(g, n * m)
    left_out = left_out_statistics(by_cluster).transpose(2, 1, 0).reshape(g, n * m)
    proportion = np.tile(np.isin(METRICS, PROPORTIONS), n)
    some = choose_intervals(
        value[defined],
        drawn,
        left_out[:, defined],
        contributes[:, defined],
        proportion[defined],
        options,
    )
    if largest is not None:
        usable = np.flatnonzero((some.method == "percentile") & (some.se > 0))
        raise_largest(largest, defined[usable], drawn[usable], value[defined[usable]], some.se[usable])
    return spread_intervals(some, defined, value, contributes.sum(axis=0))


def cell_batches(cells: Ints, n_clusters: int) -> Iterator[Ints]:
    """Yield cells in batches that bound the memory of their resamples."""
    size = max(1, min(_TOGETHER, 2_000_000 // max(1, n_clusters * len(COLUMNS))))
    for start in range(0, len(cells), size):
        yield cells[start : start + size]


def shown_cells(judgments: Judgments, group: SourceGroup) -> np.ndarray:
    """Tell for each cell whether it gets rows in the group.

    A cell that judged one source only is not repeated under ``all``.
    """
    source = pd.factorize(judgments.pairs["source"])[0]
    n_sources = max(int(source.max(initial=0)) + 1, 1)
    met = np.zeros((len(judgments.cells), n_sources), dtype=bool)
    met[judgments.cell, source[judgments.pair]] = True
    if group.name == WHOLE:
        return met.sum(axis=1) > 1
    here = np.unique(source[group.member])
    return np.asarray(met[:, here].any(axis=1))


def cells_of(judgments: Judgments, group: SourceGroup) -> Ints:
    """Return the cells that get rows in the group."""
    return np.flatnonzero(shown_cells(judgments, group))


def cell_keys(judgments: Judgments, cell: int) -> dict[str, object]:
    """Return the identifying columns of one cell."""
    return {str(column): value for column, value in judgments.cells.iloc[cell].items()}
