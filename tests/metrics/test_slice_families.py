"""Intervals that hold together for all slices of one slicing."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.max_t import critical_values, max_t_intervals, raise_largest
from judge_calibration.metrics.planted_judges import PlantedJudge, plant
from judge_calibration.metrics.trust_table import trust_intervals
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions


@pytest.fixture(scope="module")
def long() -> pd.DataFrame:
    data = plant(
        (PlantedJudge("j", 0.9, 0.3, 0.7),),
        0,
        clusters=60,
        pairs_per_cluster=2,
        repetitions=2,
        correlation=0.2,
    )
    pairs = data.pairs.assign(domain=[f"d{i % 3}" for i in range(len(data.pairs))], language="en")
    options = ReportingOptions(
        trust=TrustOptions(slices=("domain", "language"), pool_sources=False),
        intervals=IntervalOptions(resamples=500),
    )
    return trust_intervals(data.verdicts, pairs, options)


def test_one_multiple_of_the_standard_errors_for_a_family(long):
    rows = long[
        (long["slice_by"] == "domain") & (long["method"] == "percentile") & (long["jackknife_se"] > 0)
    ]
    half = (rows["simultaneous_high"] - rows["simultaneous_low"]) / 2
    multiple = half / rows["jackknife_se"]
    for _, family in multiple.groupby([rows["source"], rows["view"], rows["metric"]]):
        assert family.max() == pytest.approx(family.min())
    # Three slices: above one statistic's 1.96 and below Bonferroni's 2.39, on average.
    whole_families = rows[rows["metric"].isin(["phi", "A"]) & (rows["view"] == "strict")]
    assert 2.0 < multiple[whole_families.index].mean() < 2.8


def test_the_whole_and_a_single_slice_are_no_family(long):
    rest = long[long["slice_by"].isin(["all", "language"])]
    assert rest["simultaneous_low"].isna().all()
    assert rest["simultaneous_high"].isna().all()


def test_no_simultaneous_interval_where_there_is_no_percentile_interval(long):
    none = long[long["method"] != "percentile"]
    assert none["simultaneous_low"].isna().all()


def test_one_after_the_other_is_as_all_at_once():
    rng = np.random.default_rng(1)
    value, drawn, se = rng.normal(size=4), rng.normal(size=(4, 300)), rng.random(4) + 0.5
    drawn[2, :20] = np.nan
    largest = np.zeros((1, 300))
    for k in range(4):
        raise_largest(largest, np.array([0]), drawn[[k]], value[[k]], se[[k]])
    assert critical_values(largest, 0.9)[0] == max_t_intervals(value, drawn, se, 0.9).critical


def test_a_family_without_a_member_has_no_multiple():
    assert np.isnan(critical_values(np.zeros((2, 10)), 0.95)).all()
    assert np.isnan(critical_values(np.zeros((1, 0)), 0.95)).all()
