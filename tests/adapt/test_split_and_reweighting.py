import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_calibration.adapt.reweighting import (
    decide,
    fit_reweighting,
    predict,
    predict_probability,
    standard_errors,
)
from judge_calibration.adapt.split import apply_frozen_split, assign_split, split_report
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.errors import TableError


def some_pairs(n, source="s"):
    rows = {
        "pair_id": [f"{source}{i}" for i in range(n)],
        "base_id": [f"{source}b{i // 2}" for i in range(n)],
    }
    return pd.DataFrame(rows).assign(source=source, reference_label=["A", "B"] * (n // 2) + ["A"] * (n % 2))


class TestSplit:
    @given(st.integers(1, 60), st.randoms(use_true_random=False))
    def test_adding_and_reordering_rows_moves_no_old_row(self, n, random):
        old = some_pairs(n)
        side = dict(zip(old["pair_id"], assign_split(old), strict=True))
        more = pd.concat([some_pairs(40, "t"), old, some_pairs(n + 9)]).drop_duplicates("pair_id")
        order = list(range(len(more)))
        random.shuffle(order)
        more = more.iloc[order]
        new = dict(zip(more["pair_id"], assign_split(more), strict=True))
        assert all(new[pair] == side[pair] for pair in side)

    def test_a_base_task_never_straddles_and_the_share_is_near_75(self):
        pairs = some_pairs(4_000)
        pairs["split"] = assign_split(pairs)
        assert pairs.groupby("base_id")["split"].nunique().max() == 1
        # 2,000 clusters: standard error .0097
        assert abs((pairs["split"] == "train").mean() - 0.75) < 0.03
        assert split_report(pairs)["few_clusters"].tolist() == [False]

    def test_a_frozen_file_wins(self):
        pairs = some_pairs(6)
        frozen = pd.DataFrame(
            {"source": "s", "base_id": ["sb0", "sb1", "sb2"], "split": ["test", "train", "test"]}
        )
        assert apply_frozen_split(pairs, frozen).tolist() == ["test"] * 2 + ["train"] * 2 + ["test"] * 2

    def test_a_frozen_file_with_a_cluster_on_both_sides_is_refused(self):
        frozen = pd.DataFrame({"source": "s", "base_id": ["sb0", "sb0"], "split": ["test", "train"]})
        with pytest.raises(TableError, match="one side"):
            apply_frozen_split(some_pairs(2), frozen)


class TestSubsets:
    def test_subsets_are_nested_and_hold_no_test_pair_and_no_tie(self):
        pairs = some_pairs(400)
        pairs.loc[::7, "reference_label"] = "TIE"
        pairs["split"] = assign_split(pairs)
        table = training_subsets(pairs, resamples=2)
        chosen = pairs.set_index("pair_id").loc[table["pair_id"]]
        assert (chosen["split"] == "train").all()
        assert chosen["reference_label"].isin(("A", "B")).all()
        first = table[table["resample"] == 0].sort_values("rank")
        assert (first["smallest_budget"].head(32) == 32).all()
        assert (first["smallest_budget"].iloc[32:64] == 64).all()
        assert first["smallest_budget"].iloc[256:].isna().all()

    def test_poisoned_test_labels_change_nothing(self):
        pairs = some_pairs(200)
        pairs["split"] = assign_split(pairs)
        poisoned = pairs.copy()
        poisoned.loc[poisoned["split"] == "test", "reference_label"] = "B"
        pd.testing.assert_frame_equal(training_subsets(pairs), training_subsets(poisoned))

    def test_adding_and_reordering_rows_keeps_the_order_of_the_old_ones(self):
        old = some_pairs(60)
        old["split"] = "train"
        more = pd.concat([some_pairs(80).iloc[60:], old]).iloc[::-1].assign(split="train")
        ranked = training_subsets(old)["pair_id"].tolist()
        again = training_subsets(more)["pair_id"]
        assert again[again.isin(ranked)].tolist() == ranked


class TestReweighting:
    def test_undefined_models_decide_nothing(self):
        model = fit_reweighting(np.ones((3, 2)), np.array([1, 1, 1]))
        assert model.undefined == "one_class_only"
        assert predict(model, np.ones((2, 2))).tolist() == [0, 0]
        assert np.isnan(predict_probability(model, np.ones((2, 2)))).all()
        assert np.isnan(standard_errors(model, np.ones((3, 2)), np.array([1, 1, 1]), np.arange(3))).all()

    def test_no_training_pair_and_no_stable_direction_are_told_apart(self):
        assert fit_reweighting(np.zeros((0, 2)), np.array([])).undefined == "no_training_pair"
        assert fit_reweighting(np.zeros((2, 2)), np.array([1, -1])).undefined == "no_stable_direction"

    def test_one_half_is_no_decision_for_either_side(self):
        assert decide(np.array([0.5, 0.5 + 1e-9, 0.5 - 1e-9])).tolist() == [0, 1, -1]

    def test_swapping_the_names_a_and_b_turns_every_prediction(self):
        rng = np.random.default_rng(3)
        x = rng.integers(-1, 2, (40, 5))
        y = np.where(rng.random(40) < 0.5, 1, -1)
        one, two = fit_reweighting(x, y), fit_reweighting(-x, -y)
        np.testing.assert_allclose(predict_probability(one, x), 1 - predict_probability(two, -x), atol=1e-7)

    def test_a_warm_start_changes_no_answer(self):
        rng = np.random.default_rng(4)
        x, y = rng.integers(-1, 2, (50, 4)), np.where(rng.random(50) < 0.5, 1, -1)
        cold = fit_reweighting(x, y)
        warm = fit_reweighting(x, y, start=np.array([3.0, -3.0, 2.0, 1.0]), with_covariance=False)
        np.testing.assert_allclose(cold.fit.coefficients, warm.fit.coefficients, atol=1e-7)

    @pytest.mark.parametrize("intercept", [False, True])
    def test_the_coefficients_are_those_of_scikit_learn(self, intercept):
        from sklearn.linear_model import LogisticRegression

        rng = np.random.default_rng(5)
        x, y = rng.integers(-1, 2, (60, 9)), np.where(rng.random(60) < 0.5, 1, -1)
        theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000, fit_intercept=intercept).fit(x, y)
        ours = fit_reweighting(x, y, intercept=intercept)
        np.testing.assert_allclose(ours.fit.coefficients, theirs.coef_[0], atol=1e-4)

    def test_a_list_with_the_better_answers_first_teaches_nothing(self):
        # 85 in 100 references are A, and the reads are noise.
        rng = np.random.default_rng(8)
        x, y = rng.integers(-1, 2, (200, 5)), np.where(rng.random(200) < 0.85, 1, -1)
        model = fit_reweighting(x, y)
        assert decide(predict_probability(model, np.zeros((1, 5)))).tolist() == [0]
        assert abs(decide(predict_probability(model, x)).mean()) < 0.35
        np.testing.assert_allclose(predict_probability(model, x), 1 - predict_probability(model, -x))
        habit = fit_reweighting(x, y, intercept=True)
        assert decide(predict_probability(habit, x)).mean() > 0.95

    def test_copies_of_a_base_task_do_not_make_an_interval_narrower(self):
        rng = np.random.default_rng(6)
        x, y = rng.integers(-1, 2, (40, 3)), np.where(rng.random(40) < 0.5, 1, -1)
        many_x, many_y, clusters = np.repeat(x, 10, 0), np.repeat(y, 10), np.repeat(np.arange(40), 10)
        apart = standard_errors(fit_reweighting(many_x, many_y), many_x, many_y, np.arange(400))
        together = standard_errors(fit_reweighting(many_x, many_y), many_x, many_y, clusters)
        # Ten copies hold what one holds: the error must not fall by the square root of ten.
        assert (together > 2 * apart).all()
