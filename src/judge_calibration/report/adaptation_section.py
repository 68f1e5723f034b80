"""The page's section on adaptation: advice first, then what was gained, what changed and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from judge_calibration.adapt.adaptation_costs import UNITS
from judge_calibration.adapt.before_after import JOINT
from judge_calibration.report import adaptation_figures as figures
from judge_calibration.report.blocks import (
    Block,
    FigureBlock,
    Missing,
    Prose,
    Section,
    TableBlock,
    marked_block,
)
from judge_calibration.report.result_tables import Tables, figure_block, some
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import is_missing, percent, reason_text, source_name

TABLES = (
    "adaptation_table",
    "adaptation_macro",
    "sample_efficiency",
    "method_comparison",
    "adaptation_advice",
    "adaptation_changes",
    "adaptation_costs",
    "adaptation_notes",
    "rubric_diagnostics",
    "reweighting_calibration",
    "reweighting_reliability",
    "reweighting_recovery",
    "sft_training_log",
)
"""The tables that the section reads, under their dataset names."""

_LEAD = (
    "Whether a judge gets better on a source by learning from its labels, on pairs that were held out: by "
    "reweighting its attribute reads, by fine-tuning, by a rubric. A verdict that was not given is wrong."
)
_COMMAND = "kedro run --env adapt"
_STATISTICS = {
    "T_direct": "T: trustworthy",
    "C": "C: repeats itself",
    "phi": "phi: flips with the order",
    "A": "A: right",
    "PR": "right in both orders",
    "longer_chosen": "longer answer chosen",
}
_CONTROLLED = {
    "modified_wins": "modified side wins",
    "modified_minus_original": "modified minus original",
    "longer_minus_shorter": "longer minus shorter",
    "worse_wins": "worse side wins",
    "PR": "better side wins",
}
_LETTERS = {"T_direct": "T", "C": "C", "phi": "phi"}
_PLACE = ("source", "judge_id", "method", "budget")
_PLANTED = {"weights": "weights of attributes", "coin": "nothing: references by a coin"}
_FULL = "full"
_METHODS = {
    "sft": "Fine-tuning",
    JOINT: "Fine-tuning, joint",
    "rubric": "Rubric",
    "reweighting": "Reweighting",
}


def adaptation_section(tables: Tables) -> Section:
    """Return the section.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Those of TABLES; one that is absent or empty is left out, and what is missing says what brings it.
    """
    table = some(tables, "adaptation_table")
    if table is None:
        return Section("adaptation", "Adaptation", _LEAD, [Missing("Nothing was adapted here:", _COMMAND)])
    simulated = table["simulated"].astype(bool)
    blocks: list[Block] = []
    blocks += _part(tables, table[~simulated], False)
    blocks += _missing(tables)
    blocks += _part(tables, table[simulated], True)
    return Section("adaptation", "Adaptation", _LEAD, blocks)


def _own(tables: Tables, name: str, simulated: bool) -> pd.DataFrame | None:
    """Return a table's real or SIMULATED rows; a table without the mark holds real ones."""
    frame = some(tables, name)
    if frame is None:
        return None
    if "simulated" in frame.columns:
        frame = frame[frame["simulated"].astype(bool) == simulated]
    elif simulated:
        return None
    return None if frame.empty else frame


def _part(tables: Tables, table: pd.DataFrame, simulated: bool) -> list[Block]:
    if table.empty:
        return []
    blocks: list[Block] = []
    advice = _own(tables, "adaptation_advice", simulated)
    if advice is not None:
        blocks.append(_advice(advice))
    blocks.append(_gains(table, _own(tables, "adaptation_changes", simulated)))
    macro = _own(tables, "adaptation_macro", simulated)
    if macro is not None:
        blocks.append(_macro(macro))
    curves = _own(tables, "sample_efficiency", simulated)
    if curves is not None and curves["accuracy"].notna().any():
        blocks.append(_curves(curves))
    if table.loc[table["budget"] == _FULL, "delta"].notna().sum() > 3:
        blocks.append(_matrix(table))
    blocks += _changes(tables, simulated)
    blocks += _training(tables, simulated)
    if not simulated:
        blocks += _methods(tables)
        blocks += _rubrics(tables)
    blocks += _reliability(tables, simulated)
    if simulated:
        blocks += _recovery(tables)
    return [_apart(block) for block in blocks] if simulated else blocks


