"""Wiring of the pipeline `annotation`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.annotation import nodes

OPTIONS = "params:annotation"


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Plan a round of blinded labelling, take labels in, say what is missing and what labels are worth."""
    return Pipeline(
        [
            Node(
                func=nodes.read_labels_given,
                inputs=OPTIONS,
                outputs=["declared_rows", "label_files"],
                name="read_labels_given",
            ),
            Node(
                func=nodes.choose_study_cases,
                inputs=["pairs", "logged_verdicts", OPTIONS],
                outputs=["study_cases", "study_questions"],
                name="choose_study_cases",
            ),
            Node(
                func=nodes.plan_labelling,
                inputs=["pairs", "declared_rows", "study_cases", "annotation_secret", OPTIONS],
                outputs=["annotation_plan", "unblinding_key", "labelling_design"],
                name="plan_labelling",
            ),
            Node(
                func=nodes.frame_labelling,
                inputs=["pairs", "annotation_plan", OPTIONS],
                outputs="labelling_frame",
                name="frame_labelling",
            ),
            Node(
                func=nodes.blind_packets,
                inputs=["pairs", "unblinding_key", "study_questions", OPTIONS],
                outputs="blinded_packets",
                name="blind_packets",
            ),
            Node(
                func=nodes.gather_rows,
                inputs=[
                    "declared_rows",
                    "pairs",
                    "unblinding_key",
                    "study_questions",
                    "annotation_secret",
                    OPTIONS,
                ],
                outputs="label_rows",
                name="gather_rows",
            ),
            Node(
                func=nodes.accept_labels,
                inputs=[
                    "label_rows",
                    "imported_labels",
                    "pairs",
                    "unblinding_key",
                    "study_questions",
                    "annotation_secret",
                    OPTIONS,
                ],
                outputs=["labels", "ai_labels", "labels_set_aside"],
                name="accept_labels",
            ),
            Node(
                func=nodes.follow_progress,
                inputs=["annotation_plan", "labels", "pairs", OPTIONS],
                outputs="label_progress",
                name="follow_progress",
            ),
            Node(
                func=nodes.queue_for_adjudication,
                inputs=["pairs", "unblinding_key", "labels", OPTIONS],
                outputs="adjudication_queue",
                name="queue_for_adjudication",
            ),
            Node(
                func=nodes.adjudicate,
                inputs=["annotation_plan", "labels", OPTIONS],
                outputs="adjudicated_labels",
                name="adjudicate",
            ),
            Node(
                func=nodes.lay_out_files,
                inputs=["blinded_packets", "adjudication_queue"],
                outputs="annotator_files",
                name="lay_out_files",
            ),
            Node(
                func=nodes.analyse_agreement,
                inputs=["labels", "pairs", OPTIONS],
                outputs=["human_agreement", "human_confusion", "item_agreement"],
                name="analyse_agreement",
            ),
            Node(
                func=nodes.analyse_annotators,
                inputs=["labels", "pairs", "adjudicated_labels", OPTIONS],
                outputs=["annotator_table", "annotator_drift"],
                name="analyse_annotators",
            ),
            Node(
                func=nodes.compare_with_references,
                inputs=["labels", "pairs", "adjudicated_labels", "human_agreement", OPTIONS],
                outputs=["expected_relationship", "likely_labels", "annotator_errors", "human_ceiling"],
                name="compare_with_references",
            ),
            Node(
                func=nodes.analyse_study,
                inputs=["labels", "pairs", "study_cases", "study_questions", "unblinding_key", OPTIONS],
                outputs="study_results",
                name="analyse_study",
            ),
        ]
    )
