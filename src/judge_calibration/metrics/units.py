"""From judgments to units: the repetitions of one (pair, order), reduced to one verdict, in each view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.consistency import all_agree, pair_agreement
from judge_calibration.metrics.judgments import FAILED, NO_REFERENCE, TIE, A, B, Ints, Judgments
from judge_calibration.metrics.order_excess import order_excess
from judge_calibration.metrics.rates import Floats
from judge_calibration.options.reporting import Reduction, View

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Units:
    """Every (cell, pair, order) with at least one judgment, in that order.

    Attributes
    ----------
    cell, pair, order : numpy.ndarray, shape (n_units,)
        Positions as in :class:`Judgments`.
    counts : numpy.ndarray, shape (n_units, 5)
        How often its repetitions said A, B, TIE, ABSTAIN, and how often they failed.
    reduced : numpy.ndarray, shape (n_units,)
        The reduced verdict; FAILED where the deciding judgment failed or the vote is split.
    """

    cell: Ints
    pair: Ints
    order: Ints
    counts: Ints
    reduced: Ints


def majority_verdict(counts: npt.ArrayLike, first: npt.ArrayLike, tie: str = "unresolved") -> Ints:
    """Return the most frequent verdict of each unit.

    Parameters
    ----------
    counts : array-like of shape (n_units, 5)
        How often the repetitions said A, B, TIE, ABSTAIN, and how often they failed. Failures vote as one
        symbol, so that one readable verdict of three does not speak for the unit.
    first : array-like of shape (n_units,)
        The first repetition's code.
    tie : {'unresolved', 'first_read'}
        What a split vote becomes.

    Returns
    -------
    numpy.ndarray of int64
        Codes; FAILED for units that failed or are unresolved.

    Examples
    --------
    Two A against one B; one against one; two failures against one A.

    >>> majority_verdict([[2, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 2]], [0, 0, 0]).tolist()
    [0, 4, 4]
    """
    table = np.asarray(counts)
    most = table.max(axis=1, keepdims=True)
    split = (table == most).sum(axis=1) > 1
    instead = np.asarray(first) if tie == "first_read" else FAILED
    return np.where(split, instead, table.argmax(axis=1)).astype(np.int64)


def _starts(key: Ints) -> Ints:
    """Return where a new value begins in a sorted key."""
    return np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, dtype=np.int64)


def reduce_judgments(
    judgments: Judgments, codes: Ints, reduction: Reduction, majority_tie: str = "unresolved"
) -> Units:
    """Count the repetitions of every (cell, pair, order) and reduce them to one verdict.

    Parameters
    ----------
    judgments : Judgments
        Sorted judgments.
    codes : numpy.ndarray, shape (n_judgments,)
        What each judgment said in the view at hand.
    reduction : {'first_read', 'majority'}
        ``first_read`` takes the unit's lowest repetition.
    majority_tie : {'unresolved', 'first_read'}
        What a split vote becomes.
    """
    n_pairs = max(len(judgments.pairs), 1)
    key = (judgments.cell * n_pairs + judgments.pair) * 2 + judgments.order
    start = _starts(key)
    unit = np.repeat(np.arange(len(start)), np.diff(np.r_[start, len(key)]))
    counts = np.bincount(unit * 5 + codes, minlength=5 * len(start)).reshape(-1, 5)
    first = codes[start]
    reduced = first if reduction == "first_read" else majority_verdict(counts, first, majority_tie)
    return Units(judgments.cell[start], judgments.pair[start], judgments.order[start], counts, reduced)


def completed_codes(judgments: Judgments, view: View) -> Ints:
    """Return the codes with failures replaced, for the two bounds; unchanged for the other views.

    Under ``failures_right`` a failed judgment of a pair with a reference becomes the reference, and one
    without becomes the pair's first readable verdict in this cell (so that it is reproduced and invariant
    as far as the readable ones are). Under ``failures_wrong`` it becomes the other candidate where the
    reference is decisive, and stays a failure elsewhere.
    """
    codes = judgments.code
    failed = codes == FAILED
    if view not in ("failures_right", "failures_wrong") or not failed.any():
        return codes
    reference = judgments.reference[judgments.pair]
    if view == "failures_wrong":
        opposite = np.where(reference == A, B, np.where(reference == B, A, FAILED))
        return np.where(failed, opposite, codes)
    n_pairs = max(len(judgments.pairs), 1)
    start = _starts(judgments.cell * n_pairs + judgments.pair)
    group = np.repeat(np.arange(len(start)), np.diff(np.r_[start, len(codes)]))
    first_readable = np.full(len(start), A, dtype=np.int64)
    readable = np.flatnonzero(~failed)[::-1]
    first_readable[group[readable]] = codes[readable]
    return np.where(failed, np.where(reference == NO_REFERENCE, first_readable[group], reference), codes)


COLUMNS = (
    "C_n",
    "C_d",
    "C2_n",
    "phi_n",
    "phi_d",
    "excess_n",
    "excess_d",
    "A_n",
    "A_d",
    "same",
    "same_right",
    "flip_right",
    "decisive",
    "T_c",
    "T_right",
    "T_d",
    "T_direct_n",
    "T_pair_n",
    "first_n",
    "first_d",
)
"""What every pair contributes; sums of these over pairs give every statistic of the trust table."""

FACTS = (
    "pairs",
    "kept",
    "units",
    "kept_units",
    "both_orders",
    "different",
    "referenced",
    "answerable",
    "repeated",
)
"""Counts that explain why a statistic is undefined; never resampled."""


@dataclass(frozen=True)
class PairRows:
    """One row a (cell, pair), sorted so, with its contributions.

    Attributes
    ----------
    cell, pair : numpy.ndarray, shape (n_rows,)
        Positions as in :class:`Judgments`.
    sums : numpy.ndarray, shape (n_rows, len(COLUMNS))
        Contributions to numerators and denominators.
    identity_first : numpy.ndarray, shape (n_rows, 2)
        First-position wins and decisive verdicts of identity pairs, which are shown apart.
    facts : numpy.ndarray, shape (n_rows, len(FACTS))
        Counts for reason codes and coverage.
    repetitions : numpy.ndarray, shape (n_rows, 2)
        The fewest and the most repetitions of its orders.
    """

    cell: Ints
    pair: Ints
    sums: Floats
    identity_first: Floats
    facts: Floats
    repetitions: Ints


def pair_rows(judgments: Judgments, units: Units, view: View) -> PairRows:
    """Return what every (cell, pair) contributes to the statistics in one view.

    Parameters
    ----------
    judgments : Judgments
        For references and identity pairs.
    units : Units
        From :func:`reduce_judgments` with the view's codes.
    view : View
        ``resolved``: a pair with a failed or unresolved judgment contributes nothing. ``policy``: a
        (pair, order) whose reduced verdict is not A or B contributes nothing.

    Notes
    -----
    C and C2 are over (pair, order) with at least two repetitions, whatever the reference; phi over pairs
    that differ and have both orders. A is over (pair, order) of pairs that differ and have a decisive
    reference. A_dec, q, the ceiling, the gap and PR need both orders beside that, and every T two
    repetitions in each, so that the identities between them hold exactly.
    """
    n_pairs = max(len(judgments.pairs), 1)
    key = units.cell * n_pairs + units.pair
    start = _starts(key)
    n = len(start)
    row = np.repeat(np.arange(n), np.diff(np.r_[start, len(key)]))
    slot = np.full((n, 2), -1, dtype=np.int64)
    slot[row, units.order] = np.arange(len(row))
    there = slot >= 0
    cell, pair = units.cell[start], units.pair[start]

    counts = np.concatenate([units.counts, np.zeros((1, 5), dtype=np.int64)])[slot]
    reduced = np.append(units.reduced, FAILED)[slot]
    n_reads = counts.sum(axis=2)
    reference = judgments.reference[pair]
    identity = judgments.identity[pair]
    keep = there.copy()
    if view == "resolved":
        whole = ((counts[:, :, FAILED] == 0) & (reduced != FAILED)) | ~there
        keep &= whole.all(axis=1, keepdims=True)
    elif view == "policy":
        keep &= (reduced == A) | (reduced == B)

    repeated = keep & (n_reads >= 2)
    reproducible = all_agree(counts.reshape(-1, 5)).reshape(-1, 2) & repeated
    agreement = np.nan_to_num(pair_agreement(counts.reshape(-1, 5)).reshape(-1, 2)) * repeated
    both = keep.all(axis=1) & ~identity
    same = both & (reduced[:, 0] == reduced[:, 1]) & (reduced[:, 0] != FAILED)
    excess_d = both & repeated.all(axis=1)
    excess = np.where(excess_d, np.nan_to_num(order_excess(counts[:, 0], counts[:, 1])), 0.0)
    answerable = ((reference == A) | (reference == B)) & ~identity
    right = keep & answerable[:, None] & (reduced == reference[:, None])
    decisive = both & answerable
    triple = decisive & repeated.all(axis=1)
    joint = reproducible & right & (same & triple)[:, None]
    said_a, said_b = counts[:, :, A] * keep, counts[:, :, B] * keep
    first = said_a[:, 0] + said_b[:, 1]
    resolved = said_a.sum(axis=1) + said_b.sum(axis=1)
    columns = {
        "C_n": reproducible.sum(axis=1),
        "C_d": repeated.sum(axis=1),
        "C2_n": agreement.sum(axis=1),
        "phi_n": both & ~same,
        "phi_d": both,
        "excess_n": excess,
        "excess_d": excess_d,
        "A_n": right.sum(axis=1),
        "A_d": (keep & answerable[:, None]).sum(axis=1),
        "same": decisive & same,
        "same_right": decisive & same & right[:, 0],
        "flip_right": np.where(decisive & ~same, right.sum(axis=1), 0),
        "decisive": decisive,
        "T_c": np.where(triple, reproducible.sum(axis=1), 0),
        "T_right": triple & same & right[:, 0],
        "T_d": triple,
        "T_direct_n": joint.sum(axis=1),
        "T_pair_n": joint.all(axis=1),
        "first_n": np.where(identity, 0, first),
        "first_d": np.where(identity, 0, resolved),
    }
    sums = np.stack([np.asarray(columns[name], dtype=np.float64) for name in COLUMNS], axis=1)
    facts = {
        "pairs": np.ones(n),
        "kept": keep.any(axis=1),
        "units": there.sum(axis=1),
        "kept_units": keep.sum(axis=1),
        "both_orders": there.all(axis=1) & ~identity,
        "different": ~identity,
        "referenced": reference != NO_REFERENCE,
        "answerable": answerable,
        "repeated": n_reads.max(axis=1) >= 2,
    }
    fewest = np.where(there, n_reads, np.iinfo(np.int64).max).min(axis=1)
    return PairRows(
        cell,
        pair,
        sums,
        np.stack([np.where(identity, first, 0), np.where(identity, resolved, 0)], axis=1).astype(np.float64),
        np.stack([np.asarray(facts[name], dtype=np.float64) for name in FACTS], axis=1),
        np.stack([fewest, n_reads.max(axis=1)], axis=1),
    )


def reference_kind(reference: Ints) -> list[str]:
    """Name each pair's kind of reference for the slice ``reference``: decisive, tie or none."""
    return ["none" if code == NO_REFERENCE else "tie" if code == TIE else "decisive" for code in reference]
