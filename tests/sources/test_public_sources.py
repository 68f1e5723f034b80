"""The public files, where they are at hand: counts and published rates by an independent computation."""

import pandas as pd
import pytest

from judge_calibration.sources import SourceFile, read_labels, read_logs, read_pairs

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def logs(public_data):
    return read_logs(
        [
            SourceFile(path=f"{public_data}/llmbar/verdicts_long.csv.gz", layout="llmbar_verdicts"),
            SourceFile(path=f"{public_data}/judging_the_judges/verdicts.csv.gz", layout="judging_the_judges"),
            SourceFile(path=f"{public_data}/amel_llmbar/*_responses.jsonl", layout="amel_llmbar"),
        ]
    )


@pytest.mark.parametrize(
    ("judge", "strategy", "accuracy", "phi", "both_right"),
    [
        ("GPT-4", "Vanilla", 0.845, 0.072, 0.809),
        ("ChatGPT", "Vanilla", 0.400, 0.341, 0.229),
        ("Falcon", "CoT", 0.520, 0.874, 0.086),
    ],
)
def test_llmbar_rates(logs, judge, strategy, accuracy, phi, both_right):
    labels = logs.pairs[logs.pairs["source"] == "LLMBar"].set_index("pair_id")["reference_label"]
    assert len(labels) == 419
    rows = logs.verdicts[(logs.verdicts["judge_id"] == judge) & (logs.verdicts["protocol"] == strategy)]
    wide = rows.pivot(index="pair_id", columns="order", values="verdict").reindex(labels.index)
    right = wide.eq(labels, axis=0)
    same = wide["AB"].notna() & (wide["AB"] == wide["BA"])
    assert round(right.to_numpy().mean(), 3) == accuracy
    assert round(1 - same.mean(), 3) == phi
    assert round((same & right["AB"]).mean(), 3) == both_right


def test_llmbar_outcomes(logs):
    counts = logs.verdicts[logs.verdicts["pair_id"].str.match("LLMBar|CaseStudy|Processed")][
        "outcome"
    ].value_counts()
    assert counts.to_dict() == {
        "valid": 80_478,
        "missing": 263,
        "refusal": 52,
        "malformed": 28,
        "truncated": 5,
    }


@pytest.mark.parametrize(
    ("judge", "consistency"),
    [("gpt-4-0613", 0.906), ("claude-3-opus-20240229", 0.859), ("gpt-3.5-turbo-1106", 0.885)],
)
def test_judging_the_judges_consistency(logs, judge, consistency):
    ids = logs.pairs.loc[logs.pairs["source"] == "MTBench", "pair_id"]
    assert len(ids) == 96
    rows = logs.verdicts[logs.verdicts["pair_id"].isin(ids) & (logs.verdicts["judge_id"] == judge)]
    same = rows.groupby(["pair_id", "order"])["verdict"].agg(lambda v: v.notna().all() and v.nunique() == 1)
    assert len(same) == 192
    assert round(same.mean(), 3) == consistency


def test_amel_error_texts_are_no_verdicts(logs):
    rows = logs.verdicts[logs.verdicts["pair_id"].str.startswith("amel-llmbar/")]
    assert rows["outcome"].value_counts()["rate_limited"] == 668
    assert len(logs.pairs[logs.pairs["source"] == "AMEL-LLMBar"]) == 100


def test_llmbar_pairs(public_data):
    pattern = f"{public_data}/llmbar/Dataset/LLMBar/Adversarial/*/dataset.json"
    pairs = read_pairs([SourceFile(path=pattern, layout="llmbar")]).pairs
    assert len(pairs) == 319
    assert pairs["pair_id"].is_unique
    assert pairs["source"].unique().tolist() == ["LLMBar"]


def test_mtbench_labels_from_votes(public_data):
    path = f"{public_data}/mtbench/items.parquet"
    pairs = read_pairs([SourceFile(path=path, layout="mtbench_items")]).pairs.set_index("pair_id")
    published = pd.read_parquet(path).set_index("item_id")["human_label"].str.upper()
    assert (pairs["reference_label"] == published.reindex(pairs.index)).all()
    assert pairs["base_id"].nunique() == 80
    assert pairs["import_flags"].str.contains("empty_response").sum() == 4
    labels = read_labels([SourceFile(path=path, layout="mtbench_votes")]).labels
    assert len(labels) == 3_354  # 3,355 votes, one of them given twice
    assert labels["annotator_id"].nunique() == 65
