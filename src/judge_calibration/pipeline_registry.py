"""The six pipelines, in the order in which a newcomer reads them."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from kedro.pipeline import Pipeline

from judge_calibration.session.lazy_pipeline import LazyPipeline

NAMES = ("data_prep", "annotation", "judging", "attributes", "adaptation", "reporting")


def _create(name: str) -> Pipeline:
    pipeline: Pipeline = import_module(f"judge_calibration.pipelines.{name}.pipeline").create_pipeline()
    return pipeline


def register_pipelines() -> dict[str, Pipeline]:
    """Return the pipelines by name; ``__default__`` is their sum."""
    pipelines: dict[str, Pipeline] = {name: LazyPipeline(partial(_create, name)) for name in NAMES}
    return {**pipelines, "__default__": LazyPipeline(lambda: sum(pipelines.values(), Pipeline([])))}
