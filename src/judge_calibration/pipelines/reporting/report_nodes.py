"""Nodes of the pipeline `reporting` that make what people read: the page, its figures, the judge card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report import figures, sections
from judge_calibration.report.full_report import build_report
from judge_calibration.report.judge_card import judge_cards

if TYPE_CHECKING:
    import plotly.graph_objects as go


def write_report(instruments: dict[str, Any], options: ReportingOptions, **tables: pd.DataFrame) -> str:
    """Write the page: the answer first, then what it rests on, then what is missing."""
    return build_report(tables, instruments, options)


def write_judge_cards(
    trust: pd.DataFrame, outcomes: pd.DataFrame, instruments: dict[str, Any], options: ReportingOptions
) -> dict[str, Any]:
    """Write for each cell its instrument, its numbers and its answer, for machines."""
    return judge_cards(trust, outcomes, instruments, options.regions)


def draw_figures(
    trust: pd.DataFrame, outcomes: pd.DataFrame, options: ReportingOptions
) -> tuple[go.Figure, go.Figure, go.Figure, go.Figure]:
    """Draw the page's figures for kedro-viz: the two planes of trust, the ceiling, the outcomes."""
    rows = sections.whole_rows(trust)
    return (
        figures.trust_plane(rows, options.regions),
        figures.iso_trust(sections.decisive_rows(trust)),
        figures.ceiling(rows),
        figures.outcomes(sections.outcome_shares(outcomes)),
    )
