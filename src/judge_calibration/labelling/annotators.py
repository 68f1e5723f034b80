"""Each annotator: agreement with others, habits of position, and drift over the time of the round."""

from __future__ import annotations

import math
from typing import NamedTuple

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


class _Labels(NamedTuple):
    """Overall primary labels as numbers, an item a label: what each adds to the rates of its annotator.

    Attributes
    ----------
    annotator, kind : numpy.ndarray of str
    pair, cluster : numpy.ndarray of int
        Codes of the pair (in the order of its id) and of its base task.
    moment : pandas.Series
        When it was given; missing without a time.
    expected, as_expected, disputed, upheld, ordered, first, tie, abstained : numpy.ndarray of bool
        ``ordered``: A or B, with a known order; ``first``: and for whichever was shown first.
    """

    annotator: np.ndarray
    kind: np.ndarray
    pair: np.ndarray
    cluster: np.ndarray
    moment: pd.Series
    expected: np.ndarray
    as_expected: np.ndarray
    disputed: np.ndarray
    upheld: np.ndarray
    ordered: np.ndarray
    first: np.ndarray
    tie: np.ndarray
    abstained: np.ndarray


class _Meetings(NamedTuple):
    """Every comparison twice, once under each of its two people, with whether they agree."""

    annotator: np.ndarray
    pair: np.ndarray
    cluster: np.ndarray
    same: np.ndarray


def _as_numbers(own: pd.DataFrame, pairs: pd.DataFrame, settled: pd.Series) -> _Labels:
    """Return the labels of one kind as numbers."""
    label = own["label"].to_numpy(object)
    expected = own["pair_id"].map(pairs.set_index("pair_id")["expected"])
    verdict = own["pair_id"].map(settled)
    decisive = own["label"].isin(schemas.DECISIVE).to_numpy(bool)
    first = own["order"].map({"AB": "A", "BA": "B"}).to_numpy(object)
    ordered = decisive & own["order"].notna().to_numpy(bool)
    return _Labels(
        own["annotator_id"].to_numpy(object),
        own["kind"].to_numpy(object),
        own["pair"].to_numpy(np.int64),
        own["cluster"].to_numpy(np.int64),
        own["labelled_at"],
        expected.notna().to_numpy(bool),
        expected.notna().to_numpy(bool) & (label == expected.to_numpy(object)),
        verdict.notna().to_numpy(bool),
        verdict.notna().to_numpy(bool) & (label == verdict.to_numpy(object)),
        ordered,
        ordered & (label == first),
        label == "TIE",
        label == "ABSTAIN",
    )


def _meetings(own: pd.DataFrame) -> _Meetings:
    both = compare_people(own)
    same = (both["code_1"] == both["code_2"]).to_numpy(np.float64)
    people = np.concatenate([both[name].to_numpy(object) for name in ("annotator_1", "annotator_2")])
    twice = [np.tile(values, 2) for values in (both["pair"], both["cluster"], same)]
    return _Meetings(people, *twice)


def _of_people(names: np.ndarray) -> dict[str, np.ndarray]:
    """Return the places of each person's rows, the people in the order of their names."""
    codes, people = pd.factorize(names, sort=True)
    places = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(people)))
    parts = np.split(places, ends[:-1])
    return {str(name): part for name, part in zip(people, parts, strict=False)}


def _rates_of(own: _Labels, at: np.ndarray, met: _Meetings, meetings: np.ndarray) -> dict[str, Rate]:
    """Return the rates of one annotator (or one block of time): of the labels and comparisons at places."""
    clusters = own.cluster[at]
    ones = np.ones(len(at))
    return {
        "agreement_with_others": Rate(met.same[meetings], np.ones(len(meetings)), met.cluster[meetings]),
        "upheld_when_disputed": Rate(own.upheld[at], own.disputed[at], clusters),
        "agreement_with_expected": Rate(own.as_expected[at], own.expected[at], clusters),
        "first_position": Rate(own.first[at], own.ordered[at], clusters),
        "ties": Rate(own.tie[at], ones, clusters),
        "abstentions": Rate(own.abstained[at], ones, clusters),
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
    for kind, rows in primary[primary["attribute"].isna()].groupby("kind", sort=True):
        own, met = _as_numbers(rows, pairs, settled), _meetings(rows)
        everything = np.arange(len(own.pair)), np.arange(len(met.same))
        meetings = _of_people(met.annotator)
        groups = {"all": everything} | {
            name: (at, meetings.get(name, _NOWHERE)) for name, at in _of_people(own.annotator).items()
        }
        for name, (at, those) in groups.items():
            for statistic, rate in _rates_of(own, at, met, those).items():
                keys.append({"kind": kind, "annotator_id": name, "statistic": statistic})
                rates.append(rate)
    return _table(keys, rates, ANNOTATOR_COLUMNS, options)


_NOWHERE = np.array([], dtype=np.int64)


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
    timed = primary[primary["attribute"].isna() & primary["labelled_at"].notna()]
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    nothing = pd.Series([], dtype="str")
    blocks = options.drift_blocks
    for kind, everybody in timed.groupby("kind", sort=True):
        own, met = _as_numbers(everybody, pairs, nothing), _meetings(everybody)
        given = own.moment.to_numpy(object)
        moment = pd.to_datetime(own.moment, utc=True, format="ISO8601").dt.tz_localize(None).to_numpy()
        meetings = _of_people(met.annotator)
        for name, at in _of_people(own.annotator).items():
            if len(at) < blocks:
                continue
            ordered = at[np.lexsort((own.pair[at], moment[at]))]
            block = np.arange(len(ordered)) * blocks // len(ordered) + 1
            block_of_pair = np.zeros(own.pair.max() + 1, dtype=np.int64)
            block_of_pair[own.pair[ordered]] = block
            those = meetings.get(name, _NOWHERE)
            block_of_meeting = block_of_pair[met.pair[those]]
            for number in range(1, blocks + 1):
                part = ordered[block == number]
                found = _rates_of(own, part, met, those[block_of_meeting == number])
                del found["upheld_when_disputed"]
                times = {"since": min(given[part]), "until": max(given[part])}
                for statistic, rate in found.items():
                    about = {"kind": kind, "annotator_id": name, "block": str(number), "statistic": statistic}
                    keys.append(about | times)
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
