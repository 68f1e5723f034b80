"""The record of one run: what Kedro knows of it, turned into the manifest."""

from __future__ import annotations

import inspect
import logging
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import ChecksumError
from judge_calibration.runs import environment, files, manifest
from judge_calibration.session.failures import explain
from judge_calibration.session.inputs import is_parameter
from judge_calibration.session.project import data_folder, environment_label, package_folder

if TYPE_CHECKING:
    from kedro.pipeline import Pipeline
    from kedro.pipeline.node import Node

TRACEBACK = "error.log"

_FILTER_OPTIONS = {
    "tags": "tags",
    "from_nodes": "from-nodes",
    "to_nodes": "to-nodes",
    "node_names": "nodes",
    "from_inputs": "from-inputs",
    "to_outputs": "to-outputs",
    "namespaces": "namespaces",
}

_logger = logging.getLogger(__name__)


class Record:
    """Keeps the manifest of the run that is going."""

    def __init__(
        self, run: manifest.Run, root: Path, pipeline: Pipeline, catalog: Any, params: dict[str, Any]
    ):
        self.run = run
        self.is_open = True
        self._root = root
        self._pipeline = pipeline
        self._catalog = catalog
        self._params = params

    @classmethod
    def start(cls, context: Any, run_params: dict[str, Any], pipeline: Pipeline, catalog: Any) -> Record:
        """Write the manifest of a run that starts now."""
        root = Path(context.project_path)
        filters = {option: list(run_params.get(key) or ()) for key, option in _FILTER_OPTIONS.items()}
        content = {
            "status": "running",
            "environment": environment_label(run_params.get("env")),
            "pipelines": _in_order(run_params.get("pipeline_names") or ["__default__"]),
            "command": "",
            "started_at": manifest.now(),
            "finished_at": None,
            "process": environment.this_process(),
            "env_option": run_params.get("env"),
            "filters": {option: names for option, names in filters.items() if names},
            "runtime_parameters": manifest.without_secrets(plain(run_params.get("runtime_params") or {})),
            "load_versions": dict(run_params.get("load_versions") or {}),
            "parameters": manifest.without_secrets(plain(context.params)),
            "code": environment.code_state(root, package_folder()),
            "packages": environment.packages(),
            "platform": environment.platform_state(),
            "decision_rule": declared_rule(plain(context.params)),
            "nodes": [_described(node) for node in pipeline.nodes],
            "inputs": {},
            "outputs": {},
            "calls": {"first": None, "last": None},
            "instruments": {},
            "failure": None,
        }
        run = manifest.create(
            data_folder(root, context.config_loader) / "runs", run_params["run_id"], content
        )
        record = cls(run, root, pipeline, catalog, run_params)
        record._pin({})
        return record

    def read_inputs(self) -> None:
        """Write down which version of each input the run reads, after verifying it."""
        inputs = {}
        for name in sorted(self._pipeline.inputs()):
            described = self._described_dataset(name, saved=False)
            if described is not None:
                inputs[name] = described
        self.run.content["inputs"] = inputs
        self._pin({name: item["version"] for name, item in inputs.items() if item.get("version")})
        self.run.save()

    def end(self, status: str, error: BaseException | None) -> None:
        """Read the disk and write how the run ended."""
        self.is_open = False
        self.run.release()
        content = self.run.content
        content["outputs"] = self._outputs()
        content["platform"] = environment.platform_state()
        content["calls"] = self._call_dates()
        content["instruments"] = self._instruments()
        content["source_files"] = self._source_files()
        content["finished_at"] = manifest.now()
        content["status"] = status
        if error is not None:
            content["failure"] = self._failure(error)
        self.run.save()

    def _pin(self, load_versions: dict[str, str]) -> None:
        content = self.run.content
        content["command"] = manifest.command_of(
            content["env_option"],
            content["pipelines"],
            content["filters"],
            content["runtime_parameters"],
            {**load_versions, **content["load_versions"]},
        )

    def _outputs(self) -> dict[str, Any]:
        outputs = {}
        for node in self._pipeline.nodes:
            for name in node.outputs:
                try:
                    described = self._described_dataset(name, saved=True)
                except (ChecksumError, OSError) as error:
                    _logger.error("The output %s could not be read back: %s", name, error)
                    continue
                if described is not None:
                    outputs[name] = described
        return outputs

    def _described_dataset(self, name: str, saved: bool) -> dict[str, Any] | None:
        from judge_calibration.runs import artifacts

        if is_parameter(name):
            return None
        dataset = self._catalog.get(name)
        if hasattr(dataset, "artifact_path"):
            path = dataset.artifact_path(saved=saved)
            return None if path is None else artifacts.describe(path, self._root)
        if hasattr(dataset, "input_sha256"):
            path = Path(str(getattr(dataset, "_filepath", None) or dataset._path))
            return {
                "path": files.relative(path, self._root),
                "version": None,
                "sha256": dataset.input_sha256(),
            }
        return None

    def _path_of(self, name: str) -> Path | None:
        item = self.run.content["outputs"].get(name) or self.run.content["inputs"].get(name)
        return self._root / item["path"] if item else None

    def _call_dates(self) -> dict[str, str | None]:
        """Return when the first call started and the last one ended, over all tables of attempts."""
        import pandas as pd

        starts: list[str] = []
        ends: list[str] = []
        for name in self.run.content["outputs"]:
            path = self._path_of(name)
            if path is not None and (name == "attempts" or name.endswith("_attempts")):
                frame = pd.read_parquet(path)
                starts += [str(v) for v in frame.get("started_at", pd.Series(dtype="str")).dropna()]
                ends += [str(v) for v in frame.get("finished_at", pd.Series(dtype="str")).dropna()]
        return {"first": min(starts, default=None), "last": max(ends, default=None)}

    def _instruments(self) -> Any:
        import json

        path = self._path_of("instruments")
        return {} if path is None else json.loads(path.read_text(encoding="utf-8"))

    def _source_files(self) -> dict[str, str]:
        """Return the SHA-256 of the files that parameters name, as the table ``source_files`` lists them."""
        import pandas as pd

        path = self._path_of("source_files")
        if path is None:
            return {}
        frame = pd.read_parquet(path)
        if not {"path", "sha256"} <= set(frame.columns):
            return {}
        return dict(zip(frame["path"].astype(str), frame["sha256"].astype(str), strict=True))

    def _failure(self, error: BaseException) -> dict[str, Any]:
        node, dataset = failing_place(error)
        text = "".join(traceback.format_exception(error))
        files.write_bytes(self.run.folder / TRACEBACK, text.encode("utf-8", errors="backslashreplace"))
        return {
            "node": node.name if node is not None else None,
            "dataset": dataset,
            "where": _place(node, dataset),
            "error": type(error).__name__,
            "message": explain(error),
            "traceback": files.relative(self.run.folder / TRACEBACK, self._root),
        }


