"""A judge beside people: agreement with its ceiling, confusion matrices, win rates of both together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pandas as pd

from judge_calibration.report.blocks import Block, Missing, Section, marked_block
from judge_calibration.report.dots import dot_plot, dots_of, grid_of, grids
from judge_calibration.report.result_tables import Tables, figure_block, labelled, leading, plain_table, some
from judge_calibration.report.share_tables import share_block
from judge_calibration.report.wording import against_name, reason_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_PANELS = 4
MOST_CELLS = 8
_LEAD = "A judge is read beside people: how often it agrees with a reference, and how often people agree."
_STATISTICS = {
    "raw": "Raw agreement",
    "kappa": "Cohen's kappa",
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha",
}
_COMPARISONS = {
    "annotator_annotator": "People, two annotators",
    "annotator_adjudicated": "People, annotator with adjudicated",
    "annotator_dawid_skene": "People, annotator with Dawid-Skene",
}
_ORDER = ("A", "B", "TIE", "ABSTAIN", "failed")


def draw_agreement(tables: Tables) -> go.Figure | None:
    """Draw raw agreement of each cell with each kind of reference, and of people with people."""
    frame = some(tables, "agreement_table")
    if frame is None:
        return None
    rows = _whole(frame)
    rows = rows[(rows["statistic"] == "raw") & rows["judge_id"].notna()]
    rows = rows[~rows["against"].fillna("").str.startswith("annotator:")]
    rows, _ = leading(rows, tables["trust_table"], MOST_CELLS)
    series = [against_name(name) for name in rows["against"].fillna("?")]
    dots = dots_of(rows, labelled(rows), series)
    people = some(tables, "human_ceiling")
    if people is not None:
        raw = people[people["slice_by"] == "all"]
        lines = [_COMPARISONS.get(str(name), str(name).replace("_", " ")) for name in raw["comparison"]]
        dots += dots_of(raw, lines, [f"people with people ({kind} labels)" for kind in raw["kind"]], n="n")
    return dot_plot(dots, "same label (%)", span=(-0.03, 1.03)) if dots else None


def draw_confusion(tables: Tables) -> go.Figure | None:
    """Draw what each cell says where the reference says A, B or TIE."""
    frame = some(tables, "confusion_table")
    if frame is None:
        return None
    rows = frame[(frame["slice_by"] == "all") & frame["judge_id"].notna()]
    # One annotator's labels are few: they are in the numbers, the picture has what all of them say.
    rows = rows[~rows["against"].fillna("").str.startswith("annotator:")]
    rows, _ = leading(rows, tables["trust_table"], MOST_PANELS)
    rows = rows.assign(
        share=rows["row_percent"].astype(float) / 100,
        row="reference " + rows["row_label"].astype(str),
        column="judge " + rows["column_label"].astype(str),
        row_rank=rows["row_label"].map({name: i for i, name in enumerate(_ORDER)}).fillna(9),
        rank=rows["column_label"].map({name: i for i, name in enumerate(_ORDER)}).fillna(9),
    )
    rows = rows.assign(cell=labelled(rows))
    # Two of what a cell is held beside are enough for a picture; the numbers have all.
    told = {cell: _most_telling(part["against"].unique()) for cell, part in rows.groupby("cell")}
    rows = rows[[name in told[cell] for cell, name in zip(rows["cell"], rows["against"], strict=True)]]
    panel = ["cell", "against"]
    used = rows.groupby([*panel, "row"])["count"].transform("sum") > 0
    rows = rows[used & (rows.groupby([*panel, "column"])["count"].transform("sum") > 0)]
    panels = []
    for (name, against), part in rows.groupby(panel, sort=False):
        ordered = part.sort_values(["row_rank", "rank"], kind="stable")
        title = f"{name}; against: {against_name(str(against))}"
        panels.append(grid_of(ordered, title, "row", "column", "share", "count"))
    return grids(panels, counts_only=True) if panels else None


def _most_telling(against: Collection[str]) -> list[str]:
    """Return what a judge's confusions are drawn against: settled labels and a reference before others.

    Examples
    --------
    >>> _most_telling(["all annotators", "dawid_skene", "reference:constructed", "adjudicated"])
    ['adjudicated', 'reference:constructed']
    """
    ranks = {"adjudicated": 0, "all annotators": 2, "dawid_skene": 3}
    return sorted(against, key=lambda name: (ranks.get(name, 1), name))[:2]


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["slice_by"] == "all") & (frame["view"].fillna("strict") == "strict")]


def people_section(tables: Tables) -> Section:
    """Return the section."""
    blocks: list[Block] = []
    frame = some(tables, "agreement_table")
    if frame is not None:
        trust = tables["trust_table"]
        whole = _whole(frame)
        found = {name: title for name, title in _STATISTICS.items() if name in set(whole["statistic"])}
        extra = tuple(name for name in ("comparison", "against") if name in whole.columns)
        note = (
            "Against each kind of reference apart: human, AI-made, benchmark, constructed. Values are "
            "shares or coefficients, not percentages. Each label by itself, and slices, in the download."
        )
        table = share_block("agreement-table", "Agreement", note, whole, found, extra, share=False)
        figure = draw_agreement(tables)
        if figure is not None:
            _, more = leading(whole[whole["judge_id"].notna()], trust, MOST_CELLS)
            rule = (
                "Share of judgments with the reference's label, strict view, ties included; against single "
                f"annotators in the numbers. {more}"
            )
            alternative = "Raw agreement of each cell with its interval, and of people where they labelled."
            title = "How often does the judge say what the reference says?"
            blocks.append(figure_block("agreement-figure", title, rule, alternative, figure, table))
        else:
            blocks.append(table)
    for name, title, note in (
        (
            "human_agreement",
            "People with people",
            "By kind of label: human labels and SIMULATED ones never mix.",
        ),
        ("human_ceiling", "The human ceiling", "What a judge's agreement is read against."),
    ):
        people = some(tables, name)
        if people is not None:
            block = plain_table(name.replace("_", "-"), title, note, people[people["slice_by"] == "all"])
            blocks.append(block)
    powered = some(tables, "prediction_powered")
    if powered is not None and powered["value"].notna().any():
        blocks.append(_powered(powered))
    else:
        what = (
            f"No win rates by people and judge together{_refused(powered)}. They need pairs of two named "
            "products that people labelled, drawn at random; plan such a round, label it, then"
        )
        blocks.append(Missing(what, "kedro run --pipelines annotation,reporting"))
    confusion = some(tables, "confusion_table")
    if confusion is not None:
        blocks.append(_confusion(tables, confusion))
    progress = some(tables, "label_progress")
    if not (0 if progress is None else int(progress["labelled"].sum())):
        what = (
            "No human labels are there yet: blinded packets were written under data/. Name the label "
            "files in the parameters of annotation (annotation.labels.files), then"
        )
        blocks.append(Missing(what, "kedro run --pipelines annotation,reporting"))
    return Section("people", "Agreement with people and references", _LEAD, blocks)


def _confusion(tables: Tables, confusion: pd.DataFrame) -> Block:
    whole = confusion[confusion["slice_by"] == "all"]
    note = "Counts and row percentages; by slice in the download."
    table = plain_table("confusion-table", "Confusion matrices", note, whole, exact=confusion)
    figure = draw_confusion(tables)
    if figure is None:
        return table
    _, more = leading(whole[whole["judge_id"].notna()], tables["trust_table"], MOST_PANELS)
    rule = (
        "Each row adds up to 100 %: judgments (both orders) whose reference says this. Counts carry no "
        "interval; agreement, above, does. Against settled labels and a reference where both are there; all "
        f"else is in the numbers. {more}"
    )
    alternative = "Confusion matrices of the leading cells; the counts are in the table."
    title = "What does the judge say where the reference says A, B or TIE?"
    return figure_block("confusion-figure", title, rule, alternative, figure, table)


def _refused(powered: pd.DataFrame | None) -> str:
    reasons = [] if powered is None else sorted(set(powered["reason"].dropna()) - {""})
    return f" ({', '.join(reason_text(str(reason)) for reason in reasons)})" if reasons else ""


def _powered(frame: pd.DataFrame) -> Block:
    note = (
        "Few human and many judge labels together (PPI++): the judge's bias, measured on the pairs that "
        "people labelled, is taken out. Only where those pairs were drawn at random and all of them are "
        "labelled."
    )
    columns = [
        *("source", "judge_id", "protocol", "constraint", "temperature", "label_kind", "estimand"),
        *("product", "other_product", "against", "value", "low", "high", "human_only", "judge_only"),
        *("judge_bias", "n_labelled", "n_pairs", "n_without_chance", "reason"),
    ]
    block = plain_table("powered-table", "Win rates by people and judge together", note, frame, columns)
    return marked_block(block) if (frame["label_kind"] == "simulated").any() else block
