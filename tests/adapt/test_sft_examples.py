"""What fine-tuning trains on: the prompts that are asked, in both orders, whole or not at all; no torch."""

import json

import numpy as np
import pandas as pd
import pytest
from small_training import JUDGE, Words, small_model_file

from judge_calibration.adapt.sft import planted
from judge_calibration.adapt.sft import run as sft_run
from judge_calibration.adapt.sft.examples import (
    Example,
    TrainingDataError,
    choose_pairs,
    render,
    shared_beginning,
    shared_with_held_out,
    tokenise,
)
from judge_calibration.adapt.sft.naming import to_gguf_changes
from judge_calibration.adapt.sft.planted import SOURCE, planted_pairs
from judge_calibration.adapt.sft.training import Epoch, Trained, TrainingError, parts, rate_at
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.errors import JudgeCalibrationError, OptionsError
from judge_calibration.judges.embedded.adapters import check_adapter
from judge_calibration.judges.planning import plan_calls
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.options.sft import RecipeOptions, SftOptions, TrainingRun


@pytest.fixture
def pairs():
    """Twelve labelled pairs of one source: eight to train on, four held out."""
    return pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(12)],
            "base_id": [f"b{i}" for i in range(12)],
            "source": "s",
            "split": ["train"] * 8 + ["test"] * 4,
            "manipulation": ["citation", "correctness"] * 6,
            "question": [f"Question {i}?" for i in range(12)],
            "response_a": [f"Yes {i}" + " very much" * i for i in range(12)],
            "response_b": [f"No {i}" for i in range(12)],
            "reference_label": ["A", "B", "A", "A", "B", "TIE", "B", "A", "A", "B", "A", "B"],
            "content_hash": [f"h{i}" for i in range(12)],
        }
    )


@pytest.fixture
def subsets(pairs):
    return training_subsets(pairs, (4,), resamples=2)


def options(**changes):
    return SftOptions.model_validate({"judge": JUDGE, "runs": [{"source": "s", "budget": 4}], **changes})


class TestPrompts:
    def test_a_prompt_is_what_is_asked_later(self, pairs):
        spec = JudgeSpec.model_validate(JUDGE)
        prompts = render(pairs.head(3), spec, "my salt")
        calls = plan_calls(pairs.head(3), JudgingOptions(judges=(spec,), marker_salt="my salt"))
        asked = {
            (pair, order): json.loads(request)["messages"]
            for pair, order, request in zip(calls["pair_id"], calls["order"], calls["request"], strict=True)
        }
        assert {(one.pair_id, one.order): list(one.messages) for one in prompts} == asked

    def test_each_pair_comes_in_both_orders_with_the_label_turned(self, pairs):
        prompts = render(pairs.head(2), JudgeSpec.model_validate(JUDGE), "salt")
        found = {(one.pair_id, one.order): one.verdict for one in prompts}
        # p0's better answer is its first, p1's its second.
        assert found == {("p0", "AB"): "A", ("p0", "BA"): "B", ("p1", "AB"): "B", ("p1", "BA"): "A"}

    def test_orders_and_repetitions_of_the_judge_do_not_matter(self, pairs):
        spec = JudgeSpec.model_validate({**JUDGE, "orders": ["AB"], "repetitions": 3})
        assert len(render(pairs.head(2), spec, "salt")) == 4


