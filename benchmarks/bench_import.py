"""A million rows imported, beside what plain readers take that check nothing.

Pairs (three texts of 20 words, an id, a label, a domain) as CSV, JSON lines and Parquet, and verdicts as CSV,
are written first. Each is then imported in a process of its own, from the file to the checked table with ids,
hashes, clusters and provenance; pandas and pyarrow read the same file into a frame of text, with no check at
all. Time is wall time and processor time; memory is the most that the process held.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 1_000_000
LIMIT_S, LIMIT_GB = 60.0, 2.0

MEASURE = """
import resource, sys, time
how, path = sys.argv[1:]
if how in ("pairs", "verdicts"):
    from judge_calibration.sources import SourceFile, read_logs, read_pairs
elif how == "pandas":
    import pandas as pd
else:
    import pyarrow.csv, pyarrow.json, pyarrow.parquet
wall, cpu = time.perf_counter(), time.process_time()
if how in ("pairs", "verdicts"):
    source = [SourceFile(path=path, layout=how, set={"reference_kind": "human"})]
    rows = len(read_pairs(source).pairs if how == "pairs" else read_logs(source).verdicts)
elif how == "pandas" and path.endswith(".csv"):
    rows = len(pd.read_csv(path, dtype="str", keep_default_na=False))
elif how == "pandas" and path.endswith(".jsonl"):
    rows = len(pd.read_json(path, lines=True, dtype=False))
elif how == "pandas":
    rows = len(pd.read_parquet(path))
elif path.endswith(".csv"):
    rows = len(pyarrow.csv.read_csv(path).to_pandas())
elif path.endswith(".jsonl"):
    rows = len(pyarrow.json.read_json(path).to_pandas())
else:
    rows = len(pyarrow.parquet.read_table(path).to_pandas())
print(rows, time.perf_counter() - wall, time.process_time() - cpu,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
"""


def pairs(rows: int) -> Iterator[dict[str, str]]:
    """Yield invented pairs; three of them share a question."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghij", k=6)) for _ in range(500)]
    for i in range(rows):
        texts = [" ".join(words[(i * step + k) % 500] for k in range(20)) for step in (1, 3, 7)]
        yield {
            "pair_id": f"p{i}", "question": f"{i // 3} {texts[0]}", "response_a": texts[1],
            "response_b": texts[2], "reference_label": "AB"[i % 2], "domain": f"d{i % 17}",
        }  # fmt: skip


def verdicts(rows: int) -> Iterator[dict[str, str]]:
    """Yield invented verdicts: two judges, both orders, five repetitions."""
    for i in range(rows):
        yield {
            "pair_id": f"p{i // 20}", "judge_id": f"j{i % 2}", "order": ("BA", "AB")[i // 2 % 2],
            "verdict": "AB"[i % 2], "repetition": str(i // 4 % 5), "reference_label": "A",
        }  # fmt: skip


def write_files(folder: Path, rows: int) -> dict[str, tuple[str, Path]]:
    """Write the files and return, by what is imported, the layout and the path."""
    found = {
        "pairs, CSV": ("pairs", folder / "pairs.csv"),
        "pairs, JSON lines": ("pairs", folder / "pairs.jsonl"),
        "pairs, Parquet": ("pairs", folder / "pairs.parquet"),
        "verdicts, CSV": ("verdicts", folder / "verdicts.csv"),
    }
    for name, records in (("pairs.csv", pairs(rows)), ("verdicts.csv", verdicts(rows))):
        with (folder / name).open("w", newline="", encoding="utf-8") as handle:
            first = next(records)
            writer = csv.DictWriter(handle, list(first))
            writer.writeheader()
            writer.writerow(first)
            writer.writerows(records)
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as handle:
        handle.writelines(json.dumps(record) + "\n" for record in pairs(rows))
    subprocess.run(
        [
            sys.executable, "-c",
            "import sys, pandas as pd; pd.read_csv(sys.argv[1], dtype='str').to_parquet(sys.argv[2])",
            str(folder / "pairs.csv"), str(folder / "pairs.parquet"),
        ],
        check=True,
    )  # fmt: skip
    return found


def measure(how: str, path: Path, rows: int) -> tuple[float, float, float]:
    """Return wall seconds, processor seconds and gigabytes of one reading in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, how, str(path)], capture_output=True, text=True, check=True
    )
    found, *figures = done.stdout.split()
    if int(found) != rows:
        raise SystemExit(f"{how} read {found} of {rows} rows of {path.name}")
    wall, cpu, gigabytes = map(float, figures)
    return wall, cpu, gigabytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--out", type=Path, help="write the figures as JSON here")
    arguments = parser.parse_args()
    results: list[dict[str, Any]] = []
    kept = True
    with tempfile.TemporaryDirectory(prefix="bench-import-") as folder:
        files = write_files(Path(folder), arguments.rows)
        print(f"{arguments.rows:,} rows; limit {LIMIT_S:g} s and {LIMIT_GB:g} GB")
        print(
            f"{'what':<20}{'MB':>7}{'wall s':>9}{'CPU s':>8}{'GB':>7}"
            f"{'pandas s':>10}{'ratio':>7}{'pyarrow s':>11}{'ratio':>7}"
        )
        for what, (layout, path) in files.items():
            ours = measure(layout, path, arguments.rows)
            pandas = measure("pandas", path, arguments.rows)
            pyarrow = measure("pyarrow", path, arguments.rows)
            size = path.stat().st_size / 1e6
            print(
                f"{what:<20}{size:>7.0f}{ours[0]:>9.1f}{ours[1]:>8.1f}{ours[2]:>7.2f}{pandas[1]:>10.1f}"
                f"{ours[1] / pandas[1]:>7.1f}{pyarrow[1]:>11.1f}{ours[1] / pyarrow[1]:>7.1f}",
                flush=True,
            )
            kept = kept and ours[0] < LIMIT_S and ours[2] < LIMIT_GB
            results.append(
                {"what": what, "megabytes": size, "ours": ours, "pandas": pandas, "pyarrow": pyarrow}
            )
    print("Ratios are of processor time: plain readers use both cores.")
    print("kept" if kept else "NOT kept")
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
