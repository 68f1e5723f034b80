"""The wiring of `judging`."""

from __future__ import annotations

from typing import Any

from kedro.pipeline import Node, Pipeline

from judge_calibration.pipelines.judging.nodes import (
    ask_judges,
    join_verdicts,
    plan_judging,
    read_verdicts,
    record_rule,
)


def create_pipeline(**kwargs: Any) -> Pipeline:
    """Return the pipeline `judging`."""
    return Pipeline(
        [
            Node(
                func=plan_judging,
                inputs=["judged_pairs", "params:judging"],
                outputs=["calls", "instruments", "call_plan"],
                name="plan_judging",
            ),
            Node(
                func=record_rule,
                inputs="params:reporting",
                outputs="judging_rule",
                name="record_rule",
            ),
            Node(
                func=ask_judges,
                inputs=["calls", "judged_pairs", "call_store", "judge_keys", "params:judging"],
                outputs=["answers", "attempts", "repetition_looks"],
                name="ask_judges",
            ),
            Node(
                func=read_verdicts,
                inputs=["calls", "answers", "repetition_looks", "judged_pairs", "params:judging"],
                outputs="judged_verdicts",
                name="read_verdicts",
            ),
            Node(
                func=join_verdicts,
                inputs=["judged_verdicts", "logged_verdicts"],
                outputs="verdicts",
                name="join_verdicts",
            ),
        ]
    )
