"""Earned authority: a map of slices for each judge, and what it was calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.report.blocks import Block, MapBlock, MapCell, Missing, Section, TableBlock
from judge_calibration.report.result_tables import (
    Tables,
    has_simulated_labels,
    labelled,
    leading,
    plain_table,
    some,
)
from judge_calibration.report.wording import count_noun, is_missing, percent, reason_text

MOST_MAPS = 12
MOST_UNFOLDED = 10
ALL = "all"
_NO_RULE = "no_declared_rule; with the example: "
_LEAD = (
    "A judge may influence a decision only in slices where every floor of a declared rule is cleared by "
    "the lower bound of its interval, with enough base tasks."
)
_NOT_MEASURED = ("no_pairs", "no_human_labels", "never_calibrated")


def authority_section(tables: Tables) -> Section:
    """Return the section."""
    frame = some(tables, "authority")
    if frame is None:
        missing = Missing("It takes verdicts:", "kedro run --pipeline judging")
        return Section("authority", "Earned authority", _LEAD, [missing])
    example = frame["reason"].fillna("").str.startswith(_NO_RULE).any()
    blocks: list[Block] = []
    if example:
        what = (
            "No decision rule is declared: the shipped one is an EXAMPLE, and with it no slice is earned;"
            " the maps show what it would say. Declare floors under reporting.rule before you look at "
            "results, then"
        )
        blocks.append(Missing(what, "kedro run --pipeline reporting"))
    rows, more = leading(frame, tables["trust_table"], MOST_MAPS)
    rows = rows.assign(cell=labelled(rows))
    # A label of a program is no label of people: who sees simulated ones elsewhere is told that here.
    nobody = " (simulated ones do not count)" if has_simulated_labels(tables) else ""
    for number, (name, part) in enumerate(rows.groupby("cell", sort=False)):
        blocks.append(_map(f"map-{number + 1}", str(name), part, number == 0, more, nobody))
    shift = some(tables, "calibration_shift")
    if shift is not None:
        note = (
            "Slices, languages and lengths (quartiles of the first set): pairs with human labels beside "
            "the judged ones, and judged ones beside all. never calibrated: only the second set has it."
        )
        title = "What it was calibrated on, and what it is used on"
        blocks.append(plain_table("shift-table", title, note, shift))
    return Section("authority", "Earned authority", _LEAD, blocks)


def _map(id: str, name: str, part: pd.DataFrame, first: bool, more: str, nobody: str) -> MapBlock:
    """Return one cell's map; the first is unfolded if it is short, and says the rule for all."""
    criteria = [str(value) for value in dict.fromkeys(part["criterion"]) if value != ALL]
    lines = []
    for slice_, own in part.groupby("slice", sort=False):
        by_name = {str(row["criterion"]): row for row in own.to_dict("records")}
        whole = by_name.get(ALL, {})
        cells = [_verdict(whole, own[own["criterion"] != ALL])]
        cells += [_criterion(by_name.get(criterion), nobody) for criterion in criteria]
        critical = " (critical)" if bool(own["critical"].fillna(False).astype(bool).any()) else ""
        lines.append((f"{str(slice_).replace('_', ' ')}{critical}", tuple(cells)))
    rule = part["rule"].iloc[0] if "rule" in part.columns else "?"
    status = str(part["rule_status"].iloc[0]) if "rule_status" in part.columns else ""
    # The shipped example is nobody's rule, whenever it was there.
    example = part["reason"].fillna("").str.startswith(_NO_RULE).any()
    declared = " (the shipped example)" if example else f" ({status})" if status else ""
    note = (
        f"The rule is '{rule}'{declared}. Each cell: the rate with its bounds, the floor that the lower "
        f"bound has to clear, and what would settle it. {more}"
    )
    earned = sum(1 for _, cells in lines if cells[0].tone == "good")
    table = TableBlock(f"{id}-table", f"Authority of {name}", "", part.head(0), part.drop(columns="cell"))
    return MapBlock(
        id,
        f"{name}: earned {earned} of {count_noun(len(lines), 'slice')}",
        note.strip() if first else "",
        ("Earned?", *(criterion.replace("_", " ").capitalize() for criterion in criteria)),
        tuple(lines),
        table,
        first and len(lines) <= MOST_UNFOLDED,
    )


