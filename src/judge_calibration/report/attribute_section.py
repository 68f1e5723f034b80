"""The page's section on attributes: what each judge sees in answers, and what it rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.report import attribute_figures as figures
from judge_calibration.report.blocks import Block, Missing, Prose, Section, TableBlock, marked
from judge_calibration.report.result_tables import Tables, figure_block, plain_table, some
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import count_noun, is_missing, percent, reason_text, source_name

TABLES = (
    "attribute_coverage",
    "attribute_reuse",
    "attribute_screening",
    "attribute_table",
    "attribute_families",
    "attribute_agreement",
    "attribute_summary",
    "attribute_judges",
    "profiles",
    "profile_summary",
    "profile_reliability",
    "subjective_overlap",
    "attribute_case",
    "panel_recovery",
)
"""The tables that the section reads, under their dataset names."""

LEAST_COVERAGE = 0.05
LEAST_CELLS = 10
"""Shared cells from which a judge pair's agreement is drawn; with fewer it stands in the numbers alone."""
MOST_CHARACTERS = 1_500
_COMMAND = "kedro run --env attributes"
_MORE = "kedro run --env attributes --params data_prep.judged.size=48,attributes.pairs=48"
_LEAD = (
    "Which of two answers has more of an attribute, asked in both orders; only a direction that both orders "
    "share counts. More of it is never better. Agreement is over cells (item and attribute) that both judges "
    "resolve, so it is never read without its joint coverage."
)
_STRATA = {
    "all": "all items",
    "same": "same overall choice",
    "opposite": "opposite overall choices",
    "both_right": "both match the reference",
    "both_wrong": "both depart from the reference",
    "one_right": "one of them matches the reference",
}
_COUNTS = (*("calls", "answered", "prompt_tokens", "cached_tokens", "completion_tokens", "items", "kept"),)
_READS = {"stable": "both orders", "single": "first order alone"}
_SETS = {"all": "all attributes", "core": "core set"}
_ITEMS = {"selected": "SubjectiveSet", "others": "outside the SubjectiveSet", "all": "all"}


def attributes_section(tables: Tables) -> Section:
    """Return the section.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Those of TABLES and `pairs`; one that is absent or empty is left out. Without reads the section says
        what brings them.
    """
    coverage = some(tables, "attribute_coverage")
    if coverage is None:
        missing = Missing("No attribute was read here:", _COMMAND)
        return Section("attributes", "Attributes", _LEAD, [missing])
    simulated = bool(coverage["simulated"].any())
    whole = coverage[coverage["items_by"] == "all"].reset_index(drop=True)
    blocks: list[Block] = [Prose(_opening(whole, simulated)), _coverage_table(whole, coverage)]
    agreement = some(tables, "attribute_agreement")
    kept = whole.loc[~whole["position_biased"], "judge_id"].tolist()
    dropped = whole.loc[whole["position_biased"], "judge_id"].tolist()
    if agreement is not None:
        blocks += _agreement_blocks(tables, agreement, kept, dropped, whole)
    blocks += _attribute_blocks(tables, bool(dropped))
    blocks += _profile_blocks(tables, kept or whole["judge_id"].tolist(), bool(dropped))
    blocks += _subjective_blocks(tables, simulated)
    blocks += _case_blocks(tables)
    recovery = some(tables, "panel_recovery")
    if recovery is not None:
        blocks.append(_recovery(recovery))
    return marked(Section("attributes", "Attributes", _LEAD, blocks), simulated)


def _opening(whole: pd.DataFrame, simulated: bool) -> tuple[str, ...]:
    n_items, n_attributes = int(whole["n_items"].max()), int(whole["attributes"].max())
    told = [
        f"{count_noun(len(whole), 'judge')} on {count_noun(n_items, 'item')} and "
        f"{count_noun(n_attributes, 'attribute')}: {int(whole['reads'].sum()):,} reads."
    ]
    biased = whole.loc[whole["position_biased"], "judge_id"].tolist()
    if biased:
        told.append(
            f"{', '.join(biased)} named one position in at least the declared share of the reads that "
            "resolved: by the declared rule left out of the reduced panel. The full panel stands beside it."
        )
    best = whole["coverage"].max()
    if not simulated and (is_missing(best) or best < LEAST_COVERAGE):
        told.append(
            f"No judge resolves {percent(LEAST_COVERAGE, 0)} of its cells the same way in both orders. The "
            "numbers below are too thin to read; the analysis stands on the simulation alone "
            "(kedro run --env panel)."
        )
    silent = whole.loc[whole["coverage"] == 0, "judge_id"].tolist()
    if silent:
        told.append(f"Without one stable cell, and so undefined below: {', '.join(silent)}.")
    return tuple(told)


