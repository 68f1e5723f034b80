"""How far people agree: overall, by slice, by two annotators, by reason code, and pair by pair.

Low agreement is a property of the pairs or of the rubric. It is listed, and nothing is dropped for it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.clustered_rates import RATE_COLUMNS, Rate, estimate_rates
from judge_calibration.labelling.comparisons import compare_people, confusion_of, label_counts, primary_labels
from judge_calibration.metrics.ac1 import gwet_ac1
from judge_calibration.metrics.alpha import krippendorff_alpha
from judge_calibration.metrics.kappa import cohen_kappa, why_no_kappa
from judge_calibration.options.annotation import AnalysisOptions
from judge_calibration.text import canonical_json

HUMAN_AGREEMENT_COLUMNS = [
    "kind",
    "slice_by",
    "slice",
    "annotators",
    "labels",
    "n_pairs",
    *RATE_COLUMNS,
    "kappa",
    "ac1",
    "alpha",
    "chance_undefined",
    "hard",
]
"""Columns of the agreement of people.

``annotators`` is ``all`` or two pseudonyms; ``labels`` is ``all`` (ties and abstentions are labels) or
``decisive`` (only where both gave A or B); ``value`` raw agreement over `n` comparisons; kappa and AC1 for
two annotators (AC1 over the labels that anybody used), alpha for all; ``hard``: raw agreement below the
declared threshold.
"""

ITEM_COLUMNS = [
    "kind",
    "pair_id",
    "base_id",
    "n_labels",
    "A",
    "B",
    "TIE",
    "ABSTAIN",
    "raw",
    "reason_codes",
    "hard",
]
CONFUSION_COLUMNS = ["kind", "annotators", "row_label", "column_label", "count", "row_percent"]


def _reason_rows(primary: pd.DataFrame) -> pd.DataFrame:
    """Return each pair's reason codes, a row each: those that anybody named for it."""
    rows = primary.loc[primary["attribute"].isna(), ["pair_id", "pair", "reason_codes"]].dropna()
    codes = {text: json.loads(text) for text in rows["reason_codes"].unique()}
    out = rows.assign(code=rows["reason_codes"].map(codes)).explode("code").dropna(subset=["code"])
    return out[["pair_id", "pair", "code"]].drop_duplicates()


def _slices(
    comparisons: pd.DataFrame, primary: pd.DataFrame, pairs: pd.DataFrame, options: AnalysisOptions
) -> list[tuple[str, str, pd.DataFrame]]:
    whole = comparisons[comparisons["attribute"].isna()]
    # Numbers alone are cut into slices: texts would be copied for each.
    overall = whole[["pair", "cluster", "code_1", "code_2"]]
    out = [("all", "all", overall)]
    known = pairs.set_index("pair_id")
    for column in options.slice_by:
        if column in known.columns:
            values = whole["pair_id"].map(known[column].astype("str"))
            out += [(column, str(value), rows) for value, rows in overall.groupby(values, sort=True)]
    for code, named in _reason_rows(primary).groupby("code", sort=True):
        about = np.isin(overall["pair"].to_numpy(), named["pair"].to_numpy())
        out.append(("reason_code", str(code), overall[about]))
    attributes = comparisons[comparisons["attribute"].notna()]
    out += [("attribute", str(value), rows) for value, rows in attributes.groupby("attribute", sort=True)]
    return out


