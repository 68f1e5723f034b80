"""Rows of shares with intervals, one a cell and slice: what the smaller tables are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.estimation import SourceGroup, shown_cells, source_groups
from judge_calibration.metrics.intervals import Intervals, choose_intervals
from judge_calibration.metrics.judgments import Ints, Judgments
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.slices import WHOLE
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

CELL_KEYS = ("source", "judge_id", "protocol", "constraint", "temperature", "instrument_id")
"""What identifies a cell within a source."""

SHARE_COLUMNS = (
    *CELL_KEYS,
    "slice_by",
    "slice",
    "statistic",
    "value",
    "low",
    "high",
    "numerator",
    "denominator",
    "n_pairs",
    "n_clusters",
    "method",
    "jackknife_se",
    "reason",
    "interval_reason",
)
"""Columns of a table of shares, in order."""

_INTEGERS = ("n_pairs", "n_clusters")
_NUMBERS = ("temperature", "value", "low", "high", "numerator", "denominator", "jackknife_se")


@dataclass(frozen=True)
class Contribution:
    """What each (cell, pair) adds to one share.

    Attributes
    ----------
    statistic : str
        Name of the share.
    cell, pair : numpy.ndarray, shape (n_rows,)
        Positions as in :class:`judge_calibration.metrics.judgments.Judgments`.
    numerator, denominator : numpy.ndarray, shape (n_rows,)
        Contributions; a row with denominator 0 does not count.
    proportion : bool
        Whether the value lies between 0 and 1.
    reason : str
        Reason code where nothing is counted.
    """

    statistic: str
    cell: Ints
    pair: Ints
    numerator: npt.NDArray[np.float64]
    denominator: npt.NDArray[np.float64]
    proportion: bool = True
    reason: str = "nothing_to_count"


def ratio_intervals(
    numerator: Floats, denominator: Floats, resamples: Resamples, proportion: bool, options: IntervalOptions
) -> Intervals:
    """Return many ratios of cluster sums with their intervals.

    Parameters
    ----------
    numerator, denominator : numpy.ndarray of shape (n_clusters, n)
        Sums within clusters.
    resamples : Resamples
        The resamples that all statistics share.
    proportion : bool
        Whether the ratios lie between 0 and 1.
    options : IntervalOptions
        Rules for intervals.
    """
    n = numerator.shape[1]
    totals = resamples.totals(np.concatenate([numerator, denominator], axis=1))
    over, under = numerator.sum(axis=0), denominator.sum(axis=0)
    rest = under - denominator
    return choose_intervals(
        ratio(over, under),
        ratio(totals[:n], totals[n:]),
        ratio(over - numerator, np.where(np.abs(rest) < 1e-9, 0.0, rest)),
        denominator > 0,
        np.full(n, proportion),
        options,
    )


def curve_sums(
    place: Ints,
    hit: npt.NDArray[np.bool_],
    points: int,
    cluster: Ints,
    n_clusters: int,
    cumulative: bool = False,
) -> tuple[Floats, Floats]:
    """Return hits and items of every point of a curve within clusters, for :func:`ratio_intervals`.

    Parameters
    ----------
    place : numpy.ndarray of int, shape (n_items,)
        The point that each item belongs to; with `cumulative` it belongs to all later ones too.
    hit : numpy.ndarray of bool, shape (n_items,)
        What is counted.
    points : int
        Number of points.
    cluster : numpy.ndarray of int, shape (n_items,)
        Cluster of each item.
    n_clusters : int
    cumulative : bool
        Whether points hold the items of all earlier ones, as kept verdicts do while a threshold falls.

    Returns
    -------
    over, under : numpy.ndarray of float64, shape (n_clusters, points)

    Notes
    -----
    Intervals of such points hold for each point by itself, not for the curve as a whole. The points' places
    (bins, thresholds) are taken as given.
    """
    shape = (n_clusters, points)
    slot = cluster * points + place
    under = np.bincount(slot, minlength=n_clusters * points).astype(np.float64).reshape(shape)
    over = np.bincount(slot, weights=hit, minlength=n_clusters * points).astype(np.float64).reshape(shape)
    if cumulative:
        under, over = np.cumsum(under, axis=1), np.cumsum(over, axis=1)
    return over, under


def empty_shares(extra: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a table of shares without a row."""
    return typed_shares(pd.DataFrame({column: [] for column in (*SHARE_COLUMNS, *extra)}))


