"""Figures about adaptation: gains, curves over labels, the matrix, before and after, and reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from judge_calibration.adapt.before_after import JOINT
from judge_calibration.report.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALETTE,
    PINK,
    SKY,
    blank,
    interval_bars,
)
from judge_calibration.report.wording import is_missing

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = {
    "sft": BLUE,
    JOINT: SKY,
    "rubric": ORANGE,
    "reweighting": GREEN,
    "base": GREY,
    "before": GREY,
    "after": BLUE,
}
SYMBOLS = {
    "sft": "square",
    JOINT: "square-cross",
    "rubric": "diamond",
    "reweighting": "circle",
    "base": "line-ns-open",
    "before": "circle-open",
    "after": "circle",
}
DASHES = ("solid", "dash", "dot", "dashdot")


def short_name(judge: str, source: str) -> str:
    """Name a judge on a source in two lines, without the mark that the page sets by itself."""
    plain = [text.removeprefix("SIMULATED-").replace("_", " ") for text in (judge, source)]
    return f"{plain[0]}<br><sup>{plain[1]}</sup>"


def gains(table: pd.DataFrame) -> go.Figure:
    """Draw Delta with its interval: a line a judge and source, a mark a method and budget.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of the adaptation table; those without delta are not drawn.
    """
    import plotly.graph_objects as go

    known = table[table["delta"].notna()]
    pairs = list(dict.fromkeys(zip(known["judge_id"], known["source"], strict=True)))
    kinds = list(dict.fromkeys(zip(known["method"], known["budget"], strict=True)))
    figure = blank(110 + (15 * len(kinds) + 22) * max(1, len(pairs)))
    for number, (method, budget) in enumerate(kinds):
        own = known[(known["method"] == method) & (known["budget"] == budget)]
        shift = (number - (len(kinds) - 1) / 2) * (0.7 / max(1, len(kinds)))
        places = [pairs.index(key) + shift for key in zip(own["judge_id"], own["source"], strict=True)]
        of_method = [b for m, b in kinds if m == method]
        figure.add_trace(
            go.Scatter(
                x=own["delta"].round(4),
                y=places,
                mode="markers",
                name=f"{method}, {_labels(budget)}",
                marker={
                    "size": 10,
                    "color": COLOURS.get(method, PINK),
                    "symbol": SYMBOLS.get(method, "star"),
                    # Fewer labels, paler.
                    "opacity": 0.4 + 0.6 * (of_method.index(budget) + 1) / len(of_method),
                },
                error_x=interval_bars(own, "delta", "delta_low", "delta_high", factor=1.0),
                customdata=own["n_test"],
                hovertemplate="%{x:.1f} points, n = %{customdata}<extra>%{fullData.name}</extra>",
            )
        )
    figure.add_vline(x=0, line={"color": "rgba(128,128,128,.9)", "width": 1, "dash": "dot"})
    figure.update_layout(showlegend=True)  # a single method is named too
    figure.update_xaxes(title="gain in points of accuracy")
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(pairs))),
        ticktext=[short_name(*pair) for pair in pairs],
        range=[len(pairs) - 0.4, -0.6],
        showgrid=False,
    )
    return figure


def _labels(budget: str) -> str:
    return "all labels" if budget == "full" else f"{budget} labels"


def efficiency(curves: pd.DataFrame) -> go.Figure:
    """Draw accuracy by number of labels: a line a method and source, bars of one standard deviation.

    Parameters
    ----------
    curves : pandas.DataFrame
        Rows of the table of sample efficiency; those without accuracy are not drawn.
    """
    import plotly.graph_objects as go

    known = curves[curves["accuracy"].notna()]
    sources = [name for name in dict.fromkeys(known["source"]) if name != "all"]
    shown = known[known["source"] != "all"] if len(sources) == 1 else known
    budgets = sorted(set(shown["budget"]), key=lambda b: (b == "full", int(b) if b != "full" else 0))
    names = list(dict.fromkeys(shown["source"]))
    figure = blank(380)
    if len(names) > 6:
        shown, names = shown[shown["source"] == "all"], ["all"]
    for (method, source), own in shown.groupby(["method", "source"], sort=False):
        own = own.assign(_at=own["budget"].map(budgets.index)).sort_values("_at")
        called = (
            "all sources" if source == "all" else str(source).removeprefix("SIMULATED-").replace("_", " ")
        )
        colour = COLOURS.get(str(method), PINK)
        dash = DASHES[names.index(source) % len(DASHES)]
        figure.add_trace(
            go.Scatter(
                x=own["budget"],
                y=(100 * own["accuracy"]).round(4),
                mode="lines+markers",
                name=f"{method}, {called}",
                line={"color": colour, "dash": dash},
                marker={"symbol": SYMBOLS.get(str(method), "star"), "size": 9},
                error_y={
                    "type": "data",
                    "array": (100 * own["sd_over_resamples"]).fillna(0.0).round(4).tolist(),
                },
                customdata=own["n_fits"],
                hovertemplate="%{x} labels: %{y:.1f} %, %{customdata} fits<extra>%{fullData.name}</extra>",
            )
        )
    base = shown.groupby("source", sort=False)["accuracy_base"].mean().dropna()
    for source, value in base.items():
        called = (
            "all sources" if source == "all" else str(source).removeprefix("SIMULATED-").replace("_", " ")
        )
        figure.add_trace(
            go.Scatter(
                x=budgets,
                y=[round(100 * float(value), 4)] * len(budgets),
                # A line through one budget has no length.
                mode="lines" if len(budgets) > 1 else "markers",
                marker={"symbol": "line-ew-open", "size": 40, "color": COLOURS["base"]},
                name=f"unadapted, {called}",
                line={
                    "color": COLOURS["base"],
                    "dash": DASHES[names.index(source) % len(DASHES)],
                    "width": 1.4,
                },
                hovertemplate="%{y:.1f} %<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="labelled training pairs a source", type="category", categoryarray=budgets)
    figure.update_yaxes(title="accuracy on held-out pairs (%)")
    return figure


def matrix(table: pd.DataFrame) -> go.Figure:
    """Draw Delta of every judge on every source at the largest budget, a panel a method.

    Parameters
    ----------
    table : pandas.DataFrame
        Rows of the adaptation table.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    full = table[(table["budget"] == "full") & table["delta"].notna()]
    methods = list(dict.fromkeys(full["method"]))
    judges, sources = list(dict.fromkeys(full["judge_id"])), list(dict.fromkeys(full["source"]))
    layout = blank(int(60 + len(methods) * (46 + 27 * len(judges)))).layout
    figure = make_subplots(
        rows=max(1, len(methods)),
        cols=1,
        subplot_titles=methods,
        vertical_spacing=min(0.3, 60 / layout.height),
        figure=go.Figure(layout=layout),
    )
    reach = max(5.0, float(full["delta"].abs().max())) if len(full) else 5.0
    for number, method in enumerate(methods, start=1):
        grid = np.full((len(judges), len(sources)), np.nan)
        for row in full[full["method"] == method].to_dict("records"):
            grid[judges.index(row["judge_id"]), sources.index(row["source"])] = row["delta"]
        figure.add_trace(
            go.Heatmap(
                z=[[None if np.isnan(v) else round(float(v), 2) for v in line] for line in grid],
                x=[s.removeprefix("SIMULATED-").replace("_", " ") for s in sources],
                y=[j.removeprefix("SIMULATED-") for j in judges],
                zmid=0,
                zmin=-reach,
                zmax=reach,
                colorscale=[[0, "#D98556"], [0.5, "#f3f3f3"], [1, "#4F94C8"]],
                showscale=False,
                xgap=2,
                ygap=2,
                text=[["–" if np.isnan(v) else f"{v:+.1f}" for v in line] for line in grid],
                texttemplate="%{text}",
                textfont={"size": 11, "color": "#10151c"},
                hovertemplate="%{y} on %{x}: %{text} points<extra></extra>",
            ),
            row=number,
            col=1,
        )
        figure.update_xaxes(showgrid=False, type="category", row=number, col=1)
        figure.update_yaxes(
            showgrid=False, autorange="reversed", type="category", automargin=True, row=number, col=1
        )
    figure.update_annotations(font={"size": 12}, x=0, xanchor="left")
    figure.update_layout(margin={"l": 8, "r": 8, "t": 26, "b": 8})
    return figure


