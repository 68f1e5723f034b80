"""The whole report, from result tables: the answer first, then what it rests on, then what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.report import sections
from judge_calibration.report.adaptation_section import adaptation_section
from judge_calibration.report.blocks import Block, Missing, Section, TableBlock
from judge_calibration.report.page import render_page
from judge_calibration.report.share_tables import share_block
from judge_calibration.report.shortening import shortened
from judge_calibration.report.wording import count_noun, reason_text

MOST_ANSWERS = 12
JUDGE = "kedro run --pipeline judging"

_POSITIONS = {
    "first_share": "Picks the first",
    "second_share": "Picks the second",
    "contradiction": "Orders contradict",
    "first_both": "First in both orders",
    "second_both": "Second in both orders",
}
_MANIPULATIONS = {
    "better_wins": "Better side wins in both orders",
    "worse_wins": "Worse side wins in both orders",
    "better_wins_read": "Better side wins, single reads",
    "modified_wins": "Modified side wins in both orders",
    "original_wins": "Original side wins in both orders",
    "modified_minus_original": "Modified minus original",
    "tie_both": "Tie in both orders",
    "identity_first_share": "Same answer twice: picks the first",
    "identity_false_win": "Same answer twice: names a winner",
}


def build_report(
    tables: Mapping[str, pd.DataFrame], instruments: Mapping[str, Any], options: ReportingOptions
) -> str:
    """Return the report page.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Result tables under their dataset names. ``trust_table``, ``outcome_table``, ``pairs`` and
        ``judged_pairs`` have to be there; a section whose table is absent or empty says what would bring it.
    instruments : mapping
        instrument_id to everything that identifies it; empty for verdicts from logs.
    options : ReportingOptions
    """
    trust, outcomes = tables["trust_table"], tables["outcome_table"]
    answers = sections.answers(trust, outcomes, options.regions)
    parts = [
        _authority(tables),
        sections.trust_section(trust, options.regions),
        _positions(tables),
        _manipulations(tables),
        sections.slices_section(trust),
        _people(tables),
        _formats(tables),
        _variance(tables),
        _remedies(tables),
        _confidence(tables),
        sections.outcomes_section(outcomes),
        _costs(tables),
        _attributes(tables),
        adaptation_section(tables),
        _data(tables),
        _self_test(tables),
        sections.instrument_section(instruments),
        sections.limits_section(sections.LIMITS),
    ]
    title = "How far can this judge be trusted?"
    if len(answers) > MOST_ANSWERS:
        more = (
            f"These are the {MOST_ANSWERS} most trustworthy of {len(answers)} cells (judge, protocol, "
            "temperature and source); the table below has all of them."
        )
        parts.insert(0, Section("all-cells", "More cells", more, []))
    return render_page(
        title, _summary(tables, trust), answers[:MOST_ANSWERS], parts, _banners(tables, trust, options)
    )


def _summary(tables: Mapping[str, pd.DataFrame], trust: pd.DataFrame) -> str:
    cells = len(sections.whole_rows(trust))
    pairs, judged = tables["pairs"], tables["judged_pairs"]
    shown = f"{count_noun(cells, 'cell')} (a judge with one prompt at one temperature)"
    if judged.empty:
        logged = count_noun(len(pairs), "pair")
        return f"{shown}, from logs over {logged}. Nothing was asked of a model in this run."
    lengths = [_median_words(frame) for frame in (judged, pairs)]
    return (
        f"{shown} on {count_noun(len(judged), 'pair')} of {count_noun(len(pairs), 'pair')}, drawn by hash "
        "and spread over manipulations, domains and difficulties. Median answer: "
        f"{lengths[0]:,.0f} words among the drawn, {lengths[1]:,.0f} among all."
    )


def _median_words(pairs: pd.DataFrame) -> float:
    texts = pd.concat([pairs["response_a"], pairs["response_b"]]).dropna()
    return float(texts.map(lambda text: len(str(text).split())).median())


def _banners(tables: Mapping[str, pd.DataFrame], trust: pd.DataFrame, options: ReportingOptions) -> list[str]:
    declared = list(options.banners)
    simulated = any(
        bool(frame.get("simulated", pd.Series(dtype=bool)).any())
        for frame in (trust, tables.get("labels", pd.DataFrame()))
    )
    if simulated:
        declared.insert(
            0, "SIMULATED: judges or labels on this page were made by a program to show how it looks."
        )
    return declared


def _some(tables: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame | None:
    frame = tables.get(name)
    return None if frame is None or frame.empty else frame


def _plain(
    id: str, title: str, note: str, frame: pd.DataFrame, columns: list[str] | None = None
) -> TableBlock:
    chosen = frame if columns is None else frame[[name for name in columns if name in frame.columns]]
    shown, more = shortened(sections.readable(chosen))
    return TableBlock(id, title, f"{note} {more}".strip(), shown, frame)


def _positions(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "Every pair is shown in both orders; what a judge picks must not depend on which answer comes first."
    )
    frame = _some(tables, "position_table")
    if frame is None:
        return Section("position", "Order and position", lead, [Missing("It takes verdicts:", JUDGE)])
    block = share_block(
        "position-table",
        "Position preferences",
        "Shares of decisive verdicts for each place, and of pairs whose two orders name opposite answers.",
        frame[frame["slice_by"] == "all"],
        _POSITIONS,
    )
    return Section("position", "Order and position", lead, [block])


def _manipulations(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "In controlled pairs one answer was changed in one declared way. A change of length or "
        "style must not win; "
        "an error or a citation that supports nothing must lose."
    )
    frame = _some(tables, "manipulation_table")
    if frame is None:
        what = "Controlled pairs come with the bank; none were judged here:"
        return Section("manipulation", "Controlled changes", lead, [Missing(what, JUDGE)])
    whole = frame[frame["slice_by"].isin(("manipulation", "manipulation*variant"))]
    block = share_block(
        "manipulation-table",
        "What the controlled changes do",
        "Shares of pairs unless said otherwise; by difficulty in the download.",
        whole,
        _MANIPULATIONS,
        ("slice",),
    )
    return Section("manipulation", "Controlled changes", lead, [block])


def _people(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = "A judge is read beside people: how often it agrees with a reference, and how often people agree."
    blocks: list[Block] = []
    progress = _some(tables, "label_progress")
    frame = _some(tables, "agreement_table")
    if frame is not None:
        whole = frame[(frame["slice_by"] == "all") & (frame["view"].fillna("strict") == "strict")]
        statistics = {
            "agreement": "Raw agreement",
            "raw_agreement": "Raw agreement",
            "kappa": "Cohen's kappa",
            "ac1": "Gwet's AC1",
            "alpha": "Krippendorff's alpha",
        }
        found = {name: title for name, title in statistics.items() if name in set(whole["statistic"])}
        blocks.append(
            share_block(
                "agreement-table",
                "Agreement",
                "Against each kind of reference apart: human, AI-made, benchmark, constructed. "
                "Values are shares "
                "or coefficients, not percentages.",
                whole,
                found,
                tuple(name for name in ("comparison", "against") if name in whole.columns),
                share=False,
            )
        )
    for name, title, note in (
        (
            "human_agreement",
            "People with people",
            "By kind of label: human labels and SIMULATED ones never mix.",
        ),
        ("human_ceiling", "The human ceiling", "What a judge's agreement is read against."),
    ):
        people = _some(tables, name)
        if people is not None:
            blocks.append(_plain(name.replace("_", "-"), title, note, people[people["slice_by"] == "all"]))
    powered = _some(tables, "prediction_powered")
    if powered is not None:
        blocks.append(_powered(powered))
    confusion = _some(tables, "confusion_table")
    if confusion is not None:
        whole = confusion[confusion["slice_by"] == "all"]
        blocks.append(_plain("confusion-table", "Confusion matrices", "Counts and row percentages.", whole))
    labelled = 0 if progress is None else int(progress["labelled"].sum())
    if not labelled:
        what = (
            "No human labels are there yet: blinded packets were written under data/. Name the "
            "label files in the "
            "parameters of `annotation`, then"
        )
        blocks.append(Missing(what, "kedro run --pipelines annotation,reporting"))
    return Section("people", "Agreement with people and references", lead, blocks)


def _powered(frame: pd.DataFrame) -> TableBlock:
    simulated = "SIMULATED: " if (frame["label_kind"] == "simulated").any() else ""
    note = (
        "Few human and many judge labels together (PPI++): the judge's bias, measured on the pairs that "
        "people labelled, is taken out. Only where those pairs were drawn at random and all of "
        "them are labelled."
    )
    columns = [
        *("source", "judge_id", "protocol", "constraint", "temperature", "label_kind", "estimand"),
        *("product", "other_product", "against", "value", "low", "high", "human_only", "judge_only"),
        *("judge_bias", "n_labelled", "n_pairs", "n_without_chance", "reason"),
    ]
    return _plain("powered-table", f"{simulated}Win rates by people and judge together", note, frame, columns)


def _authority(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "A judge may influence a decision only in slices where every floor of a declared rule is cleared by "
        "the lower bound of its interval, with enough base tasks."
    )
    frame = _some(tables, "authority")
    if frame is None:
        return Section("authority", "Earned authority", lead, [Missing("It takes verdicts:", JUDGE)])
    slices = ["judge_id", "protocol", "constraint", "temperature", "instrument_id", "slice_by", "slice"]
    rows = []
    for key, part in frame.groupby(slices, dropna=False, sort=False):
        criteria = part[part["criterion"] != "all"]
        rows.append(
            dict(zip(slices, key, strict=True))
            | {
                "verdict": "earned" if bool(part["earned"].all()) else "not earned",
                "why_not": _why_not(criteria),
                "base_tasks": criteria["n_tasks"].max(),
                "tasks_that_would_settle_it": part["tasks_to_settle"].max(),
                "rule": part["rule"].iloc[0],
            }
            | ({"rule_status": part["rule_status"].iloc[0]} if "rule_status" in part.columns else {})
        )
    blocks: list[Block] = []
    if frame["reason"].fillna("").str.contains(_NO_RULE).any():
        what = (
            "No decision rule is declared: the shipped one is an EXAMPLE, and with it no slice is earned. "
            "Declare floors under `reporting.rule` before you look at results (docs/gates.md), then"
        )
        blocks.append(Missing(what, "kedro run --pipeline reporting"))
    shown, more = shortened(sections.readable(pd.DataFrame(rows)))
    note = f"Criteria one by one in the download. {more}".strip()
    blocks.append(TableBlock("authority-table", "By slice", note, shown, frame))
    shift = _some(tables, "calibration_shift")
    if shift is not None:
        note = (
            "Slices, languages and lengths (quartiles of the first set): pairs with human labels beside the "
            "judged ones, and judged ones beside all. never calibrated: only the second set has it."
        )
        blocks.append(_plain("shift-table", "What it was calibrated on, and what it is used on", note, shift))
    return Section("authority", "Earned authority", lead, blocks)


_NO_RULE = "no_declared_rule"


def _why_not(criteria: pd.DataFrame) -> str:
    """Return a slice's failed criteria by reason: "too few tasks: order consistency, ..."."""
    failed: dict[str, list[str]] = {}
    for criterion, reason in zip(criteria["criterion"], criteria["reason"].fillna(""), strict=True):
        # The example rule's own prefix is said once, above the table.
        plain = str(reason).removeprefix(f"{_NO_RULE}; with the example: ")
        if plain:
            failed.setdefault(reason_text(plain), []).append(str(criterion).replace("_", " "))
    return "; ".join(f"{reason}: {', '.join(names)}" for reason, names in failed.items())


