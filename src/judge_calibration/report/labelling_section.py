"""The people who label: how far the round is, how they agree, what their habits are, and where it is hard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from judge_calibration import schemas
from judge_calibration.report.blocks import Block, Missing, Section, TableBlock
from judge_calibration.report.dots import dot_plot, dots_of
from judge_calibration.report.result_tables import Tables, figure_block, plain_table, some
from judge_calibration.report.share_tables import value_text
from judge_calibration.report.shortening import short_table
from judge_calibration.report.wording import count_noun, is_missing, percent, reason_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

TABLES = (
    "label_progress",
    "adjudicated_labels",
    "human_agreement",
    "item_agreement",
    "annotator_table",
    "annotator_drift",
    "expected_relationship",
    "annotator_errors",
    "study_results",
)
"""Tables that the section shows, by their dataset names."""

MOST_PEOPLE = 12
LABEL_COMMAND = "kedro run --pipelines annotation,reporting"
_LEAD = (
    "People's labels are what judges are read against; so they are looked at as closely. Low agreement is a "
    "property of the pairs or of the rubric: it is shown, and nothing is dropped for it."
)
_OF_ANNOTATORS = {
    "agreement_with_others": "Agrees with others",
    "agreement_with_expected": "Sees what was constructed",
    "upheld_when_disputed": "Upheld when disputed",
    "first_position": "Picks the first",
    "ties": "Ties",
    "abstentions": "Abstains",
}
_DRAWN = ("agreement_with_others", "agreement_with_expected", "first_position")
_EXPECTED = {
    "as_expected": "As constructed",
    "modified_wins": "Changed side wins",
    "original_wins": "Original side wins",
    "modified_minus_original": "Changed less original",
    "abstained": "Abstained",
}
_STUDY = {"agreement": "Agreement", "resolved": "Chose A or B", "answered": "Answered"}
_NO_LABELS = (
    "No labels are there yet. The blinded packets lie under data/03_primary/annotator_files; name the files "
    "that come back under annotation.labels.files, then"
)


def draw_annotators(tables: Tables) -> go.Figure | None:
    """Draw each annotator's agreement and habit of position; None without labels."""
    frame = some(tables, "annotator_table")
    return None if frame is None else _draw_people(frame, "share (%)", 0.5, (-0.03, 1.03))


def draw_drift(tables: Tables) -> go.Figure | None:
    """Draw how each annotator's agreement and habit of position changed from the first labels to the last."""
    frame = some(tables, "annotator_drift")
    if frame is None:
        return None
    changes = frame[frame["block"] == "change"]
    return _draw_people(changes, "last block less first (percentage points)", 0.0, None)


def draw_expected(tables: Tables) -> go.Figure | None:
    """Draw how often people see what was constructed, by manipulation; None without such labels."""
    frame = some(tables, "expected_relationship")
    if frame is None:
        return None
    rows = frame[(frame["statistic"] == "as_expected") & (frame["difficulty"] == "all")]
    lines = [reason_text(str(name)) for name in rows["manipulation"]]
    series = [f"{stage} labels ({kind})" for stage, kind in zip(rows["stage"], rows["kind"], strict=True)]
    dots = dots_of(rows, lines, series, n="n")
    return dot_plot(dots, "labels as constructed (%)", span=(-0.03, 1.03)) if dots else None


def _draw_people(
    frame: pd.DataFrame, axis: str, reference: float, span: tuple[float, float] | None
) -> go.Figure | None:
    rows = frame[frame["statistic"].isin(_DRAWN) & frame["annotator_id"].isin(_busiest(frame))]
    rows = rows.assign(_place=rows["statistic"].map(_DRAWN.index)).sort_values(
        ["annotator_id", "_place"], kind="stable"
    )
    series = [_OF_ANNOTATORS[name] for name in rows["statistic"]]
    dots = dots_of(rows, list(rows["annotator_id"]), series, n="n")
    return dot_plot(dots, axis, reference=reference, span=span) if dots else None


def _busiest(frame: pd.DataFrame) -> list[str]:
    """Return those who labelled most, at most MOST_PEOPLE (all together, the row ``all``, not counted)."""
    own = frame[(frame["annotator_id"] != "all") & (frame["statistic"] == "abstentions")]
    most = own.sort_values(["n", "annotator_id"], ascending=[False, True], kind="stable")
    return [str(name) for name in most["annotator_id"].head(MOST_PEOPLE)]


def labelling_section(tables: Tables) -> Section:
    """Return the section."""
    blocks: list[Block] = [*_progress(tables)]
    if some(tables, "annotator_table") is None:
        blocks.append(Missing(_NO_LABELS, LABEL_COMMAND))
    else:
        blocks += [
            *_annotators(tables),
            *_drift(tables),
            *_hard(tables),
            *_expected(tables),
            *_errors(tables),
        ]
    blocks += _study(tables)
    return Section("labelling", "The people who label", _LEAD, blocks)


