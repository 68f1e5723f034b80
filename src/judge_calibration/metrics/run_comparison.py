"""What changed between two runs or two instruments, verdict by verdict, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.errors import GateInputError, Problem
from judge_calibration.metrics.cell_choice import NAMES, cells_in, rows_of_cell
from judge_calibration.metrics.clustered_mean import clustered_share
from judge_calibration.metrics.paired_differences import DIFFERENCE_COLUMNS, paired_differences
from judge_calibration.options.reporting import ReportingOptions

CHANGES = ("same", "gained", "lost", "changed", "failed", "recovered")
"""What became of a judgment. ``same``: outcome and verdict are. ``gained``: wrong before, right now, by the
reference label; ``lost``: the reverse. ``changed``: another verdict that is neither. ``failed``: valid
before, no verdict now; ``recovered``: the reverse. (A failure of another kind is ``changed``.)"""

JUDGMENT = ["pair_id", *NAMES, "order", "repetition"]

CHANGED_COLUMNS = (
    *JUDGMENT,
    "base_id",
    "reference_label",
    "outcome_before",
    "outcome_after",
    "verdict_before",
    "verdict_after",
    "change",
)

SUMMARY_COLUMNS = (
    *NAMES,
    "compared_with",
    "instrument_before",
    "instrument_after",
    "n",
    *CHANGES,
    "changed_share",
    "low",
    "high",
    "n_tasks",
    "only_before",
    "only_after",
)


class RunComparison(NamedTuple):
    """The result of :func:`compare_verdicts`.

    Attributes
    ----------
    judgments : pandas.DataFrame
        Columns `CHANGED_COLUMNS`: every judgment that both have.
    summary : pandas.DataFrame
        Columns `SUMMARY_COLUMNS`, one row a cell. ``compared_with``: the other cell, where its name differs
        (empty else). ``changed_share``: judgments that are not ``same``, 0 to
        1, with a 95 % interval clustered by base task (null below two).
    differences : pandas.DataFrame
        Statistics of trust, after less before, on the pairs that both judged (value_1 is after).
    other_pairs : tuple of str
        Pairs whose texts are not the same in both: they are left out.
    cells : tuple of (dict, dict)
        The cells that were compared, before and after, in the order of the summary.
    """

    judgments: pd.DataFrame
    summary: pd.DataFrame
    differences: pd.DataFrame
    other_pairs: tuple[str, ...]
    cells: tuple[tuple[dict[Any, Any], dict[Any, Any]], ...] = ()

    @property
    def changed(self) -> pd.DataFrame:
        """The judgments that are not the same."""
        return self.judgments[self.judgments["change"] != "same"].reset_index(drop=True)


def same_cells(before: pd.DataFrame, after: pd.DataFrame) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
    """Return the cells of two tables of verdicts that are to be compared.

    Those with the same judge, protocol, constraint and temperature; where there is none and each table has
    one cell only, these two.
    """
    first, second = cells_in(before).to_dict("records"), cells_in(after).to_dict("records")
    matched = [(one, two) for one in first for two in second if _key(one) == _key(two)]
    if not matched and len(first) == 1 and len(second) == 1:
        return [(first[0], second[0])]
    return matched


def _key(cell: Mapping[Any, Any]) -> tuple[str, ...]:
    return tuple("" if pd.isna(value) else str(value) for value in cell.values())


def compare_verdicts(
    before: pd.DataFrame,
    after: pd.DataFrame,
    pairs_before: pd.DataFrame,
    pairs_after: pd.DataFrame,
    options: ReportingOptions | None = None,
) -> RunComparison:
    """Compare two tables of verdicts judgment by judgment.

    Parameters
    ----------
    before, after : pandas.DataFrame
        Tables ``verdicts``. A cell of one table has to be of one instrument.
    pairs_before, pairs_after : pandas.DataFrame
        Tables ``pairs``.
    options : ReportingOptions, optional
        The verdict reduction and the intervals.

    Returns
    -------
    RunComparison
        Empty tables where the two have no judgment in common.

    Raises
    ------
    GateInputError
        If a cell holds several instruments.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["1", "2"], "base_id": ["1", "2"], "source": "s",
    ...     "reference_label": ["A", "A"], "content_hash": "0"})
    >>> def verdicts(*said):
    ...     return pd.DataFrame({"pair_id": ["1", "2"], "judge_id": "j", "instrument_id": "i",
    ...         "protocol": "d", "constraint": "none", "temperature": 0.0, "order": "AB", "repetition": 0,
    ...         "outcome": "valid", "verdict": said})
    >>> compare_verdicts(verdicts("A", "B"), verdicts("A", "A"), pairs, pairs).judgments["change"].tolist()
    ['same', 'gained']
    """
    chosen = options or ReportingOptions()
    other = _other_pairs(pairs_before, pairs_after)
    known = pd.concat([pairs_before, pairs_after], ignore_index=True).drop_duplicates("pair_id")
    judgments, summary, both = [], [], []
    cells = same_cells(before, after)
    for cell_before, cell_after in cells:
        one, two = rows_of_cell(before, cell_before), rows_of_cell(after, cell_after)
        one, two = (rows[~rows["pair_id"].isin(other)] for rows in (one, two))
        instruments = [_one_instrument(rows, cell_before) for rows in (one, two)]
        two = two.assign(**{name: cell_before[name] for name in NAMES})
        merged = _merged(one, two, known)
        counts = merged["change"].value_counts()
        share = clustered_share((merged["change"] != "same").to_numpy(float), merged["base_id"])
        low, high = share.bounds(0.025)
        summary.append(
            {name: cell_before[name] for name in NAMES}
            | {"compared_with": "" if _key(cell_before) == _key(cell_after) else " ".join(_key(cell_after))}
            | {"instrument_before": instruments[0], "instrument_after": instruments[1], "n": len(merged)}
            | {change: int(counts.get(change, 0)) for change in CHANGES}
            | {"changed_share": share.value, "low": low, "high": high, "n_tasks": share.clusters}
            | {"only_before": len(one) - len(merged), "only_after": len(two) - len(merged)}
        )
        judgments.append(merged)
        both += [_shared(rows, merged, name) for rows, name in ((one, "before"), (two, "after"))]
    compared = [frame for frame in judgments if len(frame)]
    table = pd.concat(compared, ignore_index=True) if compared else pd.DataFrame(columns=CHANGED_COLUMNS)
    differences = pd.DataFrame(columns=DIFFERENCE_COLUMNS)
    if compared:
        comparisons = chosen.comparisons.model_copy(update={"within": NAMES, "slices": ()})
        rows = pd.concat([frame for frame in both if len(frame)], ignore_index=True)
        differences = paired_differences(rows, known, chosen.model_copy(update={"comparisons": comparisons}))
    summed = pd.DataFrame(summary, columns=SUMMARY_COLUMNS)
    return RunComparison(table, summed, differences, other, tuple(cells))


def _other_pairs(before: pd.DataFrame, after: pd.DataFrame) -> tuple[str, ...]:
    """Return the pairs that have one id and different texts."""
    both = before[["pair_id", "content_hash"]].merge(after[["pair_id", "content_hash"]], on="pair_id")
    return tuple(both.loc[both["content_hash_x"] != both["content_hash_y"], "pair_id"].astype(str))


def _one_instrument(rows: pd.DataFrame, cell: Mapping[Any, Any]) -> str | None:
    found = sorted(set(rows["instrument_id"].dropna().astype(str)))
    if len(found) > 1:
        name = " ".join("-" if pd.isna(value) else str(value) for value in cell.values())
        raise GateInputError(
            "A cell holds verdicts of several instruments, which cannot be told apart.",
            [Problem(name, ", ".join(item[:12] for item in found), "one instrument")],
            "compare runs in which each judge has one prompt and one serving",
        )
    return found[0] if found else None


def _merged(one: pd.DataFrame, two: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    columns = ["outcome", "verdict"]
    merged = one[[*JUDGMENT, *columns]].merge(
        two[[*JUDGMENT, *columns]], on=JUDGMENT, suffixes=("_before", "_after")
    )
    about = [name for name in ("base_id", "reference_label") if name in pairs.columns]
    merged = merged.merge(pairs[["pair_id", *about]], on="pair_id", how="left")
    merged["change"] = _changes(merged)
    return merged.reindex(columns=list(CHANGED_COLUMNS))


def _changes(merged: pd.DataFrame) -> Sequence[str]:
    valid = [(merged[f"outcome_{side}"] == "valid").to_numpy(bool) for side in ("before", "after")]
    said = [merged[f"verdict_{side}"].fillna("").to_numpy(object) for side in ("before", "after")]
    outcomes = (merged["outcome_before"] == merged["outcome_after"]).to_numpy(bool)
    reference = (
        merged["reference_label"].astype(object).where(merged["reference_label"].notna(), None).to_numpy()
        if "reference_label" in merged.columns
        else np.full(len(merged), None, dtype=object)
    )
    right = [ok & (words == reference) for ok, words in zip(valid, said, strict=True)]
    return list(
        np.select(
            [outcomes & (said[0] == said[1]), valid[0] & ~valid[1], ~valid[0] & valid[1], right[1], right[0]],
            ["same", "failed", "recovered", "gained", "lost"],
            "changed",
        )
    )


def _shared(rows: pd.DataFrame, merged: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the verdicts of the judgments that both have, under the name of their side."""
    # Cells are sorted by instrument last, and "after" comes before "before": value_1 is the later run's.
    return rows.merge(merged[JUDGMENT], on=JUDGMENT).assign(instrument_id=name)
