"""Repetitions that are asked look by look: fewer calls, and intervals that still cover."""

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from judge_calibration.judges.planning import plan_calls
from judge_calibration.judges.sequential import (
    agreement_interval,
    ask_sequentially,
    looks_of,
    needed_calls,
    no_looks,
)
from judge_calibration.options.asking import SequentialOptions
from judge_calibration.options.judging import JudgingOptions

PAIRS = pd.DataFrame(
    [
        {
            "pair_id": f"p{n}",
            "base_id": f"b{n}",
            "question": f"Question {n}?",
            "response_a": f"Yes {n}.",
            "response_b": "No.",
        }
        for n in range(60)
    ]
)


def options_for(half_width, repetitions=10, model="scripted/noise=0.3"):
    judge = {
        "judge_id": "scripted",
        "model": model,
        "protocols": ["direct"],
        "temperatures": [0.0, 1.0],
        "repetitions": repetitions,
        "transport": {"transport": "scripted"},
    }
    return JudgingOptions.model_validate(
        {"judges": [judge], "asking": {"sequential": {"half_width": half_width}}}
    )


class TestLooks:
    def test_alpha_is_spent_whole_and_in_proportion(self):
        looks = looks_of(SequentialOptions(), 10)
        assert [look.repetitions for look in looks] == [2, 3, 5, 10]
        assert [look.alpha for look in looks] == pytest.approx([0.01, 0.005, 0.01, 0.025])
        assert sum(look.alpha for look in looks) == pytest.approx(0.05)

    def test_the_planned_number_is_always_the_last_look(self):
        assert [look.repetitions for look in looks_of(SequentialOptions(), 4)] == [2, 3, 4]
        assert looks_of(SequentialOptions(), 1)[0].repetitions == 1

    @pytest.mark.parametrize("looks", [(), (1, 2), (3, 2), (2, 2)])
    def test_looks_have_to_rise_from_two(self, looks):
        with pytest.raises(ValidationError, match="looks has to rise"):
            SequentialOptions(looks=looks)


class TestInterval:
    def test_worked_numbers(self):
        # Four clusters of one unit, C2 1, 1, 0, 0: mean 1/2, standard error .288675, t(3) at 95 % 3.1824.
        counts = np.array([[2, 0, 0, 0, 0], [0, 2, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 0, 0, 0]])
        value, half = agreement_interval(counts, list("abcd"), 0.95)
        assert value == 0.5
        assert half == pytest.approx(0.288675 * 3.1824, abs=1e-4)

    def test_perfect_agreement_has_no_interval_of_width_zero(self):
        counts = np.array([[3, 0, 0, 0, 0]] * 20)
        value, half = agreement_interval(counts, [str(n) for n in range(20)], 0.95)
        # Wilson for 20 of 20: 1 - .161125.
        assert (value, half) == (1.0, pytest.approx(0.161125, abs=1e-5))

    def test_one_repetition_or_one_cluster_is_undefined(self):
        assert np.isnan(agreement_interval(np.array([[1, 0, 0, 0, 0]] * 2), ["a", "b"], 0.95)[1])
        assert np.isnan(agreement_interval(np.array([[2, 0, 0, 0, 0]] * 2), ["a", "a"], 0.95)[1])


def simulate(noise, wanted, clusters=50):
    """One cell: C2 and half-width where it stops, and the repetitions that it took."""
    sure = noise.beta(2.0, 1.0, clusters)
    said = noise.random((clusters, 10)) < sure[:, None]
    for look in looks_of(SequentialOptions(), 10):
        first = said[:, : look.repetitions].sum(axis=1)
        counts = np.zeros((clusters, 5))
        counts[:, 0], counts[:, 1] = first, look.repetitions - first
        value, half = agreement_interval(counts, [str(n) for n in range(clusters)], 1 - look.alpha)
        if half <= wanted:
            break
    return value, half, look.repetitions


def test_intervals_at_the_stop_cover_and_calls_are_saved():
    """p from Beta(2, 1): E p = 2/3 and E p^2 = 1/2, so C2 = E[p^2 + (1 - p)^2] = 1 - 4/3 + 1 = 2/3."""
    noise = np.random.default_rng(20261130)
    runs = [simulate(noise, wanted=0.12) for _ in range(300)]
    covered = np.mean([abs(value - 2 / 3) <= half for value, half, _ in runs])
    # Three standard errors of a share of .95 in 300 runs are .038.
    assert covered >= 0.95 - 0.038
    taken = [repetitions for *_, repetitions in runs]
    assert np.mean(taken) < 7
    assert len(set(taken)) > 1


class TestAsking:
    def test_a_wide_interval_is_enough_after_two_repetitions(self, tmp_path):
        options = options_for(0.3)
        calls = plan_calls(PAIRS, options)
        answers, _, looks = ask_sequentially(calls, PAIRS, options, tmp_path)
        assert looks["repetitions"].tolist() == [2, 2]
        assert looks["stopped"].all()
        assert len(answers) == len(calls) / 5
        assert looks["calls_asked"].sum() == len(answers)
        assert looks["calls_planned"].sum() == len(calls)

    def test_a_narrow_one_takes_all(self, tmp_path):
        options = options_for(0.0001, repetitions=5)
        calls = plan_calls(PAIRS, options)
        answers, _, looks = ask_sequentially(calls, PAIRS, options, tmp_path)
        assert len(answers) == len(calls)
        assert looks.groupby("temperature")["repetitions"].apply(list).tolist() == [[2, 3, 5]] * 2

    def test_cells_stop_by_themselves_and_the_same_store_stops_where_it_did(self, tmp_path):
        options = options_for(0.07)
        calls = plan_calls(PAIRS, options)
        first = ask_sequentially(calls, PAIRS, options, tmp_path)
        stops = first[2][first[2]["stopped"]].set_index("temperature")
        # All 60 clusters agree at temperature 0, so Wilson decides. At its widest level (99.5 %,
        # second look) z^2 is 7.88 and the half-width 7.88 / 67.88 = .116; at 97.5 % it is 5.02 / 65.02, or
        # .077: never narrow enough, so all ten repetitions are asked.
        assert stops.loc[0.0, "repetitions"] == 10
        assert stops.loc[0.0, "half_width"] == pytest.approx(0.077, abs=0.001)
        assert stops.loc[1.0, "repetitions"] in (2, 3, 5, 10)
        offline = options.model_copy(update={"asking": options.asking.model_copy(update={"offline": True})})
        second = ask_sequentially(calls, PAIRS, offline, tmp_path)
        for one, other in zip(first, second, strict=True):
            pd.testing.assert_frame_equal(one, other)

    def test_calls_that_no_look_needed_are_left_out(self, tmp_path):
        options = options_for(0.3)
        calls = plan_calls(PAIRS, options)
        *_, looks = ask_sequentially(calls, PAIRS, options, tmp_path)
        assert set(needed_calls(calls, looks)["repetition"]) == {0, 1}
        assert needed_calls(calls, no_looks()) is calls
