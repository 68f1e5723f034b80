"""Each public layout of pairs on a small hand-made file with its traps."""

import json

import pandas as pd
import pytest

from judge_calibration.errors import SourceError
from judge_calibration.schemas import PAIRS, problems_of
from judge_calibration.sources import SourceFile, read_pairs


@pytest.fixture
def read(write):
    def read_file(name, content, layout, **over):
        read = read_pairs([SourceFile(path=write(name, content), layout=layout, set=over)])
        assert problems_of(read.pairs, PAIRS) == []
        return read

    return read_file


def winners(pairs: pd.DataFrame) -> list[str | None]:
    """Return the text that the label points at; None for no label, TIE for a tie."""
    sides = {"A": "response_a", "B": "response_b"}
    return [
        row[sides[row["reference_label"]]] if row["reference_label"] in sides else row["reference_label"]
        for row in pairs.to_dict("records")
    ]


def test_llmbar(read):
    rows = [{"input": "Say hi.", "output_1": "Hi.", "output_2": "No.", "label": 1}]
    pairs = read("Dataset/LLMBar/Adversarial/Manual/dataset.json", rows, "llmbar").pairs
    assert pairs.loc[0, ["source", "domain", "reference_label"]].tolist() == [
        "LLMBar",
        "Adversarial/Manual",
        "A",
    ]
    assert pairs.loc[0, "pair_id"].startswith("LLMBar-")


def test_llmbar_outside_its_folders_has_no_subset(read):
    rows = [{"input": "Say hi.", "output_1": "Hi.", "output_2": "No.", "label": 1}]
    pairs = read("renamed.json", rows, "llmbar").pairs
    assert pairs["source"].tolist() == ["LLMBar"]
    assert pairs["domain"].isna().all()


def test_mtbench_items_lay_out_both_dialogues(read):
    row = {
        "item_id": "i1",
        "question_id": 81,
        "category": "writing",
        "model_a": "m",
        "model_b": "n",
        "question": "Shorter.",
        "prior_turns": json.dumps([["Write.", "Long A.", "Long B."]]),
        "answer_a": "A.",
        "answer_b": "",
        "n_a": 1,
        "n_b": 1,
        "n_tie": 0,
    }
    first = {**row, "item_id": "i2", "prior_turns": "[]", "answer_b": "B.", "n_a": 2}
    read_ = read("items.parquet", pd.DataFrame([row, first]), "mtbench_items")
    pair = read_.pairs.iloc[0]
    assert pair["question"] == "Write."
    assert pair["response_a"] == "Assistant: Long A.\n\nUser: Shorter.\n\nAssistant: A."
    assert pair["import_flags"] == '["empty_response"]'  # the last answer, though the dialogue is not empty
    assert read_.pairs["reference_label"].tolist() == ["TIE", "A"]
    assert read_.pairs["quality_gap"].round(3).tolist() == [0.0, 0.333]
    assert read_.pairs["base_id"].unique().tolist() == ["mt-bench/81"]


def test_judgebench(read):
    row = {
        "pair_id": "u1",
        "original_id": 3,
        "source": "mmlu-pro-law",
        "question": "q",
        "response_model": "m",
        "response_A": "a",
        "response_B": "b",
        "label": "B>A",
    }
    same = {**row, "pair_id": "u2", "response_B": "a"}
    pairs = read("dataset=judgebench,response_model=m.jsonl", [row, same], "judgebench").pairs
    assert pairs["reference_label"].tolist() == ["B", "B"]
    assert pairs["manipulation"].isna().tolist() == [True, False]
    assert pairs["base_id"].nunique() == 1
    with pytest.raises(SourceError, match="A=B"):
        read("x.jsonl", [{**row, "label": "A=B"}], "judgebench")


def test_rewardbench(read):
    rows = [
        {
            "id": i,
            "subset": "chat",
            "prompt": f"q{i}",
            "chosen": f"good{i}",
            "rejected": f"bad{i}",
            "chosen_model": "strong",
            "rejected_model": "weak",
        }
        for i in range(20)
    ]
    pairs = read("d.parquet", pd.DataFrame(rows), "rewardbench").pairs
    assert winners(pairs) == [f"good{i}" for i in range(20)]
    assert set(pairs["reference_label"]) == {"A", "B"}
    models = [
        row["candidate_a"] if row["reference_label"] == "A" else row["candidate_b"]
        for row in pairs.to_dict("records")
    ]
    assert set(models) == {"strong"}