def human_agreement(
    labels: pd.DataFrame, pairs: pd.DataFrame, options: AnalysisOptions, tie_labels: bool = True
) -> pd.DataFrame:
    """Return raw and chance-corrected agreement of people.

    Parameters
    ----------
    labels : pandas.DataFrame
        Individual labels; adjudications are left out, since the adjudicator is called only where two differ.
    pairs : pandas.DataFrame
        The pairs, for base tasks and slices.
    options : AnalysisOptions
        Slices, resamples, threshold of ``hard``.
    tie_labels : bool, optional
        Whether the rows with ties and abstentions are given beside the decisive ones.

    Returns
    -------
    pandas.DataFrame
        HUMAN_AGREEMENT_COLUMNS. Kappa, AC1 and alpha are NaN with a reason in ``chance_undefined``
        (``one_category``, ``no_items``) where they are undefined; raw agreement and n are shown nevertheless.

    References
    ----------
    Definitions, section 5.
    """
    primary = primary_labels(labels, pairs)
    rows: list[dict[str, object]] = []
    rates: list[Rate] = []
    for kind, own in primary.groupby("kind", sort=True):
        comparisons = compare_people(own)
        for alphabet in ("all", "decisive") if tie_labels else ("decisive",):
            kept = comparisons
            counted = own[own["attribute"].isna()]
            if alphabet == "decisive":
                kept = kept[kept["label_1"].isin(schemas.DECISIVE) & kept["label_2"].isin(schemas.DECISIVE)]
                counted = counted[counted["label"].isin(schemas.DECISIVE)]
            counts = label_counts(counted)
            for slice_by, slice_, chosen in _slices(kept, own, pairs, options):
                attribute = slice_by == "attribute"
                table = (
                    label_counts(own[own["attribute"] == slice_])
                    if attribute
                    else counts.loc[chosen["pair"].unique()]
                )
                if attribute and alphabet == "decisive":
                    table = table.assign(TIE=0, ABSTAIN=0)
                alpha = krippendorff_alpha(table.to_numpy())
                reason = "" if not np.isnan(alpha) else "one_category" if len(chosen) else "no_items"
                rows.append(
                    _keys(str(kind), slice_by, slice_, "all", alphabet, chosen["pair"].nunique())
                    | {"alpha": alpha, "chance_undefined": reason}
                )
                rates.append(_raw(chosen))
            by_two = _by_two_people(kept[kept["attribute"].isna()])
            alphabet_used = _used_labels(by_two.tables.sum(axis=0))
            used = by_two.tables[:, alphabet_used][:, :, alphabet_used]
            for place, names in enumerate(by_two.names):
                rows.append(
                    _keys(str(kind), "all", "all", names, alphabet, int(by_two.n_pairs[place]))
                    | {
                        "kappa": float(cohen_kappa(by_two.tables[place])),
                        "ac1": float(gwet_ac1(used[place])),
                        "chance_undefined": why_no_kappa(by_two.tables[place]),
                    }
                )
            rates += by_two.rates
    frame = pd.concat([pd.DataFrame(rows), estimate_rates(rates, options)], axis=1)
    frame["hard"] = frame["value"] < options.low_agreement
    frame = frame.reindex(columns=HUMAN_AGREEMENT_COLUMNS)
    texts = ["kind", "slice_by", "slice", "annotators", "labels", "method", "undefined"]
    frame["chance_undefined"] = frame["chance_undefined"].replace("", None)
    return frame.astype(
        dict.fromkeys([*texts, "chance_undefined"], "str")
        | dict.fromkeys(["value", "low", "high", "jackknife_se", "kappa", "ac1", "alpha"], "float64")
        | {"n_pairs": "Int64", "n": "Int64", "n_clusters": "Int64", "hard": "bool"}
    )


def _used_labels(table: np.ndarray) -> np.ndarray:
    """Return the labels that anybody used, at least two: AC1's chance agreement depends on their number."""
    used = np.flatnonzero(table.sum(axis=0) + table.sum(axis=1))
    spare = [label for label in range(len(table)) if label not in used]
    return np.sort(np.concatenate([used, spare[: max(0, 2 - len(used))]])).astype(np.int64)


class _ByTwo(NamedTuple):
    """Comparisons by their two people: names, tables of labels, distinct pairs, and raw agreement."""

    names: list[str]
    tables: np.ndarray
    n_pairs: np.ndarray
    rates: list[Rate]


