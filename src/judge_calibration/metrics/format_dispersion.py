"""Format dispersion: how far T moves when only the prompt format does, against its permutation null."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.clusters import cluster_sums
from judge_calibration.metrics.estimation import SourceGroup, cells_of, source_groups
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.judgments import Ints, Judgments, encode
from judge_calibration.metrics.rates import Floats
from judge_calibration.metrics.slices import WHOLE
from judge_calibration.metrics.trust_statistics import METRICS, statistics
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.metrics.units import COLUMNS, PairRows
from judge_calibration.options.reporting import ReportingOptions

DISPERSION_COLUMNS = (
    "source",
    "judge_id",
    "temperature",
    "constrained",
    "statistic",
    "n_formats",
    "minimum",
    "minimum_format",
    "maximum",
    "maximum_format",
    "dispersion",
    "low",
    "high",
    "jackknife_se",
    "null_mean",
    "null_high",
    "p_value",
    "n_pairs",
    "n_clusters",
    "reason",
    "interval_reason",
)
"""Columns of the table of format dispersion, in order."""


def dispersion(values: npt.ArrayLike, axis: int = 0) -> Floats:
    """Return the range of a statistic over formats, maximum minus minimum; NaN if any is undefined.

    Examples
    --------
    >>> float(dispersion([28.9, 77.5, 51.6, 76.8, 76.9]).round(1))
    48.6
    """
    table = np.asarray(values, dtype=np.float64)
    return table.max(axis=axis) - table.min(axis=axis)


def exchange_formats(
    contributions: Floats, permutations: int, seed: int, statistic: int
) -> npt.NDArray[np.float64]:
    """Return dispersions when formats are exchanged within pairs: their null distribution.

    Parameters
    ----------
    contributions : numpy.ndarray of shape (n_formats, n_pairs, len(COLUMNS))
        What every pair adds under each format.
    permutations : int
        Number of exchanges.
    seed : int
        Seed of the exchanges.
    statistic : int
        Position of the statistic in METRICS.

    Returns
    -------
    numpy.ndarray of float64, shape (permutations,)
        In each exchange every pair's formats are shuffled independently of the other pairs'.
    """
    rng = np.random.default_rng(seed)
    n_formats, n_pairs, _ = contributions.shape
    out = np.empty(permutations)
    columns = np.arange(n_pairs)[None, :]
    for i in range(permutations):
        shuffled = rng.random((n_formats, n_pairs)).argsort(axis=0)
        totals = contributions[shuffled, columns].sum(axis=1)
        out[i] = dispersion(statistics(totals.T)[statistic])
    return out


def _one_row(
    judgments: Judgments,
    rows: PairRows,
    group: SourceGroup,
    cells: Ints,
    options: ReportingOptions,
) -> dict[str, object]:
    """Return the dispersion over the formats that `cells` stand for, on the pairs that all judged."""
    settings = options.formats
    which = METRICS.index(settings.statistic)
    keys = judgments.cells.iloc[cells]
    names = keys["protocol"].astype(str)
    if names.duplicated().any():
        names = names + "|" + keys["constraint"].astype(str)
    own = [np.flatnonzero((rows.cell == cell) & group.member[rows.pair]) for cell in cells]
    common = rows.pair[own[0]]
    for index in own[1:]:
        common = np.intersect1d(common, rows.pair[index], assume_unique=True)
    first = keys.iloc[0]
    row: dict[str, object] = {
        "source": group.name,
        "judge_id": first["judge_id"],
        "temperature": first["temperature"],
        "constrained": bool(first["_constrained"]),
        "statistic": settings.statistic,
        "n_formats": len(cells),
        "n_pairs": len(common),
        "reason": "",
        "interval_reason": "",
    }
    if not len(common):
        return row | {"reason": "no_common_pairs"}
    table = np.stack([rows.sums[index][np.isin(rows.pair[index], common)] for index in own])
    values = statistics(table.sum(axis=1).T)[which]
    if np.isnan(values).any():
        missing = "one_repetition" if settings.statistic.startswith("T_") else "statistic_undefined"
        return row | {"reason": missing}
    pair = rows.pair[own[0]][np.isin(rows.pair[own[0]], common)]
    cluster = group.cluster[pair]
    g = group.n_clusters
    n_formats, k = len(cells), len(COLUMNS)
    flat = table.transpose(1, 0, 2).reshape(len(pair), n_formats * k)
    sums = cluster_sums(flat, cluster, g)

    def spread(totals: Floats) -> Floats:
        shaped = totals.reshape(n_formats, k, -1).transpose(1, 0, 2)
        return dispersion(statistics(shaped)[which])

    drawn = spread(group.resamples.totals(sums))
    total = sums.sum(axis=0)
    rest = np.where(np.abs(total - sums) < 1e-9, 0.0, total - sums)
    counted = np.zeros(g, dtype=bool)
    counted[cluster] = True
    value = dispersion(values)
    found = choose_intervals(
        np.array([value]),
        drawn[None, :],
        spread(rest.T)[:, None],
        counted[:, None],
        np.array([False]),
        options.intervals,
    )
    null = exchange_formats(table, settings.permutations, settings.seed, which)
    null = null[~np.isnan(null)]
    return row | {
        "minimum": values.min(),
        "minimum_format": names.iloc[int(values.argmin())],
        "maximum": values.max(),
        "maximum_format": names.iloc[int(values.argmax())],
        "dispersion": value,
        "low": found.low[0],
        "high": found.high[0],
        "jackknife_se": found.se[0],
        "null_mean": null.mean() if len(null) else np.nan,
        "null_high": np.quantile(null, options.intervals.level) if len(null) else np.nan,
        "p_value": (1 + (null >= value - 1e-12).sum()) / (1 + len(null)),
        "n_clusters": int(found.clusters[0]),
        "interval_reason": str(found.reason[0]),
    }


def format_dispersion(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return the range of T over formats for every source, judge and temperature.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        ``formats``: the fixed set of formats, the statistic and the permutations.

    Returns
    -------
    pandas.DataFrame
        Columns DISPERSION_COLUMNS, shares from 0 to 1. A judge has one row for its unconstrained and one
        for its constrained instruments; with fewer than two formats it has none. ``null_mean`` and
        ``null_high`` are the mean and the upper quantile of the dispersion when formats are exchanged
        within pair; ``p_value`` is the share of exchanges that spread at least as far.

    Notes
    -----
    A range is biased upwards: five equal formats still differ. Read it beside ``null_mean``. The interval
    is that of the range itself, with the same bias. Only pairs that all formats judged count.

    References
    ----------
    Definitions, section 2, after "All Verdicts are Not Equal" (arXiv 2610.12083), section 3.6.
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    judgments.cells["_constrained"] = judgments.cells["constraint"].fillna("none").astype(str) != "none"
    _, rows = rows_of_view(judgments, "strict", chosen)
    found = []
    with threadpool_limits(limits=1, user_api="blas"):
        for group in source_groups(judgments, chosen, ()):
            if group.name == WHOLE:
                continue
            cells = cells_of(judgments, group)
            keys = judgments.cells.iloc[cells]
            keys = keys[keys["protocol"].isin(chosen.formats.formats)]
            for _, part in keys.groupby(["judge_id", "temperature", "_constrained"], dropna=False):
                if part["protocol"].nunique() >= 2:
                    found.append(_one_row(judgments, rows, group, part.index.to_numpy(np.int64), chosen))
    text = (
        "source",
        "judge_id",
        "statistic",
        "minimum_format",
        "maximum_format",
        "reason",
        "interval_reason",
    )
    kinds = {
        c: "str" if c in text else "Int64" if c in ("n_formats", "n_pairs", "n_clusters") else "float64"
        for c in DISPERSION_COLUMNS
    } | {"constrained": "boolean"}
    return pd.DataFrame(found, columns=list(DISPERSION_COLUMNS)).astype(kinds)
