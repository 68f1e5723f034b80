"""Training itself, on a tiny model with random weights; skipped where torch is not installed."""

import os
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from small_training import JUDGE, Words, small_model_file

from judge_calibration.adapt.sft.examples import Example
from judge_calibration.adapt.sft.layers import Halves
from judge_calibration.adapt.sft.run import collect, plan_runs
from judge_calibration.adapt.sft.training import TrainingError, let_waiting_threads_sleep, train
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.errors import StorageError
from judge_calibration.judges.embedded.adapters import AdapterError, check_adapter
from judge_calibration.options.sft import RecipeOptions, SftOptions

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("torch", "transformers", "peft")),
    reason="torch is not in this environment: make env-sft, then .venv-sft/bin/python -m pytest tests/adapt",
)


@pytest.fixture
def model():
    """A llama of two layers and 32 tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config).eval()


def examples(count=16):
    """Prompts that begin alike; the right token is told by the third from the end."""
    draw = np.random.default_rng(0)
    out = []
    for number in range(count):
        sign = number % 2
        middle = draw.integers(5, 30, size=int(draw.integers(2, 6))).tolist()
        out.append(Example(f"p{number // 2}", "AB", (1, 2, 3, 4, *middle, 30 + sign, 5, 6), 10 + sign))
    return out


RECIPE = RecipeOptions(
    epochs=4, batch=4, learning_rate=0.02, rank=4, alpha=8, tokens_at_once=64, precision="float32"
)


def same(first, second):
    return all(np.array_equal(first.down[name], second.down[name]) for name in first.down) and all(
        np.array_equal(first.up[name], second.up[name]) for name in first.up
    )


def fresh(model):
    import copy

    return copy.deepcopy(model)


class TestTraining:
    def test_eight_steps_lower_the_loss(self, model):
        recipe = RECIPE.model_copy(update={"most_steps": 8, "epochs": 99})
        trained = train(fresh(model), examples(), recipe, seed=1, progress=False)
        assert trained.epochs[-1].steps == 8
        assert trained.epochs[-1].loss < trained.epochs[0].loss

    def test_only_the_named_matrices_are_changed(self, model):
        recipe = RECIPE.model_copy(update={"targets": ("q_proj", "down_proj"), "epochs": 1})
        trained = train(fresh(model), examples(), recipe, seed=1, progress=False)
        assert sorted(trained.down) == [
            "model.layers.0.mlp.down_proj",
            "model.layers.0.self_attn.q_proj",
            "model.layers.1.mlp.down_proj",
            "model.layers.1.self_attn.q_proj",
        ]
        assert trained.down["model.layers.0.mlp.down_proj"].shape == (4, 32)
        assert trained.up["model.layers.0.mlp.down_proj"].shape == (16, 4)

    def test_only_the_last_layers_are_changed_and_what_is_below_is_computed_once(self, model, monkeypatch):
        recipe = RECIPE.model_copy(update={"layers": 1})
        whole = train(fresh(model), examples(), recipe, seed=1, progress=False)
        assert {name.split(".")[2] for name in whole.down} == {"1"}
        assert whole.epochs[-1].loss < whole.epochs[0].loss
        from judge_calibration.adapt.sft import layers

        monkeypatch.setattr(layers, "KEPT_BYTES", 0)
        assert same(whole, train(fresh(model), examples(), recipe, seed=1, progress=False))

    def test_more_layers_than_there_are_is_refused(self, model):
        with pytest.raises(TrainingError, match="3 are to be trained, and the model has 2"):
            train(fresh(model), examples(), RECIPE.model_copy(update={"layers": 3}), 1, progress=False)

    def test_shorter_numbers_learn_as_well_and_are_named(self, model):
        recipe = RECIPE.model_copy(update={"precision": "bfloat16"})
        trained = train(fresh(model), examples(), recipe, seed=1, progress=False)
        assert trained.precision == "bfloat16"
        assert trained.epochs[-1].loss < trained.epochs[0].loss
        assert all(matrix.dtype == np.float32 for matrix in trained.up.values())

    def test_a_seed_makes_the_adapter(self, model):
        one, again, other = (
            train(fresh(model), examples(), RECIPE, seed=seed, progress=False) for seed in (1, 1, 2)
        )
        assert same(one, again)
        assert not same(one, other)

    def test_a_killed_run_goes_on_to_the_same_adapter(self, model, tmp_path, monkeypatch):
        whole = train(fresh(model), examples(), RECIPE, seed=1, progress=False)
        from judge_calibration.adapt.sft import training

        step, taken = training._step, []

        def killed(*arguments):
            if len(taken) == 10:  # in the middle of the third epoch of four steps each
                raise KeyboardInterrupt
            taken.append(1)
            return step(*arguments)

        monkeypatch.setattr(training, "_step", killed)
        with pytest.raises(KeyboardInterrupt):
            train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        monkeypatch.setattr(training, "_step", step)
        resumed = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        assert same(whole, resumed)
        # A finished run says again what it took, to the bit.
        again = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        assert again.epochs == resumed.epochs
        assert all(epoch.seconds > 0 for epoch in again.epochs)
        assert [epoch.loss for epoch in resumed.epochs] == [epoch.loss for epoch in whole.epochs]
        assert [one.name for one in (tmp_path / "state").glob("*.pt")] == ["epoch-0004.pt"]

    def test_a_checkpoint_without_seconds_is_taken_up(self, model, tmp_path, monkeypatch):
        from judge_calibration.adapt.sft import training

        keep = training._keep

        def as_before(folder, weights, optimiser, history):
            kept = [SimpleNamespace(**{k: v for k, v in vars(e).items() if k != "seconds"}) for e in history]
            keep(folder, weights, optimiser, kept)

        monkeypatch.setattr(training, "_keep", as_before)
        whole = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        again = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        assert same(whole, again)
        assert all(np.isnan(epoch.seconds) for epoch in again.epochs)

    def test_a_damaged_checkpoint_is_not_used(self, model, tmp_path):
        whole = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        state = tmp_path / "state" / "epoch-0004.pt"
        state.write_bytes(state.read_bytes()[:-10])
        assert same(whole, train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False))

    def test_a_diverged_run_is_stopped_and_says_why(self, model):
        import torch

        broken = fresh(model)
        with torch.no_grad():
            broken.lm_head.weight.fill_(float("nan"))
        with pytest.raises(TrainingError, match=r"no number any more in step 1.*\n.*lower the learning rate"):
            train(broken, examples(), RECIPE, seed=1, progress=False)


class TestTheLoss:
    def test_the_shared_beginning_changes_nothing(self, model):
        import torch

        some = examples(5)
        with torch.no_grad():
            wanted = torch.cat([model(torch.tensor([one.tokens])).logits[:, -1] for one in some])
            for first in (0, 1):
                for shared in (0, 4):
                    found = Halves(fresh(model), first, shared).last_logits(some)
                    assert torch.allclose(found, wanted, atol=1e-5), (first, shared)

    def test_gradients_pass_the_shared_beginning(self, model):
        recipe = RECIPE.model_copy(update={"most_steps": 1, "epochs": 1})
        first = train(fresh(model), examples(), recipe, seed=1, progress=False)
        from judge_calibration.adapt.sft import training

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "shared_beginning", lambda _: 0)
            apart = train(fresh(model), examples(), recipe, seed=1, progress=False)
        for name in first.up:
            assert np.allclose(first.up[name], apart.up[name], atol=1e-3)

    def test_a_batch_in_parts_is_the_same_step(self, model):
        recipe = RECIPE.model_copy(update={"most_steps": 1, "epochs": 1})
        one = train(fresh(model), examples(), recipe, seed=1, progress=False)
        parts = recipe.model_copy(update={"tokens_at_once": 65536})
        two = train(fresh(model), examples(), parts, seed=1, progress=False)
        for name in one.up:
            assert np.allclose(one.up[name], two.up[name], atol=1e-3)


@pytest.fixture
def pairs():
    """Sixteen pairs of each of two sources; four of each are held out. In `one class` A is always right."""
    rows = [(source, i) for source in ("s", "one class") for i in range(16)]
    labels = np.random.default_rng(3).choice(["A", "B"], len(rows))
    return pd.DataFrame(
        {
            "pair_id": [f"{source}-{i}" for source, i in rows],
            "base_id": [f"b{i}" for _, i in rows],
            "source": [source for source, _ in rows],
            "split": ["train" if i < 12 else "test" for _, i in rows],
            "manipulation": None,
            "question": [f"Question {i}?" for _, i in rows],
            "response_a": [f"Yes {i}" for _, i in rows],
            "response_b": [f"No {i}" for _, i in rows],
            "content_hash": [f"{source}-{i}" for source, i in rows],
            "reference_label": ["A" if rows[i][0] == "one class" else labels[i] for i in range(len(rows))],
        }
    )


def trained_on(pairs, folder, **run):
    """Train eight steps on the words of real prompts; return the adapters, the log and the training pairs."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    sft = SftOptions.model_validate(
        {
            "judge": JUDGE,
            "runs": [{"source": "s", "budget": 8, **run}],
            "recipe": {"most_steps": 8, "batch": 4, "rank": 2, "learning_rate": 0.01, "precision": "float32"},
            "folder": str(folder),
        }
    )
    torch.set_num_threads(1)
    subsets = training_subsets(pairs, (8,))
    planned = plan_runs(pairs, subsets, 5, sft, Words())

    def trainer(sft, run, seed, examples, checkpoint, name):
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=1024,
            hidden_size=8,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
        )
        return train(LlamaForCausalLM(config), examples, sft.recipe, seed, checkpoint, False, name)

    return collect(planned, sft, small_model_file(folder), trainer)