def _coverage_table(whole: pd.DataFrame, exact: pd.DataFrame) -> TableBlock:
    shown = pd.DataFrame(
        {
            "Judge": whole["judge_id"],
            "Reads": [f"{n:,}" for n in whole["reads"]],
            "Valid": ["not told" if is_missing(n) else f"{int(n):,}" for n in whole["valid"]],
            "Resolved": [f"{n:,}" for n in whole["resolved"]],
            "Stable coverage": [percent(v) for v in whole["coverage"]],
            "Names the first": [percent(v) for v in whole["first_share"]],
            "Names the second": [percent(v) for v in whole["second_share"]],
            "Order consistency": [percent(v) for v in whole["order_consistency"]],
            "In the reduced panel": ["no" if v else "yes" for v in whole["position_biased"]],
            "Overall choices": [f"{n:,}" for n in whole["definite_verdicts"]],
            "Undefined": [
                "; ".join(reason_text(str(r)) for r in reasons if not is_missing(r)) or "–"
                for reasons in zip(whole["undefined"], whole["verdicts_undefined"], strict=True)
            ],
        }
    )
    note = (
        "Stable coverage: share of cells with one direction in both orders. Shares of positions: of the "
        "reads that resolve; half each where only the answers count. By source in the download."
    )
    return short_table("coverage-table", "Coverage and position preference", note, shown, exact)


def _interval(row: Mapping[Any, Any], scale: float = 100.0) -> str:
    if is_missing(row["mean"]):
        return f"undefined: {reason_text(str(row['undefined']))}"
    unit = " %" if scale == 100 else ""
    text = f"{scale * row['mean']:.1f}{unit}" if scale == 100 else f"{row['mean']:.3f}"
    if is_missing(row["low"]):
        reason = row["interval_undefined"]
        if is_missing(reason) or reason == "not_made":
            return text
        return f"{text}\n(no interval: {reason_text(str(reason))})"
    return f"{text}\n({scale * row['low']:.1f} to {scale * row['high']:.1f})"


def _agreement_blocks(
    tables: Tables,
    agreement: pd.DataFrame,
    kept: list[str],
    dropped: list[str],
    whole: pd.DataFrame,
) -> list[Block]:
    blocks: list[Block] = []
    summary = some(tables, "attribute_summary")
    if summary is not None:
        blocks.append(_summary_table(summary))
        blocks.append(_gap_table(summary))
    main = agreement[(agreement["read"] == "stable") & (agreement["attributes"] == "all")]
    main = main[main["items_by"] == "all"]
    if main.empty:
        return blocks
    everything = main[main["stratum"] == "all"]
    if everything["joint"].max() < LEAST_CELLS:
        return [*blocks, _too_thin("all items", everything)] if everything["joint"].any() else blocks
    judges = whole["judge_id"].tolist()
    members = kept if len(kept) > 1 else judges
    among = main["judge_1"].isin(members) & main["judge_2"].isin(members)
    lowest = main.loc[among & main["stratum"].isin(("same", "opposite")), "agreement"].min()
    for stratum in ("same", "opposite"):
        rows = main[main["stratum"] == stratum]
        own = rows[rows["judge_1"].isin(members) & rows["judge_2"].isin(members)]
        if not own["agreement"].notna().any():
            blocks.append(_no_stratum(stratum))
            continue
        drawn, thin = _thick(own)
        if not drawn["agreement"].notna().any():
            blocks.append(_too_thin(_STRATA[stratum], own))
            continue
        exact = _pair_rows(own, f"heat-{stratum}-numbers", f"Agreement, {_STRATA[stratum]}")
        blocks.append(
            figure_block(
                f"heat-{stratum}",
                f"Agreement on attributes, judge by judge: {_STRATA[stratum]}",
                f"{count_noun(len(members), 'judge')}; a square is one judge pair: the share of the cells "
                "that both resolve that points the same way, on items where their overall choices were "
                f"{'the same' if stratum == 'same' else 'opposite'}. {_joint_range(drawn['joint_coverage'])} "
                f"Counts in the numbers; intervals of the means stand in the table above.{thin}",
                f"Square map of {len(members)} judges with the agreement of every two of them.",
                figures.judge_map(drawn, members, lowest),
                exact,
            )
        )
    drawn, thin = _thick(everything)
    blocks.append(
        figure_block(
            "coverage-agreement",
            "Coverage against agreement",
            f"{count_noun(len(everything), 'judge pair')}, all items; n is joint coverage times items times "
            "attributes. Judges that agree on little of what they see may agree by what they choose to "
            f"see.{thin}",
            "Scatter of agreement over joint coverage, a mark a judge pair.",
            figures.coverage_against_agreement(drawn, dropped),
            _pair_rows(everything, "coverage-agreement-numbers", "Agreement, all items"),
        )
    )
    return blocks


