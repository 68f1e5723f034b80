"""Remedies, predicted and verified; selective judging; confidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from judge_calibration.report.blocks import Block, Missing, Section, TableBlock
from judge_calibration.report.dots import Dot, dot_plot
from judge_calibration.report.figures import PALETTE, SYMBOLS, blank, open_symbol
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, plain_table, some
from judge_calibration.report.sections import CELL
from judge_calibration.report.wording import is_missing

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CELLS = 5
_ASIDE = 0.5
"""Percentage points between the marks of two cells at one place."""
_CELL = [name for name in CELL if name != "instrument_id"]
_JUDGE = "kedro run --pipeline judging"
_WHY_LOWER = (
    "Both orders never lie above none here: their verdict counts if both reads are right, and both when "
    "repeated too: four reads, where none takes three. They make no verdict right; pairs whose orders "
    "differ go to people, and what they gain is the accuracy of what they keep, in the table."
)


def draw_remedies(tables: Tables) -> go.Figure | None:
    """Draw how many pairs each remedy would make trustworthy, with its calls."""
    frame = some(tables, "remedies")
    if frame is None:
        return None
    rows = frame[(frame["statistic"] == "trustworthy") & frame["predicted"].notna()]
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    dots = []
    for row, cell in zip(rows.to_dict("records"), labelled(rows), strict=True):
        calls = int(row["calls_per_verdict"])
        votes = f" of {int(row['votes'])}" if int(row["votes"]) > 1 else ""
        name = f"{str(row['remedy']).replace('_', ' ')}{votes} ({calls}x calls)"
        low, high = (None if is_missing(row[end]) else float(row[end]) for end in ("low", "high"))
        n = None if is_missing(row["n_pairs"]) else int(row["n_pairs"])
        dots.append(Dot(cell, name, float(row["predicted"]), low, high, n))
    return dot_plot(dots, "trustworthy (%)", span=(-0.03, 1.03)) if dots else None


def remedies_section(tables: Tables) -> Section:
    """Return the section on remedies."""
    lead = "What repeating and voting, or asking in both orders, would gain, predicted from the same data."
    frame = some(tables, "remedies")
    if frame is None:
        return Section("remedies", "Remedies", lead, [Missing("It takes verdicts:", _JUDGE)])
    blocks: list[Block] = []
    columns = [
        *(*_CELL, "remedy", "votes", "calls_per_verdict", "statistic", "predicted", "low", "high"),
        *("verified", "verified_pairs", "verified_reason", "n_pairs"),
    ]
    note = (
        "verified: on held-out repetitions, where there are enough; a plain share, without interval. "
        "accuracy: right, of all pairs; accuracy kept: right, of the pairs on which the remedy decides; "
        "coverage: the share on which it decides, the rest goes to people."
    )
    table = plain_table("remedy-table", "Remedies, predicted and verified", note, frame, columns)
    figure = draw_remedies(tables)
    if figure is None:
        blocks.append(table)
    else:
        _, more = leading(frame, tables["trust_table"], MOST_CELLS)
        rule = (
            "Predicted share of pairs that are trustworthy after the remedy; calls are those of one verdict. "
            f"{_WHY_LOWER} {more}"
        )
        alternative = "For each cell and remedy the predicted share with its interval."
        title = "What would repeating, voting or asking both orders give?"
        blocks.append(figure_block("remedies-figure", title, rule, alternative, figure, table))
    regions = some(tables, "regions")
    if regions is not None:
        note = "sure: both intervals lie on one side of their threshold."
        columns = [*_CELL, "region", "sure", "remedy", "reason"]
        blocks.append(plain_table("region-table", "Region of each cell", note, regions, columns))
    return Section("remedies", "Remedies", lead, blocks)


def draw_risk(tables: Tables) -> go.Figure | None:
    """Draw the error rate among the most confident verdicts by the share that is kept."""
    frame = some(tables, "risk_coverage")
    if frame is None:
        return None
    rows = frame[(frame["slice_by"] == "all") & frame["risk"].notna()]
    titles = ("share of pairs kept (%)", "wrong among the kept (%)")
    return _lines(rows, tables, "coverage", "risk", titles, "n_kept")


def draw_reliability(tables: Tables) -> go.Figure | None:
    """Draw the share right by confidence, with the line on which both are equal."""
    import plotly.graph_objects as go

    frame = some(tables, "confidence_curves")
    if frame is None:
        return None
    rows = frame[(frame["curve"] == "reliability") & (frame["n_items"] > 0) & frame["accuracy"].notna()]
    rows = rows.assign(kind=rows["confidence"].str.replace("_", " "))
    figure = _lines(
        rows, tables, "mean_confidence", "accuracy", ("confidence (%)", "right (%)"), "n_items", "kind"
    )
    if figure is not None:
        figure.add_trace(
            go.Scatter(
                x=[0, 100],
                y=[0, 100],
                mode="lines",
                line={"color": "rgba(128,128,128,.7)", "dash": "dot", "width": 1},
                name="calibrated",
                hoverinfo="skip",
            )
        )
    return figure


def _lines(
    rows: pd.DataFrame,
    tables: Tables,
    across: str,
    up: str,
    titles: tuple[str, str],
    n: str,
    kind: str = "",
) -> go.Figure | None:
    """Draw a line a cell (and `kind`); its points carry the intervals of ``<up>_low`` and ``<up>_high``."""
    import plotly.graph_objects as go

    if rows.empty:
        return None
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    kinds = rows[kind].astype(str) if kind else pd.Series("", index=rows.index)
    rows = rows.assign(cell=[f"{c}: {k}" if k else c for c, k in zip(labelled(rows), kinds, strict=True)])
    names = list(dict.fromkeys(rows["cell"]))
    figure = blank(360 + 22 * len(names), legend_below=True)
    for number, name in enumerate(names):
        own = rows[rows["cell"] == name].sort_values(across, kind="stable")
        value, low, high = (100 * own[column].astype(float) for column in (up, f"{up}_low", f"{up}_high"))
        colour, symbol = PALETTE[number % len(PALETTE)], SYMBOLS[number % len(SYMBOLS)]
        figure.add_trace(
            go.Scatter(
                # A little to the side of one another: cells often share their confidences.
                x=(100 * own[across].astype(float) + _ASIDE * (number - (len(names) - 1) / 2))
                .round(2)
                .tolist(),
                y=value.round(2).tolist(),
                mode="lines+markers",
                name=name,
                line={"color": colour, "width": 1.5},
                marker={
                    "symbol": [symbol if known else open_symbol(symbol) for known in low.notna()],
                    "size": 8,
                },
                # Where there is no interval the bar has no length.
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": (high - value).fillna(0).round(2).tolist(),
                    "arrayminus": (value - low).fillna(0).round(2).tolist(),
                    "thickness": 1,
                    "width": 3,
                },
                customdata=list(zip((100 * own[across].astype(float)).round(1), own[n], strict=True)),
                hovertemplate="%{customdata[0]} %: %{y:.1f} %, n = %{customdata[1]}"
                "<extra>%{fullData.name}</extra>",
            )
        )
    figure.update_xaxes(title=titles[0], range=[-3, 103])
    figure.update_yaxes(title=titles[1], range=[-3, 103])
    return figure


def _points_table(id: str, title: str, note: str, rows: pd.DataFrame, tables: Tables) -> TableBlock:
    """Return the points of a curve that is drawn: those of the leading cells on the page, all to download."""
    shown, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    columns = [
        *(*_CELL, "confidence", "threshold", "coverage", "mean_confidence", "n_items", "n_kept"),
        *("accuracy", "accuracy_low", "accuracy_high", "risk", "risk_low", "risk_high", "interval_reason"),
    ]
    return plain_table(id, title, note, shown, columns, rows)


def selective_section(tables: Tables) -> Section:
    """Return the section on judging selectively."""
    lead = (
        "Where the judge may pass pairs on to people: a threshold with a guaranteed error among kept "
        "verdicts."
    )
    frame = some(tables, "selective_table")
    if frame is None:
        what = "It takes verdicts with a confidence or repetitions, and references:"
        return Section("selective", "Selective judging", lead, [Missing(what, _JUDGE)])
    whole = frame[frame["slice_by"] == "all"]
    note = "Threshold chosen on one half of the base tasks, tried on the other; by slice in the download."
    table = plain_table("selective-table", "Thresholds with a guarantee", note, whole, exact=frame)
    figure = draw_risk(tables)
    if figure is None:
        return Section("selective", "Selective judging", lead, [table])
    _, more = leading(whole, tables["trust_table"], MOST_CELLS)
    rule = (
        "Errors among the kept pairs as fewer are kept, the most confident first; a line that stays flat "
        "says that the confidence is of no use. 95 % intervals by base task, each for its own point; "
        f"guarantees are in the table of thresholds. {more}"
    )
    alternative = "Lines of the error rate among kept pairs by the share kept, with intervals."
    title = "How wrong are the verdicts that it is surest of?"
    curve = tables["risk_coverage"]
    note = "Coverage: share of pairs kept. Risk: wrong among the kept, from 0 to 1. By slice in the download."
    points = _points_table("risk-points", "Risk by coverage", note, curve[curve["slice_by"] == "all"], tables)
    points = replace(points, exact=curve)
    drawn = figure_block("risk-figure", title, rule, alternative, figure, points)
    return Section("selective", "Selective judging", lead, [drawn, table])


def confidence_section(tables: Tables) -> Section:
    """Return the section on confidence."""
    lead = "Confidence is judged apart: a sure judge is not a right one. It never enters T."
    frame = some(tables, "confidence_table")
    figure = draw_reliability(tables)
    if frame is None:
        what = "No judge here stated a confidence, gave log-probabilities or was repeated:"
        return Section("confidence", "Confidence", lead, [Missing(what, _JUDGE)])
    known = frame[frame["value"].notna()]
    columns = [
        *("source", "judge_id", "protocol", "constraint", "temperature", "confidence", "statistic"),
        *("value", "low", "high", "expected_if_calibrated", "n_items", "reason", "interval_reason"),
    ]
    note = (
        "Stated confidence, log-probability and repeat agreement side by side; those that no judge gave "
        "are in the download, with the reason. The calibration error is biased upwards: read it beside "
        "the one expected of a calibrated judge."
    )
    shown = known if len(known) else frame
    table = plain_table("confidence-table", "Calibration", note, shown, columns, frame)
    if figure is None:
        return Section("confidence", "Confidence", lead, [table])
    _, more = leading(frame, tables["trust_table"], MOST_CELLS)
    rule = (
        "Right as often as confident: on the dotted line. One mark a bin, with the 95 % interval of its "
        f"share right by base task. {more}"
    )
    alternative = "Share right by confidence for the leading cells, with intervals."
    title = "Is it right as often as it is sure?"
    curves = tables["confidence_curves"]
    bins = curves[(curves["curve"] == "reliability") & (curves["n_items"] > 0)]
    note = "One row a bin of confidence; accuracy: share right, from 0 to 1. Risk curves in the download."
    points = replace(
        _points_table("reliability-points", "Right by confidence", note, bins, tables), exact=curves
    )
    drawn = figure_block("reliability-figure", title, rule, alternative, figure, points)
    return Section("confidence", "Confidence", lead, [drawn, table])
