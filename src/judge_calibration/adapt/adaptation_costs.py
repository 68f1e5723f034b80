"""What adapting took and what judging with the result takes, so that methods meet at equal cost too.

Costs are tokens (the usage in the answers) and money (tokens times the price table): both repeat. Seconds
depend on the machine and are in the tables of attempts and in the training log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.costs import price_of
from judge_calibration.options.asking import PriceOptions

COST_COLUMNS = (
    "method",
    "judge_id",
    "protocol",
    "source",
    "budget",
    "labels",
    "adapt_calls",
    "adapt_tokens",
    "adapt_money",
    "pair_calls",
    "pair_tokens",
    "pair_money",
    "work_pairs",
    "total_tokens",
    "total_money",
    "accuracy",
    "delta",
    "best_at_its_tokens",
    "best_at_its_money",
    "reason",
)


class Usage(NamedTuple):
    """Calls, tokens and money of some answers; NaN where it is not known (unpriced, or without usage)."""

    calls: float
    tokens: float
    money: float


NOTHING = Usage(0.0, 0.0, 0.0)


def usage_of(calls: pd.DataFrame, answers: pd.DataFrame, price: PriceOptions | None) -> Usage:
    """Return what distinct calls used.

    Parameters
    ----------
    calls, answers : pandas.DataFrame
        The tables of those names. A call without an answer used nothing that is known.
    price : PriceOptions or None
        None: not known, so money is NaN.
    """
    ids = calls["call_id"].drop_duplicates()
    rows = answers[answers["call_id"].isin(ids) & answers["failure"].isna()]
    if rows.empty:
        return Usage(float(len(ids)), np.nan if len(ids) else 0.0, np.nan if len(ids) else 0.0)
    columns = ("prompt_tokens", "completion_tokens", "cached_tokens")
    prompt, completion, cached = (float(pd.to_numeric(rows[c]).fillna(0).sum()) for c in columns)
    if rows["prompt_tokens"].isna().any() or rows["completion_tokens"].isna().any():
        return Usage(float(len(ids)), np.nan, np.nan)
    money = np.nan if price is None else price_of(prompt, completion, cached, price)
    return Usage(float(len(ids)), prompt + completion, float(money))


def adaptation_costs(
    gains: pd.DataFrame,
    labels: Mapping[tuple[str, str], int],
    adapt: Mapping[tuple[str, str, str, str], Usage],
    per_pair: Mapping[tuple[str, str, str, str], Usage],
    work_pairs: int,
) -> pd.DataFrame:
    """Return what each adapted judge, and its base, takes for `work_pairs` new pairs, beside what it reaches.

    Parameters
    ----------
    gains : pandas.DataFrame
        The table of gains of judges that were really asked.
    labels : mapping of (source, budget) to int
        Labelled pairs that the budget comes to.
    adapt, per_pair : mapping of (method, judge_id, source, budget) to Usage
        What adapting took in all, and what judging one pair in both orders takes; the base has budget "none".
    work_pairs : int
        New pairs to be judged.

    Returns
    -------
    pandas.DataFrame
        COST_COLUMNS. best_at_its_tokens: nothing that was measured for this judge and source reaches at least
        as much for fewer tokens in all, and nothing more for as many (missing where tokens are not known);
        likewise for money.
    """
    rows: list[dict[str, Any]] = []
    for key, part in gains.groupby(["judge_id", "protocol", "source"], dropna=False, sort=True):
        judge, protocol, source = key
        names = {"judge_id": judge, "protocol": protocol, "source": source, "work_pairs": work_pairs}
        first = part.iloc[0]
        entries: list[tuple[str, str, Any, Any, int]] = [("base", "none", first["accuracy_base"], 0.0, 0)]
        entries += [
            (str(r.method), str(r.budget), r.accuracy, r.delta, labels.get((str(source), str(r.budget)), 0))
            for r in part.itertuples()
        ]
        for method, budget, accuracy, delta, n in entries:
            place = (method, str(judge), str(source), budget)
            made = adapt.get(place, NOTHING if method == "base" else None)
            each = per_pair.get(place)
            unknown = Usage(np.nan, np.nan, np.nan)
            known_made, known_each = made or unknown, each or unknown
            rows.append(
                names
                | {
                    "method": method,
                    "budget": budget,
                    "labels": n,
                    "adapt_calls": known_made.calls,
                    "adapt_tokens": known_made.tokens,
                    "adapt_money": known_made.money,
                    "pair_calls": known_each.calls,
                    "pair_tokens": known_each.tokens,
                    "pair_money": known_each.money,
                    "total_tokens": known_made.tokens + work_pairs * known_each.tokens,
                    "total_money": known_made.money + work_pairs * known_each.money,
                    "accuracy": accuracy,
                    "delta": delta,
                    "reason": None if made is not None and each is not None else "cost_not_recorded_here",
                }
            )
    frame = pd.DataFrame(rows).reindex(columns=list(COST_COLUMNS))
    for unit in ("tokens", "money"):
        frame[f"best_at_its_{unit}"] = _best(frame, f"total_{unit}")
    return frame.astype({"reason": "str", "protocol": "str"})


def _best(frame: pd.DataFrame, cost: str) -> pd.Series:
    found: dict[Any, bool] = {}
    known = frame[frame[cost].notna() & frame["accuracy"].notna()]
    for _, part in known.groupby(["judge_id", "protocol", "source"], dropna=False):
        for index, row in part.iterrows():
            cheaper = (part[cost] < row[cost]) & (part["accuracy"] >= row["accuracy"])
            better = (part[cost] <= row[cost]) & (part["accuracy"] > row["accuracy"])
            found[index] = not bool((cheaper | better).any())
    return pd.Series(found, dtype="boolean").reindex(frame.index)
