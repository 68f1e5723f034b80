"""The verdict table as integer arrays: what every statistic of trust starts from.

Reading the table is also where a broken one is refused: a label outside the alphabet, a duplicated
judgment, a failed judgment that carries a verdict, a pair that nobody knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import Problem, TableError

Ints = npt.NDArray[np.int64]

A, B, TIE, ABSTAIN, FAILED = range(5)
"""Codes of what a judgment said; FAILED stands for every outcome but ``valid``."""

NO_REFERENCE = -1
"""Code of an absent reference label."""

CELL_COLUMNS = ["judge_id", "protocol", "constraint", "temperature", "instrument_id"]
"""What tells one cell from another: an instrument at a temperature."""

_NEEDED = ["pair_id", "judge_id", "instrument_id", "protocol", "order", "repetition", "outcome", "verdict"]
_PAIRS_NEEDED = ["pair_id", "base_id", "source"]


@dataclass(frozen=True)
class Judgments:
    """Verdict rows, pairs and cells as arrays.

    Attributes
    ----------
    cells : pandas.DataFrame
        One row a cell with the columns CELL_COLUMNS, sorted by them.
    pairs : pandas.DataFrame
        The pairs that were judged, in the order of the pairs table; index 0, 1, ...
    reference : numpy.ndarray, shape (n_pairs,)
        A, B or TIE, or NO_REFERENCE.
    identity : numpy.ndarray of bool, shape (n_pairs,)
        Whether both candidates are the same text, so that order has no meaning.
    cell, pair, order, repetition, code : numpy.ndarray, shape (n_judgments,)
        Row of `cells`, row of `pairs`, 0 for AB and 1 for BA, repetition, and what was said.
        Sorted by cell, pair, order, repetition.
    """

    cells: pd.DataFrame
    pairs: pd.DataFrame
    reference: Ints
    identity: npt.NDArray[np.bool_]
    cell: Ints
    pair: Ints
    order: Ints
    repetition: Ints
    code: Ints


def _codes(values: pd.Series, names: tuple[str, ...]) -> Ints:
    """Return the position of each value in `names`; -1 for null, -2 for a value that is not there."""
    found, distinct = pd.factorize(values)
    position = {name: i for i, name in enumerate(names)}
    table = np.array([position.get(value, -2) for value in distinct] + [-1], dtype=np.int64)
    return table[found]


def identity_pairs(pairs: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tell which pairs show the same answer twice.

    Parameters
    ----------
    pairs : pandas.DataFrame
        With ``manipulation``, or with the two responses, or both.

    Returns
    -------
    numpy.ndarray of bool, shape (n_pairs,)
        True for pairs of the manipulation ``identity`` and for two byte-identical responses.
    """
    same = np.zeros(len(pairs), dtype=bool)
    if "manipulation" in pairs.columns:
        same |= (pairs["manipulation"] == "identity").fillna(False).to_numpy(bool)
    if {"response_a", "response_b"} <= set(pairs.columns):
        first, second = pairs["response_a"], pairs["response_b"]
        # Logs of verdicts often come without texts; two empty texts say nothing.
        same |= ((first == second) & first.notna() & (first != "")).fillna(False).to_numpy(bool)
    return same


def _refuse(name: str, problems: list[Problem], step: str) -> None:
    if problems:
        raise TableError(f"The table '{name}' cannot be counted: {len(problems)} problems.", problems, step)


def _missing_columns(frame: pd.DataFrame, needed: list[str], name: str) -> list[Problem]:
    return [
        Problem(f"{name}, column {column}", "no such column", "the column")
        for column in needed
        if column not in frame.columns
    ]


def _rows(where: npt.NDArray[np.bool_]) -> str:
    rows = np.flatnonzero(where)
    shown = ", ".join(str(row + 1) for row in rows[:5])
    return f"rows {shown}" + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")


