"""The wiring of `data_prep`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.data_prep.nodes import (
    build_bank,
    draw_judged_pairs,
    hide_annotators,
    import_files,
    join_pairs,
)


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Return the pipeline `data_prep`."""
    return Pipeline(
        [
            Node(
                func=build_bank,
                inputs=["pair_bank", "params:data_prep"],
                outputs=["bank_pairs", "bank_design_check"],
                name="build_bank",
            ),
            Node(
                func=import_files,
                inputs="params:data_prep",
                outputs=[
                    "imported_pairs",
                    "logged_pairs",
                    "logged_verdicts",
                    "labels_as_read",
                    "source_files",
                ],
                name="import_files",
            ),
            Node(
                func=join_pairs,
                inputs=["bank_pairs", "imported_pairs", "logged_pairs", "params:data_prep"],
                outputs="pairs",
                name="join_pairs",
            ),
            Node(
                func=hide_annotators,
                inputs=["labels_as_read", "pairs", "annotation_secret"],
                outputs="imported_labels",
                name="hide_annotators",
            ),
            Node(
                func=draw_judged_pairs,
                inputs=["pairs", "params:data_prep"],
                outputs="judged_pairs",
                name="draw_judged_pairs",
            ),
        ]
    )
