"""Compare what "All Verdicts are Not Equal" (arXiv 2610.12083) says with what its printed tables say.

    python scripts/paper_claims.py FOLDER [claim ...]

FOLDER holds seed002_table1.csv and seed002_table2.csv: the printed Tables 1 and 2 in percent, with the
columns judge, format (or paradigm), dataset, C, phi, A, T. Without the name of a claim all are shown. The
answers are computed from the printed numbers alone; docs/reproducing-the-papers.md quotes them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judge_calibration.metrics.anova import anova
from judge_calibration.metrics.trustworthy_rate import printed_rate


class Answer(NamedTuple):
    """Whether the tables bear a claim out (None: in part), and the numbers."""

    borne_out: bool | None
    numbers: str


class Tables(NamedTuple):
    """The printed tables: numbers, and the same as text."""

    one: pd.DataFrame
    one_text: pd.DataFrame
    two: pd.DataFrame
    two_text: pd.DataFrame

    @property
    def paradigms(self) -> pd.DataFrame:
        """Table 2 by judge and data set, paradigms as columns."""
        return self.two.pivot_table(
            index=["judge", "dataset"], columns="paradigm", values=["C", "phi", "A", "T"]
        )

    @property
    def dispersion(self) -> pd.Series:
        """Largest minus smallest T over formats, by judge and data set."""
        by = self.one.groupby(["judge", "dataset"])["T"]
        return (by.max() - by.min()).round(1).sort_values(ascending=False)


PRINTED_TABLE_5 = {
    "judge": 27.0,
    "dataset": 26.2,
    "judge:dataset": 28.1,
    "judge:format": 8.3,
    "format": 0.7,
    "format:dataset": 1.3,
    "residual": 8.4,
}
PRINTED_TABLE_6 = {
    "MT-Bench": {"j": 0.0, "f": 0.0, "o": 2.1, "pj": 10.3, "pf": 1.1, "po": 5.0, "residual": 4.2},
    "AlpacaFarm": {"j": 2.1, "f": 0.0, "o": 1.8, "pj": 17.5, "pf": 1.4, "po": 3.8, "residual": 6.0},
    "JudgeBench": {"j": 0.9, "f": 0.1, "o": 6.2, "pj": 34.8, "pf": 4.4, "po": 6.2, "residual": 7.9},
    "LLMBar": {"j": 0.3, "f": 0.0, "o": 2.6, "pj": 22.7, "pf": 1.8, "po": 4.2, "residual": 4.3},
}


def load(folder: Path) -> Tables:
    """Read both tables."""
    paths = [folder / "seed002_table1.csv", folder / "seed002_table2.csv"]
    return Tables(*(pd.read_csv(path, dtype=kind) for path in paths for kind in (None, "str")))


def _cell(table: pd.DataFrame, judge: str, kind: str, dataset: str) -> pd.Series:
    column = "format" if "format" in table else "paradigm"
    found = table[(table["judge"] == judge) & (table[column] == kind) & (table["dataset"] == dataset)]
    return found.iloc[0]


def table1_t(t: Tables) -> Answer:
    """Table 1: T = C (A - phi/2)."""
    same = sum(printed_rate(r.C, r.phi, r.A) == Decimal(r.T) for r in t.one_text.itertuples())
    halves = sum(
        (Decimal(r.C) * (Decimal(r.A) - Decimal(r.phi) / 2)) % 10 == 5 for r in t.one_text.itertuples()
    )
    return Answer(same == 120, f"{same} of 120 cells, rounded half up; {halves} are exact halves")


def table2_t(t: Tables) -> Answer:
    """Table 2: T = C (A - phi/2)."""
    off = [
        f"{r.judge} {r.paradigm} {r.dataset} printed {r.T}, computed {printed_rate(r.C, r.phi, r.A)}"
        for r in t.two_text.itertuples()
        if printed_rate(r.C, r.phi, r.A) != Decimal(r.T)
    ]
    return Answer(None if off else True, f"{36 - len(off)} of 36 cells; " + "; ".join(off))


def ceiling(t: Tables) -> Answer:
    """No accuracy lies above 1 - phi/2, and several cells lie at it or within a few points."""
    gap = (100 - t.one["phi"] / 2 - t.one["A"]).round(2)
    return Answer(
        bool((gap >= 0).all()),
        f"smallest gap {gap.min():.1f}; {int((gap <= 5).sum())} of 120 cells within 5 points, "
        f"{int((gap <= 10).sum())} within 10",
    )


def parity(t: Tables) -> Answer:
    """One forced choice an order on 100 pairs: twice the right share less the flips is even, in counts."""
    whole = t.one[t.one["dataset"].isin(["AlpacaFarm", "JudgeBench", "LLMBar"])]
    whole = whole[(whole["phi"] % 1 == 0) & ((2 * whole["A"]) % 1 == 0)]
    odd = int(((2 * whole["A"] - whole["phi"]).round() % 2 == 1).sum())
    return Answer(odd == 0, f"{odd} of the {len(whole)} cells whose counts on 100 pairs are whole are odd")


def anova_table(t: Tables) -> Answer:
    """Table 5: eta squared, with judge x dataset as the largest source."""
    found = anova(t.one, ["judge", "format", "dataset"], "T").set_index("term")
    shares = (100 * found["eta2"]).round(1)
    lines = [f"{term} {shares[term]:.1f} (printed {value})" for term, value in PRINTED_TABLE_5.items()]
    return Answer(
        bool(shares.drop(["total"]).idxmax() == "judge:dataset"),
        "; ".join(lines) + f"; the largest is {shares.drop(['total']).idxmax()}",
    )


def printed_anova_sum(t: Tables) -> Answer:
    """Table 5 adds up to the total."""
    total = sum(PRINTED_TABLE_5.values())
    return Answer(abs(total - 100) < 0.35, f"the printed shares sum to {total:.1f}")


def pair_judge_exceeds_pair(t: Tables) -> Answer:
    """Table 6: on JudgeBench the pair x judge interaction exceeds the pair main effect."""
    rest = {name: round(100 - sum(row.values()), 1) for name, row in PRINTED_TABLE_6.items()}
    row = PRINTED_TABLE_6["JudgeBench"]
    return Answer(
        row["pj"] > rest["JudgeBench"],
        f"pair x judge {row['pj']}; the pair effect, by the caption the remainder, {rest['JudgeBench']} "
        f"(MT-Bench {rest['MT-Bench']}, AlpacaFarm {rest['AlpacaFarm']}, LLMBar {rest['LLMBar']})",
    )


def order_only_main_effect(t: Tables) -> Answer:
    """Table 6: order is the only main effect beside the pair's that is not negligible."""
    larger = [name for name, row in PRINTED_TABLE_6.items() if row["j"] > row["o"]]
    shown = "; ".join(f"{name}: judge {r['j']}, order {r['o']}" for name, r in PRINTED_TABLE_6.items())
    return Answer(not larger, shown + f"; the judge effect is larger on {', '.join(larger) or 'none'}")


