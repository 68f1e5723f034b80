"""Paired differences, format dispersion, temperature and paradigms."""

import warnings

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.format_dispersion import format_dispersion
from judge_calibration.metrics.paired_differences import DIFFERENCE_COLUMNS, paired_differences
from judge_calibration.metrics.paradigms import paradigm_table, trust_spread
from judge_calibration.metrics.regions import region_of, region_table
from judge_calibration.metrics.remedies import remedy_table
from judge_calibration.metrics.temperature import temperature_table
from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.reporting import (
    ComparisonOptions,
    FormatOptions,
    IntervalOptions,
    RegionOptions,
    ReportingOptions,
)

SMALL = ReportingOptions(intervals=IntervalOptions(resamples=300), formats=FormatOptions(permutations=100))


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def whole(table, metric):
    return table[(table["slice_by"] == "all") & (table["metric"] == metric)].iloc[0]


class TestPairedDifferences:
    def test_worked_difference_on_common_pairs(self, tables):
        # One judges p1 to p3, two judges p2 to p4: on p2 and p3 A is 3/4 against 2/4.
        one = tables.verdicts({"p1": ("B", "B"), "p2": ("A", "A"), "p3": ("A", "B")}, protocol="one")
        two = tables.verdicts({"p2": ("A", "A"), "p3": ("B", "B"), "p4": ("B", "B")}, protocol="two")
        pairs = tables.pairs(dict.fromkeys(["p1", "p2", "p3", "p4"], "A"))
        table = paired_differences(pd.concat([one, two], ignore_index=True), pairs, SMALL)
        row = whole(table, "A")
        assert (row["value_1"], row["value_2"], row["difference"], row["n_pairs"]) == (3 / 4, 2 / 4, 1 / 4, 2)
        assert row["interval_reason"] == "fewer_than_10_clusters"
        assert np.isnan(row["p_value"])

    def test_interval_is_that_of_shared_resamples(self, tables):
        verdicts, pairs = tables.simulate(protocols=("one", "two"), labels=("A", "B"), failing=0.0)
        row = whole(paired_differences(verdicts, pairs, SMALL), "A")
        right = verdicts.assign(
            right=verdicts["verdict"].to_numpy()
            == verdicts["pair_id"].map(pairs.set_index("pair_id")["reference_label"]).to_numpy()
        )
        right = right[right["repetition"] == 0]
        by_pair = right.pivot_table("right", "pair_id", "protocol", aggfunc="sum").loc[pairs["pair_id"]]
        codes = cluster_codes(pairs["base_id"])
        sums = cluster_sums(np.c_[by_pair.to_numpy(float), np.full(len(pairs), 2.0)], codes.codes, codes.size)
        one, two, n = Resamples(codes.size, 300, 7).totals(sums)
        assert (row["low"], row["high"]) == tuple(np.quantile(one / n - two / n, [0.025, 0.975]))

    def test_equal_cells_have_no_interval_of_width_zero(self, tables):
        verdicts, pairs = tables.simulate()
        twin = verdicts.assign(protocol="twin", instrument_id="twin")
        row = whole(paired_differences(pd.concat([verdicts, twin], ignore_index=True), pairs, SMALL), "C")
        assert row["difference"] == 0.0
        assert (row["method"], row["interval_reason"]) == ("none", "no_variation")

    def test_families_and_simultaneous_intervals(self, tables):
        verdicts, pairs = tables.simulate(n_pairs=120, n_clusters=40, protocols=("one", "two", "three"))
        table = paired_differences(verdicts, pairs, SMALL)
        assert list(table.columns) == list(DIFFERENCE_COLUMNS)
        assert set(table.loc[table["slice_by"] == "all", "adjustment"]) == {"holm"}
        assert set(table.loc[table["slice_by"] != "all", "adjustment"]) == {"benjamini_hochberg"}
        given = table[table["method"] == "percentile"]
        assert (given["adjusted_p"] >= given["p_value"] - 1e-12).all()
        one_by_one = given["jackknife_se"] * 1.9
        assert (given["simultaneous_high"] - given["difference"] >= one_by_one).all()

    def test_judges_are_compared_only_when_asked(self, tables):
        verdicts, pairs = tables.simulate()
        both = pd.concat([verdicts, verdicts.assign(judge_id="other")], ignore_index=True)
        assert paired_differences(both, pairs, SMALL).empty
        across = SMALL.model_copy(update={"comparisons": ComparisonOptions(within=("protocol",))})
        assert not paired_differences(both, pairs, across).empty

    def test_large_designs_are_compared_on_the_whole_only(self, tables):
        verdicts, pairs = tables.simulate(protocols=("one", "two", "three"))
        few = SMALL.model_copy(update={"comparisons": ComparisonOptions(sliced_up_to=2)})
        assert set(paired_differences(verdicts, pairs, few)["slice_by"]) == {"all"}


