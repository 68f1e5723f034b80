"""The sections of the report, each made from result tables; a section without data says what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from judge_calibration.options.reporting import RegionOptions
from judge_calibration.report import figures
from judge_calibration.report.answers import Answer, answer_for
from judge_calibration.report.blocks import Block, FigureBlock, Missing, Prose, Section, TableBlock
from judge_calibration.report.shortening import shortened
from judge_calibration.report.wording import (
    against_name,
    cell_name,
    is_missing,
    percent,
    reason_text,
    share_with_interval,
    slice_name,
    source_name,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

CELL = ["source", "judge_id", "protocol", "constraint", "temperature", "instrument_id"]
MOST_DRAWN = 24
JUDGE_COMMAND = "kedro run --pipeline judging"

_HEADLINES = {
    "C": "C (repeats itself)",
    "phi": "phi (flips with order)",
    "A": "A (right)",
    "A_max": "Ceiling of A",
    "T_direct": "T (trustworthy)",
}
_FURTHER = {
    "T_product": "T by product",
    "T_pair": "T by pair",
    "C2": "C2 (two repetitions agree)",
    "order_excess": "Order excess",
    "A_dec": "A where orders agree",
    "q": "Right where they differ (q)",
    "gap": "Capability gap",
    "PR": "Right in both orders",
    "first_share": "Picks the first",
}


def whole_rows(trust: pd.DataFrame, view: str = "strict") -> pd.DataFrame:
    """Return the rows of one view for the whole: one a cell and source, pooled rows left out."""
    return trust[(trust["view"] == view) & (trust["slice_by"] == "all")]


def decisive_rows(trust: pd.DataFrame) -> pd.DataFrame:
    """Return the rows over pairs with a decisive reference, strict view: where T = C (A - phi q) holds.

    Without the slices by reference (a parameter), the rows of the whole.
    """
    rows = trust[
        (trust["view"] == "strict") & (trust["slice_by"] == "reference") & (trust["slice"] == "decisive")
    ]
    return rows if len(rows) else whole_rows(trust)


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def _lines(text: str) -> str:
    # The interval on a line of its own keeps columns narrow.
    return text.replace(" (", "\n(")


def cell_labels(rows: pd.DataFrame) -> list[str]:
    """Name cells, with their source only where sources differ."""
    several = len(set(rows["source"].dropna())) > 1
    return [cell_name(row, with_source=several) for row in _records(rows)]


def answers(trust: pd.DataFrame, outcomes: pd.DataFrame, regions: RegionOptions) -> list[Answer]:
    """Word the answer for every cell, the most trustworthy first."""
    found = []
    rows = whole_rows(trust)
    for row, label in zip(_records(rows), cell_labels(rows), strict=True):
        counts = _outcome_counts(outcomes, row)
        answer = answer_for(row, counts, regions, _decisive_pairs(trust, row))
        rank = tuple(-1.0 if is_missing(row[name]) else float(row[name]) for name in ("T_direct", "PR"))
        found.append((rank, Answer(label, answer.headline, answer.details, answer.tone, answer.trust)))
    # Where trust is undefined for lack of repetitions, being right in both orders ranks.
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _same_cell(frame: pd.DataFrame, row: Mapping[str, Any]) -> pd.Series:
    keep = pd.Series(True, index=frame.index)
    for name in CELL:
        value = row.get(name)
        keep &= frame[name].isna() if is_missing(value) else frame[name] == value
    return keep


def _decisive_pairs(trust: pd.DataFrame, row: Mapping[str, Any]) -> int | None:
    part = trust[
        (trust["slice_by"] == "reference") & (trust["slice"] == "decisive") & (trust["view"] == "strict")
    ]
    found = part[_same_cell(part, row)]
    return int(found["n_pairs"].iloc[0]) if len(found) else None


def _outcome_counts(outcomes: pd.DataFrame, row: Mapping[str, Any]) -> dict[str, int]:
    part = outcomes[_same_cell(outcomes, row) & (outcomes["kind"] == "outcome")]
    return {str(k): int(v) for k, v in zip(part["name"], part["count"], strict=True)}


def _as_json(figure: go.Figure) -> str:
    return str(figure.to_json(engine="json"))


def trust_section(trust: pd.DataFrame, regions: RegionOptions) -> Section:
    """Trust in numbers: the table with intervals, the (C, phi) plane, the ceiling plot."""
    rows = whole_rows(trust)
    if rows.empty:
        return Section(
            "trust", "Trust", "", [Missing("There are no verdicts yet. They come with", JUDGE_COMMAND)]
        )
    records = _records(rows)
    labels = cell_labels(rows)
    base = {"Cell": labels, "Pairs": rows["n_pairs"].tolist(), "Base tasks": rows["n_clusters"].tolist()}

    def shown(metrics: Mapping[str, str]) -> pd.DataFrame:
        return pd.DataFrame(
            base
            | {
                title: [_lines(share_with_interval(row, name)) for row in records]
                for name, title in metrics.items()
            }
        )

    main_shown, more = shortened(shown(_HEADLINES).assign(Repetitions=rows["repetitions"].tolist()))
    main = TableBlock(
        "trust-table",
        "Trust by cell, strict view",
        "In brackets: 95 % interval, base tasks resampled. A failed judgment counts as not repeated, not "
        f"order-proof and not right. C falls as repetitions rise: read it with their number. {more}".strip(),
        main_shown,
        rows,
    )
    further = TableBlock(
        "trust-further",
        "The parts behind it",
        "C2: chance that two repetitions agree. Order excess: how much more often two reads differ when "
        "their orders differ. q: share right among pairs whose orders disagree.",
        shortened(shown(_FURTHER))[0],
        rows,
    )
    views = _views_table(trust)
    simulated = bool(rows.get("simulated", pd.Series(False, index=rows.index)).any())
    plane = FigureBlock(
        "trust-plane",
        "Where each cell stands: does it repeat itself, does it flip with the order?",
        f"Regions end at C = {percent(regions.min_consistency, 0)} and "
        f"phi = {percent(regions.max_flip_rate, 0)} (parameters). Bars are 95 % intervals; where there are "
        "none, too few base tasks allow one.",
        "Scatter of cells by C and phi; the values are in the table Trust by cell.",
        _as_json(figures.trust_plane(rows, regions)),
        TableBlock(
            "trust-plane-table",
            "C and phi",
            "",
            shortened(shown({k: _HEADLINES[k] for k in ("C", "phi")}))[0],
            rows,
        ),
        simulated,
    )
    iso = _iso_trust(trust, simulated)
    ceiling = FigureBlock(
        "trust-ceiling",
        "What is right, what is trustworthy, and what the order flips leave possible",
        "The ceiling is the accuracy that a judge with these order flips cannot exceed: 1 - phi (1 - q)."
        + (f" The first {MOST_DRAWN} of {len(rows)} cells." if len(rows) > MOST_DRAWN else ""),
        "For each cell T, A and the ceiling of A; the values are in the table Trust by cell.",
        _as_json(figures.ceiling(rows.head(MOST_DRAWN))),
        TableBlock(
            "trust-ceiling-table",
            "T, A and ceiling",
            "",
            shortened(shown({k: _HEADLINES[k] for k in ("T_direct", "A", "A_max")}))[0],
            rows,
        ),
        simulated,
    )
    lead = "A verdict is trustworthy when it is repeated, survives swapping the answers, and is right."
    drawn: list[Block] = [plane, *iso]
    if not (rows["C"].notna() & rows["phi"].notna()).any():
        what = (
            "Where each cell stands between repeating itself and flipping with the order: that takes two "
            "repetitions and both orders of each pair (repetitions, in judging.judges):"
        )
        drawn = [Missing(what, JUDGE_COMMAND), *iso]
    return Section("trust", "Trust", lead, [main, *drawn, ceiling, further, *views])


def _iso_trust(trust: pd.DataFrame, simulated: bool) -> list[FigureBlock]:
    rows = decisive_rows(trust)
    rows = rows[rows["C"].notna() & rows["PR"].notna()]
    if rows.empty:
        return []
    titles = {
        "C": "C (repeats itself)",
        "PR": "A - phi q (right in both orders)",
        "T_product": "T by product",
    }
    records = _records(rows)
    shown = pd.DataFrame(
        {"Cell": cell_labels(rows), "Pairs": rows["n_pairs"].tolist()}
        | {
            title: [_lines(share_with_interval(row, name)) for row in records]
            for name, title in titles.items()
        }
    )
    shown, more = shortened(shown)
    note = (
        "On a dotted line the product of both, T, is the same: a judge further right gains nothing if it "
        "stands as much lower. Pairs with a decisive reference only."
    )
    return [
        FigureBlock(
            "iso-trust",
            "Which half of trust is missing: repeating itself, or being right in both orders?",
            note,
            "Scatter of cells by C and A - phi q with curves of equal T; the values are in its table.",
            _as_json(figures.iso_trust(rows)),
            TableBlock("iso-trust-table", "C, A - phi q and T", more, shown, rows),
            simulated,
        )
    ]


def _views_table(trust: pd.DataFrame) -> list[TableBlock]:
    rows = trust[trust["slice_by"] == "all"]
    wide = rows.assign(cell=cell_labels(rows)).pivot_table(
        index="cell", columns="view", values="A", aggfunc="first", sort=False, dropna=False
    )
    if wide.shape[1] < 2:
        return []
    titles = {
        "strict": "Strict",
        "resolved": "Resolved",
        "policy": "Policy",
        "failures_wrong": "All failures wrong",
        "failures_right": "All failures right",
    }
    wide = wide[[name for name in titles if name in wide.columns]]
    words = {
        (label, row["view"]): _lines(share_with_interval(row, "A"))
        for row, label in zip(_records(rows), cell_labels(rows), strict=True)
    }
    shown = pd.DataFrame(
        {"Cell": wide.index}
        | {titles[str(n)]: [words.get((cell, n), "–") for cell in wide.index] for n in wide.columns}
    )
    note = (
        "A under each way to count failed, tied and abstained judgments, and between the two bounds. "
        "Resolved leaves out pairs with a failure; policy leaves ties and failures to people."
    )
    return [TableBlock("trust-views", "How far failures matter", note, shown, rows)]


_NOTED = ("fewer_than_10_clusters",)
"""Why slices have no interval, as the note of their tables says."""


def slices_section(trust: pd.DataFrame) -> Section:
    """Trust by slice: domain, difficulty, manipulation and whatever else the pairs carry."""
    rows = trust[(trust["view"] == "strict") & (trust["slice_by"] != "all")]
    if rows.empty:
        return Section(
            "slices", "By slice", "", [Missing("There are no slices yet. They come with", JUDGE_COMMAND)]
        )
    blocks: list[TableBlock] = []
    for by, part in rows.groupby("slice_by", sort=False):
        labels = cell_labels(part)
        frame = pd.DataFrame(
            {
                "Cell": labels,
                "Slice": [slice_name(by, name) for name in part["slice"]],
                "Pairs": part["n_pairs"].tolist(),
                **{
                    title: [_lines(share_with_interval(row, name, _NOTED)) for row in _records(part)]
                    for name, title in {
                        "C": "C",
                        "phi": "phi",
                        "A": "A",
                        "T_direct": "T",
                        "first_share": "Picks the first",
                    }.items()
                },
            }
        )
        title = f"By {str(by).replace('*', ' x ').replace('_', ' ')}"
        frame, more = shortened(frame)
        note = f"Slices under 10 base tasks have no interval. {more}".strip()
        blocks.append(TableBlock(f"slice-{len(blocks)}", title, note, frame, part))
    return Section(
        "slices", "By slice", "A judge may be right in one kind of pair and useless in another.", blocks
    )


def outcome_shares(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the outcomes that happened, one row a cell and outcome: cell, name, n, share."""
    frame = outcomes[(outcomes["kind"] == "outcome") & (outcomes["count"] > 0)]
    return frame.assign(cell=cell_labels(frame)).rename(columns={"count": "n"})


