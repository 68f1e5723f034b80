"""Write an example page of every outcome of the gate and the sentinel: python scripts/gate_examples.py OUT.

Verdicts and labels are made up and marked SIMULATED; the decisions, pages and documents are the real ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration.console.gate import OUTCOMES
from judge_calibration.metrics.audit_queue import audit_queue
from judge_calibration.metrics.authority import authority_table, calibration_shift, earned_slices
from judge_calibration.metrics.decision_rule import read_rule
from judge_calibration.metrics.sentinel import compare_sentinel
from judge_calibration.metrics.two_key_gate import two_key_gate
from judge_calibration.report.gate_page import gate_document, gate_page, sentinel_document, sentinel_page
from judge_calibration.session.gating import OTHER_INSTRUMENT

RULE = read_rule(
    {
        "name": "made-up rule",
        "claim": "improvement",
        "slice_by": ["domain"],
        "critical_slices": ["math"],
        "floors": {"agreement": 0.7, "order_consistency": 0.7},
        "min_tasks": 20,
        "min_human_tasks": 10,
        "min_valid_share": 0.9,
        "sentinel": {"max_changed": 0.1, "accuracy_margin": 0.1, "min_tasks": 20},
    }
)
CELL = {"judge_id": "made-up-judge", "protocol": "holistic", "constraint": "none", "temperature": 0.0}
NEW, OLD, EVEN = ["B"] * 30 + ["A"] * 10, ["A"] * 30 + ["B"] * 10, ["A", "B"] * 20
EXITS = {name: int(code) for name, code in OUTCOMES.items()} | {"stable": 0, "drift": 1, "too_few": 3}


def pairs_of(n: int, **columns: Any) -> pd.DataFrame:
    """Return pairs of both products, one a base task."""
    frame = pd.DataFrame({"pair_id": [f"p{i}" for i in range(n)], "base_id": [f"t{i}" for i in range(n)]})
    made = {"source": "made up", "domain": "math", "stakes": "ordinary", "language": "en", "question": "q"}
    texts = {"response_a": "old answer", "response_b": "new answer", "reference_label": None}
    return frame.assign(**(made | texts | {"candidate_a": "old", "candidate_b": "new"} | columns))


def verdicts_of(pairs: pd.DataFrame, said: list[str], instrument: str = "instrument-1") -> pd.DataFrame:
    """Return verdicts that are the same in both orders."""
    parts = [pd.DataFrame({"pair_id": pairs["pair_id"], "order": o, "verdict": said}) for o in ("AB", "BA")]
    about = CELL | {"instrument_id": instrument, "repetition": 0, "outcome": "valid"}
    return pd.concat(parts, ignore_index=True).assign(**about)


def labels_of(pairs: pd.DataFrame, said: list[str]) -> pd.DataFrame:
    """Return what people say."""
    frame = pd.DataFrame({"pair_id": pairs["pair_id"], "label": said})
    return frame.assign(attribute=None, annotator_id="person", stage="primary")


def gate_example(
    judge: list[str],
    people: list[str],
    instrument: str = "instrument-1",
    again: list[str] | None = None,
    **columns: Any,
) -> tuple[str, dict[str, Any]]:
    """Return the page and the document of one made-up decision."""
    known = pairs_of(60, sentinel=True, reference_label="A", reference_kind="human")
    frozen = verdicts_of(known, ["A"] * 60)
    pairs = pairs_of(40, **columns)
    verdicts = verdicts_of(pairs, judge, instrument)
    labels = labels_of(pairs.head(len(people)), people)
    authority = authority_table(frozen, known, RULE, labels_of(known, ["A"] * 60), pairs)
    calibrated = instrument == "instrument-1"
    sentinel = compare_sentinel(
        frozen, verdicts_of(known, again or ["A"] * 60), known, RULE.sentinel, RULE.alpha
    )
    compared = sentinel_document(CELL, sentinel.status, sentinel.reason, sentinel)
    if not calibrated:
        authority = authority.head(0)
        compared = sentinel_document(CELL, None, OTHER_INSTRUMENT, None)
    decision = two_key_gate(
        verdicts, pairs, labels, RULE, "old", "new", earned_slices(authority) if calibrated else {},
        {"instrument-1"}, compared["status"], "declared",
    )  # fmt: skip
    document = gate_document(
        decision,
        authority,
        compared,
        {
            "products": {"old": "old", "new": "new"},
            "cell": CELL,
            "runs": {"product": "made up", "calibration": "made up", "sentinel": "made up"},
            "exit_code": EXITS[decision.outcome],
        },
    )
    shift = calibration_shift(known, pairs, RULE.slice_by)
    queue = audit_queue(verdicts, pairs, labels)
    return gate_page(decision, authority, shift, document, pairs, (), True, queue), document


def sentinel_example(again: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the page and the document of one made-up sentinel run on as many pairs as are given."""
    known = pairs_of(len(again), sentinel=True, reference_label="A", reference_kind="human")
    result = compare_sentinel(
        verdicts_of(known, ["A"] * len(again)), verdicts_of(known, again), known, RULE.sentinel, RULE.alpha
    )
    document = sentinel_document(CELL, result.status, result.reason, result)
    summary = f"A made-up run beside a made-up frozen run, by the rule '{RULE.name}'."
    return sentinel_page([document], summary, simulated=True), document | {"exit_code": EXITS[result.status]}


GATES: dict[str, dict[str, Any]] = {
    "pass": {"judge": NEW, "people": NEW},
    "fail": {"judge": OLD, "people": OLD},
    "inconclusive": {"judge": EVEN, "people": NEW},
    "conflict": {"judge": NEW, "people": OLD},
    "too_few": {"judge": NEW, "people": ["B"] * 5},
    "not_calibrated": {"judge": NEW, "people": NEW, "instrument": "instrument-2"},
    "drifted": {"judge": NEW, "people": NEW, "again": ["B"] * 40 + ["A"] * 20},
    "high_stakes": {"judge": NEW, "people": [], "stakes": "medical"},
}
SENTINELS = {
    "sentinel_stable": ["A"] * 60,
    "sentinel_drift": ["B"] * 40 + ["A"] * 20,
    "sentinel_too_few": ["A"] * 15,
}


def examples() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every example's page and document by its name."""
    made = {name: gate_example(**values) for name, values in GATES.items()}
    return made | {name: sentinel_example(again) for name, again in SENTINELS.items()}


def main(folder: Path) -> None:
    """Write the pages and documents into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (page, document) in examples().items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
        outcome = document.get("outcome", document.get("status"))
        reasons = "; ".join(document.get("reasons", [])) or str(document.get("reason") or "")
        print(
            f"{name + '.html':<24}exit {document['exit_code']}  {outcome}{f': {reasons}' if reasons else ''}"
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python scripts/gate_examples.py OUT")
    main(Path(sys.argv[1]))
