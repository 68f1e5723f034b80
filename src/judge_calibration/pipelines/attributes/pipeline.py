"""The wiring of `attributes`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.attributes.nodes import (
    ask_reads,
    plan_reads,
    profile_judges,
    read_attributes,
)


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Return the pipeline `attributes`."""
    return Pipeline(
        [
            Node(
                func=plan_reads,
                inputs=["judged_pairs", "attribute_inventory", "params:attributes"],
                outputs=["attribute_pairs", "attribute_calls"],
                name="plan_reads",
            ),
            Node(
                func=ask_reads,
                inputs=["attribute_calls", "call_store", "judge_keys", "params:attributes"],
                outputs=["attribute_answers", "attribute_attempts"],
                name="ask_reads",
            ),
            Node(
                func=read_attributes,
                inputs=["attribute_calls", "attribute_answers", "attribute_pairs", "params:attributes"],
                outputs="reads",
                name="read_attributes",
            ),
            Node(
                func=profile_judges,
                inputs=["reads", "verdicts", "attribute_inventory", "params:attributes"],
                outputs=[
                    "attribute_coverage",
                    "attribute_table",
                    "attribute_agreement",
                    "profiles",
                    "subjective_set",
                ],
                name="profile_judges",
            ),
        ]
    )
