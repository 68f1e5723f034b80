"""Which analyses the data at hand allow, and what the others lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from judge_calibration import schemas
from judge_calibration.metrics.cell_choice import NAMES
from judge_calibration.metrics.people import of_people

FORMATS = ("direct", "json_verdict_first", "json_cot", "xml_verdict_first", "xml_cot")
"""The five pairwise formats."""

FEW_TASKS, FLAGGED_TASKS = 10, 30
"""Base tasks below which there is no interval, and below which it is flagged."""


class Analysis(NamedTuple):
    """One analysis.

    Attributes
    ----------
    name : str
        In words.
    allowed : bool
    found : str
        What there is for it, with counts.
    missing : str
        What it would need; empty where it is allowed.
    """

    name: str
    allowed: bool
    found: str
    missing: str


def possible_analyses(
    pairs: pd.DataFrame | None = None,
    verdicts: pd.DataFrame | None = None,
    labels: pd.DataFrame | None = None,
) -> list[Analysis]:
    """Say of every analysis whether the tables allow it.

    Parameters
    ----------
    pairs, verdicts, labels : pandas.DataFrame, optional
        Tables of :mod:`judge_calibration.schemas`; what is absent counts as empty.

    Returns
    -------
    list of Analysis
        In the order of the report.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["1"], "base_id": ["1"], "question": ["q"], "response_a": ["a"],
    ...     "response_b": ["b"]})
    >>> [item.name for item in possible_analyses(pairs) if item.allowed]
    ['judging the pairs', 'labelling by people']
    """
    tables = []
    for frame, table in (
        (pairs, schemas.PAIRS),
        (verdicts, schemas.VERDICT_ROWS),
        (labels, schemas.LABELS),
    ):
        given = schemas.empty(table) if frame is None else frame
        tables.append(given.reindex(columns=list(dict.fromkeys([*given.columns, *table.column_names]))))
    return list(_analyses(*tables))


def _analyses(pairs: pd.DataFrame, verdicts: pd.DataFrame, labels: pd.DataFrame) -> Iterator[Analysis]:
    texts = int(pairs[["question", "response_a", "response_b"]].notna().all(axis=1).sum())
    has_texts = Analysis(
        "judging the pairs",
        texts > 0,
        f"{texts} pairs with question and both responses",
        "" if texts else "pairs with question, response_a and response_b",
    )
    yield has_texts
    yield has_texts._replace(name="labelling by people")

    cells = verdicts.groupby(list(NAMES), dropna=False) if len(verdicts) else None
    n_cells = cells.ngroups if cells is not None else 0
    yield _of(
        "outcomes and parse failures",
        len(verdicts),
        f"{len(verdicts)} verdicts of {n_cells} cells",
        "verdicts: a log of them, or kedro run --pipelines judging",
    )
    decisive = set(pairs.loc[pairs["reference_label"].isin(schemas.DECISIVE), "pair_id"])
    judged = verdicts[verdicts["pair_id"].isin(decisive)]
    reference = f"{len(decisive)} pairs with a decisive reference label"
    need = "verdicts" if verdicts.empty else "reference labels A or B (column reference_label)"
    yield _of("accuracy (A)", len(judged), f"{len(judged)} verdicts on {reference}", need)

    both = _both_orders(verdicts)
    orders = f"{both} pairs judged in both orders by one judge"
    need_orders = "verdicts of each pair in both orders (AB and BA), mapped back to the candidates"
    yield _of("order effects (phi, position bias)", both, orders, need_orders)
    repeated = _repeated(verdicts)
    repeats = f"{repeated} (pair, order) judged twice or more"
    need_repeats = "two or more repetitions of each pair and order (column repetition)"
    yield _of("reproducibility (C, C2)", repeated, repeats, need_repeats)
    lacks = [
        text
        for ok, text in ((both, "both orders"), (repeated, "repetitions"), (len(judged), "reference labels"))
        if not ok
    ]
    yield Analysis(
        "trustworthy verdict rate (T)", not lacks, f"{orders}; {repeats}; {reference}", ", ".join(lacks)
    )
    known = set(verdicts["pair_id"]) if len(verdicts) else set(pairs["pair_id"])
    tasks = int(pairs.loc[pairs["pair_id"].isin(known), "base_id"].nunique())
    flagged = " (flagged: fewer than 30)" if FEW_TASKS <= tasks < FLAGGED_TASKS else ""
    yield Analysis(
        "intervals",
        tasks >= FEW_TASKS,
        f"{tasks} base tasks{flagged}",
        "" if tasks >= FEW_TASKS else f"{FEW_TASKS} base tasks, better {FLAGGED_TASKS}",
    )
    yield _several(verdicts, "prompt formats compared", "protocol", FORMATS)
    yield _several(verdicts, "paradigms compared", "protocol", ("direct", "geval", "flask"))
    yield _several(verdicts, "temperatures compared", "temperature")
    judges, protocols = verdicts["judge_id"].nunique(), verdicts["protocol"].nunique()
    enough = both > 0 and (judges > 1 or protocols > 1)
    yield Analysis(
        "variance of verdicts (G-study)",
        enough,
        f"{judges} judges, {protocols} protocols, {orders}",
        "" if enough else "two judges or protocols, in both orders",
    )
    stated = int(verdicts[["confidence", "logprob_confidence"]].notna().any(axis=1).sum())
    yield _of(
        "confidence and calibration",
        stated if len(judged) else 0,
        f"{stated} verdicts with a confidence; {reference}",
        "a confidence or log-probability for each verdict, and reference labels",
    )
    controlled = pairs[pairs["manipulation"].notna()]
    kinds = ", ".join(sorted(set(controlled["manipulation"].astype(str)))[:8])
    yield _of(
        "controlled errors (length, style, citation, ...)",
        len(controlled),
        f"{len(controlled)} pairs with a manipulation" + (f": {kinds}" if kinds else ""),
        "pairs with the columns manipulation and modified (the pair bank has them)",
    )
    yield from _people(pairs, verdicts, labels)
    products = pairs[["candidate_a", "candidate_b"]].dropna()
    versions = len(set(products.to_numpy().ravel().tolist()))
    compared = int((products["candidate_a"] != products["candidate_b"]).sum())
    yield _of(
        "release gate",
        compared,
        f"{compared} pairs of two candidates ({versions} names)",
        "candidate_a and candidate_b: which product wrote which response",
    )
    protected = int((pairs["sentinel"].astype(object) == True).sum())  # noqa: E712  (absent is no)
    yield _of("sentinel", protected, f"{protected} sentinel pairs", "pairs marked as sentinel")


def _people(pairs: pd.DataFrame, verdicts: pd.DataFrame, labels: pd.DataFrame) -> Iterator[Analysis]:
    overall = of_people(labels[labels["attribute"].isna()])
    human = set(pairs.loc[pairs["reference_kind"] == "human", "pair_id"]) | set(overall["pair_id"])
    both = len(human & set(verdicts["pair_id"]))
    yield _of(
        "agreement of judge and people",
        both,
        f"{len(human)} pairs with a human label, {both} of them judged",
        "human labels (or reference_kind: human) on judged pairs",
    )
    annotators = overall.groupby("pair_id")["annotator_id"].nunique()
    shared = int((annotators > 1).sum())
    yield _of(
        "agreement of people (the ceiling)",
        shared,
        f"{shared} pairs labelled by two people or more",
        "labels of two annotators on the same pairs",
    )


def _of(name: str, count: int, found: str, missing: str) -> Analysis:
    return Analysis(name, count > 0, found, "" if count else missing)


def _both_orders(verdicts: pd.DataFrame) -> int:
    if verdicts.empty:
        return 0
    orders = verdicts.groupby(["pair_id", *NAMES], dropna=False)["order"].nunique()
    return int(orders[orders > 1].reset_index()["pair_id"].nunique())


def _repeated(verdicts: pd.DataFrame) -> int:
    if verdicts.empty:
        return 0
    keys = ["pair_id", "order", *NAMES]
    counts = verdicts.groupby(keys, dropna=False)["repetition"].nunique()
    return len(counts[counts > 1].reset_index()[["pair_id", "order"]].drop_duplicates())


def _several(
    verdicts: pd.DataFrame, name: str, column: str, allowed: tuple[str, ...] | None = None
) -> Analysis:
    """Say whether one judge has verdicts at two or more values of a column."""
    rows = verdicts if allowed is None else verdicts[verdicts[column].isin(allowed)]
    counts = rows.groupby("judge_id")[column].nunique()
    most = int(counts.max()) if len(counts) else 0
    one_of = f" of {', '.join(allowed)}" if allowed else ""
    missing = "" if most > 1 else f"verdicts of one judge at two values of {column}{one_of}"
    return Analysis(name, most > 1, f"at most {most} values of {column} for one judge", missing)