class TestChoosing:
    def test_a_budget_takes_the_first_of_the_shared_ranking(self, pairs, subsets):
        chosen = choose_pairs(pairs, subsets, TrainingRun(source="s", budget=4))
        first = subsets[(subsets["resample"] == 0) & (subsets["rank"] < 4)].sort_values("rank")
        assert chosen["pair_id"].tolist() == first["pair_id"].tolist()

    def test_budgets_are_nested_and_full_is_all(self, pairs, subsets):
        sizes = [choose_pairs(pairs, subsets, TrainingRun(source="s", budget=b)) for b in (2, 4, "full")]
        ids = [list(one["pair_id"]) for one in sizes]
        assert ids[1][:2] == ids[0]
        assert ids[2][:4] == ids[1]
        assert len(ids[2]) == 7  # eight on the training side, one of them a tie

    def test_all_sources_take_their_budget_each(self, pairs):
        both = pd.concat([pairs, pairs.assign(pair_id="x" + pairs["pair_id"], source="t")], ignore_index=True)
        chosen = choose_pairs(both, training_subsets(both, (2,)), TrainingRun(source=None, budget=2))
        assert chosen["source"].value_counts().to_dict() == {"s": 2, "t": 2}

    def test_manipulations_keep_the_order_of_the_ranking(self, pairs, subsets):
        run = TrainingRun(source="s", budget="full", manipulations=("correctness",))
        chosen = choose_pairs(pairs, subsets, run)
        assert set(chosen["manipulation"]) == {"correctness"}
        everything = choose_pairs(pairs, subsets, TrainingRun(source="s", budget="full"))
        assert chosen["pair_id"].tolist() == [
            pair for pair in everything["pair_id"] if pair in set(chosen["pair_id"])
        ]

    def test_an_unknown_source_is_named(self, pairs, subsets):
        with pytest.raises(OptionsError, match=r"source nowhere, resample 0.*\(s\)"):
            choose_pairs(pairs, subsets, TrainingRun(source="nowhere"))

    def test_an_unknown_ranking_is_named(self, pairs, subsets):
        with pytest.raises(OptionsError, match="a resample from 0 to 1"):
            choose_pairs(pairs, subsets, TrainingRun(source="s", resample=9))

    def test_a_held_out_pair_is_refused(self, pairs, subsets):
        moved = pairs.assign(split="test")
        with pytest.raises(TrainingDataError, match="no labelled training pairs, such as p"):
            choose_pairs(moved, subsets, TrainingRun(source="s"))

    def test_held_out_labels_change_nothing(self, pairs, subsets):
        poisoned = pairs.copy()
        held_out = poisoned["split"] == "test"
        poisoned.loc[held_out, "reference_label"] = np.where(
            poisoned.loc[held_out, "reference_label"] == "A", "B", "A"
        )
        run = TrainingRun(source="s", budget="full")
        clean = render(choose_pairs(pairs, subsets, run), JudgeSpec.model_validate(JUDGE), "salt")
        again = choose_pairs(poisoned, training_subsets(poisoned, (4,), resamples=2), run)
        assert render(again, JudgeSpec.model_validate(JUDGE), "salt") == clean


class TestSharedWithHeldOut:
    def test_a_question_of_two_sources_is_not_on_both_sides(self, pairs):
        other = pairs.assign(source="t", pair_id="t" + pairs["pair_id"], content_hash="t" + pairs["pair_id"])
        other["split"] = ["test"] * 2 + ["train"] * 10
        both = pd.concat([pairs, other], ignore_index=True)
        # t holds out the questions of p0 and p1; s those of p8 to p11.
        assert shared_with_held_out(both) == {"p0", "p1", "tp8", "tp9", "tp10", "tp11"}

    def test_case_and_spaces_do_not_tell_questions_apart(self, pairs):
        pairs.loc[11, "question"] = " question  0?\n"
        assert shared_with_held_out(pairs) == {"p0"}

    def test_without_questions_what_is_shown_counts(self, pairs):
        pairs.loc[[0, 1, 10, 11], "question"] = ["", None, " ", None]
        assert shared_with_held_out(pairs) == set()
        pairs.loc[11, "content_hash"] = "h1"
        assert shared_with_held_out(pairs) == {"p1"}
        assert shared_with_held_out(pairs.assign(content_hash=None)) == set()

    def test_pairs_that_are_apart_stay(self, pairs):
        assert shared_with_held_out(pairs) == set()


class TestTheCap:
    def test_a_pair_over_it_is_left_out_whole_and_nothing_is_cut(self, pairs):
        prompts = render(pairs.head(8), JudgeSpec.model_validate(JUDGE), "salt")
        words = Words()
        every = tokenise(prompts, words, 10_000)
        assert every.over_cap == []
        cap = sorted({len(one.tokens) for one in every.examples})[3]
        found = tokenise(prompts, words, cap)
        assert found.over_cap
        assert found.longest == every.longest
        assert not {one.pair_id for one in found.examples} & set(found.over_cap)
        whole = {(one.pair_id, one.order): one.tokens for one in every.examples}
        assert all(one.tokens == whole[one.pair_id, one.order] for one in found.examples)
        assert len(found.examples) == 2 * (8 - len(found.over_cap))

    def test_all_over_it_is_refused_with_the_longest(self, pairs):
        prompts = render(pairs.head(2), JudgeSpec.model_validate(JUDGE), "salt")
        with pytest.raises(TrainingDataError, match="All 2 training pairs have prompts above 20 tokens"):
            tokenise(prompts, Words(), 20)

    def test_a_verdict_of_two_tokens_is_refused(self, pairs):
        class Pieces(Words):
            def tokens_of(self, text):
                return [1, 2] if text == "A" else super().tokens_of(text)

        prompts = render(pairs.head(1), JudgeSpec.model_validate(JUDGE), "salt")
        with pytest.raises(TrainingDataError, match="The verdict 'A' is 2 tokens"):
            tokenise(prompts, Pieces(), 1000)


