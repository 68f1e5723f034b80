"""The sentinel: is the judge still the instrument that was calibrated?

A protected set of pairs is judged again at every change and compared, pair by pair, with the frozen run.
A judge that does not repeat itself changes some verdicts by chance; only what it changes beyond its own
noise, and what it changes in being right or in failing, counts as drift.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.errors import GateInputError, Problem
from judge_calibration.metrics.clustered_mean import ClusteredMean, clustered_mean
from judge_calibration.metrics.consistency import pair_agreement
from judge_calibration.metrics.judgments import FAILED, NO_REFERENCE, A, B, encode
from judge_calibration.metrics.units import Units, reduce_judgments
from judge_calibration.options.gates import SentinelRule

Stability = Literal["stable", "drift", "too_few"]


class Measure(NamedTuple):
    """One paired comparison of the two runs.

    Attributes
    ----------
    name : {"changed", "accuracy", "failures"}
        ``changed``: probability that a frozen and a new read of one (pair, order) differ, less the mean of
        the probabilities that two frozen and two new reads differ (with one repetition there is nothing to
        subtract). ``accuracy``: new less frozen share of right reads. ``failures``: new less frozen share
        of failed reads.
    value, low, high : float
        With one-sided bounds at alpha each.
    margin : float
        What is allowed: ``value <= margin`` for changed, within ``+/- margin`` for the others.
    status : {"stable", "drift", "too_few"}
    """

    name: str
    value: float
    low: float
    high: float
    margin: float
    status: Stability


class SentinelResult(NamedTuple):
    """The result of :func:`compare_sentinel`.

    Attributes
    ----------
    status : {"stable", "drift", "too_few"}
        ``drift`` if any measure drifted; ``stable`` only if all are shown to be stable.
    reason : str
    measures : tuple of Measure
    pairs, tasks : int
        Pairs in both runs and their base tasks.
    absent : tuple of str
        Sentinel pairs of the frozen run that the new run lacks.
    noise_known : bool
        Whether both runs had repetitions, so that the judge's own noise is subtracted.
    """

    status: Stability
    reason: str
    measures: tuple[Measure, ...]
    pairs: int
    tasks: int
    absent: tuple[str, ...]
    noise_known: bool


def compare_sentinel(
    frozen: pd.DataFrame,
    current: pd.DataFrame,
    pairs: pd.DataFrame,
    rule: SentinelRule,
    alpha: float = 0.05,
) -> SentinelResult:
    """Compare a new run on the sentinel pairs with the frozen one.

    Parameters
    ----------
    frozen, current : pandas.DataFrame
        Verdicts of one cell each, whatever their instrument; rows of other pairs are ignored.
    pairs : pandas.DataFrame
        With the boolean column sentinel.
    rule : SentinelRule
    alpha : float
        Level of every one-sided bound.

    Returns
    -------
    SentinelResult

    Raises
    ------
    GateInputError
        If there is no sentinel pair, or a run holds several cells.

    Notes
    -----
    Stable is a claim that has to be shown (equivalence tests), so few pairs give ``too_few``, never
    ``stable``. A pair that is absent from the new run counts as failed there: a judge that no longer
    answers is not the same instrument.

    References
    ----------
    Definitions, section 8.
    """
    protected = pairs[pairs["sentinel"].astype(bool)] if "sentinel" in pairs.columns else pairs.iloc[:0]
    if protected.empty:
        raise GateInputError(
            "There is no sentinel set.",
            [Problem("pairs, column sentinel", "no pair is marked", "a protected subset")],
            "mark a stratified subset of pairs as sentinel and judge it with the calibrated instrument",
        )
    ids = set(protected["pair_id"])
    before = _units(frozen[frozen["pair_id"].isin(ids)], protected, "frozen run")
    after = _units(current[current["pair_id"].isin(ids)], protected, "new run")
    first, second, pair = _matched(before, after)
    names = protected["pair_id"].astype(str).to_numpy(dtype=object)
    shared = np.unique(after.pair)
    absent = tuple(names[k] for k in np.unique(before.pair) if k not in shared)
    reference = encode_reference(protected)[pair]
    tasks = protected["base_id"].astype(str).to_numpy(dtype=object)[pair]

    repeated = bool((first.sum(axis=1) >= 2).all() and (second.sum(axis=1) >= 2).all() and len(first))
    p, q = (table / np.maximum(table.sum(axis=1, keepdims=True), 1) for table in (first, second))
    # Two failures are no agreement: a read that failed cannot be compared.
    changed = 1 - (p[:, :FAILED] * q[:, :FAILED]).sum(axis=1)
    if repeated:
        own = [1 - pair_agreement(table) for table in (first, second)]
        changed = changed - (own[0] + own[1]) / 2
    answerable = (reference == A) | (reference == B)
    right = np.where(answerable, reference, 0)
    rows = np.arange(len(pair))
    gain = (q[rows, right] - p[rows, right])[answerable]
    failures = q[:, FAILED] - p[:, FAILED]
    measures = [_changed(clustered_mean(changed, tasks), rule, alpha)]
    if answerable.any():
        measures.append(
            _within("accuracy", clustered_mean(gain, tasks[answerable]), rule.accuracy_margin, rule, alpha)
        )
    measures.append(_within("failures", clustered_mean(failures, tasks), rule.max_changed, rule, alpha))
    drifted = [measure.name for measure in measures if measure.status == "drift"]
    open_ones = [measure.name for measure in measures if measure.status == "too_few"]
    status: Stability = "drift" if drifted else "too_few" if open_ones else "stable"
    reason = f"drift: {', '.join(drifted)}" if drifted else ""
    if status == "too_few":
        n = len(set(tasks))
        few = f"{n} base tasks, {rule.min_tasks} wanted" if n < rule.min_tasks else "bounds hold the margin"
        reason = f"too_few: {', '.join(open_ones)} ({few})"
    return SentinelResult(
        status, reason, tuple(measures), len(np.unique(pair)), len(set(tasks)), absent, repeated
    )


def encode_reference(pairs: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return each pair's decisive reference as a code, NO_REFERENCE else."""
    if "reference_label" not in pairs.columns:
        return np.full(len(pairs), NO_REFERENCE, dtype=np.int64)
    codes = pairs["reference_label"].map({"A": A, "B": B}).fillna(NO_REFERENCE)
    return np.asarray(codes, dtype=np.int64)


