"""The cluster bootstrap against the published loop, and its streams, blocks and exactness."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.metrics.agreement import confusion_intervals
from judge_calibration.metrics.bootstrap import Resamples, cluster_bootstrap, percentiles
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums, weight_blocks
from judge_calibration.metrics.kappa import cohen_kappa
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions


def published_interval(frame, statistic, resamples, seed):
    """The loop that the calibration lab publishes: draw ids, join their rows, compute, take percentiles."""
    rng = np.random.default_rng(seed)
    ids = frame["base_id"].unique()
    values = []
    for _ in range(resamples):
        drawn = rng.choice(ids, len(ids), replace=True)
        rows = pd.concat([frame[frame["base_id"] == name] for name in drawn], ignore_index=True)
        values.append(statistic(rows))
    return np.quantile(values, [0.025, 0.975])


def labelled(seed, n=50, clusters=12):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"base_id": [f"t{i}" for i in rng.integers(0, clusters, n)]})
    frame["human"] = rng.integers(0, 3, n)
    frame["judge"] = np.where(rng.random(n) < 0.7, frame["human"], rng.integers(0, 3, n))
    return frame


class TestAgainstThePublishedLoop:
    @pytest.mark.parametrize("seed", [7, 20261130])
    def test_agreement_has_the_same_interval_to_the_last_bit(self, seed):
        frame = labelled(seed)
        expected = published_interval(frame, lambda d: (d["judge"] == d["human"]).mean(), 200, seed)
        right = frame["judge"] == frame["human"]
        found = cluster_bootstrap(right, np.ones(len(frame)), frame["base_id"], 200, seed)
        assert (found.low, found.high) == tuple(expected)

    def test_kappa_has_the_same_interval_to_1e_15(self):
        frame = labelled(3)

        def kappa(rows):
            return float(
                cohen_kappa(np.bincount(rows["human"] * 5 + rows["judge"], minlength=25).reshape(5, 5))
            )

        expected = published_interval(frame, kappa, 200, 7)
        clusters = cluster_codes(frame["base_id"])
        cell = clusters.codes * 25 + frame["human"] * 5 + frame["judge"]
        confusion = np.bincount(cell, minlength=clusters.size * 25).reshape(-1, 5, 5).astype(float)
        options = ReportingOptions(intervals=IntervalOptions(resamples=200, seed=7))
        found = confusion_intervals(confusion, Resamples(clusters.size, 200, 7), options)
        assert abs(found.low[1] - expected[0]) <= 1e-15
        assert abs(found.high[1] - expected[1]) <= 1e-15

    def test_clusters_out_of_order_break_the_identity(self):
        # The published loop numbers clusters by first appearance; sorting them gives another interval.
        frame = labelled(1)
        right = (frame["judge"] == frame["human"]).to_numpy()
        ours = cluster_bootstrap(right, np.ones(len(frame)), frame["base_id"], 200, 7)
        order = np.argsort(frame["base_id"].to_numpy(), kind="stable")
        other = cluster_bootstrap(
            right[order], np.ones(len(frame)), frame["base_id"].to_numpy()[order], 200, 7
        )
        assert ours.value == other.value
        assert (ours.low, ours.high) != (other.low, other.high)


class TestWeights:
    def test_blocks_continue_one_stream(self, monkeypatch):
        whole = np.concatenate(list(weight_blocks(37, 50, 7)))
        monkeypatch.setattr("judge_calibration.metrics.clusters._BLOCK_ELEMENTS", 37 * 7)
        blocks = list(weight_blocks(37, 50, 7))
        assert len(blocks) == 8
        np.testing.assert_array_equal(np.concatenate(blocks), whole)

    def test_every_row_draws_as_many_clusters_as_there_are(self):
        for block in weight_blocks(13, 40, 1):
            np.testing.assert_array_equal(block.sum(axis=1), 13)

    def test_integer_sums_are_exact_whatever_is_kept(self, monkeypatch):
        rng = np.random.default_rng(0)
        sums = rng.integers(0, 40, size=(60, 9)).astype(float)
        sums[:, 4] = sums[:, 2]  # equal columns are multiplied once
        sums[:, 5] = 0.0
        sums[:, 6] = rng.random(60)
        exact = np.concatenate(list(weight_blocks(60, 500, 3))) @ sums
        np.testing.assert_allclose(Resamples(60, 500, 3).totals(sums).T, exact, rtol=1e-13)
        np.testing.assert_array_equal(Resamples(60, 500, 3).totals(sums).T[:, :6], exact[:, :6])
        monkeypatch.setattr("judge_calibration.metrics.bootstrap._KEEP_BYTES", 0)
        np.testing.assert_array_equal(Resamples(60, 500, 3).totals(sums).T[:, :6], exact[:, :6])

    def test_more_than_255_draws_of_one_cluster_are_not_cut_off(self, monkeypatch):
        # A single cluster is drawn once a resample; two clusters cannot be drawn 300 times, so fake a block.
        block = np.full((2, 2), 300)
        monkeypatch.setattr("judge_calibration.metrics.bootstrap.weight_blocks", lambda *_: iter([block]))
        np.testing.assert_array_equal(Resamples(2, 2, 0).totals(np.array([[1.0], [2.0]])), [[900.0, 900.0]])

    def test_sparse_support_gives_the_same_sums(self):
        sums = np.zeros((50, 1))
        sums[[3, 41], 0] = [2.0, 5.0]
        exact = np.concatenate(list(weight_blocks(50, 200, 3))) @ sums
        np.testing.assert_array_equal(Resamples(50, 200, 3).totals(sums).T, exact)

    def test_many_thin_columns_have_the_sums_of_a_plain_product(self):
        rng = np.random.default_rng(2)
        # Thirty columns in two or three clusters each, beside a full one and one of fractions.
        sums = np.zeros((60, 32))
        for column in range(30):
            sums[rng.choice(60, 3, replace=False), column] = rng.integers(1, 9, 3)
        sums[:, 30], sums[:, 31] = rng.integers(0, 9, 60), rng.random(60)
        weights = np.concatenate(list(weight_blocks(60, 500, 7)))
        found = Resamples(60, 500, 7).totals(sums)
        assert (found[:31] == (weights.astype(np.int64) @ sums[:, :31].astype(np.int64)).T).all()
        np.testing.assert_allclose(found[31], weights @ sums[:, 31])


class TestUndefined:
    def test_no_row_is_undefined(self):
        found = cluster_bootstrap([], [], [], 200)
        assert np.isnan(found.value)
        assert np.isnan(found.low)
        assert found.undefined == 1.0

    def test_undefined_resamples_are_counted_and_left_out(self):
        low, high, undefined = percentiles(np.array([[1.0, np.nan, 3.0, 2.0]]), 0.95)
        expected = np.quantile([1.0, 3.0, 2.0], [0.025, 0.975])
        assert undefined[0] == 0.25
        assert (low[0], high[0]) == tuple(expected)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans()), min_size=1, max_size=40))
def test_the_value_is_the_plain_share_and_lies_within_its_interval(rows):
    clusters, right = zip(*rows, strict=True)
    found = cluster_bootstrap(right, np.ones(len(right)), clusters, 200)
    assert found.value == pytest.approx(np.mean(right))
    assert 0 <= found.low <= found.high <= 1
    assert found.low <= found.value <= found.high or len(set(clusters)) < 4


def test_cluster_sums_of_a_table():
    np.testing.assert_array_equal(
        cluster_sums([[1, 2], [3, 4], [5, 6]], np.array([1, 0, 1]), 2), [[3, 4], [6, 8]]
    )