class TestParts:
    def test_no_part_is_above_the_limit_unless_one_prompt_is(self):
        lengths = [50, 900, 120, 130, 60, 2000]
        found = parts(lengths, shared=40, most=400)
        assert sorted(place for part in found for place in part) == list(range(6))
        for part in found:
            size = 40 + len(part) * (max(lengths[place] for place in part) - 40)
            assert size <= 400 or len(part) == 1

    def test_the_rate_ends_near_zero(self):
        recipe = RecipeOptions(learning_rate=1e-3, warmup=0.1)
        rates = [rate_at(step, 60, recipe) for step in range(60)]
        assert max(rates) == pytest.approx(1e-3)
        assert rates[-1] == pytest.approx(1e-3 / 54)  # 54 steps of falling

    def test_a_prompt_that_begins_another_keeps_a_token_to_itself(self):
        prompts = [Example("p", "AB", (1, 2), 0), Example("q", "AB", (1, 2, 3), 0)]
        assert shared_beginning(prompts) == 1


class TestNames:
    def test_queries_and_keys_are_reordered_and_the_rest_is_not(self):
        up = {
            f"model.layers.0.{module}": np.arange(8, dtype=float)[:, None]
            for module in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.down_proj")
        }
        down = {name: np.ones((1, 4)) for name in up}
        found = to_gguf_changes(down, up, heads=(2, 1))
        rows = {name: change.up[:, 0].tolist() for name, change in found.items()}
        assert rows == {
            "blk.0.attn_q.weight": [0, 2, 1, 3, 4, 6, 5, 7],
            "blk.0.attn_k.weight": [0, 4, 1, 5, 2, 6, 3, 7],
            "blk.0.attn_v.weight": [0, 1, 2, 3, 4, 5, 6, 7],
            "blk.0.ffn_down.weight": [0, 1, 2, 3, 4, 5, 6, 7],
        }

    def test_an_unknown_matrix_is_refused(self):
        with pytest.raises(JudgeCalibrationError, match="has no name"):
            to_gguf_changes({"lm_head": np.ones((1, 4))}, {"lm_head": np.ones((4, 1))}, (1, 1))


class TestOptions:
    def test_only_embedded_models_are_trained(self):
        with pytest.raises(ValueError, match="is not embedded"):
            options(judge={**JUDGE, "model": "openai/gpt-5.2"})

    def test_one_direct_protocol(self):
        with pytest.raises(ValueError, match="the protocol direct alone"):
            options(judge={**JUDGE, "protocols": ["json_cot"]})

    @pytest.mark.parametrize(
        "second", [{}, {"seed": 2}, {"manipulations": ["citation"]}, {"recipe": {"epochs": 1}}]
    )
    def test_one_adapter_a_source_budget_and_ranking(self, second):
        """Tables would average two of them into one row."""
        runs = [{"source": "t"}, {"source": "s"}, {"source": "s", **second}]
        told = r"runs 1, 2 are all of source s, budget 32, resample 0 .* use `resample`"
        with pytest.raises(ValueError, match=told):
            options(runs=runs)

    def test_other_sources_budgets_and_rankings_are_other_runs(self):
        runs = [{"source": "s"}, {"source": "s", "budget": 4}, {"source": "s", "resample": 1}, {}]
        assert len(options(runs=runs).runs) == 4
        with pytest.raises(ValueError, match="runs 3, 4 are all of source all"):
            options(runs=[*runs, {"source": None}])

    def test_an_adapter_is_not_trained_upon(self):
        judge = {**JUDGE, "transport": {"embedded": {"adapter": "x.gguf"}}}
        with pytest.raises(ValueError, match="already has an adapter"):
            options(judge=judge)


@pytest.fixture
def small_weights(tmp_path):
    return small_model_file(tmp_path)


def pretend(sft, run, seed, examples, checkpoint, name):
    """A trainer that trains nothing: the matrices say which run it was."""
    module = "model.layers.0.self_attn.v_proj"
    down, up = {module: np.full((2, 8), seed)}, {module: np.full((4, 2), len(examples))}
    return Trained(down, up, [Epoch(1, 3, 0.7, 0.5, 1.5), Epoch(2, 6, 0.6, 0.75)])


