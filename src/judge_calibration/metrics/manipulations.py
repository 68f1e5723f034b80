"""What controlled changes do to a judge: length, style, citation, correctness, identity and the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.metrics.judgments import ABSTAIN, FAILED, TIE, A, B, encode
from judge_calibration.metrics.share_rows import Contribution, empty_shares, share_rows
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.metrics.units import Units
from judge_calibration.options.reporting import ReportingOptions

TWIN_STATISTICS = ("changed_better_wins", "twin_better_wins", "lost_to_change")
"""What is told of pairs beside their twins."""

SLICINGS = (
    "manipulation",
    "manipulation*difficulty",
    "manipulation*domain",
    "manipulation*difficulty*domain",
    "manipulation*variant",
)


def by_pair(units: Units, n_pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cell, pair and both reduced verdicts (FAILED for an order that was not asked) of each pair."""
    key = units.cell * max(n_pairs, 1) + units.pair
    distinct, row = np.unique(key, return_inverse=True)
    reduced = np.full((len(distinct), 2), -1, dtype=np.int64)
    reduced[row, units.order] = units.reduced
    return distinct // max(n_pairs, 1), distinct % max(n_pairs, 1), reduced


def manipulation_table(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Return what each controlled change does to the verdicts of every cell, whole and by slice.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`; pairs without ``manipulation`` do not count.
    options : ReportingOptions, optional
        Reduction and intervals. Failed judgments count as in the strict view: they win nothing.

    Returns
    -------
    pandas.DataFrame
        Columns of :mod:`judge_calibration.metrics.share_rows`; ``slice_by`` is ``manipulation``, this
        crossed with ``difficulty``, ``domain`` or both, or ``manipulation*variant`` for identity kinds and
        twins. Statistics, in shares of pairs with both orders unless said otherwise:

        - pairs that expect a TIE and have a modified side: ``modified_wins`` (in both orders),
          ``original_wins``, ``modified_minus_original`` (-1 to 1), ``tie_both``;
        - pairs with a decisive reference: ``better_wins`` (in both orders), ``worse_wins``, and
          ``better_wins_read`` and ``worse_wins_read`` (shares of (pair, order); a failure is neither);
        - pairs whose twin (the same error without the polish or the injected text) the cell judged, too:
          ``changed_better_wins`` and ``twin_better_wins``, and their difference ``lost_to_change`` (-1 to 1;
          above 0: the polish or the injection saves wrong answers);
        - identity pairs: ``identity_first_share`` (of decisive (pair, order)) and ``identity_false_win``
          (share of (pair, order) with a decisive verdict).

        Without a row for what was not counted.

    References
    ----------
    Definitions, section 1 ("Which pairs"), after "A score is only as trustworthy as the judge that
    produced it".
    """
    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    frame = judgments.pairs
    if "manipulation" not in frame.columns or not frame["manipulation"].notna().any():
        return empty_shares()
    units, _ = rows_of_view(judgments, "strict", chosen)
    cell, pair, reduced = by_pair(units, len(frame))
    controlled = frame["manipulation"].notna().to_numpy(bool)[pair]
    identity = judgments.identity[pair]
    reference = judgments.reference[pair]
    modified: np.ndarray = np.full(len(frame), -1, dtype=np.int64)
    if "modified" in frame.columns:
        modified = frame["modified"].map({"A": A, "B": B}).fillna(-1).to_numpy(np.int64)
    side = modified[pair]
    both = (reduced >= 0).all(axis=1) & controlled
    tie = both & ~identity & (reference == TIE) & (side >= 0)
    agreed = reduced[:, 0] == reduced[:, 1]
    decisive = agreed & ((reduced[:, 0] == A) | (reduced[:, 0] == B))
    modified_wins = tie & decisive & (reduced[:, 0] == side)
    original_wins = tie & decisive & (reduced[:, 0] != side)
    answerable = controlled & ~identity & ((reference == A) | (reference == B))
    asked = reduced >= 0
    better = answerable & both & agreed & (reduced[:, 0] == reference)
    worse = answerable & both & decisive & (reduced[:, 0] != reference)
    right = (reduced == reference[:, None]) & asked
    wrong = ((reduced == A) | (reduced == B)) & asked & ~right
    same = controlled & identity
    twin = _rows_of_twins(frame, cell, pair)
    twinned = answerable & both & (twin >= 0) & (answerable & both)[twin]
    twin_better = twinned & better[twin]
    said = asked & (reduced != TIE) & (reduced != ABSTAIN) & (reduced != FAILED)
    first = said & (reduced == np.array([A, B])[None, :])

    def part(name: str, over: np.ndarray, under: np.ndarray, proportion: bool = True) -> Contribution:
        return Contribution(name, cell, pair, over.astype(np.float64), under.astype(np.float64), proportion)

    parts = [
        part("modified_wins", modified_wins, tie),
        part("original_wins", original_wins, tie),
        part("modified_minus_original", modified_wins.astype(float) - original_wins, tie, proportion=False),
        part("tie_both", tie & agreed & (reduced[:, 0] == TIE), tie),
        part("better_wins", better, answerable & both),
        part("worse_wins", worse, answerable & both),
        part(
            "better_wins_read",
            np.where(answerable, right.sum(axis=1), 0),
            np.where(answerable, asked.sum(axis=1), 0),
        ),
        part(
            "worse_wins_read",
            np.where(answerable, wrong.sum(axis=1), 0),
            np.where(answerable, asked.sum(axis=1), 0),
        ),
        part("changed_better_wins", better & twinned, twinned),
        part("twin_better_wins", twin_better, twinned),
        part("lost_to_change", twin_better.astype(float) - (better & twinned), twinned, proportion=False),
        part(
            "identity_first_share", np.where(same, first.sum(axis=1), 0), np.where(same, said.sum(axis=1), 0)
        ),
        part("identity_false_win", np.where(same, said.sum(axis=1), 0), np.where(same, asked.sum(axis=1), 0)),
    ]
    table = share_rows(judgments, parts, SLICINGS, chosen)
    by_variant = table["slice_by"] == "manipulation*variant"
    of_variants = table["statistic"].str.startswith("identity") | table["statistic"].isin(TWIN_STATISTICS)
    shown = (table["slice_by"] != "all") & (~by_variant | of_variants)
    return table[shown].reset_index(drop=True)


def _rows_of_twins(frame: pd.DataFrame, cell: np.ndarray, pair: np.ndarray) -> np.ndarray:
    """Return for each (cell, pair) the row of the same cell with the pair's twin; -1 without one."""
    if "twin_pair_id" not in frame.columns or not len(pair):
        return np.full(len(pair), -1, dtype=np.int64)
    twin = pd.Index(frame["pair_id"]).get_indexer(frame["twin_pair_id"].astype(object))[pair]
    rows = pd.MultiIndex.from_arrays([cell, pair])
    found = rows.get_indexer(pd.MultiIndex.from_arrays([cell, twin]))
    return np.where(twin >= 0, found, -1)
