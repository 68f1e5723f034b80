"""People against what was constructed, against a model of their errors, and as the ceiling of the judges."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.clustered_rates import RATE_COLUMNS, Rate, estimate_rates
from judge_calibration.labelling.comparisons import primary_labels
from judge_calibration.metrics.dawid_skene import dawid_skene
from judge_calibration.options.annotation import AnalysisOptions

EXPECTED_COLUMNS = ["kind", "stage", "manipulation", "difficulty", "statistic", *RATE_COLUMNS]
"""Columns of the agreement with the expected relationship.

``stage`` individual (every primary label is a unit) or adjudicated (every pair); ``statistic``:
``as_expected``, and for pairs that expect a tie ``modified_wins``, ``original_wins`` and
``modified_minus_original``; ``abstained`` for all.
"""

POSTERIOR_COLUMNS = ["kind", "pair_id", "label", "A", "B", "TIE", "ABSTAIN", "n_labels", "undefined"]
ERROR_COLUMNS = ["kind", "annotator_id", "true_label", "given_label", "probability", "n_labels", "undefined"]
CEILING_COLUMNS = ["kind", "slice_by", "slice", "comparison", *RATE_COLUMNS]
FEWEST_ANNOTATORS = 3


def expected_relationship(
    labels: pd.DataFrame, pairs: pd.DataFrame, adjudicated: pd.DataFrame, options: AnalysisOptions
) -> pd.DataFrame:
    """Return how often people see the constructed relationship, by manipulation and difficulty.

    Parameters
    ----------
    labels, pairs, adjudicated : pandas.DataFrame
        Individual labels, pairs with `expected` and `modified`, adjudicated labels.
    options : AnalysisOptions
        Resamples and confidence.

    Returns
    -------
    pandas.DataFrame
        EXPECTED_COLUMNS, each manipulation for difficulty ``all`` and each difficulty. The constructed
        relationship and people's labels stay two kinds of reference: this table compares them, it merges
        nothing.
    """
    facts = pairs.assign(cluster=pd.factorize(pairs["base_id"])[0]).set_index("pair_id")
    facts = facts[["cluster", "expected", "modified", "manipulation", "difficulty"]]
    primary = labels[(labels["stage"] == "primary") & labels["attribute"].isna()]
    single = primary[["pair_id", "kind", "label"]].assign(stage="individual")
    settled = adjudicated[adjudicated["attribute"].isna() & adjudicated["label"].notna()]
    agreed = settled[["pair_id", "label"]].assign(kind=settled["reference_kind"], stage="adjudicated")
    rows = pd.concat([single, agreed], ignore_index=True).join(facts, on="pair_id")
    rows = rows[rows["expected"].notna() & rows["manipulation"].notna()]
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    doubled = pd.concat([rows.assign(difficulty="all"), rows[rows["difficulty"].notna()]], ignore_index=True)
    by = ["kind", "stage", "manipulation", "difficulty"]
    for key, group in doubled.groupby(by, sort=True):
        for statistic, rate in _expected_rates(group).items():
            keys.append(dict(zip(by, key, strict=True)) | {"statistic": statistic})
            rates.append(rate)
    return _table(keys, rates, EXPECTED_COLUMNS, options)


def _expected_rates(group: pd.DataFrame) -> dict[str, Rate]:
    base, ones = group["cluster"], np.ones(len(group))
    out = {
        "as_expected": Rate(group["label"] == group["expected"], ones, base),
        "abstained": Rate(group["label"] == "ABSTAIN", ones, base),
    }
    tied = (group["expected"] == "TIE") & group["modified"].notna()
    if tied.any():
        modified = (tied & (group["label"] == group["modified"])).astype("float64")
        original = (
            tied & group["label"].isin(schemas.DECISIVE) & (group["label"] != group["modified"])
        ).astype("float64")
        out["modified_wins"] = Rate(modified, tied, base)
        out["original_wins"] = Rate(original, tied, base)
        out["modified_minus_original"] = Rate(modified - original, tied, base, signed=True)
    return out


def fit_annotator_errors(labels: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit Dawid and Skene's model to the overall primary labels.

    Parameters
    ----------
    labels : pandas.DataFrame
        Individual labels.

    Returns
    -------
    posterior : pandas.DataFrame
        POSTERIOR_COLUMNS: each pair's probabilities and likely label (null if two are equally likely).
    errors : pandas.DataFrame
        ERROR_COLUMNS: how probably each annotator gives each label for each true one.

    Notes
    -----
    With fewer than three annotators the model only repeats their shares, so nothing is fitted and
    ``undefined`` says ``fewer_than_three_annotators``. Labels of different kinds are fitted apart.
    """
    primary = labels[(labels["stage"] == "primary") & labels["attribute"].isna()]
    posteriors, errors = [], []
    for kind, own in primary.groupby("kind", sort=True):
        posterior, error = _fit(own)
        posteriors.append(posterior.assign(kind=kind))
        errors.append(error.assign(kind=kind))
    numbers = dict.fromkeys(schemas.VERDICTS, "float64")
    post = pd.concat(posteriors, ignore_index=True) if posteriors else pd.DataFrame(columns=POSTERIOR_COLUMNS)
    err = pd.concat(errors, ignore_index=True) if errors else pd.DataFrame(columns=ERROR_COLUMNS)
    texts = dict.fromkeys(["kind", "pair_id", "label", "undefined"], "str")
    names = dict.fromkeys(["kind", "annotator_id", "true_label", "given_label", "undefined"], "str")
    return (
        post[POSTERIOR_COLUMNS].astype(texts | numbers | {"n_labels": "Int64"}),
        err[ERROR_COLUMNS].astype(names | {"probability": "float64", "n_labels": "Int64"}),
    )


