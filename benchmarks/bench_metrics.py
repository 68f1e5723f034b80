"""Time the statistics against their targets: one table, ratios taken within one run.

Run ``python benchmarks/bench_metrics.py``; ``--check`` exits with 1 if a target is missed, ``--quick`` leaves
the table of a million verdicts out.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.bootstrap import cluster_bootstrap
from judge_calibration.metrics.paired_differences import paired_differences
from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.reporting import ReportingOptions


class Measured(NamedTuple):
    """One line of the table."""

    what: str
    found: str
    target: str
    met: bool


def best_of(times: int, call: Callable[[], object]) -> float:
    """Return the shortest of several wall times, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def loop_bootstrap(frame: pd.DataFrame, resamples: int, seed: int) -> np.ndarray:
    """Resample clusters as the calibration lab's published function does: one frame a resample."""
    rng = np.random.default_rng(seed)
    ids = frame["base_id"].unique()
    values = []
    for _ in range(resamples):
        drawn = rng.choice(ids, len(ids), replace=True)
        rows = pd.concat([frame[frame["base_id"].eq(name)] for name in drawn], ignore_index=True)
        values.append(rows["right"].mean())
    return np.quantile(values, [0.025, 0.975])


def made_verdicts(
    n_pairs: int, n_clusters: int, repetitions: int, cells: list[tuple[str, str]], failing: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a full design of verdicts: mostly right, noisy, drawn to the first answer, some malformed."""
    rng = np.random.default_rng(0)
    base = np.arange(n_pairs) * n_clusters // n_pairs
    kinds = ["length", "style", "citation", "correctness", "identity"]
    pairs = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(n_pairs)],
            "base_id": [f"b{b}" for b in base],
            "source": "made",
            "domain": np.array(["evidence", "reasoning", "procedure"])[base % 3],
            "difficulty": np.array(["easy", "medium", "hard"])[base // 3 % 3],
            "manipulation": np.array(kinds)[np.arange(n_pairs) % 5],
            "reference_label": rng.choice(["A", "B"], n_pairs),
        }
    )
    grid = np.meshgrid(
        np.arange(len(cells)), np.arange(n_pairs), [0, 1], np.arange(repetitions), indexing="ij"
    )
    cell, pair, order, repetition = (axis.ravel() for axis in grid)
    n = len(cell)
    said = np.where(
        rng.random(n) < 0.8, pairs["reference_label"].to_numpy()[pair], rng.choice(["A", "B", "TIE"], n)
    )
    said = np.where(rng.random(n) < 0.1, np.array(["A", "B"])[order], said)
    failed = rng.random(n) < failing
    verdicts = pd.DataFrame(
        {
            "pair_id": pairs["pair_id"].to_numpy()[pair],
            "judge_id": np.array([judge for judge, _ in cells])[cell],
            "instrument_id": np.array(["".join(names) for names in cells])[cell],
            "protocol": np.array([protocol for _, protocol in cells])[cell],
            "constraint": "none",
            "order": np.array(["AB", "BA"])[order],
            "temperature": 0.0,
            "repetition": repetition,
            "outcome": np.where(failed, "malformed", "valid"),
            "verdict": pd.Series(said, dtype="str").where(~failed),
        }
    )
    for column in ("pair_id", "judge_id", "instrument_id", "protocol", "order", "outcome"):
        verdicts[column] = verdicts[column].astype("str")
    return verdicts, pairs


def bench_bootstrap() -> Measured:
    """10,000 resamples of 560 pairs in 120 clusters, against the published loop."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"base_id": [f"b{i * 120 // 560}" for i in range(560)]})
    frame["right"] = rng.random(560) < 0.8
    ones = np.ones(len(frame))
    timed = 30
    loop = best_of(1, lambda: loop_bootstrap(frame, timed, 7)) * 10_000 / timed
    ours = best_of(5, lambda: cluster_bootstrap(frame["right"], ones, frame["base_id"], 10_000, 7))
    ratio = loop / ours
    found = f"{1000 * ours:.1f} ms; the loop {loop:.0f} s (from {timed} resamples); {ratio:,.0f} times"
    return Measured("Cluster bootstrap, 10,000 resamples", found, "10,000 times", ratio >= 10_000)


def bench_configurations() -> Measured:
    """All statistics and slices of three configurations, with paired differences."""
    cells = [("judge", "holistic"), ("judge", "decomposed"), ("judge", "reference_first")]
    verdicts, pairs = made_verdicts(560, 120, 3, cells, 0.01)
    options = ReportingOptions()

    def both() -> None:
        trust_table(verdicts, pairs, options)
        paired_differences(verdicts, pairs, options)

    seconds = best_of(3, both)
    used = time.process_time()
    both()
    used = time.process_time() - used
    found = f"{seconds:.2f} s ({used:.2f} s of CPU)"
    return Measured("All statistics and slices, 3 configurations, differences", found, "2 s", seconds < 2)


def million() -> None:
    """Print the time and the peak memory of the trust table over a million verdicts, as JSON."""
    cells = [(f"judge{i}", "direct") for i in range(10)]
    verdicts, pairs = made_verdicts(5_000, 1_000, 10, cells, 0.01)
    wall, used = time.perf_counter(), time.process_time()
    table = trust_table(verdicts, pairs, ReportingOptions())
    print(
        json.dumps(
            {
                "verdicts": len(verdicts),
                "rows": len(table),
                "wall": time.perf_counter() - wall,
                "cpu": time.process_time() - used,
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


def bench_million() -> Measured:
    """The trust table over a million verdicts, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--million"], check=True, capture_output=True, text=True, env=os.environ
    )
    found = json.loads(done.stdout)
    text = f"{found['wall']:.1f} s ({found['cpu']:.1f} s of CPU), {found['peak_mib']:.0f} MiB"
    met = found["wall"] < 10 and found["peak_mib"] < 1024
    return Measured(f"Trust table, {found['verdicts']:,} verdicts", text, "10 s and 1 GB", met)


def main() -> int:
    """Print the table; return 1 if a target was missed and that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--million", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.million:
        million()
        return 0
    benches = [bench_bootstrap, bench_configurations]
    if not arguments.quick:
        benches.append(bench_million)
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    print(f"{platform.machine()}, {os.cpu_count()} cores, {versions}\n")
    print("| What | Found | Target | Met |\n|---|---|---|---|")
    rows = []
    for bench in benches:
        row = bench()
        rows.append(row)
        print(f"| {row.what} | {row.found} | {row.target} | {'yes' if row.met else 'no'} |", flush=True)
    return int(arguments.check and not all(row.met for row in rows))


if __name__ == "__main__":
    sys.exit(main())
