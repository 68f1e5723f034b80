"""Labels by people: one a person and pair, places mapped back, double votes."""

import pytest

from judge_calibration.errors import SourceError
from judge_calibration.schemas import LABELS, problems_of
from judge_calibration.sources import SourceFile, read_labels

ROW = {"pair_id": "p1", "annotator_id": "ann", "label": "A"}


@pytest.fixture
def labels_of(write):
    def read(name, content, layout="labels", **over):
        return read_labels([SourceFile(path=write(name, content), layout=layout, set=over)]).labels

    return read


def test_labels_obey_their_schema(labels_of):
    frame = labels_of("l.jsonl", [ROW, {**ROW, "annotator_id": "bob", "label": "TIE"}])
    assert problems_of(frame, LABELS) == []
    assert frame["order"].isna().all()


def test_shown_labels_are_mapped_back(labels_of):
    rows = [{**ROW, "label": "1", "order": "BA"}]
    frame = labels_of(
        "l.jsonl", rows, codes={"first": [1], "second": [2]}, order_mode="shown", fields={"order": "order"}
    )
    assert frame["label"].tolist() == ["B"]


def test_who_made_them_is_kept(labels_of):
    assert labels_of("l.jsonl", [ROW])["kind"].tolist() == ["human"]
    assert labels_of("l.jsonl", [ROW], reference_kind="ai")["kind"].tolist() == ["ai"]


@pytest.mark.parametrize(("kind", "found"), [(None, "nothing"), ("benchmark", "'benchmark'")])
def test_who_made_them_has_to_be_said(labels_of, kind, found):
    with pytest.raises(SourceError, match=f"reference_kind: found {found}; wanted who made these labels"):
        labels_of("l.jsonl", [ROW], reference_kind=kind)


@pytest.mark.parametrize(("second", "fine"), [("A", True), ("B", False)])
def test_one_person_twice_on_one_pair(labels_of, second, fine):
    rows = [ROW, {**ROW, "label": second}]
    with pytest.raises(SourceError, match="twice"):
        labels_of("l.jsonl", rows)
    if fine:
        assert len(labels_of("l.jsonl", rows, rules={"repeated_votes": "merge"})) == 1
    else:
        with pytest.raises(SourceError, match="twice"):
            labels_of("l.jsonl", rows, rules={"repeated_votes": "merge"})


@pytest.mark.parametrize("column", ["pair_id", "annotator_id", "label"])
def test_a_missing_value_names_its_row(labels_of, column):
    with pytest.raises(SourceError, match=f"row 1, column {column}"):
        labels_of("l.jsonl", [{**ROW, column: None}])


def test_votes_as_json_text_in_lists(labels_of):
    row = {"item_id": "p1", "votes": '["a", "tie", "a"]', "voters": '["x", "y", "x"]'}
    frame = labels_of("l.jsonl", [row], layout="mtbench_votes", format="jsonl")
    assert frame[["annotator_id", "label"]].values.tolist() == [["x", "A"], ["y", "TIE"]]


def test_lists_of_different_length(labels_of):
    row = {"item_id": "p1", "votes": '["a"]', "voters": '["x", "y"]'}
    with pytest.raises(SourceError, match="lists of one length"):
        labels_of("l.jsonl", [row], layout="mtbench_votes", format="jsonl")
