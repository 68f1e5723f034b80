"""Selective judging: keep a verdict only where orders and repetitions agree, with a guaranteed error rate."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.estimation import cell_keys, shown_cells, source_groups
from judge_calibration.metrics.judgments import A, B, Ints, encode
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.share_rows import CELL_KEYS, curve_sums, ratio_intervals
from judge_calibration.metrics.slices import WHOLE
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, SelectiveOptions

SELECTIVE_COLUMNS = (
    *CELL_KEYS,
    "slice_by",
    "slice",
    "method",
    "target_error",
    "confidence",
    "threshold",
    "calibration_pairs",
    "calibration_kept",
    "calibration_error",
    "calibration_bound",
    "held_out_pairs",
    "held_out_kept",
    "held_out_coverage",
    "held_out_error",
    "held_out_low",
    "held_out_high",
    "reason",
)
"""Columns of the selective table, in order."""

CURVE_COLUMNS = (
    *CELL_KEYS,
    "slice_by",
    "slice",
    "threshold",
    "n_pairs",
    "n_kept",
    "coverage",
    "risk",
    "risk_low",
    "risk_high",
    "n_clusters",
    "interval_reason",
)
"""Columns of the risk-coverage curve, in order; an interval holds for its point by itself."""


def clopper_pearson(errors: int, n: int, level: float = 0.95, side: str = "upper") -> float:
    """Return an exact one-sided bound of an error rate.

    Parameters
    ----------
    errors, n : int
        Errors among `n` exchangeable units.
    level : float
        Confidence of the bound.
    side : {'upper', 'lower'}
        Which bound.

    Returns
    -------
    float
        A share from 0 to 1; 1 (or 0) for ``n = 0``.

    References
    ----------
    Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    0 of 29: 1 - .05^(1/29) = .0981, so 29 units without an error are needed to be below 10 %.

    >>> round(clopper_pearson(0, 29), 4), round(clopper_pearson(0, 28), 4)
    (0.0981, 0.1015)
    """
    from scipy.special import betaincinv

    if side == "upper":
        return 1.0 if n == 0 or errors >= n else float(betaincinv(errors + 1, n - errors, level))
    return 0.0 if n == 0 or errors <= 0 else float(betaincinv(errors, n - errors + 1, 1 - level))


class Threshold(NamedTuple):
    """A threshold with its guarantee.

    Attributes
    ----------
    value : float
        Verdicts whose agreement is at least this are kept; NaN if no threshold can be guaranteed.
    bound : float
        Upper bound of the error rate at it (Clopper-Pearson), or the corrected risk (conformal).
    """

    value: float
    bound: float


def clopper_pearson_threshold(
    agreement: npt.ArrayLike, wrong: npt.ArrayLike, error_rate: float, confidence: float
) -> Threshold:
    """Return the lowest threshold at which the error rate among kept verdicts is bounded.

    Parameters
    ----------
    agreement : array-like of shape (n,)
        Agreement of each unit, 0 to 1; one unit a cluster.
    wrong : array-like of bool, shape (n,)
        Whether its verdict was wrong.
    error_rate : float
        Error rate among kept verdicts that must not be exceeded.
    confidence : float
        Probability with which the bound holds.

    Returns
    -------
    Threshold

    Notes
    -----
    Thresholds are tested in a fixed order, from the strictest down, each at the full level, and testing
    stops at the first that fails: the family-wise error stays at 1 - confidence without a correction.
    Thresholds that keep too few units to pass even without an error are not tested; which they are depends
    on the agreements alone, not on the errors.

    References
    ----------
    Definitions, section 4 ("Guarantees").

    Examples
    --------
    Forty right units at agreement 1 and ten wrong ones at .5: at 1 the bound is 1 - .05^(1/40) = .0722.

    >>> found = clopper_pearson_threshold([1.0] * 40 + [0.5] * 10, [0] * 40 + [1] * 10, 0.1, 0.95)
    >>> found.value, round(found.bound, 4)
    (1.0, 0.0722)
    """
    score, bad = np.asarray(agreement, dtype=np.float64), np.asarray(wrong, dtype=bool)
    best = Threshold(float("nan"), float("nan"))
    for threshold in np.unique(score)[::-1]:
        kept = score >= threshold
        if clopper_pearson(0, int(kept.sum()), confidence) > error_rate:
            continue
        bound = clopper_pearson(int(bad[kept].sum()), int(kept.sum()), confidence)
        if bound > error_rate:
            break
        best = Threshold(float(threshold), bound)
    return best


def conformal_risk_threshold(agreement: npt.ArrayLike, wrong: npt.ArrayLike, error_rate: float) -> Threshold:
    """Return the lowest threshold at which the expected share of kept and wrong verdicts is bounded.

    Parameters
    ----------
    agreement, wrong : array-like of shape (n,)
        As for :func:`clopper_pearson_threshold`.
    error_rate : float
        Expected share of all units that may be kept and wrong.

    Returns
    -------
    Threshold
        The bound is ``n / (n + 1) risk + 1 / (n + 1)``.

    Notes
    -----
    The loss (kept and wrong) falls as the threshold rises, so conformal risk control applies. It bounds the
    expected share among all units, not among the kept ones.

    References
    ----------
    Angelopoulos et al. (2024), "Conformal risk control"; definitions, section 4.

    Examples
    --------
    40 right units at 1, 10 wrong at .5: at .5 the risk is 10 / 50, corrected (10 + 1) / 51 = .2157; at 1 it
    is 1 / 51.

    >>> conformal_risk_threshold([1.0] * 40 + [0.5] * 10, [0] * 40 + [1] * 10, 0.1).value
    1.0
    """
    score, bad = np.asarray(agreement, dtype=np.float64), np.asarray(wrong, dtype=bool)
    n = len(score)
    best = Threshold(float("nan"), float("nan"))
    for threshold in np.unique(score)[::-1]:
        bound = (int(bad[score >= threshold].sum()) + 1) / (n + 1)
        if bound > error_rate:
            break
        best = Threshold(float(threshold), bound)
    return best


def calibration_half(base_ids: pd.Series, share: float) -> npt.NDArray[np.bool_]:
    """Tell which clusters calibrate, by a hash, so that adding rows moves none."""

    def position(name: str) -> float:
        digest = hashlib.sha256(f"selective|{name}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    distinct = {name: position(str(name)) < share for name in base_ids.unique()}
    return base_ids.map(distinct).to_numpy(bool)


def agreement_scores(
    counts: npt.ArrayLike,
) -> tuple[Floats, Ints]:
    """Return the share of all reads of a pair that gave its most frequent decisive verdict, and that verdict.

    Parameters
    ----------
    counts : array-like of shape (n_pairs, 5)
        How often reads of both orders said A, B, TIE, ABSTAIN, and how often they failed.

    Returns
    -------
    score : numpy.ndarray of float64
        0 to 1; an even split of A and B scores 0, so that it is never kept before all others.
    verdict : numpy.ndarray of int64
        A or B.

    Examples
    --------
    >>> [values.tolist() for values in agreement_scores([[3, 1, 0, 0, 0], [2, 2, 0, 0, 0]])]
    [[0.75, 0.0], [0, 0]]
    """
    table = np.asarray(counts, dtype=np.float64)
    top = np.maximum(table[:, A], table[:, B])
    split = table[:, A] == table[:, B]
    score = np.where(split, 0.0, ratio(top, table.sum(axis=1)))
    return score, np.where(table[:, A] >= table[:, B], A, B).astype(np.int64)


def _why_none(n: int, method: str, settings: SelectiveOptions) -> str:
    """Return why no threshold is guaranteed: too few pairs even without an error, or too many errors."""
    best = clopper_pearson(0, n, settings.confidence) if method == "clopper_pearson" else 1 / (n + 1)
    return "too_few_pairs" if best > settings.error_rate else "no_threshold_reaches_target"


def _rows(
    score: Floats, wrong: npt.NDArray[np.bool_], base: pd.Series, settings: SelectiveOptions
) -> list[dict[str, object]]:
    """Return one row a method for the pairs of one cell and slice."""
    calibrates = calibration_half(base, settings.calibration_share)
    # Guarantees need exchangeable units: the first pair of each cluster, in the order of the pairs.
    first = ~base.duplicated().to_numpy(bool)
    fit = calibrates & first
    out: list[dict[str, object]] = []
    for method in ("clopper_pearson", "conformal_risk_control"):
        if method == "clopper_pearson":
            found = clopper_pearson_threshold(
                score[fit], wrong[fit], settings.error_rate, settings.confidence
            )
        else:
            found = conformal_risk_threshold(score[fit], wrong[fit], settings.error_rate)
        threshold = found.value
        kept = fit & (score >= threshold) if not np.isnan(threshold) else np.zeros(len(fit), dtype=bool)
        held = ~calibrates & first
        passed = held & (score >= threshold) if not np.isnan(threshold) else np.zeros(len(fit), dtype=bool)
        n, errors = int(passed.sum()), int(wrong[passed].sum())
        both_sides = 0.5 + settings.confidence / 2
        reason = _why_none(int(fit.sum()), method, settings) if np.isnan(threshold) else ""
        out.append(
            {
                "method": method,
                "target_error": settings.error_rate,
                "confidence": settings.confidence if method == "clopper_pearson" else np.nan,
                "threshold": threshold,
                "calibration_pairs": int(fit.sum()),
                "calibration_kept": int(kept.sum()),
                "calibration_error": float(wrong[kept].mean()) if kept.any() else np.nan,
                "calibration_bound": found.bound,
                "held_out_pairs": int(held.sum()),
                "held_out_kept": n,
                "held_out_coverage": n / held.sum() if held.any() else np.nan,
                "held_out_error": errors / n if n else np.nan,
                "held_out_low": clopper_pearson(errors, n, both_sides, "lower") if n else np.nan,
                "held_out_high": clopper_pearson(errors, n, both_sides) if n else np.nan,
                "reason": reason,
            }
        )
    return out


class _Curve(NamedTuple):
    """The curve of one cell and slice: where it is, and hits and items of its points within clusters."""

    where: dict[str, object]
    thresholds: Floats
    over: Floats
    under: Floats


def _curve(
    where: dict[str, object], score: Floats, wrong: npt.NDArray[np.bool_], cluster: Ints, n_clusters: int
) -> _Curve:
    """Return risk at every threshold, the strictest first."""
    falling, place = np.unique(-score, return_inverse=True)
    sums = curve_sums(place.astype(np.int64), wrong, len(falling), cluster, n_clusters, cumulative=True)
    return _Curve(where, -falling, *sums)


def _points(curves: list[_Curve], resamples: Resamples, options: IntervalOptions) -> list[dict[str, object]]:
    """Return the points of all curves with their intervals; together, since each product costs the same."""
    if not curves:
        return []
    over = np.concatenate([curve.over for curve in curves], axis=1)
    under = np.concatenate([curve.under for curve in curves], axis=1)
    parts = [
        ratio_intervals(over[:, at : at + _BATCH], under[:, at : at + _BATCH], resamples, True, options)
        for at in range(0, over.shape[1], _BATCH)
    ]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("value", "low", "high", "clusters", "reason")
    }
    found: list[dict[str, object]] = []
    for curve in curves:
        kept = curve.under.sum(axis=0)
        for threshold, n in zip(curve.thresholds, kept, strict=True):
            i = len(found)
            found.append(
                curve.where
                | {
                    "threshold": threshold,
                    "n_pairs": int(kept[-1]),
                    "n_kept": int(n),
                    "coverage": n / kept[-1],
                    "risk": columns["value"][i],
                    "risk_low": columns["low"][i],
                    "risk_high": columns["high"][i],
                    "n_clusters": int(columns["clusters"][i]),
                    "interval_reason": str(columns["reason"][i]),
                }
            )
    return found


_BATCH = 256
"""Points whose resamples are held at once."""


def selective_tables(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Let every cell abstain where its orders and repetitions disagree, and bound what is left.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        ``selective``: the error rate, the confidence and the share of clusters that calibrates.

    Returns
    -------
    guarantees : pandas.DataFrame
        Columns SELECTIVE_COLUMNS, one row a source, cell, slice (whole, domain, difficulty, manipulation)
        and method. A verdict is kept if the share of the pair's reads, both orders and all repetitions,
        that gave it reaches ``threshold``. ``calibration_bound`` is what is guaranteed; the held-out columns
        are what it gave on other clusters, with an exact interval.
    curve : pandas.DataFrame
        Columns CURVE_COLUMNS: coverage and risk (error rate among kept, with its interval) at every
        threshold, on all pairs.

    Notes
    -----
    One pair a cluster enters the guarantee (the first), since pairs of one cluster are not exchangeable.
    Only pairs with a decisive reference and both orders count. Failed reads count against agreement.

    References
    ----------
    Definitions, section 4 ("Guarantees").
    """
    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    n_pairs = max(len(judgments.pairs), 1)
    key = judgments.cell * n_pairs + judgments.pair
    distinct, row = np.unique(key, return_inverse=True)
    counts = np.bincount(row * 5 + judgments.code, minlength=5 * len(distinct)).reshape(-1, 5)
    orders = np.zeros((len(distinct), 2), dtype=bool)
    orders[row, judgments.order] = True
    cell, pair = distinct // n_pairs, distinct % n_pairs
    reference = judgments.reference[pair]
    usable = orders.all(axis=1) & ~judgments.identity[pair] & ((reference == A) | (reference == B))
    score, verdict = agreement_scores(counts)
    wrong = verdict != reference
    base = judgments.pairs["base_id"]
    guarantees: list[dict[str, object]] = []
    curve: list[dict[str, object]] = []
    for group in source_groups(judgments, chosen, ("domain", "difficulty", "manipulation")):
        if group.name == WHOLE:
            continue
        for c in np.flatnonzero(shown_cells(judgments, group)):
            own = usable & (cell == c) & group.member[pair]
            keys = cell_keys(judgments, int(c)) | {"source": group.name}
            curves: list[_Curve] = []
            for slicing in group.slicings:
                for value, name in enumerate(slicing.names):
                    there = np.flatnonzero(own & (slicing.codes[pair] == value))
                    where = keys | {"slice_by": slicing.by, "slice": name}
                    if not len(there):
                        continue
                    s, w = score[there], wrong[there]
                    for found in _rows(s, w, base.iloc[pair[there]].reset_index(drop=True), chosen.selective):
                        guarantees.append(where | found)
                    curves.append(_curve(where, s, w, group.cluster[pair[there]], group.n_clusters))
            curve += _points(curves, group.resamples, chosen.intervals)
    return _typed(guarantees, SELECTIVE_COLUMNS), _typed(curve, CURVE_COLUMNS)


def _typed(rows: list[dict[str, object]], columns: tuple[str, ...]) -> pd.DataFrame:
    text = {"source", "judge_id", "protocol", "constraint", "instrument_id", "slice_by", "slice", "method"}
    text |= {"reason", "interval_reason"}
    integers = {
        "calibration_pairs",
        "calibration_kept",
        "held_out_pairs",
        "held_out_kept",
        "n_pairs",
        "n_kept",
        "n_clusters",
    }
    kinds = {c: "str" if c in text else "Int64" if c in integers else "float64" for c in columns}
    return pd.DataFrame(rows, columns=list(columns)).astype(kinds)
