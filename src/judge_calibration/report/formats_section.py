"""Formats, paradigms, temperature: how far the numbers move when only the way of asking changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from judge_calibration.report.blocks import Block, Missing, Section
from judge_calibration.report.dots import Dot, dot_plot, dots_of
from judge_calibration.report.figures import PALETTE, SYMBOLS, blank, interval_bars
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, plain_table, some
from judge_calibration.report.wording import cell_name, is_missing, source_name

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CELLS = 12
_AUDIT = "kedro run --env audit"
_FOLLOWED = {"C": "C (repeats itself)", "PR": "A - phi q (right in both orders)"}


def _judge(row: dict[str, object], several: bool) -> str:
    parts = [str(row["judge_id"]), "constrained" if row.get("constrained") else "free text"]
    temperature = row.get("temperature")
    parts.append("own temperature" if is_missing(temperature) else f"t = {float(str(temperature)):g}")
    return ", ".join(parts + ([f"on {source_name(row['source'])}"] if several else []))


def draw_formats(tables: Tables) -> go.Figure | None:
    """Draw each judge's range of T over formats, beside the range that equal formats would show."""
    frame = some(tables, "format_dispersion")
    if frame is None or not frame["dispersion"].notna().any():
        return None
    several = len(set(frame["source"])) > 1
    dots = []
    for row in frame.head(MOST_CELLS).to_dict("records"):
        if is_missing(row["dispersion"]):
            continue
        line = _judge({str(k): v for k, v in row.items()}, several)
        low, high = (None if is_missing(row[end]) else float(row[end]) for end in ("low", "high"))
        dots.append(Dot(line, "observed range", float(row["dispersion"]), low, high, int(row["n_pairs"])))
        if not is_missing(row["null_mean"]):
            null = float(row["null_mean"])
            top = None if is_missing(row["null_high"]) else float(row["null_high"])
            dots.append(
                Dot(line, "if formats were equal (mean to 95 %)", null, null, top, int(row["n_pairs"]))
            )
    return dot_plot(dots, "highest less lowest T over formats (points)", reference=0.0)


def draw_paradigms(tables: Tables) -> go.Figure | None:
    """Draw T of each paradigm as it is, and at equal calls."""
    frame = some(tables, "paradigms")
    if frame is None:
        return None
    rows, _ = leading(frame, tables["trust_table"], MOST_CELLS)
    names = labelled(rows)
    n = "n_pairs" if "n_pairs" in rows.columns else ""
    ends = ("T_direct", "T_direct_low", "T_direct_high")
    dots = dots_of(rows, names, ["T, one verdict"] * len(rows), *ends, n)
    ends = tuple(f"trustworthy_at_equal_calls{end}" for end in ("", "_low", "_high"))  # type: ignore[assignment]
    dots += dots_of(rows, names, ["right in both orders, at equal calls"] * len(rows), *ends, n)
    return dot_plot(dots, "share (%)", span=(-0.03, 1.03)) if dots else None


def draw_temperature(tables: Tables) -> go.Figure | None:
    """Draw C and A - phi q by temperature, one line a judge and prompt; None below two temperatures."""
    import plotly.graph_objects as go

    frame = some(tables, "temperature_table")
    if frame is None:
        return None
    rows = frame[frame["statistic"].isin(_FOLLOWED) & frame["value"].notna()]
    several = len(set(rows["source"])) > 1
    names = [cell_name(row, with_source=several, with_temperature=False) for row in rows.to_dict("records")]
    rows = rows.assign(cell=names)
    chosen = list(dict.fromkeys(names))[:MOST_CELLS]
    if len(set(rows["temperature"].dropna())) < 2:
        return None
    figure = blank(360 + 22 * len(chosen) * 2, legend_below=True)
    for number, cell in enumerate(chosen):
        for statistic, title in _FOLLOWED.items():
            own = rows[(rows["cell"] == cell) & (rows["statistic"] == statistic)].sort_values("temperature")
            figure.add_trace(
                go.Scatter(
                    x=own["temperature"].tolist(),
                    y=(100 * own["value"].astype(float)).round(2).tolist(),
                    mode="lines+markers",
                    name=f"{cell}: {title}",
                    line={
                        "color": PALETTE[number % len(PALETTE)],
                        "dash": "solid" if statistic == "C" else "dot",
                    },
                    marker={"symbol": SYMBOLS[number % len(SYMBOLS)], "size": 9},
                    error_y=interval_bars(own, "value", "low", "high"),
                    hovertemplate="t = %{x}: %{y:.1f} %<extra>%{fullData.name}</extra>",
                )
            )
    figure.update_xaxes(title="temperature")
    figure.update_yaxes(title="share (%)", range=[-3, 103])
    return figure


def formats_section(tables: Tables) -> Section:
    """Return the section on prompt formats."""
    lead = "How far T moves when only the prompt format changes, beside the movement that chance alone gives."
    frame = some(tables, "format_dispersion")
    figure = draw_formats(tables)
    if frame is None or figure is None:
        what = "It takes several prompt formats of one judge on the same pairs:"
        missing: list[Block] = [Missing(what, _AUDIT)]
        return Section("formats", "Formats", lead, missing)
    table = plain_table("format-dispersion", "Format dispersion", "Lowest and highest by name.", frame)
    more = f"The first {MOST_CELLS} of {len(frame)} rows." if len(frame) > MOST_CELLS else ""
    rule = (
        "Highest less lowest T; a range is above 0 by chance, so read it beside the null (formats exchanged "
        f"within pair). p: share of exchanges with at least this range. {more}"
    )
    alternative = "For each judge the observed range with its interval, and the null's mean and 95 % point."
    title = "Does the prompt format move trust more than chance?"
    blocks: list[Block] = [figure_block("formats-figure", title, rule, alternative, figure, table)]
    return Section("formats", "Formats", lead, blocks)


