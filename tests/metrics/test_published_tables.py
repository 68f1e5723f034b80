"""The printed tables of "All Verdicts are Not Equal": what their cells bear out, and what not."""

from decimal import Decimal

import pandas as pd
import pytest

from judge_calibration.metrics.format_dispersion import dispersion
from judge_calibration.metrics.trustworthy_rate import printed_rate, product_rate

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def table_1(public_data):
    return pd.read_csv(public_data / "seed002_table1.csv", dtype=str)


@pytest.fixture(scope="module")
def table_2(public_data):
    return pd.read_csv(public_data / "seed002_table2.csv", dtype=str)


def recomputed(table):
    return [printed_rate(c, phi, a) for c, phi, a in zip(table["C"], table["phi"], table["A"], strict=True)]


def spreads(table):
    """Return maximum minus minimum of T over formats, by judge and dataset."""
    cells = table.assign(T=table["T"].astype(float)).groupby(["judge", "dataset"])["T"]
    return (cells.max() - cells.min()).round(1)


class TestTable1:
    def test_all_120_cells_of_t(self, table_1):
        assert len(table_1) == 120
        assert recomputed(table_1) == [Decimal(t) for t in table_1["T"]]

    def test_eight_cells_are_exact_halves(self, table_1):
        exact = [
            Decimal(c) * (Decimal(a) - Decimal(phi) / 2) / 100
            for c, phi, a in zip(table_1["C"], table_1["phi"], table_1["A"], strict=True)
        ]
        assert sum((value * 10) % 1 == Decimal("0.5") for value in exact) == 8

    def test_binary_arithmetic_misses_some_of_them(self, table_1):
        numbers = table_1[["C", "phi", "A"]].astype(float) / 100
        rounded = (100 * product_rate(numbers["C"], numbers["A"], numbers["phi"])).round(1)
        assert (rounded != table_1["T"].astype(float)).sum() > 0

    @pytest.mark.parametrize(
        ("judge", "dataset", "expected"),
        [
            ("Gemini-2.5-Pro", "JudgeBench", 48.6),
            ("Gemini-2.0-Flash", "JudgeBench", 34.1),
            ("Claude-Sonnet-4.6", "LLMBar", 7.8),
        ],
    )
    def test_dispersions_of_the_text(self, table_1, judge, dataset, expected):
        cells = table_1[(table_1["judge"] == judge) & (table_1["dataset"] == dataset)]
        assert len(cells) == 5
        assert float(dispersion(cells["T"].astype(float)).round(1)) == expected

    def test_mean_dispersions_by_dataset(self, table_1):
        # The text: about 10 points on three datasets, 22.7 on JudgeBench.
        mean = spreads(table_1).groupby("dataset").mean().round(1)
        assert mean["JudgeBench"] == 22.7
        assert mean.drop("JudgeBench").between(9, 11).all()

    def test_three_of_the_six_largest_dispersions_are_on_judgebench(self, table_1):
        # The text says five of the six.
        largest = spreads(table_1).sort_values(ascending=False).head(6)
        assert (largest.index.get_level_values("dataset") == "JudgeBench").sum() == 3

    def test_means_by_judge(self, table_1):
        means = table_1.assign(T=table_1["T"].astype(float)).groupby("judge")["T"].mean().round(2)
        assert means.to_dict() == {
            "Claude-Sonnet-4.6": 62.80,
            "Gemini-2.5-Pro": 53.28,
            "GPT-5.2": 52.23,
            "GPT-4o": 49.32,
            "Llama-3.3-70B": 49.24,
            "Gemini-2.0-Flash": 38.17,
        }

    def test_accuracy_stays_below_its_ceiling(self, table_1):
        ceiling = 100 - table_1["phi"].astype(float) / 2
        assert (table_1["A"].astype(float) <= ceiling + 0.05).all()


class TestTable2:
    def test_34_of_36_cells_of_t_and_the_two_that_are_off(self, table_2):
        wrong = [
            (row.judge, row.paradigm, row.dataset, row.T, str(value))
            for row, value in zip(table_2.itertuples(), recomputed(table_2), strict=True)
            if Decimal(row.T) != value
        ]
        assert len(table_2) == 36
        assert wrong == [
            ("GPT-5.2", "flask", "LLMBar", "37.9", "38.0"),
            ("Claude-Sonnet-4.6", "geval", "JudgeBench", "58.8", "58.9"),
        ]
