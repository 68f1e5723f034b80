"""Nodes of the pipeline `reporting` that make what people read: the page, its figures, the judge card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from judge_calibration.labelling.identity import RoundKey
from judge_calibration.metrics.audit_queue import audit_queue
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report.audit_packets import audit_files, audit_key
from judge_calibration.report.audit_page import audit_page
from judge_calibration.report.figure_set import draw_all
from judge_calibration.report.full_report import build_report, simulated_judges
from judge_calibration.report.judge_card import judge_cards

if TYPE_CHECKING:
    import plotly.graph_objects as go

AUDIT_ROUND = "audit"


def write_report(instruments: dict[str, Any], options: ReportingOptions, **tables: pd.DataFrame) -> str:
    """Write the page: the answer first, then what it rests on, then what is missing."""
    return build_report(tables, instruments, options)


def write_judge_cards(
    trust: pd.DataFrame, outcomes: pd.DataFrame, instruments: dict[str, Any], options: ReportingOptions
) -> dict[str, Any]:
    """Write for each cell its instrument, its numbers and its answer, for machines."""
    return judge_cards(trust, outcomes, instruments, options.regions)


def draw_figures(options: ReportingOptions, **tables: pd.DataFrame) -> dict[str, go.Figure]:
    """Draw the page's figures for kedro-viz, each under its own name; one without data says so."""
    return draw_all(tables, options)


def queue_for_audit(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    adjudicated_labels: pd.DataFrame,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Say which judgments a person should look at first, and why, spread over reasons and slices."""
    said = pd.concat([labels, adjudicated_labels], ignore_index=True) if len(adjudicated_labels) else labels
    return audit_queue(verdicts, pairs, said, options.audit)


def blind_audit_packets(
    queue: pd.DataFrame, pairs: pd.DataFrame, instruments: dict[str, Any], secret: str
) -> tuple[pd.DataFrame, dict[str, str | bytes]]:
    """Blind the queued pairs: packets tell no verdict, no reason and no order of urgency."""
    key = audit_key(queue, pairs, RoundKey(secret or None, AUDIT_ROUND))
    return key, audit_files(pairs, key, simulated_judges(instruments))


def write_audit_page(
    queue: pd.DataFrame,
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    calls: pd.DataFrame,
    answers: pd.DataFrame,
    labels: pd.DataFrame,
    instruments: dict[str, Any],
    options: ReportingOptions,
) -> str:
    """Write the queue as a page to browse: reasons, both answers, every raw request and reply."""
    return audit_page(
        queue,
        verdicts,
        pairs,
        calls,
        answers,
        labels,
        options.audit.judgments_per_item,
        simulated_judges(instruments),
    )
