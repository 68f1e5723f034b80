"""The human attribute study: which pairs, which attributes, and how far people agree on them.

Cases are chosen from a panel of judges: witnesses, on which the panel is split, and controls, on which it is
not. People give their overall preference first, and then two or three attributes of the same pair.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import Problem, SourceError
from judge_calibration.labelling.clustered_rates import RATE_COLUMNS, Rate, estimate_rates
from judge_calibration.labelling.comparisons import compare_people, primary_labels
from judge_calibration.labelling.drawing import rank_of
from judge_calibration.labelling.packets import attribute_slots
from judge_calibration.metrics.rates import ratio
from judge_calibration.options.annotation import AnalysisOptions, StudyOptions

ROLES = ("witness", "control")
CASE_COLUMNS = ["pair_id", "role", "judges_a", "judges_b", "minority_share"]
"""Columns of the cases; ``role`` witness or control, which no packet shows."""

STUDY_COLUMNS = [
    "kind",
    "cases",
    "question",
    "statistic",
    *RATE_COLUMNS,
    "agreeing",
    "lowest_item",
    "highest_item",
]
"""Columns of the study's results.

``cases`` all or witnesses; ``question`` overall, attributes (all of them pooled) or one attribute;
``statistic`` ``agreement`` (of two people who both chose A or B; `agreeing` of `n`), ``resolved`` (share of
asked answers that chose A or B) or ``answered`` (share of asked answers that were given at all); lowest and
highest item: the range of the same share over the pairs where it is defined.
"""


def judge_votes(verdicts: pd.DataFrame, protocol: str | None) -> pd.DataFrame:
    """Return how many judges of a panel prefer A and B for each pair: columns judges_a, judges_b.

    A judge's preference is definite where all its valid verdicts of the pair (orders, repetitions) name the
    same candidate; a judge that contradicts itself, ties or abstains does not count.
    """
    rows = verdicts[verdicts["outcome"] == "valid"]
    if protocol is not None:
        rows = rows[rows["protocol"] == protocol]
    by_judge = rows.groupby(["pair_id", "judge_id"])["verdict"].agg(["nunique", "first"])
    definite = by_judge[(by_judge["nunique"] == 1) & by_judge["first"].isin(schemas.DECISIVE)]
    counts = pd.crosstab(definite.index.get_level_values("pair_id"), definite["first"].to_numpy())
    counts = counts.reindex(columns=list(schemas.DECISIVE), fill_value=0)
    return counts.rename(columns={"A": "judges_a", "B": "judges_b"}).rename_axis("pair_id").reset_index()


def select_cases(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: StudyOptions, seed: int
) -> pd.DataFrame:
    """Choose witness and control cases from a panel's verdicts.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The panel's verdicts (schemas.VERDICT_ROWS).
    pairs : pandas.DataFrame
        Pairs that people can be shown.
    options : StudyOptions
        How many of each, and the minority shares that make a witness and a control (inclusive, compared as
        integers, so that 1/3 of 12 judges is 4).
    seed : int
        Orders pairs of equal disagreement.

    Returns
    -------
    pandas.DataFrame
        CASE_COLUMNS: witnesses by falling minority share, then controls by falling number of judges. Fewer
        than asked for if the panel has fewer; one pair a question text (base task) at most.
    """
    shown = pairs.dropna(subset=["question", "response_a", "response_b"]).set_index("pair_id")["base_id"]
    votes = judge_votes(verdicts, options.judge_protocol)
    votes = votes[votes["pair_id"].isin(shown.index)].reset_index(drop=True)
    total = votes["judges_a"] + votes["judges_b"]
    minority = votes[["judges_a", "judges_b"]].min(axis=1)
    votes["minority_share"] = ratio(minority, total)
    votes["rank"] = [rank_of(seed, "study", str(pair_id)) for pair_id in votes["pair_id"]]
    enough = total >= options.judges_at_least
    least = Fraction(options.minority_at_least).limit_denominator(1000)
    most = Fraction(options.minority_at_most_control).limit_denominator(1000)
    split = enough & (minority * least.denominator >= total * least.numerator)
    united = enough & (minority * most.denominator <= total * most.numerator) & ~split
    witnesses = votes[split].sort_values(["minority_share", "rank"], ascending=[False, True])
    controls = (
        votes[united].assign(total=total[united]).sort_values(["total", "rank"], ascending=[False, True])
    )
    chosen: list[pd.DataFrame] = []
    used: set[str] = set()
    for role, rows, wanted in (
        ("witness", witnesses, options.witnesses),
        ("control", controls, options.controls),
    ):
        keep: list[Hashable] = []
        for place, pair_id in rows["pair_id"].items():
            if len(keep) == wanted:
                break
            if shown[pair_id] not in used:
                used.add(shown[pair_id])
                keep.append(place)
        chosen.append(rows.loc[keep].assign(role=role))
    return _typed_cases(pd.concat(chosen, ignore_index=True))


def read_cases(path: str, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return cases that were chosen elsewhere.

    Parameters
    ----------
    path : str
        CSV with the columns ``pair_id`` and ``role`` and, where they are known, ``judges_a`` and
        ``judges_b``; other columns are not read.
    pairs : pandas.DataFrame
        Pairs that people can be shown.

    Returns
    -------
    pandas.DataFrame
        CASE_COLUMNS in the order of the file; the minority share is NaN without the judges' numbers.

    Raises
    ------
    SourceError
        With all problems together: no such file, no such column, an unknown pair or role, a pair twice.
    """
    try:
        rows = pd.read_csv(path, dtype="str", keep_default_na=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"The study's cases {path} cannot be read.",
            [Problem("annotation.study.cases_file", type(error).__name__, "a CSV file of cases, in UTF-8")],
        ) from error
    problems = [
        Problem(f"{path}, header", "no such column", f"a column {name}")
        for name in ("pair_id", "role")
        if name not in rows.columns
    ]
    if not problems:
        problems = _problems_of_cases(rows, path, pairs)
    if problems:
        raise SourceError(f"The study's cases {path} are not as they should be.", problems)
    counts = {name: pd.to_numeric(_judges(rows, name), errors="coerce") for name in _JUDGES}
    total = counts["judges_a"] + counts["judges_b"]
    fewer = pd.concat(list(counts.values()), axis=1).min(axis=1)
    out = rows[["pair_id", "role"]].assign(**counts, minority_share=ratio(fewer, total))
    return _typed_cases(out)


