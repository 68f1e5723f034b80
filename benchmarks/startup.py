"""How long `kedro registry list` takes here and in an empty Kedro project.

Run by ``python benchmarks/startup.py [repetitions]``. Both are timed in turn, each in a process of its own,
in the same environment; the medians are compared. Exit code 1 if ours takes more than 1.5 times as long.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 1.5
PROJECT = Path(__file__).resolve().parents[1]

EMPTY = {
    "pyproject.toml": (
        '[tool.kedro]\npackage_name = "empty"\nproject_name = "empty"\nkedro_init_version = "1.7.0"\n'
    ),
    ".telemetry": "consent: false\n",
    "conf/base/.gitkeep": "",
    "conf/local/.gitkeep": "",
    "src/empty/__init__.py": "",
    "src/empty/settings.py": "",
    # As the template of `kedro new` has it.
    "src/empty/pipeline_registry.py": (
        "from kedro.framework.project import find_pipelines\n\n\n"
        "def register_pipelines():\n"
        "    pipelines = find_pipelines(raise_errors=True)\n"
        '    pipelines["__default__"] = sum(pipelines.values())\n'
        "    return pipelines\n"
    ),
    "src/empty/pipelines/__init__.py": "",
}


def seconds(folder: Path) -> float:
    """Return the wall time of one `kedro registry list`."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "kedro", "registry", "list"],
        cwd=folder,
        env={**os.environ, "KEDRO_DISABLE_TELEMETRY": "1"},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - start


def main() -> int:
    """Time both and print the medians."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name)
        for path, text in EMPTY.items():
            (empty / path).parent.mkdir(parents=True, exist_ok=True)
            (empty / path).write_text(text, encoding="utf-8")
        for folder in (PROJECT, empty):
            seconds(folder)  # byte code and file caches
        times = [(seconds(PROJECT), seconds(empty)) for _ in range(repetitions)]
    ours, base = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"this project {ours:.2f} s, an empty one {base:.2f} s: {ours / base:.2f} times (limit {LIMIT})")
    return int(ours / base > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
