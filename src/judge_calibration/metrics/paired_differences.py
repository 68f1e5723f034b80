"""Paired differences: two cells on the same pairs, resampled together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from judge_calibration.metrics.benjamini_hochberg import benjamini_hochberg
from judge_calibration.metrics.estimation import (
    SourceGroup,
    cells_of,
    left_out_statistics,
    resampled_statistics,
    source_groups,
    sum_groups,
)
from judge_calibration.metrics.holm import holm
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.judgments import CELL_COLUMNS, Ints, Judgments, encode
from judge_calibration.metrics.max_t import max_t_intervals
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.slices import WHOLE, Slicing
from judge_calibration.metrics.trust_statistics import METRICS, denominators, statistics
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.metrics.units import FACTS, PairRows
from judge_calibration.options.reporting import ReportingOptions

DIFFERENCE_COLUMNS = (
    "source",
    *(f"{column}_1" for column in CELL_COLUMNS),
    *(f"{column}_2" for column in CELL_COLUMNS),
    "reduction",
    "slice_by",
    "slice",
    "metric",
    "value_1",
    "value_2",
    "difference",
    "low",
    "high",
    "method",
    "jackknife_se",
    "jackknife_low",
    "jackknife_high",
    "simultaneous_low",
    "simultaneous_high",
    "p_value",
    "adjusted_p",
    "adjustment",
    "n_pairs",
    "n_clusters",
    "reason",
    "interval_reason",
)
"""Columns of the table of paired differences, in order."""

_KEPT = FACTS.index("kept")
_PAIRS = FACTS.index("pairs")


def _restricted(rows: PairRows, cell_pairs: dict[int, Ints], one: int, two: int) -> PairRows:
    """Return the rows of two cells on the pairs that both judged."""
    common = np.intersect1d(cell_pairs[one], cell_pairs[two], assume_unique=True)
    keep = np.isin(rows.cell, (one, two)) & np.isin(rows.pair, common)
    return PairRows(
        rows.cell[keep],
        rows.pair[keep],
        rows.sums[keep],
        rows.identity_first[keep],
        rows.facts[keep],
        rows.repetitions[keep],
    )


class _Side:
    """The statistics of some cells on one slice, with their resamples and left-out values."""

    def __init__(
        self, rows: PairRows, group: SourceGroup, slicing: Slicing, value: int, cells: Ints, chosen: Ints
    ):
        sums = sum_groups(rows, group, slicing.codes, value, cells, _KEPT)
        by_cluster = sums.by_cluster
        self.value: Floats = statistics(by_cluster.sum(axis=1).T)[chosen]
        self.drawn: Floats = resampled_statistics(by_cluster, group.resamples)[chosen]
        self.left_out: Floats = left_out_statistics(by_cluster)[chosen]
        self.counted = (denominators(by_cluster.transpose(2, 0, 1)) > 0)[chosen]
        self.n_pairs = sums.facts[:, _PAIRS]


def _compare(
    group: SourceGroup,
    comparisons: list[tuple[int, int]],
    sides: list[tuple[_Side, int, _Side, int]],
    names: list[str],
    options: ReportingOptions,
) -> pd.DataFrame:
    """Return the rows of the comparisons of one slice: comparisons x metrics."""
    value_1 = np.concatenate([one.value[:, i] for one, i, _, _ in sides])
    value_2 = np.concatenate([two.value[:, j] for _, _, two, j in sides])
    drawn = np.concatenate([one.drawn[:, i] - two.drawn[:, j] for one, i, two, j in sides])
    left_out = np.concatenate([one.left_out[:, i] - two.left_out[:, j] for one, i, two, j in sides]).T
    counted = np.concatenate([one.counted[:, i] & two.counted[:, j] for one, i, two, j in sides]).T
    difference = value_1 - value_2
    found = choose_intervals(
        difference, drawn, left_out, counted, np.zeros(len(difference), dtype=bool), options.intervals
    )
    m = len(names)
    low, high = np.full(len(difference), np.nan), np.full(len(difference), np.nan)
    for k in range(m):
        # One family a statistic: all comparisons made within this slice.
        family = np.arange(k, len(difference), m)
        together = max_t_intervals(
            difference[family], drawn[family], found.se[family], options.intervals.level
        )
        given = found.method[family] != "none"
        low[family] = np.where(given, together.low, np.nan)
        high[family] = np.where(given, together.high, np.nan)
    # An interval that is refused has no test either.
    t = np.where(found.method != "none", np.abs(ratio(difference, found.se)), np.nan)
    return pd.DataFrame(
        {
            "_one": np.repeat([one for one, _ in comparisons], m),
            "_two": np.repeat([two for _, two in comparisons], m),
            "metric": np.tile(np.array(names, dtype=object), len(comparisons)),
            "value_1": value_1,
            "value_2": value_2,
            "difference": difference,
            "low": found.low,
            "high": found.high,
            "method": found.method.astype(object),
            "jackknife_se": found.se,
            "jackknife_low": found.jackknife_low,
            "jackknife_high": found.jackknife_high,
            "simultaneous_low": low,
            "simultaneous_high": high,
            "p_value": _two_sided(t, found.clusters - 1),
            "n_pairs": np.repeat([int(one.n_pairs[i]) for one, i, _, _ in sides], m),
            "n_clusters": found.clusters,
            "reason": np.where(np.isnan(difference), "undefined_in_one_cell", "").astype(object),
            "interval_reason": found.reason.astype(object),
        }
    )


def _two_sided(t: Floats, degrees: Ints) -> Floats:
    """Return the two-sided p value of Student's t; NaN where t is."""
    from scipy.special import stdtr

    usable = ~np.isnan(t) & (degrees >= 1)
    out = np.full(t.shape, np.nan)
    out[usable] = 2 * stdtr(degrees[usable], -t[usable])
    return out


