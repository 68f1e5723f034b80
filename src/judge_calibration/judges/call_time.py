"""How long asking will take, told from how fast the same judge answered before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import pandas as pd

from judge_calibration.options.asking import TransportOptions

NEVER_ASKED: Final = "never_asked"
"""Reason code: no earlier attempt of this judge tells how fast it answers."""


def calls_per_second(calls: pd.DataFrame, attempts: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Return how many calls a second each judge and protocol was seen to answer.

    Parameters
    ----------
    calls : pandas.DataFrame
        call_id, judge_id, protocol.
    attempts : pandas.DataFrame
        call_id, started_at, finished_at (ISO 8601).

    Returns
    -------
    dict
        By (judge_id, protocol): calls over the seconds in which at least one of them was under way, which
        counts concurrency, rate limits and retries as they were. Pauses between calls do not count.

    Examples
    --------
    Two calls side by side in 2 seconds, and a third one later in 1 second: 3 calls in 3 seconds.

    >>> calls = pd.DataFrame({"call_id": ["1", "2", "3"], "judge_id": "j", "protocol": "direct"})
    >>> attempts = pd.DataFrame({"call_id": ["1", "2", "3"],
    ...     "started_at": ["2026-01-01T00:00:00", "2026-01-01T00:00:00", "2026-01-01T00:01:00"],
    ...     "finished_at": ["2026-01-01T00:00:02", "2026-01-01T00:00:02", "2026-01-01T00:01:01"]})
    >>> calls_per_second(calls, attempts)
    {('j', 'direct'): 1.0}
    """
    known = calls[["call_id", "judge_id", "protocol"]].drop_duplicates("call_id")
    both = attempts[["call_id", "started_at", "finished_at"]].dropna().merge(known, on="call_id")
    rates = {}
    for key, part in both.groupby(["judge_id", "protocol"], sort=True):
        judge_id, protocol = key
        busy = _busy_seconds(part)
        if busy > 0:
            rates[str(judge_id), str(protocol)] = part["call_id"].nunique() / busy
    return rates


def _busy_seconds(attempts: pd.DataFrame) -> float:
    """Return the length of the union of the attempts' intervals."""
    starts = pd.to_datetime(attempts["started_at"], format="ISO8601", utc=True)
    ends = pd.to_datetime(attempts["finished_at"], format="ISO8601", utc=True)
    origin = starts.min()
    spans = sorted(zip((starts - origin).dt.total_seconds(), (ends - origin).dt.total_seconds(), strict=True))
    busy, reached = 0.0, 0.0
    for start, end in spans:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy


def add_time(
    plan: pd.DataFrame,
    rates: Mapping[tuple[str, str], float],
    transports: Mapping[str, TransportOptions],
) -> pd.DataFrame:
    """Add to a call plan how long it will take.

    Parameters
    ----------
    plan : pandas.DataFrame
        The result of :func:`.call_plan.call_plan`.
    rates : mapping
        By (judge_id, protocol), calls a second; see :func:`calls_per_second`.
    transports : mapping of str to TransportOptions
        For the rate limits, by judge_id.

    Returns
    -------
    pandas.DataFrame
        With ``seconds_least`` (from declared limits of requests and tokens a minute; 0 where there are none),
        ``seconds_estimated`` (at the rate seen before, and not below the least; NaN where the judge was
        never asked) and ``time_reason`` (``never_asked`` or empty).
    """
    estimated, least, reasons = [], [], []
    for row in plan.to_dict("records"):
        judge_id, protocol, calls = str(row["judge_id"]), str(row["protocol"]), int(row["calls"])
        limits = transports[judge_id]
        tokens = int(row["prompt_tokens_estimated"])
        bound = max(
            60 * calls / limits.requests_per_minute if limits.requests_per_minute else 0.0,
            60 * tokens / limits.tokens_per_minute if limits.tokens_per_minute else 0.0,
        )
        rate = rates.get((judge_id, protocol))
        least.append(bound)
        estimated.append(math.nan if rate is None and calls else max(bound, calls / rate if rate else 0.0))
        reasons.append(NEVER_ASKED if rate is None and calls else "")
    return plan.assign(seconds_estimated=estimated, seconds_least=least, time_reason=reasons).astype(
        {"seconds_estimated": "float64", "seconds_least": "float64", "time_reason": "str"}
    )