def _variance(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "Where verdicts vary: between pairs (wanted), judges, formats, orders and their combinations. "
        "Verdicts are "
        "binary, so this is a linear-probability decomposition."
    )
    blocks: list[Block] = []
    frame = _some(tables, "variance_components")
    if frame is not None:
        columns = [
            *("source", "temperature", "model", "order_as", "component", "variance", "share"),
            *("share_low", "share_high", "at_boundary", "n_verdicts", "n_missing", "solver", "undefined"),
        ]
        note = (
            "Read the rows with order as fixed: as random it has one degree of freedom, and its "
            "interval is wide."
        )
        blocks.append(_plain("variance-table", "Components (G-study)", note, frame, columns))
    anova = _some(tables, "anova_table")
    if anova is not None:
        blocks.append(_plain("anova-table", "Analysis of variance of T", "Judge x format x dataset.", anova))
    study = _some(tables, "d_study")
    if study is not None:
        cheapest = study[study["cheapest"].fillna(False).astype(bool)]
        note = "The cheapest design that reaches the target; all designs in the download."
        if cheapest.empty:
            note = "No design that was tried reaches the target; all designs in the download."
        shown = cheapest if len(cheapest) else study.head(0)
        block = _plain("d-study-table", "Designs (D-study)", note, shown)
        blocks.append(TableBlock(block.id, block.title, block.note, block.shown, study))
    if not blocks:
        blocks.append(Missing("It takes several judges, formats or repetitions:", JUDGE))
    return Section("variance", "Variance", lead, blocks)


