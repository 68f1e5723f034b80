"""What adapting took and what judging with the result takes, so that methods meet at equal cost too.

Costs are tokens (the usage in the answers), money (tokens times the price table) and seconds of the
clock: from start to end of each call's successful attempt, as the call store kept it, where a moment in which
several calls were under way is shared between them. So asking and training are on one scale. Seconds depend
on the machine and on what else it did; they repeat as long as the answers come from the store.
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
    "adapt_seconds",
    "pair_calls",
    "pair_tokens",
    "pair_money",
    "pair_seconds",
    "work_pairs",
    "total_tokens",
    "total_money",
    "total_seconds",
    "accuracy",
    "delta",
    "best_at_its_tokens",
    "best_at_its_money",
    "best_at_its_seconds",
    "reason",
)
UNITS = ("tokens", "money", "seconds")


class Usage(NamedTuple):
    """What some answers, or a training, took; NaN where it is not known.

    Attributes
    ----------
    calls, tokens, money : float
    seconds : float
        Of the clock; a moment in which several calls were under way is shared between them.
    reason : str or None
        Why money or tokens are not known: ``unpriced``, ``usage_missing`` or ``training_price_unknown``.
    """

    calls: float
    tokens: float
    money: float
    seconds: float
    reason: str | None = None

    def each(self, count: int) -> Usage:
        """Return the mean over so many; nothing is known of the mean over none.

        Examples
        --------
        >>> Usage(4, 800, 0.0, 2.0).each(2)
        Usage(calls=2.0, tokens=400.0, money=0.0, seconds=1.0, reason=None)
        """
        if not count:
            return UNKNOWN
        calls, tokens, money, seconds = (value / count for value in self[:4])
        return Usage(calls, tokens, money, seconds, self.reason)


NOTHING = Usage(0.0, 0.0, 0.0, 0.0)
UNKNOWN = Usage(np.nan, np.nan, np.nan, np.nan)


def with_seconds(answers: pd.DataFrame, attempts: pd.DataFrame) -> pd.DataFrame:
    """Return answers with a column of the seconds of the clock that each one's successful attempt took.

    A moment in which k attempts were under way counts 1/k for each, so that all together take as long as the
    clock says, however many were asked at once.

    Parameters
    ----------
    answers : pandas.DataFrame
        The table of that name.
    attempts : pandas.DataFrame
        call_id, started_at and finished_at (ISO 8601), failure (null: an answer arrived). What failed
        attempts and the waits between them took says more of the provider's day than of the method, and is
        left out.

    Examples
    --------
    >>> attempts = pd.DataFrame({"call_id": ["1", "1"], "failure": ["timeout", None],
    ...     "started_at": ["2026-01-01T00:00:00+00:00", "2026-01-01T00:01:00+00:00"],
    ...     "finished_at": ["2026-01-01T00:00:30+00:00", "2026-01-01T00:01:02.500000+00:00"]})
    >>> float(with_seconds(pd.DataFrame({"call_id": ["1"]}), attempts)["seconds"].iloc[0])
    2.5
    >>> both = pd.concat([attempts, attempts.assign(call_id="2")])  # at the same time
    >>> [float(s) for s in with_seconds(pd.DataFrame({"call_id": ["1", "2"]}), both)["seconds"]]
    [1.25, 1.25]
    """
    arrived = attempts[attempts["failure"].isna()].dropna(subset=["started_at", "finished_at"])
    # A call that two processes asked at once has two; the one that began first stands for it.
    first = arrived.sort_values("started_at", kind="stable").drop_duplicates("call_id")
    start, end = (
        pd.to_datetime(first[name], format="ISO8601", utc=True) for name in ("started_at", "finished_at")
    )
    begun, ended = (times.astype("datetime64[ns, UTC]").astype("int64").to_numpy() for times in (start, end))
    moments = np.unique(np.concatenate([begun, ended]))
    under_way = np.searchsorted(np.sort(begun), moments[:-1], "right") - np.searchsorted(
        np.sort(ended), moments[:-1], "right"
    )
    each = np.diff(moments) / 1e9 / np.maximum(under_way, 1)
    so_far = np.concatenate([[0.0], np.cumsum(each)])
    shares = so_far[np.searchsorted(moments, ended)] - so_far[np.searchsorted(moments, begun)]
    took = pd.Series(shares, index=first["call_id"].to_numpy(), dtype="float64")
    return answers.assign(seconds=answers["call_id"].map(took).astype("float64"))


def usage_of(calls: pd.DataFrame, answers: pd.DataFrame, price: PriceOptions | None) -> Usage:
    """Return what distinct calls used.

    Parameters
    ----------
    calls, answers : pandas.DataFrame
        The tables of those names, answers as :func:`with_seconds` returns them. A call without an answer used
        nothing that is known.
    price : PriceOptions or None
        None: not known, so money is NaN.
    """
    ids = calls["call_id"].drop_duplicates()
    count = float(len(ids))
    if not count:
        return NOTHING
    rows = answers[answers["call_id"].isin(ids) & answers["failure"].isna()]
    if rows.empty:
        return Usage(count, np.nan, np.nan, np.nan, "usage_missing")
    seconds = float(rows["seconds"].sum(skipna=False))
    if rows["prompt_tokens"].isna().any() or rows["completion_tokens"].isna().any():
        return Usage(count, np.nan, np.nan, seconds, "usage_missing")
    columns = ("prompt_tokens", "completion_tokens", "cached_tokens")
    prompt, completion, cached = (float(pd.to_numeric(rows[c]).fillna(0).sum()) for c in columns)
    money = float(price_of(prompt, completion, cached, price))
    return Usage(count, prompt + completion, money, seconds, "unpriced" if price is None else None)


def training_usage(tokens: float, seconds: float, price: PriceOptions | None) -> Usage:
    """Return what training a judge took.

    Parameters
    ----------
    tokens : float
        Prompt tokens of all epochs.
    seconds : float
        NaN where it was not written down.
    price : PriceOptions or None
        Of asking the judge. Where that is declared to be 0 the judge runs here, and training it here is paid
        for by nobody either; what a provider takes for training is not in a price of asking.

    Examples
    --------
    >>> training_usage(9_000, 60.0, PriceOptions(input_per_million=0, output_per_million=0)).money
    0.0
    >>> training_usage(9_000, 60.0, None).reason
    'training_price_unknown'
    """
    free = price is not None and not any(
        (price.input_per_million, price.output_per_million, price.cached_input_per_million)
    )
    return Usage(0.0, tokens, 0.0 if free else np.nan, seconds, None if free else "training_price_unknown")


def adaptation_costs(
    gains: pd.DataFrame,
    labels: Mapping[tuple[str, str, str], int],
    adapt: Mapping[tuple[str, str, str, str], Usage],
    per_pair: Mapping[tuple[str, str, str, str], Usage],
    work_pairs: int,
) -> pd.DataFrame:
    """Return what each adapted judge, and its base, takes for `work_pairs` new pairs, beside what it reaches.

    Parameters
    ----------
    gains : pandas.DataFrame
        The table of gains of judges that were really asked.
    labels : mapping of (method, source, budget) to int
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
        for r in part.itertuples():
            method, budget = str(r.method), str(r.budget)
            n = labels.get((method, str(source), budget), 0)
            entries.append((method, budget, r.accuracy, r.delta, n))
        for method, budget, accuracy, delta, n in entries:
            place = (method, str(judge), str(source), budget)
            made = adapt.get(place, NOTHING if method == "base" else None)
            each = per_pair.get(place)
            recorded = made is not None and each is not None
            made, each = made or UNKNOWN, each or UNKNOWN
            row: dict[str, Any] = names | {"method": method, "budget": budget, "labels": n}
            for unit in ("calls", *UNITS):
                row[f"adapt_{unit}"] = getattr(made, unit)
                row[f"pair_{unit}"] = getattr(each, unit)
            for unit in UNITS:
                row[f"total_{unit}"] = getattr(made, unit) + work_pairs * getattr(each, unit)
            reason = made.reason or each.reason if recorded else "cost_not_recorded_here"
            rows.append(row | {"accuracy": accuracy, "delta": delta, "reason": reason})
    frame = pd.DataFrame(rows).reindex(columns=list(COST_COLUMNS))
    for unit in UNITS:
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
