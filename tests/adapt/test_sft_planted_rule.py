"""The shipped model really learns a planted rule, at each of three seeds: some eight minutes a seed.

The recipe is that of the environment `sft`; the full budget passes twice over all its pairs.

The figures that these tests print are those of docs/adaptation-sft.md.
"""

import resource
import time
from importlib.util import find_spec

import pandas as pd
import pytest

from judge_calibration.adapt.sft.planted import SHIPPED, SOURCE
from judge_calibration.adapt.sft.run import check_training, train_judges
from judge_calibration.adapt.split import assign_split
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.reading import read_answers
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in ("torch", "transformers", "peft", "gguf")),
        reason="torch is not in this environment: make env-sft, then make test-slow",
    ),
]

JUDGE = {
    "judge_id": "smollm2-135m-grammar",
    "model": "embedded/smollm2-135m-instruct",
    "protocols": [{"name": "direct", "constraints": ["grammar"]}],
    "transport": {"embedded": {"context": 2048}},
}


@pytest.fixture(scope="module")
def planted(project_path):
    pairs = pd.read_csv(project_path / SHIPPED)
    return pairs.assign(split=assign_split(pairs), manipulation=None, content_hash=pairs["pair_id"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sft")


def measured(judge, pairs, folder):
    """Accuracy over both orders, and the share of pairs whose verdict flips with the order."""
    options = JudgingOptions(judges=(JudgeSpec.model_validate(judge),))
    calls = plan_calls(pairs, options)
    answers, _ = ask_calls(calls, options, folder / "calls", "planted")
    verdicts = read_answers(calls, answers, pairs, options)
    right = verdicts.merge(pairs[["pair_id", "reference_label"]], on="pair_id")
    accuracy = float((right["verdict"] == right["reference_label"]).mean())
    by_pair = right.pivot_table(index="pair_id", columns="order", values="verdict", aggfunc="first")
    return accuracy, float((by_pair["AB"] != by_pair["BA"]).mean())


def test_no_held_out_label_changes_the_adapter(planted, folder):
    """Eight steps of the shipped model on its last two layers."""
    run = {"source": SOURCE, "budget": 4}
    recipe = {"most_steps": 8, "batch": 2, "epochs": 2, "layers": 2}
    hashes = []
    (folder / "base").mkdir(exist_ok=True)
    for name in ("clean", "poisoned"):
        (folder / name).mkdir()
        (folder / name / "base").symlink_to(folder / "base")  # unpacked once; checkpoints stay apart
        pairs = planted.copy()
        if name == "poisoned":
            test = pairs["split"] == "test"
            pairs.loc[test, "reference_label"] = pairs.loc[test, "reference_label"].map({"A": "B", "B": "A"})
            assert not pairs["reference_label"].equals(planted["reference_label"])
        sft = {"judge": JUDGE, "runs": [run], "recipe": recipe, "folder": str(folder / name)}
        options = AdaptationOptions.model_validate({"sft": sft})
        subsets, found = training_subsets(pairs, (4,)), check_training(options)
        made = train_judges(pairs, pairs[["pair_id", "split"]], subsets, found, options)
        assert made.sft_training_log["steps"].iloc[-1] == 8
        hashes.append(made.sft_training_log["adapter_sha256"].iloc[0])
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(("budget", "seed"), [(40, 1), (40, 2), (40, 3), ("full", 1)])
def test_the_longer_answer_is_learned(planted, folder, seed, budget):
    recipe = {"epochs": 5 if budget == 40 else 2, "tokens_at_once": 2400}
    sft = {
        "judge": JUDGE,
        "runs": [{"source": SOURCE, "budget": budget, "seed": seed}],
        "recipe": recipe,
        "folder": str(folder),
    }
    options = AdaptationOptions.model_validate({"sft": sft})
    started = time.monotonic()
    made = train_judges(
        planted,
        planted[["pair_id", "split"]],
        training_subsets(planted, (40,)),
        check_training(options),
        options,
    )
    took = time.monotonic() - started
    held_out = planted[planted["split"] == "test"].reset_index(drop=True)
    before = measured(made.sft_judges[0]["judge"], held_out, folder)
    after = measured(made.sft_judges[1]["judge"], held_out, folder)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"\nseed {seed}, budget {budget}: {len(held_out)} held-out pairs, accuracy {before[0]:.3f} -> "
        f"{after[0]:.3f}, flips {before[1]:.2f} -> {after[1]:.2f}, {took:.0f} s, {memory:.1f} GB at most"
    )
    assert after[0] >= 0.85
    assert after[1] <= 0.25
