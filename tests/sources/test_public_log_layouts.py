"""Each public layout of judges' logs on a small hand-made file with its traps."""

import json

import pytest

from judge_calibration.errors import SourceError
from judge_calibration.schemas import PAIRS, VERDICT_ROWS, problems_of
from judge_calibration.sources import SourceFile, read_logs


@pytest.fixture
def read(write):
    def read_file(name, content, layout, **over):
        log = read_logs([SourceFile(path=write(name, content), layout=layout, set=over)])
        assert problems_of(log.verdicts, VERDICT_ROWS) == []
        assert problems_of(log.pairs, PAIRS) == []
        return log

    return read_file


def test_judgebench_outputs_map_the_second_judgment_back(read):
    row = {
        "pair_id": "u1",
        "source": "mmlu",
        "question": "q",
        "response_model": "m",
        "response_A": "a",
        "response_B": "b",
        "label": "A>B",
        "judge_name": "arena_hard",
    }
    rows = [
        {**row, "judgments": [{"judgment": {}, "decision": "A>B"}, {"judgment": {}, "decision": "B>A"}]},
        {**row, "pair_id": "u2", "judgments": [{"judgment": {}, "decision": None}, None]},
        {
            **row,
            "pair_id": "u3",
            "judgments": [{"judgment": {}, "decision": "A=B"}, {"judgment": {}, "decision": "A>B"}],
        },
    ]
    name = "dataset=judgebench,response_model=m,judge_name=arena_hard,judge_model=o1-mini-2024.jsonl"
    log = read(name, rows, "judgebench_outputs")
    assert log.verdicts["judge_id"].unique().tolist() == ["o1-mini-2024"]
    assert log.verdicts["order"].tolist() == ["AB", "BA"] * 3
    assert log.verdicts["verdict"].fillna("-").tolist() == ["A", "A", "-", "-", "TIE", "B"]
    assert log.verdicts["outcome"].tolist() == ["valid", "valid", "malformed", "error", "valid", "valid"]
    assert log.pairs["reference_label"].tolist() == ["A"] * 3


def test_llmbar_results_take_the_last_stage(read):
    def stage(first, second, reason="stop"):
        return {
            "swap = False": {"completion": ["text", reason], "winner": first},
            "swap = True": {"completion": ["text", "stop"], "winner": second},
        }

    base = {"input": "q", "output_1": "a", "output_2": "b", "label": 2}
    rows = [
        {**base, "results": [stage("2", "1"), stage("2", "2")]},
        {**base, "input": "q2", "results": [stage(None, "1", "length")]},
        {
            **base,
            "input": "q3",
            "results": [
                {
                    "score_1": ["7", "stop"],
                    "score_2": ["7", "stop"],
                    "swap = False": {"winner": "1"},
                    "swap = True": {"winner": "2"},
                }
            ],
        },
    ]
    log = read("LLMBar/Natural/evaluators/GPT-4/Swap/result.json", rows, "llmbar_results")
    assert log.verdicts["verdict"].fillna("-").tolist() == ["B", "B", "-", "A", "A", "B"]
    assert log.verdicts["outcome"].tolist()[2] == "truncated"
    assert log.verdicts[["judge_id", "protocol"]].drop_duplicates().values.tolist() == [["GPT-4", "Swap"]]
    assert log.pairs[["source", "domain"]].drop_duplicates().values.tolist() == [["LLMBar", "Natural"]]


def test_llmbar_results_outside_their_folders_say_how_to_name_the_judge(read):
    result = {"swap = False": {"winner": "1"}, "swap = True": {"winner": "1"}}
    rows = [{"input": "q", "output_1": "a", "output_2": "b", "label": 2, "results": [result]}]
    with pytest.raises(SourceError, match=r"judge_id: \{const: VALUE\}"):
        read("result.json", rows, "llmbar_results")
    named = {"judge_id": {"const": "GPT-4"}, "protocol": {"const": "Swap"}}
    log = read("result.json", rows, "llmbar_results", fields=named)
    assert log.verdicts["judge_id"].tolist() == ["GPT-4"] * 2
    assert log.pairs["source"].tolist() == ["LLMBar"]