def _progress(tables: Tables) -> list[Block]:
    frame = some(tables, "label_progress")
    if frame is None:
        what = "No pair waits for people: no round is planned, or no pair comes with its texts. To plan one:"
        return [Missing(what, "kedro run --pipelines data_prep,annotation")]
    shown = frame[frame["scope"].isin(["all", "annotator"])]
    shown = pd.DataFrame(
        {
            "Who": ["all together" if name == "all" else str(name) for name in shown["name"]],
            "Stage": list(shown["stage"]),
            **{title: [f"{int(n):,}" for n in shown[name]] for name, title in _COUNTED.items()},
            "Done": [percent(share) for share in shown["share_done"]],
        }
    )
    note = (
        "Pairs given out and labelled; adjudication counts pairs whose first labels differ. By slice in the "
        "download."
    )
    blocks: list[Block] = [short_table("progress-table", "How far the round is", note, shown, frame)]
    settled = some(tables, "adjudicated_labels")
    if settled is not None:
        overall = settled[settled["attribute"].isna()]
        said = overall["rule"].fillna(overall["undefined"]).fillna("unresolved")
        counts = said.value_counts().sort_index()
        rows = pd.DataFrame(
            {
                "How": [_SETTLED.get(str(name), reason_text(str(name))) for name in counts.index],
                "Pairs": [f"{n:,}" for n in counts],
                "Share": [percent(n / len(overall)) for n in counts],
            }
        )
        note = "Counts of pairs, no estimate. One label a pair, by the rule that gave it; each label is kept."
        blocks.append(TableBlock("settled-table", "Settled labels", note, rows, settled))
    return blocks


_COUNTED = {
    "assigned": "Given out",
    "labelled": "Labelled",
    "remaining": "Open",
    "ties": "Ties",
    "abstentions": "Abstentions",
    "disagreements": "Disagreements",
}
_SETTLED = {
    "agreed": "settled: all first labels are the same",
    "third_decides": "settled: the third label decided",
    "majority": "settled: the third label made a majority",
    "adjudication_missing": "open: the first labels differ, the third is missing",
    "primaries_missing": "open: first labels are missing",
    "no_label": "open: no label yet",
    "unresolved": "open: three different labels",
}


def _annotators(tables: Tables) -> list[Block]:
    frame = tables["annotator_table"]
    note = (
        "Shares of each person's labels, with n. Upheld: of disputed pairs, the third label is this "
        "person's. Picks the first: of decisive labels; 50 % without a habit, orders being random."
    )
    rows = frame.assign(annotator_id=frame["annotator_id"].replace({"all": "all together"}))
    table = _wide(
        "annotators-table", "Each annotator", note, rows, {"annotator_id": "Annotator"}, _OF_ANNOTATORS
    )
    figure = draw_annotators(tables)
    if figure is None:
        return [table]
    rule = f"95 % intervals by base task; the dotted line is half. {_more_people(frame)}"
    alternative = "For each annotator agreement with others and the constructed label, and picking the first."
    title = "Does each person agree with the others, or follow the place?"
    return [figure_block("annotators-figure", title, rule, alternative, figure, table)]


def _more_people(frame: pd.DataFrame) -> str:
    n = frame.loc[frame["annotator_id"] != "all", "annotator_id"].nunique()
    return "" if n <= MOST_PEOPLE else f"The {MOST_PEOPLE} of {n} people who labelled most."


def _drift(tables: Tables) -> list[Block]:
    frame = some(tables, "annotator_drift")
    if frame is None:
        what = (
            "No drift over time: labels carry no time (column labelled_at), or nobody has labelled enough to "
            "be cut into blocks (annotation.analysis.drift_blocks). With such labels:"
        )
        return [Missing(what, LABEL_COMMAND)]
    changes = frame[frame["block"] == "change"]
    note = (
        "Each person's labels cut into equal blocks by time; the last block less the first, in shares. Every "
        "block in the download. An interval around 0 is no sign of drift, and no proof of its absence."
    )
    table = _wide("drift-table", "Drift", note, changes, {"annotator_id": "Annotator"}, _OF_ANNOTATORS, frame)
    figure = draw_drift(tables)
    if figure is None:
        return [table]
    rule = (
        "Normal intervals from both blocks' jackknife errors; 0 (dotted) is no change. "
        f"{_more_people(changes)}"
    )
    alternative = "For each annotator the change of agreement and of picking the first, with intervals."
    title = "Did anyone's labels change while the round went on?"
    return [figure_block("drift-figure", title, rule, alternative, figure, table)]


def _hard(tables: Tables) -> list[Block]:
    blocks: list[Block] = []
    items = some(tables, "item_agreement")
    several = None if items is None else items[items["n_labels"] > 1]
    if items is None or several is None or several.empty:
        what = (
            "No pair has labels of two people yet, so none can be called hard to agree on. With more labels:"
        )
        blocks.append(Missing(what, LABEL_COMMAND))
    else:
        hard = several[several["hard"]]
        note = (
            f"{len(hard):,} of {count_noun(len(several), 'pair')} with two labels or more "
            f"({percent(len(hard) / len(several))}) lie below the declared threshold "
            "(annotation.analysis.low_agreement). Raw: share of two people who agree. Counts, no estimate."
        )
        columns = ["pair_id", "base_id", "kind", "n_labels", *schemas.VERDICTS, "raw", "reason_codes"]
        title = "Pairs that are hard to agree on"
        blocks.append(plain_table("hard-items-table", title, note, hard, columns, items))
    people = some(tables, "human_agreement")
    if people is not None:
        rows = people[(people["annotators"] == "all") & people["hard"] & (people["slice_by"] != "all")]
        if len(rows):
            note = (
                "Slices and reason codes whose raw agreement lies below the threshold; all in the download."
            )
            columns = ["kind", "slice_by", "slice", "labels", "n_pairs", "n", "value", "low", "high", "alpha"]
            title = "Slices that are hard to agree on"
            blocks.append(plain_table("hard-slices-table", title, note, rows, columns, people))
    return blocks


