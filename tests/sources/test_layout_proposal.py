"""What is proposed for an unknown file, and what is left to its owner."""

import pytest
import yaml

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.sources import SourceFile, propose_layout, read_logs, read_pairs


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


def test_nested_values_are_proposed_by_their_paths(write):
    rows = [
        {
            "id": k,
            "input": {"prompt": f"q{k}", "meta": {"lang": "en"}},
            "answers": [{"text": "an answer", "model": "m"}, {"text": "another", "model": "n"}],
            "winner": {"model": 1 + k % 2},
        }
        for k in range(4)
    ]
    proposal = propose_layout(write("x.jsonl", rows))
    assert yaml.safe_load(proposal.text)["fields"] == {
        "question": "input.prompt",
        "response_a": "answers.0.text",
        "response_b": "answers.1.text",
        "pair_id": "id",
        "label": "winner.model",
    }
    assert "1 (number) (2)" in proposal.text
    # Completed by a person, it reads the file.
    described = yaml.safe_load(proposal.text) | {
        "title": "Mine", "licence": None, "order_mode": "identity", "reference_kind": "human",
        "codes": {"A": [1], "B": [2]},
    }  # fmt: skip
    layout = write("mine.yml", yaml.safe_dump(described))
    pairs = read_pairs([SourceFile(path=write("x.jsonl", rows), layout=layout)]).pairs
    assert pairs["response_b"].tolist() == ["another"] * 4
    assert pairs["reference_label"].tolist() == ["A", "B", "A", "B"]


def test_chat_messages_are_one_value(write):
    rows = [
        {
            "messages": [{"role": "user", "content": "q"}],
            "a": {"response": "x"},
            "b": {"response": "y"},
            "gold": "a",
        }
    ]
    fields = yaml.safe_load(propose_layout(write("x.jsonl", rows)).text)["fields"]
    assert fields == {
        "question": "messages", "response_a": "a.response", "response_b": "b.response", "label": "gold",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "sides"),
    [
        (("question", "model_a", "model_b", "answer_a", "answer_b"), ("answer_a", "answer_b")),
        (("prompt", "winner_model_a", "winner_model_b", "response_left", "response_right"),
         ("response_left", "response_right")),
        (("q", "Antwort 1", "Antwort 2", "score 1", "score 2"), ("Antwort 1", "Antwort 2")),
        (("data", "info"), ("?", "?")),
        (("prompt", "model_1_answer", "model_2_answer", "model_1", "model_2"),
         ("model_1_answer", "model_2_answer")),
        (("prompt", "old answer", "new answer"), ("old answer", "new answer")),
        (("prompt", "outputA", "outputB"), ("outputA", "outputB")),
    ],
)  # fmt: skip
def test_the_answers_are_the_columns_that_differ_by_side(write, names, sides):
    fields = yaml.safe_load(propose_layout(write("x.jsonl", [dict.fromkeys(names, "some text")])).text)[
        "fields"
    ]
    assert (fields["response_a"], fields["response_b"]) == sides


def test_a_log_without_texts_and_order_says_how_to_go_on(write):
    rows = [{"item_id": k, "judge_model": "j", "decision": "left", "gold": "left"} for k in range(3)]
    proposal = propose_layout(write("x.jsonl", rows))
    described = yaml.safe_load(proposal.text)
    assert set(described["fields"]) == {"pair_id", "judge_id", "order", "verdict", "reference_label"}
    assert described["rules"] == {"missing_texts": "allow"}
    assert any("order_recorded: false" in remark for remark in proposal.remarks)
    described |= {
        "title": "Mine", "licence": None, "order_mode": "identity", "reference_kind": "human",
        "order_recorded": False, "codes": {"A": ["left"], "B": ["right"]},
        "reference_codes": {"A": ["left"], "B": ["right"]},
    }  # fmt: skip
    described["fields"]["order"] = {"const": "AB"}
    layout = write("mine.yml", yaml.safe_dump(described))
    log = read_logs([SourceFile(path=write("x.jsonl", rows), layout=layout)])
    assert log.verdicts["verdict"].tolist() == ["A"] * 3


def test_an_order_in_other_words_has_to_be_said(write):
    rows = [{"id": k, "judge": "j", "swapped": bool(k % 2), "verdict": "A"} for k in range(4)]
    proposal = propose_layout(write("x.jsonl", [{**row, "verdict": "left"} for row in rows]))
    assert yaml.safe_load(proposal.text)["order_codes"] == {"AB": ["?"], "BA": ["?"]}
    assert "false (boolean) (2)" in proposal.text


def test_names_that_yaml_would_read_otherwise_are_quoted(write):
    rows = [
        {"prompt": "q", "response_a": "x", "response_b": "y", "label": "1", "yes: no": "z", "domain": "d"}
    ]
    text = propose_layout(write("x.jsonl", [{**row, "question #": "q"} for row in rows])).text
    assert yaml.safe_load(text)["fields"]["question"] == "prompt"
    text = propose_layout(write("y.csv", "1,answer_a,answer_b,on\nq,x,y,z\n")).text
    assert yaml.safe_load(text)["fields"]["response_b"] == "answer_b"


def test_a_column_of_json_text_is_told(write):
    rows = [{"prompt": '["q"]', "response_a": '["a"]', "response_b": '["b"]', "label": 1}]
    assert any("json_text: true" in remark for remark in propose_layout(write("x.jsonl", rows)).remarks)


def test_a_proposal_cannot_be_used_before_it_is_completed(write):
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