def _table(id: str, title: str, note: str, rows: list[dict[str, str]], exact: pd.DataFrame) -> TableBlock:
    return short_table(id, title, note, pd.DataFrame(rows), exact.reset_index(drop=True))


def _apart(block: Block) -> Block:
    """Return the block marked SIMULATED, under an id of its own beside the real one."""
    block = marked_block(block)
    if isinstance(block, FigureBlock):
        table = replace(block.table, id=f"simulated-{block.table.id}")
        return replace(block, id=f"simulated-{block.id}", table=table)
    return replace(block, id=f"simulated-{block.id}") if isinstance(block, TableBlock) else block


def _points(row: Mapping[Any, Any], value: str, low: str, high: str) -> str:
    if is_missing(row[value]):
        return f"undefined: {reason_text(str(row['undefined']))}" if not is_missing(row["undefined"]) else "–"
    text = f"{row[value]:+.1f}"
    if is_missing(row[low]) or is_missing(row[high]):
        reason = row.get("undefined", row.get("reason"))
        return text if is_missing(reason) or not reason else f"{text}\n({reason_text(str(reason))})"
    return f"{text}\n({row[low]:+.1f} to {row[high]:+.1f})"


def _labels(budget: Any) -> str:
    return "all" if str(budget) == _FULL else str(budget)


def _choices(row: Mapping[Any, Any]) -> str:
    if is_missing(row["sd_over_resamples"]):
        return str(row["n_resamples"])
    return f"{row['n_resamples']}\n(spread {row['sd_over_resamples']:.1f} points)"


def _advice(advice: pd.DataFrame) -> TableBlock:
    rows = []
    for row in advice.to_dict("records"):
        used = row["advice"] == "use"
        tried = f"{row['method']} with {_labels(row['budget'])} labels"
        rows.append(
            {
                "Source": source_name(row["source"]),
                "Judge": str(row["judge_id"]),
                "Labels": f"{int(row['n_labels']):,}",
                "Advice": f"use {tried}" if used else "no method earned its place",
                "Expected gain (points)": _points(
                    row | {"undefined": row["reason"]}, "expected_gain", "low", "high"
                ),
                "Choices of training pairs": _choices(row),
                "Best of": f"{tried} ({row['n_candidates']} tried)",
            }
        )
    note = (
        "A method is advised where its gain is above 0 with all that were tried counted in (Bonferroni); the "
        "interval shown is its own, at 95 %. Where several choices of as many training pairs were tried, the "
        "gain is their mean. For a source with as many labels and pairs alike."
    )
    return _table("advice-table", "Which method for a source with so many labels", note, rows, advice)


