"""What answers used and cost; outcomes and parse paths are beside them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from judge_calibration.report.blocks import Block, Missing, Section, TableBlock
from judge_calibration.report.dots import Dot, dot_plot
from judge_calibration.report.figures import PALETTE, outcomes, stacked_shares
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, plain_table, some
from judge_calibration.report.sections import outcome_shares
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import is_missing, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CELLS = 16
_LEAD = (
    "What the answers used, times the price table in the parameters. An unpriced judge is unknown, not free."
)
_PATHS = {"strict": "strict form", "fenced": "in a code fence", "embedded": "inside other text"}


def draw_costs(tables: Tables) -> go.Figure | None:
    """Draw tokens, and money where there is a price, per valid verdict."""
    frame = some(tables, "cost_table")
    if frame is None:
        return None
    rows, _ = leading(frame, tables["trust_table"], MOST_CELLS)
    dots = []
    for row, cell in zip(rows.to_dict("records"), labelled(rows), strict=True):
        valid = 0 if is_missing(row["valid_verdicts"]) else int(row["valid_verdicts"])
        if not valid:
            continue
        for column, series in (
            ("prompt_tokens", "prompt tokens"),
            ("completion_tokens", "completion tokens"),
        ):
            if not is_missing(row[column]):
                dots.append(Dot(cell, series, float(row[column]) / valid, None, None, valid))
    if not dots:
        return None
    most = max(dot.value for dot in dots)
    return dot_plot(
        dots, "tokens for each valid verdict", share=False, span=(-0.03 * most, 1.03 * most), counts=True
    )


def costs_section(tables: Tables) -> Section:
    """Return the section on costs."""
    frame = some(tables, "cost_table")
    if frame is None:
        what = "Nothing was asked in this run, so nothing was spent:"
        return Section("costs", "Costs", _LEAD, [Missing(what, "kedro run --pipeline judging")])
    table = plain_table(
        "costs-table", "Costs", "Sums and money by cell; shared calls are counted once.", frame
    )
    plan = _plan_and_spending(tables)
    figure = draw_costs(tables)
    if figure is None:
        return Section("costs", "Costs", _LEAD, [table, *plan])
    _, more = leading(frame, tables["trust_table"], MOST_CELLS)
    rule = f"Tokens as answered, divided by valid verdicts: counts, so without an interval. {more}"
    alternative = "Prompt and completion tokens for each valid verdict, by cell."
    title = "What does one verdict take?"
    drawn = figure_block("costs-figure", title, rule, alternative, figure, table)
    return Section("costs", "Costs", _LEAD, [drawn, *plan])


def _plan_and_spending(tables: Tables) -> list[Block]:
    frame = some(tables, "spending_table")
    if frame is None:
        return []
    rows = frame.to_dict("records")
    shown = pd.DataFrame(
        {
            "Judge": [f"{row['judge_id']}, {row['protocol']}, {row['constraint']}" for row in rows],
            "Calls planned": [int(row["calls_planned"]) for row in rows],
            "Answers": [int(row["answers"]) for row in rows],
            "Failures": [int(row["failures"]) for row in rows],
            "Prompt tokens, planned and used": [
                _beside(row, "prompt_tokens_planned", "prompt_tokens") for row in rows
            ],
            "Completion tokens, at most and used": [
                _beside(row, "completion_tokens_most", "completion_tokens") for row in rows
            ],
            "Cost, planned": [_money(row["cost_planned"]) for row in rows],
            "Cost": [_money(row["cost"]) for row in rows],
        }
    )
    note = (
        "Planned before anything was asked, from the prompts themselves (a quarter of their bytes, and "
        "answers as long as they may be); a call that several judgments share counts once. Counts, "
        "so without an interval."
    )
    return [short_table("plan-and-spending", "Plan and spending", note, shown, frame)]


def _beside(row: Mapping[Hashable, object], planned: str, used: str) -> str:
    if row["answers"] == row["answers_without_usage"]:
        return f"{row[planned]:,} : not told"
    return f"{row[planned]:,} : {row[used]:,}"


def _money(value: object) -> str:
    return "–" if is_missing(value) else f"{float(str(value)):,.4g}"


def draw_paths(tables: Tables) -> go.Figure | None:
    """Draw by which path valid verdicts were read."""
    rows = _paths(tables)
    if rows is None:
        return None
    return stacked_shares(
        rows, _PATHS, dict(zip(_PATHS, PALETTE, strict=False)), "share of valid verdicts (%)"
    )


def _paths(tables: Tables) -> pd.DataFrame | None:
    frame = some(tables, "outcome_table")
    if frame is None:
        return None
    rows = frame[(frame["kind"] == "parse_path") & frame["share"].notna()]
    if not (rows["count"] > 0).any():
        return None
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    return rows.assign(cell=labelled(rows)).rename(columns={"count": "n"})


def draw_outcomes(tables: Tables) -> go.Figure | None:
    """Draw what became of every planned judgment."""
    frame = some(tables, "outcome_table")
    if frame is None:
        return None
    rows, _ = leading(outcome_shares(frame), tables["trust_table"], MOST_CELLS)
    return outcomes(rows)


def outcomes_section(tables: Tables) -> Section:
    """Return the section on outcomes and parse paths."""
    lead = "Only valid judgments carry a verdict. No failure is turned into one or leaves the denominators."
    frame = some(tables, "outcome_table")
    figure = draw_outcomes(tables)
    if frame is None or figure is None:
        missing = Missing("Nothing was judged yet. That takes", "kedro run --pipeline judging")
        return Section("outcomes", "Outcomes and parse paths", lead, [missing])
    blocks: list[Block] = []
    happened = frame[(frame["kind"] == "outcome") & (frame["count"] > 0)]
    _, more = leading(happened, tables["trust_table"], MOST_CELLS)
    table = _counts("outcome-table", "Outcomes", happened, frame, "Outcome", "Judgments")
    rule = f"Shares of all planned judgments, with Wilson's intervals in the table. {more}"
    alternative = "Stacked shares of outcomes for each cell; the counts are in the table."
    title = "What became of every planned judgment?"
    blocks.append(figure_block("outcome-shares", title, rule, alternative, figure, table))
    paths = draw_paths(tables)
    if paths is not None:
        read = frame[(frame["kind"] == "parse_path") & (frame["count"] > 0)]
        table = _counts("path-table", "Parse paths", read, frame, "Read from", "Verdicts")
        rule = (
            "How valid verdicts were found in the reply: in the strict form, in one fenced block, or as "
            "one object inside other text (flagged)."
        )
        alternative = "Stacked shares of parse paths for each cell; the counts are in the table."
        blocks.append(figure_block("path-shares", "How were verdicts read?", rule, alternative, paths, table))
    else:
        asked = some(tables, "cost_table") is not None
        what = (
            "Replies in plain formats are one bare label or malformed: there is no form to find it in. "
            "Structured formats have several:"
            if asked
            else "How replies were read is not on record for verdicts from logs. To judge here:"
        )
        blocks.append(Missing(what, "kedro run --env audit" if asked else "kedro run --pipeline judging"))
    return Section("outcomes", "Outcomes and parse paths", lead, blocks)


def _counts(id: str, title: str, rows: pd.DataFrame, exact: pd.DataFrame, name: str, unit: str) -> TableBlock:
    intervals = [
        percent(row["share"])
        + (
            ""
            if is_missing(row.get("low")) or is_missing(row.get("high"))
            else f" ({100 * float(row['low']):.1f} to {100 * float(row['high']):.1f})"
        )
        for row in rows.to_dict("records")
    ]
    shown = pd.DataFrame(
        {
            "Cell": labelled(rows),
            name: rows["name"].str.replace("_", " "),
            unit: rows["count"].tolist(),
            "Share": intervals,
        }
    )
    return short_table(id, title, "", shown, exact)
