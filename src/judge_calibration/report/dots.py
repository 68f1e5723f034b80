"""Two plain figures that most results fit: values with their intervals, and shares in a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.report.figures import PALETTE, SYMBOLS, blank, open_symbol, wrapped
from judge_calibration.report.wording import is_missing

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Dot(NamedTuple):
    """One value: the line it stands on, the series it belongs to, and its interval (None: there is none)."""

    line: str
    series: str
    value: float
    low: float | None
    high: float | None
    n: int | None


def dots_of(
    frame: pd.DataFrame,
    lines: Sequence[str],
    series: Sequence[str],
    value: str = "value",
    low: str = "low",
    high: str = "high",
    n: str = "n_pairs",
) -> list[Dot]:
    """Return a dot for each row whose value is defined.

    Parameters
    ----------
    frame : pandas.DataFrame
        A result table.
    lines, series : sequence of str, one a row
        On which line each row stands, and in which series.
    value, low, high, n : str
        Columns.
    """
    found = []
    for row, line, name in zip(frame.to_dict("records"), lines, series, strict=True):
        if is_missing(row.get(value)):
            continue
        ends = [None if is_missing(row.get(end)) else float(row[end]) for end in (low, high)]
        count = None if is_missing(row.get(n)) else int(row[n])
        found.append(Dot(line, name, float(row[value]), ends[0], ends[1], count))
    return found


def dot_plot(
    dots: Sequence[Dot],
    axis: str,
    share: bool = True,
    reference: float | None = None,
    span: tuple[float, float] | None = None,
    counts: bool = False,
) -> go.Figure:
    """Draw each dot with its interval as a bar; series differ in colour and shape and lie below one another.

    Dots that could have an interval and have none are open.

    Parameters
    ----------
    dots : sequence of Dot
    axis : str
        What the values are.
    share : bool
        Values in [-1, 1] that are shown in per cent.
    reference : float, optional
        Where a line marks no effect.
    span : tuple of float, optional
        Ends of the axis, in the values' own unit.
    counts : bool
        Values are counted, not estimated: none has an interval.
    """
    import plotly.graph_objects as go

    lines = list(dict.fromkeys(dot.line for dot in dots))
    names = list(dict.fromkeys(dot.series for dot in dots))
    # Series that share a line stand below one another on it, in a fixed order.
    there = {(dot.line, dot.series) for dot in dots}
    on_line = {line: [name for name in names if (line, name) in there] for line in lines}
    most = max(map(len, on_line.values()), default=1)
    figure = blank(90 + (20 * most + 18) * max(1, len(lines)))
    factor = 100.0 if share else 1.0
    unit = " %" if share else ""
    for number, name in enumerate(names):
        own = [dot for dot in dots if dot.series == name]
        values = np.array([factor * dot.value for dot in own])
        symbol = SYMBOLS[number % len(SYMBOLS)]
        figure.add_trace(
            go.Scatter(
                x=_rounded(values),
                y=[
                    lines.index(dot.line)
                    + _shift(on_line[dot.line].index(name), len(on_line[dot.line]), most)
                    for dot in own
                ],
                mode="markers",
                name=name,
                marker={
                    "size": 10,
                    "color": PALETTE[number % len(PALETTE)],
                    "symbol": [
                        symbol if counts or dot.low is not None else open_symbol(symbol) for dot in own
                    ],
                },
                cliponaxis=False,
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": _rounded([_reach(dot.high, dot.value, factor) for dot in own]),
                    "arrayminus": _rounded([-_reach(dot.low, dot.value, factor) for dot in own]),
                    "thickness": 1.3,
                },
                customdata=[[dot.line.replace("<br>", ", "), "?" if dot.n is None else dot.n] for dot in own],
                hovertemplate=f"%{{customdata[0]}}<br>%{{x:.3~f}}{unit}, n = %{{customdata[1]}}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    if reference is not None:
        figure.add_vline(
            x=factor * reference, line={"color": "rgba(128,128,128,.9)", "width": 1, "dash": "dot"}
        )
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(lines))),
        ticktext=[wrapped(line) for line in lines],
        range=[len(lines) - 0.4, -0.6],
        showgrid=False,
    )
    figure.update_xaxes(title=axis)
    if span is not None:
        figure.update_xaxes(range=[factor * span[0], factor * span[1]])
    figure.update_layout(showlegend=len(names) > 1)
    return figure


def _shift(place: int, of: int, most: int) -> float:
    """Return how far below the middle of its line a mark stands."""
    return (place - (of - 1) / 2) * (0.66 / most)


def _reach(end: float | None, value: float, factor: float) -> float:
    return 0.0 if end is None else factor * (end - value)


def _rounded(values: Sequence[float] | np.ndarray) -> list[float]:
    """Return the values with four decimals: a page of fewer bytes, the same picture."""
    return [round(float(value), 4) for value in values]


class Grid(NamedTuple):
    """One panel of a grid: its title, its rows and columns, and the shares (NaN: undefined) with their n."""

    title: str
    rows: list[str]
    columns: list[str]
    values: np.ndarray
    counts: np.ndarray


def grid_of(frame: pd.DataFrame, title: str, row: str, column: str, value: str, n: str) -> Grid:
    """Return the panel of a table's rows: one cell for each pair of `row` and `column`."""
    rows, columns = list(dict.fromkeys(frame[row])), list(dict.fromkeys(frame[column]))
    values = np.full((len(rows), len(columns)), np.nan)
    counts = np.zeros(values.shape)
    for record in frame.to_dict("records"):
        at = rows.index(record[row]), columns.index(record[column])
        values[at] = np.nan if is_missing(record[value]) else float(record[value])
        counts[at] = 0 if is_missing(record[n]) else float(record[n])
    return Grid(title, rows, columns, values, counts)


