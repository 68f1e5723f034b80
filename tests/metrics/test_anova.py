"""The analysis of variance of T, and the paper's claims computed from its printed tables."""

import importlib.util
import sys

import numpy as np
import pandas as pd
import pytest

from judge_calibration.errors import TableError
from judge_calibration.metrics.anova import ANOVA_COLUMNS, anova, anova_table
from judge_calibration.options.variance import VarianceOptions


def three_way(seed: int = 0, shape=(3, 2, 4)) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=shape)
    index = np.indices(shape).reshape(3, -1)
    names = ["judge", "format", "dataset"]
    frame = pd.DataFrame({name: [f"{name}{i}" for i in index[k]] for k, name in enumerate(names)})
    return frame.assign(T=values.ravel())


class TestAnova:
    def test_worked_omega_squared(self):
        # Cells 1, 3 / 2, 8 (rows judges, columns formats): grand mean 3.5. SS_judge = 2 x 2 x 1.5^2 = 9;
        # SS_format = 2 x 2 x 2^2 = 16; residual 1 - 2 - 1.5 + 3.5 = 1 in size: SS 4; total 29, df_res 1.
        # omega^2_judge = (9 - 1 x 4) / (29 + 4) = 5/33; omega^2_format = 12/33; F = 9/4 and 16/4.
        frame = pd.DataFrame({"judge": list("xxyy"), "format": list("uvuv"), "T": [1.0, 3, 2, 8]})
        result = anova(frame, ["judge", "format"], "T").set_index("term")
        assert result.loc[["judge", "format"], "omega2"].tolist() == pytest.approx([5 / 33, 12 / 33])
        assert result.loc[["judge", "format"], "F"].tolist() == pytest.approx([2.25, 4.0])
        assert result.loc["total", "sum_of_squares"] == pytest.approx(29)
        # F(1, 1) has the survival function 1 - (2/pi) atan(sqrt F).
        assert result.loc["format", "p_value"] == pytest.approx(1 - 2 / np.pi * np.arctan(2))

    def test_agrees_with_statsmodels(self):
        from statsmodels.formula.api import ols
        from statsmodels.stats.anova import anova_lm

        frame = three_way()
        ours = anova(frame, ["judge", "format", "dataset"], "T").set_index("term")
        model = ols("T ~ (C(judge, Sum) + C(format, Sum) + C(dataset, Sum))**2", frame).fit()
        theirs = anova_lm(model, typ=2)
        theirs.index = [name.replace("C(", "").replace(", Sum)", "") for name in theirs.index]
        for term in ("judge", "format", "dataset", "judge:format", "judge:dataset", "format:dataset"):
            assert ours.loc[term, "sum_of_squares"] == pytest.approx(theirs.loc[term, "sum_sq"])
            assert ours.loc[term, "F"] == pytest.approx(theirs.loc[term, "F"])
            assert ours.loc[term, "p_value"] == pytest.approx(theirs.loc[term, "PR(>F)"])

    def test_shares_sum_to_one_and_ignore_the_order_of_rows(self):
        frame = three_way(1)
        first = anova(frame, ["judge", "format", "dataset"], "T")
        second = anova(frame.sample(frac=1, random_state=1), ["judge", "format", "dataset"], "T")
        assert first.drop(first.index[-1])["eta2"].sum() == pytest.approx(1)
        pd.testing.assert_frame_equal(first, second)

    def test_one_level_leaves_the_model(self):
        frame = three_way(2, (3, 2, 1))
        result = anova(frame, ["judge", "format", "dataset"], "T").set_index("term")
        assert result.loc["dataset", "undefined"] == "one_level"
        assert result.loc["judge", "F"] > 0

    def test_one_factor_has_no_residual(self):
        result = anova(three_way(2, (3, 1, 1)), ["judge", "format", "dataset"], "T").set_index("term")
        assert result.loc["judge", "undefined"] == "no_residual"
        assert np.isnan(result.loc["judge", "F"])

    def test_equal_cells_are_undefined_not_zero(self):
        result = anova(three_way().assign(T=0.5), ["judge", "format", "dataset"], "T").set_index("term")
        assert result.loc["judge", "undefined"] == "no_variance"
        assert np.isnan(result.loc["judge", "eta2"])

    @pytest.mark.parametrize("broken", ["absent", "twice", "null"])
    def test_incomplete_cells_are_named(self, broken):
        frame = three_way()
        if broken == "absent":
            frame = frame.iloc[1:]
        elif broken == "twice":
            frame = pd.concat([frame, frame.iloc[[0]]])
        else:
            frame.loc[0, "T"] = np.nan
        with pytest.raises(TableError, match="judge=judge0, format=format0, dataset=dataset0"):
            anova(frame, ["judge", "format", "dataset"], "T")


