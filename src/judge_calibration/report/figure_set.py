"""All figures of the report under the names that the catalog gives them, for kedro-viz and other people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report import figures, sections
from judge_calibration.report.costs_section import draw_costs, draw_outcomes, draw_paths
from judge_calibration.report.formats_section import draw_formats, draw_paradigms, draw_temperature
from judge_calibration.report.labelling_section import draw_annotators, draw_drift, draw_expected
from judge_calibration.report.manipulation_section import draw_errors, draw_neutral, draw_twins
from judge_calibration.report.people_section import draw_agreement, draw_confusion
from judge_calibration.report.position_section import draw_positions
from judge_calibration.report.remedies_section import draw_reliability, draw_remedies, draw_risk
from judge_calibration.report.result_tables import Tables
from judge_calibration.report.variance_section import draw_designs, draw_variance

if TYPE_CHECKING:
    import plotly.graph_objects as go

DRAWN: dict[str, Callable[[Tables], go.Figure | None]] = {
    "figure_outcomes": draw_outcomes,
    "figure_parse_paths": draw_paths,
    "figure_positions": draw_positions,
    "figure_errors": draw_errors,
    "figure_length_and_style": draw_neutral,
    "figure_twins": draw_twins,
    "figure_agreement": draw_agreement,
    "figure_confusion": draw_confusion,
    "figure_annotators": draw_annotators,
    "figure_drift": draw_drift,
    "figure_expected": draw_expected,
    "figure_formats": draw_formats,
    "figure_paradigms": draw_paradigms,
    "figure_temperature": draw_temperature,
    "figure_remedies": draw_remedies,
    "figure_risk": draw_risk,
    "figure_reliability": draw_reliability,
    "figure_variance": draw_variance,
    "figure_designs": draw_designs,
    "figure_costs": draw_costs,
}
NAMES = ("figure_trust_plane", "figure_iso_trust", "figure_ceiling", *DRAWN)
"""Dataset names of all figures, in the order of the page."""

TABLES = (
    "trust_table",
    "outcome_table",
    "position_table",
    "manipulation_table",
    "agreement_table",
    "human_ceiling",
    "confusion_table",
    "annotator_table",
    "annotator_drift",
    "expected_relationship",
    "format_dispersion",
    "paradigms",
    "temperature_table",
    "remedies",
    "risk_coverage",
    "confidence_curves",
    "variance_components",
    "d_study",
    "cost_table",
)
"""Tables that the figures are drawn from."""


def draw_all(tables: Tables, options: ReportingOptions) -> dict[str, go.Figure]:
    """Return every figure by its name; one without data says so.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Those of TABLES.
    options : ReportingOptions
    """
    rows = sections.whole_rows(tables["trust_table"])
    drawn: dict[str, go.Figure] = {
        "figure_trust_plane": figures.trust_plane(rows, options.regions),
        "figure_iso_trust": figures.iso_trust(sections.decisive_rows(tables["trust_table"])),
        "figure_ceiling": figures.ceiling(rows),
    }
    for name, draw in DRAWN.items():
        figure = draw(tables)
        drawn[name] = _no_data() if figure is None else figure
    return drawn


def _no_data() -> go.Figure:
    figure = figures.blank(160)
    figure.add_annotation(text="No data in this run; the report says what would bring them.", showarrow=False)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return figure
