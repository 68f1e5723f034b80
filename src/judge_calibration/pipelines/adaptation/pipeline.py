"""Wiring of the pipeline `adaptation`."""

from kedro.pipeline import Node, Pipeline

from judge_calibration.adapt.adaptation_checks import check_adaptation
from judge_calibration.adapt.sft.run import check_training, train_judges
from judge_calibration.pipelines.adaptation import evaluation_nodes, nodes, rubric_nodes


def create_pipeline(**kwargs: object) -> Pipeline:
    """Freeze split, subsets and held-out pairs; adapt judges in three ways; say what each gains and changes.

    No label of a held-out pair and no label of the human study reaches a node that trains: `labels` is no
    input of this pipeline.
    """
    return Pipeline(
        [
            Node(
                func=nodes.freeze_splits,
                inputs="pairs",
                outputs=["splits", "split_report"],
                name="freeze_splits",
            ),
            Node(
                func=nodes.draw_training_subsets,
                inputs=["pairs", "judged_pairs", "params:adaptation"],
                outputs="training_subsets",
                name="draw_training_subsets",
            ),
            Node(
                func=nodes.draw_held_out,
                inputs=["pairs", "judged_pairs", "params:adaptation"],
                outputs="held_out_pairs",
                name="draw_held_out",
            ),
            Node(
                func=nodes.draw_controlled,
                inputs=["pairs", "params:adaptation"],
                outputs="controlled_pairs",
                name="draw_controlled",
            ),
            Node(
                func=nodes.simulate_reads,
                inputs="params:adaptation",
                outputs=["simulated_panel", "planted_weights"],
                name="simulate_reads",
            ),
            Node(
                func=check_adaptation,
                inputs=["params:adaptation", "params:judging"],
                outputs="rubric_bases",
                name="check_adaptation",
            ),
            Node(
                func=check_training,
                inputs="params:adaptation",
                outputs="training_environment",
                name="check_training",
            ),
            Node(
                func=train_judges,
                inputs=[
                    "pairs",
                    "splits",
                    "training_subsets",
                    "training_environment",
                    "params:adaptation",
                ],
                outputs=["sft_judges", "sft_training_log", "sft_adapters"],
                name="train_judges",
            ),
            Node(
                func=rubric_nodes.plan_rubrics,
                inputs=[
                    "pairs",
                    "training_subsets",
                    "rubric_bases",
                    "params:adaptation",
                    "params:judging",
                ],
                outputs="rubric_calls",
                name="plan_rubrics",
            ),
            Node(
                func=rubric_nodes.ask_rubrics,
                inputs=["rubric_calls", "call_store", "judge_keys", "params:judging"],
                outputs=["rubric_answers", "rubric_attempts"],
                name="ask_rubrics",
            ),
            Node(
                func=rubric_nodes.write_rubrics,
                inputs=[
                    "rubric_calls",
                    "rubric_answers",
                    "pairs",
                    "training_subsets",
                    "reads",
                    "attribute_inventory",
                    "rubric_bases",
                    "params:adaptation",
                    "params:judging",
                ],
                outputs=["rubrics", "rubric_texts", "rubric_judges", "rubric_diagnostics"],
                name="write_rubrics",
            ),
            Node(
                func=rubric_nodes.plan_adapted,
                inputs=[
                    "held_out_pairs",
                    "controlled_pairs",
                    "sft_judges",
                    "rubric_judges",
                    "params:judging",
                ],
                outputs=["adapted_calls", "adapted_instruments", "adapted_plan"],
                name="plan_adapted",
            ),
            Node(
                func=rubric_nodes.ask_adapted,
                inputs=[
                    "adapted_calls",
                    "sft_judges",
                    "rubric_judges",
                    "call_store",
                    "judge_keys",
                    "params:judging",
                ],
                outputs=["adapted_answers", "adapted_attempts"],
                name="ask_adapted",
            ),
            Node(
                func=rubric_nodes.read_adapted,
                inputs=[
                    "adapted_calls",
                    "adapted_answers",
                    "held_out_pairs",
                    "controlled_pairs",
                    "sft_judges",
                    "rubric_judges",
                    "params:judging",
                ],
                outputs="asked_verdicts",
                name="read_adapted",
            ),
            Node(
                func=nodes.reweight_reads,
                inputs=[
                    "held_out_pairs",
                    "pairs",
                    "reads",
                    "verdicts",
                    "asked_verdicts",
                    "training_subsets",
                    "simulated_panel",
                    "params:adaptation",
                ],
                outputs=[
                    "reweighting_fits",
                    "reweighting_coefficients",
                    "reweighting_predictions",
                    "reweighting_calibration",
                    "reweighting_reliability",
                    "reweighted_verdicts",
                ],
                name="reweight_reads",
            ),
            Node(
                func=rubric_nodes.join_adapted,
                inputs=["asked_verdicts", "reweighted_verdicts"],
                outputs="adapted_verdicts",
                name="join_adapted",
            ),
            Node(
                func=evaluation_nodes.evaluate_adaptation,
                inputs=[
                    "adapted_verdicts",
                    "held_out_pairs",
                    "reweighting_fits",
                    "reweighting_predictions",
                    "training_subsets",
                    "simulated_panel",
                    "sft_training_log",
                    "rubric_diagnostics",
                    "params:adaptation",
                ],
                outputs=[
                    "adaptation_table",
                    "adaptation_macro",
                    "sample_efficiency",
                    "method_comparison",
                    "adaptation_advice",
                ],
                name="evaluate_adaptation",
            ),
            Node(
                func=evaluation_nodes.compare_with_planted,
                inputs=[
                    "simulated_panel",
                    "planted_weights",
                    "reweighting_coefficients",
                    "adaptation_table",
                ],
                outputs="reweighting_recovery",
                name="compare_with_planted",
            ),
            Node(
                func=evaluation_nodes.measure_changes,
                inputs=["adapted_verdicts", "held_out_pairs", "controlled_pairs", "params:reporting"],
                outputs="adaptation_changes",
                name="measure_changes",
            ),
            Node(
                func=evaluation_nodes.add_up_adaptation,
                inputs=[
                    "adaptation_table",
                    "pairs",
                    "held_out_pairs",
                    "adapted_calls",
                    "adapted_answers",
                    "adapted_attempts",
                    "rubric_calls",
                    "rubric_answers",
                    "rubric_attempts",
                    "attribute_calls",
                    "attribute_answers",
                    "attribute_attempts",
                    "training_subsets",
                    "sft_judges",
                    "sft_training_log",
                    "rubric_judges",
                    "rubrics",
                    "params:adaptation",
                    "params:judging",
                    "params:attributes",
                ],
                outputs="adaptation_costs",
                name="add_up_adaptation",
            ),
            Node(
                func=evaluation_nodes.note_gaps,
                inputs=[
                    "adaptation_table",
                    "split_report",
                    "training_subsets",
                    "held_out_pairs",
                    "controlled_pairs",
                    "reads",
                    "rubrics",
                    "sft_judges",
                    "params:adaptation",
                ],
                outputs="adaptation_notes",
                name="note_gaps",
            ),
        ]
    )
