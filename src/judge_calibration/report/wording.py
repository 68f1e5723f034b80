"""How numbers, cells and reasons are worded for people."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

REASONS = {
    "one_repetition": "only one repetition",
    "one_order_only": "only one order",
    "one_order": "only one order",
    "no_reference": "no reference labels",
    "no_decisive_reference": "no pair with a decisive reference",
    "no_pairs": "no pairs",
    "no_terms": "nothing to average",
    "no_agreeing_pair": "no pair on which both orders agree",
    "no_disagreeing_pair": "no pair on which the orders differ",
    "phi_is_one": "every pair changes with the order",
    "no_resolved_verdict": "no verdict to read",
    "fewer_than_10_clusters": "fewer than 10 base tasks",
    "fewer_than_30_clusters": "fewer than 30 base tasks",
    "annotator_annotator": "annotator with annotator",
    "annotator_adjudicated": "annotator with adjudicated labels",
    "annotator_dawid_skene": "annotator with labels by Dawid-Skene",
    "one_category": "only one category",
}


def reason_text(reason: str) -> str:
    """Return a reason code in words; an unknown code is shown with its underscores as spaces.

    Examples
    --------
    >>> reason_text("one_repetition")
    'only one repetition'
    """
    return REASONS.get(reason, reason.replace("_", " "))


def is_missing(value: Any) -> bool:
    """Return whether a table cell is null or NaN."""
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def percent(value: Any, digits: int = 1) -> str:
    """Return a share in [0, 1] as a percentage; a missing one as an en dash.

    Examples
    --------
    >>> percent(0.0512), percent(float("nan"))
    ('5.1 %', '–')
    """
    return "–" if is_missing(value) else f"{100 * float(value):.{digits}f} %"


def share_with_interval(row: Mapping[str, Any], metric: str) -> str:
    """Return a statistic of a trust row with its interval, or why it or its interval is undefined.

    Examples
    --------
    >>> share_with_interval({"C": 0.5, "C_low": 0.4, "C_high": 0.6, "undefined": "{}"}, "C")
    '50.0 % (40.0 to 60.0)'
    >>> share_with_interval({"C": float("nan"), "undefined": '{"C": "one_repetition"}'}, "C")
    'undefined: only one repetition'
    """
    reasons = undefined_reasons(row)
    if is_missing(row.get(metric)):
        return f"undefined: {reason_text(reasons.get(metric, 'no reason given'))}"
    low: Any = row.get(f"{metric}_low")
    high: Any = row.get(f"{metric}_high")
    if is_missing(low) or is_missing(high):
        return percent(row[metric])
    return f"{percent(row[metric])} ({100 * float(low):.1f} to {100 * float(high):.1f})"


def undefined_reasons(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons of a table row's column ``undefined`` by statistic."""
    text = row.get("undefined")
    return {} if is_missing(text) or not text else dict(json.loads(str(text)))


def cell_name(row: Mapping[Any, Any], with_source: bool = False, with_temperature: bool = True) -> str:
    """Name a cell: judge, protocol, constraint and temperature.

    Examples
    --------
    >>> cell_name({"judge_id": "j", "protocol": "direct", "constraint": "none", "temperature": 0.0})
    'j, direct, free text, t = 0'
    """
    constraint = row.get("constraint")
    parts = [str(row["judge_id"])]
    # Names that already say the protocol or the constraint do not say it twice.
    if not is_missing(row.get("protocol")):
        parts.append(str(row["protocol"]))
    if not is_missing(constraint):
        parts.append(
            {"none": "free text", "grammar": "grammar-constrained"}.get(str(constraint), str(constraint))
        )
    temperature = row.get("temperature")
    if with_temperature:
        parts.append("own temperature" if is_missing(temperature) else f"t = {float(str(temperature)):g}")
    if with_source and not is_missing(row.get("source")):
        parts.append(f"on {row['source']}")
    return ", ".join(parts)


def count_noun(n: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> count_noun(1, "pair"), count_noun(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"
