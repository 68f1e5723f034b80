"""Nodes of the pipeline `adaptation` that say what adaptation gains, changes, takes and lacks."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.adapt.adaptation_costs import Usage, adaptation_costs, usage_of
from judge_calibration.adapt.adaptation_notes import adaptation_notes
from judge_calibration.adapt.advice import advise
from judge_calibration.adapt.before_after import BASE, JOINT, SIMULATED, changes, hits_of
from judge_calibration.adapt.gains import compare_methods, measure_gains, sample_efficiency
from judge_calibration.adapt.held_out import ALL, of_source
from judge_calibration.adapt.planted_weights import weight_recovery
from judge_calibration.adapt.reweighting_panel import prediction_hits
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.judging import JudgingOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.pipelines.adaptation.nodes import METHOD as REWEIGHTING
from judge_calibration.pipelines.adaptation.rubric_nodes import METHOD as RUBRIC
from judge_calibration.pipelines.adaptation.rubric_nodes import adapted_judges

FULL = "full"
SFT = "sft"


class Evaluation(NamedTuple):
    """What `evaluate_adaptation` gives, in the order of the node's outputs."""

    adaptation_table: pd.DataFrame
    adaptation_macro: pd.DataFrame
    sample_efficiency: pd.DataFrame
    method_comparison: pd.DataFrame
    adaptation_advice: pd.DataFrame


def evaluate_adaptation(
    adapted_verdicts: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    reweighting_fits: pd.DataFrame,
    reweighting_predictions: pd.DataFrame,
    training_subsets: pd.DataFrame,
    simulated_panel: pd.DataFrame,
    sft_training_log: pd.DataFrame,
    options: AdaptationOptions,
) -> Evaluation:
    """Measure what every method gains on the common held-out pairs, beside the SIMULATED panel.

    Returns
    -------
    adaptation_table : pandas.DataFrame
        The matrix: method, judge_id, protocol, source, budget, n_train, n_test, accuracies, delta in points
        with its paired interval, undefined, simulated. A reweighting that could not be fitted has a row with
        its reason. The n_train of a joint judge counts the pairs of all sources; its budget is of each.
    adaptation_macro, sample_efficiency, method_comparison, adaptation_advice : pandas.DataFrame
        As in :mod:`judge_calibration.adapt.gains` and :mod:`judge_calibration.adapt.advice`.
    """
    real = hits_of(adapted_verdicts, held_out_pairs)
    frozen = real[real["resample"].fillna(0) == 0].drop(columns="resample")
    planted = reweighting_predictions[reweighting_predictions["judge_id"].str.startswith(SIMULATED)]
    simulated = prediction_hits(planted, REWEIGHTING).assign(simulated=True)
    parts = [part for part in (frozen, simulated) if len(part)]
    hits = pd.concat(parts, ignore_index=True) if parts else simulated
    gains = measure_gains(hits, options.bootstrap, options.seed)
    sizes = _sizes(training_subsets, simulated_panel)
    fits = reweighting_fits[reweighting_fits["resample"] == 0]
    table = _with_training(gains.table, fits, training_subsets, sft_training_log)
    curves = _curves(real, reweighting_fits)
    comparison = compare_methods(frozen, options.bootstrap, options.seed)
    return Evaluation(
        table,
        gains.macro,
        sample_efficiency(curves),
        comparison,
        advise(gains, sizes, curves, options.seed),
    )


def _sizes(subsets: pd.DataFrame, simulated_panel: pd.DataFrame) -> pd.DataFrame:
    """Return the number of labelled training pairs of each source, the SIMULATED ones included."""
    frozen = subsets[subsets["resample"] == 0].groupby("source").size()
    one = simulated_panel[simulated_panel["judge_id"] == simulated_panel["judge_id"].iloc[0]]
    planted = one[one["split"] == "train"].groupby("source").size()
    both = pd.concat([frozen, planted])
    return pd.DataFrame({"source": both.index.astype(str), "train_pairs": both.to_numpy(int)})


