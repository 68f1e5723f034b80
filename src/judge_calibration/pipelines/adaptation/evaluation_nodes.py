"""Nodes of the pipeline `adaptation` that say what adaptation gains, changes, takes and lacks."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.adapt.adaptation_costs import (
    Usage,
    adaptation_costs,
    training_usage,
    usage_of,
    with_seconds,
)
from judge_calibration.adapt.adaptation_notes import adaptation_notes
from judge_calibration.adapt.advice import advise
from judge_calibration.adapt.before_after import BASE, JOINT, SIMULATED, changes, hits_of
from judge_calibration.adapt.gains import compare_methods, measure_gains, sample_efficiency
from judge_calibration.adapt.held_out import ALL, of_source
from judge_calibration.adapt.planted_weights import weight_recovery
from judge_calibration.adapt.reweighting_panel import prediction_hits
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.options.asking import PriceOptions
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
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
    rubric_diagnostics: pd.DataFrame,
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
    table = _with_training(gains.table, fits, training_subsets, sft_training_log, rubric_diagnostics)
    curves = _curves(real, reweighting_fits, sizes, training_subsets, sft_training_log)
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
    table: pd.DataFrame,
    fits: pd.DataFrame,
    subsets: pd.DataFrame,
    log: pd.DataFrame,
    rubrics: pd.DataFrame,
) -> pd.DataFrame:
    """Add the number of training pairs, and rows for reweightings that could not be made.

    Of a rubric these are the pairs that its writer used: a model was shown so many.
    """
    trained = log[log["resample"] == 0].groupby(["source", "budget"])["pairs"].max().to_dict()
    frozen = subsets[subsets["resample"] == 0]
    full = frozen.groupby("source").size().to_dict()
    known = {
        (row["judge_id"], row["source"], row["budget"]): row
        for row in fits[["judge_id", "source", "budget", "n_train"]].to_dict("records")
    }

    used = {
        (row["judge_id"], row["source"], row["budget"]): int(row["n_train"])
        for row in rubrics[rubrics["resample"] == 0].to_dict("records")
    }

    def count(row: dict[Any, Any]) -> int:
        fit = known.get((row["judge_id"], row["source"], row["budget"]))
        if row["method"] == REWEIGHTING and fit is not None:
            return int(fit["n_train"])
        if row["method"] == RUBRIC and (row["judge_id"], row["source"], row["budget"]) in used:
            return used[row["judge_id"], row["source"], row["budget"]]
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


def _curves(
    real: pd.DataFrame, fits: pd.DataFrame, sizes: pd.DataFrame, subsets: pd.DataFrame, log: pd.DataFrame
) -> pd.DataFrame:
    """Return one row a trained judge: reweightings from their fits, others from their hits."""
    columns = ["method", "simulated", "judge_id", "source", "budget", "resample", "accuracy_base", "accuracy"]
    parts = [fits.assign(method=REWEIGHTING)[[*columns, "n_train"]]]
    full = dict(zip(sizes["source"], sizes["train_pairs"], strict=True))
    # What a joint judge learned from: every source but those of the SIMULATED panel.
    together = [int(full[str(source)]) for source in subsets["source"].unique()]
    trained = log.groupby(["source", "budget", "resample"])["pairs"].max().to_dict()

    def there(row: dict[Any, Any]) -> list[int]:
        return together if row["method"] == JOINT else [int(full.get(row["source"], 0))]

    def used(row: dict[Any, Any]) -> int:
        learned = ALL if row["method"] == JOINT else row["source"]
        if row["method"] in (SFT, JOINT) and (learned, row["budget"], row["resample"]) in trained:
            return int(trained[learned, row["budget"], row["resample"]])
        return sum(size if row["budget"] == FULL else min(size, int(row["budget"])) for size in there(row))

    asked = real[real["method"] != REWEIGHTING]
    if len(asked):
        keys = ["method", "simulated", "judge_id", "source", "budget", "resample"]
        means = asked.groupby(keys, dropna=False, sort=False)[["base_right", "right"]].mean().reset_index()
        means = means.rename(columns={"base_right": "accuracy_base", "right": "accuracy"})[columns]
        parts.append(means.assign(n_train=[used(row) for row in means.to_dict("records")]))
    out = pd.concat(parts, ignore_index=True)
    return out.assign(
        all_pairs=[
            row["budget"] == FULL or all(size <= int(row["budget"]) for size in there(row))
            for row in out.to_dict("records")
        ]
    )


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
    adapted_attempts: pd.DataFrame,
    rubric_calls: pd.DataFrame,
    rubric_answers: pd.DataFrame,
    rubric_attempts: pd.DataFrame,
    attribute_calls: pd.DataFrame,
    attribute_answers: pd.DataFrame,
    attribute_attempts: pd.DataFrame,
    training_subsets: pd.DataFrame,
    sft_judges: list[dict[str, Any]],
    sft_training_log: pd.DataFrame,
    rubric_judges: list[dict[str, Any]],
    rubrics: list[dict[str, Any]],
    options: AdaptationOptions,
    judging: JudgingOptions,
    attributes: AttributesOptions,
) -> pd.DataFrame:
    """Return what adapting took and what judging takes, in tokens, money and seconds, for real judges.

    What a pair takes is the mean over pairs of the source, in both orders once: another source's pairs may
    be twice as long, and repetitions are for C and T. Reading attributes costs reweighting (all reads of the
    training pairs, and of every new pair) and a rubric from weights (of the training pairs). Fine-tuning
    takes the prompt tokens of all its epochs. A judge that was trained on all sources together took that
    training and all those labels at each source. Only the frozen ranking of the training pairs counts.
    """
    real = adaptation_table[
        ~adaptation_table["simulated"].astype(bool) & adaptation_table["accuracy"].notna()
    ]
    frozen = training_subsets[training_subsets["resample"] == 0]
    prices = {one.judge_id: one.transport.price for one in attributes.judging.judges}
    reads = _Reads(attribute_calls, with_seconds(attribute_answers, attribute_attempts), prices)
    judged = with_seconds(adapted_answers, adapted_attempts)
    written = with_seconds(rubric_answers, rubric_attempts)
    by_place = {(one["judge_id"], one["source"], one["budget"], one["resample"]): one for one in rubrics}
    once = adapted_calls[adapted_calls["repetition"] == 0]
    everywhere = sorted({*frozen["source"].astype(str), *held_out_pairs["source"].astype(str)})
    adapt: dict[tuple[str, str, str, str], Usage] = {}
    per_pair: dict[tuple[str, str, str, str], Usage] = {}
    for entry in adapted_judges(sft_judges, rubric_judges):
        if entry["resample"] not in (None, 0):
            continue
        spec = JudgeSpec.model_validate(entry["judge"])
        asked = once[once["judge_id"] == spec.judge_id]
        joint = entry["method"] == SFT and entry["source"] == ALL
        method = JOINT if joint else entry["method"]
        for source in everywhere if entry["source"] == ALL else [entry["source"]]:
            place = (method, entry["base"], source, entry["budget"] or "none")
            calls = asked[asked["pair_id"].isin(of_source(held_out_pairs, source)["pair_id"])]
            used = usage_of(calls, judged, spec.transport.price)
            per_pair[place] = used.each(calls["pair_id"].nunique())
            if entry["method"] == SFT:
                adapt[place] = _training(sft_training_log, spec.judge_id, spec.transport.price)
            if entry["method"] == RUBRIC:
                chosen = _labelled(frozen, source, entry["budget"])
                rubric = by_place[entry["base"], source, entry["budget"], entry["resample"]]
                if rubric["writer"] == "weights":
                    adapt[place] = reads.of_judge(entry["base"], chosen)
                else:
                    own = rubric_calls[rubric_calls["pair_id"] == rubric["name"]]
                    price = judging.judge(rubric["writer"]).transport.price if len(own) else None
                    adapt[place] = usage_of(own, written, price)
    labels = {}
    for row in real.to_dict("records"):
        method, judge, source, budget = (str(row[n]) for n in ("method", "judge_id", "source", "budget"))
        chosen = _labelled(frozen, None if method == JOINT else source, budget)
        labels[method, source, budget] = len(chosen)
        if method == REWEIGHTING:
            place = (REWEIGHTING, judge, source, budget)
            adapt[place] = reads.of_judge(judge, chosen)
            here = set(pairs.loc[pairs["source"] == source, "pair_id"])
            per_pair[place] = reads.of_a_pair(judge, here)
    return adaptation_costs(real, labels, adapt, per_pair, options.work_pairs)


def _labelled(frozen: pd.DataFrame, source: str | None, budget: str) -> set[str]:
    """Return the training pairs that a budget takes of a source, or of each source where it is None."""
    own = frozen if source is None else frozen[frozen["source"] == source]
    return set(own["pair_id"] if budget == FULL else own.loc[own["rank"] < int(budget), "pair_id"])


def _training(log: pd.DataFrame, judge: str, price: PriceOptions | None) -> Usage:
    steps = log[log["judge_id"] == judge]
    # Missing, not 0, where an epoch's time was not kept.
    seconds = float(steps["seconds"].sum(skipna=False)) if "seconds" in steps.columns else np.nan
    return training_usage(float(steps["prompt_tokens"].sum()), seconds, price)


class _Reads:
    """The attribute reads of all judges: a judge reads a pair's attribute once in each order."""

    def __init__(
        self, calls: pd.DataFrame, answers: pd.DataFrame, prices: dict[str, PriceOptions | None]
    ) -> None:
        self._prices = prices
        # Apart by judge once: each is looked up for every source and budget.
        judge = answers["call_id"].map(calls.drop_duplicates("call_id").set_index("call_id")["judge_id"])
        self._calls = {str(name): own for name, own in calls.groupby("judge_id")}
        self._answers = {str(name): own for name, own in answers.groupby(judge)}
        self._none = calls.head(0), answers.head(0)

    def of_judge(self, judge: str, pairs: set[str]) -> Usage:
        """Return what a judge's reads of these pairs took."""
        answers = self._answers.get(judge, self._none[1])
        return usage_of(self._own(judge, pairs), answers, self._prices.get(judge))

    def of_a_pair(self, judge: str, pairs: set[str]) -> Usage:
        """Return what they took for one pair."""
        return self.of_judge(judge, pairs).each(int(self._own(judge, pairs)["pair_id"].nunique()))

    def _own(self, judge: str, pairs: set[str]) -> pd.DataFrame:
        calls = self._calls.get(judge, self._none[0])
        return calls[calls["pair_id"].isin(pairs)]


def note_gaps(
    adaptation_table: pd.DataFrame,
    split_report: pd.DataFrame,
    training_subsets: pd.DataFrame,
    held_out_pairs: pd.DataFrame,
    controlled_pairs: pd.DataFrame,
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
        controlled_pairs,
        tuple(dict.fromkeys(reads["judge_id"])),
        json.loads(json.dumps(rubrics)),
        any(entry["method"] != BASE for entry in sft_judges),
        options,
    )
