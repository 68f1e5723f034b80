"""Repetitions asked look by look: a cell stops when its consistency is known well enough.

A cell is one instrument at one temperature. After 2, 3, 5, ... repetitions of all its pairs in all orders,
the interval of C2 (the probability that two repetitions agree, which does not depend on their number) is
looked at; if it is narrow enough, the cell's other repetitions are not asked. Every look spends a part of
alpha, in proportion to the repetitions since the look before, so that the interval at whichever look a cell
stops covers with probability 1 - alpha at least (a sum bounds the probability of any error).

The decisions depend on answers only, so a run from the same store stops where the first one did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.reading import read_answers
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.consistency import pair_agreement
from judge_calibration.metrics.jackknife import jackknife_interval
from judge_calibration.metrics.wilson import wilson_interval
from judge_calibration.options.asking import SequentialOptions
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.schemas import VERDICTS

CELL: Final = ["judge_id", "instrument_id", "temperature"]
COLUMNS: Final = (
    *CELL,
    "repetitions",
    "level",
    "C2",
    "half_width",
    "stopped",
    "calls_planned",
    "calls_asked",
)


class Look(NamedTuple):
    """One look at a cell: after how many repetitions, and the part of alpha that it spends."""

    repetitions: int
    alpha: float


def looks_of(options: SequentialOptions, planned: int) -> list[Look]:
    """Return the looks at a cell for which so many repetitions are planned.

    Examples
    --------
    >>> [(look.repetitions, round(look.alpha, 4)) for look in looks_of(SequentialOptions(), 5)]
    [(2, 0.02), (3, 0.01), (5, 0.02)]
    """
    times = [number for number in options.looks if number < planned] + [planned]
    before = [0, *times[:-1]]
    return [
        Look(now, options.alpha * (now - earlier) / planned)
        for now, earlier in zip(times, before, strict=True)
    ]


def agreement_interval(counts: np.ndarray, clusters: Sequence[str], level: float) -> tuple[float, float]:
    """Return C2 over (pair, order) units, and the half-width of its interval.

    Parameters
    ----------
    counts : numpy.ndarray of shape (n_units, 5)
        How often the repetitions of a unit said A, B, TIE, ABSTAIN, and how often they failed.
    clusters : sequence of str
        Each unit's cluster.
    level : float
        Coverage of the interval.

    Returns
    -------
    C2, half_width : float
        NaN where undefined (fewer than two repetitions or clusters). The interval is the cluster
        jackknife's; where all units agree or all differ it is Wilson's over the clusters, never of width 0.
    """
    agreement = pair_agreement(counts)
    found = cluster_codes(pd.Series(list(clusters), dtype="str"))
    count = found.size
    sums = cluster_sums(np.column_stack([agreement, np.ones(len(agreement))]), found.codes, count)
    total = sums.sum(axis=0)
    if not len(agreement) or np.isnan(total[0]) or count < 2:
        return float("nan"), float("nan")
    value = total[0] / total[1]
    left_out = (total[0] - sums[:, 0]) / (total[1] - sums[:, 1])
    interval = jackknife_interval(value, left_out, np.ones(count, bool), level)
    half = float(interval.high - interval.low) / 2
    if half == 0.0:
        low, high = wilson_interval(round(value * count), count, level)
        half = float(max(high - value, value - low))
    return float(value), half


def ask_sequentially(
    calls: pd.DataFrame,
    pairs: pd.DataFrame,
    options: JudgingOptions,
    store_folder: Path,
    run_id: str | None = None,
    keys: Mapping[str, str | None] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Ask look by look. See :func:`~judge_calibration.judges.asking.ask_calls`.

    Returns
    -------
    answers, attempts : pandas.DataFrame
        Of the calls that were needed.
    looks : pandas.DataFrame
        One row a cell and look: repetitions, level and interval of C2, whether the cell stopped there, and
        the calls of the cell, planned in all and asked until then.

    Raises
    ------
    ValueError
        If `options.asking.sequential` is not set.
    """
    sequential = options.asking.sequential
    if sequential is None:
        raise ValueError("options.asking.sequential is not set; use ask_calls")
    cluster_of = dict(zip(pairs["pair_id"], pairs["base_id"], strict=True))
    cells = dict(iter(calls.groupby(CELL, dropna=False, sort=True)))
    plans = {key: looks_of(sequential, int(rows["repetition"].max()) + 1) for key, rows in cells.items()}
    reached = dict.fromkeys(cells, 0)
    going = set(cells)
    rows = []
    for number in range(max((len(plan) for plan in plans.values()), default=0)):
        going = {key for key in going if number < len(plans[key])}
        if not going:
            break
        for key in going:
            reached[key] = plans[key][number].repetitions
        part = pd.concat([_until(cells[key], reached[key]) for key in cells if key in going])
        answers, _ = ask_calls(part, options, store_folder, run_id, keys)
        for key in [key for key in cells if key in going]:
            asked = _until(cells[key], reached[key])
            verdicts = read_answers(asked, answers[answers["call_id"].isin(asked["call_id"])], pairs, options)
            level = 1 - plans[key][number].alpha
            value, half = agreement_interval(*_units(verdicts, cluster_of), level)
            last = number == len(plans[key]) - 1
            stopped = last or half <= sequential.half_width
            if stopped:
                going.discard(key)
            planned, needed = cells[key]["call_id"].nunique(), asked["call_id"].nunique()
            rows.append([*key, reached[key], level, value, half, stopped, planned, needed])
    looks = pd.DataFrame(rows, columns=list(COLUMNS))
    answers, attempts = ask_calls(needed_calls(calls, looks), options, store_folder, run_id, keys)
    return answers, attempts, looks


def needed_calls(calls: pd.DataFrame, looks: pd.DataFrame) -> pd.DataFrame:
    """Return the planned calls without the repetitions that no look needed."""
    if looks.empty:
        return calls
    stops = looks[looks["stopped"]][[*CELL, "repetitions"]]
    joined = calls[CELL].merge(stops, on=CELL, how="left", validate="many_to_one")
    return calls[(calls["repetition"].to_numpy() < joined["repetitions"].to_numpy())].reset_index(drop=True)


def no_looks() -> pd.DataFrame:
    """Return the table of looks of a run that asks every repetition."""
    return pd.DataFrame({name: [] for name in COLUMNS})


def _until(rows: pd.DataFrame, repetitions: int) -> pd.DataFrame:
    return rows[rows["repetition"] < repetitions]


def _units(verdicts: pd.DataFrame, cluster_of: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Counts of verdicts by (pair, order), and each unit's cluster."""
    said = verdicts["verdict"].astype(object).where(verdicts["outcome"] == "valid", "failed")
    table = pd.crosstab([verdicts["pair_id"], verdicts["order"]], said)
    table = table.reindex(columns=[*VERDICTS, "failed"], fill_value=0)
    return table.to_numpy(), [cluster_of[pair_id] for pair_id, _ in table.index]