def test_llmbar_pairs_and_results_name_the_same_pair(read, write):
    from judge_calibration.sources import read_pairs

    row = {"input": "q", "output_1": "a", "output_2": "b", "label": 2}
    pairs = read_pairs([SourceFile(path=write("LLMBar/Natural/dataset.json", [row]), layout="llmbar")]).pairs
    result = {"swap = False": {"winner": "1"}, "swap = True": {"winner": "1"}}
    log = read("LLMBar/Natural/evaluators/J/S/result.json", [{**row, "results": [result]}], "llmbar_results")
    assert log.pairs["pair_id"].tolist() == pairs["pair_id"].tolist()
    assert log.pairs["content_hash"].tolist() == pairs["content_hash"].tolist()


def test_fastchat_pair_judgments(read):
    row = {
        "question_id": 81,
        "model_1": "alpaca",
        "model_2": "vicuna",
        "judge": ["gpt-4", "pair-v2"],
        "turn": 1,
        "g1_winner": "model_1",
        "g2_winner": "model_2",
        "g1_judgment": "x",
        "g2_judgment": "y",
        "tstamp": 1.5,
    }
    rows = [
        row,
        {**row, "turn": 2, "judge": ["gpt-4", "pair-v2-multi"], "g1_winner": "tie", "g2_winner": "error"},
        {**row, "model_2": "koala", "g2_judgment": "$ERROR$", "g2_winner": "error"},
    ]
    log = read("gpt-4_pair.jsonl", rows, "fastchat_pair")
    assert log.verdicts["order"].tolist() == ["AB", "BA"] * 3
    assert json.loads(log.source_files.loc[0, "notes"])["columns_not_read"] == ["tstamp"]
    # Already by model: the second game's model_2 is candidate B, whoever was shown first.
    assert log.verdicts["verdict"].fillna("-").tolist() == ["A", "B", "TIE", "-", "A", "-"]
    assert log.verdicts["shown_winner"].fillna("-").tolist()[:2] == ["first", "first"]
    assert log.verdicts["outcome"].tolist()[3:] == ["malformed", "valid", "error"]
    assert log.pairs["base_id"].unique().tolist() == ["mt-bench/81"]


def test_fastchat_rows_made_of_scores_are_flagged(read):
    row = {
        "question_id": 81,
        "model_1": "a",
        "model_2": "b",
        "judge": ["gpt-4", "single-v1"],
        "g1_winner": "tie",
        "g2_winner": "tie",
        "g1_judgment": "x",
        "g2_judgment": "y",
        "m1_score": 7.0,
        "m2_score": 7.0,
    }
    log = read("s.jsonl", [row], "fastchat_pair")
    assert all("derived_from_scores" in flags for flags in log.verdicts["flags"])


@pytest.mark.parametrize(
    ("preference", "verdict"), [(1.0000001827, "A"), (1.99, "B"), (1.5, "TIE"), (0, "TIE"), (None, "-")]
)
def test_alpacaeval_annotations_say_that_the_order_is_not_known(read, preference, verdict):
    row = {
        "instruction": "q",
        "output_1": "a",
        "output_2": "b",
        "generator_1": "m",
        "generator_2": "n",
        "annotator": "weighted",
        "preference": preference,
    }
    log = read("annotations.json", [row], "alpacaeval_annotations")
    assert log.verdicts["verdict"].fillna("-").tolist() == [verdict]
    assert json.loads(log.verdicts.loc[0, "flags"]) == ["order_not_recorded", "replayed"]
    assert log.verdicts["shown_winner"].isna().all()
    assert log.pairs["reference_label"].isna().all()


def test_inspect_ai(read):
    def sample(order, epoch, answer, **more):
        return {
            "id": "s1",
            "epoch": epoch,
            "metadata": {"pair_id": "p1", "order": order},
            "scores": {"pairwise": {"value": "C", "answer": answer}},
            "output": {"choices": [{"stop_reason": "stop"}]},
            **more,
        }

    document = {
        "version": 2,
        "status": "success",
        "eval": {
            "model": "openai/gpt-4o",
            "task": "judge_pairs",
            "model_generate_config": {"temperature": 0.5},
        },
        "samples": [
            sample("AB", 1, "A"),
            sample("BA", 1, "A"),
            sample("AB", 2, "I cannot say"),
            sample("BA", 2, None, error={"message": "boom"}, scores=None),
            sample("AB", 3, None, output={"choices": [{"stop_reason": "max_tokens"}]}),
        ],
    }
    log = read("log.json", json.dumps(document), "inspect_ai")
    assert log.verdicts["verdict"].fillna("-").tolist() == ["A", "B", "-", "-", "-"]
    assert log.verdicts["outcome"].tolist() == ["valid", "valid", "malformed", "error", "truncated"]
    assert log.verdicts["repetition"].tolist() == [0, 0, 1, 1, 2]
    assert log.verdicts.loc[0, ["judge_id", "protocol", "temperature"]].tolist() == [
        "openai/gpt-4o",
        "judge_pairs",
        0.5,
    ]


