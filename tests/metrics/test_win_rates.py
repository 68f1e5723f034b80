"""Products' win rates from a random labelled part, and why there are none otherwise."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.win_rates import WIN_RATE_COLUMNS, win_rates
from judge_calibration.options.reporting import ReportingOptions


def made_up(n=8, labelled=4, candidates=("v1", "v2"), judge="BBBABBBA", people="BABA"):
    """Return tables: the judge says the same in both orders; the first pairs are drawn and labelled."""
    pairs = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(n)],
            "base_id": [f"b{i}" for i in range(n)],
            "source": "mine",
            "candidate_a": candidates[0],
            "candidate_b": candidates[1],
        }
    )
    verdicts = pd.DataFrame(
        [
            {
                "pair_id": f"p{i}",
                "judge_id": "j",
                "instrument_id": "i",
                "protocol": "direct",
                "order": order,
                "repetition": 0,
                "outcome": "valid",
                "verdict": judge[i],
            }
            for i in range(n)
            for order in ("AB", "BA")
        ]
    )
    labels = pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in range(labelled)],
            "attribute": pd.Series([None] * labelled, dtype="str"),
            "label": list(people[:labelled]),
            "reference_kind": "human",
        }
    )
    frame = pd.DataFrame(
        {
            "pair_id": pairs["pair_id"],
            "inclusion_probability": labelled / n,
            "drawn": [i < labelled for i in range(n)],
            "undefined": pd.Series([None] * n, dtype="str"),
        }
    )
    return verdicts, pairs, labels, frame


class TestWinRates:
    def test_worked_by_hand(self):
        row = win_rates(*made_up()).iloc[0]
        # v2 is the second candidate. People, on p0-p3: B A B A, so .5. The judge says B B B A there (.75:
        # bias .25) and B B B A on the others, so .75 over all: whatever lambda is,
        # nothing is corrected and .5 it stays.
        assert (row["product"], row["against"], row["estimand"]) == ("v2", "v1", "win_rate")
        assert (row["human_only"], row["judge_only"], row["judge_bias"]) == (0.5, 0.75, 0.25)
        assert row["value"] == pytest.approx(0.5)
        assert (row["n_labelled"], row["n_pairs"], row["n_clusters"]) == (4, 8, 4)
        assert row["low"] < 0.5 < row["high"]

    def test_swapping_the_sides_changes_nothing(self):
        flip = str.maketrans("AB", "BA")
        one = win_rates(*made_up())
        two = win_rates(
            *made_up(candidates=("v2", "v1"), judge="BBBABBBA".translate(flip), people="BABA".translate(flip))
        )
        pd.testing.assert_frame_equal(one, two)

    def test_a_tie_and_a_failure_count_one_half(self):
        verdicts, pairs, labels, frame = made_up()
        labels["label"] = "TIE"
        failed = verdicts["pair_id"] == "p7"
        verdicts["outcome"] = verdicts["outcome"].mask(failed, "timeout")
        verdicts["verdict"] = verdicts["verdict"].mask(failed)
        row = win_rates(verdicts, pairs, labels, frame).iloc[0]
        # The judge: six pairs for v2, p3 for v1, p7 failed: (6 + .5)/8.
        assert (row["human_only"], row["judge_only"], row["n_failed"]) == (0.5, 6.5 / 8, 2)

    def test_labels_of_pairs_that_were_not_drawn_do_not_count(self):
        verdicts, pairs, labels, frame = made_up()
        extra = labels.iloc[:1].assign(pair_id="p6", label="B")
        more = pd.concat([labels, extra], ignore_index=True)
        pd.testing.assert_frame_equal(
            win_rates(verdicts, pairs, more, frame), win_rates(verdicts, pairs, labels, frame)
        )

    def test_pairs_without_a_chance_are_left_out_and_counted(self):
        verdicts, pairs, labels, frame = made_up()
        frame.loc[frame["pair_id"] == "p7", "inclusion_probability"] = 0.0
        row = win_rates(verdicts, pairs, labels, frame.iloc[[0, 1, 2, 3, 4, 5, 7]]).iloc[0]
        assert (row["n_pairs"], row["n_without_chance"]) == (6, 2)

    def test_difference_of_products_that_share_an_opponent(self):
        verdicts, pairs, labels, frame = made_up()
        pairs.loc[[0, 2, 4, 6], "candidate_b"] = "v3"
        table = win_rates(verdicts, pairs, labels, frame).set_index("estimand")
        row = table.loc["difference"]
        # v3 has p0, p2 (people: B, B, so 1), v2 has p1, p3 (A, A, so 0).
        assert (row["product"], row["other_product"], row["against"]) == ("v3", "v2", "v1")
        assert row["human_only"] == 1.0
        rates = table.loc["win_rate"].set_index("product")
        assert row["judge_only"] == rates.loc["v3", "judge_only"] - rates.loc["v2", "judge_only"]

    def test_no_more_differences_than_asked_for(self):
        verdicts, pairs, labels, frame = made_up()
        pairs.loc[[0, 2, 4, 6], "candidate_b"] = "v3"
        options = ReportingOptions(win_rates={"differences_up_to": 0})
        assert set(win_rates(verdicts, pairs, labels, frame, options)["estimand"]) == {"win_rate"}

    def test_an_interval_without_width_is_none(self):
        row = win_rates(*made_up(judge="BBBBBBBB", people="BBBB")).iloc[0]
        assert row["value"] == 1.0
        assert np.isnan(row["low"])
        assert np.isnan(row["high"])
        assert row["interval_reason"] == "no_variation"

    def test_simulated_and_human_labels_are_never_mixed(self):
        verdicts, pairs, labels, frame = made_up()
        labels.loc[2:, "reference_kind"] = "simulated"
        table = win_rates(verdicts, pairs, labels, frame)
        assert table["label_kind"].tolist() == ["human", "simulated"]
        assert set(table["reason"]) == {"drawn_pairs_without_label"}

    def test_unbiased_over_random_draws_with_a_biased_judge(self):
        """Draws of 40 of 120 pairs; the judge prefers v2 far too often."""
        rng = np.random.default_rng(5)
        n = 120
        truth = np.where(rng.random(n) < 0.4, "B", "A")
        judge = np.where(rng.random(n) < 0.3, "B", truth)
        verdicts, pairs, _, _ = made_up(n, 0, judge="".join(judge), people="")
        estimates, covered = [], 0
        for _ in range(60):
            drawn = np.isin(np.arange(n), rng.permutation(n)[:40])
            ids = pairs["pair_id"][drawn]
            labels = pd.DataFrame({"pair_id": ids, "label": truth[drawn], "reference_kind": "human"})
            labels["attribute"] = pd.Series([None] * len(labels), index=labels.index, dtype="str")
            frame = pairs[["pair_id"]].assign(inclusion_probability=1 / 3, drawn=drawn, undefined=None)
            row = win_rates(verdicts, pairs, labels, frame).iloc[0]
            estimates.append(row["value"])
            covered += row["low"] <= (truth == "B").mean() <= row["high"]
        # The standard error of one estimate is about .06, of the mean of 60 about .008.
        assert np.mean(estimates) == pytest.approx((truth == "B").mean(), abs=0.03)
        assert np.mean(estimates) < row["judge_only"] - 0.05
        assert covered >= 53  # at least the 99 % binomial lower bound of 95 %


class TestRefused:
    def only(self, *tables):
        table = win_rates(*tables)
        assert list(table.columns) == list(WIN_RATE_COLUMNS)
        assert table["value"].isna().all()
        assert table["low"].isna().all()
        return table["reason"].tolist()

    def test_no_labels(self):
        assert self.only(*made_up(labelled=0)) == ["no_settled_labels"]

    def test_no_candidates(self):
        verdicts, pairs, labels, frame = made_up()
        assert self.only(verdicts, pairs.drop(columns="candidate_a"), labels, frame) == ["no_products"]

    def test_identity_pairs_have_no_winner(self):
        assert self.only(*made_up(candidates=("v1", "v1"))) == ["no_products"]

    def test_a_drawn_pair_that_nobody_labelled(self):
        verdicts, pairs, labels, frame = made_up()
        labels.loc[0, "label"] = None
        assert self.only(verdicts, pairs, labels, frame) == ["drawn_pairs_without_label"]

    @pytest.mark.parametrize("why", ["chosen_cases", "pairs_changed_since_the_draw"])
    def test_chances_that_nobody_knows(self, why):
        verdicts, pairs, labels, frame = made_up()
        assert self.only(
            verdicts, pairs, labels, frame.assign(inclusion_probability=np.nan, undefined=why)
        ) == [why]

    def test_pairs_that_could_not_be_drawn(self):
        verdicts, pairs, labels, frame = made_up()
        assert self.only(verdicts, pairs, labels, frame.iloc[:0]) == ["no_pair_with_a_chance"]

    def test_one_labelled_task(self):
        verdicts, pairs, labels, frame = made_up()
        pairs["base_id"] = "same"
        assert self.only(verdicts, pairs, labels, frame) == ["fewer_than_2_labelled_tasks"]

    def test_without_a_verdict_the_table_is_empty(self):
        verdicts, pairs, labels, frame = made_up()
        table = win_rates(verdicts.iloc[:0], pairs, labels, frame)
        assert table.empty
        assert list(table.columns) == list(WIN_RATE_COLUMNS)
