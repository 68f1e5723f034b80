"""Votes and remedies: exact distributions, worked predictions, verification on held-out repetitions."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.metrics.judgments import FAILED
from judge_calibration.metrics.remedies import remedy_table
from judge_calibration.metrics.units import majority_verdict
from judge_calibration.metrics.vote import vote_distribution
from judge_calibration.options.reporting import IntervalOptions, RemedyOptions, ReportingOptions

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def by_enumeration(counts, k):
    """Every ordered draw of k repetitions."""
    share = np.asarray(counts) / np.sum(counts)
    out = np.zeros(5)
    for draw in product(range(5), repeat=k):
        votes = np.bincount(draw, minlength=5)
        best = np.flatnonzero(votes == votes.max())
        out[best[0] if len(best) == 1 else FAILED] += np.prod(share[list(draw)])
    return out


class TestVote:
    @settings(max_examples=30, deadline=None)
    @given(st.lists(st.integers(0, 4), min_size=5, max_size=5).filter(any), st.sampled_from([1, 3]))
    def test_equals_enumeration(self, counts, k):
        np.testing.assert_allclose(vote_distribution([counts], k)[0], by_enumeration(counts, k), atol=1e-12)

    def test_rows_sum_to_one_and_no_read_is_undefined(self):
        found = vote_distribution([[3, 1, 1, 0, 2], [0, 0, 0, 0, 0]], 5)
        assert found[0].sum() == pytest.approx(1)
        assert np.isnan(found[1]).all()


class TestMajority:
    def test_failures_vote_as_one_symbol(self):
        assert majority_verdict([[1, 0, 0, 0, 2]], [0]).tolist() == [FAILED]

    def test_declared_tie_rule(self):
        assert majority_verdict([[1, 1, 0, 0, 0]], [1], tie="first_read").tolist() == [1]


class TestTable:
    def rows(self, table, remedy, votes):
        own = table[(table["remedy"] == remedy) & (table["votes"] == votes)]
        return own.set_index("statistic")

    @pytest.fixture
    def table(self, tables):
        # p1: 2/3 A in order AB, always A in order BA; p2 contradicts itself.
        reads = {"p1": ("AAB", "AAA"), "p2": ("AAA", "BBB")}
        return remedy_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "A"}), SMALL)

    def test_nothing_done(self, table):
        rows = self.rows(table, "none", 1)
        assert rows.loc["accuracy", "predicted"] == pytest.approx((2 / 3 + 1 + 1 + 0) / 4)
        assert rows.loc["agreement", "predicted"] == pytest.approx((5 / 9 + 1 + 1 + 1) / 4)
        assert rows.loc["accuracy", "calls_per_verdict"] == 1

    def test_a_vote_of_three(self, table):
        # 20/27 for A in order AB of p1.
        rows = self.rows(table, "vote", 3)
        assert rows.loc["accuracy", "predicted"] == pytest.approx((20 / 27 + 1 + 1 + 0) / 4)
        assert rows.loc["accuracy", "calls_per_verdict"] == 3

    def test_both_orders(self, table):
        # p1: both say A with 2/3; p2 never agrees and goes to people.
        rows = self.rows(table, "both_orders", 1)
        assert rows.loc["accuracy", "predicted"] == pytest.approx((2 / 3 + 0) / 2)
        assert rows.loc["coverage", "predicted"] == pytest.approx(1 / 3)
        assert rows.loc["accuracy_kept", "predicted"] == 1.0
        assert rows.loc["accuracy", "calls_per_verdict"] == 2
        # Repeated: p1 gives A (2/3) or TIE (1/3), p2 always TIE.
        assert rows.loc["agreement", "predicted"] == pytest.approx((5 / 9 + 1) / 2)

    def test_too_few_repetitions_to_verify(self, table):
        rows = self.rows(table, "vote", 3)
        assert rows.loc["accuracy", "verified_reason"] == "too_few_repetitions"
        assert self.rows(table, "none", 1).loc["accuracy", "verified_reason"] == ""

    def test_prediction_from_half_is_verified_on_the_rest(self, tables):
        verdicts, pairs = tables.simulate(n_pairs=400, n_clusters=100, repetitions=10, failing=0.0)
        table = remedy_table(verdicts, pairs, SMALL)
        for remedy, votes in (("none", 1), ("both_orders", 1), ("vote", 3)):
            row = self.rows(table, remedy, votes).loc["accuracy"]
            assert row["verified_pairs"] == 400
            assert row["verified"] == pytest.approx(row["predicted_from_half"], abs=0.05)

    def test_one_repetition_has_no_vote_and_no_agreement(self, tables):
        table = remedy_table(*tables.simulate(repetitions=1), SMALL)
        assert set(table["remedy"]) == {"none", "both_orders"}
        agreement = table[table["statistic"] == "agreement"]
        assert agreement["predicted"].isna().all()
        assert set(agreement["reason"]) == {"one_repetition"}

    def test_without_references_only_coverage_and_agreement(self, tables):
        table = remedy_table(tables.verdicts({"p1": ("AA", "AA")}), tables.pairs({"p1": None}), SMALL)
        rows = self.rows(table, "none", 1)
        assert np.isnan(rows.loc["accuracy", "predicted"])
        assert rows.loc["accuracy", "reason"] == "no_reference"
        assert rows.loc["coverage", "predicted"] == 1.0

    def test_one_order_has_no_row(self, tables):
        assert remedy_table(tables.verdicts({"p1": ("AA", "")}), tables.pairs({"p1": "A"}), SMALL).empty

    def test_even_votes_are_refused(self):
        with pytest.raises(ValueError, match="can tie"):
            RemedyOptions(votes=(2,))
