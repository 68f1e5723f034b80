"""Reweighting at the scale of the JudgeProfile study, beside a plain scikit-learn loop. SIMULATED reads.

21 judges x 17 sources x (4 budgets x 10 resamples + full) = 14,637 fits on 87 attributes; 35,156 training
and 11,765 test pairs, as in the study. What is timed: all fits, the predictions on the test pairs, the
intervals of the frozen subsets' coefficients, and all tables. The loop is timed on a declared part of the
same fits and scaled.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from judge_calibration.adapt.reweighting_panel import LabelledReads, each_fit, reweight_panel

JUDGES, SOURCES, ATTRIBUTES, RESAMPLES = 21, 17, 87, 10
TRAIN, TEST = 35_156, 11_765
BUDGETS = (32, 64, 128, 256)
FITS = JUDGES * SOURCES * (len(BUDGETS) * RESAMPLES + 1)
LIMIT_S, LIMIT_MB = 90.0, 1_500.0


def simulated(seed: int, judges: int, scale: float) -> LabelledReads:
    """Draw reads: stable in 3 to 7 of 10 cells, right in 8 to 10 of 10; references by planted weights."""
    rng = np.random.default_rng(seed)
    train, test = int(TRAIN * scale), int(TEST * scale)
    items = train + test
    source = np.arange(items) % SOURCES
    truth = rng.choice(np.array([-1, 1], dtype=np.int8), size=(items, ATTRIBUTES))
    weights = rng.normal(size=(SOURCES, ATTRIBUTES))
    chance = 1 / (1 + np.exp(-(truth * weights[source]).sum(axis=1)))
    reference = np.where(rng.random(items) < chance, 1, -1).astype(np.int8)
    stable = np.empty((judges, items, ATTRIBUTES), dtype=np.int8)
    for j in range(judges):
        seen = np.where(
            rng.random((items, ATTRIBUTES), dtype=np.float32) < rng.uniform(0.8, 1.0), truth, -truth
        )
        stable[j] = seen * (rng.random((items, ATTRIBUTES), dtype=np.float32) < rng.uniform(0.3, 0.7))
    is_train = np.arange(items) < train
    rank = np.full((RESAMPLES, items), -1)
    for r in range(RESAMPLES):
        order = rng.permutation(np.flatnonzero(is_train))
        for s in range(SOURCES):
            own = order[source[order] == s]
            rank[r, own] = np.arange(len(own))
    return LabelledReads(
        tuple(f"SIMULATED-{j}" for j in range(judges)),
        tuple(map(str, range(items))),
        tuple(f"attribute_{k}" for k in range(ATTRIBUTES)),
        stable,
        (rng.random((judges, items)) < 0.6).astype(float),
        reference,
        np.array([f"source-{s:02d}" for s in source], dtype=object),
        np.array([f"b{i}" for i in range(items)], dtype=object),
        rank,
        ~is_train,
    )


def plain_loop(panel: LabelledReads, judges: int, sources: int) -> tuple[float, int, float]:
    """Time scikit-learn on some judges and sources; return seconds, fits and the largest difference."""
    from sklearn.linear_model import LogisticRegression

    here = np.isin(panel.source, panel.sources[:sources])
    panel = replace(
        panel,
        judges=panel.judges[:judges],
        items=tuple(np.array(panel.items)[here]),
        stable=panel.stable[:judges, here],
        base_right=panel.base_right[:judges, here],
        reference=panel.reference[here],
        source=panel.source[here],
        clusters=panel.clusters[here],
        rank=panel.rank[:, here],
        test=panel.test[here],
    )
    fits = list(each_fit(panel, BUDGETS))
    # Compared at a tolerance at which scikit-learn has converged; timed at its own.
    worst = 0.0
    for fit in fits[:: max(1, len(fits) // 40)]:
        x, y = panel.stable[fit.judge, fit.train].astype(float), panel.reference[fit.train]
        exact = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, fit_intercept=False).fit(x, y)
        worst = max(worst, float(np.abs(exact.coef_[0] - fit.model.fit.coefficients).max()))
    start = time.perf_counter()
    for fit in fits:
        x, y = panel.stable[fit.judge, fit.train].astype(float), panel.reference[fit.train]
        model = LogisticRegression(C=1.0, max_iter=1_000, fit_intercept=False).fit(x, y)
        model.predict(panel.stable[fit.judge, fit.test].astype(float))
    return time.perf_counter() - start, len(fits), worst


def main() -> int:
    """Print what was found beside the limits; 1 if one is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop-judges", type=int, default=2, help="judges in the scikit-learn loop")
    parser.add_argument("--loop-sources", type=int, default=2, help="sources in the scikit-learn loop")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the study's pairs")
    chosen = parser.parse_args()
    panel = simulated(1, JUDGES, chosen.scale)
    start, cpu = time.perf_counter(), time.process_time()
    found = reweight_panel(panel, BUDGETS)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"fits: {len(found.curves):,} of {FITS:,}; undefined: {int(found.curves['undefined'].notna().sum())}"
    )
    print(f"reweighting: {seconds:.1f} s (CPU {cpu:.1f} s), limit {LIMIT_S:.0f} s")
    print(f"peak memory: {peak:,.0f} MiB, limit {LIMIT_MB:,.0f} MiB")
    with threadpool_limits(limits=1):
        loop, n, worst = plain_loop(panel, chosen.loop_judges, chosen.loop_sources)
    scaled = loop / n * FITS
    print(
        f"scikit-learn loop: {loop:.1f} s for {n:,} fits ({chosen.loop_judges} judges x "
        f"{chosen.loop_sources} sources, one thread), {scaled:,.0f} s for all: {scaled / seconds:.1f} times"
    )
    print(f"largest difference of a coefficient: {worst:.1e} (limit 1e-4)")
    kept = seconds < LIMIT_S and peak < LIMIT_MB and worst < 1e-4
    print("kept" if kept else "NOT KEPT")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
