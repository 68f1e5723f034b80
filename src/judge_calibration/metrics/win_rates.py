"""Win rates of products from few human and many judge labels, with the judge's bias taken out.

A product is a candidate of the pairs. Its win rate against an opponent is the share of pairs that it wins,
a TIE or ABSTAIN counting one half. People label a random part of the pairs, the judge all of them.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.errors import PredictionPoweredError
from judge_calibration.metrics.judgments import ABSTAIN, FAILED, TIE, A, B, Judgments, encode
from judge_calibration.metrics.manipulations import by_pair
from judge_calibration.metrics.ppi import Estimate, ppi_difference, ppi_mean
from judge_calibration.metrics.share_rows import CELL_KEYS
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.reporting import ReportingOptions

WIN_RATE_COLUMNS = (
    *CELL_KEYS,
    "label_kind",
    "estimand",
    "product",
    "other_product",
    "against",
    "value",
    "se",
    "low",
    "high",
    "human_only",
    "human_only_se",
    "judge_only",
    "judge_bias",
    "judge_bias_low",
    "judge_bias_high",
    "tuning",
    "n_labelled",
    "n_pairs",
    "n_clusters",
    "n_without_chance",
    "n_failed",
    "reason",
    "interval_reason",
)
"""Columns of the table of prediction-powered win rates, in order."""

_POINTS = {"A": (1.0, 0.0), "B": (0.0, 1.0), "TIE": (0.5, 0.5), "ABSTAIN": (0.5, 0.5)}
_INTEGERS = ("n_labelled", "n_pairs", "n_clusters", "n_without_chance", "n_failed")
_TEXTS = (
    *(name for name in CELL_KEYS if name != "temperature"),
    *("label_kind", "estimand", "product", "other_product", "against", "reason", "interval_reason"),
)


class _Match(NamedTuple):
    """The pairs of one product and one opponent, as one cell judged them."""

    human: npt.NDArray[np.float64]
    judge: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64]
    tasks: npt.NDArray[np.object_]
    without_chance: int
    failed: int
    reason: str


def win_rates(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    frame: pd.DataFrame,
    options: ReportingOptions | None = None,
) -> pd.DataFrame:
    """Return every product's win rate by cell and opponent, and differences of products, by PPI++.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`; products are ``candidate_a`` and ``candidate_b``.
    labels : pandas.DataFrame
        One settled label a pair: pair_id, attribute (null: the overall preference), label (null: not settled
        yet) and reference_kind (human or simulated, never mixed).
    frame : pandas.DataFrame
        Every pair that could be drawn to be labelled: pair_id, inclusion_probability, drawn, and
        ``undefined`` where chances are unknown.
    options : ReportingOptions, optional
        Reduction and level; ``win_rates`` limits the number of differences.

    Returns
    -------
    pandas.DataFrame
        Columns WIN_RATE_COLUMNS. ``estimand`` is ``win_rate`` (0 to 1; of two products the later name is
        ``product``, the other ``against``) or ``difference`` (-1 to 1; win rate of ``product`` less that of
        ``other_product``, both against ``against``). ``judge_bias`` is judge minus people on the labelled
        pairs. ``n_pairs`` counts the judged pairs that had a chance to be labelled, which the estimate is
        about; ``n_without_chance`` the judged pairs that had none. Numbers are NaN where refused, with a
        ``reason``: ``no_products``, ``no_settled_labels``, ``no_pair_with_a_chance``, ``chosen_cases``,
        ``pairs_changed_since_the_draw``, ``drawn_pairs_without_label`` (whoever answered first is no random
        subset), ``fewer_than_2_labelled_tasks``. Bounds are not cut off at 0 and 1.

    Notes
    -----
    A failed judgment counts one half, so that every pair has a value that does not depend on the label;
    ``n_failed`` counts them, and the correction by people takes out what that does. Cells without a labelled
    round get one row with the reason.

    References
    ----------
    Definitions, section 5; :mod:`.ppi`.
    """
    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    known = judgments.pairs
    units, _ = rows_of_view(judgments, "strict", chosen)
    cell, pair, said = by_pair(units, len(known))
    named = {"candidate_a", "candidate_b"} <= set(known.columns)
    overall = labels[labels["attribute"].isna() & labels["label"].notna()]
    kinds = sorted(overall["reference_kind"].astype(str).unique())
    rows: list[dict[str, object]] = []
    for number in range(len(judgments.cells)):
        mine = cell == number
        for source in sorted(known["source"].iloc[pair[mine]].astype(str).unique()):
            here = mine & (known["source"].astype(str).to_numpy() == source)[pair]
            about: dict[str, object] = {"source": source}
            about |= {name: judgments.cells.iloc[number][name] for name in CELL_KEYS[1:]}
            matches = _matchups(known, pair[here]) if named else {}
            reason = "" if matches and kinds else "no_settled_labels" if matches else "no_products"
            if reason:
                rows.append(about | {"estimand": "win_rate", "reason": reason})
                continue
            for kind in kinds:
                given = overall[overall["reference_kind"] == kind]
                of_kind = about | {"label_kind": kind}
                rows += _rows_of_cell(
                    judgments, pair[here], said[here], matches, given, frame, chosen, of_kind
                )
    return _typed(pd.DataFrame(rows, columns=list(WIN_RATE_COLUMNS)))


def _matchups(pairs: pd.DataFrame, judged: npt.NDArray[np.int64]) -> dict[tuple[str, str], list[int]]:
    """Return the places in `judged` of each two products' pairs, the products in the order of their names."""
    first = pairs["candidate_a"].astype(object).to_numpy()[judged]
    second = pairs["candidate_b"].astype(object).to_numpy()[judged]
    found: dict[tuple[str, str], list[int]] = {}
    for place, (one, two) in enumerate(zip(first, second, strict=True)):
        # The same candidate twice is an identity pair: nobody can win it.
        if isinstance(one, str) and isinstance(two, str) and one != two:
            found.setdefault((min(one, two), max(one, two)), []).append(place)
    return dict(sorted(found.items()))


