import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelling_helpers import fabricate_pairs, make_key, make_options

from judge_calibration.errors import TableError
from judge_calibration.labelling.drawing import draw_pairs, frame_of_draw
from judge_calibration.labelling.planning import labelling_frame, plan_round
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


class TestFrame:
    def test_every_pair_has_its_chance_drawn_or_not(self):
        pairs = fabricate_pairs(40)
        options = _options(mode="pairs", pairs=50, strata=["manipulation"])
        frame = frame_of_draw(pairs, options)
        # 50 of 200 pairs, 10 of the 40 of each stratum.
        assert frame["inclusion_probability"].tolist() == pytest.approx([0.25] * 200)
        assert frame["drawn"].sum() == 50
        drawn = draw_pairs(pairs, options).pairs
        assert frame.loc[frame["drawn"], "pair_id"].tolist() == drawn["pair_id"].tolist()

    def test_a_pair_outside_every_critical_slice_has_no_chance(self):
        frame = frame_of_draw(fabricate_pairs(40), _options()).set_index("pair_id")
        correctness = frame.index.str.endswith("correctness")
        assert (frame.loc[correctness, "inclusion_probability"] > 0).all()
        assert (frame.loc[~correctness, "inclusion_probability"] == 0).all()

    def test_chances_are_the_share_of_seeds_that_draw_a_pair(self):
        pairs = fabricate_pairs(20)
        slices = [_slice(half_width=0.25), _slice(slice_by="all", slice="all", half_width=0.2)]
        options = [_options(seed=seed, critical_slices=slices) for seed in range(150)]
        frames = [frame_of_draw(pairs, one) for one in options]
        shares = pd.concat([frame["drawn"] for frame in frames], axis=1).mean(axis=1)
        chance = frames[0]["inclusion_probability"]
        assert chance.between(0.05, 1).all()
        # Standard error of a mean over 20 tasks and 150 seeds: under .02.
        for group in ("correctness", "length"):
            rows = pairs["manipulation"] == group
            assert shares[rows].mean() == pytest.approx(chance[rows].mean(), abs=0.05)


class TestLabellingFrame:
    def test_a_fresh_plan(self):
        options = make_options(draw={"mode": "pairs", "pairs": 12})
        pairs = fabricate_pairs(9)
        plan = plan_round(pairs, options, make_key(options)).plan
        frame = labelling_frame(pairs, plan, options)
        assert frame["drawn"].sum() == 12
        assert frame["undefined"].isna().all()
        assert len(frame) == 45

    def test_pairs_that_came_after_the_draw_make_chances_unknown(self):
        options = make_options(draw={"mode": "pairs", "pairs": 12})
        plan = plan_round(fabricate_pairs(9), options, make_key(options)).plan
        frame = labelling_frame(fabricate_pairs(12), plan, options)
        assert set(frame["undefined"]) == {"pairs_changed_since_the_draw"}
        assert frame["inclusion_probability"].isna().all()
        assert frame["drawn"].sum() == 12

    def test_the_cases_of_a_study_were_chosen(self):
        study = {"enabled": True, "attributes": {"a": "A?", "b": "B?"}}
        options = make_options(study=study)
        pairs = fabricate_pairs(4)
        cases = pd.DataFrame({"pair_id": pairs["pair_id"][:3]})
        plan = plan_round(pairs, options, make_key(options), cases=cases).plan
        frame = labelling_frame(pairs, plan, options)
        assert set(frame["undefined"]) == {"chosen_cases"}
        assert frame["drawn"].sum() == 3