def test_rewardbench2_pairs_each_right_with_each_wrong(read):
    row = {"id": "7", "subset": "Ties", "prompt": "q", "chosen": ["g1", "g2"], "rejected": ["b1", "b2", "b3"]}
    pairs = read("d.parquet", pd.DataFrame([row]), "rewardbench2").pairs
    assert len(pairs) == 6
    assert sorted(winners(pairs)) == ["g1"] * 3 + ["g2"] * 3
    assert pairs["base_id"].nunique() == 1
    assert pairs["pair_id"].is_unique


@pytest.mark.parametrize(("strength", "label"), [(-3, "A"), (-1, "A"), (0, "TIE"), (2, "B")])
def test_helpsteer2_sign(read, strength, label):
    row = {
        "split": "train",
        "prompt": "q",
        "response_1": "a",
        "response_2": "b",
        "preference_strength": strength,
    }
    assert read("p.jsonl", [row], "helpsteer2").pairs["reference_label"].tolist() == [label]


def test_helpsteer2_ratings_bring_scattered_rows_together(read):
    rows = [
        {"prompt": "q1", "response": "low", "helpfulness": 1},
        {"prompt": "q2", "response": "x", "helpfulness": 3},
        {"prompt": "q1", "response": "high", "helpfulness": 4},
        {"prompt": "q2", "response": "y", "helpfulness": 3},
    ]
    pairs = read("t.jsonl", rows, "helpsteer2_ratings").pairs
    assert winners(pairs) == ["high", "TIE"]
    assert pairs["quality_gap"].tolist() == [3.0, 0.0]


def test_hh_rlhf_transcripts(read):
    start = "\n\nHuman: Hi\n\nAssistant: Ho\n\nHuman: And?"
    rows = [
        {"chosen": f"{start}\n\nAssistant: Good.", "rejected": f"{start}\n\nAssistant:"},
        {
            "chosen": "\n\nHuman: Q\n\nAssistant: x\n\nHuman: z\n\nAssistant: y",
            "rejected": "\n\nHuman: Q\n\nAssistant: w",
        },
    ]
    pairs = read("harmless-base/train.jsonl", rows, "hh_rlhf").pairs
    assert len(json.loads(pairs.loc[0, "question"])) == 3
    assert winners(pairs) == ["Good.", "Assistant: x\n\nUser: z\n\nAssistant: y"]
    assert pairs.loc[0, "import_flags"] == '["empty_response"]'
    assert pairs["domain"].unique().tolist() == ["harmless-base"]


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        ("Hi\n\nAssistant: x", "starts with"),
        ("\n\nHuman: only me", "without both"),
        ("\n\nHuman: other\n\nAssistant: x", "share no first turn"),
        ("\n\nHuman: Q\n\nAssistant: x\n\nHuman: z", "does not end in an answer"),
    ],
)
def test_hh_rlhf_refuses_what_is_no_pair_of_dialogues(read, chosen, told):
    with pytest.raises(SourceError, match=told):
        read("hb/train.jsonl", [{"chosen": chosen, "rejected": "\n\nHuman: Q\n\nAssistant: w"}], "hh_rlhf")


def test_shp_one_is_a_and_entities_are_characters(read):
    row = {
        "post_id": "p",
        "domain": "askdocs_test",
        "history": "Why &amp; how?",
        "c_root_id_A": "1",
        "c_root_id_B": "2",
        "human_ref_A": "&lt;b&gt;",
        "human_ref_B": "b",
        "labels": 1,
    }
    other = {**row, "c_root_id_B": "3", "labels": 0}
    pairs = read("train.json", json.dumps(row) + "\n" + json.dumps(other) + "\n", "shp").pairs
    assert pairs["reference_label"].tolist() == ["A", "B"]
    assert pairs.loc[0, "question"] == "Why & how?"
    assert pairs.loc[0, "response_a"] == "<b>"
    assert pairs["base_id"].nunique() == 1


@pytest.mark.parametrize(("score", "label"), [(1.0, "A"), (-0.33, "B"), (0.0, "TIE")])
def test_webgpt_sign(read, score, label):
    row = {
        "question": {"dataset": "eli5", "id": "x", "full_text": "q"},
        "answer_0": "a",
        "answer_1": "b",
        "score_0": score,
        "score_1": -score,
    }
    assert read("c.jsonl", [row], "webgpt").pairs["reference_label"].tolist() == [label]