def _joint_range(values: pd.Series) -> str:
    """Return the joint coverages that stand behind the agreements of a figure."""
    known = values.dropna()
    if known.empty:
        return "Joint coverage is undefined."
    low, high = percent(known.min()), percent(known.max())
    return f"Joint coverage: {low}." if low == high else f"Joint coverage: {low} to {high}."


def _thick(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the rows with the agreement of thin judge pairs taken out, and a sentence that says so."""
    thin = rows["agreement"].notna() & (rows["joint"] < LEAST_CELLS)
    if not thin.any():
        return rows, ""
    told = (
        f" Not drawn: {count_noun(int(thin.sum()), 'judge pair')} with fewer than {LEAST_CELLS} such cells."
    )
    return rows.assign(agreement=rows["agreement"].where(~thin)), told


def _too_thin(where: str, rows: pd.DataFrame) -> Missing:
    most = rows.sort_values("joint", ascending=False, kind="stable").head(1).to_dict("records")[0]
    cells = f"{count_noun(int(most['joint']), 'cell')} (joint coverage {percent(most['joint_coverage'], 2)})"
    what = (
        f"Agreement, {where}: no two judges share more than {cells}, so there is nothing to draw; "
        f"{LEAST_CELLS} are the least. It takes judges that resolve more, or more pairs:"
    )
    return Missing(what, _MORE)


def _no_stratum(stratum: str) -> Missing:
    which = "the same" if stratum == "same" else "opposite"
    what = (
        f"Agreement where overall choices were {which}: on no such item do two judges resolve the same "
        "attribute. It takes more pairs, or judges that give verdicts too:"
    )
    return Missing(what, _MORE)


def _pair_rows(rows: pd.DataFrame, id: str, title: str) -> TableBlock:
    shown = pd.DataFrame(
        {
            "Judge": rows["judge_1"],
            "Other judge": rows["judge_2"],
            "Items": [f"{n:,}" for n in rows["n_items"]],
            "Cells both resolve": [f"{n:,}" for n in rows["joint"]],
            "Agreement": [
                percent(v) if not is_missing(v) else f"undefined: {reason_text(str(r))}"
                for v, r in zip(rows["agreement"], rows["undefined"], strict=True)
            ],
            "Joint coverage": [percent(v) for v in rows["joint_coverage"]],
            "Kappa": ["–" if is_missing(v) else f"{v:.2f}" for v in rows["kappa"]],
        }
    )
    return short_table(id, title, "", shown, rows)


def _summary_table(summary: pd.DataFrame) -> TableBlock:
    rows = summary[(summary["measure"] == "agreement") & summary["items_by"].isin(("all", "subjective_set"))]
    kappa = summary[summary["measure"] == "kappa"]
    keys = ["panel", "read", "attributes", "items_by", "items", "stratum"]
    kappas = kappa.set_index(keys)["mean"]
    shown = pd.DataFrame(
        [
            {
                "Panel": row["panel"],
                "Read": _READS[row["read"]],
                "Attributes": _SETS[row["attributes"]],
                "Items": _ITEMS.get(str(row["items"]), source_name(row["items"])),
                "Where": _STRATA[row["stratum"]],
                "Agreement": _interval(row),
                "Joint coverage": percent(row["joint_coverage"]),
                "Pooled": percent(row["pooled"]),
                "Item-averaged": percent(row["item_averaged"]),
                "Range of judge pairs": "–"
                if is_missing(row["lowest"])
                else f"{100 * row['lowest']:.1f} to {100 * row['highest']:.1f} %",
                "Above one half": f"{row['above']} of {row['n_defined']}",
                "Kappa": "–" if is_missing(k := kappas[tuple(row[n] for n in keys)]) else f"{k:.2f}",
            }
            for row in rows.to_dict("records")
        ]
    )
    note = (
        "Means over judge pairs, each defined pair with equal weight; 95 % intervals by resampling items "
        "(base tasks) and judges together. Reference strata have none; sources, and intervals by "
        "item and by judge alone, are in the download."
    )
    return short_table("attribute-summary", "Agreement of the panel", note, shown, summary)


def _gap_table(summary: pd.DataFrame) -> TableBlock:
    gaps = summary[summary["measure"].str.startswith("gap:")]
    other = summary[summary["measure"].str.startswith("preference:")]
    keys = ["panel", "read", "attributes"]
    preference = other.assign(rule=other["measure"].str.partition(":")[2]).set_index([*keys, "rule"])["mean"]
    rows = []
    for row in gaps.to_dict("records"):
        rule = str(row["measure"]).partition(":")[2]
        chosen = preference[(*(row[name] for name in keys), rule)]
        attribute = np.nan if is_missing(chosen) or is_missing(row["mean"]) else chosen + row["mean"]
        rows.append(
            {
                "Panel": row["panel"],
                "Read": _READS[row["read"]],
                "Attributes": _SETS[row["attributes"]],
                "Overall choice": {"first_order": "first order", "order_stable": "both orders"}[rule],
                "Agreement on choices": percent(chosen),
                "Agreement on attributes": percent(attribute),
                "Difference, points": _points(row),
                "Positive pairs": f"{row['above']} of {row['n_defined']}",
            }
        )
    three = summary[(summary["measure"] == "kappa_three") & (summary["panel"] == "full")]
    kappas = ", ".join(
        f"{name}: {'undefined' if is_missing(v) else format(v, 'z.2f')}"
        for name, v in zip(three["read"], three["mean"], strict=True)
    )
    note = (
        "On matched items: both choices definite, at least one attribute resolved by both. Choices and "
        "attributes differ in noise where the choice is a single read; the rows 'both orders' match it. "
        f"With abstention as a third category the mean kappas of the full panel are {kappas}."
    )
    return short_table("attribute-gap", "Attributes against overall choices", note, pd.DataFrame(rows), gaps)


def _points(row: Mapping[Any, Any]) -> str:
    if is_missing(row["mean"]):
        return f"undefined: {reason_text(str(row['undefined']))}"
    text = f"{100 * row['mean']:+.1f}"
    return (
        text if is_missing(row["low"]) else f"{text}\n({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
    )


def _attribute_blocks(tables: Tables, has_reduced: bool) -> list[Block]:
    panel = "reduced" if has_reduced else "full"
    blocks: list[Block] = []
    families = some(tables, "attribute_families")
    if families is not None:
        rows = families[families["panel"] == panel]
        ranked = rows.sort_values("agreement_all", ascending=False, kind="stable", na_position="last")
        shown = pd.DataFrame(
            {
                "Family": ranked["family"],
                "Attributes": ranked["attributes"].astype(str),
                "In the core set": ranked["core"].fillna(0).astype(int).astype(str),
                "Detection": [percent(v) for v in ranked["detection"]],
                "Order consistency": [percent(v) for v in ranked["order_consistency"]],
                **{
                    f"Agreement, {_STRATA[s]}": [percent(v) for v in ranked[f"agreement_{s}"]]
                    for s in ("all", "same", "opposite")
                },
                "Joint coverage": [percent(v) for v in ranked["joint_coverage_all"]],
            }
        )
        table = short_table(
            "family-numbers",
            "Families of attributes",
            "Both panels in the download.",
            shown,
            families,
        )
        pairs = int(rows["judge_pairs_all"].max()) if len(rows) else 0
        note = (
            f"{panel.capitalize()} panel, at most {count_noun(pairs, 'judge pair')} a bar; a pair's cells "
            f"are pooled within a family. {_joint_range(rows['joint_coverage_all'])} Half is what two coins "
            "reach. No intervals here."
        )
        if ranked[["agreement_same", "agreement_opposite"]].notna().any(axis=None):
            blocks.append(
                figure_block(
                    "family-bars",
                    "Agreement by family of attributes",
                    note,
                    "Bars of mean agreement for each family, for the same and opposite overall choices.",
                    figures.family_bars(ranked),
                    table,
                )
            )
        else:
            # Empty axes tell nothing; what the families agree on over all items is in the table.
            blocks.append(table)
    attributes = some(tables, "attribute_table")
    if attributes is not None:
        blocks.append(_attribute_table(attributes, panel))
    return blocks


def _attribute_table(table: pd.DataFrame, panel: str) -> TableBlock:
    rows = table[table["panel"] == panel]
    ranked = rows.sort_values(
        ["core", "order_consistency"], ascending=False, kind="stable", na_position="last"
    )
    shown = pd.DataFrame(
        {
            "Attribute": [
                str(n).replace("_", " ") + (" *" if c else "")
                for n, c in zip(ranked["attribute"], ranked["core"], strict=True)
            ],
            "Family": ranked["family"],
            "Named in the paper": ["yes" if o == "paper" else "no" for o in ranked["origin"]],
            "Detection": [percent(v) for v in ranked["detection"]],
            "Order consistency": [
                percent(v) if not is_missing(v) else f"undefined: {reason_text(str(r))}"
                for v, r in zip(ranked["order_consistency"], ranked["undefined"], strict=True)
            ],
            "Agreement": [percent(v) for v in ranked["agreement_all"]],
            "Opposite choices": [percent(v) for v in ranked["agreement_opposite"]],
            "Joint coverage": [percent(v) for v in ranked["joint_coverage_all"]],
        }
    )
    note = (
        f"* the core set of the {panel} panel ({int(rows['core'].sum())} of {len(rows)}): detection and "
        "order consistency at least their medians over attributes, chosen without looking at agreement."
    )
    return short_table("attribute-table", "Attributes", note, shown, table)


def _profile_blocks(tables: Tables, judges: list[str], has_reduced: bool) -> list[Block]:
    blocks: list[Block] = []
    profiles = some(tables, "profiles")
    if profiles is not None:
        fitted = profiles.dropna(subset=["weight"])["judge_id"].unique().tolist()
        drawn = [judge for judge in judges if judge in fitted]
        without = profiles[profiles["weight"].isna()].drop_duplicates("judge_id")
        reasons = "; ".join(
            f"{j}: {reason_text(str(r))}"
            for j, r in zip(without["judge_id"], without["undefined"], strict=True)
        )
        if drawn:
            shown = pd.DataFrame(
                {
                    "Judge": profiles["judge_id"],
                    "Attribute": profiles["attribute"].str.replace("_", " "),
                    "Weight": ["–" if is_missing(v) else f"{v:+.3f}" for v in profiles["weight"]],
                    "Standard error": ["–" if is_missing(v) else f"{v:.3f}" for v in profiles["weight_se"]],
                    "Resolved stably": [percent(v) for v in profiles["resolution"]],
                }
            )
            n = profiles[profiles["judge_id"].isin(drawn)].drop_duplicates("judge_id")["n_verdicts"]
            least, most = int(n.min()), int(n.max())
            choices = f"{least:,} choices" if least == most else f"{least:,} to {most:,} choices"
            width = profiles["attribute"].nunique()
            thin = (
                f" There are {width} weights and fewer choices: the penalty decides much, read none alone."
                if least < width
                else ""
            )
            note = (
                f"The {figures.MOST_ATTRIBUTES} attributes with the largest mean size of weight. A weight is "
                "what an attribute's stable direction adds to the log-odds of the judge's own choice (L2 "
                f"logistic regression; {choices} a judge; blue against, orange for). Standard errors in the "
                f"numbers.{thin}"
            )
            blocks.append(
                figure_block(
                    "priority-map",
                    "What each judge rewards",
                    note + (f" Undefined: {reasons}." if reasons else ""),
                    "Map of weights, a row an attribute and a column a judge.",
                    figures.priority_map(profiles, drawn),
                    short_table("priority-numbers", "Profiles", "", shown, profiles),
                )
            )
        elif reasons:
            blocks.append(Prose((f"No judge has a weight profile. {reasons}.",)))
    summary = some(tables, "profile_summary")
    if summary is not None:
        blocks.append(_profile_table(summary))
    reliability = some(tables, "profile_reliability")
    if reliability is not None:
        shown = pd.DataFrame(
            {
                "Judge": reliability["judge_id"],
                "Profile": reliability["kind"],
                "Half-sample correlation": [_number(v) for v in reliability["half"]],
                "Spearman-Brown": [_number(v) for v in reliability["corrected"]],
                "Mean correlation with others": [_number(v) for v in reliability["mean_pearson"]],
                "Note": ["–" if is_missing(f) else reason_text(str(f)) for f in reliability["flag"]],
            }
        )
        note = "Random halves of the items; the raw half-sample correlation stands beside the corrected one."
        blocks.append(
            short_table("profile-reliability", "How reliable profiles are", note, shown, reliability)
        )
    return blocks


def _number(value: Any) -> str:
    return "–" if is_missing(value) else f"{float(value):.3f}"


def _profile_table(summary: pd.DataFrame) -> TableBlock:
    rows = []
    for row in summary.to_dict("records"):
        reason = row["undefined"] if is_missing(row["pearson"]) else row["null_undefined"]
        rows.append(
            {
                "Panel": row["panel"],
                "Profile": row["kind"],
                "Judges with one": f"{row['n_profiles']} of {row['n_judges']}",
                "Mean Pearson": _number(row["pearson"]),
                "Mean Spearman": _number(row["spearman"]),
                "If all preferred the same": "–"
                if is_missing(row["null"])
                else f"{row['null']:.3f}\n({row['null_low']:.3f} to {row['null_high']:.3f})",
                "Observed / null": _number(row["ratio"]),
                "Half-sample": _number(row["half"]),
                "Spearman-Brown": _number(row["corrected"]),
                "Note": "–" if is_missing(reason) else reason_text(str(reason)),
            }
        )
    note = (
        "Correlations over attributes, means over judge pairs. Perception: which attributes are resolved "
        "stably; weight: what moves the overall choice. The null redraws every judge's choices from the mean "
        "weights and its own directions (brackets: lowest and highest repetition): a ratio of 1 is what one "
        "shared preference gives."
    )
    return short_table("profile-summary", "How alike profiles are", note, pd.DataFrame(rows), summary)


def _subjective_blocks(tables: Tables, simulated: bool) -> list[Block]:
    blocks: list[Block] = []
    overlap = some(tables, "subjective_overlap")
    if overlap is not None:
        first = overlap.iloc[0]
        shown = pd.DataFrame(
            {
                "Items of": [source_name(name) for name in overlap["items"]],
                "Items": [f"{n:,}" for n in overlap["n_items"]],
                f"Selected by {first['judges']} judges": _counts(overlap, "selected", "rate"),
                f"Selected by {first['judges_reduced']} judges": _counts(
                    overlap, "selected_reduced", "rate_reduced"
                ),
                "By both": [f"{n:,}" for n in overlap["both"]],
                "Only by the full panel": [f"{n:,}" for n in overlap["only_full"]],
                "Only by the reduced": [f"{n:,}" for n in overlap["only_reduced"]],
            }
        )
        note = (
            "Items on which the less chosen answer has at least the declared share of the definite overall "
            "choices, compared in whole numbers. The paper's own threshold is not in the text "
            "that we worked from."
        )
        blocks.append(short_table("subjective-overlap", "SubjectiveSet", note, shown, overlap))
    for name, title, note in (
        ("attribute_screening", "Screening", "Items kept because one named judge reads them stably."),
        ("attribute_reuse", "Prompt tokens that a prefix cache spared", "Sums over answers that tell both."),
    ):
        frame = some(tables, name)
        if frame is not None and not (name == "attribute_reuse" and simulated):
            said = frame.assign(**{n: [f"{v:,}" for v in frame[n]] for n in frame.columns if n in _COUNTS})
            said = said.assign(reuse=[percent(v) for v in frame["reuse"]]) if "reuse" in frame else said
            blocks.append(plain_table(name.replace("_", "-"), title, note, said, exact=frame))
    return blocks


def _counts(frame: pd.DataFrame, count: str, rate: str) -> list[str]:
    return [f"{n:,} ({percent(r)})" for n, r in zip(frame[count], frame[rate], strict=True)]


def _case_blocks(tables: Tables) -> list[Block]:
    case = some(tables, "attribute_case")
    if case is None:
        return []
    pair_id = str(case["pair_id"].iloc[0])
    choices = case.drop_duplicates("judge_id")
    camps = {side: choices.loc[choices["choice"] == side, "judge_id"].tolist() for side in ("A", "B", "NONE")}
    lines = [f"One pair in full: {pair_id}, on which the judges are most split."]
    lines += [
        f"{words}: {', '.join(camps[side])}."
        for side, words in (("A", "Chose A"), ("B", "Chose B"), ("NONE", "No definite choice"))
        if camps[side]
    ]
    resolved = case[case["direction"] != "NONE"]
    counts = pd.crosstab(resolved["attribute"], resolved["direction"])
    counts = counts.reindex(columns=["A", "B"], fill_value=0)
    several = counts[counts.sum(axis=1) >= 2]
    for side in ("A", "B"):
        other = "B" if side == "A" else "A"
        agreed = several.index[(several[other] == 0)].tolist()
        if agreed:
            names = ", ".join(name.replace("_", " ") for name in agreed)
            lines.append(f"All judges that resolve it (two or more) give {side} more: {names}.")
    blocks: list[Block] = [Prose(tuple(lines) + _texts(tables, pair_id))]
    shown = pd.DataFrame(
        {
            "Attribute": [str(name).replace("_", " ") for name in counts.index],
            "Judges that give A more": counts["A"].astype(str).tolist(),
            "Judges that give B more": counts["B"].astype(str).tolist(),
        }
    )
    if len(counts):
        blocks.append(
            figure_block(
                "case-map",
                f"What the judges see in pair {pair_id}",
                f"{count_noun(len(choices), 'judge')}, grouped by overall choice (in brackets); a square "
                "is the answer to which both orders give more of the attribute, blank where they differ. "
                "Single pair: no interval.",
                "Map of attributes by judges; each square says A, B or nothing.",
                figures.case_map(case),
                short_table("case-numbers", "Directions of this pair", "", shown, case),
            )
        )
    else:
        blocks.append(Prose(("No judge resolves an attribute of this pair in both orders.",)))
    return blocks


def _texts(tables: Tables, pair_id: str) -> tuple[str, ...]:
    pairs = tables.get("pairs")
    found = None if pairs is None else pairs[pairs["pair_id"] == pair_id]
    if found is None or found.empty or "response_a" not in found:
        return ("The texts of this pair are not here: a simulated or imported item has none.",)
    row = found.iloc[0]
    return tuple(
        f"{name}: {_shortened_text(row[column])}"
        for name, column in (("Question", "question"), ("Answer A", "response_a"), ("Answer B", "response_b"))
    )


def _shortened_text(value: Any) -> str:
    if is_missing(value):
        return "not known"
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} … ({len(text):,} characters)"


def _recovery(recovery: pd.DataFrame) -> TableBlock:
    shown = pd.DataFrame(
        {
            "Statistic": recovery["statistic"].str.replace("_", " "),
            "Of": recovery["of"],
            "Planted (mean)": [_number(v) for v in recovery["planted"]],
            "Found (mean)": [_number(v) for v in recovery["found"]],
            "Planted inside the 95 % interval": [
                f"{i:,} of {n:,} ({percent(s)})"
                for i, n, s in zip(recovery["inside"], recovery["n"], recovery["share_inside"], strict=True)
            ],
            "Largest difference": [_number(v) for v in recovery["largest_difference"]],
            "Note": ["–" if is_missing(v) or not v else str(v) for v in recovery["note"]],
        }
    )
    note = "Planted values and what the tables above found: the instrument tested on a known answer."
    return short_table("panel-recovery", "Recovery of what was planted", note, shown, recovery)
