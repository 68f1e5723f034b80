"""Fabricated pairs and rounds for the tests of labelling."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from judge_calibration import schemas
from judge_calibration.labelling.identity import RoundKey
from judge_calibration.labelling.label_rows import rows_frame
from judge_calibration.labelling.packets import make_packets
from judge_calibration.labelling.planning import RoundPlan, plan_round
from judge_calibration.options.annotation import AnnotationOptions

SECRET = "a secret of the tests, long enough"
MANIPULATIONS = ("length", "style", "citation", "correctness", "identity")
DOMAINS = ("evidence", "reasoning", "synthesis")
DIFFICULTIES = ("easy", "medium", "hard")


def fabricate_pairs(n_bases: int, **columns: Any) -> pd.DataFrame:
    """Return n_bases tasks with one pair of each manipulation."""
    records = []
    for base in range(n_bases):
        for place, manipulation in enumerate(MANIPULATIONS):
            modified = "B" if (base + place) % 2 else "A"
            better = "A" if modified == "B" else "B"
            expected = better if manipulation in ("citation", "correctness") else "TIE"
            records.append(
                {
                    "pair_id": f"bank-{base:04d}-{manipulation}",
                    "base_id": f"bank-{base:04d}",
                    "source": "bank",
                    "domain": DOMAINS[base % 3],
                    "difficulty": DIFFICULTIES[(base // 3) % 3],
                    "stakes": "ordinary",
                    "manipulation": manipulation,
                    "variant": f"{manipulation}-variant-xyz",
                    "severity": "severe",
                    "modified": modified,
                    "language": "en",
                    "question": f"Question number {base}?",
                    "response_a": f"The first reply to {base}, kind {place}.",
                    "response_b": f"The second reply to {base}, kind {place}.",
                    "candidate_a": "canonical-writer",
                    "candidate_b": f"mutator-of-{manipulation}",
                    "reference_label": expected,
                    "reference_kind": "constructed",
                    "expected": expected,
                    "source_packet_ids": f'["passage-{base}"]',
                    "source_packet": '[{"id": "S1", "text": "A passage to cite."}]',
                    "mutation_note": f"one fact of {base} was changed",
                    "mutation_diff": '[["replace", 3, "x"]]',
                    "sentinel": base % 7 == 0,
                    "license": "CC0-1.0",
                    "provenance": "written for the bank",
                    "content_hash": f"hash-{base}-{manipulation}",
                }
                | columns
            )
    return schemas.check(schemas.conform(pd.DataFrame(records), schemas.PAIRS), schemas.PAIRS)


def make_options(**changes: Any) -> AnnotationOptions:
    """Return a round with four annotators that labels everything."""
    settings: dict[str, Any] = {
        "round_id": "round-t",
        "annotators": [{"code": f"annotator_{i}"} for i in range(1, 5)],
        "draw": {"mode": "everything"},
    }
    return AnnotationOptions.model_validate(settings | changes)


def make_key(options: AnnotationOptions) -> RoundKey:
    return RoundKey(SECRET, options.round_id)


def label_rows(
    key_frame: pd.DataFrame, says: Callable[[dict[str, Any]], str], **columns: Any
) -> pd.DataFrame:
    """Return label rows for packets, by the answers as shown."""
    records = []
    for number, row in enumerate(key_frame.to_dict("records"), start=2):
        records.append(
            {
                "file": "labels.csv",
                "row": number,
                "made_by": "human",
                "packet_id": row["packet_id"],
                "label": says(row),
                "labelled_at": "2026-02-01T10:00:00+00:00",
                "state": "completed",
            }
            | columns
        )
    return rows_frame(records)


def in_shown_order(row: dict[str, Any], identity: str) -> str:
    """Return the shown label that means the candidate's identity."""
    if row["order"] == "BA" and identity in "AB":
        return "B" if identity == "A" else "A"
    return identity


class Round:
    """A planned round with its key and packets."""

    def __init__(self, pairs: pd.DataFrame, options: AnnotationOptions) -> None:
        self.pairs, self.options, self.key = pairs, options, make_key(options)
        planned: RoundPlan = plan_round(pairs, options, self.key)
        self.plan, self.unblinding, self.design = planned
        self.packets = make_packets(pairs, self.unblinding)
