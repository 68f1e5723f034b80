"""Figures of the section on attributes. Each takes rows of a result table and returns a plotly figure.

Colour scales are cividis (sequential) and blue to orange (diverging), which colour-blind people can read;
small maps print their values, and marks differ in shape too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from judge_calibration.report.figures import BLUE, GREY, ORANGE, PALE, blank

if TYPE_CHECKING:
    import plotly.graph_objects as go

DIVERGING = [[0.0, BLUE], [0.5, PALE], [1.0, ORANGE]]
# Three flat bands, for B, nothing and A.
_THREE = [
    [0.0, ORANGE],
    [1 / 3, ORANGE],
    [1 / 3, PALE],
    [2 / 3, PALE],
    [2 / 3, BLUE],
    [1.0, BLUE],
]
MOST_PRINTED = 14
"""Judges of a map up to which every cell prints its value."""
MOST_ATTRIBUTES = 20
_DIRECTIONS = {"B": 0, "NONE": 1, "A": 2}


def short_names(judges: Sequence[str]) -> list[str]:
    """Return judges' names without a beginning that all share, at most 22 characters long.

    Examples
    --------
    >>> short_names(["SIMULATED-judge-1", "SIMULATED-judge-2"])
    ['judge-1', 'judge-2']
    >>> short_names(["gpt", "llama"])
    ['gpt', 'llama']
    """
    shared = 0
    if len(judges) > 1:
        first = judges[0].split("-")
        parts = [judge.split("-") for judge in judges]
        while all(len(part) > shared + 2 and part[shared] == first[shared] for part in parts):
            shared += 1
    names = ["-".join(judge.split("-")[shared:]) for judge in judges]
    return [name if len(name) <= 22 else name[:21] + "…" for name in names]


def _broken(name: str, width: int = 12) -> str:
    """Return a name in lines of about `width` characters, broken after hyphens and before brackets."""
    lines = [""]
    for part in re.split(r"(?<=-)|(?<= )(?=\()", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "<br>".join(line.strip() for line in lines)


def judge_map(rows: pd.DataFrame, judges: Sequence[str], lowest: float = 0.5) -> go.Figure:
    """Draw agreement of every two judges as a square map.

    Parameters
    ----------
    rows : pandas.DataFrame
        judge_1, judge_2, agreement, joint_coverage, n_items of one stratum.
    judges : sequence of str
        The order of both axes.
    lowest : float
        The colours begin at the last twentieth below it: the same in maps that are compared.
    """
    import plotly.graph_objects as go

    place = {judge: number for number, judge in enumerate(judges)}
    shape = (len(judges), len(judges))
    agreement, notes = np.full(shape, np.nan), np.full(shape, "", dtype=object)
    for row in rows.to_dict("records"):
        for one, two in ((row["judge_1"], row["judge_2"]), (row["judge_2"], row["judge_1"])):
            if one in place and two in place:
                agreement[place[one], place[two]] = row["agreement"]
                notes[place[one], place[two]] = (
                    f"{one}<br>{two}<br>agreement {_percent(row['agreement'])}"
                    f"<br>joint coverage {_percent(row['joint_coverage'])}<br>{row['n_items']:,} items"
                )
    names = short_names(judges)
    few = len(judges) <= MOST_PRINTED
    figure = blank(max(260, 110 + (30 if few else 22) * len(judges)))
    figure.add_trace(
        go.Heatmap(
            z=_listed(100 * agreement),
            x=names,
            y=names,
            colorscale="Cividis",
            zmin=50.0 if np.isnan(lowest) else float(min(95.0, 5 * np.floor(20 * lowest + 1e-9))),
            zmax=100.0,
            text=[["" if np.isnan(v) else f"{100 * v:.0f}" for v in line] for line in agreement],
            texttemplate="%{text}" if few else None,
            customdata=notes.tolist(),
            hovertemplate="%{customdata}<extra></extra>",
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "%"}, "thickness": 12},
        )
    )
    return _as_map(figure)


def coverage_against_agreement(rows: pd.DataFrame, dropped: Sequence[str]) -> go.Figure:
    """Draw each judge pair's agreement over its joint coverage: agreement says little where little is shared.

    Parameters
    ----------
    rows : pandas.DataFrame
        judge_1, judge_2, agreement, joint_coverage of all items.
    dropped : sequence of str
        Judges that the position rule leaves out: their pairs are drawn apart.
    """
    import plotly.graph_objects as go

    figure = blank(430)
    known = rows.dropna(subset=["agreement", "joint_coverage"])
    out = known["judge_1"].isin(dropped) | known["judge_2"].isin(dropped)
    groups = (
        (known[~out], "both judges in the panel", BLUE, "circle"),
        (known[out], "a judge that only names a position", ORANGE, "x"),
    )
    for part, name, colour, symbol in groups:
        if part.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=(100 * part["joint_coverage"]).round(3).tolist(),
                y=(100 * part["agreement"]).round(3).tolist(),
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 8, "opacity": 0.75},
                customdata=part[["judge_1", "judge_2"]].to_numpy().tolist(),
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}<br>agreement %{y:.1f} %"
                "<br>joint coverage %{x:.1f} %<extra></extra>",
            )
        )
    figure.add_hline(y=50, line={"color": GREY, "dash": "dot", "width": 1})
    figure.add_annotation(
        x=1, xref="paper", y=50, text="two coins", showarrow=False, xanchor="right", yanchor="bottom"
    )
    figure.update_xaxes(title="joint coverage (% of cells that both resolve)", rangemode="tozero")
    figure.update_yaxes(title="agreement on those cells (%)")
    return figure


def family_bars(rows: pd.DataFrame) -> go.Figure:
    """Draw agreement by family of attributes, where the judges' overall choices are the same and opposite.

    Parameters
    ----------
    rows : pandas.DataFrame
        family, agreement_same, agreement_opposite, joint_coverage_all; the first row is drawn on top.
    """
    import plotly.graph_objects as go

    figure = blank(120 + 40 * max(1, len(rows)))
    for column, name, colour, pattern in (
        ("agreement_same", "same overall choice", BLUE, ""),
        ("agreement_opposite", "opposite overall choices", ORANGE, "/"),
    ):
        figure.add_trace(
            go.Bar(
                x=_listed(100 * rows[column].to_numpy(dtype=float)),
                y=rows["family"].tolist(),
                orientation="h",
                name=name,
                marker={"color": colour, "pattern": {"shape": pattern}},
                customdata=_listed(100 * rows["joint_coverage_all"].to_numpy(dtype=float)),
                hovertemplate="%{x:.1f} %<br>joint coverage %{customdata:.1f} %"
                "<extra>%{fullData.name}</extra>",
            )
        )
    figure.add_vline(x=50, line={"color": GREY, "dash": "dot", "width": 1})
    figure.update_layout(barmode="group", bargap=0.3)
    figure.update_xaxes(title="mean agreement of judge pairs (%)", range=[0, 100])
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def priority_map(profiles: pd.DataFrame, judges: Sequence[str]) -> go.Figure:
    """Draw what each judge rewards: the weights of the attributes that weigh most, a column a judge.

    Parameters
    ----------
    profiles : pandas.DataFrame
        judge_id, attribute, weight, weight_se, resolution.
    judges : sequence of str
        The columns, in order.
    """
    import plotly.graph_objects as go

    known = profiles[profiles["judge_id"].isin(judges)].dropna(subset=["weight"])
    strength = known.assign(size=known["weight"].abs()).groupby("attribute", sort=False)["size"].mean()
    attributes = strength.sort_values(ascending=False, kind="stable").index[:MOST_ATTRIBUTES].tolist()
    grid = known.pivot_table(index="attribute", columns="judge_id", values="weight").reindex(
        index=attributes, columns=list(judges)
    )
    values = grid.to_numpy(dtype=float)
    top = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    few = len(judges) <= MOST_PRINTED
    figure = blank(150 + 24 * max(1, len(attributes)))
    figure.add_trace(
        go.Heatmap(
            z=_listed(values),
            x=short_names(list(judges)),
            y=[name.replace("_", " ") for name in attributes],
            colorscale=DIVERGING,
            zmin=-top,
            zmax=top,
            text=[["" if np.isnan(v) else f"{v:+.2f}" for v in line] for line in values],
            texttemplate="%{text}" if few else None,
            hovertemplate="%{x}<br>%{y}<br>%{z:+.3f}<extra></extra>",
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "log-odds"}, "thickness": 12},
        )
    )
    return _as_map(figure)


def case_map(rows: pd.DataFrame) -> go.Figure:
    """Draw one pair: which answer every judge gives more of each attribute; judges stand by their choice.

    Parameters
    ----------
    rows : pandas.DataFrame
        judge_id, choice, attribute, direction {A, B, NONE} of one pair; only attributes that a judge resolves
        are drawn, those that most judges resolve first.
    """
    import plotly.graph_objects as go

    order = {"A": 0, "B": 1, "NONE": 2}
    judges = rows[["judge_id", "choice"]].drop_duplicates()
    judges = judges.assign(_order=judges["choice"].map(order)).sort_values("_order", kind="stable")
    resolved = rows[rows["direction"] != "NONE"].groupby("attribute", sort=False).size()
    attributes = resolved.sort_values(ascending=False, kind="stable").index[: 2 * MOST_ATTRIBUTES].tolist()
    labels = [
        f"{name} ({'no choice' if choice == 'NONE' else choice})"
        for name, choice in zip(
            short_names(judges["judge_id"].tolist()), judges["choice"].tolist(), strict=True
        )
    ]
    grid = rows.pivot_table(index="attribute", columns="judge_id", values="direction", aggfunc="first")
    grid = grid.reindex(index=attributes, columns=judges["judge_id"].tolist())
    codes = grid.map(lambda v: _DIRECTIONS.get(v, 1)).to_numpy(dtype=float)
    figure = blank(170 + 22 * max(1, len(attributes)))
    figure.add_trace(
        go.Heatmap(
            z=codes.tolist(),
            x=labels,
            y=[name.replace("_", " ") for name in attributes],
            colorscale=_THREE,
            zmin=0,
            zmax=2,
            showscale=False,
            text=grid.map(lambda v: v if v in ("A", "B") else "").to_numpy().tolist(),
            texttemplate="%{text}",
            hovertemplate="%{x}<br>%{y}<br>more in %{text}<extra></extra>",
            xgap=1,
            ygap=1,
        )
    )
    return _as_map(figure)


def _as_map(figure: go.Figure) -> go.Figure:
    """Return the figure with names on both axes, the first row on top; many names stand aslant."""
    names = list(figure.data[0].x)
    figure.update_xaxes(type="category", tickangle=-60 if len(names) > 4 else 0, showgrid=False)
    if len(names) <= 4:
        # Side by side on a telephone, too.
        figure.update_xaxes(tickvals=names, ticktext=[_broken(str(name)) for name in names])
    figure.update_yaxes(type="category", autorange="reversed", showgrid=False)
    return figure


def _percent(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{100 * value:.1f} %"


def _listed(values: np.ndarray) -> list[Any]:
    """Return nested lists with null in place of NaN, which JSON has not."""
    if values.ndim > 1:
        return [_listed(line) for line in values]
    return [None if np.isnan(v) else round(float(v), 4) for v in values]
