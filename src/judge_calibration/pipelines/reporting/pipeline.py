"""The wiring of `reporting`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.reporting import decisions, nodes, report_nodes
from judge_calibration.report import adaptation_section, attribute_section, figure_set, labelling_section

# Every table that the page shows, under its own name.
REPORTED = (
    "trust_table",
    "outcome_table",
    "position_table",
    "manipulation_table",
    "paired_differences",
    "format_dispersion",
    "temperature_table",
    "trust_spread",
    "repetition_looks",
    "regions",
    "remedies",
    "paradigms",
    "confidence_table",
    "confidence_curves",
    "selective_table",
    "risk_coverage",
    "audit_queue",
    "agreement_table",
    "confusion_table",
    "prediction_powered",
    "cost_table",
    "spending_table",
    "variance_components",
    "d_study",
    "anova_table",
    "authority",
    "calibration_shift",
    "selftest_table",
    "human_ceiling",
    *labelling_section.TABLES,
    "labels",
    *attribute_section.TABLES,
    *adaptation_section.TABLES,
    "split_report",
    "bank_design_check",
    "source_files",
    "pairs",
    "judged_pairs",
)


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Return the pipeline `reporting`."""
    judged = ["verdicts", "pairs", "params:reporting"]
    return Pipeline(
        [
            Node(
                func=nodes.measure_trust,
                inputs=[*judged, "params:judging"],
                outputs=["trust_table", "trust_intervals"],
                name="measure_trust",
            ),
            Node(
                func=nodes.count_outcomes,
                inputs=judged,
                outputs="outcome_table",
                name="count_outcomes",
            ),
            Node(
                func=nodes.measure_manipulations,
                inputs=judged,
                outputs=["manipulation_table", "position_table"],
                name="measure_manipulations",
            ),
            Node(
                func=nodes.compare_cells,
                inputs=judged,
                outputs="paired_differences",
                name="compare_cells",
            ),
            Node(
                func=nodes.measure_dispersion,
                inputs=judged,
                outputs="format_dispersion",
                name="measure_dispersion",
            ),
            Node(
                func=nodes.follow_temperature,
                inputs=["trust_table", "paired_differences"],
                outputs=["temperature_table", "trust_spread"],
                name="follow_temperature",
            ),
            Node(
                func=nodes.try_remedies,
                inputs=["verdicts", "pairs", "trust_table", "params:reporting"],
                outputs=["regions", "remedies", "paradigms"],
                name="try_remedies",
            ),
            Node(
                func=nodes.check_confidence,
                inputs=judged,
                outputs=["confidence_table", "confidence_curves"],
                name="check_confidence",
            ),
            Node(
                func=nodes.judge_selectively,
                inputs=judged,
                outputs=["selective_table", "risk_coverage"],
                name="judge_selectively",
            ),
            Node(
                func=nodes.measure_agreement,
                inputs=["verdicts", "pairs", "labels", "params:reporting"],
                outputs=["agreement_table", "confusion_table"],
                name="measure_agreement",
            ),
            Node(
                func=nodes.estimate_win_rates,
                inputs=["verdicts", "pairs", "adjudicated_labels", "labelling_frame", "params:reporting"],
                outputs="prediction_powered",
                name="estimate_win_rates",
            ),
            Node(
                func=nodes.add_up_costs,
                inputs=["calls", "answers", "verdicts", "params:judging"],
                outputs="cost_table",
                name="add_up_costs",
            ),
            Node(
                func=nodes.compare_with_plan,
                inputs=["call_plan", "calls", "answers", "params:judging"],
                outputs="spending_table",
                name="compare_with_plan",
            ),
            Node(
                func=decisions.decompose_variance,
                inputs=judged,
                outputs=["variance_components", "missing_verdicts", "d_study"],
                name="decompose_variance",
            ),
            Node(
                func=decisions.analyse_trust,
                inputs=judged,
                outputs="anova_table",
                name="analyse_trust",
            ),
            Node(
                func=decisions.judge_authority,
                inputs=["verdicts", "pairs", "labels", "params:reporting", "judging_rule", "instruments"],
                outputs="authority",
                name="judge_authority",
            ),
            Node(
                func=decisions.compare_sets,
                inputs=["verdicts", "pairs", "labels", "params:reporting"],
                outputs="calibration_shift",
                name="compare_sets",
            ),
            Node(
                func=decisions.check_instrument,
                inputs="params:reporting",
                outputs="selftest_table",
                name="check_instrument",
            ),
            Node(
                func=report_nodes.draw_figures,
                inputs={"options": "params:reporting"} | {name: name for name in figure_set.TABLES},
                outputs={name: name for name in figure_set.NAMES},
                name="draw_figures",
            ),
            Node(
                func=report_nodes.queue_for_audit,
                inputs=["verdicts", "pairs", "labels", "adjudicated_labels", "params:reporting"],
                outputs="audit_queue",
                name="queue_for_audit",
            ),
            Node(
                func=report_nodes.blind_audit_packets,
                inputs=["audit_queue", "pairs", "instruments", "annotation_secret"],
                outputs=["audit_key", "audit_packets"],
                name="blind_audit_packets",
            ),
            Node(
                func=report_nodes.write_audit_page,
                inputs=[
                    *("audit_queue", "verdicts", "pairs", "calls", "answers", "labels"),
                    *("instruments", "params:reporting"),
                ],
                outputs="audit_page",
                name="write_audit_page",
            ),
            Node(
                func=report_nodes.write_judge_cards,
                inputs=["trust_table", "outcome_table", "instruments", "params:reporting"],
                outputs="judge_card",
                name="write_judge_cards",
            ),
            Node(
                func=report_nodes.write_report,
                inputs={"instruments": "instruments", "options": "params:reporting"}
                | {name: name for name in REPORTED},
                outputs="report",
                name="write_report",
            ),
        ]
    )