class TestTrainedJudges:
    def collected(self, pairs, subsets, weights, tmp_path, **changes):
        sft = options(folder=str(tmp_path / "sft"), **changes)
        planned = sft_run.plan_runs(pairs, subsets, 5, sft, Words())
        return sft_run.collect(planned, sft, weights, pretend)

    def test_the_base_and_each_run_are_judges_that_can_be_asked(
        self, pairs, subsets, small_weights, tmp_path
    ):
        runs = [{"source": "s", "budget": 4}, {"source": "s", "budget": "full", "resample": 1}]
        made = self.collected(pairs, subsets, small_weights, tmp_path, runs=runs)
        assert [(one["method"], one["budget"], one["resample"]) for one in made.sft_judges] == [
            ("base", None, None),
            ("sft", 4, 0),
            ("sft", "full", 1),
        ]
        judges = [JudgeSpec.model_validate(one["judge"]) for one in made.sft_judges]
        assert [one.judge_id for one in judges] == ["small", "small+sft-s-4-r0", "small+sft-s-full-r1"]
        assert len({one.transport.embedded.adapter for one in judges}) == 3
        for one in judges[1:]:
            check_adapter(one.transport.embedded.adapter, small_weights)
            assert one.model_copy(update={"judge_id": "small", "transport": judges[0].transport}) == judges[0]
        json.dumps(made.sft_judges)

    def test_the_log_has_an_epoch_a_row_and_counts_the_cap(self, pairs, subsets, small_weights, tmp_path):
        runs = [{"source": "s", "budget": "full", "token_cap": 180}]
        log = self.collected(pairs, subsets, small_weights, tmp_path, runs=runs).sft_training_log
        assert list(log.columns) == list(sft_run.LOG_COLUMNS)
        assert log["epoch"].tolist() == [1, 2]
        assert (log["pairs"] + log["pairs_over_cap"]).tolist() == [7, 7]
        assert log["seed"].tolist() == [5, 5]
        assert log["pairs_held_out_elsewhere"].tolist() == [0, 0]
        # An epoch of an old checkpoint does not say how long it took.
        assert log["seconds"].fillna(-1).tolist() == [1.5, -1]

    def test_a_pair_whose_question_is_held_out_elsewhere_is_left_out_and_counted(
        self, pairs, subsets, small_weights, tmp_path, caplog
    ):
        alone = self.collected(pairs, subsets, small_weights, tmp_path / "alone", runs=[{"budget": "full"}])
        other = pairs.tail(4).assign(source="t", pair_id=[f"t{i}" for i in range(4)], content_hash="t")
        other["question"] = ["Question 0?", "QUESTION 1?", "Something else?", "Question 5?"]
        both = pd.concat([pairs, other], ignore_index=True)
        caplog.set_level("INFO")
        for source in (None, "s"):
            runs = [{"source": source, "budget": "full"}]
            made = self.collected(both, training_subsets(both, (4,)), small_weights, tmp_path, runs=runs)
            log = made.sft_training_log
            # Question 5 is a tie: it was no training pair before.
            assert log[["pairs", "pairs_held_out_elsewhere"]].to_numpy().tolist() == [[5, 2]] * 2
            assert "2 more whose question is held out elsewhere" in caplog.text
        assert alone.sft_training_log["pairs"].tolist() == [7, 7]

    def test_nothing_left_to_train_on_says_why(self, pairs, subsets, small_weights, tmp_path):
        pairs["question"] = "Which is better?"
        with pytest.raises(
            TrainingDataError, match=r"All 4 training pairs of s have a question.*\n.*base_id"
        ):
            self.collected(pairs, subsets, small_weights, tmp_path)

    def test_the_same_training_gives_the_same_artifacts(self, pairs, subsets, small_weights, tmp_path):
        first = self.collected(pairs, subsets, small_weights, tmp_path)
        second = self.collected(pairs, subsets, small_weights, tmp_path)
        assert first.sft_judges == second.sft_judges
        assert first.sft_adapters == second.sft_adapters
        pd.testing.assert_frame_equal(first.sft_training_log, second.sft_training_log)

    def test_a_damaged_served_adapter_is_written_again(self, pairs, subsets, small_weights, tmp_path):
        made = self.collected(pairs, subsets, small_weights, tmp_path)
        path = made.sft_judges[1]["judge"]["transport"]["embedded"]["adapter"]
        with open(path, "ab") as file:
            file.write(b"x")
        self.collected(pairs, subsets, small_weights, tmp_path)
        assert check_adapter(path, small_weights).sha256 in path

    def test_checkpoints_are_named_by_all_that_matters(self, pairs, subsets, small_weights):
        def key(**changes):
            sft = options(**changes)
            return sft_run.training_key(
                sft_run.plan_runs(pairs, subsets, 5, sft, Words())[0], sft, small_weights
            )

        assert key() == key()
        assert (
            len({key(), key(recipe={"epochs": 7}), key(runs=[{"source": "s", "budget": 4, "seed": 1}])}) == 3
        )
        # Held-out pairs that share nothing leave a key as it is.
        alone = pairs[pairs["split"] == "train"]
        planned = sft_run.plan_runs(alone, subsets, 5, options(), Words())[0]
        assert sft_run.training_key(planned, options(), small_weights) == key()

    def test_what_was_used_and_not_what_was_asked_for_decides_whether_a_run_goes_on(self):
        recipe = RecipeOptions(precision="float32")
        places = {sft_run.rounding_of(recipe, *used) for used in (("cpu", 1), ("cpu", 2), ("cuda", 2))}
        assert places == {"float32-cpu-1", "float32-cpu-2", "float32-cuda-2"}