def test_summarize_from_feedback_zero_is_the_first(read):
    row = {
        "info": {"id": "t3", "post": "Long.", "title": "T", "subreddit": "pets"},
        "summaries": [{"text": " a", "policy": "ref"}, {"text": " b", "policy": "sup"}],
        "choice": 0,
        "worker": "w1",
        "batch": "b",
        "split": "train",
        "extra": {"confidence": 3},
    }
    news = {**row, "info": {"id": "c1", "article": "News.", "title": "N"}}
    votes = [row, {**row, "worker": "w2"}, {**row, "choice": 1, "worker": "w3"}, {**news, "choice": 1}]
    lines = "".join(json.dumps(vote) + "\n" for vote in votes)
    pairs = read("batch3.json", lines, "summarize_from_feedback").pairs
    assert pairs["reference_label"].tolist() == ["A", "B"]
    assert pairs["question"].tolist() == ["Long.", "News."]
    assert pairs["domain"].tolist() == ["pets", "news"]
    only_posts = read("batch5.json", json.dumps(row), "summarize_from_feedback").pairs
    assert only_posts["question"].tolist() == ["Long."]  # no row has info.article
    with pytest.raises(SourceError, match="column choice"):
        read("batch4.json", json.dumps({**row, "choice": None}), "summarize_from_feedback")


@pytest.mark.parametrize(("winner", "label"), [("model_a", "A"), ("tie", "TIE"), ("tie (bothbad)", "TIE")])
def test_ppe_and_its_two_ties(read, winner, label):
    row = {
        "question_id": "x",
        "language": "English",
        "prompt": "q",
        "response_1": "a",
        "response_2": "b",
        "model_a": "m",
        "model_b": "n",
        "winner": winner,
    }
    assert read("t.parquet", pd.DataFrame([row]), "ppe_human_preference").pairs[
        "reference_label"
    ].tolist() == [label]


def test_arena_conversations(read):
    ask = {"role": "user", "content": "q"}
    row = {
        "question_id": "x",
        "language": "English",
        "turn": 1,
        "model_a": "m",
        "model_b": "n",
        "winner": "model_b",
        "conversation_a": [ask, {"role": "assistant", "content": "a"}],
        "conversation_b": [ask, {"role": "assistant", "content": "b"}],
    }
    pairs = read("t.parquet", pd.DataFrame([row]), "arena_conversations").pairs
    assert pairs.loc[0, ["question", "response_a", "reference_label"]].tolist() == ["q", "a", "B"]


def test_arena_140k_leaves_pictures_out_and_keeps_a_session_together(read):
    def say(role, *parts):
        return {
            "role": role,
            "content": [{"type": "text" if text else "image", "text": text} for text in parts],
        }

    row = {
        "id": "v1", "evaluation_session_id": "s", "language": "en", "model_a": "m", "model_b": "n",
        "winner": "tie", "conversation_a": [say("user", "q"), say("assistant", "a", "nd")],
        "conversation_b": [say("user", "q"), say("assistant", "b")],
    }  # fmt: skip
    picture = [say("user", "look", None), say("assistant", "b")]
    rows = [
        row,
        {**row, "id": "v2"},
        {**row, "id": "v3", "conversation_a": picture, "conversation_b": picture},
    ]
    read_ = read("train.jsonl", rows, "arena_140k")
    assert read_.pairs["response_a"].tolist() == ["and", "and"]
    assert read_.pairs["base_id"].nunique() == 1
    assert json.loads(read_.source_files.loc[0, "notes"])["response_no_text"] == 1


def test_arena_55k_lists_as_text(read):
    header = "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
    row = '1,m,n,"[""q""]","[""a, \\n b""]","[""b""]",0,0,1\n'
    pairs = read("train.csv", header + row, "arena_55k").pairs
    assert pairs.loc[0, ["question", "response_a", "reference_label"]].tolist() == ["q", "a, \n b", "TIE"]


def test_arena_55k_several_turns_are_dialogues_and_null_turns_are_left_out(read):
    header = "id,model_a,model_b,prompt,response_a,response_b,winner_model_a,winner_model_b,winner_tie\n"
    several = '2,m,n,"[""q"", ""r""]","[""same"", ""x""]","[""same"", ""y""]",1,0,0\n'
    null = '3,m,n,"[""s"", ""t""]","[""a"", null]","[""b"", ""c""]",1,0,0\n'
    read_ = read("train.csv", header + several + null, "arena_55k")
    assert json.loads(read_.pairs.loc[0, "question"])[-1] == {"content": "r", "role": "user"}
    assert read_.pairs[["response_a", "response_b", "reference_label"]].values.tolist() == [["x", "y", "A"]]
    assert json.loads(read_.source_files.loc[0, "notes"])["response_no_text"] == 1
    with pytest.raises(SourceError, match="2 questions and 1 answers"):
        read("two.csv", header + several.replace('""same"", ', "", 1), "arena_55k")
    with pytest.raises(SourceError, match="answer 2 is null"):
        read("three.csv", header + null, "arena_55k", rules={"response_no_text": "refuse"})


