"""The two-key gate: a product change passes if the judge and a blinded human sample both say so.

Key 1 is the judge's net preference for the new product, key 2 the human sample on every critical slice.
The gate pauses, whatever the numbers, where the judge has not earned a critical slice, is not the
calibrated instrument, or has drifted. Slices with other than ordinary stakes never pass on a judge alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.errors import GateInputError, Problem
from judge_calibration.metrics.clustered_mean import ClusteredMean, clustered_mean
from judge_calibration.metrics.decision_rule import STATUS_TEXT, RuleStatus, check_rule, rule_hash
from judge_calibration.metrics.judgments import FAILED, TIE, A, B, encode
from judge_calibration.metrics.manipulations import by_pair
from judge_calibration.metrics.people import of_people
from judge_calibration.metrics.slices import slice_pairs
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.gates import DecisionRule
from judge_calibration.options.reporting import ReportingOptions

Outcome = Literal["pass", "fail", "inconclusive", "conflict"]
"""``inconclusive`` and ``conflict`` pause the change; a conflict also fills the audit queue."""

Verdict = Literal["for", "against", "unsettled", "absent"]
"""What one key says of the claim."""

STAKES = "stakes: "


class Key(NamedTuple):
    """What one source of evidence says on one set of pairs.

    Attributes
    ----------
    scope : str
        ``all``, a critical slice, or ``stakes: medical`` and the like.
    verdict : {"for", "against", "unsettled", "absent"}
        ``for``: the lower bound lies above the threshold. ``against``: the upper bound lies below it.
    net : float
        (wins - losses)/n of the new product, -1 to 1.
    low, high : float
        One-sided bounds at the rule's alpha each.
    threshold : float
        What has to be exceeded.
    wins, losses, ties, failures, n, tasks : int
        Counts, of judgments in both orders for the judge, of pairs for people.
    reason : str
        Why it is unsettled or absent; empty else.
    """

    scope: str
    verdict: Verdict
    net: float
    low: float
    high: float
    threshold: float
    wins: int
    losses: int
    ties: int
    failures: int
    n: int
    tasks: int
    reason: str


class GateDecision(NamedTuple):
    """The decision with everything that it rests on.

    Attributes
    ----------
    outcome : {"pass", "fail", "inconclusive", "conflict"}
    reasons : tuple of str
        Reason codes with the slice or criterion after a colon, the weightiest first; empty for a pass.
    judge : Key
    humans : tuple of Key
        One a critical slice and one a kind of stakes.
    audit_pairs : tuple of str
        Pairs on which the judge and people disagree.
    rule, rule_hash, rule_status : str
        Name, hash, and whether it was declared before judging.
    """

    outcome: Outcome
    reasons: tuple[str, ...]
    judge: Key
    humans: tuple[Key, ...]
    audit_pairs: tuple[str, ...]
    rule: str
    rule_hash: str
    rule_status: str

    def frame(self) -> pd.DataFrame:
        """Return the decision as a table: one row a key, the judge first."""
        keys = [("judge", self.judge), *(("human", key) for key in self.humans)]
        table = pd.DataFrame([{"key": name, **key._asdict()} for name, key in keys])
        return table.assign(
            outcome=self.outcome,
            reasons="; ".join(self.reasons),
            rule=self.rule,
            rule_hash=self.rule_hash,
            rule_status=self.rule_status,
        )


def _threshold(rule: DecisionRule) -> float:
    """Return what the judge's net preference has to exceed."""
    return 0.0 if rule.claim == "improvement" else -rule.margin


def _read(
    mean: ClusteredMean, threshold: float, alpha: float, enough: bool
) -> tuple[Verdict, str, float, float]:
    low, high = mean.bounds(alpha)
    if mean.n == 0:
        return "absent", "no_pairs", low, high
    if not enough or math.isnan(low):
        return "unsettled", "too_few", low, high
    if low > threshold:
        return "for", "", low, high
    if high < threshold:
        return "against", "", low, high
    return "unsettled", "bounds_hold_the_threshold", low, high


def new_side(pairs: pd.DataFrame, old: str, new: str) -> np.ndarray:
    """Return for each pair the code (A or B) of the new product's side, -1 where it does not compare both.

    Raises
    ------
    GateInputError
        If the pairs do not name their candidates, or none compares the two.
    """
    problems = [
        Problem(f"pairs, column {name}", "no such column", "who wrote the response")
        for name in ("candidate_a", "candidate_b")
        if name not in pairs.columns
    ]
    if not problems:
        first, second = pairs["candidate_a"].astype(object), pairs["candidate_b"].astype(object)
        side = np.select([(first == old) & (second == new), (first == new) & (second == old)], [B, A], -1)
        if (side >= 0).any():
            return side
        seen = sorted({str(name) for name in [*first.dropna().unique(), *second.dropna().unique()]})
        problems.append(
            Problem("pairs, candidates", ", ".join(seen[:6]) or "none", f"pairs of {old} and {new}")
        )
    raise GateInputError(
        "The gate finds no pair of the old and the new product.",
        problems,
        "give pairs with candidate_a = old and candidate_b = new, and name both versions as they are there",
    )


