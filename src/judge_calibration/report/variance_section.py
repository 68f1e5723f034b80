"""Where verdicts vary, and which design would measure a judge well enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from judge_calibration.report.blocks import Block, Missing, Section
from judge_calibration.report.dots import dot_plot, dots_of
from judge_calibration.report.figures import PALETTE, SYMBOLS, blank
from judge_calibration.report.result_tables import Tables, figure_block, plain_table, some
from judge_calibration.report.wording import is_missing, source_name

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

_LEAD = (
    "Where verdicts vary: between pairs (wanted), judges, formats, orders and their combinations. "
    "Verdicts are binary, so this is a linear-probability decomposition."
)


def _richest(tables: Tables, name: str, value: str) -> pd.DataFrame | None:
    """Return a table's rows of the richest model that could be fitted, with order as fixed before as random.

    Parameters
    ----------
    value : str
        The column that is missing where a model could not be fitted.
    """
    frame = some(tables, name)
    if frame is None:
        return None
    rows = frame[frame[value].notna()]
    for order in ("fixed", "random"):
        for model in ("extended", "main"):
            chosen = rows[(rows["model"] == model) & (rows["order_as"] == order)]
            if len(chosen):
                return chosen
    return None


def _series(row: dict[object, object], several: bool) -> str:
    temperature = row.get("temperature")
    text = "own temperature" if is_missing(temperature) else f"t = {float(str(temperature)):g}"
    return f"{source_name(row['source'])}, {text}" if several else text


def draw_variance(tables: Tables) -> go.Figure | None:
    """Draw each component's share of the variance with its interval."""
    rows = _richest(tables, "variance_components", "share")
    if rows is None:
        return None
    several = len(set(rows["source"])) > 1
    series = [_series(row, several) for row in rows.to_dict("records")]
    lines = [str(name).replace(":", " x ") for name in rows["component"]]
    dots = dots_of(rows, lines, series, "share", "share_low", "share_high", "n_verdicts")
    return dot_plot(dots, "share of the variance (%)", span=(-0.03, 1.03))


def draw_designs(tables: Tables) -> go.Figure | None:
    """Draw the generalizability coefficient of each design by its calls."""
    import plotly.graph_objects as go

    rows = _richest(tables, "d_study", "coefficient")
    if rows is None:
        return None
    several = len(set(rows["source"])) > 1
    figure = blank(380, legend_below=True)
    names = [_series(row, several) for row in rows.to_dict("records")]
    for number, (name, own) in enumerate(rows.assign(name=names).groupby("name", sort=False)):
        own = own.sort_values("calls", kind="stable")
        designs = [
            f"{row['pairs']} pairs, {row['judges']} judges, {row['formats']} formats, "
            f"{row['orders']} orders, {row['repetitions']} repetitions"
            for row in own.to_dict("records")
        ]
        figure.add_trace(
            go.Scatter(
                x=own["calls"].astype(float).tolist(),
                y=own["coefficient"].astype(float).round(4).tolist(),
                mode="markers",
                name=str(name),
                marker={
                    "color": PALETTE[number % len(PALETTE)],
                    "symbol": SYMBOLS[number % len(SYMBOLS)],
                    "size": 7,
                    "opacity": 0.75,
                },
                customdata=designs,
                hovertemplate="%{customdata}<br>%{x:,} calls: %{y:.2f}<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title="calls", type="log")
    figure.update_yaxes(title="generalizability coefficient", range=[-0.03, 1.03])
    return figure


def variance_section(tables: Tables) -> Section:
    """Return the section."""
    blocks: list[Block] = []
    frame = some(tables, "variance_components")
    if frame is not None:
        columns = [
            *("source", "temperature", "model", "order_as", "component", "variance", "share"),
            *("share_low", "share_high", "at_boundary", "n_verdicts", "n_missing", "solver", "undefined"),
        ]
        note = (
            "Read the rows with order as fixed: as random it has one degree of freedom, and its interval "
            "is wide."
        )
        table = plain_table("variance-table", "Components (G-study)", note, frame, columns)
        figure = draw_variance(tables)
        if figure is None:
            blocks.append(table)
        else:
            rule = "Share of the variance of verdict direction, REML; the richest model that could be fitted."
            alternative = "Shares of the variance components with intervals; the values are in the table."
            title = "What do verdicts depend on?"
            blocks.append(figure_block("variance-figure", title, rule, alternative, figure, table))
    study = some(tables, "d_study")
    if study is not None:
        blocks.append(_designs(tables, study))
    anova = some(tables, "anova_table")
    if anova is not None and anova["F"].notna().any():
        note = "Judge x format x dataset; it takes every judge in every format on every dataset."
        blocks.append(plain_table("anova-table", "Analysis of variance of T", note, anova))
    elif blocks:
        what = "Analysis of variance of T: it takes every judge in every format on every dataset:"
        blocks.append(Missing(what, "kedro run --env audit"))
    if not blocks:
        what = "It takes several judges, formats or repetitions (and reporting.variance.models):"
        blocks.append(Missing(what, "kedro run --env audit"))
    return Section("variance", "Variance and designs", _LEAD, blocks)


def _designs(tables: Tables, study: pd.DataFrame) -> Block:
    cheapest = study[study["cheapest"].fillna(False).astype(bool)]
    note = "The cheapest design that reaches the target; all designs in the download."
    if cheapest.empty:
        note = "No design that was tried reaches the target; all designs in the download."
    table = plain_table("d-study-table", "Designs (D-study)", note, cheapest, exact=study)
    figure = draw_designs(tables)
    if figure is None:
        return table
    rule = (
        "One mark a design: how well it would tell pairs apart (1: perfectly), by its calls. Predictions "
        "from the components, without an interval of their own. Hover for the design."
    )
    alternative = "Scatter of the coefficient by the number of calls; the designs are in the download."
    return figure_block("design-figure", "Which design is worth its calls?", rule, alternative, figure, table)