def _with_training(
    table: pd.DataFrame, fits: pd.DataFrame, subsets: pd.DataFrame, log: pd.DataFrame
) -> pd.DataFrame:
    """Add the number of training pairs, and rows for reweightings that could not be made."""
    trained = log[log["resample"] == 0].groupby(["source", "budget"])["pairs"].max().to_dict()
    frozen = subsets[subsets["resample"] == 0]
    full = frozen.groupby("source").size().to_dict()
    known = {
        (row["judge_id"], row["source"], row["budget"]): row
        for row in fits[["judge_id", "source", "budget", "n_train"]].to_dict("records")
    }

    def count(row: dict[Any, Any]) -> int:
        fit = known.get((row["judge_id"], row["source"], row["budget"]))
        if row["method"] == REWEIGHTING and fit is not None:
            return int(fit["n_train"])
        learned = ALL if row["method"] == JOINT else row["source"]
        if row["method"] in (SFT, JOINT) and (learned, row["budget"]) in trained:
            # Fewer than the budget where pairs were over the cap of tokens.
            return int(trained[learned, row["budget"]])
        sizes = full.values() if row["method"] == JOINT else [int(full.get(row["source"], 0))]
        return sum(size if row["budget"] == FULL else min(size, int(row["budget"])) for size in sizes)

    def wanted(row: dict[Any, Any]) -> int:
        # A joint judge's budget is so many of each source.
        if row["budget"] == FULL:
            return 0
        return int(row["budget"]) * (len(full) if row["method"] == JOINT else 1)

    out = table.assign(n_train=[count(row) for row in table.to_dict("records")])
    failed = fits[fits["undefined"].notna()]
    if len(failed):
        rows = failed[
            ["judge_id", "source", "budget", "n_train", "n_test", "accuracy_base", "undefined", "simulated"]
        ].assign(method=REWEIGHTING)
        out = pd.concat([out, rows], ignore_index=True)
    out["fewer_than_budget"] = [row["n_train"] < wanted(row) for row in out.to_dict("records")]
    columns = ["method", "judge_id", "protocol", "source", "budget", "n_train", "fewer_than_budget"]
    rest = [name for name in table.columns if name not in columns]
    return out[columns + rest].astype({"n_train": "Int64", "n_test": "Int64", "n_clusters": "Int64"})


def _curves(real: pd.DataFrame, fits: pd.DataFrame) -> pd.DataFrame:
    """Return one row a trained judge: reweightings from their fits, others from their hits."""
    columns = ["method", "simulated", "judge_id", "source", "budget", "resample", "accuracy_base", "accuracy"]
    parts = [fits.assign(method=REWEIGHTING)[columns]]
    asked = real[real["method"] != REWEIGHTING]
    if len(asked):
        keys = ["method", "simulated", "judge_id", "source", "budget", "resample"]
        means = asked.groupby(keys, dropna=False, sort=False)[["base_right", "right"]].mean().reset_index()
        parts.append(means.rename(columns={"base_right": "accuracy_base", "right": "accuracy"})[columns])
    return pd.concat(parts, ignore_index=True)


def compare_with_planted(
    simulated_panel: pd.DataFrame,
    planted_weights: pd.DataFrame,
    reweighting_coefficients: pd.DataFrame,
    adaptation_table: pd.DataFrame,
) -> pd.DataFrame:
    """Say what reweighting found of the weights that were planted in the SIMULATED panel."""
    planted = adaptation_table[
        (adaptation_table["method"] == REWEIGHTING) & adaptation_table["judge_id"].str.startswith(SIMULATED)
    ]
    return weight_recovery(simulated_panel, planted_weights, reweighting_coefficients, planted)


