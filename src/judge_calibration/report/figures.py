"""The report's figures. Each takes rows of a result table and returns a plotly figure.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; marks differ in shape too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from judge_calibration.metrics.paradigms import iso_trust_curve
from judge_calibration.options.reporting import RegionOptions
from judge_calibration.report.wording import cell_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
YELLOW, SKY, GREY, PALE = "#E69F00", "#56B4E9", "#8C8C8C", "#F2F2F2"
PALETTE = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY)
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star", "triangle-down")
"""One more than there are colours, so that the first 56 marks of a figure differ."""
MOST_NAMED = 12
OUTCOME_COLOURS = {
    "valid": GREEN,
    "malformed": ORANGE,
    "truncated": YELLOW,
    "empty": GREY,
    "refusal": PINK,
    "timeout": SKY,
    "rate_limited": BLUE,
    "context_overflow": "#5A4A8A",
    "unavailable": "#A0522D",
    "error": "#B22222",
    "missing": "#C8C8C8",
}
OUTCOME_PATTERNS = {
    "malformed": "/",
    "truncated": "\\",
    "empty": "x",
    "refusal": "-",
    "timeout": "|",
    "rate_limited": "+",
    "context_overflow": ".",
}
"""So that outcomes do not differ in colour alone."""


def blank(height: int, legend_below: bool = False) -> go.Figure:
    """Return an empty figure of the page's look, `height` pixels high, its legend above or below the plot."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#666"},
        legend={"orientation": "h", "x": 0}
        | ({"y": -0.18} if legend_below else {"y": 1.02, "yanchor": "bottom"}),
        hoverlabel={"font": {"family": "system-ui, sans-serif"}},
    )
    axis = {"gridcolor": "rgba(128,128,128,.25)", "zeroline": False, "automargin": True}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure


def trust_plane(rows: pd.DataFrame, regions: RegionOptions) -> go.Figure:
    """Draw cells in the plane of C (repeats itself) and phi (flips with the order), with its four regions.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows of the trust table, one a cell; those without C or phi are left out.
    regions : RegionOptions
        Where the regions end.
    """
    figure = blank(430, legend_below=True)
    c, phi = 100 * regions.min_consistency, 100 * regions.max_flip_rate
    corners = (
        (c, 104, -4, phi, "trustworthy", "rgba(0,158,115,.14)"),
        (-4, c, -4, phi, "noisy but fair", "rgba(86,180,233,.12)"),
        (c, 104, phi, 104, "confidently biased", "rgba(213,94,0,.12)"),
        (-4, c, phi, 104, "chaos", "rgba(204,121,167,.12)"),
    )
    for x0, x1, y0, y1, label, colour in corners:
        figure.add_shape(
            type="rect", x0=x0, x1=x1, y0=y0, y1=y1, fillcolor=colour, line_width=0, layer="below"
        )
        # Names stand beside the border between the lower and upper regions, away from the corners where
        # judges that only choose a position gather.
        right = x0 == c
        figure.add_annotation(
            x=x1 if right else x0 + 2,
            y=phi if y1 <= phi else phi + 7,
            text=f"<b>{label}</b>",
            showarrow=False,
            xanchor="right" if right else "left",
            yanchor="top",
            font={"size": 11},
        )
    _add_cells(figure, rows, "C", "phi", "phi")
    figure.update_xaxes(title="C: repeats itself (%)", range=[-4, 104])
    figure.update_yaxes(title="phi: flips with the order (%)", range=[-4, 104])
    return figure


