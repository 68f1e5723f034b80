"""The audit queue: every reason, its order and its size."""

import json

import pandas as pd
import pytest

from judge_calibration.metrics.audit_queue import AUDIT_COLUMNS, audit_queue, people_say
from judge_calibration.options.reporting import AuditOptions


def make_pairs(n, **columns):
    frame = pd.DataFrame({"pair_id": [f"p{i}" for i in range(n)], "base_id": [f"t{i}" for i in range(n)]})
    return frame.assign(
        **({"source": "made", "domain": "math", "manipulation": None, "modified": None} | columns)
    )


def judged(pairs, first, second, **columns):
    parts = []
    for order, said in (("AB", first), ("BA", second)):
        parts.append(pd.DataFrame({"pair_id": pairs["pair_id"], "order": order, "verdict": said}))
    frame = pd.concat(parts, ignore_index=True)
    about = {"judge_id": "j", "instrument_id": "i", "protocol": "direct", "constraint": "none"}
    frame = frame.assign(**(about | {"temperature": 0.0, "repetition": 0} | columns))
    frame["outcome"] = frame["verdict"].map(lambda v: "malformed" if v is None or pd.isna(v) else "valid")
    return frame


def reasons(queue):
    return {row["pair_id"]: json.loads(row["reasons"]) for row in queue.to_dict("records")}


class TestReasons:
    def test_steady_valid_verdicts_are_no_work(self):
        pairs = make_pairs(2)
        queue = audit_queue(judged(pairs, ["A", "B"], ["A", "B"]), pairs)
        assert queue.empty
        assert list(queue.columns) == list(AUDIT_COLUMNS)

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("A", "B", ["contradiction"]),
            ("A", "TIE", []),
            ("ABSTAIN", "ABSTAIN", ["abstention"]),
            (None, "A", ["failed_outcome"]),
        ],
    )
    def test_by_what_was_said(self, first, second, expected):
        pairs = make_pairs(1)
        found = reasons(audit_queue(judged(pairs, [first], [second]), pairs))
        assert found.get("p0", []) == expected

    def test_repetitions_that_differ_are_no_contradiction_of_orders(self):
        pairs = make_pairs(1)
        one = judged(pairs, ["A"], ["A"])
        two = judged(pairs, ["B"], ["B"], repetition=1)
        assert audit_queue(pd.concat([one, two]), pairs).empty

    def test_low_confidence_of_valid_verdicts_only(self):
        pairs = make_pairs(2)
        verdicts = judged(pairs, ["A", "A"], ["A", "A"]).assign(confidence=[0.59, 0.6, 0.9, None])
        assert reasons(audit_queue(verdicts, pairs)) == {"p0": ["low_confidence"]}

    def test_a_judgment_with_two_reasons_is_counted_once(self):
        pairs = make_pairs(1)
        verdicts = judged(pairs, ["A"], ["B"]).assign(confidence=0.5)
        (row,) = audit_queue(verdicts, pairs).to_dict("records")
        assert (sorted(json.loads(row["reasons"])), row["n_judgments"]) == (
            ["contradiction", "low_confidence"],
            2,
        )

    @pytest.mark.parametrize("kind", ["ai", "simulated"])
    def test_labels_that_nobody_gave_are_not_peoples(self, kind):
        labels = pd.DataFrame({"pair_id": ["p0"], "label": ["B"], "attribute": None, "kind": kind})
        assert people_say(labels) == {}
        assert people_say(labels.assign(kind="human")) == {"p0": "B"}

    def test_an_unsupported_citation_that_wins(self):
        pairs = make_pairs(2, manipulation=["citation", "length"], modified=["A", "A"])
        found = reasons(audit_queue(judged(pairs, ["A", "A"], ["A", "A"]), pairs))
        assert found == {"p0": ["unsupported_citation"]}

    def test_people_who_say_the_other_side(self):
        pairs = make_pairs(3)
        labels = pd.DataFrame(
            {
                "pair_id": ["p0", "p0", "p1", "p1", "p2", "p2", "p2"],
                "label": ["B", "TIE", "A", "B", "A", "B", "B"],
                "stage": [*["primary"] * 6, "adjudication"],
                "attribute": None,
            }
        )
        # p0: one decisive voice, B. p1: people differ. p2: settled as B.
        assert people_say(labels) == {"p0": "B", "p2": "B"}
        found = reasons(audit_queue(judged(pairs, ["A"] * 3, ["A"] * 3), pairs, labels))
        assert found == {"p0": ["disagrees_with_people"], "p2": ["disagrees_with_people"]}

    def test_changes_of_two_runs_come_in_from_outside(self):
        pairs = make_pairs(1)
        verdicts = judged(pairs, ["A"], ["A"])
        cell = verdicts[["pair_id", "judge_id", "protocol", "constraint", "temperature", "instrument_id"]]
        changes = cell.head(1).assign(reason="lost")
        assert reasons(audit_queue(verdicts, pairs, changes=changes)) == {"p0": ["lost"]}


class TestOrder:
    def test_a_rare_reason_is_not_crowded_out(self):
        pairs = make_pairs(50)
        first = ["A"] * 49 + ["ABSTAIN"]
        queue = audit_queue(
            judged(pairs, first, ["B"] * 49 + ["ABSTAIN"]), pairs, options=AuditOptions(size=2)
        )
        assert queue["queued"].sum() == 2
        assert {"p49"} <= set(queue[queue["queued"]]["pair_id"])
        assert queue["priority"].tolist() == list(range(1, 51))

    def test_slices_take_turns(self):
        pairs = make_pairs(40, domain=["math"] * 38 + ["law"] * 2)
        queue = audit_queue(judged(pairs, ["A"] * 40, ["B"] * 40), pairs, options=AuditOptions(size=4))
        strata = queue[queue["queued"]]["stratum"].value_counts().to_dict()
        assert strata == {"contradiction: math": 2, "contradiction: law": 2}

    def test_the_order_of_rows_moves_nothing(self):
        pairs = make_pairs(20)
        verdicts = judged(pairs, ["A"] * 20, ["B"] * 20)
        shuffled = verdicts.sample(frac=1, random_state=3)
        pd.testing.assert_frame_equal(audit_queue(verdicts, pairs), audit_queue(shuffled, pairs))
