"""Time the variance components of 60,000 verdicts: exact strata, the general solver, and other software.

Run ``python benchmarks/bench_variance.py``; ``--check`` exits with 1 if a target is missed, ``--lme4`` fits
the same data with R's lme4 (needs Rscript with lme4 and jsonlite; takes a minute).

The design is that of the audit: 100 pairs x 6 judges x 5 formats x 2 orders x 10 repetitions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.gstudy import FACETS, MAIN_TERMS, gstudy
from judge_calibration.metrics.reml_balanced import fit_balanced, strata_of, subsets
from judge_calibration.metrics.reml_general import cell_table, fit_general
from judge_calibration.options.variance import VarianceOptions

LEVELS, REPETITIONS = (100, 6, 5, 2), 10


class Measured(NamedTuple):
    """One line of the table; `target` in seconds, None if there is none."""

    what: str
    seconds: float
    target: float | None

    @property
    def met(self) -> bool:
        """Whether the target is met, or there is none."""
        return self.target is None or self.seconds <= self.target


def best_of(times: int, call: Callable[[], object]) -> float:
    """Return the shortest of several wall times, in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def made_verdicts(seed: int = 1) -> tuple[pd.DataFrame, list[np.ndarray], np.ndarray]:
    """Return a verdicts table, the level of each row in each facet, and the directions."""
    rng = np.random.default_rng(seed)
    shape = (*LEVELS, REPETITIONS)
    latent = rng.normal(size=(100, 1, 1, 1, 1)) + 0.8 * rng.normal(size=(100, 6, 1, 1, 1))
    bias = np.linspace(-0.6, 0.6, 6)[None, :, None, None, None] * np.array([1, -1])[None, None, None, :, None]
    y = (latent + bias + 0.5 * rng.normal(size=shape) > 0).astype(float)
    index = np.indices(shape).reshape(5, -1)
    frame = pd.DataFrame(
        {
            "pair_id": pd.Series([f"pair-{i:04d}" for i in index[0]], dtype="str"),
            "judge_id": pd.Series([f"judge-{i}" for i in index[1]], dtype="str"),
            "protocol": pd.Series([f"format-{i}" for i in index[2]], dtype="str"),
            "order": pd.Series(np.array(["AB", "BA"])[index[3]], dtype="str"),
            "repetition": pd.array(index[4], dtype="Int64"),
            "temperature": 0.0,
            "verdict": pd.Series(np.where(y.ravel() > 0, "A", "B"), dtype="str"),
        }
    )
    return frame, list(index[:4]), y.ravel()


def lme4_seconds(codes: list[np.ndarray], y: np.ndarray) -> float:
    """Return the wall time of lme4 on the main model, started cold, its own search only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        pd.DataFrame(dict(zip(FACETS, codes, strict=True)) | {"y": y}).to_csv(path, index=False)
        script = Path(folder) / "time.R"
        random = " + ".join(f"(1|{':'.join(term)})" for term in MAIN_TERMS)
        script.write_text(
            "suppressPackageStartupMessages(library(lme4))\n"
            f"d <- read.csv('{path}')\n"
            f"for (f in c({', '.join(repr(f) for f in FACETS)})) d[[f]] <- factor(d[[f]])\n"
            f"s <- system.time(suppressMessages(lmer(y ~ 1 + {random}, d)))\n"
            "cat(s[['elapsed']])\n"
        )
        done = subprocess.run(["Rscript", str(script)], check=True, capture_output=True, text=True)
        return float(done.stdout)


def measure(with_lme4: bool) -> list[Measured]:
    """Return all lines of the table."""
    frame, codes, y = made_verdicts()
    table = cell_table(codes, LEVELS, y, FACETS)
    every = subsets(FACETS)
    once = VarianceOptions(models=("main",), orders=("random",))

    def strata(model: list[tuple[str, ...]]) -> object:
        found = cell_table(codes, LEVELS, y, FACETS)
        return fit_balanced(strata_of(found.means, FACETS, REPETITIONS, found.within_squares), model)

    rng = np.random.default_rng(2)
    kept = rng.random(len(y)) > 0.05
    holes = cell_table([code[kept] for code in codes], LEVELS, y[kept], FACETS)
    lines = [
        Measured("exact strata, main model, from codes", best_of(9, lambda: strata(list(MAIN_TERMS))), 0.020),
        Measured("exact strata, every interaction, from codes", best_of(9, lambda: strata(every)), 0.020),
        Measured(
            "gstudy from the verdicts table, main model, with intervals",
            best_of(9, lambda: gstudy(frame, options=once)),
            None,
        ),
        Measured(
            "general solver, balanced data, main model",
            best_of(3, lambda: fit_general(table, list(MAIN_TERMS))),
            None,
        ),
        Measured(
            "general solver, 5 % missing, main model",
            best_of(3, lambda: fit_general(holes, list(MAIN_TERMS))),
            None,
        ),
        Measured(
            "general solver, 5 % missing, every interaction",
            best_of(3, lambda: fit_general(holes, every)),
            None,
        ),
    ]
    if with_lme4:
        lines.append(Measured("lme4, main model", lme4_seconds(codes, y), None))
    return lines


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a checked target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--lme4", action="store_true", help="time R's lme4 on the same data")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(arguments)
    lines = measure(chosen.lme4)
    if chosen.json:
        print(json.dumps([line._asdict() for line in lines], indent=1))
    else:
        print("60,000 verdicts: 100 pairs x 6 judges x 5 formats x 2 orders x 10 repetitions\n")
        print("| what | seconds | target |\n|---|---|---|")
        for line in lines:
            target = "" if line.target is None else f"{line.target:.3f}"
            print(f"| {line.what} | {line.seconds:.4f} | {target}{'' if line.met else ' MISSED'} |")
    return int(chosen.check and not all(line.met for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