def encode(verdicts: pd.DataFrame, pairs: pd.DataFrame) -> Judgments:
    """Turn the verdict table into arrays, refusing what cannot be counted.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The table `verdicts` of :mod:`judge_calibration.schemas`.
    pairs : pandas.DataFrame
        The table `pairs`; at least pair_id, base_id and source. Pairs without a verdict are left out.

    Returns
    -------
    Judgments

    Raises
    ------
    TableError
        With every problem: absent columns, labels or outcomes outside their alphabet, a valid judgment
        without a verdict, a failed one with a verdict, the same judgment twice, an unknown pair.
    """
    _refuse(
        "verdicts",
        _missing_columns(verdicts, _NEEDED, "verdicts"),
        "give the columns of the schema VERDICT_ROWS",
    )
    _refuse("pairs", _missing_columns(pairs, _PAIRS_NEEDED, "pairs"), "give the columns of the schema PAIRS")
    verdicts = verdicts.reset_index(drop=True)
    outcome = _codes(verdicts["outcome"], schemas.OUTCOMES)
    verdict = _codes(verdicts["verdict"], schemas.VERDICTS)
    order = _codes(verdicts["order"], schemas.ORDERS)
    valid = outcome == 0
    problems: list[Problem] = []

    def found(where: npt.NDArray[np.bool_], column: str, wanted: str) -> None:
        if where.any():
            values = sorted({repr(value)[:40] for value in verdicts.loc[where, column].head(1000)})
            problems.append(
                Problem(f"verdicts, {_rows(where)}, column {column}", ", ".join(values[:5]), wanted)
            )

    found(outcome < 0, "outcome", "one of " + ", ".join(schemas.OUTCOMES))
    found(
        verdict == -2, "verdict", "one of " + ", ".join(schemas.VERDICTS) + ", or null for a failed judgment"
    )
    found(valid & (verdict == -1), "verdict", "a verdict, since the outcome is valid")
    found(~valid & (outcome > 0) & (verdict >= 0), "verdict", "null, since the outcome is not valid")
    found(order < 0, "order", "AB or BA")

    known = pairs["pair_id"].duplicated(keep="first")
    if known.any():
        repeated = sorted(set(pairs.loc[known, "pair_id"].astype(str)))[:5]
        problems.append(Problem("pairs, column pair_id", f"repeated ids {repeated}", "one row a pair"))
    pair_codes, pair_names = pd.factorize(verdicts["pair_id"])
    row_of_name = pd.Index(pairs["pair_id"]).drop_duplicates().get_indexer(pd.Index(pair_names))
    row = np.append(row_of_name, -1)[pair_codes]
    found(row < 0, "pair_id", "the id of a pair in the table pairs")
    repetition = pd.to_numeric(verdicts["repetition"], errors="coerce").astype("Float64")
    bad_repetition = (repetition.isna() | (repetition < 0)).fillna(True).to_numpy(bool)
    found(bad_repetition, "repetition", "a whole number from 0")
    _refuse("verdicts", problems, "correct these rows where the table was made; nothing was counted")

    keys = verdicts.reindex(columns=CELL_COLUMNS)
    combined = np.zeros(len(keys), dtype=np.int64)
    for column in CELL_COLUMNS:
        codes, values = pd.factorize(keys[column], use_na_sentinel=True)
        combined = combined * (len(values) + 1) + codes + 1
        combined = np.unique(combined, return_inverse=True)[1]  # keeps the product small
    first_rows = np.unique(combined, return_index=True)[1]
    cells = keys.iloc[first_rows].reset_index(drop=True)
    cells["temperature"] = cells["temperature"].astype(float)
    rank = cells.sort_values(CELL_COLUMNS, kind="stable", na_position="first").index.to_numpy()
    new_code = np.empty(len(rank), dtype=np.int64)
    new_code[rank] = np.arange(len(rank))
    cell = new_code[combined] if len(combined) else combined
    cells = cells.iloc[rank].reset_index(drop=True)

    judged = np.unique(row)
    used = pairs.iloc[judged].reset_index(drop=True)
    position = np.full(len(pairs) + 1, -1, dtype=np.int64)
    position[judged] = np.arange(len(judged))
    pair = position[row]
    number = repetition.to_numpy(np.float64).astype(np.int64)
    width = int(number.max(initial=0)) + 1
    key = ((cell * max(len(used), 1) + pair) * 2 + order) * width + number
    sorting = np.argsort(key, kind="stable")
    repeated_key = np.zeros(len(key), dtype=bool)
    same = key[sorting][1:] == key[sorting][:-1]
    repeated_key[sorting[1:][same]] = True
    repeated_key[sorting[:-1][same]] = True
    if repeated_key.any():
        example = verdicts.loc[repeated_key, ["pair_id", "judge_id", "protocol", "order", "repetition"]].iloc[
            0
        ]
        _refuse(
            "verdicts",
            [
                Problem(
                    f"verdicts, {_rows(repeated_key)}",
                    f"the same judgment twice: {dict(example)}",
                    "one row each",
                )
            ],
            "keep one row a judgment; a repetition has its own number",
        )
    code = np.where(valid, verdict, FAILED)
    if "reference_label" in used.columns:
        reference = np.maximum(_codes(used["reference_label"], ("A", "B", "TIE")), NO_REFERENCE)
    else:
        reference = np.full(len(used), NO_REFERENCE, dtype=np.int64)
    return Judgments(
        cells,
        used,
        reference,
        identity_pairs(used),
        cell[sorting],
        pair[sorting],
        order[sorting],
        number[sorting],
        code[sorting],
    )
