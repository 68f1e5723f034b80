"""Each annotator: agreement with others, habits of position, and drift over the time of the round."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.clustered_rates import RATE_COLUMNS, Rate, estimate_rates
from judge_calibration.labelling.comparisons import compare_people, primary_labels
from judge_calibration.options.annotation import AnalysisOptions

ANNOTATOR_COLUMNS = ["kind", "annotator_id", "statistic", *RATE_COLUMNS]
"""Columns of the annotators' table; ``statistic`` is one of STATISTICS."""

STATISTICS = (
    "agreement_with_others",
    "upheld_when_disputed",
    "agreement_with_expected",
    "first_position",
    "ties",
    "abstentions",
)
"""What is said of each annotator, each a share.

``agreement_with_others`` over comparisons with every other primary label; ``upheld_when_disputed`` over
the pairs on which the primaries differed: the adjudicated label is this annotator's;
``agreement_with_expected`` over pairs whose relationship was constructed; ``first_position`` share of A and B
labels for whichever answer was shown first (one half without a habit, the order being random).
"""

DRIFT_COLUMNS = ["kind", "annotator_id", "block", "since", "until", "statistic", *RATE_COLUMNS]
"""Columns of the drift table; ``block`` 1, 2, ... in time, and ``change`` (last block minus first)."""