def typed_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Give a table of shares its dtypes: Int64, float64 and text."""
    kinds = {
        column: "Int64" if column in _INTEGERS else "float64" if column in _NUMBERS else "str"
        for column in frame.columns
    }
    return frame.astype(kinds)


def _rows_of(
    judgments: Judgments,
    group: SourceGroup,
    part: Contribution,
    by: str,
    names: list[str],
    codes: Ints,
    shown: npt.NDArray[np.bool_],
    options: IntervalOptions,
) -> pd.DataFrame:
    """Return the rows of one share over the slices of one slicing."""
    inside = (group.cluster[part.pair] >= 0) & (codes[part.pair] >= 0)
    inside &= shown[part.cell]
    cells = np.unique(part.cell[inside])
    if not len(cells):
        return pd.DataFrame()
    n = len(cells) * len(names)
    local = np.searchsorted(cells, part.cell[inside]) * len(names) + codes[part.pair[inside]]
    slot = local * group.n_clusters + group.cluster[part.pair[inside]]

    def summed(values: npt.NDArray[np.float64]) -> Floats:
        total = np.bincount(slot, weights=values, minlength=n * group.n_clusters).astype(np.float64)
        return total.reshape(n, group.n_clusters).T

    numerator, denominator = summed(part.numerator[inside]), summed(part.denominator[inside])
    n_pairs = max(len(judgments.pairs), 1)
    counts = part.denominator[inside] > 0
    met = np.unique(local[counts] * n_pairs + part.pair[inside][counts]) // n_pairs
    counted = np.bincount(met, minlength=n)
    found = []
    batch = max(1, min(256, 4_000_000 // group.n_clusters))
    for start in range(0, n, batch):
        stop = min(n, start + batch)
        found.append(
            ratio_intervals(
                numerator[:, start:stop],
                denominator[:, start:stop],
                group.resamples,
                part.proportion,
                options,
            )
        )
    joined = {
        name: np.concatenate([getattr(one, name) for one in found])
        for name in ("value", "low", "high", "method", "reason", "se", "clusters")
    }
    keys = judgments.cells.iloc[np.repeat(cells, len(names))].reset_index(drop=True)
    frame = pd.DataFrame({"source": group.name, **{column: keys[column] for column in CELL_KEYS[1:]}})
    return frame.assign(
        slice_by=by,
        slice=np.tile(np.array(names, dtype=object), len(cells)),
        statistic=part.statistic,
        value=joined["value"],
        low=joined["low"],
        high=joined["high"],
        numerator=numerator.sum(axis=0),
        denominator=denominator.sum(axis=0),
        n_pairs=counted.astype(np.int64),
        n_clusters=joined["clusters"],
        method=joined["method"].astype(object),
        jackknife_se=joined["se"],
        reason=np.where(np.isnan(joined["value"]), part.reason, "").astype(object),
        interval_reason=joined["reason"].astype(object),
    )


def share_rows(
    judgments: Judgments,
    parts: list[Contribution],
    slices: tuple[str, ...],
    options: ReportingOptions,
    empty_too: bool = False,
) -> pd.DataFrame:
    """Return a table of shares: one row a source, cell, slice and statistic.

    Parameters
    ----------
    judgments : Judgments
        Cells, pairs and references.
    parts : list of Contribution
        The shares.
    slices : tuple of str
        Slices beside the whole.
    options : ReportingOptions
        Intervals, and whether sources are pooled.
    empty_too : bool
        Whether slices in which nothing was counted get a row with a reason.

    Returns
    -------
    pandas.DataFrame
        Columns SHARE_COLUMNS, sorted by source, cell, slicing, slice and statistic.
    """
    from threadpoolctl import threadpool_limits

    frames = []
    with threadpool_limits(limits=1, user_api="blas"):
        for group in source_groups(judgments, options, slices):
            shown = shown_cells(judgments, group)
            for position, slicing in enumerate(group.slicings):
                for rank, part in enumerate(parts):
                    rows = _rows_of(
                        judgments,
                        group,
                        part,
                        slicing.by,
                        slicing.names,
                        slicing.codes,
                        shown,
                        options.intervals,
                    )
                    if not rows.empty:
                        frames.append(rows.assign(_by=position, _rank=rank, _pooled=group.name == WHOLE))
    if not frames:
        return empty_shares()
    frame = pd.concat(frames, ignore_index=True)
    if not empty_too:
        frame = frame[frame["n_pairs"] > 0]
    order = ["_pooled", *CELL_KEYS, "_by", "slice", "_rank"]
    frame = frame.sort_values(order, kind="stable", ignore_index=True)
    return typed_shares(frame[list(SHARE_COLUMNS)])
