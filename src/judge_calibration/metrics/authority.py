"""Earned authority: in which slices a judge may influence a decision, and what is missing in the others.

A judge has earned a slice if every criterion of the decision rule has a lower bound above its floor there,
with enough base tasks. A conjunction of floors needs no correction (intersection-union); over the
predeclared critical slices the p-values are Holm's, over the others Benjamini and Hochberg's.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.errors import GateInputError, Problem
from judge_calibration.metrics.benjamini_hochberg import benjamini_hochberg
from judge_calibration.metrics.clustered_mean import (
    ClusteredMean,
    ClusteredShare,
    clustered_mean,
    clustered_share,
)
from judge_calibration.metrics.holm import holm
from judge_calibration.metrics.judgments import CELL_COLUMNS, FAILED, TIE, A, B, Judgments, encode
from judge_calibration.metrics.manipulations import by_pair
from judge_calibration.metrics.people import of_people
from judge_calibration.metrics.slices import slice_pairs
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.gates import Criterion, DecisionRule
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.schemas import VERDICTS

ALL = "all"
"""Value of ``criterion`` in the row that sums a slice up."""

AUTHORITY_COLUMNS = (
    *CELL_COLUMNS,
    "slice_by",
    "slice",
    "critical",
    "criterion",
    "earned",
    "reason",
    "value",
    "low",
    "high",
    "floor",
    "n_pairs",
    "n_tasks",
    "tasks_to_settle",
    "p_value",
    "adjusted_p",
    "adjustment",
)

_LARGEST_DESIGN = 100_000
_INVARIANCE = {"invariance_length": "length", "invariance_style": "style"}
_BETTER_SIDE = {
    "sensitivity_citation": "citation",
    "sensitivity_correctness": "correctness",
    "sensitivity_polished_but_wrong": "polished_but_wrong",
    "resistance_injection": "injection",
}


class _Evidence(NamedTuple):
    """One value for each (cell, pair) of a criterion; net preferences lie in [-1, 1], shares in [0, 1]."""

    cell: npt.NDArray[np.int64]
    pair: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    net: bool


def authority_table(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    rule: DecisionRule,
    labels: pd.DataFrame | None = None,
    judged_pairs: pd.DataFrame | None = None,
    reporting: ReportingOptions | None = None,
) -> pd.DataFrame:
    """Return for every cell and slice whether the judge has earned it, and why not.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        The calibration set: tables of :mod:`judge_calibration.schemas`.
    rule : DecisionRule
        Slices, floors and levels. (Whether the rule may be used is for the gate to say.)
    labels : pandas.DataFrame, optional
        Human labels: pair_id, label, and attribute (only the overall preference counts). Pairs whose
        reference is human count too.
    judged_pairs : pandas.DataFrame, optional
        The pairs on which the judge is to decide; slices that only they have were never calibrated.
    reporting : ReportingOptions, optional
        The verdict reduction.

    Returns
    -------
    pandas.DataFrame
        Columns `AUTHORITY_COLUMNS`: a row for each cell, slice and criterion, and one with the criterion
        ``all``. ``reason`` is ``earned``, ``below_floor`` (the upper bound too), ``not_settled`` (the bounds
        hold the floor), ``too_few_tasks``, ``no_pairs``, ``no_human_labels``, ``multiplicity`` (only the
        adjusted p-value is too large) or ``never_calibrated``. ``tasks_to_settle`` is the number of base
        tasks at which the bounds would no longer hold the floor if the rate and the dependence within tasks
        stayed as they are; null where no number would (the rate is at the floor).

    Notes
    -----
    Failed judgments count as in the strict view: they agree with nothing and win nothing. Rates get
    binomial bounds with an effective number of pairs, net preferences t bounds from clusters; see
    :mod:`.clustered_mean`.

    References
    ----------
    Definitions, section 8, after "A score is only as trustworthy as the judge that produced it".
    """
    chosen = reporting or ReportingOptions()
    absent = [name for name in rule.slice_by if name not in pairs.columns]
    if absent:
        raise GateInputError(
            "The slices of the decision rule cannot be made.",
            [Problem(f"pairs, column {name}", "no such column", "a column to slice by") for name in absent],
            "slice by columns of the table 'pairs'",
        )
    judgments = encode(verdicts, pairs)
    evidence = _evidence(judgments, labels, chosen)
    by = "*".join(rule.slice_by)
    slicing = slice_pairs(judgments.pairs, by, chosen.quality_gap.edges)
    names = slicing.names if slicing is not None else []
    codes = slicing.codes if slicing is not None else np.full(len(judgments.pairs), -1, dtype=np.int64)
    tasks = judgments.pairs["base_id"].astype(str).to_numpy(dtype=object)
    known = set(names)
    # Critical slices without a single calibration pair get their row too.
    extra = set(rule.critical_slices) - known
    if judged_pairs is not None:
        other = slice_pairs(judged_pairs, by, chosen.quality_gap.edges)
        extra |= set(other.names if other is not None else []) - known
    rows: list[dict[str, object]] = []
    for number, (_, cell) in enumerate(judgments.cells.iterrows()):
        about = {column: cell[column] for column in CELL_COLUMNS} | {"slice_by": by}
        found: list[list[dict[str, object]]] = []
        for code, name in enumerate(names):
            found.append(_slice_rows(evidence, rule, number, codes == code, tasks, name))
        _adjust([rows_of_slice[-1] for rows_of_slice in found], rule)
        rows += [{**about, **row} for rows_of_slice in found for row in rows_of_slice]
        rows += [
            {**about, "slice": name, "criterion": ALL, "earned": False, "reason": "never_calibrated"}
            for name in sorted(extra)
        ]
    frame = pd.DataFrame(rows).reindex(columns=list(AUTHORITY_COLUMNS))
    frame["critical"] = frame["slice"].isin(rule.critical_slices)
    return _typed(frame)


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    numbers = ("temperature", "value", "low", "high", "floor", "p_value", "adjusted_p")
    kinds = dict.fromkeys(numbers, "float64")
    kinds |= dict.fromkeys(("n_pairs", "n_tasks", "tasks_to_settle"), "Int64")
    kinds |= {"earned": "bool", "critical": "bool"}
    return frame.astype({name: kinds.get(name, "str") for name in frame.columns})


def human_labels(pairs: pd.DataFrame, labels: pd.DataFrame | None) -> npt.NDArray[np.int64]:
    """Return each pair's human verdict as a code, -1 where there is none or people disagree evenly.

    An adjudicated label wins; else the most frequent primary label; else a reference of kind ``human``.
    """
    position = {name: k for k, name in enumerate(VERDICTS)}
    found = np.full(len(pairs), -1, dtype=np.int64)
    if {"reference_kind", "reference_label"} <= set(pairs.columns):
        human = (pairs["reference_kind"] == "human").to_numpy(dtype=bool, na_value=False)
        reference = pairs["reference_label"].map(position).fillna(-1).to_numpy(np.int64)
        found = np.where(human, reference, found)
    if labels is None or labels.empty:
        return found
    overall = of_people(labels)
    if "attribute" in overall.columns:
        overall = overall[overall["attribute"].isna()]
    stages = overall["stage"] if "stage" in overall.columns else pd.Series("adjudication", overall.index)
    places = pd.Index(pairs["pair_id"].astype(str)).get_indexer(pd.Index(overall["pair_id"].astype(str)))
    codes = overall["label"].map(position).to_numpy(np.int64)
    for stage in ("primary", "adjudication"):
        rows = (stages == stage).to_numpy(bool) & (places >= 0)
        counts = np.zeros((len(pairs), len(position)), dtype=np.int64)
        np.add.at(counts, (places[rows], codes[rows]), 1)
        ranked = np.sort(counts, axis=1)
        given = ranked[:, -1] > 0
        said = np.where(ranked[:, -1] == ranked[:, -2], -1, counts.argmax(axis=1))
        found[given] = said[given]
    return found


def _evidence(
    judgments: Judgments, labels: pd.DataFrame | None, options: ReportingOptions
) -> dict[str, _Evidence]:
    units, _ = rows_of_view(judgments, "strict", options)
    cell, pair, reduced = by_pair(units, len(judgments.pairs))
    frame = judgments.pairs
    asked = reduced >= 0
    both = asked.all(axis=1)
    identity = judgments.identity[pair]
    reference = judgments.reference[pair]
    manipulation = (
        frame["manipulation"].astype(object).to_numpy()[pair]
        if "manipulation" in frame.columns
        else np.full(len(pair), None, dtype=object)
    )
    modified = (
        frame["modified"].map({"A": A, "B": B}).fillna(-1).to_numpy(np.int64)[pair]
        if "modified" in frame.columns
        else np.full(len(pair), -1)
    )
    agreed = both & (reduced[:, 0] == reduced[:, 1]) & (reduced[:, 0] != FAILED)
    decisive = agreed & ((reduced[:, 0] == A) | (reduced[:, 0] == B))
    human = human_labels(frame, labels)[pair]

    def evidence(where: npt.NDArray[np.bool_], value: np.ndarray, net: bool = False) -> _Evidence:
        return _Evidence(cell[where], pair[where], np.asarray(value, dtype=np.float64)[where], net)

    equal = ((reduced == human[:, None]) & asked).sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    first = (
        (reduced[:, 0] == A).astype(float)
        + (reduced[:, 1] == B)
        - (reduced[:, 0] == B)
        - (reduced[:, 1] == A)
    )
    found = {
        "agreement": evidence((human >= 0) & ~identity & asked.any(axis=1), equal),
        "order_consistency": evidence(both & ~identity, agreed),
        "invariance_identity": evidence(both & identity, first / 2, net=True),
    }
    for name, kind in _INVARIANCE.items():
        where = both & ~identity & (manipulation == kind) & (modified >= 0)
        where &= (reference == TIE) | (reference < 0)
        wins = decisive & (reduced[:, 0] == modified)
        losses = decisive & (reduced[:, 0] != modified)
        found[name] = evidence(where, wins.astype(float) - losses, net=True)
    for name, kind in _BETTER_SIDE.items():
        where = both & ~identity & (manipulation == kind) & ((reference == A) | (reference == B))
        found[name] = evidence(where, agreed & (reduced[:, 0] == reference))
    return found


def _slice_rows(
    evidence: dict[str, _Evidence],
    rule: DecisionRule,
    cell: int,
    inside: npt.NDArray[np.bool_],
    tasks: npt.NDArray[np.object_],
    name: str,
) -> list[dict[str, object]]:
    """Return the rows of one cell's slice, its sum last."""
    rows: list[dict[str, object]] = []
    for criterion, floor in rule.floors.items():
        if criterion in rule.exempt.get(name, ()):
            continue
        part = evidence[criterion]
        chosen = (part.cell == cell) & inside[part.pair]
        row = _judge(part.value[chosen], tasks[part.pair[chosen]], floor, part.net, rule)
        if row["reason"] == "no_pairs" and criterion == "agreement":
            row["reason"] = "no_human_labels"
        rows.append({"slice": name, "criterion": criterion, **row})
    failed = [row for row in rows if not row["earned"]]
    p_values = [float(row["p_value"]) for row in rows]  # type: ignore[arg-type]
    to_settle = [row["tasks_to_settle"] for row in failed]
    rows.append(
        {
            "slice": name,
            "criterion": ALL,
            "earned": bool(rows) and not failed,
            "reason": _reason_of(rows, failed),
            # The conjunction is rejected at the level of its weakest part.
            "p_value": max(p_values) if p_values and not any(map(math.isnan, p_values)) else math.nan,
            "n_tasks": min((int(row["n_tasks"]) for row in rows), default=0),  # type: ignore[call-overload]
            "tasks_to_settle": None
            if not failed or any(n is None for n in to_settle)
            else max(int(n) for n in to_settle),  # type: ignore[call-overload]
        }
    )
    return rows