_JUDGES = ("judges_a", "judges_b")


def _judges(rows: pd.DataFrame, name: str) -> pd.Series:
    return rows[name] if name in rows.columns else pd.Series("", index=rows.index)


def _problems_of_cases(rows: pd.DataFrame, path: str, pairs: pd.DataFrame) -> list[Problem]:
    known = set(pairs.dropna(subset=["question", "response_a", "response_b"])["pair_id"])
    again = rows["pair_id"].duplicated()
    problems = []
    for number, row in enumerate(rows.to_dict("records"), start=2):
        where = f"{path}, row {number}, column"
        if row["pair_id"] not in known:
            problems.append(Problem(f"{where} pair_id", repr(row["pair_id"]), "a pair that has its texts"))
        elif again[number - 2]:
            problems.append(Problem(f"{where} pair_id", f"{row['pair_id']!r} again", "each pair once"))
        if row["role"] not in ROLES:
            problems.append(Problem(f"{where} role", repr(row["role"]), " or ".join(ROLES)))
        for name in _JUDGES:
            text = row.get(name, "")
            if text and not text.isdecimal():
                problems.append(Problem(f"{where} {name}", repr(text), "a number of judges, or nothing"))
    return problems


def _typed_cases(cases: pd.DataFrame) -> pd.DataFrame:
    return cases[CASE_COLUMNS].astype(
        dict.fromkeys(["pair_id", "role"], "str")
        | dict.fromkeys(_JUDGES, "Int64")
        | {"minority_share": "float64"}
    )


def ask_attributes(pair_ids: list[str], options: StudyOptions) -> pd.DataFrame:
    """Return which attributes are asked of each pair, every attribute about equally often.

    Returns
    -------
    pandas.DataFrame
        Columns pair_id, and for each n from 1: attribute_n (key) and attribute_n_question.
    """
    keys = list(options.attributes)
    records = []
    for place, pair_id in enumerate(sorted(pair_ids)):
        record = {"pair_id": pair_id}
        for step in range(options.attributes_per_pair):
            key = keys[(place * options.attributes_per_pair + step) % len(keys)]
            record |= {
                f"attribute_{step + 1}": key,
                f"attribute_{step + 1}_question": options.attributes[key],
            }
        records.append(record)
    columns = ["pair_id"]
    for step in range(1, options.attributes_per_pair + 1):
        columns += [f"attribute_{step}", f"attribute_{step}_question"]
    return pd.DataFrame(records, columns=columns).astype("str")


class PooledAgreement(NamedTuple):
    """Agreement from counts: the share, and the counts it is made of."""

    rate: float
    agreeing: int
    resolved: int


