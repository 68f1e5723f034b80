"""Judge ensembles from stored verdicts: no new call, no verdict out of nothing.

An ensemble is a derived judge. Its instrument id is the hash of its rule and its members' ids, so it changes
when a member does. A group that lacks a member's valid verdict gives no verdict either: the outcome of the
first failed member stands, or ``missing`` where a member has no row at all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.schemas import DECISIVE, VERDICT_ROWS, conform, empty
from judge_calibration.text import canonical_json, sha256_of

Undecided = Literal["TIE", "ABSTAIN"]
"""What a derived judge says where its members do not settle it."""

_CELL = ["pair_id", "judge_id", "instrument_id", "protocol", "constraint", "temperature"]


def vote_over_repetitions(verdicts: pd.DataFrame, k: int, undecided: Undecided = "TIE") -> pd.DataFrame:
    """Return the judge that reads each pair k times in an order and takes the majority.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The table `verdicts`.
    k : int
        Votes; at least 2. Repetitions 0 to k-1 make the derived repetition 0, the next k the next one; what
        is left over is not used.
    undecided : {"TIE", "ABSTAIN"}
        The verdict where no label has more votes than every other.

    Returns
    -------
    pandas.DataFrame
        Verdict rows with judge_id ``<judge>+vote<k>`` and protocol unchanged. Flag ``split_vote`` where
        `undecided` was used; confidence is null; ``scores`` holds the votes.

    Raises
    ------
    OptionsError
        If k is below 2.

    Examples
    --------
    >>> rows = pd.DataFrame({"pair_id": ["p"] * 3, "judge_id": "j", "instrument_id": "i",
    ...     "protocol": "direct", "constraint": "none", "order": "AB", "temperature": 1.0,
    ...     "repetition": [0, 1, 2],
    ...     "outcome": "valid", "verdict": ["A", "B", "A"], "shown_winner": ["first", "second", "first"]})
    >>> vote_over_repetitions(rows, 3)[["judge_id", "verdict"]].values.tolist()
    [['j+vote3', 'A']]
    """
    if k < 2:
        raise OptionsError("A vote needs voters.", [Problem("k", str(k), "2 or more")], "raise k")
    rows = verdicts.assign(
        repetition=verdicts["repetition"].astype("int64") // k, _member=verdicts["repetition"]
    )
    whole = rows.groupby([*_CELL, "order"], dropna=False)["_member"].transform("nunique") // k
    rows = rows[rows["repetition"] < whole]
    rule = {"rule": "vote_over_repetitions", "k": k, "undecided": undecided, "version": 1}
    return _derive(rows, [*_CELL, "order", "repetition"], k, rule, f"+vote{k}", undecided)


def average_orders(verdicts: pd.DataFrame, on_contradiction: Undecided = "TIE") -> pd.DataFrame:
    """Return the judge that reads each pair in both orders and keeps what both say.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The table `verdicts`, with both orders of each judgment.
    on_contradiction : {"TIE", "ABSTAIN"}
        The verdict where the two orders differ.

    Returns
    -------
    pandas.DataFrame
        One judgment of judge_id ``<judge>+both`` for each pair, cell and repetition, written as the order AB
        and again as BA: it has no order, so both are the same by construction (flag ``order_free``). Flag
        ``orders_differ`` where `on_contradiction` was used.
    """
    rule = {"rule": "average_orders", "on_contradiction": on_contradiction, "version": 1}
    rows = verdicts.assign(_member=verdicts["order"])
    derived = _derive(rows, [*_CELL, "repetition"], 2, rule, "+both", on_contradiction, "orders_differ")
    both = [derived.assign(order=order) for order in ("AB", "BA")]
    out = pd.concat(both, ignore_index=True).sort_values(["pair_id", "judge_id"], kind="stable")
    flags = [_with_flag(value, "order_free") for value in out["flags"]]
    return conform(out.assign(flags=flags).reset_index(drop=True), VERDICT_ROWS)


def panel_majority(
    verdicts: pd.DataFrame,
    members: Sequence[tuple[str, str]],
    judge_id: str = "panel",
    undecided: Undecided = "TIE",
) -> pd.DataFrame:
    """Return the panel that takes the majority of several judges' verdicts.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        The table `verdicts`.
    members : sequence of (judge_id, instrument_id)
        At least two. Each has to have one temperature: a panel is made of cells.
    judge_id : str
        The panel's name.
    undecided : {"TIE", "ABSTAIN"}
        The verdict where no label has more votes than every other.

    Returns
    -------
    pandas.DataFrame
        Verdict rows of protocol ``panel``, for each pair, order and repetition that any member has;
        temperature and constraint are null, since members may differ in them.

    Raises
    ------
    OptionsError
        If members are fewer than two, repeated, unknown or have several temperatures.
    """
    problems = []
    if len(set(members)) < 2 or len(set(members)) != len(members):
        problems.append(Problem("members", str(len(set(members))), "two or more, each once"))
    keys = pd.MultiIndex.from_frame(verdicts[["judge_id", "instrument_id"]])
    for member in members:
        cells = verdicts.loc[keys == member, "temperature"].drop_duplicates()
        if len(cells) != 1:
            problems.append(Problem(f"member {member[0]}, {member[1][:12]}", f"{len(cells)} cells", "one"))
    if problems:
        raise OptionsError(f"The panel {judge_id} cannot be made.", problems, "name its members anew")
    rows = verdicts[keys.isin(list(members))]
    rows = rows.assign(
        _member=rows["judge_id"] + "\0" + rows["instrument_id"],
        judge_id=judge_id,
        instrument_id=sha256_of(sorted(map(list, members))),
        protocol="panel",
        constraint=None,
        temperature=np.nan,
    )
    rule = {"rule": "panel_majority", "undecided": undecided, "version": 1}
    return _derive(rows, [*_CELL, "order", "repetition"], len(members), rule, "", undecided)


def _derive(
    rows: pd.DataFrame,
    by: list[str],
    size: int,
    rule: dict[str, Any],
    suffix: str,
    undecided: Undecided,
    flag: str = "split_vote",
) -> pd.DataFrame:
    """Return one verdict a group of `size` members: their strict plurality, or `undecided`."""
    if not len(rows):
        return empty(VERDICT_ROWS)
    rows = rows.reset_index(drop=True)
    group = rows.groupby(by, dropna=False, sort=False).ngroup().to_numpy()
    n = int(group.max()) + 1
    valid = (rows["outcome"] == "valid").to_numpy()
    labels = ("A", "B", "TIE", "ABSTAIN")
    counts = np.zeros((n, len(labels)), dtype=int)
    position = rows["verdict"].map({label: i for i, label in enumerate(labels)}).to_numpy(float)
    np.add.at(counts, (group[valid], position[valid].astype(int)), 1)
    best = counts.max(axis=1)
    settled = (counts == best[:, None]).sum(axis=1) == 1
    if rule["rule"] == "average_orders":
        settled &= best == size
    verdict = np.where(settled, np.array(labels, dtype=object)[counts.argmax(axis=1)], undecided)
    # Members in a fixed order, so that "the first failed one" does not depend on how the rows lie.
    by_member = rows.assign(_group=group).sort_values("_member", kind="stable")
    failed = (
        by_member[by_member["outcome"] != "valid"].drop_duplicates("_group").set_index("_group")["outcome"]
    )
    outcome = np.full(n, "valid", dtype=object)
    outcome[np.bincount(group, minlength=n) < size] = "missing"
    outcome[failed.index.to_numpy(int)] = failed.to_numpy(object)
    fine = np.asarray(outcome == "valid", dtype=bool)
    keys = rows.loc[~pd.Series(group).duplicated(), by].reset_index(drop=True)
    ids = {one: sha256_of({**rule, "member": one}) for one in keys["instrument_id"].unique()}
    derived = keys.assign(
        judge_id=keys["judge_id"] + suffix,
        instrument_id=keys["instrument_id"].map(ids),
        outcome=outcome,
        verdict=pd.Series(verdict, dtype=object).where(pd.Series(fine), None),
        scores=[
            canonical_json({"votes": {label: int(c) for label, c in zip(labels, row, strict=True) if c}})
            for row in counts
        ],
        flags=pd.Series(canonical_json([flag]), keys.index, dtype=object).where(
            pd.Series(fine & ~settled), None
        ),
    )
    if "order" not in derived.columns:
        derived["order"] = "AB"
        derived["shown_winner"] = None
    else:
        first = np.where(derived["order"] == "AB", "A", "B")
        decisive = derived["verdict"].isin(DECISIVE)
        shown = np.where(derived["verdict"] == first, "first", "second")
        derived["shown_winner"] = pd.Series(shown, dtype=object).where(decisive, None)
        free = (
            rows.assign(_group=group).groupby("_group")["shown_winner"].count().reindex(range(n)).to_numpy()
            == 0
        )
        # Members that show no order (scores of one answer) have no shown winner, and so has their vote.
        derived.loc[free, "shown_winner"] = None
    return conform(derived, VERDICT_ROWS)


def _with_flag(flags: Any, flag: str) -> str:
    present = json.loads(flags) if isinstance(flags, str) else []
    return canonical_json([*present, flag])
