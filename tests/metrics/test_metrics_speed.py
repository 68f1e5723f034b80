"""The targets for time and memory, measured in a process of its own (see benchmarks/bench_metrics.py)."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_million_verdicts_stay_below_one_gigabyte_and_ten_seconds_of_cpu(project_path):
    done = subprocess.run(
        [sys.executable, str(project_path / "benchmarks" / "bench_metrics.py"), "--million"],
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    found = json.loads(done.stdout)
    assert found["verdicts"] == 1_000_000
    assert found["peak_mib"] < 1024
    # CPU time, since other work on the machine stretches the wall time.
    assert found["cpu"] < 10