def replication(t: Tables) -> Answer:
    """7 to 17 % of verdicts change across identical replications."""
    lost = 100 - t.one["C"]
    means = lost.groupby(t.one["judge"]).mean()
    return Answer(
        None,
        f"share of (pair, order) that changes: {lost.min():.1f} to {lost.max():.1f} over cells, "
        f"{means.min():.1f} to {means.max():.1f} over judges' means, {lost.mean():.1f} on average; "
        "no grouping "
        "of the table gives 7 to 17",
    )


def majority_flips(t: Tables) -> Answer:
    """Order swaps flip the majority of verdicts on challenging tasks."""
    hard = t.one[t.one["dataset"].isin(["JudgeBench", "LLMBar"])]
    above = hard[hard["phi"] > 50].groupby("dataset").size()
    means = hard.groupby("dataset")["phi"].mean()
    return Answer(
        False,
        f"{int(above.get('JudgeBench', 0))} of 30 cells of JudgeBench "
        f"and {int(above.get('LLMBar', 0))} of 30 "
        f"of LLMBar are above 50; mean flip rates {means['JudgeBench']:.1f} and {means['LLMBar']:.1f}",
    )


def most_deterministic(t: Tables) -> Answer:
    """The most deterministic judge agrees with the truth 51 % of the time, at C = 100 %."""
    cell = _cell(t.one, "Gemini-2.0-Flash", "vf_xml", "JudgeBench")
    means = t.one.groupby("judge")["C"].mean().round(1)
    return Answer(
        None,
        f"one cell: C {cell.C}, phi {cell.phi}, A {cell.A}, T {cell['T']}; its verdicts follow the order, "
        f"they are not wrong on every pair. The judge with the highest "
        f"mean C is {means.idxmax()} ({means.max()}), "
        f"before Gemini-2.0-Flash ({means['Gemini-2.0-Flash']})",
    )