def _reason_of(rows: list[dict[str, object]], failed: list[dict[str, object]]) -> str:
    if not rows:
        return "exempt_from_everything"
    return "; ".join(f"{row['criterion']}: {row['reason']}" for row in failed) or "earned"


def _judge(
    values: np.ndarray, tasks: np.ndarray, floor: float, net: bool, rule: DecisionRule
) -> dict[str, object]:
    """Return the row of one criterion."""
    alpha = rule.alpha
    if not len(values):
        return {
            "earned": False,
            "reason": "no_pairs",
            "floor": floor,
            "n_pairs": 0,
            "n_tasks": 0,
            "tasks_to_settle": rule.min_tasks,
            "p_value": math.nan,
        }
    found: ClusteredMean | ClusteredShare
    if net:
        found = mean = clustered_mean(values, tasks)
        low, high = mean.bounds(alpha)
        value = 1 - abs(mean.value)
        # Both directions of preference have to stay within 1 - floor.
        p_value = max(mean.p_above(floor - 1), mean.p_below(1 - floor))
        lower = 1 - max(abs(low), abs(high)) if not math.isnan(low) else math.nan
        upper = 1 - max(low, -high, 0.0) if not math.isnan(low) else math.nan
    else:
        found = share = clustered_share(values, tasks)
        lower, upper = share.bounds(alpha)
        value, p_value = share.value, share.p_above(floor, alpha)
    above = lower > floor
    if math.isnan(lower) or found.clusters < rule.min_tasks:
        reason = "too_few_tasks"
    elif above:
        reason = "earned"
    else:
        reason = "below_floor" if upper < floor else "not_settled"
    settle = None
    if reason == "too_few_tasks" and (math.isnan(lower) or above):
        settle = rule.min_tasks
    elif reason in ("too_few_tasks", "not_settled"):
        settle = tasks_to_settle(found, floor, alpha, rule.min_tasks)
    elif reason == "below_floor":
        settle = found.clusters
    return {
        "earned": reason == "earned",
        "reason": reason,
        "value": value,
        "low": lower,
        "high": upper,
        "floor": floor,
        "n_pairs": found.n,
        "n_tasks": found.clusters,
        "tasks_to_settle": settle,
        "p_value": p_value,
    }