def test_pandalm_zero_is_the_tie_and_booleans_are_no_answers(read):
    row = {
        "idx": 1,
        "motivation_app": "Mail",
        "cmp_key": "bloom-7b_opt-7b",
        "instruction": "Do.",
        "input": "This.",
        "response1": "a",
        "response2": "",
        "annotator1": 1,
        "annotator2": 1,
        "annotator3": 2,
    }
    rows = [
        row,
        {**row, "idx": 2, "input": "", "annotator1": 0, "annotator2": 0},
        {**row, "idx": 3, "annotator1": 0, "annotator2": 1},
        {**row, "idx": 4, "response1": True},
    ]
    read_ = read("testset-v1.json", rows, "pandalm")
    pairs = read_.pairs
    assert pairs["reference_label"].tolist() == ["A", "TIE", "TIE"]
    assert pairs["question"].tolist()[:2] == ["Do.\n\nThis.", "Do."]
    assert pairs.loc[0, ["candidate_a", "candidate_b"]].tolist() == ["bloom-7b", "opt-7b"]
    assert json.loads(read_.source_files.loc[0, "notes"])["response_no_text"] == 1


def test_ultrafeedback_every_two_completions(read):
    scores = [("m1", "a", 7.0), ("m2", "b", 7.0), ("m3", "c", 9.5)]
    row = {
        "source": "evol",
        "instruction": "q",
        "completions": [{"model": m, "response": r, "overall_score": s} for m, r, s in scores],
    }
    pairs = read("e.jsonl", [row], "ultrafeedback").pairs
    assert sorted(winners(pairs)) == ["TIE", "c", "c"]
    assert sorted(pairs["quality_gap"]) == [0.0, 2.5, 2.5]
    assert pairs["reference_kind"].unique().tolist() == ["ai"]
    row["completions"][0]["overall_score"] = "N/A"
    with pytest.raises(SourceError, match="a number as score"):
        read("e.jsonl", [row], "ultrafeedback")


def test_alpacafarm_with_and_without_input(read):
    row = {"instruction": "Do.", "input": "", "output_1": "a", "output_2": "b", "preference": 2}
    pairs = read("alpaca_human_preference.json", [row, {**row, "input": "x"}], "alpacafarm").pairs
    assert pairs["question"].tolist() == ["Do.", "Do.\n\nx"]
    assert pairs["reference_label"].tolist() == ["B", "B"]


@pytest.mark.parametrize(
    ("preference", "label"), [(1.0000001827, "A"), (1.9999998, "B"), (1.5, "TIE"), (0, "TIE"), (0.0, "TIE")]
)
def test_alpacaeval_preferences(read, preference, label):
    row = {
        "instruction": "q",
        "output_1": "a",
        "output_2": "b",
        "generator_1": "m",
        "generator_2": "n",
        "preference": preference,
    }
    assert read("annotations.json", [row], "alpacaeval").pairs["reference_label"].tolist() == [label]


def test_if_rewardbench_graph(read):
    row = {
        "id": 3,
        "instruction_type": "multi-turn",
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
        "responses": [{"response": "r0"}, {"response": "r1"}, {"response": "r2"}],
        "preference_graph": [
            {"chosen": {"response_id": 2}, "rejected": {"response_id": 0}},
            {"chosen": {"response_id": 1}, "rejected": {"response_id": 0}},
        ],
    }
    pairs = read("if_rewardbench.json", [row], "if_rewardbench").pairs
    assert winners(pairs) == ["r2", "r1"]
    assert [m["role"] for m in json.loads(pairs.loc[0, "question"])] == ["system", "user"]
    row["preference_graph"][0]["chosen"]["response_id"] = 9
    with pytest.raises(SourceError, match="the number of one of 3 answers"):
        read("if_rewardbench.json", [row], "if_rewardbench")


def test_mtbench_own_file_counts_votes_over_exchanged_models(read):
    talk = {
        name: [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": f"{name}1"},
            {"role": "user", "content": "q2"},
            {"role": "assistant", "content": f"{name}2"},
        ]
        for name in ("m", "n")
    }

    def vote(a, b, winner, turn=1):
        return {
            "question_id": 81,
            "turn": turn,
            "model_a": a,
            "model_b": b,
            "winner": winner,
            "judge": "expert_1",
            "conversation_a": talk[a],
            "conversation_b": talk[b],
        }

    rows = [
        vote("m", "n", "model_a"),
        vote("n", "m", "model_b"),
        vote("n", "m", "model_a"),
        vote("m", "n", "tie", 2),
    ]
    pairs = read("human.parquet", pd.DataFrame(rows), "mtbench").pairs
    assert pairs["reference_label"].tolist() == ["A", "TIE"]
    assert pairs.loc[0, ["question", "response_a", "candidate_a"]].tolist() == ["q", "m1", "m"]
    assert pairs.loc[1, "response_b"] == "Assistant: n1\n\nUser: q2\n\nAssistant: n2"