def grids(panels: Sequence[Grid], counts_only: bool = False) -> go.Figure:
    """Draw panels of shares below one another; every cell says its share and its n.

    Parameters
    ----------
    panels : sequence of Grid
        Shares in [0, 1].
    counts_only : bool
        Cells say their count first (a confusion matrix).
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    heights = [len(panel.rows) + 1.6 for panel in panels] or [1]
    figure = blank(int(62 + 31 * sum(heights)))
    layout = figure.layout
    figure = make_subplots(
        rows=max(1, len(panels)),
        cols=1,
        subplot_titles=[panel.title for panel in panels],
        row_heights=heights,
        vertical_spacing=min(0.9 / max(1, len(panels)), 55 / layout.height),
        figure=go.Figure(layout=layout),
    )
    for number, panel in enumerate(panels, start=1):
        percent = np.round(100 * panel.values, 1)
        figure.add_trace(
            go.Heatmap(
                z=[[None if np.isnan(v) else float(v) for v in line] for line in percent],
                x=panel.columns,
                y=panel.rows,
                zmin=0,
                zmax=100,
                colorscale=[[0, "#f3f6fa"], [1, "#3f83bd"]],
                showscale=False,
                xgap=2,
                ygap=2,
                text=[
                    [_cell_text(v, n, counts_only) for v, n in zip(*both, strict=True)]
                    for both in zip(percent, panel.counts, strict=True)
                ],
                texttemplate="%{text}",
                textfont={"size": 12, "color": "#10151c"},
                hovertemplate="%{y} x %{x}: %{text}<extra></extra>",
            ),
            row=number,
            col=1,
        )
        figure.update_xaxes(showgrid=False, type="category", row=number, col=1)
        figure.update_yaxes(
            showgrid=False, autorange="reversed", type="category", automargin=True, row=number, col=1
        )
    figure.update_annotations(font={"size": 12}, x=0, xanchor="left")
    # The last panel's column names need room of their own: panels above it have the gap.
    figure.update_layout(margin={"l": 8, "r": 8, "t": 26, "b": 30}, plot_bgcolor="#e3e8ee")
    return figure


def _cell_text(percent: float, n: float, counts_only: bool) -> str:
    if np.isnan(percent):
        return "–"
    return f"{n:,.0f} ({percent:.0f} %)" if counts_only else f"{percent:.0f} %, n {n:,.0f}"
