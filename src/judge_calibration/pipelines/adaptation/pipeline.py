"""Wiring of the pipeline `adaptation`."""

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.adaptation.nodes import (
    adapt_by_reweighting,
    draw_training_subsets,
    freeze_splits,
    simulate_reads,
)


def create_pipeline(**kwargs: object) -> Pipeline:
    """Freeze the split and the training subsets; show on the simulated panel what reweighting gains."""
    return Pipeline(
        [
            Node(
                func=freeze_splits, inputs="pairs", outputs=["splits", "split_report"], name="freeze_splits"
            ),
            Node(
                func=draw_training_subsets,
                inputs=["pairs", "params:adaptation"],
                outputs="training_subsets",
                name="draw_training_subsets",
            ),
            Node(
                func=simulate_reads,
                inputs="params:adaptation",
                outputs="simulated_panel",
                name="simulate_reads",
            ),
            Node(
                func=adapt_by_reweighting,
                inputs=["simulated_panel", "params:adaptation"],
                outputs=["adaptation_table", "sample_efficiency"],
                name="adapt_by_reweighting",
            ),
        ]
    )