def _self_test(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "The instrument tested on planted judges whose numbers are known (SIMULATED): coverage, false "
        "alarms, power."
    )
    missing = Missing("It was not run here:", "kedro run --env selftest --nodes check_instrument")
    frame = _some(tables, "selftest_table")
    return sections.table_section("selftest", "Self-test of the instrument", lead, frame, "", missing)


def _formats(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = "How far the numbers move when only the prompt format, the paradigm or the temperature changes."
    blocks: list[Block] = []
    for name, title, note in (
        (
            "format_dispersion",
            "Format dispersion",
            "Range of T over formats, beside what equal formats would show.",
        ),
        ("paradigms", "Paradigms at equal calls", "Calls a verdict, and T at equal calls."),
        (
            "trust_spread",
            "Spread of T",
            "Each judge's T over its formats and sources: mean, lowest, highest (T by product).",
        ),
        ("temperature_table", "Temperature", "Change of each statistic from the lowest temperature."),
        (
            "repetition_looks",
            "Repetitions that were spared",
            "Each look at a cell: it stopped asking once its C2 was known well enough.",
        ),
    ):
        frame = _some(tables, name)
        if frame is not None:
            blocks.append(_plain(f"{name.replace('_', '-')}", title, note, frame))
    if _some(tables, "format_dispersion") is None:
        blocks.append(Missing("Several prompt formats of one judge come with", "kedro run --env audit"))
    return Section("formats", "Formats, paradigms, temperature", lead, blocks)


def _remedies(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = "What repeating and voting, or asking in both orders, would gain, predicted from the same data."
    frame = _some(tables, "remedies")
    if frame is None:
        return Section("remedies", "Remedies", lead, [Missing("It takes verdicts:", JUDGE)])
    blocks: list[Block] = []
    regions = _some(tables, "regions")
    if regions is not None:
        columns = [
            "source",
            "judge_id",
            "protocol",
            "constraint",
            "temperature",
            "region",
            "sure",
            "remedy",
            "reason",
        ]
        note = "sure: both intervals lie on one side of their threshold."
        blocks.append(_plain("region-table", "Region of each cell", note, regions, columns))
    columns = [
        *(
            "source",
            "judge_id",
            "protocol",
            "constraint",
            "temperature",
            "remedy",
            "votes",
            "calls_per_verdict",
        ),
        *("statistic", "predicted", "low", "high", "verified", "verified_pairs", "verified_reason"),
    ]
    note = "verified: on held-out repetitions, where there are enough."
    blocks.append(_plain("remedy-table", "Predicted and verified", note, frame, columns))
    selective = _some(tables, "selective_table")
    if selective is not None:
        note = "Where the judge may abstain: a threshold with a guaranteed error among kept verdicts."
        part = selective[selective["slice_by"] == "all"]
        blocks.append(_plain("selective-table", "Selective judging", note, part))
    return Section("remedies", "Remedies", lead, blocks)


def _confidence(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = "Confidence is judged apart: a sure judge is not a right one. It never enters T."
    frame = _some(tables, "confidence_table")
    if frame is None:
        what = "No judge here stated a confidence, gave log-probabilities or was repeated:"
        return Section("confidence", "Confidence", lead, [Missing(what, JUDGE)])
    columns = [
        *("source", "judge_id", "protocol", "constraint", "temperature", "confidence", "statistic"),
        *("value", "low", "high", "n_items", "reason"),
    ]
    note = "Stated confidence, log-probability and repeat agreement side by side."
    return Section(
        "confidence", "Confidence", lead, [_plain("confidence-table", "Calibration", note, frame, columns)]
    )


def _costs(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "What the answers used, times the price table in the parameters. An unpriced judge "
        "is unknown, not free."
    )
    missing = Missing("Nothing was asked in this run, so nothing was spent:", JUDGE)
    note = "Shared calls are counted once."
    return sections.table_section("costs", "Costs", lead, _some(tables, "cost_table"), note, missing)


def _attributes(tables: Mapping[str, pd.DataFrame]) -> Section:
    lead = (
        "Which of two answers has more of an attribute, read in both orders; only what both "
        "orders share counts."
    )
    coverage = _some(tables, "attribute_coverage")
    command = "kedro run --env attributes --pipelines data_prep,judging,attributes"
    if coverage is None:
        return Section("attributes", "Attributes", lead, [Missing("No attribute was read here:", command)])
    blocks: list[Block] = [
        _plain(
            "coverage-table",
            "Coverage and position preference of attribute reads",
            "Coverage: share of cells with the same direction in both orders. A judge that "
            "names one position in "
            "most reads is flagged; agreement below is over resolved cells only.",
            coverage,
        )
    ]
    for name, title, note in (
        ("attribute_agreement", "Agreement on attributes", "Never read without joint coverage."),
        ("attribute_table", "Attributes", "Detection, order consistency, and the core set of both medians."),
    ):
        frame = _some(tables, name)
        if frame is not None:
            blocks.append(_plain(name.replace("_", "-"), title, note, frame))
    return Section("attributes", "Attributes", lead, blocks)


def _data(tables: Mapping[str, pd.DataFrame]) -> Section:
    pairs = tables["pairs"]
    keys = ["source", "manipulation", "reference_kind"]
    counts = (
        pairs.groupby(keys, dropna=False, sort=True)
        .agg(pairs=("pair_id", "size"), base_tasks=("base_id", "nunique"), judged=("pair_id", "size"))
        .reset_index()
    )
    judged = set(tables["judged_pairs"]["pair_id"])
    is_judged = pairs["pair_id"].isin(judged)
    counts["judged"] = is_judged.groupby([pairs[k] for k in keys], dropna=False, sort=True).sum().to_numpy()
    blocks: list[Block] = [
        _plain("data-table", "Pairs", "Kinds of reference are never merged.", counts),
    ]
    for name, title in (
        ("bank_design_check", "Design check of the bank"),
        ("source_files", "Files that were read"),
        ("split_report", "The 75/25 split"),
    ):
        frame = _some(tables, name)
        if frame is not None:
            blocks.append(_plain(name.replace("_", "-"), title, "", frame))
    lead = "What was judged, where it comes from, and how the bank was checked."
    return Section("data", "Data", lead, blocks)