def _rows_of_cell(
    judgments: Judgments,
    pair: npt.NDArray[np.int64],
    said: npt.NDArray[np.int64],
    matches: dict[tuple[str, str], list[int]],
    labels: pd.DataFrame,
    frame: pd.DataFrame,
    options: ReportingOptions,
    about: dict[str, object],
) -> list[dict[str, object]]:
    level = options.intervals.level
    opponents: dict[str, list[str]] = {}
    rows = []

    def match(product: str, against: str) -> _Match:
        places = matches[min(product, against), max(product, against)]
        return _match(judgments, pair[places], said[places], product, labels, frame)

    for earlier, later in matches:
        opponents.setdefault(earlier, []).append(later)
        opponents.setdefault(later, []).append(earlier)
        one = match(later, earlier)
        keys = about | {"estimand": "win_rate", "product": later, "against": earlier}
        rows.append(keys | _estimated([one], level))
    for against, products in sorted(opponents.items()):
        both = list(combinations(sorted(products, reverse=True), 2))
        if len(both) > options.win_rates.differences_up_to:
            continue
        for product, other in both:
            keys = about | {"estimand": "difference", "product": product, "other_product": other}
            sides = [match(product, against), match(other, against)]
            rows.append(keys | {"against": against} | _estimated(sides, level))
    return rows