def iso_trust(rows: pd.DataFrame) -> go.Figure:
    """Draw cells in the plane of C and A - phi q, with the curves on which their product T is the same.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows of the trust table over pairs with a decisive reference, one a cell; those without C or PR (the
        share right in both orders, which is A - phi q) are left out.
    """
    import plotly.graph_objects as go

    figure = blank(430, legend_below=True)
    consistency = np.linspace(0.01, 1, 100)
    for tenths in range(1, 10):
        curve = iso_trust_curve(tenths / 10, consistency)
        figure.add_trace(
            go.Scatter(
                x=(100 * consistency).round(2).tolist(),
                y=[None if np.isnan(v) else round(100 * float(v), 2) for v in curve],
                mode="lines",
                line={"color": "rgba(128,128,128,.6)", "width": 1, "dash": "dot"},
                showlegend=False,
                hoverinfo="skip",
            )
        )
        figure.add_annotation(
            x=100, y=10 * tenths, text=f"T {10 * tenths}", showarrow=False, xanchor="left", font={"size": 11}
        )
    _add_cells(figure, rows, "C", "PR", "A - phi q")
    figure.update_xaxes(title="C: repeats itself (%)", range=[-4, 110])
    figure.update_yaxes(title="A - phi q: right in both orders (%)", range=[-4, 104])
    return figure


def _add_cells(figure: go.Figure, rows: pd.DataFrame, across: str, up: str, up_name: str) -> None:
    """Add one mark a cell with both intervals; hovering names it."""
    import plotly.graph_objects as go

    known = rows.dropna(subset=[across, up])
    for number, (_, row) in enumerate(known.iterrows()):
        figure.add_trace(
            go.Scatter(
                x=[100 * row[across]],
                y=[100 * row[up]],
                mode="markers",
                name=cell_name(row.to_dict()),
                marker={
                    "size": 13,
                    "color": PALETTE[number % len(PALETTE)],
                    "symbol": SYMBOLS[number % len(SYMBOLS)],
                    "line": {"width": 1, "color": "white"},
                },
                error_x=_interval_bar(row, across),
                error_y=_interval_bar(row, up),
                hovertemplate=f"{across} %{{x:.1f}} %<br>{up_name} %{{y:.1f}} %"
                "<extra>%{fullData.name}</extra>",
            )
        )
    if len(known) > MOST_NAMED:
        # A legend of a hundred names helps nobody: hovering names a point, and the table has them all.
        figure.update_layout(showlegend=False)
    else:
        figure.update_layout(height=430 + 22 * len(known))


def _interval_bar(row: pd.Series, metric: str) -> dict[str, object]:
    low, high = row.get(f"{metric}_low"), row.get(f"{metric}_high")
    if pd.isna(low) or pd.isna(high):
        return {"visible": False}
    value = row[metric]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, 100 * (high - value))],
        "arrayminus": [max(0.0, 100 * (value - low))],
        "thickness": 1.2,
    }


def interval_bars(
    rows: pd.DataFrame, value: str, low: str, high: str, factor: float = 100.0
) -> dict[str, object]:
    """Return plotly's error bars of a column of values; a row without an interval has none.

    Parameters
    ----------
    value, low, high : str
        Columns.
    factor : float
        From the columns' unit to the axis': 100 from shares to per cent.
    """
    known = rows[low].notna() & rows[high].notna()
    below, above = (
        (factor * (rows[end] - rows[value]).abs()).where(known, 0.0).astype(float) for end in (low, high)
    )
    return {
        "type": "data",
        "symmetric": False,
        "array": above.round(4).tolist(),
        "arrayminus": below.round(4).tolist(),
        "thickness": 1.2,
    }


