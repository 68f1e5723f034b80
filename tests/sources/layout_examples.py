"""A few rows of every layout, hand-made, with what they have to be read as."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

AB = ("AB", "BA")


class Example(NamedTuple):
    """Rows of a layout.

    Attributes
    ----------
    file : str
        A name as the publisher's files have, with the folders that the layout reads.
    rows : list of dict
        The records.
    read : list
        Pairs: the text that each label points at, TIE, or None. Verdicts: (order, verdict or outcome).
        Labels: the labels.
    texts : tuple of str
        Paths (dotted) of texts that a judge is shown, in the first row.
    label : str
        The path of the label or verdict in the first row; empty where there is none to spoil.
    optional : tuple of str
        Top-level columns without which the rows are read the same.
    document : str
        JSON layouts: what stands around the list of records, with ROWS in its place.
    """

    file: str
    rows: list[dict[str, Any]]
    read: list[Any]
    texts: tuple[str, ...] = ()
    label: str = ""
    optional: tuple[str, ...] = ()
    document: str = "ROWS"


def _chat(question: str, answer: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def _each(base: dict[str, Any], *changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**base, **change} for change in changes]


_PAIR = {"question": "q1", "response_a": "a1", "response_b": "b1"}
_PROMPTFOO = {"provider": {"id": "openai:j"}, "prompt": {"label": "v1"}, "error": None, "failureReason": 0}
_LLMBAR = {"input": "q1", "output_1": "a1", "output_2": "b1", "label": 1}
_MT_ITEM = {
    "item_id": "i1", "question_id": 81, "category": "writing", "model_a": "m", "model_b": "n",
    "question": "q1", "prior_turns": "[]", "answer_a": "a1", "answer_b": "b1", "n_a": 2, "n_b": 1, "n_tie": 0,
    "votes": '["a", "b", "tie"]', "voters": '["expert_1", "expert_2", "author_1"]',
}  # fmt: skip
_AMEL = {
    "judge": "j", "regime": "fresh", "item_id": "i1", "swap": False, "repetition": 0, "parsed_label": "1",
    "truth_label_after_swap": "1", "raw_response": "1",
}  # fmt: skip
_JTJ = {
    "benchmark": "MTBench", "task": "writing", "cmp_index": "81;m;n", "judge": "j", "repetition": 1,
    "verdict_letter": "A", "shown_first": "m", "shown_second": "n", "output_chars": "9",
    "n_verdict_matches": "1",
}  # fmt: skip
_JUDGEBENCH = {
    "pair_id": "u1", "original_id": 3, "source": "mmlu", "question": "q1", "response_model": "m",
    "response_A": "a1", "response_B": "b1", "label": "A>B",
}  # fmt: skip
_FASTCHAT = {
    "question_id": 81, "model_1": "m", "model_2": "n", "judge": ["gpt-4", "pair-v2"], "turn": 1,
    "g1_winner": "model_1", "g2_winner": "model_1", "g1_judgment": "x", "g2_judgment": "y",
}  # fmt: skip
_ALPACA = {
    "instruction": "q1", "output_1": "a1", "output_2": "b1", "generator_1": "m", "generator_2": "n",
    "annotator": "gpt4", "preference": 1.0000002,
}  # fmt: skip
_SHP = {
    "post_id": "p1", "domain": "pets", "history": "q1", "c_root_id_A": "1", "c_root_id_B": "2",
    "human_ref_A": "a1", "human_ref_B": "b1", "labels": 1,
}  # fmt: skip

EXAMPLES: dict[str, Example] = {
    "pairs": Example(
        "mine.jsonl",
        _each({**_PAIR, "reference_label": "A", "reference_kind": "human"}, {},
              {"question": "q2", "reference_label": "TIE"}, {"question": "q3", "reference_label": "B"}),
        ["a1", "TIE", "b1"], ("question", "response_a", "response_b"), "reference_label",
    ),
    "verdicts": Example(
        "log.jsonl",
        _each({"pair_id": "p1", "judge_id": "j", "order": "AB", "verdict": "A", "protocol": "x"}, {},
              {"order": "BA"}, {"pair_id": "p2", "verdict": "TIE"},
              {"pair_id": "p2", "order": "BA", "verdict": ""}),
        [("AB", "A"), ("BA", "A"), ("AB", "TIE"), ("BA", "missing")], (), "verdict", ("protocol",),
    ),
    "labels": Example(
        "people.jsonl",
        _each({"pair_id": "p1", "annotator_id": "x", "label": "A"}, {},
              {"annotator_id": "y", "label": "TIE"}),
        ["A", "TIE"], (), "label",
    ),
    "llmbar": Example(
        "Dataset/LLMBar/Natural/dataset.json",
        _each(_LLMBAR, {}, {"input": "q2", "label": 2}), ["a1", "b1"],
        ("input", "output_1", "output_2"), "label",
    ),
    "llmbar_results": Example(
        "LLMBar/Natural/evaluators/GPT-4/Swap/result.json",
        [{**_LLMBAR, "results": [{
            "swap = False": {"completion": ["t", "stop"], "winner": "1"},
            "swap = True": {"completion": ["t", "length"], "winner": None}}]}],
        [("AB", "A"), ("BA", "truncated")], ("input", "output_1", "output_2"), "label",
    ),
    "llmbar_verdicts": Example(
        "verdicts_long.csv",
        _each({"subset": "LLMBar/Natural", "judge_model": "j", "strategy": "s", "row": 0, "label": 1,
               "order": "AB",
               "winner_identity": "1", "finish_reason": "stop", "stage": "1"},
              {}, {"order": "BA"}, {"row": 1, "winner_identity": "", "finish_reason": "length"}),
        [("AB", "A"), ("BA", "A"), ("AB", "truncated")], (), "winner_identity",
    ),
    "mtbench": Example(
        "human.parquet",
        _each({"question_id": 81, "model_a": "m", "model_b": "n", "winner": "model_a", "judge": "expert_1",
               "conversation_a": _chat("q1", "a1"), "conversation_b": _chat("q1", "b1"), "turn": 1},
              {},
              {"model_a": "n", "model_b": "m", "winner": "model_b", "judge": "expert_2",
               "conversation_a": _chat("q1", "b1"), "conversation_b": _chat("q1", "a1")},
              {"question_id": 82, "winner": "tie", "conversation_a": _chat("q2", "a2"),
               "conversation_b": _chat("q2", "b2")}),
        ["a1", "TIE"], (), "winner", ("judge",),
    ),
    "mtbench_items": Example(
        "items.parquet", _each(_MT_ITEM, {}, {"item_id": "i2", "question": "q2", "n_b": 2}), ["a1", "TIE"],
        ("question", "answer_a", "answer_b"), "n_a", ("votes", "voters"),
    ),
    "mtbench_votes": Example("items.parquet", [_MT_ITEM], ["A", "B", "TIE"], optional=("n_a", "question")),
    "amel_llmbar": Example(
        "pilot_responses.jsonl",
        _each(_AMEL, {}, {"swap": True, "truth_label_after_swap": "2", "repetition": 1},
              {"repetition": 2, "raw_response": "ERROR: 429 Too Many", "parsed_label": "2"}),
        [("AB", "A"), ("BA", "B"), ("AB", "rate_limited")], (), "parsed_label",
    ),
    "judging_the_judges": Example(
        "verdicts.csv",
        _each(_JTJ, {}, {"shown_first": "n", "shown_second": "m"}, {"repetition": 2, "verdict_letter": "C"},
              {"repetition": 3, "verdict_letter": "", "output_chars": "0"}),
        [("AB", "A"), ("BA", "B"), ("AB", "TIE"), ("AB", "empty")], (), "verdict_letter",
    ),
    "judgebench": Example(
        "dataset=judgebench,response_model=m.jsonl",
        _each(_JUDGEBENCH, {}, {"pair_id": "u2", "question": "q2", "label": "B>A"}), ["a1", "b1"],
        ("question", "response_A", "response_B"), "label", ("original_id",),
    ),
    "judgebench_outputs": Example(
        "dataset=judgebench,response_model=m,judge_name=arena,judge_model=o1-mini.jsonl",
        [{**_JUDGEBENCH, "judge_name": "arena",
          "judgments": [{"judgment": {}, "decision": "A>B"}, {"judgment": {}, "decision": "A>B"}]},
         {**_JUDGEBENCH, "pair_id": "u2", "judge_name": "arena", "judgments": [{"decision": "A=B"}, None]}],
        [("AB", "A"), ("BA", "B"), ("AB", "TIE"), ("BA", "error")],
        ("question", "response_A", "response_B"), "label",
    ),
    "fastchat_pair": Example(
        "gpt-4_pair.jsonl",
        _each(_FASTCHAT, {}, {"turn": 2, "g1_winner": "tie", "g2_winner": "error", "g2_judgment": "$ERROR$"}),
        [("AB", "A"), ("BA", "A"), ("AB", "TIE"), ("BA", "error")], (), "g1_winner",
    ),
    "alpacafarm": Example(
        "alpaca_human_preference.json",
        _each({"instruction": "q1", "input": "", "output_1": "a1", "output_2": "b1", "preference": 1}, {},
              {"instruction": "q2", "preference": 2}, {"instruction": "q3", "preference": 0},
              {"instruction": "q4", "preference": None}),
        ["a1", "b1", "TIE", None], ("instruction", "output_1", "output_2"), "preference",
    ),
    "alpacaeval": Example(
        "results/m/weighted/annotations.json",
        _each(_ALPACA, {}, {"instruction": "q2", "preference": 1.5}, {"instruction": "q3", "preference": 2},
              {"instruction": "q4", "preference": None}, {"instruction": "q5", "preference": 0}),
        ["a1", "TIE", "b1", None, "TIE"], ("instruction", "output_1", "output_2"), "preference",
        ("annotator",),
    ),
    "alpacaeval_annotations": Example(
        "results/m/weighted/annotations.json",
        _each(_ALPACA, {}, {"instruction": "q2", "preference": 1.5},
              {"instruction": "q3", "preference": None}),
        [("AB", "A"), ("AB", "TIE"), ("AB", "malformed")],
        ("instruction", "output_1", "output_2"), "preference",
    ),
    "rewardbench": Example(
        "filtered.parquet",
        [{"id": 1, "subset": "chat", "prompt": "q1", "chosen": "a1", "rejected": "b1", "chosen_model": "m",
          "rejected_model": "n"}],
        ["a1"], ("prompt", "chosen", "rejected"),
    ),
    "rewardbench2": Example(
        "test.parquet",
        [{"id": "7", "subset": "Ties", "prompt": "q1", "chosen": ["a1", "a2"], "rejected": ["b1"],
          "num_correct": 2}],
        ["a1", "a2"], ("prompt", "chosen.0", "rejected.0"), optional=("num_correct",),
    ),
    "helpsteer2": Example(
        "preference/preference.jsonl",
        _each({"split": "train", "prompt": "q1", "response_1": "a1", "response_2": "b1",
               "preference_strength": -2},
              {}, {"prompt": "q2", "preference_strength": 0}, {"prompt": "q3", "preference_strength": 3}),
        ["a1", "TIE", "b1"], ("prompt", "response_1", "response_2"), "preference_strength", ("split",),
    ),
    "helpsteer2_ratings": Example(
        "train.jsonl",
        _each({"prompt": "q1", "response": "a1", "helpfulness": 3, "correctness": 4},
              {}, {"response": "b1", "helpfulness": 1}),
        ["a1"], ("prompt", "response"), "helpfulness", ("correctness",),
    ),
    "hh_rlhf": Example(
        "harmless-base/test.jsonl",
        [{"chosen": "\n\nHuman: q1\n\nAssistant: a1", "rejected": "\n\nHuman: q1\n\nAssistant: b1"}], ["a1"],
    ),
    "shp": Example(
        "askbaking/train.json", _each(_SHP, {}, {"c_root_id_B": "3", "labels": 0}), ["a1", "b1"],
        ("history", "human_ref_A", "human_ref_B"), "labels",
    ),
    "webgpt": Example(
        "comparisons.jsonl",
        _each({"question": {"dataset": "eli5", "id": "x", "full_text": "q1"}, "answer_0": "a1",
               "answer_1": "b1",
               "score_0": 0.5, "score_1": -0.5},
              {}, {"question": {"dataset": "eli5", "id": "y", "full_text": "q2"}, "score_0": 0}),
        ["a1", "TIE"], ("question.full_text", "answer_0", "answer_1"), "score_0", ("score_1",),
    ),
    "summarize_from_feedback": Example(
        "comparisons/batch3.json",
        [{"info": {"id": "t1", "post": "q1", "subreddit": "pets"}, "choice": 0, "worker": "w",
          "summaries": [{"text": "a1", "policy": "x"}, {"text": "b1", "policy": "y"}]},
         {"info": {"id": "t2", "article": "q2"}, "choice": 1, "worker": "w",
          "summaries": [{"text": "a2", "policy": "x"}, {"text": "b2", "policy": "y"}]}],
        ["a1", "b2"], ("info.post", "summaries.0.text"), "choice", ("worker",),
    ),
    "ppe_human_preference": Example(
        "test.parquet",
        _each({"question_id": "x", "model_a": "m", "model_b": "n", "winner": "model_b", "prompt": "q1",
               "response_1": "a1", "response_2": "b1", "language": "English", "is_code": False},
              {}, {"question_id": "y", "prompt": "q2", "winner": "tie (bothbad)"}),
        ["b1", "TIE"], ("prompt", "response_1", "response_2"), "winner", ("is_code",),
    ),
    "arena_conversations": Example(
        "train.parquet",
        _each({"question_id": "x", "model_a": "m", "model_b": "n", "winner": "model_a",
               "judge": "arena_user_1",
               "conversation_a": _chat("q1", "a1"), "conversation_b": _chat("q1", "b1"), "turn": 1,
               "anony": True, "language": "English", "tstamp": 1.5},
              {}, {"question_id": "y", "winner": "tie", "conversation_a": _chat("q2", "a2"),
                   "conversation_b": _chat("q2", "b2")}),
        ["a1", "TIE"], (), "winner", ("judge", "anony", "tstamp"),
    ),
    "arena_140k": Example(
        "train.parquet",
        _each({"id": "v1", "evaluation_session_id": "s1", "evaluation_order": 1, "language": "en",
               "model_a": "m", "model_b": "n", "winner": "model_b",
               "conversation_a": [{"role": "user", "content": [{"type": "text", "text": "q1"}]},
                                  {"role": "assistant", "content": [{"type": "text", "text": "a1"}]}],
               "conversation_b": [{"role": "user", "content": [{"type": "text", "text": "q1"}]},
                                  {"role": "assistant", "content": [{"type": "text", "text": "b1"}]}]},
              {}, {"id": "v2", "winner": "both_bad"}),
        ["b1", "TIE"], (), "winner", ("evaluation_order",),
    ),
    "arena_55k": Example(
        "train.csv",
        _each({"id": 1, "model_a": "m", "model_b": "n", "prompt": '["q1"]', "response_a": '["a1"]',
               "response_b": '["b1"]', "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0},
              {}, {"id": 2, "prompt": '["q2"]', "winner_model_a": 0, "winner_tie": 1}),
        ["a1", "TIE"], (), "winner_model_a",
    ),
    "pandalm": Example(
        "testset-v1.json",
        _each({"idx": 1, "motivation_app": "Mail", "cmp_key": "m_n", "instruction": "q1", "input": "",
               "response1": "a1", "response2": "b1", "annotator1": 1, "annotator2": 1, "annotator3": 2},
              {}, {"idx": 2, "instruction": "q2", "annotator1": 0, "annotator2": 0}),
        ["a1", "TIE"], ("instruction", "response1", "response2"), "annotator1",
    ),
    "ultrafeedback": Example(
        "evol_instruct.jsonl",
        [{"source": "evol", "instruction": "q1", "completions": [
            {"model": "m", "response": "a1", "overall_score": 8.5},
            {"model": "n", "response": "b1", "overall_score": 7.0}]}],
        ["a1"], ("instruction", "completions.0.response"), "completions.0.overall_score",
    ),
    "if_rewardbench": Example(
        "if_rewardbench.json",
        [{"id": 3, "instruction_type": "single", "messages": [{"role": "user", "content": "q1"}],
          "responses": [{"response": "a1"}, {"response": "b1"}],
          "preference_graph": [{"chosen": {"response_id": 0}, "rejected": {"response_id": 1}}]}],
        ["a1"], ("responses.0.response",),
    ),
    "inspect_ai": Example(
        "log.json",
        _each({"id": "s", "epoch": 1, "metadata": {"pair_id": "p1", "order": "AB"},
               "scores": {"judge": {"value": "C", "answer": "A"}},
               "output": {"choices": [{"stop_reason": "stop"}]}},
              {}, {"metadata": {"pair_id": "p1", "order": "BA"}},
              {"epoch": 2, "scores": {"judge": {"value": "I", "answer": "Both"}}}),
        [("AB", "A"), ("BA", "B"), ("AB", "malformed")], optional=("id",),
        document='{"version": 2, "eval": {"model": "openai/j", "task": "judge"}, "samples": ROWS}',
    ),
    "promptfoo": Example(
        "out.json",
        _each({**_PROMPTFOO, "vars": {"pair_id": "p1", "order": "AB"}, "response": {"output": "B"}},
              {}, {"vars": {"pair_id": "p1", "order": "BA"}},
              {"vars": {"pair_id": "p2", "order": "AB"}, "response": None, "failureReason": 2,
               "error": "boom"}),
        [("AB", "B"), ("BA", "A"), ("AB", "error")],
        document='{"evalId": "e", "results": {"version": 3, "results": ROWS}, "config": {}}',
    ),
    "deepeval": Example(
        "test_run_1.json",
        _each({"name": "t", "input": "x", "actualOutput": "A",
               "metadata": {"pair_id": "p1", "order": "AB", "judge_id": "j"}},
              {}, {"metadata": {"pair_id": "p1", "order": "BA", "judge_id": "j"}, "actualOutput": "TIE"}),
        [("AB", "A"), ("BA", "TIE")], optional=("name", "input"),
        document='{"testCases": ROWS, "testPassed": 1}',
    ),
    "lm_eval_harness": Example(
        "gpt-j/samples_judge_pairs_2026-01-02T10-00-00.jsonl",
        _each({"doc_id": 0, "doc": {"pair_id": "p1", "order": "AB"}, "target": "A", "resps": [["A"]],
               "filtered_resps": ["A"], "filter": "none"},
              {}, {"doc": {"pair_id": "p1", "order": "BA"}}, {"doc_id": 1, "filtered_resps": ["[invalid]"]}),
        [("AB", "A"), ("BA", "B"), ("AB", "malformed")], optional=("doc_id", "target", "resps"),
    ),
}  # fmt: skip


def is_flat(rows: list[dict[str, Any]]) -> bool:
    """Say whether a table can hold the rows: single values that a file of text does not alter."""
    return all(isinstance(value, (str, int)) and value is not True and value is not False
               for row in rows for value in row.values())  # fmt: skip


def as_json(example: Example, rows: list[dict[str, Any]], **how: Any) -> str:
    """Return the rows as one JSON document."""
    return example.document.replace("ROWS", json.dumps(rows, **how))