def tasks_to_settle(
    found: ClusteredMean | ClusteredShare, floor: float, alpha: float, at_least: int = 2
) -> int | None:
    """Return how many base tasks would put the floor outside the bounds, if all else stayed as it is.

    Parameters
    ----------
    found : ClusteredMean or ClusteredShare
        What was seen: its value, and the dependence within tasks.
    floor : float
        The floor of the share, or of 1 less the absolute net preference.
    alpha : float
        Level of each bound.
    at_least : int
        The smallest answer.

    Returns
    -------
    int or None
        None if no number up to 100,000 would (the value is at the floor).

    Examples
    --------
    All of 20 tasks right and a floor of .9: .05^(1/n) exceeds .9 from n = 29 on.

    >>> share = clustered_share([1] * 20, range(20))
    >>> tasks_to_settle(share, 0.9, 0.05)
    29
    """

    def settled(tasks: int) -> bool:
        scale = tasks / found.clusters
        if isinstance(found, ClusteredShare):
            n = max(2, round(found.n * scale))
            grown = ClusteredShare(found.value, found.effective_n * scale, n, tasks)
            low, high = grown.bounds(alpha)
            return low > floor or high < floor
        se = max(found.se / math.sqrt(scale), (1 + abs(found.value)) / (tasks + 1))
        low, high = ClusteredMean(found.value, se, found.n, tasks).bounds(alpha)
        return 1 - max(abs(low), abs(high)) > floor or 1 - max(low, -high, 0.0) < floor

    if found.clusters < 2:
        return at_least
    high = max(2, at_least)
    while not settled(high):
        high *= 2
        if high > _LARGEST_DESIGN:
            return None
    low = max(2, at_least)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle + 1, high)
    return high