class TestLeaks:
    def adapter(self, pairs, folder, **run):
        folder.mkdir()
        made = trained_on(pairs, folder, **run)
        assert made.sft_training_log["steps"].iloc[-1] == 8
        return made.sft_training_log["adapter_sha256"].iloc[0]

    def test_no_held_out_label_changes_an_adapter(self, pairs, tmp_path):
        clean = self.adapter(pairs, tmp_path / "clean")
        poisoned = pairs.copy()
        test = poisoned["split"] == "test"
        poisoned.loc[test, "reference_label"] = poisoned.loc[test, "reference_label"].map(
            {"A": "B", "B": "A"}
        )
        assert self.adapter(poisoned, tmp_path / "poisoned") == clean
        # Not even their texts, and not their number.
        poisoned.loc[test, "response_a"] = "Poison."
        assert self.adapter(poisoned, tmp_path / "texts") == clean
        assert self.adapter(pairs[~test].reset_index(drop=True), tmp_path / "none") == clean

    def test_a_training_label_does_change_it(self, pairs, tmp_path):
        other = pairs.copy()
        train = other["split"] == "train"
        other.loc[train, "reference_label"] = other.loc[train, "reference_label"].map({"A": "B", "B": "A"})
        assert self.adapter(other, tmp_path / "other") != self.adapter(pairs, tmp_path / "clean")

    def test_a_source_of_one_class_is_trained_in_both_orders(self, pairs, tmp_path):
        folder = tmp_path / "one"
        folder.mkdir()
        made = trained_on(pairs, folder, source="one class")
        assert made.sft_training_log["pairs"].eq(8).all()

    def test_fewer_pairs_than_the_budget_use_what_there_is(self, pairs, tmp_path):
        few = pairs.copy()
        few.loc[few.index[few["split"] == "train"][3:12], "reference_label"] = "TIE"
        folder = tmp_path / "few"
        folder.mkdir()
        assert trained_on(few, folder).sft_training_log["pairs"].eq(3).all()

    def test_an_adapter_is_refused_by_another_model(self, pairs, tmp_path):
        folder = tmp_path / "one"
        folder.mkdir()
        made = trained_on(pairs, folder)
        path = made.sft_judges[1]["judge"]["transport"]["embedded"]["adapter"]
        other = small_model_file(tmp_path, "c" * 64)
        with pytest.raises(AdapterError, match="was trained on another model"):
            check_adapter(path, other)
        cut = tmp_path / "cut.gguf"
        with open(path, "rb") as whole:
            cut.write_bytes(whole.read()[:-10])
        with pytest.raises(AdapterError, match="ends early"):
            check_adapter(str(cut), small_model_file(tmp_path))
        cut.write_bytes(b"no model")
        with pytest.raises(AdapterError, match="cannot be read") as caught:
            check_adapter(str(cut), small_model_file(tmp_path))
        assert str(caught.value).count("Next:") == 1


class TestAFullDisk:
    def test_it_is_told_and_the_last_checkpoint_stays(self, model, tmp_path, monkeypatch):
        from judge_calibration.runs import files

        write, kept = files.write_atomically, []

        def full(path, content):
            if path.suffix == ".pt" and kept:
                raise StorageError(f"The disk is full: {path} was not written.", "free some space")
            kept.append(path.name)
            return write(path, content)

        monkeypatch.setattr(files, "write_atomically", full)
        with pytest.raises(StorageError, match=r"disk is full: .*epoch-0002\.pt"):
            train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        monkeypatch.setattr(files, "write_atomically", write)
        assert [one.name for one in (tmp_path / "state").glob("*.pt")] == ["epoch-0001.pt"]
        resumed = train(fresh(model), examples(), RECIPE, 1, tmp_path / "state", False)
        assert same(resumed, train(fresh(model), examples(), RECIPE, seed=1, progress=False))


def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    let_waiting_threads_sleep()
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    let_waiting_threads_sleep()
    assert os.environ.pop("OMP_WAIT_POLICY") == "PASSIVE"