class TestTheNode:
    def test_nothing_is_trained_where_nothing_is_asked_for(self, pairs, subsets):
        options = AdaptationOptions()
        assert sft_run.check_training(options) == {}
        made = sft_run.train_judges(pairs, pairs[["pair_id", "split"]], subsets, {}, options)
        assert made.sft_judges == []
        assert made.sft_training_log.empty
        assert list(made.sft_adapters) == ["README.txt"]

    def test_missing_torch_is_one_line_with_the_command_before_anything_is_asked(self, monkeypatch):
        monkeypatch.setattr(sft_run, "package_versions", lambda: {"torch": None, "peft": "0.21.2"})
        with pytest.raises(TrainingError) as caught:
            sft_run.check_training(AdaptationOptions(sft=options()))
        assert "\n" not in str(caught.value)
        assert "needs torch, not installed" in str(caught.value)
        assert "make env-sft" in str(caught.value)

    def test_where_training_is_not_needed_nothing_is_trained_without_torch(
        self, pairs, subsets, monkeypatch, caplog
    ):
        monkeypatch.setattr(sft_run, "package_versions", lambda: {"torch": None})
        chosen = AdaptationOptions(sft=options(needed=False))
        found = sft_run.check_training(chosen)
        assert "make env-sft" in caplog.text
        made = sft_run.train_judges(pairs, pairs[["pair_id", "split"]], subsets, found, chosen)
        assert made.sft_judges == []


class TestPlanted:
    made = planted_pairs(200, seed=3)

    def test_the_longer_answer_is_the_better_one_in_either_place(self):
        longer_a = self.made["response_a"].str.len() > self.made["response_b"].str.len()
        assert ((self.made["reference_label"] == "A") == longer_a).all()
        assert (self.made["reference_label"] == "A").mean() == 0.5

    def test_an_answer_is_one_line(self):
        assert not self.made["response_a"].str.contains("\n").any()

    def test_no_length_alone_tells_the_better_answer(self):
        lengths = pd.concat(
            [
                pd.DataFrame(
                    {
                        "n": self.made[f"response_{side.lower()}"].str.len(),
                        "won": self.made["reference_label"] == side,
                    }
                )
                for side in "AB"
            ]
        )
        worse, better = lengths.loc[~lengths["won"], "n"], lengths.loc[lengths["won"], "n"]
        assert better.min() < worse.max()

    def test_no_word_of_the_question_tells_the_place(self):
        even = self.made[self.made["reference_label"] == "A"]["question"].str.split(" \\(entry").str[0]
        odd = self.made[self.made["reference_label"] == "B"]["question"].str.split(" \\(entry").str[0]
        assert len(set(even) & set(odd)) > 20
        # The number in the question tells nothing either: 200 draws, 4 standard errors of a correlation.
        first = (self.made["reference_label"] == "A").to_numpy()
        assert abs(np.corrcoef(first, np.arange(200) % 2)[0, 1]) < 4 / 200**0.5

    def test_it_says_simulated(self):
        assert SOURCE.startswith("SIMULATED")
        assert self.made["pair_id"].str.startswith("SIMULATED").all()

    def test_the_file_that_comes_along_is_what_the_generator_makes(self, project_path):
        assert (project_path / planted.SHIPPED).read_bytes() == planted.shipped_bytes()
