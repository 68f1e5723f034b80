"""The trust table: worked values, identities, views, and what is undefined."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.errors import TableError
from judge_calibration.metrics.trust_statistics import METRICS
from judge_calibration.metrics.trust_table import TRUST_COLUMNS, trust_intervals, trust_table
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=200))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def reasons(row):
    return json.loads(row["undefined"])


class TestWorkedTable:
    """Four pairs, both orders, three repetitions; the reference is A everywhere.

    pair  AB reads  BA reads   N(AB) N(BA)  P  R(AB) R(BA)
    p1    A A A     A A A        1     1    1    1     1
    p2    A A B     A A A        0     1    1    1     1
    p3    A A A     B B B        1     1    0    1     0
    p4    B B B     B B A        1     0    1    0     0
    """

    reads = {"p1": ("AAA", "AAA"), "p2": ("AAB", "AAA"), "p3": ("AAA", "BBB"), "p4": ("BBB", "BBA")}

    @pytest.fixture
    def row(self, tables, whole):
        pairs = tables.pairs(dict.fromkeys(self.reads, "A"))
        return whole(trust_table(tables.verdicts(self.reads), pairs, SMALL))

    def test_rates(self, row):
        assert row["C"] == 6 / 8
        assert row["phi"] == 1 / 4
        assert row["A"] == 5 / 8  # right: p1 twice, p2 twice, p3 once
        assert row["A_dec"] == 2 / 3  # p1 and p2 of p1, p2, p4
        assert row["q"] == 1 / 2
        assert row["PR"] == 2 / 4

    def test_ceiling_and_gap(self, row):
        assert row["A_max"] == 1 - 1 / 4 * 1 / 2
        assert row["gap"] == 7 / 8 - 5 / 8

    def test_trustworthy_rates(self, row):
        assert row["T_product"] == pytest.approx(3 / 4 * (5 / 8 - 1 / 4 * 1 / 2))  # .375
        assert row["T_direct"] == 3 / 8  # p1 twice, p2 in order BA
        assert row["T_pair"] == 1 / 4

    def test_c2(self, row):
        # Six units of three equal reads agree always; A A B and B B A in one pair of three.
        assert row["C2"] == pytest.approx((6 + 2 / 3) / 8)

    def test_order_excess(self, row):
        # Read pairs that differ: between orders 0, 1/3, 1, 1/3; within (mean of orders) 0, 1/3, 0, 1/3.
        between = (0 + 1 / 3 + 1 + 1 / 3) / 4
        within = (0 + 1 / 3 + 0 + 1 / 3) / 4
        assert row["order_excess"] == pytest.approx(between - within)

    def test_first_share(self, row):
        # First wins: AB says A 3 + 2 + 3 + 0, BA says B 0 + 0 + 3 + 2; 24 decisive reads.
        assert row["first_share"] == 13 / 24

    def test_counts(self, row):
        assert (row["n_pairs"], row["n_clusters"], row["repetitions"], row["share_kept"]) == (4, 4, 3, 1.0)

    def test_four_clusters_give_no_interval_and_say_so(self, row):
        assert np.isnan(row["A_low"])
        assert reasons(row)["A_interval"] == "fewer_than_10_clusters"
        assert "few_clusters" in json.loads(row["flags"])

    def test_columns(self, tables):
        pairs = tables.pairs(dict.fromkeys(self.reads, "A"))
        table = trust_table(tables.verdicts(self.reads), pairs, SMALL)
        assert list(table.columns) == list(TRUST_COLUMNS)
        assert list(table.columns[:12]) == [
            "source",
            "judge_id",
            "protocol",
            "constraint",
            "temperature",
            "view",
            "reduction",
            "slice_by",
            "slice",
            "n_pairs",
            "n_clusters",
            "repetitions",
        ]

    def test_majority_reduction(self, tables, whole):
        options = SMALL.model_copy(update={"trust": TrustOptions(reduction="majority")})
        reads = {"p1": ("BAA", "AAA"), "p2": ("AAB", "BBA")}
        pairs = tables.pairs(dict.fromkeys(reads, "A"))
        row = whole(trust_table(tables.verdicts(reads), pairs, options))
        assert (row["reduction"], row["phi"], row["A"]) == ("majority", 1 / 2, 3 / 4)

    def test_an_even_split_is_unresolved(self, tables, whole):
        options = SMALL.model_copy(update={"trust": TrustOptions(reduction="majority")})
        reads = {"p1": ("AB", "AA")}
        pairs = tables.pairs({"p1": "A"})
        table = trust_table(tables.verdicts(reads), pairs, options)
        row = whole(table)
        assert (row["phi"], row["A"]) == (1.0, 1 / 2)
        assert whole(table, "resolved")["n_pairs"] == 0


class TestViews:
    reads = {"p1": ("AA", "AA"), "p2": ("AA", ("A", None)), "p3": ((None, None), "BB"), "p4": ("TT", "AA")}

    @pytest.fixture
    def table(self, tables):
        reads = {
            name: tuple(["TIE" if x == "T" else x for x in o] for o in pair)
            for name, pair in self.reads.items()
        }
        return trust_table(tables.verdicts(reads), tables.pairs(dict.fromkeys(reads, "A")), SMALL)

    def test_strict_counts_failures_and_ties_as_wrong(self, table, whole):
        row = whole(table)
        assert row["A"] == 5 / 8  # p1 2, p2 2, p4 1
        assert row["C"] == 6 / 8  # p2 BA and p3 AB have a failed repetition
        assert row["phi"] == 2 / 4  # p3 (a side failed) and p4 (A against TIE)
        assert row["q"] == 1 / 4  # estimated: p4's one order of the four of p3 and p4

    def test_resolved_drops_pairs_with_a_failure_and_prints_what_is_left(self, table, whole):
        row = whole(table, "resolved")
        assert (row["n_pairs"], row["share_kept"]) == (2, 1 / 2)
        assert (row["C"], row["phi"], row["A"]) == (1.0, 1 / 2, 3 / 4)

    def test_policy_routes_ties_and_failures_to_people(self, table, whole):
        row = whole(table, "policy")
        # Kept (first reads A or B): p1 both, p2 both, p3 BA, p4 BA.
        assert row["share_kept"] == 6 / 8
        assert row["A"] == 5 / 6
        assert row["phi"] == 0.0

    def test_bounds_enclose_the_strict_accuracy(self, table, whole):
        right, wrong = whole(table, "failures_right"), whole(table, "failures_wrong")
        assert wrong["A"] == 5 / 8
        assert right["A"] == 6 / 8
        assert wrong["T_direct"] <= whole(table)["T_direct"] <= right["T_direct"]

    def test_abstain_twice_agrees_and_is_wrong(self, tables, whole):
        reads = {"p1": (["ABSTAIN"], ["ABSTAIN"])}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A"}), SMALL))
        assert (row["phi"], row["A"], row["A_dec"]) == (0.0, 0.0, 0.0)

    def test_views_of_a_judge_without_failures_equal_the_strict_one(self, tables):
        verdicts, pairs = tables.simulate(labels=("A", "B"), failing=0.0)
        table = trust_table(verdicts, pairs, SMALL)
        drop = ["view"]
        whole_rows = table[table["slice_by"] == "all"].drop(columns=drop).reset_index(drop=True)
        for row in range(1, len(whole_rows)):
            pd.testing.assert_series_equal(whole_rows.loc[row], whole_rows.loc[0], check_names=False)


class TestWhichPairs:
    def test_pairs_that_expect_a_tie_never_enter_accuracy_or_t(self, tables, whole):
        reads = {"p1": ("AA", "AA"), "p2": ("AA", "BB")}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "TIE"}), SMALL))
        assert (row["A"], row["T_direct"], row["PR"]) == (1.0, 1.0, 1.0)
        assert row["phi"] == 1 / 2  # order flips need no reference

    def test_identity_pairs_never_enter_phi_and_are_shown_apart(self, tables, whole):
        reads = {"p1": ("AA", "AA"), "same": ("AA", "BB")}
        pairs = tables.pairs({"p1": "A", "same": "TIE"}, manipulation=["correctness", "identity"])
        table = trust_table(tables.verdicts(reads), pairs, SMALL)
        row = whole(table)
        assert (row["phi"], row["first_share"]) == (0.0, 1 / 2)
        alone = table[(table["slice"] == "identity") & (table["slice_by"] == "manipulation")].iloc[0]
        assert alone["first_share"] == 1.0
        assert reasons(alone)["phi"] == "identity_pairs_only"

    def test_identical_answers_are_identity_pairs_whatever_their_label(self, tables, whole):
        reads = {"p1": ("A", "A"), "p2": ("A", "B")}
        pairs = tables.pairs({"p1": "A", "p2": "A"}, response_a=["x", "same"], response_b=["y", "same"])
        row = whole(trust_table(tables.verdicts(reads), pairs, SMALL))
        assert (row["phi"], row["A"]) == (0.0, 1.0)

    def test_printed_identities_hold_in_the_slice_with_decisive_references(self, tables):
        reads = {"p1": ("AAB", "AAA"), "p2": ("AAA", "BBB"), "p3": ("BBB", "BBB")}
        pairs = tables.pairs({"p1": "A", "p2": "A", "p3": "TIE"})
        table = trust_table(tables.verdicts(reads), pairs, SMALL)
        row = table[(table["slice_by"] == "reference") & (table["slice"] == "decisive")].iloc[0]
        assert row["T_product"] == pytest.approx(row["C"] * (row["A"] - row["phi"] * row["q"]))


class TestBadInput:
    """Each case has a stated result: undefined with a reason, or an error; never a warning."""

    def test_one_class_only(self, tables, whole):
        reads = {f"p{i}": ("AA", "AA") for i in range(12)}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs(dict.fromkeys(reads, "A")), SMALL))
        assert (row["A"], row["C"], row["phi"]) == (1.0, 1.0, 0.0)
        assert reasons(row)["q"] == "no_pair_flips"
        assert 0.7 < row["A_low"] < 1.0  # Wilson, not [1, 1]

    def test_no_ties(self, tables, whole):
        reads = {"p1": ("A", "B"), "p2": ("B", "B")}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "B"}), SMALL))
        assert row["q"] == 1 / 2

    def test_all_ties(self, tables, whole):
        reads = {f"p{i}": (["TIE"] * 2, ["TIE"] * 2) for i in range(3)}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs(dict.fromkeys(reads, "A")), SMALL))
        assert (row["A"], row["C"], row["phi"], row["T_direct"]) == (0.0, 1.0, 0.0, 0.0)
        assert reasons(row)["first_share"] == "no_decisive_verdict"

    def test_a_judge_with_no_valid_verdict(self, tables, whole):
        reads = {"p1": ([None] * 2, [None] * 2), "p2": ([None] * 2, [None] * 2)}
        table = trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "B"}), SMALL)
        row = whole(table)
        assert (row["A"], row["C"], row["C2"], row["phi"], row["T_direct"]) == (0.0, 0.0, 0.0, 1.0, 0.0)
        assert reasons(row)["A_dec"] == "all_pairs_flip"
        assert reasons(row)["first_share"] == "no_decisive_verdict"
        resolved = whole(table, "resolved")
        assert (resolved["n_pairs"], resolved["share_kept"]) == (0, 0.0)
        assert reasons(resolved)["A"] == "nothing_left_in_view"

    def test_one_order_only_refuses_phi_and_t(self, tables, whole):
        reads = {"p1": ("AA", ""), "p2": ("BB", "")}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "A"}), SMALL))
        assert (row["C"], row["A"]) == (1.0, 1 / 2)
        for metric in (
            "phi",
            "order_excess",
            "A_dec",
            "q",
            "A_max",
            "gap",
            "PR",
            "T_product",
            "T_direct",
            "T_pair",
        ):
            assert np.isnan(row[metric])
            assert reasons(row)[metric] == "one_order"

    def test_one_repetition_only_refuses_c_and_t(self, tables, whole):
        reads = {"p1": ("A", "A"), "p2": ("B", "A")}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "A"}), SMALL))
        assert (row["A"], row["phi"], row["PR"]) == (3 / 4, 1 / 2, 1 / 2)
        for metric in ("C", "C2", "order_excess", "T_product", "T_direct", "T_pair"):
            assert np.isnan(row[metric])
            assert reasons(row)[metric] == "one_repetition"

    def test_unequal_repetitions(self, tables, whole):
        # Units have 3, 2, 1 and 2 repetitions: C over the three with two or more, flagged.
        reads = {"p1": ("AAB", "AA"), "p2": ("A", "AA")}
        row = whole(trust_table(tables.verdicts(reads), tables.pairs({"p1": "A", "p2": "A"}), SMALL))
        assert row["C"] == 2 / 3
        assert row["C2"] == pytest.approx((1 / 3 + 1 + 1) / 3)
        assert row["T_pair"] == 0.0  # p1 only
        assert "unequal_repetitions" in json.loads(row["flags"])
        assert row["repetitions"] == 3

    def test_one_cluster(self, tables, whole):
        reads = {"p1": ("AA", "AA"), "p2": ("AB", "AA")}
        pairs = tables.pairs({"p1": "A", "p2": "A"}, base_id=["b", "b"])
        row = whole(trust_table(tables.verdicts(reads), pairs, SMALL))
        assert row["n_clusters"] == 1
        assert row["C"] == 3 / 4
        assert all(np.isnan(row[f"{metric}_low"]) for metric in METRICS)
        long = trust_intervals(tables.verdicts(reads), pairs, SMALL)
        assert long["jackknife_se"].isna().all()

    def test_a_slice_without_rows(self, tables):
        reads_1 = tables.verdicts({"p1": ("A", "A"), "p2": ("B", "B")}, judge="one")
        reads_2 = tables.verdicts({"p1": ("A", "A")}, judge="two")
        pairs = tables.pairs({"p1": "A", "p2": "A"}, difficulty=["easy", "hard"])
        table = trust_table(pd.concat([reads_1, reads_2], ignore_index=True), pairs, SMALL)
        row = table[(table["judge_id"] == "two") & (table["slice"] == "hard")].iloc[0]
        assert row["n_pairs"] == 0
        assert {reasons(row)[metric] for metric in METRICS} == {"no_pairs"}

    def test_a_slicing_column_without_values_is_left_out(self, tables):
        pairs = tables.pairs({"p1": "A"}, difficulty=[None])
        table = trust_table(tables.verdicts({"p1": ("A", "A")}), pairs, SMALL)
        assert "difficulty" not in set(table["slice_by"])

    def test_duplicated_calls_are_refused(self, tables):
        verdicts = tables.verdicts({"p1": ("AA", "AA")})
        twice = pd.concat([verdicts, verdicts.iloc[[1]]], ignore_index=True)
        with pytest.raises(TableError, match="same judgment twice"):
            trust_table(twice, tables.pairs({"p1": "A"}), SMALL)

    @pytest.mark.parametrize("label", ["C", "tie", "a", ""])
    def test_a_label_outside_the_alphabet_is_refused(self, tables, label):
        verdicts = tables.verdicts({"p1": (["A"], [label])})
        with pytest.raises(TableError, match=r"rows 2, column verdict.*wanted one of A, B, TIE, ABSTAIN"):
            trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL)

    def test_an_unknown_outcome_is_refused(self, tables):
        verdicts = tables.verdicts({"p1": ("A", "A")}).assign(outcome="fine")
        with pytest.raises(TableError, match="column outcome"):
            trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL)

    def test_a_failed_judgment_with_a_verdict_is_refused(self, tables):
        verdicts = tables.verdicts({"p1": ("A", "A")}).assign(outcome="timeout")
        with pytest.raises(TableError, match="wanted null, since the outcome is not valid"):
            trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL)

    def test_a_valid_judgment_without_a_verdict_is_refused(self, tables):
        verdicts = tables.verdicts({"p1": ([None], "A")}).assign(outcome="valid")
        with pytest.raises(TableError, match="wanted a verdict"):
            trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL)

    def test_an_unknown_pair_is_refused_by_name(self, tables):
        with pytest.raises(TableError, match="'p2'"):
            trust_table(tables.verdicts({"p2": ("A", "A")}), tables.pairs({"p1": "A"}), SMALL)

    def test_a_pair_that_is_listed_twice_is_refused(self, tables):
        pairs = tables.pairs({"p1": "A"})
        with pytest.raises(TableError, match="repeated ids"):
            trust_table(tables.verdicts({"p1": ("A", "A")}), pd.concat([pairs, pairs]), SMALL)

    def test_all_problems_come_in_one_report(self, tables):
        verdicts = tables.verdicts({"p9": (["Q"], ["A"])}).assign(order=["AB", "CD"])
        with pytest.raises(TableError) as caught:
            trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL)
        assert len(caught.value.problems) == 3

    def test_no_reference_refuses_accuracy_and_t(self, tables, whole):
        row = whole(trust_table(tables.verdicts({"p1": ("AA", "AA")}), tables.pairs({"p1": None}), SMALL))
        assert (row["C"], row["phi"]) == (1.0, 0.0)
        for metric in ("A", "A_dec", "q", "A_max", "gap", "PR", "T_product", "T_direct", "T_pair"):
            assert reasons(row)[metric] == "no_reference"

    def test_no_verdict_at_all_is_an_empty_table(self, tables):
        table = trust_table(tables.verdicts({"p1": ("A", "A")}).iloc[:0], tables.pairs({"p1": "A"}), SMALL)
        assert list(table.columns) == list(TRUST_COLUMNS)
        assert len(table) == 0

    def test_an_absent_column_is_named(self, tables):
        with pytest.raises(TableError, match="column order"):
            trust_table(
                tables.verdicts({"p1": ("A", "A")}).drop(columns="order"), tables.pairs({"p1": "A"}), SMALL
            )


class TestRows:
    def test_sources_are_apart_and_pooled_where_a_cell_judged_several(self, tables):
        reads = {"p1": ("A", "A"), "p2": ("B", "B")}
        pairs = tables.pairs({"p1": "A", "p2": "A"}).assign(source=["one", "two"])
        table = trust_table(tables.verdicts(reads), pairs, SMALL)
        rows = table[(table["slice_by"] == "all") & (table["view"] == "strict")]
        assert dict(zip(rows["source"], rows["A"], strict=True)) == {"one": 1.0, "two": 0.0, "all": 0.5}

    def test_temperatures_and_instruments_are_cells_of_their_own(self, tables):
        cold = tables.verdicts({"p1": ("A", "A")})
        warm = cold.assign(temperature=1.0, verdict="B")
        other = cold.assign(instrument_id="other")
        table = trust_table(
            pd.concat([cold, warm, other], ignore_index=True), tables.pairs({"p1": "A"}), SMALL
        )
        whole_rows = table[(table["slice_by"] == "all") & (table["view"] == "strict")]
        assert whole_rows["A"].tolist() == [1.0, 1.0, 0.0]

    def test_a_temperature_that_cannot_be_set_is_null(self, tables, whole):
        verdicts = tables.verdicts({"p1": ("A", "A")}).assign(temperature=np.nan)
        assert np.isnan(whole(trust_table(verdicts, tables.pairs({"p1": "A"}), SMALL))["temperature"])

    def test_row_order_of_the_input_changes_nothing(self, tables):
        verdicts, pairs = tables.simulate(protocols=("direct", "json_cot"))
        shuffled = verdicts.sample(frac=1, random_state=1)
        pd.testing.assert_frame_equal(
            trust_table(verdicts, pairs, SMALL), trust_table(shuffled, pairs, SMALL)
        )

    def test_greedy_decoding_in_process_is_flagged(self, tables, whole):
        options = SMALL.model_copy(update={"trust": TrustOptions(deterministic_judges=("judge",))})
        row = whole(trust_table(tables.verdicts({"p1": ("AA", "AA")}), tables.pairs({"p1": "A"}), options))
        assert "deterministic_by_construction" in json.loads(row["flags"])

    def test_quality_gaps_are_cut_into_bands(self, tables):
        reads = {"p1": ("A", "A"), "p2": ("B", "B"), "p3": ("B", "B")}
        pairs = tables.pairs(dict.fromkeys(reads, "A"), quality_gap=[0.1, 0.25, None])
        table = trust_table(tables.verdicts(reads), pairs, SMALL)
        rows = table[table["slice_by"] == "quality_gap"]
        assert dict(zip(rows["slice"], rows["A"], strict=True)) == {"under 0.25": 1.0, "0.25 to 0.5": 0.0}


READS = st.lists(st.sampled_from(["A", "B", "TIE", "ABSTAIN", None]), min_size=2, max_size=2)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), forced=st.booleans())
def test_identities(data, forced):
    reads_of = st.lists(st.sampled_from(["A", "B"]), min_size=2, max_size=2) if forced else READS
    n = data.draw(st.integers(1, 6))
    names = [f"p{i}" for i in range(n)]
    reads = {name: (data.draw(reads_of), data.draw(reads_of)) for name in names}
    references = {name: data.draw(st.sampled_from(["A", "B"])) for name in names}
    row = _whole(reads, references)
    # A = (1 - phi) A_dec + phi q, with undefined parts of no weight.
    phi = row["phi"]
    parts = (0 if phi == 1 else (1 - phi) * row["A_dec"]) + (0 if phi == 0 else phi * row["q"])
    assert row["A"] == pytest.approx(parts)
    assert row["A"] <= row["A_max"] + 1e-12
    assert row["gap"] == pytest.approx(row["A_max"] - row["A"])
    decisive = 0 if phi == 1 else (1 - phi) * row["A_dec"]
    assert row["T_product"] == pytest.approx(row["C"] * decisive)
    assert row["T_pair"] <= row["T_direct"] + 1e-12
    if forced:
        # 2 n A - n phi is even in counts: right units less flipped pairs come in twos.
        assert round(2 * n * row["A"] - n * phi) % 2 == 0
        assert phi == 0 or row["q"] == 0.5
    # Swapping the names of the candidates everywhere changes nothing.
    swap = {"A": "B", "B": "A"}
    swapped = {
        name: tuple([swap.get(verdict, verdict) for verdict in order] for order in (orders[1], orders[0]))
        for name, orders in reads.items()
    }
    other = _whole(swapped, {name: swap[label] for name, label in references.items()})
    for metric in METRICS:
        np.testing.assert_allclose(row[metric], other[metric], atol=1e-12)


def _whole(reads, references):
    rows = [
        (pair, order, repetition, "malformed" if verdict is None else "valid", verdict)
        for pair, orders in reads.items()
        for order, said in zip(("AB", "BA"), orders, strict=True)
        for repetition, verdict in enumerate(said)
    ]
    frame = pd.DataFrame(rows, columns=["pair_id", "order", "repetition", "outcome", "verdict"])
    frame = frame.assign(judge_id="j", protocol="direct", instrument_id="i")
    pairs = pd.DataFrame({"pair_id": list(references), "reference_label": list(references.values())})
    pairs = pairs.assign(base_id=pairs["pair_id"], source="made")
    options = ReportingOptions(
        intervals=IntervalOptions(resamples=200), trust=TrustOptions(views=("strict",), slices=())
    )
    return trust_table(frame, pairs, options).iloc[0]
