"""What is proposed for an unknown file, and what is left to its owner."""

import pytest
import yaml

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.sources import propose_layout


def test_a_packaged_layout_is_recognised(write):
    row = {
        "pair_id": "u", "source": "s", "question": "q", "response_model": "m", "response_A": "a",
        "response_B": "b", "label": "A>B",
    }  # fmt: skip
    proposal = propose_layout(write("x.jsonl", [row]))
    assert proposal.fitting[0] == "judgebench"
    assert proposal.text == ""


def test_a_layout_with_two_columns_is_recognised_when_there_are_no_others(write):
    turns = "\n\nHuman: q\n\nAssistant: a"
    assert propose_layout(write("hb/test.jsonl", [{"chosen": turns, "rejected": turns}])).fitting == [
        "hh_rlhf"
    ]
    assert (
        propose_layout(write("hb/train.jsonl", [{"chosen": turns, "rejected": turns, "x": 1}])).fitting == []
    )


def test_unknown_pairs_get_names_and_open_meanings(write):
    rows = [{"prompt": "q", "output_1": "a", "output_2": "b", "winner": value} for value in (0, 0, 1, None)]
    proposal = propose_layout(write("x.jsonl", rows))
    described = yaml.safe_load(proposal.text)
    assert described["fields"] == {
        "question": "prompt",
        "response_a": "output_1",
        "response_b": "output_2",
        "label": "winner",
    }
    assert described["codes"]["TIE"] == ["?"]
    assert "0 (number) (2)" in proposal.text
    assert described["order_mode"] == "?"


def test_an_unknown_log_is_told_from_pairs(write):
    rows = [{"item_id": 1, "judge_model": "j", "position": "x", "decision": "left"}]
    described = yaml.safe_load(propose_layout(write("x.jsonl", rows)).text)
    assert described["kind"] == "verdicts"
    assert described["fields"]["verdict"] == "decision"


def test_a_proposal_cannot_be_used_before_it_is_completed(write):
    from judge_calibration.sources import SourceFile, read_pairs

    rows = [{"prompt": "q", "output_1": "a", "output_2": "b", "winner": 0}]
    path = write("x.jsonl", rows)
    layout = write("mine.yml", propose_layout(path).text)
    with pytest.raises(JudgeCalibrationError, match="order_mode"):
        read_pairs([SourceFile(path=path, layout=layout)])


@pytest.mark.parametrize("content", ["", "{oops", b"\xff\xfe\x00"])
def test_an_unreadable_file_is_told(write, content):
    with pytest.raises(JudgeCalibrationError):
        propose_layout(write("x.jsonl", content))


def test_no_such_file():
    with pytest.raises(JudgeCalibrationError, match="no such file"):
        propose_layout("nowhere.csv")
