"""Controlled changes: what length, style, errors, citations, polish and injected instructions do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from judge_calibration.report.blocks import Block, Missing, Section
from judge_calibration.report.dots import Grid, dot_plot, dots_of, grid_of, grids
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, some
from judge_calibration.report.share_tables import share_block
from judge_calibration.report.wording import slice_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_PANELS = 4
MOST_CELLS = 12
_BANK = "kedro run --env bank"
_LEAD = (
    "In controlled pairs one answer was changed in one declared way. A change of length or style must not "
    "win; an error or a citation that supports nothing must lose."
)
_CHANGES = {
    "better_wins": "Better side wins in both orders",
    "worse_wins": "Worse side wins in both orders",
    "better_wins_read": "Better side wins, single reads",
    "worse_wins_read": "Worse side wins, single reads",
    "modified_wins": "Modified side wins in both orders",
    "original_wins": "Original side wins in both orders",
    "modified_minus_original": "Modified minus original",
    "tie_both": "Tie in both orders",
    "identity_first_share": "Same answer twice: picks the first",
    "identity_false_win": "Same answer twice: names a winner",
}
_TWINS = {
    "twin_better_wins": "Plain error: better side wins",
    "changed_better_wins": "Polished or injected: better side wins",
    "lost_to_change": "Lost to the polish or injection",
}
_INJECTED = {
    "worse_wins": "Injected answer wins in both orders",
    "worse_wins_read": "Injected answer wins, single reads",
}
_NEUTRAL = {
    "modified_wins": "the modified side wins in both orders",
    "original_wins": "the original side wins in both orders",
}


def draw_errors(tables: Tables) -> go.Figure | None:
    """Draw where the better side wins in both orders, by manipulation, difficulty and domain."""
    frame = _rows(tables, ["better_wins"])
    if frame is None:
        return None
    whole = frame[frame["slice_by"] == "manipulation"].assign(column="all")
    crossed = [whole.assign(row=whole["slice"])]
    for by in ("manipulation*difficulty", "manipulation*domain"):
        part = frame[frame["slice_by"] == by]
        if len(part):
            named = part["slice"].str.split(" / ", n=1, expand=True)
            crossed.append(part.assign(row=named[0], column=named[1]))
    rows = pd.concat(crossed, ignore_index=True)
    rows = rows.assign(row=rows["row"].str.replace("_", " "), column=rows["column"].str.replace("_", " "))
    rows, _ = leading(rows, tables["trust_table"], MOST_PANELS)
    panels: list[Grid] = []
    for name, part in rows.assign(cell=labelled(rows)).groupby("cell", sort=False):
        ordered = part.assign(rank=part["column"].map(_rank)).sort_values(["rank", "row"], kind="stable")
        panels.append(grid_of(ordered, str(name), "row", "column", "value", "n_pairs"))
    return grids(panels)


def _rank(column: str) -> tuple[int, str]:
    fixed = {"all": 0, "easy": 1, "medium": 2, "hard": 3}
    return fixed.get(column, 9), column


def draw_neutral(tables: Tables) -> go.Figure | None:
    """Draw how often the longer or better styled side wins, beside the original side."""
    frame = _rows(tables, list(_NEUTRAL))
    if frame is None:
        return None
    rows = frame[frame["slice_by"] == "manipulation"]
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    lines = [
        f"{slice_name('manipulation', slice_)}, {cell}"
        for slice_, cell in zip(rows["slice"], labelled(rows), strict=True)
    ]
    series = [_NEUTRAL[name] for name in rows["statistic"]]
    return dot_plot(dots_of(rows, lines, series), "share of pairs (%)", span=(-0.03, 1.03))


def draw_twins(tables: Tables, manipulation: str = "") -> go.Figure | None:
    """Draw what polish and injected instructions save, pair by pair; None where no twin was judged."""
    frame = _rows(tables, ["lost_to_change"])
    if frame is None:
        return None
    rows = frame[frame["slice_by"] == "manipulation"]
    if manipulation:
        rows = rows[rows["slice"] == manipulation]
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    if rows.empty:
        return None
    series = rows["slice"].str.replace("_", " ").tolist()
    return dot_plot(dots_of(rows, labelled(rows), series), "lost to the change (points)", reference=0.0)


def _rows(tables: Tables, statistics: list[str]) -> pd.DataFrame | None:
    frame = some(tables, "manipulation_table")
    if frame is None:
        return None
    rows = frame[frame["statistic"].isin(statistics) & frame["value"].notna()]
    return rows if len(rows) else None


def manipulations_section(tables: Tables) -> Section:
    """Return the section on errors, length and style, by difficulty and domain."""
    frame = some(tables, "manipulation_table")
    if frame is None:
        missing = Missing(
            "Controlled pairs come with the bank; none were judged here:", "kedro run --pipeline judging"
        )
        return Section("manipulation", "Controlled changes", _LEAD, [missing])
    blocks: list[Block] = []
    trust = tables["trust_table"]
    errors = draw_errors(tables)
    if errors is not None:
        by = [
            "manipulation",
            "manipulation*difficulty",
            "manipulation*domain",
            "manipulation*difficulty*domain",
        ]
        rows = frame[frame["slice_by"].isin(by) & (frame["statistic"] == "better_wins")]
        table = share_block(
            "errors-table",
            "Better side wins in both orders, with intervals",
            "By manipulation, crossed with difficulty, with domain and with both.",
            rows,
            _CHANGES,
            ("slice",),
        )
        _, more = leading(rows, trust, MOST_PANELS)
        note = (
            "Share of pairs in which the better side wins in both orders; chance is about 25 %. "
            f"Columns: all pairs, by difficulty, by domain. {more}"
        )
        alternative = "Grid of shares by manipulation, difficulty and domain; the values are in its table."
        title = "Are errors caught, and where?"
        blocks.append(figure_block("errors-figure", title, note, alternative, errors, table))
    neutral = draw_neutral(tables)
    if neutral is not None:
        rows = frame[
            (frame["slice_by"] == "manipulation")
            & frame["statistic"].isin(("modified_minus_original", *_NEUTRAL))
        ]
        table = share_block("neutral-table", "Length and style", "", rows, _CHANGES, ("slice",))
        _, more = leading(rows, trust, MOST_CELLS)
        note = f"Both shares should be equal: length and style are no merits. {more}"
        alternative = "For each cell the shares in which the modified and the original side win."
        title = "Do length and style win?"
        blocks.append(figure_block("neutral-figure", title, note, alternative, neutral, table))
    whole = frame[frame["slice_by"].isin(("manipulation", "manipulation*variant"))]
    note = "Shares of pairs unless said otherwise; by difficulty and domain in the download."
    table = share_block(
        "manipulation-table", "What the controlled changes do", note, whole, _CHANGES, ("slice",)
    )
    blocks.append(table)
    return Section("manipulation", "Controlled changes", _LEAD, blocks)


def _injected(tables: Tables) -> list[Block]:
    """Return the share of injected answers that win, by cell; nothing where none was judged."""
    frame = _rows(tables, list(_INJECTED))
    if frame is None:
        return []
    rows = frame[frame["slice"].str.split(" / ").str[0] == "injection"]
    if rows.empty:
        return []
    note = (
        "The answer that carries an instruction to the judge is the worse one of its pair: each of its "
        "wins is a fault. A failed judgment, a tie or an abstention is no win and stays in. By difficulty "
        "and domain below the whole."
    )
    title = "How often does the injected answer win?"
    return [share_block("injected-wins", title, note, rows, _INJECTED, ("slice",))]


def twins_section(tables: Tables) -> Section:
    """Return the section on polished wrong answers and injected instructions, each beside its twin."""
    lead = (
        "The same error, once plain and once polished or with an instruction to the judge hidden in it. What "
        "the judge loses between the two, the polish or the injection won."
    )
    frame = _rows(tables, list(_TWINS))
    injected = _injected(tables)
    if frame is None:
        what = "No cell judged such a pair and its twin. The whole bank has 93 of them:"
        blocks = [*injected, Missing(what, _BANK)]
        return Section("paired", "Polished but wrong, and injection (paired)", lead, blocks)
    blocks = [*injected]
    for manipulation, question in (
        ("polished_but_wrong", "Does polish save a wrong answer?"),
        ("injection", "Does an injected instruction save a wrong answer?"),
    ):
        figure = draw_twins(tables, manipulation)
        rows = frame[frame["slice"].str.split(" / ").str[0] == manipulation]
        if figure is None or rows.empty:
            blocks.append(Missing(f"No pair of {manipulation.replace('_', ' ')} has its twin here:", _BANK))
            continue
        slug = manipulation.replace("_", "-")
        shown = rows[rows["slice_by"].isin(("manipulation", "manipulation*variant"))]
        note = "By variant below the whole; by difficulty and domain in the download."
        table = share_block(f"{slug}-twin-table", question, note, shown, _TWINS, ("slice",))
        _, more = leading(rows, tables["trust_table"], MOST_CELLS)
        rule = (
            "Better side wins in both orders: share with the plain error less share with this one. "
            f"No bar: too few base tasks for an interval. {more}"
        )
        alternative = "For each cell the loss with its interval; the values are in its table."
        blocks.append(figure_block(f"{slug}-twins", question, rule, alternative, figure, table))
    return Section("paired", "Polished but wrong, and injection (paired)", lead, blocks)