def table_section(
    id: str, title: str, lead: str, frame: pd.DataFrame | None, note: str, missing: Missing
) -> Section:
    """A section that holds one result table as it is, or says what is missing."""
    if frame is None or frame.empty:
        return Section(id, title, lead, [missing])
    return Section(id, title, lead, [TableBlock(f"{id}-table", title, note, readable(frame), frame)])


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a result table as text cells: cells named in one column, shares rounded, nulls as a dash."""
    out = frame.copy()
    if {"judge_id", "protocol", "temperature"} <= set(out.columns):
        out.insert(0, "Cell", cell_labels(out.assign(source=out.get("source", ""))))
        drop = [
            c
            for c in ("judge_id", "protocol", "constraint", "temperature", "instrument_id")
            if c in out.columns
        ]
        if "source" in out.columns and len(set(out["source"].dropna())) <= 1:
            drop.append("source")
        out = out.drop(columns=drop)
    out = _with_intervals(out)
    drop = [
        name
        for name, nothing in _SAY_NOTHING.items()
        if name in out.columns and len(said := set(out[name].fillna("").astype(str))) <= 1 and said <= nothing
    ]
    out = out.drop(columns=drop)
    text = {}
    for name in out.columns:
        values = out[name]
        title = column_title(str(name))
        if pd.api.types.is_bool_dtype(values.dtype):
            text[title] = ["–" if pd.isna(v) else "yes" if v else "no" for v in values.tolist()]
        elif pd.api.types.is_float_dtype(values.dtype):
            text[title] = ["–" if is_missing(v) else f"{v:.4g}" for v in values.tolist()]
        else:
            shown = ["–" if pd.isna(v) or v == "" else str(v) for v in values.tolist()]
            text[title] = _in_words(str(name), shown, out)
    return pd.DataFrame(text)


def _in_words(name: str, values: list[str], frame: pd.DataFrame) -> list[str]:
    """Return the cells of a text column as a reader would say them; names that people gave stay as given."""
    if name == "slice":
        by = frame["slice_by"].tolist() if "slice_by" in frame.columns else [""] * len(values)
        return [slice_name(*both) for both in zip(by, values, strict=True)]
    say = _SAID.get(name)
    return values if say is None else [say(value) for value in values]


def _with_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Write low and high into the column that they belong to, and leave them out."""
    out = frame.copy()
    for name in frame.columns:
        main = str(name)
        ends = (f"{main}_low", f"{main}_high")
        if main in ("value", "difference"):
            ends = ("low", "high")
        if not set(ends) <= set(out.columns) or not pd.api.types.is_numeric_dtype(frame[name].dtype):
            continue
        cells = []
        for value, low, high in zip(frame[name], frame[ends[0]], frame[ends[1]], strict=True):
            text = "–" if is_missing(value) else f"{float(value):.3g}"
            if not (is_missing(value) or is_missing(low) or is_missing(high)):
                text += f"\n({float(low):.3g} to {float(high):.3g})"
            cells.append(text)
        out[name] = pd.Series(cells, index=out.index, dtype="object")
        out = out.drop(columns=list(ends))
    return out