class TestFormatDispersion:
    def test_equal_formats_spread_no_further_than_their_null(self, tables):
        formats = ("direct", "json_cot", "xml_cot")
        verdicts, pairs = tables.simulate(n_pairs=100, n_clusters=50, protocols=formats, seed=4)
        row = format_dispersion(verdicts, pairs, SMALL).iloc[0]
        assert row["n_formats"] == 3
        assert row["dispersion"] == pytest.approx(row["maximum"] - row["minimum"])
        assert row["null_mean"] > 0  # a range is biased upwards
        assert row["p_value"] > 0.01

    def test_a_format_that_breaks_the_judge_stands_out(self, tables):
        good, pairs = tables.simulate(n_pairs=100, n_clusters=50, protocols=("direct",))
        bad = good.assign(protocol="json_cot", instrument_id="json_cot")
        bad.loc[bad["outcome"] == "valid", "verdict"] = np.where(
            bad.loc[bad["outcome"] == "valid", "order"] == "AB", "A", "B"
        )
        row = format_dispersion(pd.concat([good, bad], ignore_index=True), pairs, SMALL).iloc[0]
        assert (row["minimum_format"], row["maximum_format"]) == ("json_cot", "direct")
        assert row["p_value"] == pytest.approx(1 / 101)
        assert row["dispersion"] > row["null_high"]

    def test_one_repetition_refuses_it_with_the_reason(self, tables):
        verdicts, pairs = tables.simulate(repetitions=1, protocols=("direct", "json_cot"))
        row = format_dispersion(verdicts, pairs, SMALL).iloc[0]
        assert row["reason"] == "one_repetition"
        assert np.isnan(row["dispersion"])

    def test_formats_without_common_pairs(self, tables):
        one = tables.verdicts({"p1": ("AA", "AA")}, protocol="direct")
        two = tables.verdicts({"p2": ("AA", "AA")}, protocol="json_cot")
        pairs = tables.pairs({"p1": "A", "p2": "A"})
        row = format_dispersion(pd.concat([one, two], ignore_index=True), pairs, SMALL).iloc[0]
        assert row["reason"] == "no_common_pairs"

    def test_one_format_has_no_row(self, tables):
        assert format_dispersion(*tables.simulate(), SMALL).empty


class TestTemperature:
    def test_change_from_the_lowest(self, tables):
        cold, pairs = tables.simulate(n_pairs=80, n_clusters=40, failing=0.0)
        warm = tables.simulate(n_pairs=80, n_clusters=40, failing=0.0, seed=0)[0].assign(temperature=1.0)
        warm.loc[warm["repetition"] == 2, "verdict"] = "TIE"  # nothing is reproduced any more
        verdicts = pd.concat([cold, warm], ignore_index=True)
        table = temperature_table(
            trust_table(verdicts, pairs, SMALL), paired_differences(verdicts, pairs, SMALL)
        )
        rows = table[table["statistic"] == "C"].set_index("temperature")
        assert rows.loc[0.0, "reason"] == "lowest_temperature"
        assert rows.loc[1.0, "change"] == pytest.approx(rows.loc[1.0, "value"] - rows.loc[0.0, "value"])
        assert rows.loc[1.0, "change_low"] < rows.loc[1.0, "change"] < rows.loc[1.0, "change_high"] < 0
        right = table[table["statistic"] == "PR"].set_index("temperature")
        assert right.loc[1.0, "change"] == 0.0  # first reads did not move

    def test_one_temperature_has_no_row(self, tables):
        verdicts, pairs = tables.simulate()
        found = temperature_table(
            trust_table(verdicts, pairs, SMALL), paired_differences(verdicts, pairs, SMALL)
        )
        assert found.empty


class TestRegions:
    def test_the_four_regions(self):
        options = RegionOptions(min_consistency=0.9, max_flip_rate=0.1)
        assert region_of(0.9, 0.1, options) == "trustworthy"
        assert region_of(0.89, 0.1, options) == "noisy_but_fair"
        assert region_of(0.9, 0.11, options) == "confidently_biased"
        assert region_of(0.89, 0.11, options) == "chaos"
        assert region_of(float("nan"), 0.1, options) == ""

    def test_undefined_c_has_no_region(self, tables):
        row = region_table(trust_table(*tables.simulate(repetitions=1), SMALL)).iloc[0]
        assert pd.isna(row["region"])
        assert (row["reason"], row["sure"]) == ("C_or_phi_undefined", False)


class TestParadigms:
    def test_equal_calls(self, tables):
        verdicts, pairs = tables.simulate(protocols=("direct", "flask"), repetitions=4)
        trust, remedies = trust_table(verdicts, pairs, SMALL), remedy_table(verdicts, pairs, SMALL)
        table = paradigm_table(trust, remedies).set_index("protocol")
        assert table.loc["direct", "votes_at_equal_calls"] == 3  # four calls buy an odd vote of three
        assert table.loc["flask", "votes_at_equal_calls"] == 1
        assert table["equal_calls"].tolist() == [4, 4]
        assert table.loc["flask", "T_product_per_call"] == pytest.approx(table.loc["flask", "T_product"] / 4)
        vote = remedies[(remedies["remedy"] == "vote") & (remedies["votes"] == 3)]
        vote = vote[(vote["protocol"] == "direct") & (vote["statistic"] == "trustworthy")]
        assert table.loc["direct", "trustworthy_at_equal_calls"] == vote["predicted"].iloc[0]

    def test_spread_of_a_judge(self, tables):
        spread = trust_spread(trust_table(*tables.simulate(protocols=("direct", "geval")), SMALL)).iloc[0]
        assert spread["n_cells"] == 2
        assert spread["minimum"] <= spread["mean"] <= spread["maximum"]
