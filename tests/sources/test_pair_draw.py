"""The drawn subset: balanced, one pair a base task, and moved by neither rows nor lengths."""

import itertools

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.sources.draw import draw_pairs

MANIPULATIONS = ("length", "style", "citation", "correctness", "identity")


def bank(tasks: int = 12) -> pd.DataFrame:
    rows = [
        {
            "pair_id": f"t{task}-{manipulation}",
            "base_id": f"t{task}",
            "manipulation": manipulation,
            "domain": ("facts", "reasoning")[task % 2],
            "difficulty": ("easy", "hard")[task // 2 % 2],
            "question": "q",
            "response_a": "a",
            "response_b": "b" * task,
        }
        for task, manipulation in itertools.product(range(tasks), MANIPULATIONS)
    ]
    return pd.DataFrame(rows)


class TestDraw:
    def test_one_pair_a_base_task_and_even_strata(self):
        drawn = draw_pairs(bank(), 10, "s")
        assert drawn["base_id"].nunique() == 10
        assert drawn["manipulation"].value_counts().tolist() == [2] * 5
        assert drawn["domain"].value_counts().tolist() == [5, 5]

    def test_domain_and_difficulty_are_even_within_a_manipulation(self):
        drawn = draw_pairs(bank(24), 20, "s")
        for column in ("domain", "difficulty"):
            counts = drawn.groupby(["manipulation", column]).size()
            assert counts.tolist() == [2] * 10

    def test_base_tasks_repeat_only_when_all_are_taken(self):
        drawn = draw_pairs(bank(4), 6, "s")
        assert len(drawn) == 6
        assert drawn["base_id"].nunique() == 4

    @given(st.randoms(use_true_random=False))
    @settings(max_examples=10, deadline=None)
    def test_the_order_of_rows_plays_no_part(self, random):
        pairs = bank()
        order = list(range(len(pairs)))
        random.shuffle(order)
        assert set(draw_pairs(pairs.iloc[order], 10, "s")["pair_id"]) == set(
            draw_pairs(pairs, 10, "s")["pair_id"]
        )

    def test_length_plays_no_part(self):
        pairs = bank()
        longer = pairs.assign(response_b=pairs["response_b"].str[::-1] + "x" * 100)
        assert set(draw_pairs(longer, 10, "s")["pair_id"]) == set(draw_pairs(pairs, 10, "s")["pair_id"])

    def test_another_salt_draws_others(self):
        assert set(draw_pairs(bank(), 10, "s")["pair_id"]) != set(draw_pairs(bank(), 10, "t")["pair_id"])

    def test_none_takes_all_and_zero_none(self):
        assert len(draw_pairs(bank(), None, "s")) == len(draw_pairs(bank(), 999, "s")) == 60
        assert len(draw_pairs(bank(), 0, "s")) == 0

    def test_pairs_without_texts_are_never_judged(self):
        pairs = bank()
        pairs["response_a"] = pairs["response_a"].where(pairs["base_id"] == "t0")
        assert draw_pairs(pairs, None, "s")["base_id"].unique().tolist() == ["t0"]

    def test_null_strata(self):
        assert len(draw_pairs(bank().assign(domain=None, difficulty=None, manipulation=None), 3, "s")) == 3