def before_after(changes: pd.DataFrame, names: Sequence[str]) -> go.Figure:
    """Draw the statistics before and after, a line a statistic (and slice), in per cent.

    Parameters
    ----------
    changes : pandas.DataFrame
        Rows of one adapted judge in the table of changes; those that are undefined are not drawn.
    names : sequence of str, one a row
        How each row is called.
    """
    import plotly.graph_objects as go

    rows = changes.assign(_name=list(names))
    rows = rows[rows["before"].notna() & rows["after"].notna()]
    lines = list(dict.fromkeys(rows["_name"]))
    figure = blank(110 + 34 * max(1, len(lines)))
    for row in rows.to_dict("records"):
        figure.add_trace(
            go.Scatter(
                x=[round(100 * row["before"], 3), round(100 * row["after"], 3)],
                y=[row["_name"]] * 2,
                mode="lines",
                line={"color": "rgba(128,128,128,.5)", "width": 2},
                showlegend=False,
                hoverinfo="skip",
            )
        )
    for column in ("before", "after"):
        figure.add_trace(
            go.Scatter(
                x=(100 * rows[column]).round(3),
                y=rows["_name"],
                mode="markers",
                name=column,
                marker={
                    # The ring of before stays visible where nothing changed.
                    "size": 15 if column == "before" else 9,
                    "color": COLOURS[column],
                    "symbol": SYMBOLS[column],
                    "line": {"width": 2 if column == "before" else 0},
                },
                customdata=[
                    [f"{100 * r['change']:+.1f}" + _between(r), r["n_pairs"]] for r in rows.to_dict("records")
                ],
                hovertemplate="%{y}: %{x:.1f} %, change %{customdata[0]} points, n = %{customdata[1]}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="per cent")
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def _between(row: dict[Any, Any]) -> str:
    if is_missing(row["low"]) or is_missing(row["high"]):
        return ""
    return f" ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"


def reliability(curve: pd.DataFrame) -> go.Figure:
    """Draw how often the reference is A where the probability says so, with the line where both are equal.

    Parameters
    ----------
    curve : pandas.DataFrame
        Rows of the reliability table; empty bins are not drawn.
    """
    import plotly.graph_objects as go

    figure = blank(380)
    figure.add_trace(
        go.Scatter(
            x=[0, 100],
            y=[0, 100],
            mode="lines",
            name="as often as it says",
            line={"color": COLOURS["base"], "dash": "dot", "width": 1.2},
            hoverinfo="skip",
        )
    )
    known = curve[curve["n_pairs"] > 0]
    for number, (key, own) in enumerate(known.groupby(["judge_id", "source"], sort=False)):
        if number >= len(PALETTE):
            break
        name = ", ".join(str(part).removeprefix("SIMULATED-").replace("_", " ") for part in key)
        figure.add_trace(
            go.Scatter(
                x=(100 * own["mean_probability"]).round(3),
                y=(100 * own["share_a"]).round(3),
                mode="lines+markers",
                name=name,
                line={"color": PALETTE[number], "width": 1.2},
                marker={
                    "size": np.clip(4 + np.sqrt(own["n_pairs"].to_numpy(float)), 5, 18).round(1).tolist()
                },
                customdata=own["n_pairs"],
                hovertemplate="said %{x:.0f} %, was %{y:.0f} %, n = %{customdata}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="probability that the reference is A (%)", range=[-3, 103])
    figure.update_yaxes(title="share of pairs where it is (%)", range=[-3, 103])
    return figure