def _expected(tables: Tables) -> list[Block]:
    frame = some(tables, "expected_relationship")
    if frame is None:
        what = (
            "No labelled pair was constructed: nothing can be held beside what was. With pairs of the bank:"
        )
        return [Missing(what, LABEL_COMMAND)]
    rows = frame[frame["difficulty"] == "all"]
    keys = {"manipulation": "Manipulation", "stage": "Labels", "kind": "Kind"}
    note = (
        "People beside the constructed relationship; two kinds of reference, compared and never merged. "
        "By difficulty in the download."
    )
    title = "Labels and what was constructed"
    table = _wide("expected-table", title, note, rows, keys, _EXPECTED, frame)
    figure = draw_expected(tables)
    if figure is None:
        return [table]
    rule = "Share of labels that name the constructed winner (or tie), 95 % intervals by base task."
    alternative = "For each manipulation the share of individual and settled labels as constructed."
    title = "Do people see what was changed?"
    return [figure_block("expected-figure", title, rule, alternative, figure, table)]


def _errors(tables: Tables) -> list[Block]:
    frame = some(tables, "annotator_errors")
    known = None if frame is None else frame[frame["probability"].notna()]
    if frame is None or known is None or known.empty:
        why = sorted(set(frame["undefined"].dropna())) if frame is not None else []
        reasons = ", ".join(reason_text(str(reason)) for reason in why) or "no labels"
        what = f"No error rates by Dawid and Skene's model ({reasons}). With labels of three people or more:"
        return [Missing(what, LABEL_COMMAND)]
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in known.to_dict("records"):
        key = (str(row["kind"]), str(row["annotator_id"]), str(row["true_label"]))
        first = {"Annotator": key[1], "Likely true label": key[2], "Labels": str(row["n_labels"])}
        rows.setdefault(key, first)[f"Says {row['given_label']}"] = percent(row["probability"])
    note = (
        "Fitted, not counted: how probably each person gives each label where the model (Dawid and Skene) "
        "takes another or the same for true. Labels: all of the person's. No interval: the model gives none."
    )
    shown = pd.DataFrame(list(rows.values())).fillna("–")
    return [short_table("errors-table", "Each annotator's likely errors", note, shown, frame)]


def _study(tables: Tables) -> list[Block]:
    frame = some(tables, "study_results")
    if frame is None:
        what = (
            "No human attribute study was run. Set annotation.study (enabled, attributes; its cases come "
            "from logged verdicts of a panel or from a file), label its packets, then"
        )
        return [Missing(what, LABEL_COMMAND)]
    keys = {"cases": "Cases", "question": "Question", "kind": "Kind"}
    note = (
        "People give an overall preference first, then attributes. Agreement: of two people who both chose A "
        "or B; range: lowest and highest pair, in the download."
    )
    return [_wide("study-table", "Human attribute study", note, frame, keys, _STUDY)]


def _wide(
    id: str,
    title: str,
    note: str,
    frame: pd.DataFrame,
    keys: Mapping[str, str],
    statistics: Mapping[str, str],
    exact: pd.DataFrame | None = None,
) -> TableBlock:
    """Return a row a key and a column a statistic, each cell with its interval and its own n."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for row in frame.to_dict("records"):
        name = statistics.get(str(row["statistic"]))
        if name is None:
            continue
        key = tuple(str(row[column]) for column in keys)
        said = [
            text if column == "annotator_id" else reason_text(text)
            for column, text in zip(keys, key, strict=True)
        ]
        rows.setdefault(key, dict(zip(keys.values(), said, strict=True)))[name] = _with_n(row)
    shown = pd.DataFrame(list(rows.values())).fillna("–")
    order = [*keys.values(), *(name for name in statistics.values() if name in shown.columns)]
    return short_table(id, title, note, shown[order], frame if exact is None else exact)


def _with_n(row: Mapping[Any, Any]) -> str:
    r"""Return a rate with its interval and n, or why it is undefined.

    Examples
    --------
    >>> _with_n({"value": 0.5, "low": 0.25, "high": 0.75, "n": 8, "undefined": None})
    '50.0 %\n(25.0 to 75.0)\nn 8'
    """
    why = row.get("undefined")
    text = value_text(dict(row) | {"reason": why, "interval_reason": why})
    n = row.get("n")
    return text if is_missing(n) or not n or is_missing(row.get("value")) else f"{text}\nn {int(n):,}"