def measure_changes(
    adapted_verdicts: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    controlled_pairs: pd.DataFrame,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Say what adaptation does to T, C, phi and A, to controlled changes, and to the liking for length."""
    return changes(adapted_verdicts, held_out_pairs, options, controlled_pairs)


def add_up_adaptation(
    adaptation_table: pd.DataFrame,
    pairs: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    adapted_calls: pd.DataFrame,
    adapted_answers: pd.DataFrame,
    rubric_calls: pd.DataFrame,
    rubric_answers: pd.DataFrame,
    attribute_calls: pd.DataFrame,
    attribute_answers: pd.DataFrame,
    training_subsets: pd.DataFrame,
    sft_judges: list[dict[str, Any]],
    sft_training_log: pd.DataFrame,
    rubric_judges: list[dict[str, Any]],
    rubrics: list[dict[str, Any]],
    options: AdaptationOptions,
    judging: JudgingOptions,
    attributes: AttributesOptions,
) -> pd.DataFrame:
    """Return what adapting took and what judging takes, in tokens and money, for real judges.

    What a pair takes is the mean over pairs of the source: of another one they may be twice as long.
    Reading attributes costs reweighting (all reads of the training pairs, and of every new pair) and a
    rubric from weights (of the training pairs). Fine-tuning takes the prompt tokens of all its epochs; what
    they cost is not known.
    """
    real = adaptation_table[
        ~adaptation_table["simulated"].astype(bool) & adaptation_table["accuracy"].notna()
    ]
    frozen = training_subsets[training_subsets["resample"] == 0]
    labels, subsets = {}, {}
    for source, part in frozen.groupby("source"):
        for budget in (*map(str, options.budgets), FULL):
            taken = part if budget == FULL else part[part["rank"] < int(budget)]
            subsets[str(source), budget] = set(taken["pair_id"])
            labels[str(source), budget] = len(taken)
    adapt: dict[tuple[str, str, str, str], Usage] = {}
    per_pair: dict[tuple[str, str, str, str], Usage] = {}
    prices = {one.judge_id: one.transport.price for one in attributes.judging.judges}
    writers = {one["name"]: one["writer"] for one in rubrics}
    by_judge = {one["judge"]["judge_id"]: one for one in adapted_judges(sft_judges, rubric_judges)}
    for name, entry in by_judge.items():
        asked = adapted_calls[adapted_calls["judge_id"] == name]
        base = entry["base"]
        sources = [entry["source"]] if entry["source"] != "all" else sorted(set(frozen["source"]))
        for source in sources:
            budget = entry["budget"] or "none"
            calls = asked[asked["pair_id"].isin(of_source(held_out_pairs, source)["pair_id"])]
            used = usage_of(calls, adapted_answers, _price(entry["judge"]))
            per_pair[entry["method"], base, source, budget] = _each(used, calls["pair_id"].nunique())
            if entry["method"] == SFT:
                steps = sft_training_log[sft_training_log["judge_id"] == name]
                adapt[SFT, base, source, budget] = Usage(0.0, float(steps["prompt_tokens"].sum()), np.nan)
            if entry["method"] == RUBRIC:
                own = rubric_calls[rubric_calls["pair_id"] == name]
                writer = writers.get(name, "")
                price = None
                if len(own) and writer not in ("weights", "person"):
                    price = judging.judge(writer).transport.price
                adapt[RUBRIC, base, source, budget] = (
                    usage_of(own, rubric_answers, price)
                    if writer != "weights"
                    else _reads(attribute_calls, attribute_answers, base, subsets[source, budget], prices)
                )
    for row in real[real["method"] == REWEIGHTING].to_dict("records"):
        place = (REWEIGHTING, row["judge_id"], row["source"], row["budget"])
        chosen = subsets.get((row["source"], row["budget"]), set())
        adapt[place] = _reads(attribute_calls, attribute_answers, row["judge_id"], chosen, prices)
        here = pairs.loc[pairs["source"] == row["source"], "pair_id"]
        own = attribute_calls[
            (attribute_calls["judge_id"] == row["judge_id"]) & attribute_calls["pair_id"].isin(here)
        ]
        whole = usage_of(own, attribute_answers, prices.get(row["judge_id"]))
        per_pair[place] = _each(whole, own["pair_id"].nunique())
    return adaptation_costs(real, labels, adapt, per_pair, options.work_pairs)


def _price(judge: dict[str, Any]) -> Any:
    from judge_calibration.options.judging import JudgeSpec

    return JudgeSpec.model_validate(judge).transport.price


def _each(used: Usage, pairs: int) -> Usage:
    if not pairs:
        return Usage(np.nan, np.nan, np.nan)
    return Usage(*(value / pairs for value in used))


def _reads(
    calls: pd.DataFrame, answers: pd.DataFrame, judge: str, pairs: set[str], prices: dict[str, Any]
) -> Usage:
    own = calls[(calls["judge_id"] == judge) & calls["pair_id"].isin(pairs)]
    return usage_of(own, answers, prices.get(judge))


def note_gaps(
    adaptation_table: pd.DataFrame,
    split_report: pd.DataFrame,
    training_subsets: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    reads: pd.DataFrame,
    rubrics: list[dict[str, Any]],
    sft_judges: list[dict[str, Any]],
    options: AdaptationOptions,
) -> pd.DataFrame:
    """Say what could not be adapted, why, and what would bring it."""
    return adaptation_notes(
        adaptation_table,
        split_report,
        training_subsets,
        held_out_pairs,
        tuple(dict.fromkeys(reads["judge_id"])),
        json.loads(json.dumps(rubrics)),
        any(entry["method"] != BASE for entry in sft_judges),
        options,
    )
