"""The page and the document of a comparison of two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.metrics.run_comparison import CHANGES, RunComparison
from judge_calibration.report.answers import Answer
from judge_calibration.report.blocks import Block, FileLink, Prose, Section, TableBlock, Terms, marked
from judge_calibration.report.gate_page import SIMULATED, plain
from judge_calibration.report.glossary import GLOSSARY
from judge_calibration.report.page import render_page
from judge_calibration.report.sections import readable
from judge_calibration.report.shortening import shortened
from judge_calibration.report.wording import cell_name, count_noun, is_missing, percent

_DEFINED = ("trust", "consistency", "position", "accuracy", "judgment", "interval")
_DIFFERENCES = ("judge_id", "protocol", "constraint", "temperature")


def headline(row: Mapping[Any, Any]) -> str:
    """Say in a sentence what became of one cell's verdicts.

    Examples
    --------
    >>> headline({"n": 40, "same": 30, "changed_share": 0.25, "low": 0.1, "high": 0.4})
    '10 of 40 judgments changed: 25.0 % (10.0 to 40.0).'
    """
    if not row["n"]:
        return "No judgment is in both runs."
    interval = "" if is_missing(row["low"]) else f" ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
    changed = f"{row['n'] - row['same']:,} of {count_noun(int(row['n']), 'judgment')} changed"
    return f"{changed}: {percent(row['changed_share'])}{interval}."


def cells_name(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> str:
    """Name the cell, and the one it is compared with where that has another name."""
    names = cell_name(before), cell_name(after)
    return names[0] if names[0] == names[1] else f"{names[0]}; after: {names[1]}"


def comparison_document(comparison: RunComparison, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison as JSON holds it: per cell, and every statistic; judgments are in the table."""
    columns = ["source", "metric", "value_2", "value_1", "difference", "low", "high", "n_pairs", "reason"]
    renamed = {"value_1": "after", "value_2": "before"}
    names = {f"{name}_1": name for name in _DIFFERENCES}
    differences = comparison.differences[[*names, *columns]].rename(columns=renamed | names)
    return plain(  # type: ignore[no-any-return]
        {
            **about,
            "cells": comparison.summary.to_dict("records"),
            "differences": differences.to_dict("records"),
            "pairs_with_other_texts": list(comparison.other_pairs),
        }
    )


def comparison_page(
    comparison: RunComparison, title: str, summary: str, simulated: bool = False, audit: str = ""
) -> str:
    """Return the page as HTML text.

    Parameters
    ----------
    comparison : RunComparison
    title, summary : str
    simulated : bool
        Marks the page and every table SIMULATED: a judge of a run was a program.
    audit : str
        Beginning of the names of the audit queue's artifacts, written beside this page; empty: none are.
    """
    answers = []
    for row, cells in zip(comparison.summary.to_dict("records"), comparison.cells, strict=True):
        parts = [f"{row[change]} {change}" for change in CHANGES[1:] if row[change]]
        same = row["instrument_before"] == row["instrument_after"]
        details = [", ".join(parts) + "." if parts else "Every verdict is the same."]
        details.append("The instrument is the same." if same else "The instrument is another one.")
        tone = "unknown" if not row["n"] else "good" if row["n"] == row["same"] else "mixed"
        answers.append(Answer(cells_name(*cells), headline(row), tuple(details), tone, None))  # type: ignore[arg-type]
    found = [
        _differences_section(comparison.differences),
        _changes_section(comparison.changed, audit),
        _counts_section(comparison),
    ]
    sections = [
        *(marked(section, simulated) for section in found),
        Section("definitions", "Definitions", "", [Terms(tuple(GLOSSARY[name] for name in _DEFINED))]),
    ]
    banners = [SIMULATED] if simulated else []
    return render_page(title, summary, answers, sections, banners, "What changed?")


def _differences_section(frame: pd.DataFrame) -> Section:
    lead = "After less before, on the same pairs, both resampled together. Not significant is never the same."
    if frame.empty:
        return Section("differences", "Statistics", lead, [Prose(("Nothing could be compared.",))])
    shown = frame.rename(columns={f"{name}_1": name for name in _DIFFERENCES})
    shown = shown[
        [
            *_DIFFERENCES,
            "source",
            "metric",
            "value_2",
            "value_1",
            "difference",
            "low",
            "high",
            "n_pairs",
            "reason",
        ]
    ].rename(columns={"value_2": "before", "value_1": "after"})
    note = "Strict view; 95 % intervals by cluster bootstrap over base tasks."
    blocks: list[Block] = [
        TableBlock("differences-table", "Paired differences", note, readable(shown), frame)
    ]
    return Section("differences", "Statistics", lead, blocks)


def _changes_section(changed: pd.DataFrame, audit: str) -> Section:
    lead = (
        "Gained: wrong before and right now, by the reference label. Lost: the reverse. Changed: another "
        "verdict that is neither. Failed: a verdict before, none now; recovered: the reverse."
    )
    if changed.empty:
        return Section("changes", "Verdict by verdict", lead, [Prose(("No verdict changed.",))])
    shown, more = shortened(readable(changed))
    table = TableBlock("changes-table", "Changed verdicts", more, shown, changed)
    blocks: list[Block] = [table]
    if audit:
        text = (
            f"Browse them with raw requests and replies, before and now ({audit}.html of the same decision)"
        )
        blocks.append(FileLink(text, f"{audit}.html"))
    return Section("changes", "Verdict by verdict", lead, blocks)


def _counts_section(comparison: RunComparison) -> Section:
    blocks: list[Block] = []
    if len(comparison.summary):
        frame = comparison.summary
        ends = {"low": "changed_share_low", "high": "changed_share_high"}
        shown = readable(frame.drop(columns=["instrument_before", "instrument_after"]).rename(columns=ends))
        note = "only before, only after: judgments that the other run lacks; they are not compared."
        blocks.append(TableBlock("counts-table", "Judgments by cell", note, shown, frame))
    if comparison.other_pairs:
        n = count_noun(len(comparison.other_pairs), "pair")
        blocks.append(Prose((f"{n} with other texts under the same id left out.",)))
    return Section("counts", "Counts", "What was compared.", blocks or [Prose(("Nothing.",))])