def _match(
    judgments: Judgments,
    pair: npt.NDArray[np.int64],
    said: npt.NDArray[np.int64],
    product: str,
    labels: pd.DataFrame,
    frame: pd.DataFrame,
) -> _Match:
    """Return people's and the judge's points for a product on the pairs that had a chance to be labelled."""
    known = judgments.pairs.iloc[pair]
    ids = known["pair_id"].astype(str)
    is_first = (known["candidate_a"] == product).to_numpy(dtype=bool)
    side = np.where(is_first, A, B)[:, None]
    asked = said >= 0
    undecided = (said == TIE) | (said == ABSTAIN) | (said == FAILED)
    points = np.where(undecided, 0.5, said == side) * asked
    judge = points.sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    by_pair_id = labels.drop_duplicates("pair_id").set_index("pair_id")["label"]
    answers = ids.map(by_pair_id)
    human = np.array(
        [
            _POINTS[str(answer)][0 if first else 1] if isinstance(answer, str) else np.nan
            for answer, first in zip(answers, is_first, strict=True)
        ],
        dtype=np.float64,
    )
    there = frame.set_index("pair_id")
    probability = ids.map(there["inclusion_probability"]).to_numpy(np.float64)
    drawn = ids.map(there["drawn"].astype(float)).fillna(0.0).to_numpy(np.float64) > 0
    reasons = (
        there["undefined"].reindex(ids).dropna() if "undefined" in there.columns else pd.Series(dtype=str)
    )
    chance = probability > 0
    reason = ""
    if len(reasons):
        reason = str(reasons.iloc[0])
    elif not chance.any():
        reason = "no_pair_with_a_chance"
    elif np.isnan(human[chance & drawn]).any():
        reason = "drawn_pairs_without_label"
    # A label of a pair that was not drawn came some other way: it is no part of the random subset.
    human = np.where(drawn, human, np.nan)
    tasks = known["base_id"].astype(str).to_numpy(dtype=object)
    labelled = chance & ~np.isnan(human)
    if not reason and len(set(tasks[labelled])) < 2:
        reason = "fewer_than_2_labelled_tasks"
    return _Match(
        human[chance], judge[chance], probability[chance], tasks[chance],
        int((~chance).sum()), int((said[chance] == FAILED).sum()), reason,
    )  # fmt: skip


def _estimated(sides: list[_Match], level: float) -> dict[str, object]:
    """Return the estimate of one product's win rate, or of the difference of two, or why there is none."""
    counts: dict[str, object] = {
        "n_labelled": sum(int((~np.isnan(side.human)).sum()) for side in sides),
        "n_pairs": sum(len(side.judge) for side in sides),
        "n_clusters": len({task for s in sides for task in s.tasks[~np.isnan(s.human)]}),
        "n_without_chance": sum(side.without_chance for side in sides),
        "n_failed": sum(side.failed for side in sides),
    }
    reason = next((side.reason for side in sides if side.reason), "")
    if reason:
        return counts | {"reason": reason, "interval_reason": "not_defined"}
    try:
        found: Estimate
        if len(sides) == 1:
            one = sides[0]
            found = ppi_mean(one.human, one.judge, one.probability, one.tasks, level)
        else:
            one, two = sides
            found = ppi_difference(
                (one.human, two.human),
                (one.judge, two.judge),
                (one.probability, two.probability),
                (one.tasks, two.tasks),
                level,
            )
    except PredictionPoweredError as error:
        places = "; ".join(str(problem) for problem in error.problems)
        return counts | {"reason": f"refused: {places}", "interval_reason": "not_defined"}
    numbers = found._asdict()
    row = counts | {name: numbers[name] for name in WIN_RATE_COLUMNS if name in numbers}
    row |= {"n_labelled": found.n_labelled, "n_pairs": found.n_pairs, "n_clusters": found.clusters}
    for low, high in (("low", "high"), ("judge_bias_low", "judge_bias_high")):
        # An interval of no width would read as certainty.
        if numbers[high] - numbers[low] < 1e-12:
            row |= {low: np.nan, high: np.nan}
    row["interval_reason"] = "no_variation" if np.isnan(row["low"]) else ""  # type: ignore[call-overload]
    return row | {"reason": ""}


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    kinds = {
        name: "str" if name in _TEXTS else "Int64" if name in _INTEGERS else "float64"
        for name in WIN_RATE_COLUMNS
    }
    return table.astype(kinds)