def pooled_agreement(agreeing: int, resolved: int) -> PooledAgreement:
    """Return pooled rater-pair agreement from its two counts.

    Parameters
    ----------
    agreeing : int
        Comparisons of two people who chose the same answer.
    resolved : int
        Comparisons in which both chose A or B.

    Returns
    -------
    PooledAgreement
        `rate` from 0 to 1; NaN without a jointly resolved answer.

    Examples
    --------
    >>> [round(pooled_agreement(*counts).rate, 3) for counts in [(246, 396), (1003, 1087)]]
    [0.621, 0.923]
    """
    if not 0 <= agreeing <= resolved:
        raise ValueError(f"{agreeing} agreeing of {resolved} comparisons; wanted a number from 0 to all")
    return PooledAgreement(float(ratio(agreeing, resolved)), agreeing, resolved)


def study_results(
    labels: pd.DataFrame,
    pairs: pd.DataFrame,
    cases: pd.DataFrame,
    asked: pd.DataFrame,
    options: AnalysisOptions,
) -> pd.DataFrame:
    """Return pooled agreement, response rates and ranges of the study, with and without the controls.

    Parameters
    ----------
    labels : pandas.DataFrame
        Individual labels with their attribute.
    pairs, cases : pandas.DataFrame
        Pairs, and the cases with their role.
    asked : pandas.DataFrame
        What was asked: columns pair_id, annotator_id, attribute (null: overall), a row an answer.
    options : AnalysisOptions
        Resamples and confidence.

    Returns
    -------
    pandas.DataFrame
        STUDY_COLUMNS.
    """
    primary = primary_labels(labels, pairs)
    primary = primary[primary["pair_id"].isin(cases["pair_id"])]
    clusters = pd.Series(pd.factorize(pairs["base_id"])[0], index=pairs["pair_id"])
    witnesses = set(cases.loc[cases["role"] == "witness", "pair_id"])
    keys: list[dict[str, object]] = []
    rates: list[Rate] = []
    for kind, own in primary.groupby("kind", sort=True):
        comparisons = compare_people(own)
        both = comparisons["label_1"].isin(schemas.DECISIVE) & comparisons["label_2"].isin(schemas.DECISIVE)
        comparisons = comparisons[both]
        given = own[["pair_id", "annotator_id", "attribute", "label"]]
        answers = asked.merge(given, on=["pair_id", "annotator_id", "attribute"], how="left")
        answers["cluster"] = answers["pair_id"].map(clusters)
        for name, members in (("all", set(cases["pair_id"])), ("witnesses", witnesses)):
            pair_rows = comparisons[comparisons["pair_id"].isin(members)]
            answer_rows = answers[answers["pair_id"].isin(members)]
            for question in ("overall", "attributes", *sorted(answers["attribute"].dropna().unique())):
                agreed, replies = _of(pair_rows, question), _of(answer_rows, question)
                same = agreed["label_1"] == agreed["label_2"]
                found = {
                    "agreement": (same, agreed),
                    "resolved": (replies["label"].isin(schemas.DECISIVE), replies),
                    "answered": (replies["label"].notna(), replies),
                }
                for statistic, (hits, rows) in found.items():
                    per_item = hits.astype("float64").groupby(rows["pair_id"]).mean()
                    keys.append(
                        {
                            "kind": kind,
                            "cases": name,
                            "question": question,
                            "statistic": statistic,
                            "agreeing": int(hits.sum()),
                            "lowest_item": per_item.min() if len(per_item) else np.nan,
                            "highest_item": per_item.max() if len(per_item) else np.nan,
                        }
                    )
                    rates.append(Rate(hits, np.ones(len(rows)), rows["cluster"]))
    frame = pd.concat([pd.DataFrame(keys), estimate_rates(rates, options)], axis=1)
    frame = frame.reindex(columns=STUDY_COLUMNS)
    return frame.astype(
        dict.fromkeys(["kind", "cases", "question", "statistic", "method", "undefined"], "str")
        | {"agreeing": "Int64", "lowest_item": "float64", "highest_item": "float64"}
    )


def _of(rows: pd.DataFrame, question: str) -> pd.DataFrame:
    if question == "overall":
        return rows[rows["attribute"].isna()]
    if question == "attributes":
        return rows[rows["attribute"].notna()]
    return rows[rows["attribute"] == question]


def asked_answers(unblinding: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return what was asked of whom: pair_id, annotator_id and attribute (null: the overall preference).

    Parameters
    ----------
    unblinding : pandas.DataFrame
        The round's key.
    questions : pandas.DataFrame
        Attributes of each pair (:func:`ask_attributes`).
    """
    out = unblinding[(unblinding["stage"] == "primary") & (unblinding["status"] == "issued")]
    overall = out[["pair_id", "annotator_id"]].assign(attribute=None)
    frames = [overall]
    for slot in attribute_slots(questions):
        named = questions[["pair_id", slot]].rename(columns={slot: "attribute"})
        frames.append(out[["pair_id", "annotator_id"]].merge(named, on="pair_id"))
    return pd.concat([frame.astype("str") for frame in frames], ignore_index=True)
