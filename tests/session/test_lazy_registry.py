"""The registry: six pipelines in order, imported when they are looked into and not before."""

import subprocess
import sys

import pytest
from kedro.pipeline import Node, Pipeline

from judge_calibration.pipeline_registry import NAMES, register_pipelines
from judge_calibration.session.lazy_pipeline import LazyPipeline

HEAVY = ["pandas", "numpy", "pyarrow", "litellm", "scipy", "sklearn", "plotly", "xllamacpp"]


def make() -> Pipeline:
    return Pipeline([Node(len, "a", "b", name="count"), Node(abs, "b", "c", name="size")])


class TestLazyPipeline:
    def test_is_like_any_other(self):
        lazy, eager = LazyPipeline(make), make()
        assert isinstance(lazy, Pipeline)
        assert lazy.inputs() == eager.inputs() == {"a"}
        assert [node.name for node in lazy.nodes] == ["count", "size"]
        assert lazy.filter(node_names=["size"]).outputs() == {"c"}
        assert (LazyPipeline(make) + Pipeline([])).all_outputs() == {"b", "c"}
        assert sum([LazyPipeline(make)], Pipeline([])).outputs() == {"c"}

    def test_is_built_once_and_not_before_it_is_used(self):
        built = []

        def build():
            built.append(1)
            return make()

        lazy = LazyPipeline(build)
        assert built == []
        assert lazy.nodes
        assert lazy.inputs()
        assert built == [1]

    def test_errors_reach_whoever_looks(self):
        def build():
            raise ImportError("no module named x")

        with pytest.raises(ImportError, match="no module named x"):
            LazyPipeline(build).inputs()


def test_the_six_pipelines_in_order():
    assert tuple(register_pipelines()) == (*NAMES, "__default__")
    assert NAMES == ("data_prep", "annotation", "judging", "attributes", "adaptation", "reporting")


def test_the_default_is_their_sum():
    pipelines = register_pipelines()
    parts = {node.name for name in NAMES for node in pipelines[name].nodes}
    assert {node.name for node in pipelines["__default__"].nodes} == parts


def test_the_names_are_told_without_heavy_imports():
    code = (
        "import sys\n"
        "from judge_calibration import commands, hooks, pipeline_registry, settings\n"
        "pipeline_registry.register_pipelines()\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