def judge_key(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    rule: DecisionRule,
    old: str,
    new: str,
    reporting: ReportingOptions | None = None,
) -> Key:
    """Return what the judge says: its net preference for the new product over both orders.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        One judge's verdicts; both orders of a pair count half each.
    rule : DecisionRule
    old, new : str
        The products' names in candidate_a and candidate_b.
    reporting : ReportingOptions, optional
        The verdict reduction.

    Returns
    -------
    Key
        Failures count as neither win nor loss. If more judgments failed than the rule allows, or the key
        would say something else with every failure a loss, it is unsettled, ``too_many_failures`` or
        ``failures_decide``. A pair judged in one order only is left out; none left is ``one_order``.

    Raises
    ------
    GateInputError
        If the verdicts are of several instruments or temperatures.
    """
    chosen = reporting or ReportingOptions()
    judgments = encode(verdicts, pairs)
    if len(judgments.cells) > 1:
        listed = [" ".join(map(str, row)) for row in judgments.cells.itertuples(index=False)]
        raise GateInputError(
            "The gate decides on one judge.",
            [
                Problem(
                    "verdicts",
                    f"{len(listed)} cells: {'; '.join(listed[:4])}",
                    "one instrument, one temperature",
                )
            ],
            "choose the judge, protocol and temperature that were calibrated",
        )
    side = new_side(judgments.pairs, old, new)
    units, _ = rows_of_view(judgments, "strict", chosen)
    _, pair, reduced = by_pair(units, len(judgments.pairs))
    both = (reduced >= 0).all(axis=1) & (side[pair] >= 0)
    kept, said = pair[both], reduced[both]
    target = side[kept][:, None]
    decisive = (said == A) | (said == B)
    wins, losses = decisive & (said == target), decisive & (said != target)
    failed = said == FAILED
    tasks = judgments.pairs["base_id"].astype(str).to_numpy(dtype=object)[kept]
    threshold = _threshold(rule)
    mean = clustered_mean((wins.astype(float) - losses).mean(axis=1), tasks)
    enough = mean.clusters >= rule.min_tasks
    verdict, reason, low, high = _read(mean, threshold, rule.alpha, enough)
    if not len(kept) and (side >= 0).any():
        reason = "one_order"
    if failed.any() and verdict in ("for", "against"):
        worst = (wins.astype(float) - losses - failed).mean(axis=1)
        best = (wins.astype(float) - losses + failed).mean(axis=1)
        bound = worst if verdict == "for" else best
        instead, _, _, _ = _read(clustered_mean(bound, tasks), threshold, rule.alpha, enough)
        if failed.mean() > 1 - rule.min_valid_share:
            verdict, reason = "unsettled", "too_many_failures"
        elif instead != verdict:
            verdict, reason = "unsettled", "failures_decide"
    return Key(
        "all", verdict, mean.value, low, high, threshold,
        int(wins.sum()), int(losses.sum()), int((said == TIE).sum()), int(failed.sum()),
        mean.n, mean.clusters, reason,
    )  # fmt: skip


def human_keys(
    labels: pd.DataFrame, pairs: pd.DataFrame, rule: DecisionRule, old: str, new: str
) -> tuple[Key, ...]:
    """Return what people say on every critical slice, and on every kind of stakes but ordinary.

    Parameters
    ----------
    labels : pandas.DataFrame
        pair_id, label in {A, B, TIE, ABSTAIN}, and optionally attribute (only the overall preference
        counts) and stage (adjudicated labels replace primary ones). Several annotators of a pair are
        averaged. An abstention is no label.
    pairs : pandas.DataFrame
        All pairs that the gate is about.
    rule, old, new
        As for :func:`judge_key`.

    Returns
    -------
    tuple of Key
        A slice without a label is ``absent``. ``for`` needs the lower bound above minus the rule's human
        margin and the net itself on the claimed side.
    """
    side = new_side(pairs, old, new)
    nets = _human_nets(labels, pairs, side)
    tasks = pairs["base_id"].astype(str).to_numpy(dtype=object)
    keys = []
    for scope, inside in _scopes(pairs, rule, side):
        chosen = inside & ~np.isnan(nets)
        mean = clustered_mean(nets[chosen], tasks[chosen])
        threshold = -rule.human_margin
        verdict, reason, low, high = _read(mean, threshold, rule.alpha, mean.clusters >= rule.min_human_tasks)
        direction = 0.0 if rule.claim == "improvement" else -rule.margin
        if verdict == "for" and not mean.value > direction:
            verdict, reason = "unsettled", "direction_not_confirmed"
        if verdict == "absent":
            reason = "no_human_labels"
        keys.append(
            Key(
                scope,
                verdict,
                mean.value,
                low,
                high,
                threshold,
                int((nets[chosen] > 0).sum()),
                int((nets[chosen] < 0).sum()),
                int((nets[chosen] == 0).sum()),
                0,
                mean.n,
                mean.clusters,
                reason,
            )
        )
    return tuple(keys)