def format_gain(t: Tables) -> Answer:
    """Gemini-2.5-Pro on JudgeBench gains 25 points of A and 49 of T from Direct to VF-JSON."""
    a, b = (_cell(t.one, "Gemini-2.5-Pro", kind, "JudgeBench") for kind in ("direct", "vf_json"))
    gains = round(b.A - a.A, 1), round(b["T"] - a["T"], 1)
    return Answer(gains == (25.0, 48.6), f"A {gains[0]:+}, T {gains[1]:+}, phi {a.phi} to {b.phi}")


def similar_accuracy(t: Tables) -> Answer:
    """AlpacaFarm: GPT-5.2 CoT-JSON and Claude Direct have similar A and different T."""
    a = _cell(t.one, "GPT-5.2", "cot_json", "AlpacaFarm")
    b = _cell(t.one, "Claude-Sonnet-4.6", "direct", "AlpacaFarm")
    return Answer(
        (a.A, b.A, a["T"], b["T"]) == (57.7, 54.7, 40.2, 49.9),
        f"A {a.A} and {b.A}, T {a['T']} and {b['T']}, phi {a.phi} and {b.phi}",
    )


def llama_range(t: Tables) -> Answer:
    """Llama: C at least 98 everywhere; on JudgeBench T 25.4 to 42.5 and phi 22 to 45."""
    rows = t.one[t.one["judge"] == "Llama-3.3-70B"]
    hard = rows[rows["dataset"] == "JudgeBench"]
    return Answer(
        bool(rows["C"].min() >= 98 and (hard["T"].min(), hard["T"].max()) == (25.4, 42.5)),
        f"smallest C {rows['C'].min()}; JudgeBench T {hard['T'].min()} to {hard['T'].max()}, "
        f"phi {hard['phi'].min()} to {hard['phi'].max()}",
    )


def flash_range(t: Tables) -> Answer:
    """Gemini-2.0-Flash: C 96 to 100, T 2.0 to 52.3."""
    rows = t.one[t.one["judge"] == "Gemini-2.0-Flash"]
    numbers = rows["C"].min(), rows["C"].max(), rows["T"].min(), rows["T"].max()
    return Answer(numbers == (96.0, 100.0, 2.0, 52.3), "C {} to {}, T {} to {}".format(*numbers))


def worse_than_chance(t: Tables) -> Answer:
    """Nearly deterministic judges can be worse than chance."""
    rows = t.one[(t.one["C"] >= 99) & (t.one["A"] < 50)]
    shown = "; ".join(f"{r.judge} {r.format} {r.dataset}: C {r.C}, A {r.A}" for r in rows.itertuples())
    return Answer(len(rows) > 0, shown)


def dispersions(t: Tables) -> Answer:
    """Format dispersions 48.6, 34.1 and 7.8."""
    d = t.dispersion
    found = (
        d["Gemini-2.5-Pro", "JudgeBench"],
        d["Gemini-2.0-Flash", "JudgeBench"],
        d["Claude-Sonnet-4.6", "LLMBar"],
    )
    return Answer(
        found == (48.6, 34.1, 7.8),
        "Gemini-2.5-Pro and 2.0-Flash on JudgeBench {}, {}; Claude on LLMBar {}".format(*found),
    )


def largest_dispersions(t: Tables) -> Answer:
    """Five of the six largest dispersions occur on JudgeBench."""
    six = t.dispersion.head(6)
    count = int((six.index.get_level_values("dataset") == "JudgeBench").sum())
    shown = ", ".join(f"{judge} {dataset} {value}" for (judge, dataset), value in six.items())
    return Answer(count == 5, f"{count} of 6: {shown}")


def robust_judges(t: Tables) -> Answer:
    """GPT-5.2 and Llama have low dispersion on every benchmark; the Geminis 24.9 and 19.8 on average."""
    d = t.dispersion.unstack()  # noqa: PD010
    means = d.mean(axis=1).round(2)
    return Answer(
        None,
        f"means: {', '.join(f'{judge} {value}' for judge, value in means.sort_values().items())}; "
        f"Llama on JudgeBench {d.loc['Llama-3.3-70B', 'JudgeBench']}",
    )