def _adjust(sums: list[dict[str, object]], rule: DecisionRule) -> None:
    """Adjust the p-values over slices, in place; what only fails then is ``multiplicity``."""
    for critical, method, name in ((True, holm, "holm"), (False, benjamini_hochberg, "benjamini_hochberg")):
        family = [row for row in sums if (row["slice"] in rule.critical_slices) == critical]
        if not family:
            continue
        adjusted = method([float(row["p_value"]) for row in family])  # type: ignore[arg-type]
        for row, p in zip(family, adjusted, strict=True):
            row["adjusted_p"], row["adjustment"] = float(p), name
            if row["earned"] and not p <= rule.alpha:
                row["earned"], row["reason"] = False, "multiplicity"


def calibration_shift(
    calibration: pd.DataFrame, judged: pd.DataFrame, slice_by: tuple[str, ...] = ("domain",)
) -> pd.DataFrame:
    """Return how the pairs to be judged differ from those the judge was calibrated on.

    Parameters
    ----------
    calibration, judged : pandas.DataFrame
        Tables of pairs.
    slice_by : tuple of str
        Columns that make the slices.

    Returns
    -------
    pandas.DataFrame
        One row a slice, language and length quartile (of question and responses together, in characters,
        with the calibration set's quartiles as limits): kind, name, calibration_n, calibration_share,
        judged_n, judged_share, difference, and never_calibrated.

    Examples
    --------
    >>> calibration = pd.DataFrame({"domain": ["a", "a"], "question": ["x", "xx"]})
    >>> judged = pd.DataFrame({"domain": ["a", "b"], "question": ["x", "xx"]})
    >>> shift = calibration_shift(calibration, judged)
    >>> shift.loc[shift["kind"] == "slice", ["name", "judged_share", "never_calibrated"]].values.tolist()
    [['a', 0.5, False], ['b', 0.5, True]]
    """
    groups: list[tuple[str, pd.Series, pd.Series]] = []
    by = "*".join(slice_by)
    labels = []
    for frame in (calibration, judged):
        slicing = slice_pairs(frame, by)
        text = np.full(len(frame), "no value", dtype=object)
        if slicing is not None:
            known = slicing.codes >= 0
            text[known] = np.asarray(slicing.names, dtype=object)[slicing.codes[known]]
        labels.append(pd.Series(text))
    groups.append(("slice", labels[0], labels[1]))
    if "language" in calibration.columns and "language" in judged.columns:
        groups.append(
            ("language", calibration["language"].fillna("no value"), judged["language"].fillna("no value"))
        )
    texts = [c for c in ("question", "response_a", "response_b") if c in calibration and c in judged]
    if texts and len(calibration):
        sizes = [sum(frame[c].fillna("").str.len() for c in texts) for frame in (calibration, judged)]
        edges = np.quantile(sizes[0], [0.25, 0.5, 0.75])
        names = [f"quartile {k + 1}" for k in range(4)]
        banded = [pd.Series([names[k] for k in np.searchsorted(edges, size, side="left")]) for size in sizes]
        groups.append(("length", banded[0], banded[1]))
    rows = []
    for kind, before, after in groups:
        counts = pd.DataFrame({"calibration_n": before.value_counts(), "judged_n": after.value_counts()})
        counts = counts.fillna(0).astype("int64").sort_index()
        for name, row in counts.iterrows():
            shares = [row["calibration_n"] / max(len(before), 1), row["judged_n"] / max(len(after), 1)]
            rows.append(
                {
                    "kind": kind,
                    "name": str(name),
                    "calibration_n": int(row["calibration_n"]),
                    "calibration_share": shares[0],
                    "judged_n": int(row["judged_n"]),
                    "judged_share": shares[1],
                    "difference": shares[1] - shares[0],
                    "never_calibrated": bool(row["calibration_n"] == 0 and row["judged_n"] > 0),
                }
            )
    return pd.DataFrame(rows)


def earned_slices(authority: pd.DataFrame) -> dict[str, str]:
    """Return the reason for every slice of one cell's authority table; ``earned`` where it is."""
    sums = authority[authority["criterion"] == ALL]
    return dict(zip(sums["slice"].astype(str), sums["reason"].astype(str), strict=True))


__all__ = [
    "ALL",
    "AUTHORITY_COLUMNS",
    "Criterion",
    "authority_table",
    "calibration_shift",
    "earned_slices",
    "human_labels",
    "tasks_to_settle",
]
