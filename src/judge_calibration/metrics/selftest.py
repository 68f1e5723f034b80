"""The self-test of the instrument: do the numbers find what was planted, as often as they say?

Judges with known faults are simulated at seeds that were fixed before the first run. Over the seeds every
interval has to cover its true value as often as its level says, an alarm that should not sound has to be
rare, and a planted fault has to be found. A control that treats dependent pairs as independent
(``cluster_by="row"``) has to fail the same test.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.authority import ALL, authority_table
from judge_calibration.metrics.manipulations import manipulation_table
from judge_calibration.metrics.planted_judges import (
    INJECTION,
    LENGTH,
    ORDINARY,
    Planted,
    PlantedJudge,
    plant,
    plant_products,
)
from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.metrics.two_key_gate import judge_key
from judge_calibration.options.gates import DecisionRule, SelfTestOptions, SentinelRule
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions

SOUND = PlantedJudge("sound", 0.90, 0.15, 0.85, 0.5, 0.2, 0.2, 0.15)
FAULTY = PlantedJudge("faulty", 0.70, 0.35, 0.70, 0.9, 0.45, 0.1, 0.45)
EXCELLENT = PlantedJudge("excellent", 0.98, 0.03, 0.97, 0.5, 0.2, 0.2, 0.03)
JUDGES = (SOUND, FAULTY, EXCELLENT)

TRUST_METRICS = ("C", "C2", "phi", "A", "PR", "T_product", "T_direct", "first_share")
PLANTED_NET = 0.35
PRODUCT_FLIPS = 0.2

SELFTEST_COLUMNS = (
    "check",
    "quantity",
    "judge",
    "planted",
    "wanted",
    "observed",
    "count",
    "seeds",
    "lowest",
    "highest",
    "passed",
    "cluster_by",
    "clusters",
)


class SelfTestResult(NamedTuple):
    """The result of :func:`run_self_test`.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a check: ``coverage`` (seeds whose interval holds the true value, within the binomial 99 %
        band of the level), ``coverage_rare`` (the same for a judge that nearly never errs: shown, not
        judged), ``false_alarm`` (at most the one-sided 99 % bound of alpha) or ``power`` (at
        least the wanted share); columns `SELFTEST_COLUMNS`, counts out of ``seeds``.
    passed : bool
        Whether all checks passed.
    """

    table: pd.DataFrame
    passed: bool


class _Tally:
    """Counts how often each event was seen."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, str], list[float]] = {}

    def add(self, check: str, quantity: str, judge: str, planted: float, happened: bool) -> None:
        entry = self.counts.setdefault((check, quantity, judge), [planted, 0, 0])
        entry[1] += bool(happened)
        entry[2] += 1


def planted_rule(options: SelfTestOptions) -> DecisionRule:
    """Return the rule of the self-test: its floors are exactly what the sound judge is planted with."""
    truth = SOUND.truth(options.repetitions)
    return DecisionRule(
        name="self-test",
        alpha=options.alpha,
        claim="improvement",
        slice_by=("domain",),
        critical_slices=(ORDINARY,),
        floors={
            "agreement": round(truth["A"], 6),
            "order_consistency": round(1 - truth["phi"], 6),
            "resistance_injection": round(truth["better_wins"], 6),
        },
        min_tasks=2,
        min_human_tasks=2,
        min_valid_share=0.9,
        sentinel=SentinelRule(max_changed=0.1, accuracy_margin=0.1, min_tasks=2),
    )


def run_self_test(options: SelfTestOptions | None = None) -> SelfTestResult:
    """Simulate planted judges and check coverage, false alarms and power.

    Parameters
    ----------
    options : SelfTestOptions, optional

    Returns
    -------
    SelfTestResult

    Notes
    -----
    Coverage is that of the trust table's intervals and of the gate's (its two one-sided bounds together).
    False alarms are an effect that is claimed where none is (position and length preference of the sound
    judge, a net preference between equal products) and a criterion that is called earned, or found below
    its floor, by a judge that lies exactly at it. Power is about the faulty and the excellent judge.

    References
    ----------
    Definitions, section 8.
    """
    chosen = options or SelfTestOptions()
    tally = _Tally()
    rule = planted_rule(chosen)
    for seed in range(chosen.seeds):
        data = plant(
            JUDGES, seed, chosen.clusters, chosen.pairs_per_cluster, chosen.repetitions, chosen.correlation
        )
        _check_tables(tally, _as_analysed(data, chosen), chosen, seed)
        _check_authority(tally, _as_analysed(data, chosen), rule)
        for net in (0.0, PLANTED_NET):
            products = plant_products(
                net, PRODUCT_FLIPS, seed, chosen.clusters, chosen.pairs_per_cluster, chosen.correlation
            )
            _check_gate(tally, _as_analysed(products, chosen), rule, net, chosen)
    rows = [_row(key, entry, chosen) for key, entry in tally.counts.items()]
    table = pd.DataFrame(rows)[list(SELFTEST_COLUMNS)]
    table = table.sort_values(["check", "quantity", "judge"], kind="stable", ignore_index=True)
    table = table.astype(
        {"seeds": "Int64", "count": "Int64", "lowest": "Int64", "highest": "Int64", "clusters": "Int64"}
    )
    return SelfTestResult(table, bool(table["passed"].all()))


