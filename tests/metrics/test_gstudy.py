"""The G-study from a verdicts table: worked values, agreement of solvers, and what cannot be estimated."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.errors import TableError, VarianceModelError
from judge_calibration.metrics.gstudy import COMPONENT_COLUMNS, gstudy
from judge_calibration.metrics.reml_balanced import (
    check_model,
    fit_balanced,
    pivotal_draws,
    strata_of,
    subsets,
)
from judge_calibration.metrics.reml_general import CellTable, cell_table, fit_general
from judge_calibration.options.variance import VarianceOptions

MAIN_RANDOM = VarianceOptions(models=("main",), orders=("random",), draws=500)
FAST = VarianceOptions(draws=500)


def verdicts_of(direction: np.ndarray) -> pd.DataFrame:
    """Return a verdicts table of an array (pair, judge, format, order, repetition) of A (1) and B (0)."""
    index = np.indices(direction.shape).reshape(5, -1)
    return pd.DataFrame(
        {
            "pair_id": [f"p{i}" for i in index[0]],
            "judge_id": [f"j{i}" for i in index[1]],
            "protocol": [f"f{i}" for i in index[2]],
            "order": np.array(["AB", "BA"])[index[3]],
            "repetition": index[4],
            "temperature": 0.0,
            "verdict": np.where(direction.ravel() > 0, "A", "B"),
        }
    )


def planted(seed: int, shape=(20, 4, 3, 2, 2), first_bias: float = 0.0) -> np.ndarray:
    """Draw directions with a pair and a pair:judge effect; judges differ in what order does to them."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(shape[0], 1, 1, 1, 1)) + 0.5 * rng.normal(size=(shape[0], shape[1], 1, 1, 1))
    bias = np.linspace(-1, 1, shape[1])[None, :, None, None, None]
    sign = np.array([1.0, -1.0])[None, None, None, : shape[3], None]
    return (latent + first_bias * bias * sign + 0.5 * rng.normal(size=shape) > 0).astype(float)


def component(result, name, **where):
    rows = result.components.query("component == @name")
    for column, value in where.items():
        rows = rows[rows[column] == value]
    assert len(rows) == 1
    return rows.iloc[0]


class TestStrata:
    def test_worked_two_by_two(self):
        # Cells 1, 2 / 3, 6 with 2 repetitions. Grand mean 3; row means 1.5, 4.5; column means 2, 4.
        # SS_row = 4 (1.5^2 + 1.5^2) = 18; SS_column = 4 (1 + 1) = 8;
        # interaction residuals 1 - 1.5 - 2 + 3 = .5 in each cell: 8 x .25 = 2.
        strata = strata_of([[1.0, 2.0], [3.0, 6.0]], ["row", "column"], 2, 1.0)
        assert strata.squares == {("row",): 18.0, ("column",): 8.0, ("row", "column"): 2.0}
        assert strata.degrees == {("row",): 1, ("column",): 1, ("row", "column"): 1}
        assert (strata.within_degrees, strata.within_squares, strata.observations) == (4, 1.0, 8)
        # Components: e = 1/4; rc = (2 - 1/4)/2 = .875; c = (8 - 2)/4 = 1.5; r = (18 - 2)/4 = 4.
        fit = fit_balanced(strata, subsets(["row", "column"]))
        assert fit.components == pytest.approx(
            {"row": 4.0, "column": 1.5, "row:column": 0.875, "residual": 0.25}
        )
        assert fit.solver == "anova"

    def test_negative_anova_solution_goes_to_the_boundary(self):
        # SS_row = 0: sigma^2_row would be negative; REML pools row with the residual.
        # Residual: (0 + 4 + 4)/(1 + 2) for cells 1, -1 / -1, 1 with one repetition: SS = 4, df 1 + 1 + 1.
        fit = fit_balanced(strata_of([[1.0, -1.0], [-1.0, 1.0]], ["row", "column"], 1, 0.0), [("row",)])
        assert fit.components == pytest.approx({"row": 0.0, "residual": 4 / 3})
        assert fit.boundary == ("row",)
        assert fit.gradient["row"] > 0

    def test_model_without_a_margin_is_refused(self):
        with pytest.raises(VarianceModelError, match="pair:judge"):
            check_model(["pair", "judge"], [("pair",), ("pair", "judge")], [])

    def test_no_residual_degree_of_freedom_is_refused(self):
        strata = strata_of([[1.0, 2.0], [3.0, 6.0]], ["row", "column"], 1, 0.0)
        with pytest.raises(VarianceModelError, match="residual"):
            fit_balanced(strata, subsets(["row", "column"]))

    def test_pivotal_interval_covers(self):
        # One-way design, 12 pairs x 4, sigma^2_pair = 1, sigma^2 = 1: 300 data sets at level .9;
        # binomial 99.9 % band of 300 at .9 is 252 to 286.
        rng = np.random.default_rng(5)
        covered = 0
        for _ in range(300):
            y = rng.normal(size=(12, 1)) + rng.normal(size=(12, 4))
            strata = strata_of(y, ["pair", "order"], 1, 0.0)
            low, high = np.quantile(pivotal_draws(strata, [("pair",)], [], 400, rng)[:, 0], [0.05, 0.95])
            covered += low <= 1 <= high
        assert 252 <= covered <= 286


