"""What reweighting finds of planted weights, beside the best that the same reads allow."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.adapt.planted_weights import spearman, weight_recovery
from judge_calibration.profiles.storage import pack


def panel():
    """One judge, two sources of four held-out pairs and one training pair; two attributes."""
    # Stable directions; the second attribute of pair 3 flips with the order, so it has none.
    first = np.array([[1, 1], [1, -1], [-1, 1], [-1, 1], [1, 1]] * 2, dtype=np.int8)
    second = first.copy()
    second[3, 1] = -1
    frame = pd.DataFrame(
        {
            "judge_id": "SIMULATED-judge-1",
            "pair_id": [f"p{i}" for i in range(10)],
            "source": ["w"] * 5 + ["c"] * 5,
            "split": (["test"] * 4 + ["train"]) * 2,
            "reference_label": list("AABBA") * 2,
        }
    )
    reads = pd.DataFrame(pack(first[None], second[None])[0], columns=["attribute_1", "attribute_2"])
    return pd.concat([frame, reads], axis=1)


PLANTED = pd.DataFrame(
    {"source": ["w", "w", "c", "c"], "attribute": ["attribute_1", "attribute_2"] * 2, "weight": [1, 3, 0, 0]}
)


def coefficients(undefined=None):
    return pd.DataFrame(
        {
            "judge_id": "SIMULATED-judge-1",
            "source": ["w", "w", "c", "c"],
            "budget": "full",
            "attribute": ["attribute_1", "attribute_2"] * 2,
            "coefficient": [0.2, 0.5, 0.1, -0.1],
            "n_train": 1,
            "undefined": undefined,
        }
    )


GAINS = pd.DataFrame(
    {
        "judge_id": "SIMULATED-judge-1",
        "source": ["w", "c"],
        "budget": "full",
        "accuracy_base": [0.5, 0.5],
        "accuracy": [0.25, 0.75],
        "delta": [-25.0, 25.0],
        "delta_low": [-60.0, -10.0],
        "delta_high": [10.0, 60.0],
    }
)


class TestRecovery:
    found = weight_recovery(panel(), PLANTED, coefficients(), GAINS).set_index("source")

    def test_the_best_is_the_planted_weights_on_the_same_reads(self):
        # x1 + 3 x2 of the four held-out pairs: 4, -2, 2, and -1 where the second attribute has no direction.
        # A, B, A, B against A, A, B, B: two of four are right.
        row = self.found.loc["w"]
        assert row["accuracy_planted"] == 0.5
        assert row["below_planted"] == pytest.approx(25.0)
        assert row["spearman"] == pytest.approx(1.0)
        assert (row["planted"], row["n_train"], row["n_test"]) == ("weights", 1, 4)

    def test_a_coin_has_one_half_and_no_ranking(self):
        row = self.found.loc["c"]
        assert (row["planted"], row["accuracy_planted"]) == ("coin", 0.5)
        assert np.isnan(row["spearman"])
        assert row["undefined"] == "references_by_a_coin"
        assert row["delta"] == 25.0

    def test_all_of_it_says_simulated(self):
        assert self.found["simulated"].all()

    def test_a_fit_that_could_not_be_made_carries_its_reason(self):
        made = weight_recovery(panel(), PLANTED, coefficients("one_class_only"), GAINS).set_index("source")
        assert made.loc["w", "undefined"] == "one_class_only"
        assert np.isnan(made.loc["w", "spearman"])

    def test_no_fit_is_no_row(self):
        assert weight_recovery(panel(), PLANTED, coefficients().head(0), GAINS).empty


def test_weights_that_do_not_vary_have_no_ranking():
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))