def test_inspect_ai_with_several_scorers_asks_which_is_meant(read):
    sample = {
        "id": 1, "epoch": 1, "metadata": {"pair_id": "p", "order": "AB"},
        "scores": {"first": {"answer": "A"}, "second": {"answer": "B"}},
    }  # fmt: skip
    document = json.dumps({"eval": {"model": "m", "task": "t"}, "samples": [sample]})
    with pytest.raises(SourceError, match="several entries: first, second"):
        read("log.json", document, "inspect_ai")
    fields = {"verdict": {"column": "scores.second.answer", "optional": True}}
    assert read("log.json", document, "inspect_ai", fields=fields).verdicts["verdict"].tolist() == ["B"]


def test_inspect_ai_without_the_metadata_is_refused(read):
    document = {
        "eval": {"model": "m", "task": "t"},
        "samples": [{"id": 1, "epoch": 1, "metadata": {}, "scores": {}}],
    }
    with pytest.raises(SourceError, match=r"metadata\.pair_id"):
        read("log.json", json.dumps(document), "inspect_ai")


def test_promptfoo(read):
    def result(order, output, **more):
        return {
            "vars": {"pair_id": "p1", "order": order},
            "provider": {"id": "openai:gpt-4o"},
            "prompt": {"label": "v1"},
            "response": {"output": output},
            "success": False,
            "failureReason": 1,
            "error": None,
            **more,
        }

    rows = [
        result("AB", "B"),
        result("AB", "A"),
        result("BA", "C"),
        result("BA", "Both are fine."),
        result("BA", None, response=None, error="API error: 429 Too Many Requests", failureReason=2),
    ]
    document = {"evalId": "e", "results": {"version": 3, "results": rows}, "config": {}}
    log = read("out.json", json.dumps(document), "promptfoo")
    assert log.verdicts["verdict"].fillna("-").tolist() == ["B", "A", "TIE", "-", "-"]
    assert log.verdicts["outcome"].tolist() == ["valid", "valid", "valid", "malformed", "rate_limited"]
    assert log.verdicts["repetition"].tolist() == [0, 1, 0, 1, 2]  # an assertion that failed is no outcome


def test_deepeval(read):
    def case(order, output):
        return {
            "name": "t",
            "input": "...",
            "actualOutput": output,
            "success": True,
            "metadata": {"pair_id": "p1", "order": order, "judge_id": "gpt-4o"},
        }

    log = read(
        "run.json",
        json.dumps({"testCases": [case("AB", "A"), case("BA", "B"), case("BA", "??")]}),
        "deepeval",
    )
    assert log.verdicts["verdict"].fillna("-").tolist() == ["A", "A", "-"]
    assert log.verdicts["outcome"].tolist() == ["valid", "valid", "malformed"]


def test_lm_eval_harness(read):
    def sample(order, reply, filter_name="none"):
        return {
            "doc_id": 0,
            "doc": {"pair_id": "p1", "order": order},
            "target": "A",
            "resps": [[reply]],
            "filtered_resps": [reply],
            "filter": filter_name,
            "metrics": ["acc"],
            "acc": 1.0,
        }

    rows = [
        sample("AB", "A"),
        sample("BA", "A"),
        sample("AB", "[invalid]", "regex"),
        sample("BA", "", "regex"),
    ]
    log = read("gpt-j/samples_judge_pairs_2026-01-02T10-00-00.jsonl", rows, "lm_eval_harness")
    assert log.verdicts["judge_id"].unique().tolist() == ["gpt-j"]
    assert log.verdicts["protocol"].unique().tolist() == ["judge_pairs/none", "judge_pairs/regex"]
    assert log.verdicts["verdict"].fillna("-").tolist() == ["A", "B", "-", "-"]
    assert log.verdicts["outcome"].tolist()[2:] == ["malformed", "empty"]