def _by_two_people(comparisons: pd.DataFrame) -> _ByTwo:
    """Return the comparisons of every two people, all at once, in the order of their names."""
    one, ones = pd.factorize(comparisons["annotator_1"], sort=True)
    two, twos = pd.factorize(comparisons["annotator_2"], sort=True)
    both, group = np.unique(one * max(len(twos), 1) + two, return_inverse=True)
    names = [f"{ones[code // len(twos)]} | {twos[code % len(twos)]}" for code in both]
    k = len(schemas.VERDICTS)
    first, second, pair, cluster = (
        comparisons[name].to_numpy(np.int64) for name in ("code_1", "code_2", "pair", "cluster")
    )
    cells = (group * k + first) * k + second
    tables = np.bincount(cells, minlength=len(both) * k * k).reshape(-1, k, k)
    span = int(pair.max()) + 1 if len(pair) else 1
    n_pairs = np.bincount(np.unique(group * span + pair) // span, minlength=len(both))
    places = np.argsort(group, kind="stable")
    parts = np.split(places, np.cumsum(np.bincount(group, minlength=len(both)))[:-1]) if len(both) else []
    same = (first == second).astype(np.float64)
    rates = [Rate(same[part], np.ones(len(part)), cluster[part]) for part in parts]
    return _ByTwo(names, tables, n_pairs, rates)


def _keys(
    kind: str, slice_by: str, slice_: str, annotators: str, labels: str, n_pairs: int
) -> dict[str, object]:
    return {
        "kind": kind,
        "slice_by": slice_by,
        "slice": slice_,
        "annotators": annotators,
        "labels": labels,
        "n_pairs": n_pairs,
    }


def _raw(chosen: pd.DataFrame) -> Rate:
    same = (chosen["code_1"].to_numpy() == chosen["code_2"].to_numpy()).astype(np.float64)
    return Rate(same, np.ones(len(chosen)), chosen["cluster"])


def item_agreement(labels: pd.DataFrame, pairs: pd.DataFrame, options: AnalysisOptions) -> pd.DataFrame:
    """Return for each pair how its people labelled it and how far they agree, the hardest first.

    Parameters are those of :func:`human_agreement`.

    Returns
    -------
    pandas.DataFrame
        ITEM_COLUMNS; ``raw`` is the share of its annotator pairs that agree, NaN below two labels.
    """
    primary = primary_labels(labels, pairs)
    overall = primary[primary["attribute"].isna()]
    named = _reason_rows(primary).sort_values(["pair_id", "code"]).groupby("pair_id")["code"].agg(tuple)
    texts = {codes: canonical_json(list(codes)) for codes in set(named)}
    reasons = named.map(texts).astype("str")
    frames = []
    for kind, own in overall.groupby("kind", sort=True):
        counts = label_counts(own)
        names = own.drop_duplicates("pair").set_index("pair")["pair_id"].sort_index()
        counts = counts.loc[names.index].set_index(names)
        n = counts.sum(axis=1)
        agreeing = (counts * (counts - 1)).sum(axis=1)
        raw = (agreeing / (n * (n - 1)).where(n > 1)).astype("float64")
        frame = counts.assign(kind=kind, n_labels=n, raw=raw, hard=raw < options.low_agreement)
        frames.append(frame.reset_index())
    if not frames:
        return _typed_items(pd.DataFrame(columns=ITEM_COLUMNS))
    out = pd.concat(frames, ignore_index=True)
    out["base_id"] = out["pair_id"].map(pairs.set_index("pair_id")["base_id"])
    out["reason_codes"] = out["pair_id"].map(reasons)
    out = out.sort_values(["raw", "pair_id"], na_position="last", kind="stable").reset_index(drop=True)
    return _typed_items(out[ITEM_COLUMNS])


def _typed_items(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype(
        dict.fromkeys(["kind", "pair_id", "base_id", "reason_codes"], "str")
        | dict.fromkeys(["n_labels", *schemas.VERDICTS], "Int64")
        | {"raw": "float64", "hard": "bool"}
    )


def human_confusion(labels: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the confusion of people with one another: counts and row percentages.

    Returns
    -------
    pandas.DataFrame
        CONFUSION_COLUMNS, for all people (symmetric: each comparison counts both ways) and for every two.
        Row percentages are NaN where the row's label was never given.
    """
    primary = primary_labels(labels, pairs)
    frames = []
    for kind, own in primary[primary["attribute"].isna()].groupby("kind", sort=True):
        comparisons = compare_people(own)
        table = confusion_of(comparisons)
        frames.append(_confusion_rows(str(kind), "all", table + table.T))
        for (one, two), rows in comparisons.groupby(["annotator_1", "annotator_2"], sort=True):
            frames.append(_confusion_rows(str(kind), f"{one} | {two}", confusion_of(rows)))
    out = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=CONFUSION_COLUMNS)
    texts = ["kind", "annotators", "row_label", "column_label"]
    return out.astype(dict.fromkeys(texts, "str") | {"count": "Int64", "row_percent": "float64"})


def _confusion_rows(kind: str, annotators: str, table: np.ndarray) -> pd.DataFrame:
    k = len(schemas.VERDICTS)
    totals = table.sum(axis=1, keepdims=True)
    percent = np.where(totals > 0, 100 * table / np.maximum(totals, 1), np.nan)
    return pd.DataFrame(
        {
            "kind": kind,
            "annotators": annotators,
            "row_label": np.repeat(np.array(schemas.VERDICTS, dtype=object), k),
            "column_label": np.tile(np.array(schemas.VERDICTS, dtype=object), k),
            "count": table.ravel(),
            "row_percent": percent.ravel(),
        },
        columns=CONFUSION_COLUMNS,
    )
