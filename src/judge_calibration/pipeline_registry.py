"""The six pipelines, in the order in which a newcomer reads them."""

from __future__ import annotations

from kedro.pipeline import Pipeline

from judge_calibration.pipelines.adaptation.pipeline import create_pipeline as adaptation
from judge_calibration.pipelines.annotation.pipeline import create_pipeline as annotation
from judge_calibration.pipelines.attributes.pipeline import create_pipeline as attributes
from judge_calibration.pipelines.data_prep.pipeline import create_pipeline as data_prep
from judge_calibration.pipelines.judging.pipeline import create_pipeline as judging
from judge_calibration.pipelines.reporting.pipeline import create_pipeline as reporting


def register_pipelines() -> dict[str, Pipeline]:
    """Return the pipelines by name; ``__default__`` is their sum."""
    pipelines = {
        "data_prep": data_prep(),
        "annotation": annotation(),
        "judging": judging(),
        "attributes": attributes(),
        "adaptation": adaptation(),
        "reporting": reporting(),
    }
    return {**pipelines, "__default__": sum(pipelines.values(), Pipeline([]))}