def ceiling(rows: pd.DataFrame) -> go.Figure:
    """Draw for each cell what is trustworthy (T), what is right (A) and the ceiling that order flips leave.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows of the trust table, one a cell; values that are undefined are not drawn.
    """
    import plotly.graph_objects as go

    figure = blank(130 + 46 * max(1, len(rows)))
    names = [wrapped(cell_name(row.to_dict())) for _, row in rows.iterrows()]
    marks = (
        ("T_direct", "T: repeated, order-proof and right", BLUE, "diamond", 12),
        ("A", "A: right", ORANGE, "circle", 11),
        ("A_max", "ceiling of A, given the order flips", GREY, "line-ns-open", 18),
    )
    for number, (_, row) in enumerate(rows.iterrows()):
        values = [100 * row[m] for m, *_ in marks if pd.notna(row[m])]
        if len(values) > 1:
            figure.add_trace(
                go.Scatter(
                    x=[min(values), max(values)],
                    y=[names[number]] * 2,
                    mode="lines",
                    line={"color": "rgba(128,128,128,.5)", "width": 2},
                    showlegend=False,
                    hoverinfo="skip",
                )
            )
    for metric, label, colour, symbol, size in marks:
        known = rows[metric].notna().to_numpy()
        figure.add_trace(
            go.Scatter(
                x=100 * rows[metric][known],
                y=[name for name, keep in zip(names, known, strict=True) if keep],
                mode="markers",
                name=label,
                marker={
                    "color": colour,
                    "symbol": symbol,
                    "size": size,
                    "line": {"width": 2, "color": colour},
                },
                error_x=None
                if metric == "A_max"
                else interval_bars(rows[known], metric, f"{metric}_low", f"{metric}_high"),
                hovertemplate="%{x:.1f} %<extra>%{y}</extra>",
            )
        )
    figure.update_xaxes(title="share of verdicts (%)", range=[-3, 103])
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def open_symbol(symbol: str) -> str:
    """Return the open form of a mark's symbol: it stands for a value that has no interval.

    Examples
    --------
    >>> open_symbol("square")
    'square-open'
    """
    return f"{symbol}-open"


def wrapped(name: str) -> str:
    """Return a name with all after its first comma small, a line below; a difference, one term a line."""
    if " less " in name:
        return "<br>less ".join(name.split(" less ", 1))
    head, _, rest = name.partition(", ")
    return f"{head}<br><sup>{rest}</sup>" if rest else head


def stacked_shares(
    counts: pd.DataFrame,
    parts: Mapping[str, str],
    colours: Mapping[str, str],
    axis: str,
    patterns: Mapping[str, str] | None = None,
) -> go.Figure:
    """Draw shares that add up to the whole as stacked bars, one a cell.

    Parameters
    ----------
    counts : pandas.DataFrame
        Columns cell (name), name (a key of `parts`), n, share (in [0, 1]).
    parts : mapping of str to str
        What is stacked, in order, and how each is called.
    colours, patterns : mapping of str to str
        Of each part; patterns so that parts do not differ in colour alone.
    axis : str
        What the shares are of.
    """
    import plotly.graph_objects as go

    figure = blank(120 + 42 * max(1, counts["cell"].nunique()))
    for name, title in parts.items():
        part = counts[(counts["name"] == name) & (counts["n"] > 0)]
        if part.empty:
            continue
        figure.add_trace(
            go.Bar(
                x=(100 * part["share"].astype(float)).round(4).tolist(),
                y=[wrapped(cell) for cell in part["cell"]],
                name=title,
                orientation="h",
                marker={"color": colours[name], "pattern": {"shape": (patterns or {}).get(name, "")}},
                customdata=part["n"].tolist(),
                hovertemplate="%{x:.1f} % (%{customdata:,})<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_layout(barmode="stack", bargap=0.35, showlegend=True, legend={"traceorder": "normal"})
    figure.update_xaxes(title=axis, range=[0, 101])
    figure.update_yaxes(autorange="reversed", type="category", ticklabelstandoff=6)
    return figure


def outcomes(counts: pd.DataFrame) -> go.Figure:
    """Draw the outcomes of all judgments as stacked shares, one bar a cell.

    Parameters
    ----------
    counts : pandas.DataFrame
        Columns cell (name), name (the outcome), n, share (in [0, 1]).
    """
    titles = {name: name.replace("_", " ") for name in OUTCOME_COLOURS}
    return stacked_shares(counts, titles, OUTCOME_COLOURS, "share of judgments (%)", OUTCOME_PATTERNS)
