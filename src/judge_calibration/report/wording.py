"""How numbers, cells and reasons are worded for people."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
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
    "no_variation": "the same in every base task",
    "fewer_than_2_labelled_tasks": "fewer than 2 labelled base tasks",
    "no_human_labels": "no human labels",
    "unpriced": "the judge has no price",
    "usage_missing": "an answer came without its usage",
    "training_price_unknown": "what training costs is not declared",
    "cost_not_recorded_here": "what it took is not on record here",
    "clopper_pearson": "Clopper-Pearson",
    "auroc": "area under the ROC curve",
    "brier": "Brier score",
    "gate_net": "the gate's net preference",
    "gate_for_new": "the gate says new",
    "human_human": "annotator with annotator",
    "simulated_simulated": "simulated annotator with annotator",
    "judge_human": "judge with annotator",
    "judge_simulated": "judge with simulated annotator",
    "judge_adjudicated": "judge with adjudicated labels",
    "judge_simulated_adjudicated": "judge with simulated adjudicated labels",
    "judge_dawid_skene": "judge with labels by Dawid-Skene",
    "judge_simulated_dawid_skene": "judge with simulated labels by Dawid-Skene",
    "judge_reference": "judge with reference",
    "dawid_skene": "labels by Dawid-Skene",
    "adjudicated": "adjudicated labels",
}

OWN_SOURCES = {"pair_bank": "pair bank", "private_sentinel": "private sentinel"}
"""Sources of this project's own pairs; others are called as their importer or the user calls them."""


def reason_text(reason: str) -> str:
    """Return a reason code in words; an unknown code is shown with its underscores as spaces.

    Examples
    --------
    >>> reason_text("one_repetition")
    'only one repetition'
    """
    return REASONS.get(reason, reason.replace("_", " "))


def source_name(source: object) -> str:
    """Return a source as a reader would say it; one that others named stays as they named it.

    Examples
    --------
    >>> source_name("pair_bank"), source_name("my_logs")
    ('pair bank', 'my_logs')
    """
    return OWN_SOURCES.get(str(source), str(source))


def slice_name(slice_by: object, name: object) -> str:
    """Return a slice in words: only sources stay as given.

    Examples
    --------
    >>> slice_name("domain", "evidence_seeking"), slice_name("source", "my_logs")
    ('evidence seeking', 'my_logs')
    """
    return source_name(name) if slice_by == "source" else str(name).replace("_", " ")


def against_name(against: str) -> str:
    """Return what a judge is compared with, in words; an annotator's own name stays as given.

    Examples
    --------
    >>> against_name("reference:constructed"), against_name("dawid_skene"), against_name("annotator:a_1")
    ('constructed reference', 'labels by Dawid-Skene', 'annotator: a_1')
    """
    kind, _, rest = against.partition(":")
    if kind == "reference" and rest:
        return f"{rest.replace('_', ' ')} reference"
    return f"{kind}: {rest}" if rest else reason_text(against)


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


def share_with_interval(row: Mapping[str, Any], metric: str, noted: Collection[str] = ()) -> str:
    """Return a statistic of a trust row with its interval, or why it or its interval is undefined.

    Parameters
    ----------
    noted : collection of str
        Reasons for a missing interval that a note beside the table gives for all its cells.

    Examples
    --------
    >>> share_with_interval({"C": 0.5, "C_low": 0.4, "C_high": 0.6, "undefined": "{}"}, "C")
    '50.0 % (40.0 to 60.0)'
    >>> share_with_interval({"C": float("nan"), "undefined": '{"C": "one_repetition"}'}, "C")
    'undefined: only one repetition'
    >>> share_with_interval({"q": 0.5, "undefined": '{"q_interval": "no_variation"}'}, "q")
    '50.0 % (no interval: the same in every base task)'
    """
    reasons = undefined_reasons(row)
    if is_missing(row.get(metric)):
        return f"undefined: {reason_text(reasons.get(metric, 'no reason given'))}"
    low: Any = row.get(f"{metric}_low")
    high: Any = row.get(f"{metric}_high")
    if is_missing(low) or is_missing(high):
        why = reasons.get(f"{metric}_interval")
        return percent(row[metric]) + (
            f" (no interval: {reason_text(why)})" if why and why not in noted else ""
        )
    return f"{percent(row[metric])} ({100 * float(low):.1f} to {100 * float(high):.1f})"


def undefined_reasons(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the reasons of a table row's column ``undefined`` by statistic."""
    text = row.get("undefined")
    return {} if is_missing(text) or not text else dict(json.loads(str(text)))


def cell_name(row: Mapping[Any, Any], with_source: bool = False, with_temperature: bool = True) -> str:
    """Name a cell: judge, protocol, constraint and temperature. A row without a judge is of people alone.

    Examples
    --------
    >>> cell_name({"judge_id": "j", "protocol": "direct", "constraint": "none", "temperature": 0.0})
    'j, direct, free text, t = 0'
    >>> cell_name({"judge_id": None, "protocol": None, "constraint": None, "temperature": None})
    'people'
    """
    constraint = row.get("constraint")
    of_people = is_missing(row["judge_id"])
    parts = ["people" if of_people else str(row["judge_id"])]
    # Names that already say the protocol or the constraint do not say it twice.
    if not is_missing(row.get("protocol")):
        parts.append(str(row["protocol"]))
    if not is_missing(constraint):
        parts.append(
            {"none": "free text", "grammar": "grammar-constrained"}.get(str(constraint), str(constraint))
        )
    temperature = row.get("temperature")
    if with_temperature and not of_people:
        parts.append("own temperature" if is_missing(temperature) else f"t = {float(str(temperature)):g}")
    if with_source and not is_missing(row.get("source")):
        parts.append(f"on {source_name(row['source'])}")
    return ", ".join(parts)


def count_noun(n: int, singular: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> count_noun(1, "pair"), count_noun(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"
