"""50,000 SIMULATED labels in twenty people's sheets: read, checked against the plan, settled, analysed.

5,000 base tasks with five pairs each, two labels a pair by twenty people, in one CSV file a person as it is
handed out (with the texts, so that every row's texts are compared with its packet). Timed are reading,
checking, settling, progress, and every table of the analysis at the resamples that the pipeline takes. Plan,
packets and files are made before the clock starts. Wall time is what counts; CPU time says how busy the
machine was.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.adjudication import measure_progress, settle_labels
from judge_calibration.labelling.agreement_of_people import human_agreement, human_confusion, item_agreement
from judge_calibration.labelling.annotators import annotator_drift, annotator_table
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.importing import check_rows, read_label_file
from judge_calibration.labelling.packets import make_packets
from judge_calibration.labelling.planning import plan_round
from judge_calibration.labelling.reference_labels import (
    expected_relationship,
    fit_annotator_errors,
    human_ceiling,
)
from judge_calibration.labelling.spreadsheets import packets_as_csv
from judge_calibration.options.annotation import AnnotationOptions, LabelFileOptions

TASKS, PEOPLE, PAIRS_A_TASK = 5_000, 20, 5
LABELS = TASKS * PAIRS_A_TASK * 2
LIMIT_S = 10.0
MANIPULATIONS = ("length", "style", "citation", "correctness", "identity")
TEXT = "The tide comes in twice a day, since the moon and the sun pull at the water of the seas. "


class Round(NamedTuple):
    """A round whose sheets have come back."""

    pairs: pd.DataFrame
    options: AnnotationOptions
    key: RoundKey
    plan: pd.DataFrame
    unblinding: pd.DataFrame
    packets: pd.DataFrame
    sheets: dict[str, bytes]


def fabricate_pairs(tasks: int) -> pd.DataFrame:
    """Return five pairs a base task, with texts of about a hundred words."""
    records = []
    for task in range(tasks):
        for place, manipulation in enumerate(MANIPULATIONS):
            better = "A" if (task + place) % 2 else "B"
            expected = better if manipulation in ("citation", "correctness") else "TIE"
            text = TEXT * 5
            records.append(
                {
                    "pair_id": f"{task:05d}-{manipulation}",
                    "base_id": f"{task:05d}",
                    "source": "fabricated",
                    "domain": ("evidence", "reasoning", "synthesis")[task % 3],
                    "difficulty": ("easy", "medium", "hard")[task // 3 % 3],
                    "stakes": "ordinary",
                    "manipulation": manipulation,
                    "modified": better,
                    "language": "en",
                    "question": f"{task}: {text}?",
                    "response_a": f"{task} {place} one {text}",
                    "response_b": f"{task} {place} two {text}",
                    "expected": expected,
                    "content_hash": f"{task}-{place}",
                }
            )
    return schemas.conform(pd.DataFrame(records), schemas.PAIRS)


def make_round(tasks: int) -> Round:
    """Plan a round and fill its sheets in."""
    pairs = fabricate_pairs(tasks)
    people = [f"annotator_{number}" for number in range(1, PEOPLE + 1)]
    options = AnnotationOptions.model_validate(
        {"annotators": [{"code": code} for code in people], "draw": {"mode": "everything"}}
    )
    key = RoundKey("a secret of the benchmark", options.round_id)
    plan, unblinding, _ = plan_round(pairs, options, key)
    packets = make_packets(pairs, unblinding)
    primary = packets[
        packets["packet_id"].isin(unblinding.loc[unblinding["stage"] == "primary", "packet_id"])
    ]
    start = pd.Timestamp("2026-02-01", tz="UTC")
    sheets = {}
    for annotator, own in primary.groupby("annotator_id"):
        lines = packets_as_csv(own).decode("utf-8-sig").split("\r\n")
        columns = [name.strip('"') for name in lines[0].split(",")]
        places = {name: columns.index(name) for name in ("label", "reason_codes", "labelled_at")}
        filled = [lines[0]]
        for number, line in enumerate(lines[1:-1]):
            cells = line.split('","')
            packet = cells[0].strip('"')
            tie = key.uniform("tie", packet) >= 0.8
            label = "TIE" if tie else "AB"[key.uniform("says", packet) < 0.7]
            cells[places["label"]] = label
            cells[places["reason_codes"]] = "" if tie else "correctness; clarity"
            moment = (start + pd.Timedelta(minutes=number)).isoformat()
            last = '"' if places["labelled_at"] == len(columns) - 1 else ""
            cells[places["labelled_at"]] = moment + last
            filled.append('","'.join(cells))
        sheets[f"{annotator}.csv"] = ("\r\n".join(filled) + "\r\n").encode()
    return Round(pairs, options, key, plan, unblinding, packets, sheets)


class Clock:
    """Laps of wall and CPU time."""

    def __init__(self) -> None:
        self.laps: list[tuple[str, float, float]] = []

    def lap(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the work, and note how long it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        out = work()
        self.laps.append((name, time.perf_counter() - wall, time.process_time() - cpu))
        return out


def take_in_and_analyse(a_round: Round, clock: Clock) -> pd.DataFrame:
    """Read, check, settle and analyse the labels, as the pipeline does; return them."""
    pairs, options = a_round.pairs, a_round.options
    sheets = [
        clock.lap("read the sheets", lambda n=n, d=d: read_label_file(d, LabelFileOptions(path=n)))
        for n, d in a_round.sheets.items()
    ]
    rows = pd.concat(sheets, ignore_index=True)
    labels = clock.lap(
        "check", lambda: check_rows(rows, a_round.unblinding, a_round.packets, options, a_round.key).labels
    )
    settled = clock.lap("settle", lambda: settle_labels(a_round.plan, labels, options.adjudication))
    analysis = options.analysis
    clock.lap("progress", lambda: measure_progress(a_round.plan, labels, pairs, analysis.slice_by))
    agreement = clock.lap("agreement of people", lambda: human_agreement(labels, pairs, analysis))
    clock.lap("confusion", lambda: human_confusion(labels, pairs))
    clock.lap("agreement by pair", lambda: item_agreement(labels, pairs, analysis))
    clock.lap("annotators", lambda: annotator_table(labels, pairs, settled, analysis))
    clock.lap("drift", lambda: annotator_drift(labels, pairs, analysis))
    clock.lap("expected relationship", lambda: expected_relationship(labels, pairs, settled, analysis))
    likely, _ = clock.lap("Dawid and Skene", lambda: fit_annotator_errors(labels))
    clock.lap("ceiling", lambda: human_ceiling(labels, pairs, settled, likely, agreement, analysis))
    return labels


def main() -> int:
    """Measure, print a table, and return 1 if the limit was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the 50,000 labels")
    tasks = round(TASKS * parser.parse_args().scale)
    a_round = make_round(tasks)
    clock = Clock()
    labels = take_in_and_analyse(a_round, clock)
    assert len(labels) == tasks * PAIRS_A_TASK * 2, "every label of the sheets was to be accepted"
    frame = pd.DataFrame(clock.laps, columns=["what", "wall_s", "cpu_s"])
    frame = frame.groupby("what", sort=False).sum()
    print(frame.round(2).to_string())
    wall, cpu = frame["wall_s"].sum(), frame["cpu_s"].sum()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(
        f"{len(labels):,} labels of {PEOPLE} people: {wall:.1f} s (CPU {cpu:.1f} s, load {load:.1f}), "
        f"limit {LIMIT_S:.0f} s; peak memory {peak:,.0f} MiB"
    )
    kept = wall < LIMIT_S
    print("kept" if kept else "NOT KEPT")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