def _verdict(whole: Mapping[Any, Any], criteria: pd.DataFrame) -> MapCell:
    if bool(whole.get("earned")):
        return MapCell("earned", "good")
    if str(whole.get("reason")).startswith("never_calibrated"):
        return MapCell("not earned: never calibrated here", "unknown")
    tasks = whole.get("tasks_to_settle")
    if is_missing(tasks):
        tasks = pd.to_numeric(criteria["tasks_to_settle"], errors="coerce").max()
    settle = "" if is_missing(tasks) else f"\n{count_noun(int(str(tasks)), 'base task')} would settle it"
    # Below a floor with its upper bound is not a lack of tasks.
    below = criteria["reason"].fillna("").str.removeprefix(_NO_RULE) == "below_floor"
    if below.any():
        return MapCell(
            f"not earned: {count_noun(int(below.sum()), 'criterion', 'criteria')} below the floor", "bad"
        )
    return MapCell(f"not earned{settle}", "mixed")


def _criterion(row: Mapping[Any, Any] | None, nobody: str) -> MapCell:
    if row is None:
        return MapCell("does not apply", "unknown")
    reason = str(row["reason"] or "").removeprefix(_NO_RULE)
    if reason in _NOT_MEASURED:
        told = nobody if reason == "no_human_labels" else ""
        return MapCell(f"not measured: {reason_text(reason)}{told}", "unknown")
    value = percent(row["value"], 0)
    if not is_missing(row["low"]) and not is_missing(row["high"]):
        # A rate lies in [0, 1]; the bound of few tasks may not.
        low, high = (min(1.0, max(0.0, float(row[end]))) for end in ("low", "high"))
        value += f" ({100 * low:.0f} to {100 * high:.0f})"
    value += f", floor {percent(row['floor'], 0)}\n"
    if reason in ("", "earned"):
        return MapCell(f"{value}clears it", "good")
    if reason == "below_floor":
        return MapCell(f"{value}below it", "bad")
    counts = "" if is_missing(row["n_tasks"]) else f": {count_noun(int(row['n_tasks']), 'base task')}"
    settle = row["tasks_to_settle"]
    wants = "" if is_missing(settle) else f", {int(settle):,} would settle it"
    return MapCell(f"{value}{reason_text(reason)}{counts}{wants}", "mixed")


def earned_sentence(authority: pd.DataFrame | None, cell: Mapping[Any, Any]) -> str:
    """Say in how many slices a cell has earned a say; empty without a table.

    Parameters
    ----------
    authority : pandas.DataFrame or None
    cell : mapping
        judge_id, protocol, constraint, temperature, instrument_id.
    """
    if authority is None or authority.empty:
        return ""
    keep = pd.Series(True, index=authority.index)
    for name in ("judge_id", "protocol", "constraint", "temperature", "instrument_id"):
        value = cell.get(name)
        keep &= authority[name].isna() if is_missing(value) else authority[name] == value
    own = authority[keep & (authority["criterion"] == ALL)]
    if own.empty:
        return ""
    earned = own[own["earned"].fillna(False).astype(bool)]
    if str(own["reason"].fillna("").iloc[0]).startswith(_NO_RULE):
        return f"Earned: none of {count_noun(len(own), 'slice')} (no decision rule is declared)."
    if earned.empty:
        return f"Earned: none of {count_noun(len(own), 'slice')}; the map says why."
    slices = ", ".join(str(name).replace("_", " ") for name in earned["slice"])
    return f"Earned {len(earned)} of {count_noun(len(own), 'slice')}: {slices}."
