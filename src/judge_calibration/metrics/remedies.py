"""Remedies: what repeating, voting and averaging both orders would give, predicted and verified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.metrics.judgments import FAILED, A, B, Ints, Judgments, encode
from judge_calibration.metrics.rates import Floats
from judge_calibration.metrics.share_rows import SHARE_COLUMNS, Contribution, empty_shares, share_rows
from judge_calibration.metrics.units import majority_verdict
from judge_calibration.metrics.vote import vote_distribution
from judge_calibration.options.reporting import ReportingOptions

REMEDY_COLUMNS = (
    *(c for c in SHARE_COLUMNS if c not in ("slice_by", "slice", "statistic", "value")),
    "remedy",
    "votes",
    "calls_per_verdict",
    "statistic",
    "predicted",
    "predicted_from_half",
    "verified",
    "verified_pairs",
    "verified_reason",
)
"""Columns of the remedy table; the interval belongs to ``predicted``."""

_STATISTICS = ("accuracy", "coverage", "accuracy_kept", "agreement", "trustworthy")


@dataclass(frozen=True)
class _Reads:
    """Counts of repetitions by pair and order, for all reads, the first half and the rest."""

    cell: Ints
    pair: Ints
    whole: Ints
    half: Ints
    later: Ints
    later_codes: Ints


def _reads(judgments: Judgments, longest: int) -> _Reads:
    """Count repetitions by (cell, pair) and order, and split each unit's repetitions into two halves."""
    n_pairs = max(len(judgments.pairs), 1)
    key = judgments.cell * n_pairs + judgments.pair
    distinct, row = np.unique(key, return_inverse=True)
    unit = row * 2 + judgments.order
    n_units = len(distinct) * 2
    size = np.bincount(unit, minlength=n_units)
    start = np.zeros(n_units, dtype=np.int64)
    start[1:] = np.cumsum(size)[:-1]
    # Judgments are sorted by cell, pair, order, repetition, and so by unit.
    rank = np.arange(len(unit)) - start[unit]
    first = rank < (size // 2)[unit]

    def count(chosen: npt.NDArray[np.bool_]) -> Ints:
        flat = np.bincount(unit[chosen] * 5 + judgments.code[chosen], minlength=n_units * 5)
        return flat.reshape(len(distinct), 2, 5)

    later_rank = rank - (size // 2)[unit]
    codes = np.full((n_units, longest), -1, dtype=np.int64)
    used = ~first & (later_rank < longest)
    codes[unit[used], later_rank[used]] = judgments.code[used]
    everything = np.ones(len(unit), dtype=bool)
    return _Reads(
        distinct // n_pairs,
        distinct % n_pairs,
        count(everything),
        count(first),
        count(~first),
        codes.reshape(len(distinct), 2, longest),
    )


def _expected(first: Floats, second: Floats, reference: Ints, both: bool) -> dict[str, tuple[Floats, Floats]]:
    """Return numerator and denominator of every statistic by pair, from the two orders' distributions."""
    n = len(reference)
    answerable = (reference == A) | (reference == B)
    rows = np.arange(n)
    target = np.where(answerable, reference, 0)
    right_1 = np.where(answerable, first[rows, target], 0.0)
    right_2 = np.where(answerable, second[rows, target], 0.0)
    ones = answerable.astype(float)
    everything = np.ones(n)
    if both:
        agree = first * second
        kept = agree[:, A] + agree[:, B]
        right = right_1 * right_2
        tie = 1 - agree[:, :FAILED].sum(axis=1)
        outcome = np.column_stack([agree[:, :FAILED], tie])
        outcome[:, 2] += outcome[:, 4]  # a contradiction is answered by TIE
        repeat = (outcome[:, :FAILED] ** 2).sum(axis=1)
        return {
            "accuracy": (right, ones),
            "coverage": (kept, everything),
            "accuracy_kept": (right, np.where(answerable, kept, 0.0)),
            "agreement": (repeat, everything),
            "trustworthy": (right * right, ones),
        }
    kept = (first[:, A] + first[:, B] + second[:, A] + second[:, B]) / 2
    repeat = ((first[:, :FAILED] ** 2).sum(axis=1) + (second[:, :FAILED] ** 2).sum(axis=1)) / 2
    # Right, the same in the other order, and the same again when repeated.
    joint = (right_1 * right_2 * right_1 + right_2 * right_1 * right_2) / 2
    return {
        "accuracy": ((right_1 + right_2) / 2, ones),
        "coverage": (kept, everything),
        "accuracy_kept": ((right_1 + right_2) / 2, np.where(answerable, kept, 0.0)),
        "agreement": (repeat, everything),
        "trustworthy": (joint, ones),
    }


def remedy_table(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return what each remedy would give every cell, with the calls it costs.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        ``remedies.votes`` and the intervals.

    Returns
    -------
    pandas.DataFrame
        Columns REMEDY_COLUMNS: one row a source, cell, remedy and statistic. ``remedy`` is ``none`` (one
        read in one order), ``vote`` (of ``votes`` reads in one order), ``both_orders`` (one read in each;
        a contradiction becomes a TIE, or goes to people) or ``both_orders_and_vote``. ``calls_per_verdict``
        counts judgments; a protocol of several calls multiplies it. Statistics, shares from 0 to 1:

        - ``accuracy``: right against a decisive reference; TIE, unresolved votes and failures are wrong;
        - ``coverage``: decisive verdicts; the rest goes to people;
        - ``accuracy_kept``: accuracy of the decisive ones;
        - ``agreement``: two independent applications of the remedy give the same verdict;
        - ``trustworthy``: right, right again when repeated, and (one order) right in the other order.

        ``predicted`` resamples all repetitions, ``predicted_from_half`` the first half of them, and
        ``verified`` is what the remedy really gave on the later half (``accuracy``, ``coverage`` and
        ``accuracy_kept``), NaN with a reason where the later half has fewer reads than the vote needs.

    Notes
    -----
    Only pairs with both orders count; cells with one repetition have no vote. With few repetitions the
    prediction is optimistic for ``agreement`` and ``trustworthy``, since resampling repeats the reads at
    hand; with one repetition both are undefined.

    References
    ----------
    Definitions, section 2.
    """
    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    votes = (1, *chosen.remedies.votes)
    reads = _reads(judgments, max(votes))
    there = (reads.whole.sum(axis=2) > 0).all(axis=1) & ~judgments.identity[reads.pair]
    if not there.any():
        return _typed(
            empty_shares().assign(**dict.fromkeys(REMEDY_COLUMNS[len(SHARE_COLUMNS) - 4 :], np.nan))
        )
    cell, pair = reads.cell[there], reads.pair[there]
    reference = judgments.reference[pair]
    whole, half = reads.whole[there], reads.half[there]
    later = reads.later_codes[there]
    size = whole.sum(axis=2).min(axis=1)
    parts: list[Contribution] = []
    predicted_half: list[Contribution] = []
    verified: list[Contribution] = []
    # Reads of one repetition cannot vote: a vote would only repeat them.
    most = np.zeros(len(judgments.cells), dtype=np.int64)
    np.maximum.at(most, cell, whole.sum(axis=2).max(axis=1))
    everything = (cell, pair, reference, whole, half, later, size)
    for k in votes:
        cell, pair, reference, whole, half, later, size = (
            values[(k == 1) | (most[everything[0]] > 1)] for values in everything
        )
        if not len(cell):
            continue
        for both in (False, True):
            name = f"{k}|{2 if both else 1}"
            first, second = vote_distribution(whole[:, 0], k), vote_distribution(whole[:, 1], k)
            for statistic, (over, under) in _expected(first, second, reference, both).items():
                repeated = statistic not in ("agreement", "trustworthy") or size >= 2
                used = np.where(repeated, under, 0.0)
                reason = "no_reference" if statistic in ("accuracy", "accuracy_kept") else "one_repetition"
                parts.append(
                    Contribution(
                        f"{name}|{statistic}", cell, pair, np.where(used > 0, over, 0.0), used, reason=reason
                    )
                )
            enough = (half.sum(axis=2) > 0).all(axis=1) & (later[:, :, k - 1] >= 0).all(axis=1)
            if not enough.any():
                continue
            h1, h2 = vote_distribution(half[enough, 0], k), vote_distribution(half[enough, 1], k)
            real = [_voted(later[enough, order, :k]) for order in (0, 1)]
            expected = _expected(h1, h2, reference[enough], both)
            given = _expected(real[0], real[1], reference[enough], both)
            for statistic in ("accuracy", "coverage", "accuracy_kept"):
                for target, values in ((predicted_half, expected), (verified, given)):
                    over, under = values[statistic]
                    target.append(
                        Contribution(f"{name}|{statistic}", cell[enough], pair[enough], over, under)
                    )
    frame = share_rows(judgments, parts, (), chosen, empty_too=True)
    keys = [*(c for c in SHARE_COLUMNS[:6]), "statistic"]
    held = _point_values(judgments, predicted_half, chosen).rename(columns={"value": "predicted_from_half"})
    real_values = _point_values(judgments, verified, chosen).rename(
        columns={"value": "verified", "n_pairs": "verified_pairs"}
    )
    frame = frame.merge(held.drop(columns="n_pairs"), on=keys, how="left")
    frame = frame.merge(real_values, on=keys, how="left")
    named = frame["statistic"].str.split("|", expand=True)
    frame["votes"] = named[0].astype(int)
    orders = named[1].astype(int)
    frame["statistic"] = named[2]
    frame["remedy"] = np.select(
        [(orders == 1) & (frame["votes"] == 1), orders == 1, frame["votes"] == 1],
        ["none", "vote", "both_orders"],
        "both_orders_and_vote",
    )
    frame["calls_per_verdict"] = frame["votes"] * orders
    frame["predicted"] = frame["value"]
    checked = frame["statistic"].isin(["accuracy", "coverage", "accuracy_kept"])
    frame["verified_reason"] = np.select(
        [frame["verified"].notna(), ~checked], ["", "predicted_only"], "too_few_repetitions"
    )
    frame["verified_pairs"] = frame["verified_pairs"].fillna(0)
    return _typed(frame)


def _voted(codes: Ints) -> Floats:
    """Return the result of a real vote as a distribution with a single 1."""
    n, k = codes.shape
    counts = np.zeros((n, 5), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(n), k), codes.reshape(-1)), 1)
    result = np.zeros((n, 5))
    result[np.arange(n), majority_verdict(counts, codes[:, 0])] = 1
    return result


def _point_values(judgments: Judgments, parts: list[Contribution], options: ReportingOptions) -> pd.DataFrame:
    """Return value and pairs of each share, without intervals of interest."""
    keys = [*SHARE_COLUMNS[:6], "statistic"]
    frame = share_rows(judgments, parts, (), options) if parts else empty_shares()
    return frame[[*keys, "value", "n_pairs"]]


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    integers = ("n_pairs", "n_clusters", "votes", "calls_per_verdict", "verified_pairs")
    text = {"source", "judge_id", "protocol", "constraint", "instrument_id", "method", "reason"}
    text |= {"interval_reason", "remedy", "statistic", "verified_reason"}
    kinds = {c: "Int64" if c in integers else "str" if c in text else "float64" for c in REMEDY_COLUMNS}
    return frame.reindex(columns=list(REMEDY_COLUMNS)).astype(kinds)
