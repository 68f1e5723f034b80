"""Wiring of the pipeline `annotation`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.annotation.nodes import (
    accept_labels,
    adjudicate,
    blind_packets,
    follow_progress,
    lay_out_files,
    plan_labelling,
    queue_for_adjudication,
    read_labels_given,
)


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Plan a round of blinded labelling, take the labels in, and say what is missing."""
    return Pipeline(
        [
            Node(
                func=read_labels_given,
                inputs="params:annotation",
                outputs="label_rows",
                name="read_labels_given",
            ),
            Node(
                func=plan_labelling,
                inputs=["pairs", "label_rows", "annotation_secret", "params:annotation"],
                outputs=["annotation_plan", "unblinding_key", "labelling_design"],
                name="plan_labelling",
            ),
            Node(
                func=blind_packets,
                inputs=["pairs", "unblinding_key", "params:annotation"],
                outputs="blinded_packets",
                name="blind_packets",
            ),
            Node(
                func=accept_labels,
                inputs=["label_rows", "pairs", "unblinding_key", "annotation_secret", "params:annotation"],
                outputs=["labels", "labels_set_aside"],
                name="accept_labels",
            ),
            Node(
                func=follow_progress,
                inputs=["annotation_plan", "labels", "pairs", "params:annotation"],
                outputs="label_progress",
                name="follow_progress",
            ),
            Node(
                func=queue_for_adjudication,
                inputs=["pairs", "unblinding_key", "labels", "params:annotation"],
                outputs="adjudication_queue",
                name="queue_for_adjudication",
            ),
            Node(
                func=adjudicate,
                inputs=["annotation_plan", "labels", "params:annotation"],
                outputs="adjudicated_labels",
                name="adjudicate",
            ),
            Node(
                func=lay_out_files,
                inputs=["blinded_packets", "adjudication_queue", "params:annotation"],
                outputs="annotator_files",
                name="lay_out_files",
            ),
        ]
    )
