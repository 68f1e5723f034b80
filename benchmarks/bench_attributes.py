"""Time the attribute analysis at the full scale of JudgeProfile: 182.7 million SIMULATED reads, from files.

``python benchmarks/bench_attributes.py`` prints one table; ``--scales 1`` leaves the growth out,
``--no-dask`` the workers. pandas counts fewer items (``--items-pandas``) by long tables, scaled by items,
which is said; polars likewise where ``--polars PYTHON`` names an interpreter that has it. Seconds are wall
time, with the CPU seconds beside: on a machine that does other work too, they are what can be compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from judge_calibration.datasets.tables import parquet_bytes
from judge_calibration.profiles.agreement import agreement_by_judge_pair
from judge_calibration.profiles.attribute_table import attribute_table
from judge_calibration.profiles.chunked import count_files, read_codes
from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.correlation import identical_preference_null
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.item_agreement import camp_agreement, item_agreement
from judge_calibration.profiles.pair_counts import count_pairs
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.storage import pack, unpack_stable
from judge_calibration.profiles.weights import fit_weights

ITEMS, JUDGES, ATTRIBUTES = 50_013, 21, 87
NAMES = [f"attribute_{k + 1:02d}" for k in range(ATTRIBUTES)]

POLARS = """
import sys, time, polars as pl
frame = pl.read_parquet(sys.argv[1])
start = time.process_time()
both = frame.join(frame, on=["item", "attribute"], suffix="_2").filter(pl.col("judge") < pl.col("judge_2"))
both = both.with_columns(
    same=pl.col("direction") == pl.col("direction_2"),
    stratum=pl.col("verdict") * pl.col("verdict_2"),
)
both.group_by("judge", "judge_2", "stratum").agg(pl.len(), pl.col("same").sum())
both.group_by("item", "judge", "judge_2").agg(pl.len(), pl.col("same").sum())
print(time.process_time() - start)
"""


def write_panel(folder: Path, items: int) -> int:
    """Write one packed file a judge and the verdicts; return the bytes of the packed files."""
    panel = simulate_panel(
        0, JUDGES, items, ATTRIBUTES, 17, strength=0.4, attribute_spread=0.5, position_share=0.15,
        resolution=(0.3, 0.8), biased_judges=2, unresolved_share=0.03,
    )  # fmt: skip
    np.save(folder / "verdicts.npy", panel.verdicts)
    ids = [f"item-{i:06d}" for i in range(items)]
    size = 0
    for j in range(JUDGES):
        table = pd.DataFrame(pack(panel.first[j], panel.second[j]), columns=NAMES)
        table.insert(0, "pair_id", ids)
        content = parquet_bytes(table, 10_000)
        (folder / f"judge-{j + 1:02d}.parquet").write_bytes(content)
        size += len(content)
    return size


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("judge-*.parquet"))


def tables_from_files(folder: Path) -> None:
    """Make the agreement tables: pairs x strata with kappa, coverage, attributes, and per-item tables."""
    codes = read_codes(files_of(folder), NAMES)
    verdicts = np.load(folder / "verdicts.npy")
    judges = tuple(f"judge-{j + 1:02d}" for j in range(JUDGES))
    counts = code_counts(codes)
    coverage_table(counts, judges, codes.shape[1])
    attribute_table(counts, tuple(NAMES), codes.shape[1])
    agreement_by_judge_pair(count_pairs(codes, verdicts), judges, ATTRIBUTES)
    item_agreement(codes)
    camp_agreement(codes, verdicts)


def profiles_and_null(folder: Path) -> None:
    """Fit the weight profiles of 19 judges, and the null with 20 repetitions."""
    stable = unpack_stable(read_codes(files_of(folder)[:19], NAMES))
    verdicts = np.load(folder / "verdicts.npy")[:19]
    weights = np.stack([fit_weights(stable[j], verdicts[j]).coefficients for j in range(19)])
    identical_preference_null(stable, verdicts, 1, 20, weights=weights)


def by_ranges(folder: Path, workers: int) -> None:
    """Count ranges of items here (0 workers) or under Dask, and say what came of it."""
    paths, verdicts = files_of(folder), np.load(folder / "verdicts.npy")
    if not workers:
        start = time.perf_counter()
        found = count_files(paths, NAMES, verdicts)
    else:
        from dask.distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            start = time.perf_counter()
            found = count_files(paths, NAMES, verdicts, client=client)
    sums = {name: float(values.sum()) for name, values in found.pairs.sums.items()}
    digest = [found.codes.sum(axis=1).tolist(), sums]
    print(json.dumps({"seconds": time.perf_counter() - start, "digest": digest}))


def long_frame(folder: Path, items: int) -> pd.DataFrame:
    """Return the stable directions of the first items as a long table."""
    stable = unpack_stable(read_codes(files_of(folder), NAMES, 0, items))
    judge, item, attribute = np.nonzero(stable)
    verdicts = np.load(folder / "verdicts.npy")
    return pd.DataFrame(
        {
            "judge": judge.astype(np.int8),
            "item": item.astype(np.int32),
            "attribute": attribute.astype(np.int8),
            "direction": stable[judge, item, attribute],
            "verdict": verdicts[judge, item],
        }
    )


def pandas_tables(frame: pd.DataFrame) -> float:
    """Count agreement by judge pair and stratum, and by item, with a merge; return the CPU seconds."""
    start = time.process_time()
    both = frame.merge(frame, on=["item", "attribute"], suffixes=("", "_2"))
    both = both[both["judge"] < both["judge_2"]]
    both = both.assign(
        same=both["direction"] == both["direction_2"], stratum=both["verdict"] * both["verdict_2"]
    )
    both.groupby(["judge", "judge_2", "stratum"])["same"].agg(["size", "sum"])
    both.groupby(["item", "judge", "judge_2"])["same"].agg(["size", "sum"])
    return time.process_time() - start


def measured(part: str, folder: Path) -> tuple[float, float, float]:
    """Run a part in a process of its own; return its wall and CPU seconds and peak memory in MiB."""
    command = [sys.executable, __file__, "--one", part, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return found["seconds"], found["cpu"], found["mib"]


def one(part: str, folder: Path) -> None:
    """Run one part and print what it took (imports left out)."""
    start, used = time.perf_counter(), time.process_time()
    {"tables": tables_from_files, "profiles": profiles_and_null}[part](folder)
    took, used = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": took, "cpu": used, "mib": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--items-pandas", type=int, default=500)
    parser.add_argument("--polars", help="an interpreter that has polars")
    parser.add_argument("--no-dask", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("PART", "FOLDER"))
    parser.add_argument("--ranges", nargs=2, metavar=("FOLDER", "WORKERS"))
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]))
        return
    if options.ranges:
        by_ranges(Path(options.ranges[0]), int(options.ranges[1]))
        return
    print(f"{'what':58} {'seconds':>9} {'CPU':>8} {'MiB':>7}  limit")
    for scale in options.scales:
        items = round(scale * ITEMS)
        reads = items * JUDGES * ATTRIBUTES * 2
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            size = write_panel(folder, items)
            seconds, used, mib = measured("tables", folder)
            what = f"agreement tables, {reads:,} reads ({size / 1e6:.0f} MB)"
            limit = "10 s, 1,500 MB" if scale == 1 else ""
            print(f"{what:58} {seconds:9.2f} {used:8.2f} {mib:7.0f}  {limit}", flush=True)
            if scale == 1:
                took, cpu, mib = measured("profiles", folder)
                what = "weight profiles and null, 19 judges x 20"
                print(f"{what:58} {took:9.2f} {cpu:8.2f} {mib:7.0f}  120 s", flush=True)
                compare(folder, used, options)
            if scale == 2 and not options.no_dask:
                ranges(folder)


def compare(folder: Path, seconds: float, options: argparse.Namespace) -> None:
    """Print the CPU seconds of pandas and polars for fewer items, scaled to all, beside ours."""
    frame = long_frame(folder, options.items_pandas)
    factor = ITEMS / options.items_pandas
    times = {"pandas": pandas_tables(frame)}
    if options.polars:
        path = folder / "long.parquet"
        frame.to_parquet(path)
        done = subprocess.run(
            [options.polars, "-c", POLARS, str(path)], capture_output=True, text=True, check=True
        )
        times["polars"] = float(done.stdout)
    for name, took in times.items():
        what = f"{name}: {options.items_pandas} items {took:.2f} s, scaled by items"
        ratio = took * factor / seconds
        print(f"{what:58} {'':9} {took * factor:8.1f} {'':7}  {ratio:.0f} times ours", flush=True)


def ranges(folder: Path) -> None:
    """Print the time of ranges here and on two workers, and whether the numbers are the same."""
    found = {}
    for workers in (0, 2):
        command = [sys.executable, __file__, "--ranges", str(folder), str(workers)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[workers] = json.loads(done.stdout.strip().splitlines()[-1])
    for workers, result in found.items():
        what = f"ranges of items, {f'Dask, {workers} workers' if workers else 'one process'}"
        print(f"{what:58} {result['seconds']:9.2f}")
    print("the same numbers:", found[0]["digest"] == found[2]["digest"])


if __name__ == "__main__":
    main()