def _gains(table: pd.DataFrame, changes: pd.DataFrame | None) -> Block:
    """Return the methods of each judge and source side by side, at equal labels one after the other."""
    table = table.assign(_size=table["budget"].map(_size_of)).sort_values(
        ["source", "judge_id", "_size", "method"], kind="stable"
    )
    table = table.drop(columns="_size").reset_index(drop=True)
    beside = _before_after(changes)
    rows = []
    for row in table.to_dict("records"):
        fewer = bool(row.get("fewer_than_budget", False))
        shown = {
            "Source": source_name(row["source"]),
            "Judge": str(row["judge_id"]),
            "Method": str(row["method"]),
            "Labels": _labels(row["budget"])
            + (f"\n(only {row['n_train']} used)" if fewer else f"\n({row['n_train']})"),
            "Held-out pairs": str(row["n_test"]),
            "Accuracy": f"{percent(row['accuracy_base'])} to {percent(row['accuracy'])}",
            "Gain (points)": _points(row, "delta", "delta_low", "delta_high"),
            "Would be found": _from(row.get("detectable")),
        }
        if beside:
            here = beside.get(tuple(str(row[name]) for name in _PLACE), {})
            shown |= {letter: here.get(statistic, "–") for statistic, letter in _LETTERS.items()}
        shown["No verdict"] = f"{percent(row['no_verdict_base'])} to {percent(row['no_verdict'])}"
        rows.append(shown)
    note = (
        "Before to after, on the same held-out pairs. Accuracy over both orders; the gain with its paired "
        "95 % interval over base tasks. Would be found: the true gain that so many held-out pairs show in "
        "at least four of five tests of one method; a smaller one may be there."
    )
    if beside:
        note += (
            " T, C and phi have their intervals, and reasons where they are undefined, in the table below."
        )
    if table["method"].eq(JOINT).any():
        note += f" {JOINT}: one judge trained on all sources together; in brackets the pairs of all of them."
    block = _table("gain-table", "The methods side by side", note, rows, table)
    known = table[table["delta"].notna()]
    few = known.groupby(["judge_id", "source"]).ngroups <= 12
    if known.empty or not few:
        return block
    alternative = "For each judge and source the gain of each method and budget; the values are in the table."
    title = "What adaptation gains on held-out pairs"
    return figure_block("gains", title, note, alternative, figures.gains(known), block)


def _from(points: Any) -> str:
    return "–" if is_missing(points) else f"from {points:.0f} points"


def _size_of(budget: Any) -> float:
    return float("inf") if str(budget) == _FULL else float(budget)