class TestSolversAgree:
    @pytest.mark.parametrize("seed", range(4))
    def test_on_balanced_data(self, seed):
        y = planted(seed, first_bias=0.5)
        means = y.mean(axis=-1)
        within = float(((y - means[..., None]) ** 2).sum())
        facets = ("pair", "judge", "format", "order")
        random = subsets(facets)
        balanced = fit_balanced(strata_of(means, facets, 2, within), random)
        table = CellTable(facets, np.full(means.shape, 2), means, within)
        general = fit_general(table, random)
        assert general.components == pytest.approx(balanced.components, rel=1e-6, abs=1e-9)
        assert general.criterion == pytest.approx(balanced.criterion, rel=1e-10)

    def test_fixed_effect_is_the_half_difference_of_orders(self):
        y = planted(1)
        table = CellTable(
            ("pair", "judge", "format", "order"),
            np.full(y.shape[:4], 2),
            y.mean(-1),
            float(y.var(-1).sum() * 2),
        )
        fit = fit_general(table, [("pair",)], [("order",)])
        first, second = y.mean(axis=(0, 1, 2, 4))
        assert fit.fixed_effects == pytest.approx([y.mean(), (first - second) / 2])


class TestGStudy:
    def test_columns_and_shares(self):
        result = gstudy(verdicts_of(planted(0)), options=FAST)
        assert list(result.components.columns) == COMPONENT_COLUMNS
        total = result.components.groupby(["model", "order_as"])["share"].sum()
        assert total.to_numpy() == pytest.approx(1.0)
        defined = result.components[result.components["undefined"].isna()]
        assert (defined["variance_low"] <= defined["variance"] + 1e-12).all()
        assert (defined["share_high"] >= defined["share"] - 0.05).all()
        assert "linear-probability" in result.note

    def test_opposite_position_biases_hide_in_the_residual_of_the_main_model(self):
        result = gstudy(verdicts_of(planted(3, (60, 4, 2, 2, 2), first_bias=1.5)), options=FAST)
        hidden = component(result, "order", model="main", order_as="random")
        shown = component(result, "judge:order", model="extended", order_as="random")
        assert hidden["share"] < 0.02
        assert shown["share"] > 0.1
        residual = component(result, "residual", model="main", order_as="random")["share"]
        assert residual > component(result, "residual", model="extended", order_as="random")["share"] + 0.1

    def test_one_degree_of_freedom_gives_a_wide_interval(self):
        y = planted(2, (40, 3, 2, 2, 2)).copy()
        y[:, :, :, 0] = np.maximum(y[:, :, :, 0], planted(9, (40, 3, 2, 1, 2))[:, :, :, 0])
        order = component(gstudy(verdicts_of(y), options=MAIN_RANDOM), "order")
        assert order["variance_high"] > 20 * order["variance"]

    def test_every_scored_row_is_used_when_some_are_missing(self):
        frame = verdicts_of(planted(4))
        frame["verdict"] = frame["verdict"].astype(object)
        frame.loc[frame.index[::7], "verdict"] = None
        result = gstudy(frame, options=MAIN_RANDOM)
        pair = component(result, "pair")
        assert pair["solver"] == "blocks"
        assert not pair["balanced"]
        assert pair["n_verdicts"] == frame["verdict"].notna().sum()
        assert pair["n_missing"] == frame["verdict"].isna().sum()
        assert result.missing["scored"].sum() == pair["n_verdicts"]
        assert result.missing["share_missing"].between(0.1, 0.2).all()

    def test_a_call_that_is_not_in_the_table_counts_as_missing(self):
        frame = verdicts_of(planted(4)).iloc[1:]
        result = gstudy(frame, options=MAIN_RANDOM)
        assert component(result, "pair")["n_missing"] == 1
        assert result.missing.loc[
            result.missing["share_missing"] > 0, ["judge_id", "protocol"]
        ].values.tolist() == [["j0", "f0"]]

    def test_ties_lie_half_way_or_are_missing(self):
        frame = verdicts_of(planted(4))
        frame.loc[frame.index[::5], "verdict"] = "TIE"
        half = component(gstudy(frame, options=MAIN_RANDOM), "pair")
        left_out = component(gstudy(frame, options=MAIN_RANDOM.model_copy(update={"tie": "missing"})), "pair")
        assert half["balanced"]
        assert left_out["n_missing"] == (frame["verdict"] == "TIE").sum()

    def test_abstentions_are_missing(self):
        frame = verdicts_of(planted(4))
        frame.loc[frame.index[:3], "verdict"] = "ABSTAIN"
        assert component(gstudy(frame, options=MAIN_RANDOM), "pair")["n_missing"] == 3

    def test_naming_the_candidates_the_other_way_round_changes_nothing(self):
        frame = verdicts_of(planted(5, first_bias=0.4))
        swapped = frame.assign(verdict=frame["verdict"].map({"A": "B", "B": "A"}))
        columns = ["variance", "share", "criterion"]
        assert gstudy(frame, options=FAST).components[columns].to_numpy(float) == pytest.approx(
            gstudy(swapped, options=FAST).components[columns].to_numpy(float), nan_ok=True
        )

    def test_sources_and_temperatures_apart_and_identity_pairs_left_out(self):
        frame = verdicts_of(planted(6))
        both = pd.concat([frame, frame.assign(temperature=1.0)])
        ids = frame["pair_id"].unique()
        pairs = pd.DataFrame(
            {
                "pair_id": ids,
                "source": np.where(np.arange(len(ids)) < 10, "one", "two"),
                "manipulation": ["identity", *["style"] * (len(ids) - 1)],
            }
        )
        result = gstudy(both, pairs, MAIN_RANDOM)
        groups = result.components[["source", "temperature"]].drop_duplicates()
        assert sorted(map(tuple, groups.to_numpy())) == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]
        one = result.components.query("source == 'one' and component == 'pair' and temperature == 0")
        assert one["n_levels"].tolist() == [9]

    def test_two_constraints_are_two_formats(self):
        frame = verdicts_of(planted(6, (10, 2, 1, 2, 1)))
        both = pd.concat([frame.assign(constraint="none"), frame.assign(constraint="grammar")])
        result = gstudy(both, options=MAIN_RANDOM)
        assert set(result.missing["protocol"]) == {"f0|none", "f0|grammar"}


