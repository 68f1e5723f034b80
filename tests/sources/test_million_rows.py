"""A million rows in under 60 s of processor time and 2 GB, measured in a process of its own."""

import csv
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = 1_000_000
MEASURE = """
import resource, sys, time
from judge_calibration.sources import SourceFile, read_logs, read_pairs
read = read_pairs if sys.argv[1] == "pairs" else read_logs
started = time.process_time()
result = read([SourceFile(path=sys.argv[2], layout=sys.argv[1], set={"reference_kind": "human"})])
rows = len(result.pairs) if sys.argv[1] == "pairs" else len(result.verdicts)
print(rows, time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def measure(layout: str, path: Path) -> tuple[int, float, float]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, layout, str(path)], capture_output=True, text=True, check=True
    )
    rows, seconds, gigabytes = done.stdout.split()
    return int(rows), float(seconds), float(gigabytes)


@pytest.mark.slow
def test_a_million_pairs(tmp_path):
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=6)) for _ in range(500)]
    path = tmp_path / "pairs.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["pair_id", "question", "response_a", "response_b", "reference_label", "domain"])
        for i in range(ROWS):
            texts = [" ".join(words[(i * step + k) % 500] for k in range(20)) for step in (1, 3, 7)]
            writer.writerow([f"p{i}", f"{i // 3} {texts[0]}", texts[1], texts[2], "AB"[i % 2], f"d{i % 17}"])
    rows, seconds, gigabytes = measure("pairs", path)
    assert rows == ROWS
    assert seconds < 60
    assert gigabytes < 2


@pytest.mark.slow
def test_a_million_verdicts(tmp_path):
    path = tmp_path / "verdicts.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["pair_id", "judge_id", "order", "verdict", "repetition", "reference_label"])
        for i in range(ROWS):
            writer.writerow(
                [f"p{i // 20}", f"j{i % 2}", ("BA", "AB")[i // 2 % 2], "AB"[i % 2], i // 4 % 5, "A"]
            )
    rows, seconds, gigabytes = measure("verdicts", path)
    assert rows == ROWS
    assert seconds < 60
    assert gigabytes < 2