def _human_nets(labels: pd.DataFrame, pairs: pd.DataFrame, side: np.ndarray) -> np.ndarray:
    """Return each pair's mean human preference for the new product, -1 to 1; NaN without a label."""
    overall = of_people(labels)
    if "attribute" in overall.columns:
        overall = overall[overall["attribute"].isna()]
    overall = overall[overall["label"] != "ABSTAIN"]
    if "stage" in overall.columns:
        adjudicated = set(overall.loc[overall["stage"] == "adjudication", "pair_id"])
        overall = overall[(overall["stage"] == "adjudication") | ~overall["pair_id"].isin(adjudicated)]
    row = pd.Series(np.arange(len(pairs)), index=pairs["pair_id"].astype(str))
    at = overall["pair_id"].astype(str).map(row)
    overall, rows = overall[at.notna()], at.dropna().to_numpy(np.int64)
    code = overall["label"].map({"A": A, "B": B, "TIE": TIE}).to_numpy(np.int64)
    value = np.where(code == TIE, 0.0, np.where(code == side[rows], 1.0, -1.0))
    counts = np.bincount(rows, minlength=len(pairs))
    sums = np.bincount(rows, weights=value, minlength=len(pairs))
    nets = np.full(len(pairs), np.nan)
    np.divide(sums, counts, out=nets, where=(counts > 0) & (side >= 0))
    return nets


def _scopes(pairs: pd.DataFrame, rule: DecisionRule, side: np.ndarray) -> list[tuple[str, np.ndarray]]:
    slicing = slice_pairs(pairs, "*".join(rule.slice_by))
    scopes = []
    for name in rule.critical_slices:
        inside = np.zeros(len(pairs), dtype=bool)
        if slicing is not None and name in slicing.names:
            inside = slicing.codes == slicing.names.index(name)
        scopes.append((name, inside & (side >= 0)))
    if "stakes" in pairs.columns:
        stakes = pairs["stakes"].astype(object)
        scopes += [
            (STAKES + str(kind), (stakes == kind).to_numpy(bool) & (side >= 0))
            for kind in sorted(set(stakes.dropna()) - {"ordinary"})
            if ((stakes == kind).to_numpy(bool) & (side >= 0)).any()
        ]
    return scopes


def decide(
    judge: Key,
    humans: Sequence[Key],
    rule: DecisionRule,
    pauses: Sequence[str] = (),
) -> tuple[Outcome, tuple[str, ...]]:
    """Combine both keys and the reasons to pause.

    Parameters
    ----------
    judge : Key
    humans : sequence of Key
        One a critical slice and one a kind of high stakes.
    rule : DecisionRule
    pauses : sequence of str
        Reasons that pause whatever the numbers say.

    Returns
    -------
    outcome : Outcome
    reasons : tuple of str

    Notes
    -----
    In order. Opposite keys are a conflict: the judge for the change and people against it on a critical
    slice, or the judge against it and people for it on all of them. Then any pause makes it inconclusive.
    The judge against it and nobody for it fails. Both for it, everywhere, passes. All else is
    inconclusive.

    Examples
    --------
    >>> rule = DecisionRule(name="mine", claim="improvement", critical_slices=("math",),
    ...     floors={"agreement": 0.7}, min_tasks=20, min_human_tasks=10, min_valid_share=0.9,
    ...     sentinel={"max_changed": 0.05, "accuracy_margin": 0.05, "min_tasks": 20})
    >>> def key(scope, verdict):
    ...     return Key(scope, verdict, 0.1, 0.0, 0.2, 0.0, 6, 4, 0, 0, 10, 10, "")
    >>> decide(key("all", "for"), [key("math", "for")], rule)
    ('pass', ())
    >>> decide(key("all", "for"), [key("math", "against")], rule)
    ('conflict', ('judge_for_humans_against: math',))
    >>> decide(key("all", "for"), [key("math", "for")], rule, ["drifted"])
    ('inconclusive', ('drifted',))
    """
    against = [key for key in humans if key.verdict == "against"]
    open_keys = [key for key in humans if key.verdict in ("unsettled", "absent")]
    if judge.verdict == "for" and against:
        return "conflict", (*(f"judge_for_humans_against: {key.scope}" for key in against), *pauses)
    if judge.verdict == "against" and humans and all(key.verdict == "for" for key in humans):
        return "conflict", ("judge_against_humans_for", *pauses)
    reasons = list(pauses)
    if reasons:
        return "inconclusive", tuple(reasons)
    if judge.verdict == "against":
        return "fail", (f"judge_against: upper bound {judge.high:.3f} below {judge.threshold:.3f}",)
    if judge.verdict == "for" and humans and not open_keys:
        return "pass", ()
    if judge.verdict != "for":
        reasons.append(f"judge_{judge.verdict}: {judge.reason}")
    reasons += [f"humans_against: {key.scope}" for key in against]
    for key in open_keys:
        if key.scope.startswith(STAKES):
            reasons.append(f"high_stakes: {key.scope.removeprefix(STAKES)} needs people ({key.reason})")
        else:
            reasons.append(f"humans_{key.verdict}: {key.scope} ({key.reason})")
    return "inconclusive", tuple(reasons)