def _before_after(changes: pd.DataFrame | None) -> dict[tuple[str, ...], dict[str, str]]:
    """Return T, C and phi, before and after, of every adapted judge by its place in the matrix."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    if changes is None:
        return found
    whole = changes[(changes["slice_by"] == "all") & changes["statistic"].isin(list(_LETTERS))]
    for row in whole.to_dict("records"):
        place = tuple(str(row[name]) for name in _PLACE)
        text = f"{percent(row['before'])} to {percent(row['after'])}"
        found.setdefault(place, {})[row["statistic"]] = text
    return found


def _macro(macro: pd.DataFrame) -> TableBlock:
    rows = [
        {
            "Method": str(row["method"]),
            "Labels": _labels(row["budget"]),
            "Judges x sources": f"{row['n_judges']} x {row['n_sources']} ({row['n_cells']} cells)",
            "Before": percent(row["accuracy_base"]),
            "After": percent(row["accuracy"]),
            "Gain (points)": _points(row, "delta", "delta_low", "delta_high"),
        }
        for row in macro.to_dict("records")
    ]
    note = "Mean over judge x source cells, each with equal weight."
    return _table("macro-table", "Mean over judges and sources", note, rows, macro)


def _curves(curves: pd.DataFrame) -> FigureBlock:
    rows = [
        {
            "Source": source_name(row["source"]),
            "Method": str(row["method"]),
            "Labels": _labels(row["budget"]) + _used(row),
            "Accuracy": percent(row["accuracy"]),
            "Spread over resamples": "–"
            if is_missing(row["sd_over_resamples"])
            else f"{100 * row['sd_over_resamples']:.1f}",
            "Unadapted": percent(row["accuracy_base"]),
            "Fits": f"{row['n_fits']} ({row['n_undefined']} undefined)",
        }
        for row in curves.to_dict("records")
    ]
    note = (
        "Mean over judges (and over sources where it says all). Spread: standard deviation over resamples of "
        "the training pairs, in points; it is not an interval, and one resample has none. Where a source "
        "has fewer pairs than that, all are used and every resample is the same set: there is no spread."
    )
    block = _table("efficiency-table", "Accuracy by number of labels", note, rows, curves)
    alternative = "Accuracy against the number of labels, a line a method; the values are in the table."
    title = "Accuracy by number of labels"
    return figure_block("efficiency", title, note, alternative, figures.efficiency(curves), block)


def _used(row: Mapping[Any, Any]) -> str:
    """Say how many training pairs were used, on average over the fits."""
    used: Any = row.get("n_train")
    if is_missing(used):
        return ""
    fewer = str(row["budget"]) != _FULL and used < int(row["budget"])
    return f"\n(only {used:,.0f} used)" if fewer else f"\n({used:,.0f})"


def _matrix(table: pd.DataFrame) -> FigureBlock:
    full = table[table["budget"] == _FULL]
    rows = []
    sources = list(dict.fromkeys(full["source"]))
    for (method, judge), own in full.groupby(["method", "judge_id"], sort=False):
        by_source = {str(row["source"]): row for row in own.to_dict("records")}
        rows.append(
            {"Method": str(method), "Judge": str(judge)}
            | {
                source_name(source): _points(by_source[source], "delta", "delta_low", "delta_high")
                if source in by_source
                else "–"
                for source in sources
            }
        )
    note = "Gain in points with all labels, every judge on every source."
    block = _table("matrix-table", "Every judge on every source", note, rows, full)
    alternative = "A grid of judges by sources with the gain in each cell; the values are in the table."
    title = "Every judge on every source"
    return figure_block("matrix", title, note, alternative, figures.matrix(full), block)


def _changes(tables: Tables, simulated: bool) -> list[Block]:
    frame = _own(tables, "adaptation_changes", simulated)
    if frame is None:
        return []
    blocks: list[Block] = []
    whole = frame[(frame["slice_by"] == "all") & frame["statistic"].isin(list(_STATISTICS))]
    controlled = frame[(frame["slice_by"] == "manipulation") & frame["statistic"].isin(list(_CONTROLLED))]
    # The same share under two names would be shown twice.
    controlled = controlled[controlled["before"].notna() & controlled["after"].notna()]
    for part, id, title, note, words in (
        (
            whole,
            "changes",
            "What adaptation does to T, C, phi and accuracy",
            "Before and after on the same pairs; the change has its paired interval in the table. A judge "
            "can gain accuracy and lose its order. Reweighting has no order: its phi is 0 by construction.",
            _STATISTICS,
        ),
        (
            controlled,
            "controlled",
            "What adaptation does to controlled changes and injection",
            "Shares of pairs whose both orders agree on it. Where longer minus shorter rises for length, the "
            "judge learned length; where the worse side wins more for injection, it is easier to fool, or "
            "learned length, as the side with the injection is the longer one. Judges that are asked (not "
            "reweightings) are asked about adaptation.controlled too, whatever source they learned from.",
            _CONTROLLED,
        ),
    ):
        if part.empty:
            continue
        blocks.append(_change_block(part, id, title, note, words))
    return blocks


def _change_block(
    part: pd.DataFrame, id: str, title: str, note: str, words: Mapping[str, str]
) -> FigureBlock:
    order = {name: number for number, name in enumerate(words)}
    keys = ["judge_id", "source", "method", "budget"]
    part = part.assign(_order=part["statistic"].map(order)).sort_values(
        [*keys, "slice", "_order"], kind="stable"
    )
    exact = part.drop(columns="_order")
    rows, names = [], []
    for row in exact.to_dict("records"):
        statistic = words[row["statistic"]]
        place = "" if row["slice_by"] == "all" else f"{str(row['slice']).replace('_', ' ')}: "
        method = f"{row['method']}, {_labels(row['budget'])}"
        names.append((statistic, method) if not place else (place[:-2], f"{statistic}, {method}"))
        rows.append(
            {
                "Adapted judge": f"{row['judge_id']} on {source_name(row['source'])}\n"
                f"{row['method']}, {_labels(row['budget'])} labels",
                "Statistic": f"{place}{statistic}",
                "Before": percent(row["before"]),
                "After": percent(row["after"]),
                "Change (points)": _change(row),
                "Pairs": str(row["n_pairs"]),
            }
        )
    block = _table(f"{id}-table", title, note, rows, exact)
    shown, labels, more = _one_of_each(exact, names)
    alternative = "For each statistic the share before and after adaptation; the values are in the table."
    figure = figures.before_after(shown, labels)
    text = f"{note} {more}".strip()
    return figure_block(id, title, text, alternative, figure, block)


def _one_of_each(
    frame: pd.DataFrame, names: Sequence[tuple[str, str]]
) -> tuple[pd.DataFrame, list[str], str]:
    """Return what a figure can hold: each method at its largest budget, of the first judge and source."""
    first = frame.iloc[0]
    rank = frame["budget"].map(_size_of)
    best = rank.groupby(frame["method"]).transform("max")
    same = (frame["judge_id"] == first["judge_id"]) & (frame["source"] == first["source"])
    keep = (same & (rank == best) & frame["before"].notna() & frame["after"].notna()).to_numpy()
    kept = [name for name, chosen in zip(names, keep, strict=True) if chosen]
    more = ""
    if int(keep.sum()) < int(frame["before"].notna().sum()):
        more = (
            f"Drawn for {first['judge_id']} on {source_name(first['source'])}, each method with most labels."
        )
    return frame[keep], [f"{name}<br><sup>{more_words}</sup>" for name, more_words in kept], more


def _change(row: Mapping[Any, Any]) -> str:
    if is_missing(row["change"]):
        return f"undefined: {reason_text(str(row['reason']))}"
    text = f"{100 * row['change']:+.1f}"
    if is_missing(row["low"]) or is_missing(row["high"]):
        return f"{text}\n({reason_text(str(row['reason']))})" if row["reason"] else text
    return f"{text}\n({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"


def _methods(tables: Tables) -> list[Block]:
    blocks: list[Block] = []
    comparison = _own(tables, "method_comparison", False)
    if comparison is not None:
        rows = [
            {
                "Source": source_name(row["source"]),
                "Judge": str(row["judge_id"]),
                "Labels": _labels(row["budget"]),
                "Methods": f"{row['method_1']} less {row['method_2']}",
                "Accuracy": f"{percent(row['accuracy_1'])}, {percent(row['accuracy_2'])}",
                "Difference (points)": _points(row, "difference", "low", "high"),
                "Pairs": str(row["n_test"]),
            }
            for row in comparison.to_dict("records")
        ]
        note = "Two methods with the same training pairs, on the held-out pairs that both judged."
        if {JOINT} & {*comparison["method_1"], *comparison["method_2"]}:
            note += f" {JOINT} learned from the other sources' pairs as well."
        blocks.append(_table("method-table", "Methods at equal labels", note, rows, comparison))
    costs = some(tables, "adaptation_costs")
    if costs is not None:
        rows = [
            {
                "Source": source_name(row["source"]),
                "Judge": str(row["judge_id"]),
                "Method": "unadapted" if row["method"] == "base" else str(row["method"]),
                "Labels": "none" if row["budget"] == "none" else _labels(row["budget"]),
                "To adapt": _took(row, "adapt"),
                "A pair": _took(row, "pair"),
                "In all": _took(row, "total"),
                "Money in all": _money(row),
                "Accuracy": percent(row["accuracy"]),
                "Best at its cost": _best(row),
            }
            for row in costs.to_dict("records")
        ]
        pairs = int(costs["work_pairs"].iloc[0])
        note = (
            f"What adapting took and judging {pairs:,} new pairs in both orders would take. Seconds are "
            "the clock's; a moment in which several calls were under way is shared between them. They depend "
            "on the machine; tokens do not. Best at its cost: nothing measured reaches as much for less."
        )
        blocks.append(_table("adaptation-cost-table", "Methods at equal cost", note, rows, costs))
    return blocks


def _took(row: Mapping[Any, Any], what: str) -> str:
    tokens, seconds = row[f"{what}_tokens"], row[f"{what}_seconds"]
    shown = "tokens not known" if is_missing(tokens) else f"{float(tokens):,.0f} tokens"
    if is_missing(seconds):
        return f"{shown}\nseconds not known"
    return f"{shown}\n{float(seconds):,.{0 if seconds >= 100 else 1}f} s"


def _money(row: Mapping[Any, Any]) -> str:
    if not is_missing(row["total_money"]):
        return f"{row['total_money']:.4g}"
    return "not known" if is_missing(row["reason"]) else f"not known: {reason_text(str(row['reason']))}"


def _best(row: Mapping[Any, Any]) -> str:
    words = []
    for unit in UNITS:
        value = row[f"best_at_its_{unit}"]
        words.append(f"{unit}: " + ("not known" if is_missing(value) else "yes" if value else "no"))
    return ", ".join(words)


def _rubrics(tables: Tables) -> list[Block]:
    frame = some(tables, "rubric_diagnostics")
    if frame is None:
        return []
    rows = [
        {
            "Source": source_name(row["source"]),
            "Judge": str(row["judge_id"]),
            "Labels": f"{_labels(row['budget'])} ({row['n_train']}{' shown' if row['shown'] else ''})",
            "Written by": "a person" if row["writer"] == "person" else str(row["writer"]),
            "Words": str(row["words"]),
            "Attributes named": str(row["named"]) if row["named"] else "none",
            "Share of the strongest weights": percent(row["share_of_strongest"], 0),
            "Same direction": percent(row["same_direction"], 0),
            "State": "used" if is_missing(row["undefined"]) else reason_text(str(row["undefined"])),
        }
        for row in frame.to_dict("records")
    ]
    note = (
        "Beside the weights that predict the training labels from the judge's own attribute reads. The texts "
        "are files to read and to edit: data/06_models/rubric_texts."
    )
    return [_table("rubric-table", "What the rubrics say", note, rows, frame)]


def _reliability(tables: Tables, simulated: bool) -> list[Block]:
    summary = _own(tables, "reweighting_calibration", simulated)
    curve = _own(tables, "reweighting_reliability", simulated)
    if summary is None or curve is None:
        return []
    rows = [
        {
            "Source": source_name(row["source"]),
            "Judge": str(row["judge_id"]),
            "Labels": _labels(row["budget"]),
            "Brier score": f"{row['brier']:.3f}"
            + (
                ""
                if is_missing(row["brier_low"])
                else f"\n({row['brier_low']:.3f} to {row['brier_high']:.3f})"
            ),
            "Calibration error": f"{row['calibration_error']:.3f}",
            "If it were calibrated": f"{row['expected_if_calibrated']:.3f}",
            "Pairs": str(row["n_test"]),
        }
        for row in summary.to_dict("records")
    ]
    note = (
        "Whether a reweighting's probability means what it says, on held-out pairs. Brier score: a constant "
        "one half has .25. The calibration error is biased upwards; beside it what a calibrated model "
        "would show."
    )
    block = _table("reliability-table", "Probability of a reweighting", note, rows, summary)
    full = curve[curve["budget"] == _FULL]
    alternative = "Said probability against observed share, a line a judge and source; sizes say the n."
    title = "Does a reweighting's probability mean what it says?"
    return [figure_block("reliability", title, note, alternative, figures.reliability(full), block)]


def _training(tables: Tables, simulated: bool) -> list[Block]:
    """Return a row a fine-tuned judge: what it was trained on, what was left out, and whether it learned."""
    log = some(tables, "sft_training_log")
    if log is None:
        return []
    log = log[log["source"].str.startswith("SIMULATED") == simulated]
    rows = []
    some_elsewhere = "pairs_held_out_elsewhere" in log and bool(log["pairs_held_out_elsewhere"].any())
    for judge, part in log.groupby("judge_id", sort=False):
        passes = part.sort_values("epoch").to_dict("records")
        last = passes[-1]
        ends = [passes[0], last] if len(passes) > 1 else [last]
        elsewhere = int(last.get("pairs_held_out_elsewhere", 0))
        rows.append(
            {
                "Judge": str(judge),
                "Source": source_name(last["source"]),
                "Pairs": str(last["pairs"]),
                "Left out, above the cap": f"{last['pairs_over_cap']} (cap {last['token_cap']:,} tokens)",
                **({"Left out, held out elsewhere": str(elsewhere)} if some_elsewhere else {}),
                "Longest prompt": f"{last['longest_prompt']:,} tokens",
                "Passes": str(last["epoch"]),
                "Loss, first to last pass": " to ".join(f"{one['loss']:.3f}" for one in ends),
                "Training prompts right": " to ".join(percent(one["train_accuracy"], 0) for one in ends),
                "Time": _time([one.get("seconds") for one in passes]),
                "Adapter": str(last["adapter_sha256"])[:12],
            }
        )
    if not rows:
        return []
    note = (
        "Loss: cross-entropy of the verdict token in nats, where .693 is a coin; right: more probable than "
        "the other label. Both as seen while training. A pair above the cap is left out whole, never cut. "
        "Time: of all passes, on the machine that trained."
    )
    if some_elsewhere:
        note += " Held out elsewhere: a held-out pair, of whatever source, has the same question."
    return [_table("training-table", "What fine-tuning learned from", note, rows, log)]


def _time(seconds: Sequence[Any]) -> str:
    """Return the sum of some seconds in minutes, or a dash where one of them is not known."""
    if any(is_missing(value) for value in seconds):
        return "–"
    total = sum(map(float, seconds))
    return f"{total / 60:,.1f} min" if total >= 60 else f"{total:.0f} s"


def _recovery(tables: Tables) -> list[Block]:
    frame = some(tables, "reweighting_recovery")
    if frame is None:
        return []
    rows = []
    for planted, part in frame.groupby("planted", sort=False):
        below = part["below_planted"]
        above = (part["delta_low"] > 0).sum()
        rows.append(
            {
                "Planted": _PLANTED[str(planted)],
                "Cells": f"{part['judge_id'].nunique()} x {part['source'].nunique()}",
                "Spearman, least and mean": "–"
                if part["spearman"].isna().all()
                else f"{part['spearman'].min():.3f}, {part['spearman'].mean():.3f}",
                "Accuracy": f"{percent(part['accuracy_base'].mean())} to {percent(part['accuracy'].mean())}",
                "Best possible": percent(part["accuracy_planted"].mean()),
                "Below the best, most and mean (points)": f"{below.max():.1f}, {below.mean():.1f}",
                "Gain, mean (points)": f"{part['delta'].mean():+.1f}",
                "Gains above 0": f"{above} of {part['delta_low'].notna().sum()}",
            }
        )
    note = (
        "Reweighting with all labels, every judge on every source. Best possible: the planted weights on the "
        "same reads of the same held-out pairs. By chance 2.5 % of the intervals lie above 0 where nothing "
        "can be gained."
    )
    title = "What was planted, and what reweighting finds"
    return [_table("recovery-table", title, note, rows, frame)]


def _missing(tables: Tables) -> list[Block]:
    """Say what could not be adapted, once a message, with the command that would bring it."""
    notes = some(tables, "adaptation_notes")
    if notes is None:
        return []
    blocks: list[Block] = []
    plain: list[str] = []
    for message, part in notes.groupby("message", sort=False):
        where = ", ".join(
            dict.fromkeys(
                " on ".join(
                    source_name(row[name]) for name in ("judge_id", "source") if not is_missing(row[name])
                )
                for row in part.to_dict("records")
            )
        )
        names = [_METHODS.get(str(m), str(m)) for m in part["method"] if not is_missing(m)]
        methods = ", ".join(dict.fromkeys(names))
        text = f"{methods}: {message}" if methods else str(message).capitalize()
        text += f" ({where})." if where else "."
        command = part["command"].iloc[0]
        if is_missing(command) or not command:
            plain.append(text)
        else:
            blocks.append(Missing(f"{text[:-1]}:", str(command)))
    if plain:
        blocks.insert(0, Prose(tuple(plain)))
    return blocks