def _block_rows(
    judgments: Judgments,
    rows: PairRows,
    group: SourceGroup,
    block: Ints,
    cell_pairs: dict[int, Ints],
    options: ReportingOptions,
) -> list[pd.DataFrame]:
    """Return the comparisons among cells that share the columns `within`."""
    names = [name for name in METRICS if name in options.comparisons.metrics]
    chosen = np.array([METRICS.index(name) for name in names])
    comparisons = [(int(one), int(two)) for one, two in combinations(block, 2)]
    # Cells that judged the same pairs are resampled once for all their comparisons.
    kinds: dict[bytes, list[int]] = {}
    for cell in block:
        kinds.setdefault(cell_pairs[int(cell)].tobytes(), []).append(int(cell))
    alike = {cell: kind for kind, cells in kinds.items() for cell in cells}
    frames = []
    for slicing in group.slicings:
        if slicing.by != WHOLE and len(comparisons) > options.comparisons.sliced_up_to:
            continue
        for value, name in enumerate(slicing.names):
            shared = {
                kind: _Side(rows, group, slicing, value, np.array(cells), chosen)
                for kind, cells in kinds.items()
                if len(cells) > 1
            }
            sides = []
            for one, two in comparisons:
                if alike[one] == alike[two]:
                    side, cells = shared[alike[one]], kinds[alike[one]]
                    sides.append((side, cells.index(one), side, cells.index(two)))
                    continue
                both = _Side(
                    _restricted(rows, cell_pairs, one, two),
                    group,
                    slicing,
                    value,
                    np.array([one, two]),
                    chosen,
                )
                sides.append((both, 0, both, 1))
            frame = _compare(group, comparisons, sides, names, options)
            frames.append(frame[frame["n_pairs"] > 0].assign(slice_by=slicing.by, slice=name))
    return frames


def paired_differences(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Compare cells statistic by statistic on the pairs that both judged.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        ``comparisons`` says which cells, statistics and slices.

    Returns
    -------
    pandas.DataFrame
        Columns DIFFERENCE_COLUMNS; ``difference`` is value_1 - value_2 in shares (-1 to 1), strict view.
        ``adjusted_p`` is Holm's over the comparisons of the whole (one family a source and statistic) and
        Benjamini-Hochberg's over the exploratory slices; ``simultaneous_low`` and ``_high`` hold together
        for all comparisons of one source, block and slice (max-t). p values are of the cluster-jackknife t.

    Notes
    -----
    Both cells see the same resamples of the same clusters, so that what they share cancels. A difference
    that is not significant is not evidence of equality.

    References
    ----------
    Definitions, section 4.
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    _, rows = rows_of_view(judgments, "strict", chosen)
    frames: list[pd.DataFrame] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for group in source_groups(judgments, chosen, chosen.comparisons.slices):
            if group.name == WHOLE:
                continue
            cells = cells_of(judgments, group)
            inside = group.member[rows.pair]
            cell_pairs = {int(cell): rows.pair[inside & (rows.cell == cell)] for cell in cells}
            keys = judgments.cells.iloc[cells][list(chosen.comparisons.within)]
            blocks = keys.groupby(list(chosen.comparisons.within), dropna=False).indices if len(keys) else {}
            if not chosen.comparisons.within:
                blocks = {WHOLE: np.arange(len(cells))}
            for positions in blocks.values():
                block = cells[np.asarray(positions)]
                if len(block) > 1:
                    found = _block_rows(judgments, rows, group, block, cell_pairs, chosen)
                    frames += [frame.assign(source=group.name) for frame in found]
    if not any(len(frame) for frame in frames):
        return _typed(pd.DataFrame({column: [] for column in DIFFERENCE_COLUMNS}))
    frame = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    for side, column in ((1, "_one"), (2, "_two")):
        keys = judgments.cells.iloc[frame[column].to_numpy()].reset_index(drop=True)
        for name in CELL_COLUMNS:
            frame[f"{name}_{side}"] = keys[name]
    frame["reduction"] = chosen.trust.reduction
    frame["adjusted_p"] = np.nan
    whole = frame["slice_by"] == WHOLE
    frame["adjustment"] = np.where(whole, "holm", "benjamini_hochberg")
    for _, part in frame.groupby(["source", "metric", "adjustment"], sort=False):
        adjust = holm if part["adjustment"].iloc[0] == "holm" else benjamini_hochberg
        frame.loc[part.index, "adjusted_p"] = adjust(part["p_value"])
    return _typed(frame[list(DIFFERENCE_COLUMNS)])


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    text = {"source", "reduction", "slice_by", "slice", "metric", "method", "adjustment", "reason"}
    text |= {"interval_reason"} | {
        f"{name}_{side}" for name in CELL_COLUMNS if name != "temperature" for side in (1, 2)
    }
    kinds = {
        column: "str" if column in text else "Int64" if column in ("n_pairs", "n_clusters") else "float64"
        for column in frame.columns
    }
    return frame.astype(kinds)
