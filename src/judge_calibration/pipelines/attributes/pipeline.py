"""The wiring of `attributes`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.attributes import analysis, nodes


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Return the pipeline `attributes`."""
    panel = ["read_panel", "panel_items", "panel_choices"]
    described = [*panel, "attribute_inventory", "params:attributes"]
    return Pipeline(
        [
            Node(
                func=nodes.plan_reads,
                inputs=["judged_pairs", "attribute_inventory", "params:attributes"],
                outputs=["attribute_pairs", "attribute_calls"],
                name="plan_reads",
            ),
            Node(
                func=nodes.ask_reads,
                inputs=["attribute_calls", "call_store", "judge_keys", "params:attributes"],
                outputs=["attribute_answers", "attribute_attempts"],
                name="ask_reads",
            ),
            Node(
                func=nodes.read_attributes,
                inputs=["attribute_calls", "attribute_answers", "attribute_pairs", "params:attributes"],
                outputs="reads",
                name="read_attributes",
            ),
            Node(
                func=nodes.count_reuse,
                inputs=["attribute_calls", "attribute_answers"],
                outputs="attribute_reuse",
                name="count_reuse",
            ),
            Node(
                func=nodes.gather_reads,
                inputs=["reads", "verdicts", "pairs", "attribute_inventory", "params:attributes"],
                outputs=[
                    "read_panel",
                    "read_outcomes",
                    "panel_items",
                    "panel_choices",
                    "panel_planted",
                    "attribute_screening",
                ],
                name="gather_reads",
            ),
            Node(
                func=analysis.describe_reads,
                inputs=["read_panel", "read_outcomes", *described[1:]],
                outputs=["attribute_coverage", "attribute_table", "attribute_families"],
                name="describe_reads",
            ),
            Node(
                func=analysis.select_items,
                inputs=described,
                outputs=["subjective_set", "subjective_overlap", "attribute_case"],
                name="select_items",
            ),
            Node(
                func=analysis.compare_judges,
                inputs=[*panel, "attribute_table", "subjective_set", "params:attributes"],
                outputs=[
                    "attribute_agreement",
                    "attribute_gaps",
                    "attribute_kappas",
                    "attribute_summary",
                    "attribute_judges",
                ],
                name="compare_judges",
            ),
            Node(
                func=analysis.profile_judges,
                inputs=described,
                outputs=[
                    "profiles",
                    "profile_correlations",
                    "profile_reliability",
                    "profile_summary",
                ],
                name="profile_judges",
            ),
            Node(
                func=analysis.check_recovery,
                inputs=[
                    *panel,
                    "panel_planted",
                    "attribute_table",
                    "attribute_agreement",
                    "profiles",
                    "params:attributes",
                ],
                outputs="panel_recovery",
                name="check_recovery",
            ),
        ]
    )
