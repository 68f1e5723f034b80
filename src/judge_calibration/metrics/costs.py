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