def benchmark_dispersion(t: Tables) -> Answer:
    """About 10 points on three benchmarks, 22.7 on JudgeBench; T below 10 only there."""
    means = t.dispersion.groupby("dataset").mean().round(1)
    low = set(t.one.loc[t.one["T"] < 10, "dataset"])
    return Answer(
        means["JudgeBench"] == 22.7 and low == {"JudgeBench"},
        ", ".join(f"{name} {value}" for name, value in means.items()),
    )


def sonnet_best(t: Tables) -> Answer:
    """Claude-Sonnet-4.6 has the highest mean T."""
    means = t.one.groupby("judge")["T"].mean().round(1).sort_values(ascending=False)
    return Answer(
        bool(means.index[0] == "Claude-Sonnet-4.6"), ", ".join(f"{j} {v}" for j, v in means.items())
    )


def flask_consistency(t: Tables) -> Answer:
    """FLASK lowers C in every cell."""
    fall = (t.paradigms["C"]["flask"] - t.paradigms["C"]["direct"]).round(1)
    return Answer(bool((fall < 0).all()), f"change {fall.min()} to {fall.max()}, mean {fall.mean():.1f}")


def flask_trust(t: Tables) -> Answer:
    """FLASK leaves T lower than Direct for five of six judges."""
    change = (t.paradigms["T"]["flask"] - t.paradigms["T"]["direct"]).unstack()  # noqa: PD010
    lower = (change < 0).sum()
    both = int((change.mean(axis=1) < 0).sum())
    return Answer(
        5 in {int(lower["JudgeBench"]), int(lower["LLMBar"]), both},
        f"{int(lower['JudgeBench'])} of 6 on JudgeBench, {int(lower['LLMBar'])} of 6 on LLMBar, "
        f"{both} of 6 on the mean of both",
    )


def geval_swing(t: Tables) -> Answer:
    """G-Eval's gain for Gemini-2.5-Pro on JudgeBench, 49 points, exceeds every format swing."""
    change = t.paradigms["T"]["geval"] - t.paradigms["T"]["direct"]
    gain = round(float(change["Gemini-2.5-Pro", "JudgeBench"]), 1)
    largest = float(t.dispersion.max())
    return Answer(gain > largest, f"{gain} against {largest}: by {gain - largest:.1f} points, in one cell")


def geval_better(t: Tables) -> Answer:
    """Holistic rubric scoring raises T more than any change of format."""
    change = (t.paradigms["T"]["geval"] - t.paradigms["T"]["direct"]).round(1)
    objective = t.one[t.one["dataset"].isin(["JudgeBench", "LLMBar"])]
    by_format = objective.pivot_table(index=["judge", "dataset"], columns="format", values="T")
    gains = by_format.sub(by_format["direct"], axis=0).drop(columns="direct").mean()
    means = change.groupby("dataset").mean()
    return Answer(
        bool(change.mean() > gains.max()),
        f"G-Eval against Direct: mean {change.mean():+.1f} (JudgeBench {means['JudgeBench']:+.1f}, LLMBar "
        f"{means['LLMBar']:+.1f}), up in {int((change > 0).sum())} of 12 cells, "
        f"down in {int((change < 0).sum())}; "
        f"on the same cells {gains.idxmax()} {gains.max():+.1f}",
    )


CLAIMS: dict[str, Callable[[Tables], Answer]] = {
    function.__name__: function
    for function in (
        table1_t, table2_t, ceiling, parity, anova_table, printed_anova_sum, pair_judge_exceeds_pair,
        order_only_main_effect, replication, majority_flips, most_deterministic, format_gain,
        similar_accuracy, llama_range, flash_range, worse_than_chance, dispersions, largest_dispersions,
        robust_judges, benchmark_dispersion, sonnet_best, flask_consistency, flask_trust, geval_swing,
        geval_better,
    )
}  # fmt: skip

WORDS = {True: "borne out", False: "not borne out", None: "in part"}


def main(arguments: list[str]) -> None:
    """Print the answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of seed002_table1.csv and seed002_table2.csv")
    parser.add_argument("claims", nargs="*", help=f"any of: {', '.join(CLAIMS)}")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.claims) - set(CLAIMS))
    if unknown:
        parser.error(f"no such claim: {', '.join(unknown)}; there are: {', '.join(CLAIMS)}")
    tables = load(chosen.folder)
    for name in chosen.claims or CLAIMS:
        answer = CLAIMS[name](tables)
        print(f"{name}: {WORDS[answer.borne_out]}\n  {CLAIMS[name].__doc__}\n  {answer.numbers}")


if __name__ == "__main__":
    main(sys.argv[1:])