_SAY_NOTHING = {
    "slice_by": {"", "all"},
    "slice": {"", "all"},
    "mark": {"", "SIMULATED"},
    "simulated": {"", "False", "True"},
    "method": {"", "percentile"},
}
"""What a column may say in all its rows without telling anything: a slice by name stays, the whole goes."""

_TITLES = {
    "n": "n",
    "n_pairs": "Pairs",
    "n_clusters": "Base tasks",
    "n_verdicts": "Verdicts",
    "n_missing": "Missing",
    "n_cells": "Cells",
    "n_labelled": "Labelled pairs",
    "n_items": "Judgments",
    "n_kept": "Kept",
    "judge_id": "Judge",
    "n_tasks": "Base tasks",
    "ac1": "Gwet's AC1",
    "kappa": "Cohen's kappa",
    "alpha": "Krippendorff's alpha",
    "adjusted_p": "Adjusted p",
    "jackknife_se": "Standard error (jackknife)",
    "low": "From",
    "high": "To",
    "omega2": "omega²",
    "eta2": "eta²",
    "df": "Degrees of freedom",
}


def column_title(name: str) -> str:
    """Return a column's name in words.

    Examples
    --------
    >>> column_title("n_clusters"), column_title("null_mean"), column_title("T_direct")
    ('Base tasks', 'Null mean', 'T direct')
    """
    words = _TITLES.get(name, name.replace("_", " "))
    return words if words in ("n", "p", "q", "phi", "eta²", "omega²") else words[:1].upper() + words[1:]


