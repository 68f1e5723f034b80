"""Memory does not grow with the plan."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_hundred_thousand_calls_take_the_memory_of_ten_thousand(project_path):
    peaks = []
    for calls in (10_000, 100_000):
        done = subprocess.run(
            [sys.executable, str(project_path / "benchmarks" / "bench_store.py"), "--one", str(calls)],
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        peaks.append(json.loads(done.stdout.strip().splitlines()[-1])["peak_mb"])
    assert peaks[1] <= 1.2 * peaks[0]