def paradigms_section(tables: Tables) -> Section:
    """Return the section on paradigms at equal calls."""
    lead = "Asking once, per criterion, or by a checklist: what each gives, and at the same number of calls."
    frame = some(tables, "paradigms")
    blocks: list[Block] = []
    figure = draw_paradigms(tables)
    if frame is None:
        what = (
            "It takes two of the paradigms direct, geval and flask for one judge; name them in "
            "judging.judges:"
        )
        blocks.append(Missing(what, "kedro run --pipelines judging,reporting"))
    else:
        note = "T per call is a plain quotient without an interval: rank by T at equal calls."
        table = plain_table("paradigms-table", "Paradigms", note, frame)
        if figure is None:
            blocks.append(table)
        else:
            rule = (
                "At equal calls the cheaper paradigm repeats and votes as often as the dearer one's calls"
                " pay."
            )
            alternative = "For each paradigm T of one verdict, and the share right at equal calls."
            title = "Which paradigm gives more for the same calls?"
            blocks.append(figure_block("paradigms-figure", title, rule, alternative, figure, table))
    spread = some(tables, "trust_spread")
    if spread is not None:
        note = (
            "Each judge's T (by product) over its formats and sources. These are plain ranges of estimates, "
            "without an interval: the dispersion above has one."
        )
        blocks.append(plain_table("trust-spread", "Spread of T (no interval)", note, spread))
    return Section("paradigms", "Paradigms at equal calls", lead, blocks)


def temperature_section(tables: Tables) -> Section:
    """Return the section on temperature."""
    lead = "What repeats less at a higher temperature, and whether being right in both orders moves with it."
    frame = some(tables, "temperature_table")
    figure = draw_temperature(tables)
    if frame is None or figure is None:
        what = "It takes a judge at two temperatures or more (temperatures, in judging.judges):"
        return Section("temperature", "Temperature", lead, [Missing(what, _AUDIT)])
    note = "change: from the lowest temperature, paired, with its interval."
    table = plain_table("temperature-table", "By temperature", note, frame)
    rule = "Solid: C. Dotted: A - phi q. Bars are 95 % intervals."
    alternative = "Lines of C and A - phi q by temperature for each judge and prompt."
    title = "What does the temperature change?"
    blocks: list[Block] = [figure_block("temperature-figure", title, rule, alternative, figure, table)]
    looks = some(tables, "repetition_looks")
    if looks is not None:
        note = "Each look at a cell: it stopped asking once its C2 was known well enough."
        blocks.append(plain_table("repetition-looks", "Repetitions that were spared", note, looks))
    return Section("temperature", "Temperature", lead, blocks)


def comparisons_section(tables: Tables) -> Section:
    """Return the section on paired differences between the cells of each judge."""
    lead = "Two cells on the pairs that both judged, resampled together; no ranking by one number."
    frame = some(tables, "paired_differences")
    if frame is None:
        what = (
            "It takes two prompts or temperatures of one judge (reporting.comparisons.within says of what):"
        )
        return Section("comparisons", "Cells compared pair by pair", lead, [Missing(what, _AUDIT)])
    rows = frame[(frame["slice_by"] == "all") & frame["metric"].isin(["T_direct", "PR"])]
    rows = rows[rows["difference"].notna()]
    by_trust = rows[rows["metric"] == ("T_direct" if (rows["metric"] == "T_direct").any() else "PR")]
    shown = by_trust.head(MOST_CELLS)
    note = "First less second; adjusted p by Holm. By manipulation and difficulty in the download."
    table = plain_table("differences-table", "Paired differences", note, _named(rows), exact=frame)
    if shown.empty:
        return Section("comparisons", "Cells compared pair by pair", lead, [table])
    lines = [
        f"{first} less {second}" for first, second in zip(_names(shown, 1), _names(shown, 2), strict=True)
    ]
    figure = dot_plot(
        dots_of(shown, lines, ["difference"] * len(shown), "difference"), "difference (points)", reference=0.0
    )
    what = "T" if (rows["metric"] == "T_direct").any() else "being right in both orders"
    more = f"The first {len(shown)} of {len(by_trust)} comparisons." if len(by_trust) > len(shown) else ""
    rule = f"Difference in {what}, first less second; an interval that holds 0 settles nothing. {more}"
    alternative = "For each two cells the difference with its interval; the values are in the table."
    title = f"Which of two cells has more {what if what == 'T' else 'pairs right in both orders'}?"
    return Section(
        "comparisons",
        "Cells compared pair by pair",
        lead,
        [figure_block("differences-figure", title, rule, alternative, figure, table)],
    )


def _names(frame: pd.DataFrame, side: int) -> list[str]:
    columns = ("judge_id", "protocol", "constraint", "temperature")
    own = frame[["source", *(f"{name}_{side}" for name in columns)]]
    return labelled(own.rename(columns={f"{name}_{side}": name for name in columns}))


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    columns = ["metric", "value_1", "value_2", "difference", "low", "high", "adjusted_p", "n_pairs"]
    named = frame[["source", *columns, "n_clusters", "reason"]].copy()
    named.insert(1, "first", _names(frame, 1))
    named.insert(2, "second", _names(frame, 2))
    return named
