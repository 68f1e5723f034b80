import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_calibration.adapt.evaluation import accuracy, reweighting_curves, sample_efficiency
from judge_calibration.adapt.reweighting import fit_reweighting, predict, predict_probability
from judge_calibration.adapt.split import apply_frozen_split, assign_split, split_report
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.errors import TableError
from judge_calibration.profiles.panel_simulation import simulate_panel


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


class TestReweighting:
    def test_undefined_models_decide_nothing(self):
        model = fit_reweighting(np.ones((3, 2)), np.array([1, 1, 1]))
        assert model.undefined == "one_class_only"
        assert predict(model, np.ones((2, 2))).tolist() == [0, 0]
        assert np.isnan(predict_probability(model, np.ones((2, 2)))).all()

    def test_no_verdict_is_wrong_and_stays_in_the_denominator(self):
        assert accuracy(np.array([1, 0]), np.array([1, 1])) == 0.5
        assert np.isnan(accuracy(np.array([]), np.array([])))

    def test_a_planted_reference_is_learned_and_a_random_one_is_not(self):
        panel = simulate_panel(8, 2, 1_200, 12, resolution=(0.95, 0.95), accuracy=(0.98, 0.98), strength=2.0)
        rank = np.where(np.arange(1_200) < 900, np.arange(1_200), -1)[None]
        test = np.arange(1_200) >= 900
        arguments = (panel.source, rank, test, ("x", "y"), ("s",), (32, 256))
        curves = reweighting_curves(panel.stable, panel.verdicts, panel.reference, *arguments)
        full = curves[curves["budget"] == "full"]
        assert (full["accuracy"] > 0.8).all()
        coin = np.random.default_rng(0).choice([-1, 1], 1_200)
        lost = reweighting_curves(panel.stable, panel.verdicts, coin, *arguments)
        # 300 test pairs: standard error .029
        assert (abs(lost.loc[lost["budget"] == "full", "accuracy"] - 0.5) < 0.12).all()
        summary = sample_efficiency(curves)
        assert summary["budget"].tolist() == ["32", "256", "full"]