def _side_columns(primary: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the overall primary labels with expected label and whether the first shown answer won."""
    own = primary[primary["attribute"].isna()].reset_index(drop=True)
    own["expected"] = own["pair_id"].map(pairs.set_index("pair_id")["expected"])
    own["decisive"] = own["label"].isin(schemas.DECISIVE)
    first = own["order"].map({"AB": "A", "BA": "B"})
    own["first_won"] = own["decisive"] & (own["label"] == first)
    own["known_order"] = own["order"].notna()
    return own


def _with_others(own: pd.DataFrame) -> pd.DataFrame:
    """Return each comparison twice, once under each of its two people, with whether they agree."""
    both = compare_people(own)
    same = (both["label_1"] == both["label_2"]).astype("float64")
    frames = [
        pd.DataFrame(
            {
                "annotator_id": both[name],
                "pair_id": both["pair_id"],
                "cluster": both["cluster"],
                "kind": both["kind"],
                "same": same,
            }
        )
        for name in ("annotator_1", "annotator_2")
    ]
    return pd.concat(frames, ignore_index=True)


def _rates_of(rows: pd.DataFrame, others: pd.DataFrame, settled: pd.Series) -> dict[str, Rate]:
    """Return the rates of one annotator (or one block of time)."""
    clusters = rows["cluster"]
    ones = np.ones(len(rows))
    expected = rows["expected"].notna()
    verdict = rows["pair_id"].map(settled)
    known = rows["decisive"] & rows["known_order"]
    return {
        "agreement_with_others": Rate(others["same"], np.ones(len(others)), others["cluster"]),
        "upheld_when_disputed": Rate((rows["label"] == verdict) & verdict.notna(), verdict.notna(), clusters),
        "agreement_with_expected": Rate((rows["label"] == rows["expected"]) & expected, expected, clusters),
        "first_position": Rate(rows["first_won"] & known, known, clusters),
        "ties": Rate(rows["label"] == "TIE", ones, clusters),
        "abstentions": Rate(rows["label"] == "ABSTAIN", ones, clusters),
    }


def settled_by_others(adjudicated: pd.DataFrame) -> pd.Series:
    """Return the adjudicated overall labels that somebody else than the primaries gave, by pair.

    A label on which the primaries agreed is their own: it upholds nobody.
    """
    rows = adjudicated[adjudicated["attribute"].isna() & adjudicated["label"].notna()]
    rows = rows[rows["rule"] != "agreed"]
    return rows.set_index("pair_id")["label"]


def annotator_table(
    labels: pd.DataFrame, pairs: pd.DataFrame, adjudicated: pd.DataFrame, options: AnalysisOptions
) -> pd.DataFrame:
    """Return what is known of each annotator and, in rows called ``all``, of all together.

    Parameters
    ----------
    labels, pairs, adjudicated : pandas.DataFrame
        Individual labels, pairs, adjudicated labels.
    options : AnalysisOptions
        Resamples and confidence.

    Returns
    -------
    pandas.DataFrame
        ANNOTATOR_COLUMNS.
    """
    primary = primary_labels(labels, pairs)
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    settled = settled_by_others(adjudicated)
    for kind, own in _side_columns(primary, pairs).groupby("kind", sort=True):
        others = _with_others(own)
        by_person = dict(list(others.groupby("annotator_id")))
        groups = [("all", own), *((str(name), rows) for name, rows in own.groupby("annotator_id", sort=True))]
        for name, rows in groups:
            with_others = others if name == "all" else by_person.get(name, others.head(0))
            for statistic, rate in _rates_of(rows, with_others, settled).items():
                keys.append({"kind": kind, "annotator_id": name, "statistic": statistic})
                rates.append(rate)
    return _table(keys, rates, ANNOTATOR_COLUMNS, options)


def annotator_drift(labels: pd.DataFrame, pairs: pd.DataFrame, options: AnalysisOptions) -> pd.DataFrame:
    """Return each annotator's agreement and habits in equal blocks of time, and the change.

    Parameters
    ----------
    labels, pairs : pandas.DataFrame
        Individual labels and pairs. Labels without a time are left out.
    options : AnalysisOptions
        Number of blocks, resamples, confidence.

    Returns
    -------
    pandas.DataFrame
        DRIFT_COLUMNS. The row ``change`` is the last block minus the first, in the units of the statistic,
        with a cluster-resampled interval: 0 inside it is no sign of drift, and no proof of its absence.
    """
    primary = primary_labels(labels, pairs)
    timed = _side_columns(primary, pairs)
    timed = timed[timed["labelled_at"].notna()]
    timed = timed.assign(moment=pd.to_datetime(timed["labelled_at"], utc=True, format="ISO8601"))
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    nothing = pd.Series([], dtype="str")
    for kind, everybody in timed.groupby("kind", sort=True):
        others = _with_others(everybody)
        by_person = dict(list(others.groupby("annotator_id")))
        for name, rows in everybody.groupby("annotator_id", sort=True):
            ordered = rows.sort_values(["moment", "pair_id"], kind="stable").reset_index(drop=True)
            if len(ordered) < options.drift_blocks:
                continue
            block = np.arange(len(ordered)) * options.drift_blocks // len(ordered) + 1
            found = {}
            of_name = by_person.get(name, others.head(0))
            block_of_pair = pd.Series(block, index=ordered["pair_id"])
            others_block = of_name["pair_id"].map(block_of_pair)
            for number in range(1, options.drift_blocks + 1):
                part = ordered[block == number]
                found[number] = _rates_of(part, of_name[others_block == number], nothing)
                for statistic, rate in found[number].items():
                    if statistic == "upheld_when_disputed":
                        continue
                    keys.append(
                        {
                            "kind": kind,
                            "annotator_id": name,
                            "block": str(number),
                            "since": part["labelled_at"].min(),
                            "until": part["labelled_at"].max(),
                            "statistic": statistic,
                        }
                    )
                    rates.append(rate)
    out = _table(keys, rates, DRIFT_COLUMNS, options)
    return pd.concat([out, _changes(out, options)], ignore_index=True).sort_values(
        ["kind", "annotator_id", "statistic", "block"], kind="stable", ignore_index=True
    )


def _changes(table: pd.DataFrame, options: AnalysisOptions) -> pd.DataFrame:
    """Return last block minus first for each annotator and statistic, with a normal interval."""
    from statistics import NormalDist

    if table.empty:
        return table
    z = NormalDist().inv_cdf((1 + options.confidence) / 2)
    keys = ["kind", "annotator_id", "statistic"]
    first = table[table["block"] == "1"].set_index(keys)
    last = table[table["block"] == str(options.drift_blocks)].set_index(keys).reindex(first.index)
    change = last["value"] - first["value"]
    # Blocks hold different pairs, mostly of different base tasks: their errors are taken as independent.
    error = (first["jackknife_se"] ** 2 + last["jackknife_se"] ** 2).map(
        lambda v: math.sqrt(v) if v > 0 else math.nan
    )
    out = pd.DataFrame(
        {
            "block": "change",
            "since": first["since"],
            "until": last["until"],
            "value": change,
            "low": change - z * error,
            "high": change + z * error,
            "method": "jackknife",
            "jackknife_se": error,
            "n": first["n"] + last["n"],
            "n_clusters": first["n_clusters"] + last["n_clusters"],
            "undefined": [
                "nothing_to_count" if math.isnan(v) else "no_variation" if math.isnan(e) else None
                for v, e in zip(change, error, strict=True)
            ],
        }
    ).reset_index()
    return out[DRIFT_COLUMNS].astype(table.dtypes.to_dict())


def _table(
    keys: list[dict[str, object]], rates: list[Rate], columns: list[str], options: AnalysisOptions
) -> pd.DataFrame:
    named = [column for column in columns if column not in RATE_COLUMNS]
    frame = pd.DataFrame(keys, columns=named).astype(dict.fromkeys(named, "str"))
    return pd.concat([frame, estimate_rates(rates, options)], axis=1)[columns]
