"""A Kedro project of three small pipelines that uses the real datasets, hooks, settings and commands."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

PACKAGE = "small_project"

FILES = {
    "pyproject.toml": f"""
        [tool.kedro]
        package_name = "{PACKAGE}"
        project_name = "small"
        kedro_init_version = "1.7.0"
        source_dir = "src"
        """,
    ".telemetry": "consent: false\n",
    "conf/local/.gitkeep": "",
    "conf/base/globals.yml": "data: data\n",
    "conf/base/data_prep/parameters.yml": "data_prep: {rows: 3}\n",
    "conf/base/judging/parameters.yml": """
        judging: {repetitions: 2, fail: '', block: '', asking: {offline: false}}
        """,
    "conf/other/judging/parameters.yml": "judging: {repetitions: 4}\n",
    "conf/base/catalog.yml": """
        _table: &table
          type: judge_calibration.datasets.Parquet
          versioned: true
        bank:
          type: judge_calibration.datasets.Folder
          path: ${globals:data}/01_raw/bank
        pairs:
          <<: *table
          filepath: ${globals:data}/03_primary/pairs.parquet
          csv: true
        verdicts:
          <<: *table
          filepath: ${globals:data}/04_feature/verdicts.parquet
          validator: small_project.nodes.check_verdicts
        attempts:
          <<: *table
          filepath: ${globals:data}/04_feature/attempts.parquet
        report:
          type: judge_calibration.datasets.Html
          filepath: ${globals:data}/08_reporting/report.html
          versioned: true
        judge_card:
          type: judge_calibration.datasets.Json
          filepath: ${globals:data}/08_reporting/judge_card.json
          versioned: true
        """,
    "data/01_raw/bank/one.yml": "a: 1\n",
    f"src/{PACKAGE}/__init__.py": "",
    f"src/{PACKAGE}/settings.py": "from judge_calibration.settings import *  # noqa: F403\n",
    f"src/{PACKAGE}/wording.py": 'TITLE = "Report"\n',
    f"src/{PACKAGE}/nodes.py": """
        import asyncio
        import datetime
        import signal
        import pandas as pd
        from judge_calibration.errors import InterruptedRunError
        from judge_calibration.options.base import Options
        from pydantic import Field

        class DataPrepOptions(Options):
            rows: int = Field(ge=1)

        class AskingOptions(Options):
            offline: bool = False
            store: str = "data/calls"

        class JudgingOptions(Options):
            repetitions: int = Field(ge=1)
            fail: str
            block: str
            asking: AskingOptions

        def check_verdicts(frame):
            if (frame["verdict"] == "?").any():
                raise ValueError("verdicts hold '?'")

        def make_pairs(bank: dict, options: DataPrepOptions) -> pd.DataFrame:
            names = [str(i) for i in range(options.rows)]
            return pd.DataFrame({"pair_id": names, "text": list(bank.values())[0]})

        async def listen(path):
            stop = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
            open(path).close()
            await stop.wait()
            raise InterruptedRunError("Stopped in order.")

        def judge(pairs: pd.DataFrame, options: JudgingOptions):
            if options.fail == "listen":
                asyncio.run(listen(options.block))
            if options.block:
                with open(options.block) as fifo:
                    fifo.read()
            if options.fail == "bug":
                raise KeyError("a bug")
            if options.fail == "disk":
                raise OSError(28, "No space left on device", "calls.sqlite")
            if options.fail == "ctrl-c":
                raise KeyboardInterrupt
            letter = "?" if options.fail == "validator" else "A"
            verdicts = pd.DataFrame(
                {"pair_id": pairs.pair_id, "verdict": letter, "repetitions": options.repetitions}
            )
            now = datetime.datetime.now().isoformat()
            return verdicts, pd.DataFrame({"started_at": [now], "finished_at": [now]})

        def report(verdicts: pd.DataFrame):
            from small_project.wording import TITLE
            if TITLE == "broken":
                raise ValueError("the report is broken")
            return f"<h1>{TITLE}</h1>{len(verdicts)}", {"n": len(verdicts)}
        """,
    f"src/{PACKAGE}/pipeline_registry.py": """
        from kedro.pipeline import Node, Pipeline
        from small_project import nodes

        def register_pipelines():
            parts = {
                "data_prep": Pipeline(
                    [Node(nodes.make_pairs, ["bank", "params:data_prep"], "pairs", name="make_pairs")]
                ),
                "judging": Pipeline(
                    [Node(nodes.judge, ["pairs", "params:judging"], ["verdicts", "attempts"], name="judge")]
                ),
                "reporting": Pipeline(
                    [Node(nodes.report, "verdicts", ["report", "judge_card"], name="report")]
                ),
            }
            return {**parts, "__default__": sum(parts.values(), Pipeline([]))}
        """,
}


@dataclass
class SmallProject:
    """A project folder and ways to use it."""

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

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start `kedro` as a process of its own."""
        environment = {**os.environ, "KEDRO_DISABLE_TELEMETRY": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "kedro", *arguments],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def manifests(self) -> list[dict[str, Any]]:
        """Return all manifests, the oldest first."""
        from judge_calibration.runs.manifest import read_all

        return [run.content for run in read_all(self.runs)]

    def last(self) -> dict[str, Any]:
        return self.manifests()[-1]

    def file(self, content: dict[str, Any], name: str) -> Path:
        return self.root / content["outputs"][name]["path"]

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallProject]:
    """A fresh small project, bootstrapped in this process and forgotten afterwards."""
    from kedro.framework import project as kedro_project
    from kedro.framework.startup import bootstrap_project

    small = SmallProject(tmp_path / "small")
    for name, text in FILES.items():
        small.write(name, text)
    monkeypatch.chdir(small.root)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(kedro_project, "PACKAGE_NAME", None)
    _forget()
    bootstrap_project(small.root)
    yield small
    _forget()


def _forget() -> None:
    for name in [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A named pipe: a node that opens it waits until a test opens its other end."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


@pytest.fixture
def flip() -> Callable[[Path], None]:
    """A function that changes one bit in the middle of a file."""

    def flip_bit(path: Path) -> None:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 1
        path.write_bytes(raw)

    return flip_bit