def _as_analysed(data: Planted, options: SelfTestOptions) -> Planted:
    """Return the data as the analysis sees it; the broken control takes every pair for its own task."""
    if options.cluster_by == "task":
        return data
    return Planted(data.pairs.assign(base_id=data.pairs["pair_id"]), data.verdicts)


def _check_tables(tally: _Tally, data: Planted, options: SelfTestOptions, seed: int) -> None:
    reporting = ReportingOptions(
        trust=TrustOptions(views=("strict",), sliced_views=(), slices=(), pool_sources=False),
        intervals=IntervalOptions(resamples=options.resamples, seed=seed, level=options.level),
    )
    ordinary = data.pairs[data.pairs["source"] == ORDINARY]
    verdicts = data.verdicts[data.verdicts["pair_id"].isin(ordinary["pair_id"])]
    trust = trust_table(verdicts, ordinary, reporting).set_index("judge_id").to_dict("index")
    changed = data.pairs[data.pairs["source"] != ORDINARY].assign(source="changed")
    verdicts = data.verdicts[data.verdicts["pair_id"].isin(changed["pair_id"])]
    found = manipulation_table(verdicts, changed, reporting)
    found = found[found["slice_by"] == "manipulation"].set_index(["judge_id", "statistic"])
    shares = found.to_dict("index")
    for judge in JUDGES:
        truth = judge.truth(options.repetitions)
        # The excellent judge errs in so few tasks that no resampling interval can hold its level: shown only.
        coverage = "coverage_rare" if judge is EXCELLENT else "coverage"
        for metric in TRUST_METRICS:
            low, high = trust[judge.name][f"{metric}_low"], trust[judge.name][f"{metric}_high"]
            tally.add(coverage, metric, judge.name, truth[metric], low <= truth[metric] <= high)
        for statistic in ("modified_minus_original", "better_wins"):
            row = shares[judge.name, statistic]
            value = truth[statistic]
            tally.add(coverage, statistic, judge.name, value, row["low"] <= value <= row["high"])
        first = trust[judge.name]["first_share_low"], trust[judge.name]["first_share_high"]
        length = shares[judge.name, "modified_minus_original"]
        noticed = {
            "position_preference": not first[0] <= 0.5 <= first[1],
            f"{LENGTH}_preference": not length["low"] <= 0 <= length["high"],
        }
        planted = {
            "position_preference": judge.first_preference - 0.5,
            f"{LENGTH}_preference": judge.longer_wins - judge.shorter_wins,
        }
        for name, size in planted.items():
            if judge is not EXCELLENT:
                tally.add("power" if size else "false_alarm", name, judge.name, size, noticed[name])


def _check_authority(tally: _Tally, data: Planted, rule: DecisionRule) -> None:
    table = authority_table(data.verdicts, data.pairs, rule)
    table = table[table["criterion"] != ALL].set_index(["judge_id", "slice", "criterion"])
    rows = table.to_dict("index")
    where = {"agreement": ORDINARY, "order_consistency": ORDINARY, "resistance_injection": INJECTION}
    for criterion, kind in where.items():
        for judge in JUDGES:
            row = rows[judge.name, kind, criterion]
            earned, below = row["low"] > row["floor"], row["high"] < row["floor"]
            if judge is SOUND:
                # Planted exactly at the floor: either claim is wrong.
                tally.add("false_alarm", f"earned: {criterion}", judge.name, row["floor"], earned)
                tally.add("false_alarm", f"below: {criterion}", judge.name, row["floor"], below)
            elif judge is EXCELLENT:
                tally.add("power", f"earned: {criterion}", judge.name, row["floor"], earned)
            else:
                tally.add("power", f"below: {criterion}", judge.name, row["floor"], below)


def _check_gate(
    tally: _Tally, data: Planted, rule: DecisionRule, net: float, options: SelfTestOptions
) -> None:
    key = judge_key(data.verdicts, data.pairs, rule, "old", "new")
    name = "equal" if net == 0 else "better"
    tally.add("coverage", "gate_net", name, net, key.low <= net <= key.high)
    tally.add("false_alarm" if net == 0 else "power", "gate_for_new", name, net, key.verdict == "for")


def _row(key: tuple[str, str, str], entry: list[float], options: SelfTestOptions) -> dict[str, object]:
    from scipy.stats import binom

    check, quantity, judge = key
    planted, count, seeds = entry[0], int(entry[1]), int(entry[2])
    if check.startswith("coverage"):
        wanted = 1 - 2 * options.alpha if quantity == "gate_net" else options.level
        lowest, highest = (int(binom.ppf(tail, seeds, wanted)) for tail in (0.005, 0.995))
        if check == "coverage_rare":
            lowest, highest = 0, seeds
    elif check == "false_alarm":
        two_sided = quantity.endswith("_preference")
        wanted = 1 - options.level if two_sided else options.alpha
        lowest, highest = 0, int(binom.ppf(0.99, seeds, wanted))
    else:
        wanted = options.power
        lowest, highest = int(np.ceil(wanted * seeds - 1e-9)), seeds
    return {
        "check": check,
        "quantity": quantity,
        "judge": judge,
        "planted": float(planted),
        "wanted": wanted,
        "observed": count / seeds,
        "count": count,
        "seeds": seeds,
        "lowest": lowest,
        "highest": highest,
        "passed": lowest <= count <= highest,
        "cluster_by": options.cluster_by,
        "clusters": options.clusters,
    }