def _fit(own: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    names = list(schemas.VERDICTS)
    item, items = pd.factorize(own["pair_id"], sort=True)
    person, people = pd.factorize(own["annotator_id"], sort=True)
    label = own["label"].map({name: place for place, name in enumerate(names)}).to_numpy(dtype=np.int64)
    posterior = pd.DataFrame({"pair_id": items, "n_labels": np.bincount(item, minlength=len(items))})
    given = np.bincount(person, minlength=len(people))
    k = len(names)
    errors = pd.DataFrame(
        {
            "annotator_id": np.repeat(people, k * k),
            "true_label": np.tile(np.repeat(names, k), len(people)),
            "given_label": np.tile(names, k * len(people)),
            "n_labels": np.repeat(given, k * k),
        }
    )
    if len(people) < FEWEST_ANNOTATORS:
        nothing = dict.fromkeys(names, np.nan)
        reason = "fewer_than_three_annotators"
        return (
            posterior.assign(label=None, undefined=reason, **nothing),
            errors.assign(probability=np.nan, undefined=reason),
        )
    # Pairs with the same labels of the same people are fitted once, with their number as weight.
    said = np.full((len(items), len(people)), -1, dtype=np.int8)
    said[item, person] = label
    patterns, which, times = np.unique(said, axis=0, return_inverse=True, return_counts=True)
    votes = (patterns[:, :, None] == np.arange(k)).astype(np.float64)
    model = dawid_skene(votes, weights=times)
    each = model.posterior[which.ravel()]
    best = each.max(axis=1, keepdims=True)
    sole = np.isclose(each, best, rtol=0, atol=1e-9).sum(axis=1) == 1
    likely = np.array(names, dtype=object)[each.argmax(axis=1)]
    posterior["label"] = [label if one else None for label, one in zip(likely, sole, strict=True)]
    posterior["undefined"] = [None if one else "labels_equally_likely" for one in sole]
    posterior[names] = each
    return posterior, errors.assign(probability=model.confusion.ravel(), undefined=None)


def human_ceiling(
    labels: pd.DataFrame,
    pairs: pd.DataFrame,
    adjudicated: pd.DataFrame,
    posterior: pd.DataFrame,
    agreement: pd.DataFrame,
    options: AnalysisOptions,
) -> pd.DataFrame:
    """Return how well people themselves agree with what judges are measured against.

    Parameters
    ----------
    labels, pairs, adjudicated, posterior : pandas.DataFrame
        Individual and adjudicated labels, pairs, and the posterior labels of
        :func:`fit_annotator_errors`.
    agreement : pandas.DataFrame
        The table of :func:`~judge_calibration.labelling.agreement_of_people.human_agreement`.
    options : AnalysisOptions
        Slices, resamples, confidence.

    Returns
    -------
    pandas.DataFrame
        CEILING_COLUMNS. ``comparison``: ``annotator_annotator``, the ceiling to read a judge against;
        ``annotator_adjudicated`` and ``annotator_dawid_skene``, which flatter people, because those labels
        are made from the annotators' own.
    """
    pooled = agreement[
        (agreement["annotators"] == "all")
        & (agreement["labels"] == "all")
        & ~agreement["slice_by"].isin(["reason_code", "attribute"])
    ]
    among = pooled.assign(comparison="annotator_annotator")[CEILING_COLUMNS]
    primary = primary_labels(labels, pairs)
    own = primary[primary["attribute"].isna()]
    known = pairs.set_index("pair_id")
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    settled = adjudicated[adjudicated["attribute"].isna() & adjudicated["label"].notna()]
    for kind, rows in own.groupby("kind", sort=True):
        likely = posterior[posterior["kind"] == kind].set_index("pair_id")["label"]
        for comparison, reference in (
            (
                "annotator_adjudicated",
                settled[settled["reference_kind"] == kind].set_index("pair_id")["label"],
            ),
            ("annotator_dawid_skene", likely),
        ):
            against = rows["pair_id"].map(reference.dropna())
            same = (rows["label"] == against).astype("float64")
            slices = [("all", pd.Series("all", index=rows.index))]
            slices += [
                (column, rows["pair_id"].map(known[column].astype("str")))
                for column in options.slice_by
                if column in known.columns
            ]
            for slice_by, values in slices:
                for value, places in rows.groupby(values, sort=True).groups.items():
                    keys.append(
                        {"kind": kind, "slice_by": slice_by, "slice": value, "comparison": comparison}
                    )
                    there = against[places].notna()
                    rates.append(Rate(same[places] * there, there, rows["cluster"][places]))
    return pd.concat([among, _table(keys, rates, CEILING_COLUMNS, options)], ignore_index=True)


def _table(
    keys: list[dict[str, object]], rates: list[Rate], columns: list[str], options: AnalysisOptions
) -> pd.DataFrame:
    named = [column for column in columns if column not in RATE_COLUMNS]
    frame = pd.DataFrame(keys, columns=named).astype(dict.fromkeys(named, "str"))
    return pd.concat([frame, estimate_rates(rates, options)], axis=1)[columns]
