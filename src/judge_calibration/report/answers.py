"""The answer first: what one cell's numbers say about how far its verdicts can be trusted, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judge_calibration.options.reporting import RegionOptions
from judge_calibration.report.wording import (
    cell_name,
    count_noun,
    is_missing,
    percent,
    reason_text,
    share_with_interval,
)

Tone = Literal["good", "mixed", "bad", "unknown"]

ALWAYS = 0.99
MOSTLY = 0.80
MANY_FAILURES = 0.05
FEW = 30


@dataclass(frozen=True)
class Answer:
    """One cell's answer.

    Attributes
    ----------
    name : str
        The cell.
    headline : str
        One sentence.
    details : tuple of str
        Further sentences: what the headline rests on and what limits it.
    tone : {"good", "mixed", "bad", "unknown"}
        For the mark beside the headline; never the only carrier of the message.
    trust : float or None
        T_direct in [0, 1].
    """

    name: str
    headline: str
    details: tuple[str, ...]
    tone: Tone
    trust: float | None


def answer_for(
    trust: Mapping[str, Any],
    outcomes: Mapping[str, int],
    regions: RegionOptions,
    decisive: int | None = None,
) -> Answer:
    """Word the answer for one cell.

    Parameters
    ----------
    trust : mapping
        The cell's row of the trust table: strict view, whole.
    outcomes : mapping of str to int
        Judgments by outcome.
    regions : RegionOptions
        What counts as reproducible and as fair.
    decisive : int, optional
        How many of the pairs have a decisive reference: what A and T rest on.
    """
    name = cell_name(trust)
    total = sum(outcomes.values())
    valid = outcomes.get("valid", 0)
    if total and not valid:
        worst = max((k for k in outcomes if k != "valid"), key=lambda k: outcomes[k])
        replies = count_noun(outcomes[worst], "reply", "replies")
        headline = f"gave no verdict at all: {replies} {reason_text(worst)}."
        return Answer(name, headline, (), "bad", None)
    behaviour = _behaviour(trust, regions)
    trusted, tone = _trust_clause(trust)
    if behaviour.startswith("always picks"):
        tone = "bad"
    details = []
    if total and (total - valid) / total > MANY_FAILURES:
        details.append(
            f"{percent((total - valid) / total)} of its {count_noun(total, 'judgment')} gave no verdict; "
            "each counts as not trustworthy here."
        )
    details.append(
        f"Repeats itself (C): {share_with_interval(trust, 'C')}. "
        f"Flips with the order (phi): {share_with_interval(trust, 'phi')}. "
        f"Right (A): {share_with_interval(trust, 'A')}."
    )
    if not is_missing(trust.get("A_max")):
        details.append(
            f"With this order dependence no judge could be right in more than "
            f"{percent(trust['A_max'])} of verdicts."
        )
    clusters = 0 if is_missing(trust.get("n_clusters")) else int(trust["n_clusters"])
    pairs = 0 if is_missing(trust.get("n_pairs")) else int(trust["n_pairs"])
    basis = f"Rests on {count_noun(pairs, 'pair')} from {count_noun(clusters, 'base task')}"
    if decisive is not None and decisive < pairs:
        basis += f"; A and trust on the {count_noun(decisive, 'pair')} with a right answer"
    details.append(f"{basis}: too few for a decision." if clusters < FEW else f"{basis}.")
    return Answer(name, f"{behaviour}{trusted}", tuple(details), tone, _number(trust.get("T_direct")))


def _number(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def _behaviour(trust: Mapping[str, Any], regions: RegionOptions) -> str:
    first = _number(trust.get("first_share"))
    if first is not None:
        side, share = ("first", first) if first >= 0.5 else ("second", 1 - first)
        if share >= ALWAYS:
            return f"always picks the {side} answer"
        if share >= MOSTLY:
            return f"mostly picks the {side} answer ({percent(share, 0)} of its verdicts)"
    c, phi = _number(trust.get("C")), _number(trust.get("phi"))
    if phi is None:
        return "was shown in one order only, so its fairness is unknown"
    fair = phi <= regions.max_flip_rate
    if c is None:
        return "keeps its verdict when the order changes" if fair else "changes its verdict with the order"
    steady = c >= regions.min_consistency
    return {
        (True, True): "repeats its verdicts and keeps them when the order changes",
        (True, False): "repeats its verdicts but changes them with the order",
        (False, True): "is noisy between repetitions but fair between orders",
        (False, False): "changes its verdicts between repetitions and with the order",
    }[(steady, fair)]


def _trust_clause(trust: Mapping[str, Any]) -> tuple[str, Tone]:
    for metric, meaning in (
        ("T_direct", "of its verdicts are trustworthy (repeated, order-proof and right)"),
        ("PR", "of pairs are right in both orders (repetitions are missing, so trust cannot be said)"),
    ):
        value = _number(trust.get(metric))
        if value is None:
            continue
        low, high = _number(trust.get(f"{metric}_low")), _number(trust.get(f"{metric}_high"))
        interval = (
            "" if low is None or high is None else f", 95 % interval {100 * low:.0f} to {100 * high:.0f}"
        )
        # A mark is earned by the interval, never by the point alone.
        tone: Tone = "unknown"
        if low is not None and high is not None:
            tone = "good" if low >= 0.8 else "bad" if high < 0.5 else "mixed"
        return f"; {percent(value, 0)} {meaning}{interval}.", tone
    return "; how many verdicts are right cannot be said, because no reference labels are there.", "unknown"
