"""Confidence against being right: of stated, log-probability and repeat confidence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.estimation import SourceGroup, cell_keys, shown_cells, source_groups
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.judgments import ABSTAIN, CELL_COLUMNS, A, B, Ints, Judgments, encode
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.share_rows import CELL_KEYS, curve_sums, ratio_intervals
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

KINDS = ("stated", "log_probability", "repeat_agreement")
"""Where a confidence comes from."""

CONFIDENCE_COLUMNS = (
    *CELL_KEYS,
    "confidence",
    "statistic",
    "value",
    "low",
    "high",
    "method",
    "jackknife_se",
    "expected_if_calibrated",
    "n_items",
    "n_without",
    "n_clusters",
    "reason",
    "interval_reason",
)
"""Columns of the confidence table, in order."""

CURVE_COLUMNS = (
    *CELL_KEYS,
    "confidence",
    "curve",
    "position",
    "low_edge",
    "high_edge",
    "n_items",
    "mean_confidence",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "coverage",
    "risk",
    "risk_low",
    "risk_high",
    "n_clusters",
    "interval_reason",
)
"""Columns of the curves, in order; an interval holds for its point by itself."""

# More distinct confidences than this are ranked in so many groups of equal size, which bounds a resample.
_LEVELS = 200


def brier_score(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Return the mean squared difference between confidence and being right.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Stated probability of being right, 0 to 1.
    right : array-like of bool, shape (n,)
        Whether the verdict was right.

    Returns
    -------
    float
        0 (sure and right) to 1; NaN without an item.

    Examples
    --------
    (.1^2 + .4^2) / 2

    >>> round(brier_score([0.9, 0.4], [1, 0]), 4)
    0.085
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return float(((p - y) ** 2).mean()) if len(p) else float("nan")


def calibration_error(count: npt.ArrayLike, confidence: npt.ArrayLike, right: npt.ArrayLike) -> Floats:
    """Return the expected calibration error from sums in bins.

    Parameters
    ----------
    count, confidence, right : array-like of shape (bins, ...)
        Number of items, sum of confidences and number of right verdicts in each bin.

    Returns
    -------
    numpy.ndarray of float64
        Mean over items of the absolute gap between confidence and accuracy of their bin, 0 to 1.

    Notes
    -----
    Biased upwards: a perfectly calibrated judge has gaps by chance. The table gives what such a judge would
    show with the same confidences and number of items (``expected_if_calibrated``).

    Examples
    --------
    Bins of 2 and 2 items: |1.8 - 1| / 4 + |0.4 - 0| / 4 = .3.

    >>> float(calibration_error([2, 2], [1.8, 0.4], [1, 0]).round(4))
    0.3
    """
    n, p, y = (np.asarray(values, dtype=np.float64) for values in (count, confidence, right))
    return ratio(np.abs(p - y).sum(axis=0), n.sum(axis=0))


def expected_calibration_error_if_calibrated(
    confidence: npt.ArrayLike, bin_of: npt.ArrayLike, bins: int
) -> float:
    """Return the mean calibration error of a perfectly calibrated judge with these confidences.

    Notes
    -----
    In each bin the number of right verdicts is a sum of independent draws; its mean absolute deviation is
    taken from the normal approximation, ``sqrt(2 / pi)`` standard deviations.

    Examples
    --------
    100 items at .5: sqrt(2 / pi) x 5 / 100 = .0399.

    >>> round(expected_calibration_error_if_calibrated([0.5] * 100, [0] * 100, 1), 4)
    0.0399
    """
    p = np.asarray(confidence, dtype=np.float64)
    if not len(p):
        return float("nan")
    variance = np.bincount(np.asarray(bin_of), weights=p * (1 - p), minlength=bins)
    return float(np.sqrt(2 / np.pi * variance).sum() / len(p))


def ranking_area(wrong: npt.ArrayLike, right: npt.ArrayLike) -> Floats:
    """Return AUROC: the chance that a right verdict has more confidence than a wrong one.

    Parameters
    ----------
    wrong, right : array-like of shape (levels, ...)
        Number of wrong and right verdicts at each level of confidence, rising.

    Returns
    -------
    numpy.ndarray of float64
        0 to 1, ties counting half; NaN if all are right or all wrong.

    Examples
    --------
    Right at levels 1 and 2, wrong at 0 and 1: of 4 pairs 3 are ranked right and one is a tie: .875.

    >>> float(ranking_area([1, 1, 0], [0, 1, 1]))
    0.875
    """
    low, high = np.asarray(wrong, dtype=np.float64), np.asarray(right, dtype=np.float64)
    below = np.cumsum(low, axis=0) - low
    return ratio((high * (below + low / 2)).sum(axis=0), low.sum(axis=0) * high.sum(axis=0))


def risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Return thresholds, coverage and risk when only verdicts at or above a threshold are kept.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Confidence of each verdict.
    right : array-like of bool, shape (n,)
        Whether it was right.

    Returns
    -------
    thresholds : numpy.ndarray
        Distinct confidences, falling.
    coverage : numpy.ndarray
        Share of verdicts kept, 0 to 1.
    risk : numpy.ndarray
        Share of wrong ones among the kept, 0 to 1.

    Examples
    --------
    >>> [values.tolist() for values in risk_coverage([0.9, 0.5, 0.5], [1, 1, 0])]
    [[0.9, 0.5], [0.3333333333333333, 1.0], [0.0, 0.3333333333333333]]
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    thresholds, place = np.unique(-p, return_inverse=True)
    kept = np.cumsum(np.bincount(place, minlength=len(thresholds)))
    wrong = np.cumsum(np.bincount(place, weights=1 - y, minlength=len(thresholds)))
    return -thresholds, ratio(kept, max(len(p), 1)), ratio(wrong, kept)


def _items(
    judgments: Judgments, verdicts: pd.DataFrame, kind: str, options: ReportingOptions
) -> tuple[Ints, Ints, Floats, npt.NDArray[np.bool_], Ints]:
    """Return cell, pair, confidence and right of verdicts that could be right; cells of those without."""
    if kind == "repeat_agreement":
        units, _ = rows_of_view(judgments, "strict", options)
        n = units.counts.sum(axis=1)
        said = units.reduced <= ABSTAIN
        usable = said & (n >= 2)
        level = np.where(usable, units.counts[np.arange(len(n)), np.minimum(units.reduced, ABSTAIN)], 0)
        cell, pair, code = units.cell, units.pair, units.reduced
        confidence = np.where(usable, ratio(level, n), np.nan)
    else:
        column = "confidence" if kind == "stated" else "logprob_confidence"
        cell, pair, code = judgments.cell, judgments.pair, judgments.code
        confidence = _sorted_like(judgments, verdicts, column)
    confidence = np.where((confidence >= 0) & (confidence <= 1), confidence, np.nan)
    reference = judgments.reference[pair]
    answerable = ((reference == A) | (reference == B)) & ~judgments.identity[pair] & (code <= ABSTAIN)
    known = answerable & ~np.isnan(confidence)
    return cell[known], pair[known], confidence[known], (code == reference)[known], cell[answerable & ~known]


def _sorted_like(judgments: Judgments, verdicts: pd.DataFrame, column: str) -> Floats:
    """Return a numeric column of the verdicts in the order of the judgments."""
    if column not in verdicts.columns:
        return np.full(len(judgments.code), np.nan)
    values = pd.to_numeric(verdicts[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
    keys = verdicts.reindex(columns=[*CELL_COLUMNS, "pair_id", "order", "repetition"]).reset_index(drop=True)
    cells = judgments.cells.reset_index(names="_cell")
    keys["temperature"] = keys["temperature"].astype(float)
    cell = keys.merge(cells, on=CELL_COLUMNS, how="left")["_cell"].to_numpy(np.int64)
    pair = pd.Index(judgments.pairs["pair_id"]).get_indexer(pd.Index(keys["pair_id"]))
    order = (keys["order"] == "BA").to_numpy(np.int64)
    repetition = keys["repetition"].to_numpy(np.int64)
    return values[np.lexsort((repetition, order, pair, cell))]


def _ranks(confidence: Floats) -> tuple[int, Ints]:
    """Return the number of rank groups and the group of each item, rising with confidence."""
    distinct, place = np.unique(confidence, return_inverse=True)
    if len(distinct) <= _LEVELS:
        return len(distinct), place.astype(np.int64)
    # Equal confidences stay together: a group is given by the middle rank of its value.
    counts = np.bincount(place)
    middle = np.cumsum(counts) - counts / 2
    group = np.minimum((middle / len(confidence) * _LEVELS).astype(np.int64), _LEVELS - 1)
    return _LEVELS, group[place]


def _cell_rows(
    confidence: Floats,
    right: npt.NDArray[np.bool_],
    cluster: Ints,
    group: SourceGroup,
    resamples: Resamples,
    bins: int,
    options: IntervalOptions,
) -> pd.DataFrame:
    """Return Brier score, calibration error, AUROC and mean confidence of one cell."""
    g = group.n_clusters
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    used, place = _ranks(confidence)

    def table(index: Ints, size: int, weights: Floats) -> Floats:
        flat = np.bincount(cluster * size + index, weights=weights, minlength=g * size)
        return flat.astype(np.float64).reshape(g, size)

    y = right.astype(np.float64)
    ones = np.ones(len(y))
    sums = np.concatenate(
        [
            table(bin_of, bins, ones),
            table(bin_of, bins, confidence),
            table(bin_of, bins, y),
            table(np.zeros(len(y), dtype=np.int64), 1, (confidence - y) ** 2),
            table(place, used, 1 - y),
            table(place, used, y),
        ],
        axis=1,
    )

    def of(totals: Floats) -> Floats:
        count, stated, good = (totals[k * bins : (k + 1) * bins] for k in range(3))
        wrong = totals[3 * bins + 1 : 3 * bins + 1 + used]
        best = totals[3 * bins + 1 + used :]
        n = count.sum(axis=0)
        return np.stack(
            [
                ratio(totals[3 * bins], n),
                calibration_error(count, stated, good),
                ranking_area(wrong, best),
                ratio(stated.sum(axis=0), n),
                ratio(good.sum(axis=0), n),
            ]
        )

    total = sums.sum(axis=0)
    rest = np.where(np.abs(total - sums) < 1e-9, 0.0, total - sums)
    met = np.zeros(g, dtype=bool)
    met[cluster] = True
    found = choose_intervals(
        of(total),
        of(resamples.totals(sums)),
        of(rest.T).T,
        np.repeat(met[:, None], 5, axis=1),
        np.ones(5, dtype=bool),
        options,
    )
    expected = expected_calibration_error_if_calibrated(confidence, bin_of, bins)
    return pd.DataFrame(
        {
            "statistic": ["brier", "calibration_error", "auroc", "mean_confidence", "accuracy"],
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "method": found.method.astype(object),
            "jackknife_se": found.se,
            "expected_if_calibrated": [np.nan, expected, 0.5, np.nan, np.nan],
            "n_items": len(y),
            "n_clusters": found.clusters,
            "reason": ["", "", "all_right_or_all_wrong" if np.isnan(found.value[2]) else "", "", ""],
            "interval_reason": found.reason.astype(object),
        }
    )


def _curves(
    confidence: Floats,
    right: npt.NDArray[np.bool_],
    cluster: Ints,
    group: SourceGroup,
    bins: int,
    options: IntervalOptions,
) -> pd.DataFrame:
    """Return the reliability curve and the risk-coverage curve of one cell."""
    bin_of = np.minimum((confidence * bins).astype(np.int64), bins - 1)
    n = np.bincount(bin_of, minlength=bins)
    sums = curve_sums(bin_of, right, bins, cluster, group.n_clusters)
    in_bins = ratio_intervals(*sums, group.resamples, True, options)
    reliability = pd.DataFrame(
        {
            "curve": "reliability",
            "position": np.arange(bins),
            "low_edge": np.arange(bins) / bins,
            "high_edge": np.arange(1, bins + 1) / bins,
            "n_items": n,
            "mean_confidence": ratio(np.bincount(bin_of, weights=confidence, minlength=bins), n),
            "accuracy": in_bins.value,
            "accuracy_low": in_bins.low,
            "accuracy_high": in_bins.high,
            "n_clusters": in_bins.clusters,
            "interval_reason": in_bins.reason.astype(object),
        }
    )
    thresholds, coverage, _ = risk_coverage(confidence, right)
    shown = np.arange(len(thresholds))
    if len(thresholds) > _LEVELS:
        shown = np.unique(np.linspace(0, len(thresholds) - 1, _LEVELS).astype(np.int64))
    # An item is kept from the first shown threshold on that does not exceed its confidence. The last shown
    # one is the lowest of all, so that every item is kept somewhere.
    place = np.searchsorted(-thresholds[shown], -confidence)
    sums = curve_sums(place, ~right, len(shown), cluster, group.n_clusters, cumulative=True)
    kept = ratio_intervals(*sums, group.resamples, True, options)
    tradeoff = pd.DataFrame(
        {
            "curve": "risk_coverage",
            "position": np.arange(len(shown)),
            "low_edge": thresholds[shown],
            "n_items": np.rint(coverage[shown] * len(right)).astype(np.int64),
            "coverage": coverage[shown],
            "risk": kept.value,
            "risk_low": kept.low,
            "risk_high": kept.high,
            "n_clusters": kept.clusters,
            "interval_reason": kept.reason.astype(object),
        }
    )
    return pd.concat([reliability, tradeoff], ignore_index=True)


def confidence_tables(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare confidence with being right, for every cell and kind of confidence.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        ``confidence.bins`` and the intervals.

    Returns
    -------
    summary : pandas.DataFrame
        Columns CONFIDENCE_COLUMNS: Brier score, calibration error, AUROC, mean confidence and accuracy, all
        0 to 1, of the valid verdicts on pairs with a decisive reference; ``n_without`` counts those without
        a confidence. ``confidence`` is ``stated``, ``log_probability`` or ``repeat_agreement`` (share of
        the repetitions that gave the reduced verdict). A cell without any has one row with the reason
        ``no_confidence``.
    curves : pandas.DataFrame
        Columns CURVE_COLUMNS: the reliability curve by bin, and risk by coverage by threshold (``low_edge``).

    Notes
    -----
    A confidence outside 0 to 1 is treated as absent. None of this enters T.

    References
    ----------
    Definitions, section 2 ("Confidence").
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    bins = chosen.confidence.bins
    judgments = encode(verdicts, pairs)
    summary, curves = [], []
    with threadpool_limits(limits=1, user_api="blas"):
        groups = source_groups(judgments, chosen, ())
        for kind in KINDS:
            cell, pair, confidence, right, without = _items(judgments, verdicts, kind, chosen)
            for group in groups:
                for c in np.flatnonzero(shown_cells(judgments, group)):
                    own = (cell == c) & (group.cluster[pair] >= 0)
                    keys = cell_keys(judgments, int(c)) | {"source": group.name, "confidence": kind}
                    if not own.any():
                        reason = "one_repetition" if kind == "repeat_agreement" else "no_confidence"
                        row = {
                            "statistic": "brier",
                            "reason": reason,
                            "interval_reason": "statistic_undefined",
                        }
                        summary.append(pd.DataFrame([keys | row | {"method": "none", "n_items": 0}]))
                        continue
                    cluster = group.cluster[pair[own]]
                    rows = _cell_rows(
                        confidence[own], right[own], cluster, group, group.resamples, bins, chosen.intervals
                    )
                    rows["n_without"] = int((without == c).sum())
                    curve = _curves(confidence[own], right[own], cluster, group, bins, chosen.intervals)
                    summary.append(_keyed(rows, keys))
                    curves.append(_keyed(curve, keys))
    return _typed(summary, CONFIDENCE_COLUMNS), _typed(curves, CURVE_COLUMNS)


def _keyed(frame: pd.DataFrame, keys: dict[str, object]) -> pd.DataFrame:
    """Put the same keys before every row."""
    repeated = pd.DataFrame([keys] * len(frame))
    return pd.concat([repeated, frame.reset_index(drop=True)], axis=1)


def _typed(frames: list[pd.DataFrame], columns: tuple[str, ...]) -> pd.DataFrame:
    text = {"source", "judge_id", "protocol", "constraint", "instrument_id", "confidence", "statistic"}
    text |= {"method", "reason", "interval_reason", "curve"}
    integers = {"n_items", "n_without", "n_clusters", "position"}
    kinds = {c: "str" if c in text else "Int64" if c in integers else "float64" for c in columns}
    parts = [frame.reindex(columns=list(columns)).astype(kinds) for frame in frames]
    if not parts:
        return pd.DataFrame({column: [] for column in columns}).astype(kinds)
    return pd.concat(parts, ignore_index=True)