def judged(n_pairs=24, judges=2, formats=2, sources=2, repetitions=2, seed=0):
    """Return verdicts and pairs: judge 0 is better than the others, the more so in the first source."""
    rng = np.random.default_rng(seed)
    pairs, rows = [], []
    for s in range(sources):
        for i in range(n_pairs):
            pairs.append((f"{s}-{i}", f"{s}-{i // 2}", f"source{s}", "A"))
            for j in range(judges):
                for f in range(formats):
                    chance = 0.95 - 0.25 * j - 0.1 * s * (j == 0)
                    for order in ("AB", "BA"):
                        right = rng.random() < chance
                        rows += [
                            (f"{s}-{i}", f"j{j}", f"f{f}", order, r, "A" if right else "B")
                            for r in range(repetitions)
                        ]
    verdicts = pd.DataFrame(
        rows, columns=["pair_id", "judge_id", "protocol", "order", "repetition", "verdict"]
    )
    verdicts = verdicts.assign(instrument_id="i", constraint="none", temperature=0.0, outcome="valid")
    frame = pd.DataFrame(pairs, columns=["pair_id", "base_id", "source", "reference_label"])
    return verdicts, frame


class TestAnovaTable:
    options = VarianceOptions(resamples=200)

    def test_intervals_hold_the_estimate(self):
        table = anova_table(*judged(), variance=self.options)
        assert list(table.columns) == list(ANOVA_COLUMNS)
        judge = table.set_index("term").loc["judge"]
        assert judge["eta2_low"] < judge["eta2"] <= judge["eta2_high"] + 0.05
        assert judge["resamples"] == 200
        assert judge["eta2"] > 0.5

    def test_same_seed_same_table(self):
        first, second = (anova_table(*judged(), variance=self.options) for _ in range(2))
        pd.testing.assert_frame_equal(first, second)

    def test_missing_format_is_incomplete(self):
        verdicts, pairs = judged()
        kept = verdicts[~((verdicts["judge_id"] == "j1") & (verdicts["protocol"] == "f1"))]
        table = anova_table(kept, pairs, variance=self.options)
        assert table["undefined"].tolist() == ["incomplete_cells"]

    def test_one_repetition_has_no_T(self):
        table = anova_table(*judged(repetitions=1), variance=self.options)
        assert table["undefined"].tolist() == ["T_undefined"]

    def test_temperatures_apart(self):
        verdicts, pairs = judged()
        both = pd.concat([verdicts, verdicts.assign(temperature=1.0)])
        assert set(anova_table(both, pairs, variance=self.options)["temperature"]) == {0.0, 1.0}


@pytest.fixture(scope="module")
def claims(project_path):
    spec = importlib.util.spec_from_file_location(
        "paper_claims", project_path / "scripts" / "paper_claims.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["paper_claims"] = module
    spec.loader.exec_module(module)
    return module


NOT_BORNE_OUT = {
    "parity",
    "anova_table",
    "pair_judge_exceeds_pair",
    "order_only_main_effect",
    "majority_flips",
    "largest_dispersions",
    "flask_trust",
    "geval_better",
}
IN_PART = {"table2_t", "replication", "most_deterministic", "robust_judges"}


@pytest.mark.shared
class TestPaperClaims:
    def test_which_claims_the_tables_bear_out(self, claims, public_data):
        tables = claims.load(public_data)
        answers = {name: function(tables) for name, function in claims.CLAIMS.items()}
        assert {name for name, answer in answers.items() if answer.borne_out is False} == NOT_BORNE_OUT
        assert {name for name, answer in answers.items() if answer.borne_out is None} == IN_PART

    def test_recomputed_table_5_differs(self, claims, public_data):
        table = pd.read_csv(public_data / "seed002_table1.csv")
        eta = 100 * anova(table, ["judge", "format", "dataset"], "T").set_index("term")["eta2"]
        recomputed = {
            "judge": 27.3,
            "dataset": 26.0,
            "judge:dataset": 25.3,
            "judge:format": 10.3,
            "format": 0.8,
            "format:dataset": 1.6,
            "residual": 8.7,
        }
        assert eta.drop("total").round(1).to_dict() == recomputed
        assert max(abs(recomputed[k] - claims.PRINTED_TABLE_5[k]) for k in recomputed) == pytest.approx(2.8)

    def test_every_claim_is_on_the_page(self, claims, project_path):
        page = (project_path / "docs" / "reproducing-the-papers.md").read_text()
        assert [name for name in claims.CLAIMS if f"`{name}`" not in page] == []
