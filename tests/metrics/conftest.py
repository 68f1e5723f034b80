"""Small verdict tables for the tests of the statistics."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

Reads = Mapping[str, tuple[Sequence[str | None], Sequence[str | None]]]


def make_pairs(references: Mapping[str, str | None], **columns: Sequence[object]) -> pd.DataFrame:
    """One pair a name, a cluster of its own unless base_id is given."""
    frame = pd.DataFrame({"pair_id": list(references), "reference_label": list(references.values())})
    frame["base_id"] = frame["pair_id"]
    frame["source"] = "made"
    for name, values in columns.items():
        frame[name] = list(values)
    return frame


def make_verdicts(
    reads: Reads, judge: str = "judge", protocol: str = "direct", **columns: object
) -> pd.DataFrame:
    """Verdicts by pair: the repetitions in order AB, and those in order BA; None is a malformed reply."""
    rows = []
    for pair, orders in reads.items():
        for order, said in zip(("AB", "BA"), orders, strict=True):
            for repetition, verdict in enumerate(said):
                rows.append((pair, order, repetition, "malformed" if verdict is None else "valid", verdict))
    frame = pd.DataFrame(rows, columns=["pair_id", "order", "repetition", "outcome", "verdict"])
    frame["verdict"] = frame["verdict"].astype("str").where(frame["verdict"].notna())
    frame = frame.assign(judge_id=judge, protocol=protocol, instrument_id=f"{judge}:{protocol}")
    frame = frame.assign(constraint="none", temperature=0.0)
    return frame.assign(**columns)


@pytest.fixture
def small() -> ReportingOptions:
    """Few resamples, for tests that do not look at intervals."""
    return ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture
def whole() -> Callable[..., pd.Series]:
    """The row of the whole in one view."""

    def pick(table: pd.DataFrame, view: str = "strict", **where: object) -> pd.Series:
        rows = table[(table["slice_by"] == "all") & (table["view"] == view)]
        for column, value in where.items():
            rows = rows[rows[column] == value]
        assert len(rows) == 1, rows
        return rows.iloc[0]

    return pick


def simulate(
    n_pairs: int = 60,
    n_clusters: int = 20,
    repetitions: int = 3,
    seed: int = 0,
    labels: Sequence[str] = ("A", "B", "TIE"),
    failing: float = 0.05,
    protocols: Sequence[str] = ("direct",),
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A judge that is mostly right, a little noisy, and drawn to the first answer."""
    rng = np.random.default_rng(seed)
    base = np.sort(rng.integers(0, n_clusters, n_pairs))
    reference = rng.choice(["A", "B"], n_pairs)
    pairs = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(n_pairs)],
            "base_id": [f"b{b}" for b in base],
            "source": "simulated",
            "difficulty": np.array(["easy", "hard"])[base % 2],
            "reference_label": reference,
            "reference_kind": "constructed",
        }
    )
    frames = []
    for protocol in protocols:
        p, o, r = (
            grid.ravel()
            for grid in np.meshgrid(np.arange(n_pairs), [0, 1], np.arange(repetitions), indexing="ij")
        )
        said = np.where(rng.random(len(p)) < 0.7, reference[p], rng.choice(list(labels), len(p)))
        said = np.where(rng.random(len(p)) < 0.15, np.array(["A", "B"])[o], said)
        failed = rng.random(len(p)) < failing
        frames.append(
            pd.DataFrame(
                {
                    "pair_id": pairs["pair_id"].to_numpy()[p],
                    "judge_id": "judge",
                    "instrument_id": protocol,
                    "protocol": protocol,
                    "constraint": "none",
                    "order": np.array(["AB", "BA"])[o],
                    "temperature": 0.0,
                    "repetition": r,
                    "outcome": np.where(failed, "malformed", "valid"),
                    "verdict": pd.Series(said, dtype="str").where(~failed),
                }
            )
        )
    return pd.concat(frames, ignore_index=True), pairs


@pytest.fixture
def tables() -> SimpleNamespace:
    """Makers of small tables."""
    return SimpleNamespace(pairs=make_pairs, verdicts=make_verdicts, simulate=simulate)