class TestUndefined:
    def test_one_judge_one_format(self):
        result = gstudy(verdicts_of(planted(0, (20, 1, 1, 2, 2))), options=MAIN_RANDOM)
        reasons = result.components.set_index("component")["undefined"].dropna()
        assert set(reasons) == {"one_level"}
        assert set(reasons.index) == {"judge", "format", "pair:judge", "pair:format"}
        assert component(result, "pair")["variance"] > 0

    def test_one_order(self):
        result = gstudy(verdicts_of(planted(0, (20, 3, 2, 1, 2))), options=FAST)
        assert set(result.components.query("component == 'order'")["undefined"]) == {"one_level"}
        assert component(result, "pair", model="main", order_as="fixed")["variance"] > 0

    def test_one_repetition_leaves_the_highest_interaction_out(self):
        result = gstudy(verdicts_of(planted(0, (20, 3, 2, 2, 1))), options=FAST)
        assert "pair:judge:format:order" not in set(result.components["component"])
        assert result.components["undefined"].isna().all()

    def test_all_verdicts_equal(self):
        result = gstudy(verdicts_of(np.ones((5, 2, 2, 2, 2))), options=MAIN_RANDOM)
        assert set(result.components["undefined"]) == {"no_variance"}
        assert result.components["variance"].isna().all()

    def test_one_pair(self):
        result = gstudy(verdicts_of(planted(0, (1, 3, 2, 2, 2))), options=MAIN_RANDOM)
        reasons = result.components.set_index("component")["undefined"]
        assert reasons["pair"] == "one_level"
        assert reasons["judge"] == "fewer_than_two_pairs"

    def test_no_valid_verdict(self):
        frame = verdicts_of(planted(0)).assign(verdict=None)
        result = gstudy(frame, options=MAIN_RANDOM)
        assert result.components["variance"].isna().all()
        assert result.components["undefined"].notna().all()
        assert (result.missing["share_missing"] == 1).all()

    def test_judge_without_a_valid_verdict_is_reported_missing(self):
        frame = verdicts_of(planted(0))
        frame["verdict"] = frame["verdict"].astype(object)
        frame.loc[frame["judge_id"] == "j0", "verdict"] = None
        result = gstudy(frame, options=MAIN_RANDOM)
        assert component(result, "judge")["n_levels"] == 3
        assert (result.missing.query("judge_id == 'j0'")["share_missing"] == 1).all()

    def test_deterministic_judges_have_no_residual(self):
        y = np.repeat(planted(0, (20, 3, 2, 2, 1)), 2, axis=-1)
        result = gstudy(
            verdicts_of(y), options=VarianceOptions(models=("extended",), orders=("random",), draws=200)
        )
        residual = component(result, "residual")
        assert residual["variance"] == 0 or residual["undefined"] == "not_estimable"

    def test_empty_table(self):
        result = gstudy(verdicts_of(planted(0)).iloc[:0], options=FAST)
        assert result.components.empty
        assert result.missing.empty

    def test_duplicated_judgment_is_refused(self):
        frame = verdicts_of(planted(0))
        with pytest.raises(TableError, match="two rows"):
            gstudy(pd.concat([frame, frame.iloc[[0]]]))

    def test_unreadable_values_are_refused_together(self):
        frame = verdicts_of(planted(0))
        frame.loc[0, "verdict"] = "C"
        frame.loc[1, "order"] = "first"
        frame["protocol"] = frame["protocol"].where(frame.index != 2)
        with pytest.raises(TableError) as caught:
            gstudy(frame)
        assert [problem.found for problem in caught.value.problems] == ["C", "first", "1 nulls"]

    def test_missing_column_is_named(self):
        with pytest.raises(TableError, match="judge_id"):
            gstudy(verdicts_of(planted(0)).drop(columns="judge_id"))


def test_cell_table_counts_every_row():
    table = cell_table([[0, 0, 1], [1, 1, 0]], [2, 2], [1.0, 0.0, 1.0], ["pair", "order"])
    assert table.counts.tolist() == [[0, 2], [1, 0]]
    assert table.means[0, 1] == 0.5
