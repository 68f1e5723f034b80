import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling_helpers import fabricate_pairs

from judge_calibration.errors import TableError
from judge_calibration.labelling.drawing import draw_pairs
from judge_calibration.labelling.power import half_width, require
from judge_calibration.options.annotation import CriticalSliceOptions, DrawOptions


def _slice(**changes) -> CriticalSliceOptions:
    return CriticalSliceOptions.model_validate(
        {"slice_by": "manipulation", "slice": "correctness", "half_width": 0.1} | changes
    )


def _options(**changes) -> DrawOptions:
    return DrawOptions.model_validate({"mode": "half_width", "critical_slices": [_slice()]} | changes)


class TestPower:
    def test_worked_half_width(self):
        # 100 independent pairs at .8: se = sqrt(.16/100) = .04; t(99) = 1.9842; half-width .07937.
        assert half_width(_slice(), 100, 1, _options()) == pytest.approx(0.07937, abs=1e-5)

    def test_design_effect(self):
        # 3 pairs a task, correlation .3: the variance of a mean of 3 is (1 + 2 x .3)/3 = .5333 of one pair's.
        one, three = half_width(_slice(), 50, 1, _options()), half_width(_slice(), 50, 3, _options())
        assert (three / one) ** 2 == pytest.approx(1.6 / 3)

    def test_margin_needs_power(self):
        slice_ = _slice(target="margin", margin=0.1, difference=0.1, tie_share=0.2, power=0.8)
        need = require(slice_, 1, 2, _options())
        # Normal formula: (1.96 + .8416)^2 x (.8 - .01) / .2^2 = 155.0; t adds one or two.
        assert 155 <= need.base_tasks <= 158

    def test_one_base_task_has_no_half_width(self):
        assert math.isnan(half_width(_slice(), 1, 1, _options()))

    @given(st.floats(0.03, 0.3), st.floats(0.5, 0.95), st.floats(1, 6))
    @settings(max_examples=30, deadline=None)
    def test_the_smallest_number_that_reaches_it(self, wanted, expected, per_task):
        slice_ = _slice(half_width=wanted, expected=expected)
        need = require(slice_, per_task, 2, _options())
        assert half_width(slice_, need.base_tasks, per_task, _options()) <= wanted
        if need.base_tasks > 2:
            assert half_width(slice_, need.base_tasks - 1, per_task, _options()) > wanted

    @pytest.mark.parametrize(
        "changes",
        [
            {"half_width": None},
            {"target": "margin"},
            {"target": "margin", "margin": 0.1, "difference": -0.2},
            {"target": "margin", "margin": 0.1, "difference": 0.9, "tie_share": 0.3},
        ],
    )
    def test_targets_that_cannot_be_reached_are_refused(self, changes):
        with pytest.raises(ValueError, match="critical_slices"):
            _slice(**changes)


class TestDraw:
    PAIRS = fabricate_pairs(90)

    def test_as_many_base_tasks_as_needed_with_their_probability(self):
        draw = draw_pairs(self.PAIRS, _options())
        need = require(_slice(), 1, 2, _options())
        assert set(draw.pairs["manipulation"]) == {"correctness"}
        assert draw.pairs["base_id"].nunique() == need.base_tasks == 64
        row = draw.design.iloc[0]
        assert (row["base_tasks_wanted"], row["base_tasks_there"], row["base_tasks_drawn"]) == (64, 90, 64)
        assert row["labels_wanted"] == 64 * 2 + 16
        assert draw.pairs["inclusion_probability"].mean() == pytest.approx(64 / 90, abs=0.02)

    def test_strata_are_served_in_proportion(self):
        draw = draw_pairs(self.PAIRS, _options())
        counts = draw.pairs.groupby("stratum").size()
        # 9 strata of 10 base tasks, 64 drawn: 7 each, and one of 8.
        assert sorted(counts) == [7] * 8 + [8]

    def test_too_few_base_tasks_are_said_with_what_they_reach(self):
        draw = draw_pairs(fabricate_pairs(20), _options())
        row = draw.design.iloc[0]
        assert row["undefined"] == "too_few_base_tasks"
        assert row["base_tasks_drawn"] == 20
        assert row["half_width_reached"] == pytest.approx(2.093 * math.sqrt(0.16 / 20), abs=1e-4)

    def test_a_slice_that_is_not_there_is_said(self):
        draw = draw_pairs(self.PAIRS, _options(critical_slices=[_slice(slice="nothing")]))
        assert draw.pairs.empty
        assert draw.design["undefined"].tolist() == ["no_pairs"]

    def test_pairs_of_several_slices_count_once_and_keep_their_chance(self):
        slices = [_slice(), _slice(slice_by="difficulty", slice="hard")]
        draw = draw_pairs(self.PAIRS, _options(critical_slices=slices))
        assert draw.pairs["pair_id"].is_unique
        assert draw.pairs["inclusion_probability"].between(0, 1, inclusive="right").all()

    @given(st.integers(0, 10_000))
    @settings(max_examples=10, deadline=None)
    def test_the_order_of_rows_moves_nothing(self, seed):
        options = _options(mode="pairs", pairs=60, critical_slices=[])
        shuffled = self.PAIRS.sample(frac=1, random_state=seed)
        one, two = draw_pairs(self.PAIRS, options).pairs, draw_pairs(shuffled, options).pairs
        assert set(one["pair_id"]) == set(two["pair_id"])
        assert len(one) == 60

    def test_another_seed_draws_others(self):
        options = _options(mode="pairs", pairs=60, critical_slices=[])
        other = _options(mode="pairs", pairs=60, critical_slices=[], seed=1)
        assert set(draw_pairs(self.PAIRS, options).pairs["pair_id"]) != set(
            draw_pairs(self.PAIRS, other).pairs["pair_id"]
        )

    def test_a_stratum_column_that_is_not_there_is_refused(self):
        with pytest.raises(TableError, match="strata"):
            draw_pairs(self.PAIRS, _options(strata=["colour"]))

    def test_sources_are_obeyed(self):
        pairs = pd.concat(
            [self.PAIRS, fabricate_pairs(3, source="other").assign(pair_id=lambda f: "o" + f["pair_id"])]
        )
        draw = draw_pairs(pairs, _options(mode="everything", sources=["other"]))
        assert set(draw.pairs["source"]) == {"other"}