def _units(verdicts: pd.DataFrame, pairs: pd.DataFrame, run: str) -> Units:
    """Return the counts of one run, by row of `pairs`."""
    judgments = encode(verdicts, pairs)
    if len(judgments.cells) > 1:
        raise GateInputError(
            "The sentinel compares one judge with itself.",
            [Problem(run, f"{len(judgments.cells)} cells", "one judge, protocol and temperature")],
            "choose the judge, protocol and temperature to compare",
        )
    units = reduce_judgments(judgments, judgments.code, "first_read")
    row = pd.Index(pairs["pair_id"]).get_indexer(pd.Index(judgments.pairs["pair_id"]))
    return Units(units.cell, row[units.pair], units.order, units.counts, units.reduced)


def _matched(
    before: Units, after: Units
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the counts of both runs for every (pair, order) of the frozen one, and its pair."""
    place = {(p, o): k for k, (p, o) in enumerate(zip(after.pair, after.order, strict=True))}
    lost = np.zeros((1, 5), dtype=np.int64)
    lost[0, FAILED] = 1
    table = np.concatenate([after.counts, lost]) if len(after.counts) else lost
    at = [place.get((p, o), len(table) - 1) for p, o in zip(before.pair, before.order, strict=True)]
    return before.counts, table[np.asarray(at, dtype=np.int64)], before.pair


def _changed(mean: ClusteredMean, rule: SentinelRule, alpha: float) -> Measure:
    low, high = mean.bounds(alpha)
    status: Stability = "too_few"
    if not math.isnan(low) and mean.clusters >= rule.min_tasks:
        status = "stable" if high < rule.max_changed else "drift" if low > rule.max_changed else "too_few"
    return Measure("changed", mean.value, low, high, rule.max_changed, status)


def _within(name: str, mean: ClusteredMean, margin: float, rule: SentinelRule, alpha: float) -> Measure:
    low, high = mean.bounds(alpha)
    status: Stability = "too_few"
    if not math.isnan(low) and mean.clusters >= rule.min_tasks:
        inside, outside = low > -margin and high < margin, low > margin or high < -margin
        status = "stable" if inside else "drift" if outside else "too_few"
    return Measure(name, mean.value, low, high, margin, status)
