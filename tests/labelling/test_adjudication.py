import pandas as pd
import pytest
from labelling_helpers import in_shown_order, label_rows

from judge_calibration.labelling.adjudication import measure_progress, queue_disagreements, settle_labels
from judge_calibration.labelling.importing import check_rows


def _labels(a_round, say):
    """Return labels of all packets by a function of (pair number, slot); None: no label."""
    numbers = {pair: i for i, pair in enumerate(sorted(a_round.pairs["pair_id"]))}
    key = a_round.unblinding
    said = [say(numbers[p], s) for p, s in zip(key["pair_id"], key["slot"], strict=True)]
    given = key.assign(said=said)
    given = given[given["said"].notna()]
    rows = label_rows(given, lambda row: in_shown_order(row, row["said"]))
    return check_rows(rows, key, a_round.packets, a_round.options, a_round.key).labels


CASES = {
    # number: (first, second, third) and what comes out under third_decides and under majority
    0: (("A", "A", None), ("A", "agreed", None), ("A", "agreed", None)),
    1: (("TIE", "TIE", None), ("TIE", "agreed", None), ("TIE", "agreed", None)),
    2: (("ABSTAIN", "ABSTAIN", None), ("ABSTAIN", "agreed", None), ("ABSTAIN", "agreed", None)),
    3: (("A", "B", "B"), ("B", "third_decides", None), ("B", "majority", None)),
    4: (("A", "B", "TIE"), ("TIE", "third_decides", None), (None, None, "unresolved")),
    5: (("A", "TIE", None), (None, None, "adjudication_missing"), (None, None, "adjudication_missing")),
    6: (("A", None, None), (None, None, "primaries_missing"), (None, None, "primaries_missing")),
    7: ((None, None, None), (None, None, "no_label"), (None, None, "no_label")),
    8: (("A", "ABSTAIN", "A"), ("A", "third_decides", None), ("A", "majority", None)),
    9: (("A", "A", "B"), ("A", "agreed", None), ("A", "agreed", None)),
}


class TestSettle:
    @pytest.fixture(scope="class")
    @staticmethod
    def labels(a_round):
        return _labels(a_round, lambda number, slot: CASES.get(number, ((None,) * 3,))[0][slot - 1])

    @pytest.mark.parametrize(("rule", "place"), [("third_decides", 1), ("majority", 2)])
    def test_every_case(self, a_round, labels, rule, place):
        settled = settle_labels(a_round.plan, labels, rule).set_index("pair_id")
        names = sorted(a_round.pairs["pair_id"])
        for number, case in CASES.items():
            row = settled.loc[names[number], ["label", "rule", "undefined"]]
            assert tuple(None if pd.isna(v) else v for v in row) == case[place], number

    def test_every_individual_label_is_kept(self, labels):
        assert len(labels) == sum(said is not None for case in CASES.values() for said in case[0])

    def test_the_queue_holds_open_disagreements_only_and_is_blinded(self, a_round, labels):
        queue = queue_disagreements(a_round.pairs, a_round.unblinding, labels)
        names = sorted(a_round.pairs["pair_id"])
        waiting = a_round.unblinding.set_index("packet_id").loc[queue["packet_id"], "pair_id"]
        assert list(waiting) == [names[5]]
        assert not {"label", "pair_id", "stage"} & set(queue.columns)
        primaries = a_round.plan[(a_round.plan["pair_id"] == names[5]) & (a_round.plan["stage"] == "primary")]
        assert queue["annotator_id"][0] not in set(primaries["annotator_id"])

    def test_progress_counts_what_is_due(self, a_round, labels):
        table = measure_progress(a_round.plan, labels, a_round.pairs, ("manipulation",))
        whole = table[table["scope"] == "all"].set_index("stage")
        assert whole.loc["primary", ["assigned", "labelled"]].tolist() == [240, 17]
        # Pairs 3, 4, 5 and 8 differ; 3, 4 and 8 have their third label.
        assert whole.loc["adjudication", ["assigned", "labelled", "remaining"]].tolist() == [4, 3, 1]
        assert whole.loc["primary", "ties"] == 3
        people = table[table["scope"] == "annotator"]
        assert people.loc[people["stage"] == "primary", "assigned"].sum() == 240
