"""Costs: what the answers used, times the price table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from judge_calibration.metrics.rates import ratio
from judge_calibration.options.asking import PriceOptions

COST_COLUMNS = (
    "judge_id",
    "protocol",
    "constraint",
    "temperature",
    "instrument_id",
    "calls",
    "answers",
    "failures",
    "answers_without_usage",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "judgments",
    "valid_verdicts",
    "cost",
    "cost_per_valid_verdict",
    "reason",
)
"""Columns of the cost table, in order."""

SPENDING_COLUMNS = (
    "judge_id",
    "protocol",
    "constraint",
    "calls_planned",
    "answers",
    "failures",
    "answers_without_usage",
    "prompt_tokens_planned",
    "prompt_tokens_most",
    "prompt_tokens",
    "completion_tokens_most",
    "completion_tokens",
    "cost_planned",
    "cost_most",
    "cost",
    "reason",
)
"""Columns of the table of plan and spending, in order."""

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


def price_of(prompt: float, completion: float, cached: float, price: PriceOptions | None) -> float:
    """Return the price of tokens, in the currency of the price table; NaN without a price.

    Parameters
    ----------
    prompt, completion, cached : float
        Tokens; cached ones are part of the prompt's.
    price : PriceOptions or None
        Per million tokens.

    Examples
    --------
    1,000 prompt tokens, 400 of them cached, and 100 completion tokens at 2, 1 and 8 a million:
    (600 x 2 + 400 x 1 + 100 x 8) / 1,000,000.

    >>> table = PriceOptions(input_per_million=2, output_per_million=8, cached_input_per_million=1)
    >>> price_of(1000, 100, 400, table)
    0.0024
    """
    if price is None:
        return float("nan")
    cheaper = (
        price.input_per_million if price.cached_input_per_million is None else price.cached_input_per_million
    )
    fresh = prompt - cached
    return (fresh * price.input_per_million + cached * cheaper + completion * price.output_per_million) / 1e6


def cost_table(
    calls: pd.DataFrame,
    answers: pd.DataFrame,
    verdicts: pd.DataFrame,
    prices: Mapping[str, PriceOptions | None],
) -> pd.DataFrame:
    """Return what every cell's answers used and cost.

    Parameters
    ----------
    calls, answers, verdicts : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`. An answer that several pairs share is counted once.
    prices : mapping of str to PriceOptions or None
        Price of each judge.

    Returns
    -------
    pandas.DataFrame
        Columns COST_COLUMNS, one row a cell. ``cost`` is NaN, with a reason, for a judge without a price
        (``unpriced``) and where an answer came without its usage (``usage_missing``): unknown, not 0.
    """
    keys = ["judge_id", "protocol", "constraint", "temperature", "instrument_id"]
    once = calls[[*keys, "call_id"]].drop_duplicates()
    joined = once.merge(answers[["call_id", "failure", *_TOKENS]], on="call_id", how="left", indicator=True)
    joined["arrived"] = (joined["_merge"] == "both") & joined["failure"].isna()
    joined["failed"] = (joined["_merge"] == "both") & joined["failure"].notna()
    lacking = joined["prompt_tokens"].isna() | joined["completion_tokens"].isna()
    joined["no_usage"] = joined["arrived"] & lacking
    for column in _TOKENS:
        joined[column] = pd.to_numeric(joined[column]).fillna(0)
    own = verdicts[verdicts["instrument_id"].isin(once["instrument_id"])]
    counted = own.assign(valid=own["outcome"] == "valid").groupby(keys, dropna=False)["valid"]
    judged = counted.agg(judgments="size", valid_verdicts="sum").reset_index()
    rows = []
    for key, part in joined.groupby(keys, dropna=False, sort=True):
        tokens = {column: int(part[column].sum()) for column in _TOKENS}
        price = prices.get(str(key[0]))
        without = int(part["no_usage"].sum())
        cost = price_of(tokens["prompt_tokens"], tokens["completion_tokens"], tokens["cached_tokens"], price)
        reason = "unpriced" if price is None else "usage_missing" if without else ""
        cost = np.nan if reason else cost
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "calls": len(part),
                "answers": int(part["arrived"].sum()),
                "failures": int(part["failed"].sum()),
                "answers_without_usage": without,
                **tokens,
                "cost": cost,
                "reason": reason,
            }
        )
    frame = pd.DataFrame(rows, columns=[c for c in COST_COLUMNS if c not in judged.columns or c in keys])
    frame = frame.drop(columns="cost_per_valid_verdict").astype({"temperature": "float64"})
    frame = frame.merge(judged, on=keys, how="left")
    for column in ("judgments", "valid_verdicts"):
        frame[column] = frame[column].fillna(0)
    frame["cost_per_valid_verdict"] = ratio(frame["cost"], frame["valid_verdicts"])
    text = {"judge_id", "protocol", "constraint", "instrument_id", "reason"}
    numbers = {"temperature", "cost", "cost_per_valid_verdict"}
    kinds = {c: "str" if c in text else "float64" if c in numbers else "Int64" for c in COST_COLUMNS}
    return frame[list(COST_COLUMNS)].astype(kinds)


def spending_table(
    plan: pd.DataFrame,
    calls: pd.DataFrame,
    answers: pd.DataFrame,
    prices: Mapping[str, PriceOptions | None],
) -> pd.DataFrame:
    """Return what was planned beside what it took, by judge, protocol and constraint.

    Parameters
    ----------
    plan : pandas.DataFrame
        Of :func:`judge_calibration.judges.call_plan.call_plan`, made before anything was asked.
    calls, answers : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`. A call that several judgments share counts once, and
        answers that an earlier run received count as well: the plan holds their calls too.
    prices : mapping of str to PriceOptions or None
        Price of each judge.

    Returns
    -------
    pandas.DataFrame
        Columns SPENDING_COLUMNS. ``prompt_tokens_planned`` and ``cost_planned`` are estimates, ``_most``
        upper bounds. ``cost`` is NaN, with a reason, as in :func:`cost_table` (``unpriced``,
        ``usage_missing``).
        Failed calls have no usage: what a provider charges for them is not on record.
    """
    groups = ["judge_id", "protocol", "constraint"]
    once = calls[[*groups, "call_id"]].drop_duplicates()
    joined = once.merge(answers[["call_id", "failure", *_TOKENS]], on="call_id", how="inner")
    arrived = joined[joined["failure"].isna()]
    rows = []
    for planned in plan.to_dict("records"):
        key = [planned[name] for name in groups]
        own = arrived[(arrived[groups] == key).all(axis=1)]
        without = int((own["prompt_tokens"].isna() | own["completion_tokens"].isna()).sum())
        used = {name: int(pd.to_numeric(own[name]).fillna(0).sum()) for name in _TOKENS}
        price = prices.get(str(planned["judge_id"]))
        reason = "unpriced" if price is None else "usage_missing" if without else ""
        cost = price_of(used["prompt_tokens"], used["completion_tokens"], used["cached_tokens"], price)
        rows.append(
            {
                **dict(zip(groups, key, strict=True)),
                "calls_planned": planned["calls"],
                "answers": len(own),
                "failures": int(((joined[groups] == key).all(axis=1) & joined["failure"].notna()).sum()),
                "answers_without_usage": without,
                "prompt_tokens_planned": planned["prompt_tokens_estimated"],
                "prompt_tokens_most": planned["prompt_tokens_most"],
                "prompt_tokens": used["prompt_tokens"],
                "completion_tokens_most": planned["completion_tokens_most"],
                "completion_tokens": used["completion_tokens"],
                "cost_planned": planned["price_estimated"],
                "cost_most": planned["price_most"],
                "cost": np.nan if reason else cost,
                "reason": reason,
            }
        )
    text = {"judge_id", "protocol", "constraint", "reason"}
    kinds = {
        c: "str" if c in text else "float64" if c.startswith("cost") else "Int64" for c in SPENDING_COLUMNS
    }
    return pd.DataFrame(rows, columns=list(SPENDING_COLUMNS)).astype(kinds)
