"""Pairs beside their twins: what polish or an injected instruction saves."""

import pandas as pd
import pytest

from judge_calibration.metrics.manipulations import manipulation_table


def make(n):
    """n tasks, each with a plain error and the same error polished; A is right in all."""
    plain = pd.DataFrame({"pair_id": [f"plain{i}" for i in range(n)], "manipulation": "correctness"})
    polished = pd.DataFrame(
        {
            "pair_id": [f"polished{i}" for i in range(n)],
            "manipulation": "polished_but_wrong",
            "variant": "style",
            "twin_pair_id": plain["pair_id"],
        }
    )
    pairs = pd.concat([plain, polished], ignore_index=True)
    return pairs.assign(
        base_id=[f"t{i}" for i in range(n)] * 2,
        source="bank",
        domain="math",
        difficulty="hard",
        reference_label="A",
        modified="B",
        response_a=pairs["pair_id"] + " right",
        response_b=pairs["pair_id"] + " wrong",
    )


def judged(pairs, said):
    parts = [pd.DataFrame({"pair_id": pairs["pair_id"], "order": o, "verdict": said}) for o in ("AB", "BA")]
    frame = pd.concat(parts, ignore_index=True)
    about = {"judge_id": "j", "instrument_id": "i", "protocol": "direct", "constraint": "none"}
    return frame.assign(outcome="valid", temperature=0.0, repetition=0, **about)


def values(table, slice_by, slice_, statistic):
    row = table[
        (table["slice_by"] == slice_by) & (table["slice"] == slice_) & (table["statistic"] == statistic)
    ]
    return row["value"].tolist(), row["n_pairs"].tolist()


class TestTwins:
    def test_loss_is_the_twins_rate_less_the_own(self):
        pairs = make(12)
        # Right on all 12 plain errors, on 3 of 12 polished ones: 1 - 3/12 = 0.75 is lost.
        table = manipulation_table(judged(pairs, ["A"] * 12 + ["A"] * 3 + ["B"] * 9), pairs)
        assert values(table, "manipulation", "polished_but_wrong", "twin_better_wins") == ([1.0], [12])
        assert values(table, "manipulation", "polished_but_wrong", "changed_better_wins") == ([0.25], [12])
        assert values(table, "manipulation", "polished_but_wrong", "lost_to_change") == ([0.75], [12])
        variant = values(table, "manipulation*variant", "polished_but_wrong / style", "lost_to_change")
        assert variant == ([0.75], [12])
        row = table[(table["statistic"] == "lost_to_change") & (table["slice_by"] == "manipulation")].iloc[0]
        assert row["low"] < 0.75 < row["high"]

    def test_a_pair_whose_twin_was_not_judged_does_not_count(self):
        pairs = make(12)
        verdicts = judged(pairs, ["A"] * 24)
        table = manipulation_table(verdicts[verdicts["pair_id"] != "plain0"], pairs)
        assert values(table, "manipulation", "polished_but_wrong", "lost_to_change") == ([0.0], [11])

    def test_without_twins_there_is_no_row(self):
        pairs = make(3).assign(twin_pair_id=None)
        table = manipulation_table(judged(pairs, ["A"] * 6), pairs)
        assert not (table["statistic"] == "lost_to_change").any()

    @pytest.mark.parametrize(
        ("slice_by", "slice_"),
        [
            ("manipulation*domain", "correctness / math"),
            ("manipulation*difficulty*domain", "correctness / hard / math"),
        ],
    )
    def test_domains_and_all_three_crossed(self, slice_by, slice_):
        pairs = make(4)
        assert values(
            manipulation_table(judged(pairs, ["A"] * 8), pairs), slice_by, slice_, "better_wins"
        ) == ([1.0], [4])
