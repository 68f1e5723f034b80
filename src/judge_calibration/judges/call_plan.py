"""What a plan will take before anything is spent: calls, tokens and money, from the actual prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd

from judge_calibration.judges.budget import most_cost, most_prompt_tokens, price_of
from judge_calibration.options.asking import TransportOptions

_BYTES_A_TOKEN: Final = 4.0
"""Of English text, for the estimate; the upper bound takes one."""

COLUMNS: Final = (
    "judge_id",
    "model",
    "protocol",
    "constraint",
    "judgments",
    "calls",
    "prompt_tokens_estimated",
    "prompt_tokens_most",
    "completion_tokens_most",
    "price_estimated",
    "price_most",
    "price_known",
)


def call_plan(calls: pd.DataFrame, transports: Mapping[str, TransportOptions]) -> pd.DataFrame:
    """Return what a plan takes, one row a judge, protocol and constraint.

    Parameters
    ----------
    calls : pandas.DataFrame
        The table ``calls``. A call that several judgments share counts once.
    transports : mapping of str to TransportOptions
        For the prices, by judge_id.

    Returns
    -------
    pandas.DataFrame
        ``judgments``: planned (pair, order, temperature, repetition). ``calls``: distinct requests.
        ``prompt_tokens_estimated``: a quarter of the prompts' bytes. ``prompt_tokens_most`` and
        ``completion_tokens_most``: upper bounds, which the budget guard uses. ``price_estimated``: of the
        estimated prompt and of answers as long as they may be. Prices are null where none is set, and in
        the currency of the prices otherwise.
    """
    rows = []
    groups = ["judge_id", "protocol", "constraint"]
    judgment = ["pair_id", "order", "temperature", "repetition"]
    distinct = calls.drop_duplicates("call_id")
    for key, part in calls.groupby(groups, sort=True):
        judge_id, protocol, constraint = key
        own = distinct[(distinct[groups] == list(key)).all(axis=1)]
        requests = [json.loads(request) for request in own["request"]]
        totals = _totals(requests, transports[str(judge_id)])
        model = requests[0]["model"] if requests else None
        judgments = len(part.drop_duplicates(judgment))
        rows.append([judge_id, model, protocol, constraint, judgments, len(own), *totals])
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(
        {"model": "str", "price_estimated": "float64", "price_most": "float64"}
    )


def _totals(requests: Sequence[Mapping[str, Any]], transport: TransportOptions) -> list[Any]:
    bytes_shown = sum(
        len(message["content"].encode("utf-8", "surrogatepass"))
        for request in requests
        for message in request["messages"]
    )
    estimated = round(bytes_shown / _BYTES_A_TOKEN)
    most = sum(most_prompt_tokens(request) for request in requests)
    bounds = [most_cost(request, transport.price) for request in requests]
    answers = sum(bound.tokens for bound in bounds) - most
    if transport.price is None:
        return [estimated, most, answers, None, None, False]
    expected = price_of(estimated, answers, 0, transport.price)
    return [estimated, most, answers, expected, sum(bound.money for bound in bounds), True]
