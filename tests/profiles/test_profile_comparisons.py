import numpy as np
import pytest

from judge_calibration.profiles.camps import camps
from judge_calibration.profiles.correlation import (
    half_sample_reliability,
    identical_preference_null,
    profile_correlations,
    spearman_brown,
)
from judge_calibration.profiles.direction_kappa import direction_kappa, three_category_kappa
from judge_calibration.profiles.item_tables import item_tables
from judge_calibration.profiles.many_fits import fit_many
from judge_calibration.profiles.matched_items import matched_gap
from judge_calibration.profiles.pair_counts import count_pairs
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.storage import pack, unpack, unpack_stable
from judge_calibration.profiles.two_way_interval import Term, _percentiles, item_resamples, two_way_interval
from judge_calibration.profiles.weights import fit_weights


def gap_of(stable, verdicts, judges):
    return matched_gap(count_pairs(pack(stable, stable), verdicts), judges)


class TestStorage:
    def test_all_nine_codes_come_back(self):
        first, second = np.repeat([-1, 0, 1], 3).astype(np.int8), np.tile([-1, 0, 1], 3).astype(np.int8)
        codes = pack(first, second)
        assert codes.tolist() == list(range(9))
        np.testing.assert_array_equal(np.stack(unpack(codes)), np.stack([first, second]))
        np.testing.assert_array_equal(unpack_stable(codes), np.where(first == second, first, 0))


class TestCamps:
    def test_within_and_across_are_pooled_over_judge_pairs(self):
        # two judges for A agree (1/1), two for B do not (0/1): within 1/2; across: 2 of 4
        stable = np.array([[1], [1], [1], [-1]], dtype=np.int8)
        result = camps(stable, np.array([1, 1, -1, -1], dtype=np.int8))
        assert (result.within, result.across, result.undefined) == (0.5, 0.5, None)

    def test_a_camp_under_two_is_said(self):
        result = camps(np.ones((2, 3), dtype=np.int8), np.array([1, -1], dtype=np.int8))
        assert result.undefined == "camp_under_two"
        assert np.isnan(result.within)


class TestKappa:
    def test_one_category_is_undefined_with_raw_agreement(self):
        ones = np.ones(5, dtype=np.int8)
        result = direction_kappa(ones, ones)
        assert np.isnan(result.kappa)
        assert (result.agreement, result.cells, result.undefined) == (1.0, 5, "one_category")

    def test_no_joint_cell_is_undefined(self):
        assert direction_kappa(np.array([1, 0]), np.array([0, 1])).undefined == "no_cells"

    def test_marginals_are_a_choice(self):
        first = np.array([1, 1, -1, -1, 1, 1])
        second = np.array([1, -1, -1, -1, 0, 0])
        # joint: up .5 and .25, chance .5, agreement .75: kappa .5; own: up 4/6 and 1/4, chance .41667: .5714
        assert direction_kappa(first, second).kappa == pytest.approx(0.5)
        assert direction_kappa(first, second, "own").kappa == pytest.approx(4 / 7)

    def test_three_categories_equal_scikit_learn(self):
        from sklearn.metrics import cohen_kappa_score, confusion_matrix

        rng = np.random.default_rng(1)
        a, b = rng.integers(-1, 2, 300), rng.integers(-1, 2, 300)
        assert three_category_kappa(confusion_matrix(a, b)).kappa == pytest.approx(cohen_kappa_score(a, b))


class TestMatchedItems:
    def test_item_average_and_cell_pool_differ(self):
        # item 1: 4 joint cells, 4 agree; item 2: 1 joint cell, 0 agree: pooled 4/5, averaged 1/2
        stable = np.array([[[1, 1, 1, 1], [1, 0, 0, 0]], [[1, 1, 1, 1], [-1, 0, 0, 0]]], dtype=np.int8)
        table = gap_of(stable, np.array([[1, 1], [1, -1]], dtype=np.int8), ("a", "b"))
        row = table.iloc[0]
        assert (row["cell_pooled"], row["item_averaged"], row["preference"]) == (0.8, 0.5, 0.5)
        assert row["gap"] == pytest.approx(0.3)

    def test_no_matched_item_is_undefined(self):
        table = gap_of(np.zeros((2, 1, 1), dtype=np.int8), np.ones((2, 1), dtype=np.int8), ("a", "b"))
        assert table["undefined"].tolist() == ["no_matched_item"]
        assert np.isnan(table["gap"].iloc[0])


