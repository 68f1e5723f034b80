"""Position preferences: how often whatever is shown first, or second, wins; and contradictions."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.metrics.judgments import FAILED, TIE, A, B, encode
from judge_calibration.metrics.manipulations import by_pair
from judge_calibration.metrics.share_rows import Contribution, share_rows
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.reporting import ReportingOptions


def position_table(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return position preferences of every cell, whole and by difficulty, manipulation and quality gap.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        Reduction and intervals.

    Returns
    -------
    pandas.DataFrame
        Columns of :mod:`judge_calibration.metrics.share_rows`. Identity pairs are left out. Statistics:

        - ``first_share`` and ``second_share``: of decisive judgments; 1/2 each without a preference where
          both orders are asked equally;
        - ``first_of_valid``, ``second_of_valid``, ``tie_of_valid``: of all valid judgments, ABSTAIN being
          the rest;
        - ``contradiction``: share of pairs whose orders name opposite candidates (phi counts any
          difference, this only A against B);
        - ``first_both`` and ``second_both``: share of pairs in which the candidate shown first (second) won
          in both orders: the contradictions by direction.

    References
    ----------
    Definitions, section 2.
    """
    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    units, _ = rows_of_view(judgments, "strict", chosen)
    counts, order = units.counts, units.order
    differ = ~judgments.identity[units.pair]
    first = np.where(order == 0, counts[:, A], counts[:, B]) * differ
    second = np.where(order == 0, counts[:, B], counts[:, A]) * differ
    valid = counts[:, :FAILED].sum(axis=1) * differ
    cell, pair, reduced = by_pair(units, len(judgments.pairs))
    both = (reduced >= 0).all(axis=1) & ~judgments.identity[pair]
    first_both = both & (reduced[:, 0] == A) & (reduced[:, 1] == B)
    second_both = both & (reduced[:, 0] == B) & (reduced[:, 1] == A)

    def reads(name: str, over: np.ndarray, under: np.ndarray, reason: str) -> Contribution:
        return Contribution(
            name, units.cell, units.pair, over.astype(float), under.astype(float), reason=reason
        )

    def pairwise(name: str, over: np.ndarray) -> Contribution:
        return Contribution(name, cell, pair, over.astype(float), both.astype(float), reason="one_order")

    parts = [
        reads("first_share", first, first + second, "no_decisive_verdict"),
        reads("second_share", second, first + second, "no_decisive_verdict"),
        reads("first_of_valid", first, valid, "no_valid_verdict"),
        reads("second_of_valid", second, valid, "no_valid_verdict"),
        reads("tie_of_valid", counts[:, TIE] * differ, valid, "no_valid_verdict"),
        pairwise("contradiction", first_both | second_both),
        pairwise("first_both", first_both),
        pairwise("second_both", second_both),
    ]
    slices = ("difficulty", "manipulation", "quality_gap")
    return share_rows(judgments, parts, slices, chosen, empty_too=True)
