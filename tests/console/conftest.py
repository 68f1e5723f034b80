"""The real pipelines and configuration over a folder of its own, with hand-made results of earlier runs."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))

from judge_calibration.runs import artifacts, files, manifest
from judge_calibration.text import canonical_json

PLACES = {
    "pairs": "03_primary",
    "verdicts": "04_feature",
    "judged_verdicts": "04_feature",
    "labels": "04_feature",
}


@dataclass
class ToolProject:
    """A project folder and ways to fill and use it."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def runs(self) -> Path:
        return self.data / "runs"

    def kedro(self, *arguments: str) -> Result:
        """Run a command of ours inside this process."""
        from importlib import import_module

        command = import_module(f"judge_calibration.console.{arguments[0]}").command
        return CliRunner().invoke(command, list(arguments[1:]))

    def write(self, name: str, value: Any) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else canonical_json(value), encoding="utf-8")

    def add_run(
        self,
        run_id: str,
        tables: Mapping[str, pd.DataFrame],
        environment: str = "base",
        rule: str | None = None,
        calls: tuple[str | None, str | None] = (None, None),
        status: str = "finished",
    ) -> None:
        """Put a run on the disk as if it had been run: its tables, and its manifest."""
        outputs = {}
        for name, frame in tables.items():
            path = self.data / PLACES[name] / f"{name}.parquet" / run_id / f"{name}.parquet"
            files.write_checked(path, lambda file, frame=frame: frame.to_parquet(file))
            outputs[name] = artifacts.describe(path, self.root)
        nodes = [
            {"name": "ask_judges", "outputs": ["answers"], "inputs": [], "parameters": [], "module": "m"}
        ]
        content = {
            "status": status,
            "environment": environment,
            "started_at": run_id.replace(".", ":", 2),
            "command": "kedro run",
            "decision_rule": None if rule is None else {"name": "rule", "sha256": rule},
            "calls": {"first": calls[0], "last": calls[1]},
            "nodes": nodes,
            "inputs": {},
            "outputs": outputs,
        }
        run = manifest.create(self.runs, run_id, content)
        run.release()
        run.save()

    def files_below(self, name: str) -> list[Path]:
        return sorted(path for path in (self.data / name).rglob("*") if path.is_file())


@pytest.fixture
def tool_project(
    tmp_path: Path, project_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ToolProject]:
    """A fresh folder with the repository's configuration and a bank of three tasks."""
    from kedro.framework import project as kedro_project
    from kedro.framework.startup import bootstrap_project

    made = ToolProject(tmp_path / "tools")
    made.root.mkdir()
    shutil.copytree(project_path / "conf", made.root / "conf")
    shutil.copytree(project_path / "tests" / "bank" / "small_bank", made.data / "01_raw" / "pair_bank")
    shutil.copytree(project_path / "data" / "01_raw" / "attributes", made.data / "01_raw" / "attributes")
    (made.root / "src").mkdir()
    made.write(
        "pyproject.toml",
        '[tool.kedro]\npackage_name = "judge_calibration"\nproject_name = "tools"\n'
        'kedro_init_version = "1.7.0"\nsource_dir = "src"\n',
    )
    made.write(".telemetry", "consent: false\n")
    monkeypatch.chdir(made.root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(kedro_project, "PACKAGE_NAME", None)
    monkeypatch.delenv("KEDRO_ENV", raising=False)
    before = dict(os.environ)
    bootstrap_project(made.root)
    yield made
    for name in set(os.environ) - set(before):
        del os.environ[name]