class TestProfileCorrelation:
    def test_identical_preferences_have_a_ratio_near_one_and_opposite_ones_do_not(self):
        options = {"n_judges": 4, "n_items": 3_000, "n_attributes": 15, "resolution": (0.5, 0.9)}
        same = simulate_panel(3, preferences="identical", **options)
        ratio = identical_preference_null(same.stable, same.verdicts, seed=1, repetitions=5).ratio
        assert abs(ratio - 1) < 0.1
        apart = simulate_panel(3, preferences="opposite", **options)
        result = identical_preference_null(apart.stable, apart.verdicts, seed=1, repetitions=5)
        assert result.observed < 0
        assert not result.ratio > 0.5

    def test_constant_and_undefined_profiles_have_reasons(self):
        profiles = np.array([[1.0, 1.0], [1.0, 2.0], [np.nan, np.nan]])
        reasons = profile_correlations(profiles, ("a", "b", "c"))["undefined"].tolist()
        assert reasons == ["constant_profile", "undefined_profile", "undefined_profile"]

    def test_spearman_brown_worked_values(self):
        assert spearman_brown(0.5).corrected == pytest.approx(2 / 3)
        assert spearman_brown(-0.2).flag == "negative_half_correlation"
        assert np.isnan(spearman_brown(-1.0).corrected)

    def test_reliability_of_a_strong_profile_is_high(self):
        panel = simulate_panel(4, 1, 4_000, 8, resolution=(0.9, 0.9))
        table = half_sample_reliability(panel.stable[0], panel.verdicts[0], seed=2, splits=3)
        assert (table.loc[table["kind"] == "weight", "corrected"] > 0.9).all()
        assert set(table["kind"]) == {"weight", "perception"}

    def test_many_fits_at_once_equal_single_fits(self):
        panel = simulate_panel(9, 1, 300, 12, strength=0.5)
        stable, rng = panel.stable[0], np.random.default_rng(0)
        y = np.where(rng.random((300, 5)) < 0.5, 1, -1)
        rows = rng.random((300, 5)) < 0.6
        found = fit_many(stable.astype(float), y, np.zeros(12), rows=rows)
        for k in range(5):
            alone = fit_weights(stable[rows[:, k]], y[rows[:, k], k]).coefficients
            np.testing.assert_allclose(found[k], alone, atol=1e-4)

    def test_more_attributes_than_items_still_has_an_answer(self):
        panel = simulate_panel(9, 1, 8, 20)
        y = np.where(np.arange(8) % 2 == 0, 1, -1)[:, None]
        found = fit_many(panel.stable[0].astype(float), y, np.zeros(20))
        np.testing.assert_allclose(found[0], fit_weights(panel.stable[0], y[:, 0]).coefficients, atol=1e-4)

    def test_a_judge_without_a_profile_is_left_out_of_the_null_not_fatal(self):
        panel = simulate_panel(3, 3, 400, 6, preferences="identical")
        verdicts = panel.verdicts.copy()
        verdicts[1] = 1
        result = identical_preference_null(panel.stable, verdicts, seed=1, repetitions=3)
        assert (result.n_judges, result.undefined) == (2, None)
        verdicts[2] = 0
        assert identical_preference_null(panel.stable, verdicts, 1, 3).undefined == "fewer_than_two_profiles"


class TestTwoWayInterval:
    def test_holds_the_value_and_is_wider_than_by_item(self):
        panel = simulate_panel(6, 8, 120, 20)
        tables = next(item_tables(pack(panel.first, panel.second)))
        term = Term(tables.agree.astype(float), tables.joint.astype(float))
        result = two_way_interval([term], 8, item_resamples(120, 400, 3), 3)[0]
        assert result.two_way[0] <= result.value <= result.two_way[1]
        width = [high - low for low, high in (result.by_item, result.two_way)]
        assert width[1] > width[0]
        assert result.undefined is None

    def test_ends_are_those_of_a_mean_of_few_units(self):
        """5 units: normal tail at sqrt(5/4) x 2.776 = 3.104 standard errors, .00095; 500: nearly .025."""
        values = np.linspace(0.0, 1.0, 100_001)
        assert _percentiles(values, 0.95, 5)[0] == pytest.approx(0.00095, abs=2e-5)
        assert _percentiles(values, 0.95, 500)[0] == pytest.approx(0.0246, abs=1e-4)

    def test_few_judges_get_no_interval_by_judge(self):
        term = Term(np.full((1, 20), 2.0), np.full((1, 20), 3.0))
        result = two_way_interval([term], 2, item_resamples(20, 50, 0), 0)[0]
        assert np.isnan(result.two_way).all()
        assert not np.isnan(result.by_item).any()
        assert result.undefined == "fewer_than_4_judges"

    def test_few_items_get_no_interval_by_item(self):
        term = Term(np.full((6, 9), 2.0), np.full((6, 9), 3.0))
        result = two_way_interval([term], 4, item_resamples(9, 50, 0), 0)[0]
        assert np.isnan(result.by_item).all()
        assert result.undefined == "fewer_than_10_clusters"

    def test_a_smaller_panel_is_the_interval_of_its_judges_alone(self):
        panel = simulate_panel(8, 6, 60, 10)
        weights = item_resamples(60, 100, 1)
        whole = next(item_tables(pack(panel.first, panel.second)))
        part = next(item_tables(pack(panel.first, panel.second)[:5]))
        keep = np.arange(6) < 5
        terms = [Term(t.agree.astype(float), t.joint.astype(float)) for t in (whole, part)]
        both = two_way_interval(terms[:1], 6, weights, 2, [np.ones(6, dtype=bool), keep])
        assert both[1] == two_way_interval(terms[1:], 5, weights, 2)[0]
