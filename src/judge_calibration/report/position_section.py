"""Order and position: what a judge picks must not depend on which answer comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge_calibration.report.blocks import Block, Missing, Section
from judge_calibration.report.dots import dot_plot, dots_of
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, some
from judge_calibration.report.share_tables import share_block

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CELLS = 16
_POSITIONS = {
    "first_share": "Picks the first",
    "second_share": "Picks the second",
    "contradiction": "Orders contradict",
    "first_both": "First in both orders",
    "second_both": "Second in both orders",
}
_LEAD = "Every pair is shown in both orders; what a judge picks must not depend on which answer comes first."


def draw_positions(tables: Tables) -> go.Figure | None:
    """Draw each cell's preference for the first place and its contradictions; None without verdicts."""
    frame = some(tables, "position_table")
    if frame is None:
        return None
    rows = frame[(frame["slice_by"] == "all") & frame["statistic"].isin(["first_share", "contradiction"])]
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    series = [_POSITIONS[name] for name in rows["statistic"]]
    return dot_plot(dots_of(rows, labelled(rows), series), "share (%)", reference=0.5, span=(-0.03, 1.03))


def positions_section(tables: Tables) -> Section:
    """Return the section."""
    frame = some(tables, "position_table")
    if frame is None:
        missing = Missing("It takes verdicts:", "kedro run --pipeline judging")
        return Section("position", "Order and position", _LEAD, [missing])
    whole = frame[frame["slice_by"] == "all"]
    note = "Shares of decisive verdicts for each place, and of pairs whose two orders name opposite answers."
    blocks: list[Block] = []
    figure = draw_positions(tables)
    if figure is not None:
        _, more = leading(whole, tables["trust_table"], MOST_CELLS)
        block = share_block("position-figure-table", "Positions drawn", note, whole, _POSITIONS)
        rule = (
            f"No preference: half of the decisive verdicts for the first (dotted), no contradiction. {more}"
        )
        alternative = "For each cell the share that picks the first and the share of contradicting pairs."
        title = "How often does the place decide?"
        blocks.append(figure_block("position-figure", title, rule, alternative, figure, block))
    blocks.append(
        share_block(
            "position-table", "Position preferences", f"{note} By slice in the download.", whole, _POSITIONS
        )
    )
    return Section("position", "Order and position", _LEAD, blocks)
