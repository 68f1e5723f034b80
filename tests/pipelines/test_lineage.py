"""The lineage can be drawn: every dataset has a layer, and the layers have one order from left to right."""

from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

from judge_calibration.pipeline_registry import register_pipelines

ORDER = ["raw", "intermediate", "primary", "feature", "model_input", "models", "model_output", "reporting"]


@pytest.fixture(scope="module")
def layers(project_path: Path) -> dict[str, str]:
    found = {}
    for path in sorted((project_path / "conf" / "base").glob("*/catalog.yml")):
        for name, entry in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            if not name.startswith("_"):
                found[name] = entry.get("metadata", {}).get("kedro-viz", {}).get("layer")
    return found


@pytest.fixture(scope="module")
def whole():
    return register_pipelines()["__default__"]


def test_every_dataset_has_a_layer_that_is_known(layers, whole):
    datasets = {name for name in whole.datasets() if not name.startswith("params:")}
    assert {name for name in datasets if layers.get(name) not in ORDER} == set()


def test_no_layer_stands_both_before_and_after_another(layers, whole):
    before = {layer: set() for layer in ORDER}
    for node in whole.nodes:
        for source in (name for name in node.inputs if name in layers):
            for made in node.outputs:
                if layers[source] != layers[made]:
                    before[layers[made]].add(layers[source])
    # Raises CycleError where kedro-viz would silently draw no layers at all.
    tuple(TopologicalSorter(before).static_order())