def two_key_gate(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    rule: DecisionRule,
    old: str,
    new: str,
    authority: Mapping[str, str],
    calibrated_instruments: Collection[str],
    sentinel: str | None,
    rule_state: RuleStatus = "declared",
    reporting: ReportingOptions | None = None,
) -> GateDecision:
    """Decide on a product change.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The judge's verdicts on pairs of the old and the new product, in both orders.
    pairs : pandas.DataFrame
        Those pairs, with candidate_a, candidate_b, base_id, stakes and the columns that make slices.
    labels : pandas.DataFrame
        The blinded human sample on some of them; may be empty.
    rule : DecisionRule
    old, new : str
        The products' names.
    authority : mapping of str to str
        For each slice ``earned`` or the reason why not (:func:`.authority.earned_slices`).
    calibrated_instruments : collection of str
        The instrument_ids that were calibrated.
    sentinel : {"stable", "drift", "too_few"} or None
        The sentinel comparison since calibration; None if it was not run.
    rule_state : RuleStatus
        Whether the rule came before the verdicts.
    reporting : ReportingOptions, optional

    Returns
    -------
    GateDecision

    Raises
    ------
    RuleRefusedError
        For the shipped example rule.
    GateInputError
        If the tables do not hold one judge's verdicts on pairs of both products.
    """
    check_rule(rule)
    judge = judge_key(verdicts, pairs, rule, old, new, reporting)
    humans = human_keys(labels, pairs, rule, old, new)
    pauses: list[str] = []
    unknown = sorted(set(verdicts["instrument_id"].astype(str)) - set(map(str, calibrated_instruments)))
    pauses += [f"not_calibrated: instrument {name[:12]}" for name in unknown]
    if sentinel is None:
        pauses.append("sentinel_not_run")
    elif sentinel == "drift":
        pauses.append("drifted")
    elif sentinel != "stable":
        pauses.append("sentinel_too_few")
    pauses += [
        f"not_earned: {name} ({authority.get(name, 'never_calibrated')})"
        for name in rule.critical_slices
        if authority.get(name, "never_calibrated") != "earned"
    ]
    if rule_state != "declared":
        pauses.append(STATUS_TEXT[rule_state])
    outcome, reasons = decide(judge, humans, rule, pauses)
    disagreements = _disagreements(verdicts, pairs, labels, old, new, reporting or ReportingOptions())
    return GateDecision(
        outcome, reasons, judge, humans, disagreements, rule.name, rule_hash(rule), STATUS_TEXT[rule_state]
    )


def _disagreements(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    old: str,
    new: str,
    options: ReportingOptions,
) -> tuple[str, ...]:
    """Return the pairs on which the judge's two orders and the human labels point in opposite directions."""
    judgments = encode(verdicts, pairs)
    side = new_side(judgments.pairs, old, new)
    units, _ = rows_of_view(judgments, "strict", options)
    _, pair, reduced = by_pair(units, len(judgments.pairs))
    nets = _human_nets(labels, judgments.pairs, side)
    decisive = (reduced == A) | (reduced == B)
    target = side[pair][:, None]
    net = (decisive & (reduced == target)).sum(axis=1) - (decisive & (reduced != target)).sum(axis=1)
    opposite = np.sign(net) * np.nan_to_num(nets[pair]) < 0
    ids = judgments.pairs["pair_id"].astype(str).to_numpy(dtype=object)
    return tuple(ids[pair[opposite]])