def declared_rule(parameters: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the name and hash of the decision rule that the parameters hold; None without one.

    It is written down when a run starts, so that a gate can tell a rule that came before the verdicts from
    one that came after.
    """
    values = (parameters.get("reporting") or {}).get("rule")
    if not isinstance(values, Mapping):
        return None
    from judge_calibration.metrics.decision_rule import read_rule, rule_hash

    rule = read_rule(values)
    return {"name": rule.name, "sha256": rule_hash(rule)}


def _in_order(names: Iterable[str]) -> list[str]:
    """Return the names of pipelines in the registry's order: Kedro hands them over as a set."""
    from kedro.framework.project import pipelines

    wanted = set(names)
    return [name for name in pipelines if name in wanted]


def _place(node: Node | None, dataset: str | None) -> str:
    if node is None:
        return "before the first node"
    return f"node {node.name}" + (f", dataset {dataset}" if dataset else "")


def failing_place(error: BaseException) -> tuple[Node | None, str | None]:
    """Return the node in which an error arose and, if it arose while loading or saving, the dataset.

    Kedro tells a hook the node only for errors in its function; its task's frames tell it for all.
    """
    trace: TracebackType | None = error.__traceback__
    node, dataset = None, None
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__") == "kedro.runner.task":
            found = frame.f_locals.get("node")
            node = found if found is not None else node
        elif frame.f_globals.get("__name__") == "kedro.io.data_catalog" and node is not None:
            dataset = frame.f_locals.get("ds_name", dataset)
        trace = trace.tb_next
    return node, dataset


def plain(value: Any) -> Any:
    """Return parameters as JSON knows them, pydantic models unfolded with their defaults."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, Iterable):
        return [plain(item) for item in value]
    return str(value)


def _described(node: Node) -> dict[str, Any]:
    function = node.func
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    function = inspect.unwrap(function)
    return {
        "name": node.name,
        "function": f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}",
        "module": function.__module__,
        "parameters": sorted(n.removeprefix("params:") for n in node.inputs if is_parameter(n)),
        "inputs": [n for n in node.inputs if not is_parameter(n)],
        "outputs": list(node.outputs),
    }