_SAID: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(
        (
            *("criterion", "status", "comparison", "statistic", "outcome", "manipulation", "reason"),
            *("undefined", "interval_reason", "verified_reason", "region", "remedy", "chance_undefined"),
            *("method", "confidence", "check", "quantity", "reference_kind", "kind", "slice_by", "estimand"),
            *("calibration_set", "judged_set", "metric", "name", "domain", "stakes"),
        ),
        reason_text,
    ),
    "against": against_name,
    "source": source_name,
    "component": lambda name: name.replace(":", " x "),
}
"""How the codes of a column are said."""


def instrument_section(instruments: Mapping[str, Mapping[str, Any]]) -> Section:
    """Which instruments gave the verdicts: everything whose change makes another instrument."""
    if not instruments:
        what = "The verdicts were made elsewhere: their instruments are not on record. To judge here:"
        return Section("instrument", "Instruments", "", [Missing(what, JUDGE_COMMAND)])
    rows = []
    for instrument_id, content in instruments.items():
        parts = content.get("identity", content)
        for name, value in sorted(parts.items()):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
            rows.append({"Instrument": instrument_id[:12], "Part": name.replace("_", " "), "Value": text})
        for name, title in (("judge_ids", "used by"), ("not_frozen", "not frozen because")):
            if content.get(name):
                rows.append(
                    {"Instrument": instrument_id[:12], "Part": title, "Value": ", ".join(content[name])}
                )
    frame = pd.DataFrame(rows)
    lead = (
        "An instrument is everything that makes a verdict: change one part and it is another instrument, "
        "whose numbers have to be measured again."
    )
    full = {instrument_id[:12]: instrument_id for instrument_id in instruments}
    exact = frame.assign(Instrument=frame["Instrument"].map(full))
    blocks = [TableBlock("instrument-table", "Identity", "The id is the SHA-256 of all parts.", frame, exact)]
    return Section("instrument", "Instruments", lead, blocks)


def limits_section(lines: tuple[str, ...]) -> Section:
    """What this page cannot say."""
    return Section("limits", "Limits", "", [Prose(lines)])


LIMITS = (
    "People's agreement is a reference, not the truth; constructed references are right by construction "
    "only for the fact that was changed.",
    "Controlled changes say what caused a flip; they do not show every way in which style, length and "
    "correctness meet in real answers.",
    "Numbers hold for this mixture of tasks. Another product's questions are another mixture.",
    "Hosted models change, and settings that should be deterministic may still vary. The instrument and its "
    "dates belong to every number.",
    "Intervals say how far the drawn tasks may mislead. They do not mend a biased set of "
    "tasks, labels or judges.",
    "A public set of pairs may be known to a model. Keep a private sentinel set.",
    "Agreement on attributes is conditional on both judges resolving them, and single reads do not share it.",
)
