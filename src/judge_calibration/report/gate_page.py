"""The gate's and the sentinel's results: a document for machines, a page for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judge_calibration.metrics.authority import ALL
from judge_calibration.metrics.sentinel import SentinelResult
from judge_calibration.metrics.two_key_gate import GateDecision, Key
from judge_calibration.report.answers import Answer, Tone
from judge_calibration.report.audit_section import reasons_block
from judge_calibration.report.blocks import (
    Block,
    FileLink,
    Missing,
    Prose,
    Section,
    TableBlock,
    Terms,
    marked,
)
from judge_calibration.report.glossary import GLOSSARY
from judge_calibration.report.page import render_page
from judge_calibration.report.sections import readable
from judge_calibration.report.shortening import shortened
from judge_calibration.report.wording import cell_name, count_noun, is_missing, reason_text

TONES: dict[str, Tone] = {
    "pass": "good",
    "fail": "bad",
    "inconclusive": "mixed",
    "conflict": "bad",
    "stable": "good",
    "drift": "bad",
    "too_few": "mixed",
}
HEADLINES = {
    "pass": "Pass: the judge and people both say so.",
    "fail": "Fail: the judge speaks against the change, and nobody speaks for it.",
    "inconclusive": "Paused: it cannot be decided yet.",
    "conflict": "Paused: the judge and people contradict each other.",
    "stable": "Stable: it is shown to judge as it did.",
    "drift": "Drift: it does not judge as it did.",
    "too_few": "Not settled: the pairs are too few to show either.",
}
_REASONS = {
    "judge_for_humans_against": "The judge is for the change and people are against it",
    "judge_against_humans_for": "The judge is against the change and people are for it",
    "judge_against": "The judge is against the change",
    "judge_unsettled": "The judge's key does not settle it",
    "judge_absent": "The judge's key is absent",
    "humans_against": "People are against the change",
    "humans_unsettled": "The human sample does not settle it",
    "humans_absent": "There is no human sample",
    "high_stakes": "High stakes never pass on a judge alone",
    "not_earned": "The judge has not earned this slice",
    "not_calibrated": "This is not the calibrated instrument",
    "drifted": "The judge has drifted since it was calibrated",
    "sentinel_not_run": "This instrument has not judged the sentinel since the calibration",
    "sentinel_too_few": "The sentinel has too few pairs to show that the judge is stable",
    "rule_changed_after_judging": "The rule was changed after judging had started",
    "rule_after_verdicts": "The verdicts are older than the rule",
    "rule_not_recorded_at_judging": "No rule was on record when judging started",
    "drift": "Outside its margin",
    "too_few": "Too few to settle",
}
_STEPS = {
    "judge_for_humans_against": "Look at these pairs together, the audit queue first.",
    "judge_against_humans_for": "Look at these pairs together, the audit queue first.",
    "judge_unsettled": "More base tasks, or fewer failures, would settle it.",
    "judge_absent": "Judge the products' pairs in both orders.",
    "humans_unsettled": "More labelled base tasks would settle it.",
    "humans_absent": "Have people label a blinded sample.",
    "high_stakes": "Have people label these pairs.",
    "not_earned": "What fails, and what would settle it, is under Earned authority.",
    "not_calibrated": "Calibrate it: its numbers are not another instrument's.",
    "drifted": "Calibrate it anew, or serve what was calibrated.",
    "sentinel_not_run": "Ask it the protected pairs anew.",
    "sentinel_too_few": "Protect more pairs.",
    "rule_changed_after_judging": "Judge again under this rule, or decide by the one on record.",
    "rule_after_verdicts": "Judge anew with the rule in place.",
    "rule_not_recorded_at_judging": "Judge anew with the rule in place.",
}
"""What would lift each reason."""

NOT_COMPARED = "Nothing could be compared."
SIMULATED = "SIMULATED: verdicts and labels on this page were made by a program to show how it looks."


def gate_document(
    decision: GateDecision,
    authority: pd.DataFrame,
    sentinel: Mapping[str, Any],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the decision as JSON holds it; what is undefined is null.

    Parameters
    ----------
    decision : GateDecision
    authority : pandas.DataFrame
        The judge's authority table; may be empty.
    sentinel : mapping
        The result of :func:`sentinel_document`.
    about : mapping
        The products, the judge's cell, the runs.
    """
    sums = authority[authority["criterion"] == ALL] if len(authority) else authority
    return plain(
        {
            **about,
            "outcome": decision.outcome,
            "reasons": list(decision.reasons),
            "rule": {"name": decision.rule, "sha256": decision.rule_hash, "status": decision.rule_status},
            "judge": decision.judge._asdict(),
            "humans": [key._asdict() for key in decision.humans],
            "authority": {} if sums.empty else dict(zip(sums["slice"], sums["reason"], strict=True)),
            "sentinel": dict(sentinel),
            "audit_pairs": list(decision.audit_pairs),
        }
    )


def sentinel_document(
    cell: Mapping[str, Any], status: str | None, reason: str, result: SentinelResult | None
) -> dict[str, Any]:
    """Return one cell's sentinel comparison as JSON holds it."""
    document: dict[str, Any] = {"cell": dict(cell), "status": status, "reason": reason}
    if result is not None:
        document |= {
            "pairs": result.pairs,
            "tasks": result.tasks,
            "absent": list(result.absent),
            "noise_known": result.noise_known,
            "measures": [measure._asdict() for measure in result.measures],
        }
    return plain(document)  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Return values as JSON knows them: numpy's numbers as numbers, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value


def gate_page(
    decision: GateDecision,
    authority: pd.DataFrame,
    shift: pd.DataFrame,
    document: Mapping[str, Any],
    pairs: pd.DataFrame,
    banners: Sequence[str] = (),
    simulated: bool = False,
    queue: pd.DataFrame | None = None,
    audit: str = "",
) -> str:
    """Return the gate's page as HTML text.

    Parameters
    ----------
    decision : GateDecision
    authority, shift : pandas.DataFrame
        Tables of :mod:`judge_calibration.metrics.authority`; may be empty.
    document : mapping
        The result of :func:`gate_document`.
    pairs : pandas.DataFrame
        The products' pairs, for the audit queue.
    banners : sequence of str
        Warnings for the whole page.
    simulated : bool
        Marks the page and every table SIMULATED.
    queue : pandas.DataFrame, optional
        The audit queue (metrics.audit_queue.AUDIT_COLUMNS).
    audit : str
        Beginning of the names of the queue's artifacts, which are written beside this page; empty: none are.
    """
    old, new = document["products"]["old"], document["products"]["new"]
    details = tuple(f"{reason_in_words(one)} {next_step(one)}".strip() for one in decision.reasons) or (
        f"The judge prefers {new} by {_net(decision.judge)}.",
    )
    answer = Answer(
        f"{new} in place of {old}", HEADLINES[decision.outcome], details, TONES[decision.outcome], None
    )
    runs = ", ".join(f"{name} {run or 'none'}" for name, run in document["runs"].items())
    status = decision.rule_status
    summary = (
        f"Decision rule '{decision.rule}' ({status}), judged by "
        f"{cell_name(document['cell'])}, {count_noun(len(pairs), 'pair')}. Runs: {runs}."
    )
    sections = [
        _keys_section(decision),
        _authority_section(authority),
        sentinel_section(document["sentinel"]),
        _shift_section(shift),
        _audit_section(decision, pairs, queue, audit),
        Section(
            "rule",
            "The rule",
            "A rule counts as declared only if its hash was recorded before the verdicts were asked for.",
            [Prose((f"Name: {decision.rule}", f"SHA-256: {decision.rule_hash}", f"State: {status}"))],
        ),
    ]
    return render_page(
        f"Release gate: {new} against {old}",
        summary,
        [answer],
        [*(marked(section, simulated) for section in sections), _definitions()],
        ([SIMULATED] if simulated else []) + list(banners),
        "May the new product ship?",
    )


def _definitions() -> Section:
    """The definitions that a gate's or a sentinel's page links to."""
    names = ("authority", "position", "judgment", "interval", "instrument")
    return Section("definitions", "Definitions", "", [Terms(tuple(GLOSSARY[name] for name in names))])


def reason_in_words(reason: str) -> str:
    """Return a reason code, with what follows its colon, as a sentence.

    Examples
    --------
    >>> reason_in_words("not_earned: math (agreement: below_floor)")
    'The judge has not earned this slice: math (agreement: below floor).'
    """
    code, colon, rest = reason.partition(":")
    said = _REASONS.get(code, f"{code[:1].upper()}{code[1:].replace('_', ' ')}")
    return f"{said}{colon}{rest.replace('_', ' ')}."


def next_step(reason: str) -> str:
    """Return what would lift a reason; empty where nothing would.

    Examples
    --------
    >>> next_step("humans_absent: math (no_human_labels)")
    'Have people label a blinded sample.'
    """
    return _STEPS.get(reason.partition(":")[0], "")


def _net(key: Key) -> str:
    if is_missing(key.low):
        return f"{key.net:+.3f}" if not is_missing(key.net) else "an undefined margin"
    return f"{key.net:+.3f} ({key.low:+.3f} to {key.high:+.3f})"


def _keys_section(decision: GateDecision) -> Section:
    rows = []
    for name, key in [("Judge", decision.judge), *(("People", key) for key in decision.humans)]:
        rows.append(
            {
                "Key": f"{name}: {key.scope}",
                "Says": key.verdict + (f" ({reason_text(key.reason)})" if key.reason else ""),
                "Net for new": "–" if is_missing(key.net) else _net(key),
                "Has to exceed": f"{key.threshold + 0.0:+.3f}",  # no -0.000
                "Wins": str(key.wins),
                "Losses": str(key.losses),
                "Ties": str(key.ties),
                "Failures": str(key.failures),
                "n": str(key.n),
                "Base tasks": str(key.tasks),
            }
        )
    note = (
        "Net: (wins - losses) / n of the new product, from -1 to 1, with one-sided bounds at the rule's "
        "alpha each, clustered by base task. The judge counts both orders of a pair half each."
    )
    table = TableBlock("keys", "Both keys", note, pd.DataFrame(rows), decision.frame())
    blocks: list[Block] = [table]
    if not any(key.n for key in decision.humans):
        blocks.append(
            Missing("No human labels are there. Plan and import them:", "kedro run --pipelines annotation")
        )
    return Section("keys-section", "The two keys", "Both have to turn: the judge, and people.", blocks)


def _authority_section(authority: pd.DataFrame) -> Section:
    lead = "The judge decides only in slices where every criterion of the rule has a bound above its floor."
    if authority.empty:
        missing = Missing("This instrument was never calibrated. Calibrate it:", "kedro run --env bank")
        return Section("authority", "Earned authority", lead, [missing])
    columns = [
        "slice", "critical", "criterion", "earned", "reason", "value", "low", "high", "floor", "n_pairs",
        "n_tasks", "tasks_to_settle",
    ]  # fmt: skip
    note = (
        "Tasks to settle: base tasks at which the bounds would leave the floor if all else stayed as it is."
    )
    table = TableBlock(
        "authority-table", "Slices and criteria", note, readable(authority[columns]), authority
    )
    return Section("authority", "Earned authority", lead, [table])


def sentinel_section(document: Mapping[str, Any]) -> Section:
    """Return the section on one cell's sentinel comparison."""
    lead = (
        "Protected pairs, judged again since the calibration: changes beyond the judge's own noise, changes "
        "of being right, and of failing."
    )
    name = cell_name(document["cell"])
    blocks: list[Block] = []
    if "measures" not in document:
        what = (
            f"{name}: nothing to compare ({document['reason'] or 'no run of the sentinel pairs'}). Ask anew:"
        )
        blocks.append(Missing(what, "kedro run --env sentinel --pipelines data_prep,judging"))
        return Section("sentinel", "Sentinel", lead, blocks)
    frame = pd.DataFrame(document["measures"]).astype({"value": float, "low": float, "high": float})
    said = reason_in_words(document["reason"]) if document["reason"] else ""
    note = f"{document['pairs']} pairs of {document['tasks']} base tasks. {said}".strip()
    if not document["noise_known"]:
        note += " One repetition: the judge's own noise is not known and not subtracted."
    if document["absent"]:
        note += f" {count_noun(len(document['absent']), 'pair')} absent from the new run counted as failed."
    note += (
        " Changed: share of verdicts that changed, less the judge's own noise; accuracy and failures: new "
        "share less frozen share. Bounds at the rule's alpha on each side; all have to lie within the margin."
    )
    slug = "sentinel-" + "-".join(str(value) for value in document["cell"].values()).replace(" ", "-")
    blocks.append(
        TableBlock(slug, f"{name}: {reason_text(str(document['status']))}", note, readable(frame), frame)
    )
    return Section("sentinel", "Sentinel", lead, blocks)


def _shift_section(shift: pd.DataFrame) -> Section:
    lead = "What the judge was calibrated on, beside what it decides here."
    if shift.empty:
        missing = Missing("There is no calibration set. Make one:", "kedro run --env bank")
        return Section("shift", "Shift", lead, [missing])
    note = "Share of pairs by slice, language, and quartile of length (limits from the calibration set)."
    table = TableBlock("shift-table", "Calibration and judged set", note, readable(shift), shift)
    return Section("shift", "Shift", lead, [table])


def _audit_section(
    decision: GateDecision, pairs: pd.DataFrame, queue: pd.DataFrame | None, audit: str
) -> Section:
    lead = (
        "What a person should look at first: pairs on which the judge and people disagree, orders "
        "that contradict each other, abstentions, low confidence, failures, unsupported citations."
    )
    blocks: list[Block] = []
    if decision.audit_pairs:
        rows = pairs[pairs["pair_id"].isin(decision.audit_pairs)]
        names = ("pair_id", "base_id", "domain", "stakes", "question")
        shown = [name for name in names if name in rows.columns]
        columns = [*shown, *(c for c in ("response_a", "response_b") if c in rows.columns)]
        table, more = shortened(readable(rows[shown]))
        note = f"The judge and people point to different products. All texts are in the download. {more}"
        blocks.append(
            TableBlock(
                "audit-table",
                "Pairs on which the judge and people disagree",
                note.strip(),
                table,
                rows[columns],
            )
        )
    if queue is not None and len(queue):
        blocks.append(reasons_block(queue, "audit-reasons-table"))
        if audit:
            text = f"Browse the queue with raw requests and replies ({audit}.html of the same decision)"
            blocks.append(FileLink(text, f"{audit}.html"))
            text = f"The same pairs lie blinded in {audit}_packets: spreadsheets and Label Studio tasks."
            blocks.append(Prose((text,)))
    return Section(
        "audit", "Audit queue", lead, blocks or [Prose(("Nothing here has a reason to be looked at.",))]
    )


def sentinel_page(
    documents: Sequence[Mapping[str, Any]],
    summary: str,
    banners: Sequence[str] = (),
    simulated: bool = False,
) -> str:
    """Return the sentinel's page: one answer a cell."""
    answers = [
        Answer(
            cell_name(document["cell"]),
            HEADLINES.get(str(document["status"]), NOT_COMPARED),
            (reason_in_words(document["reason"]),) if document["reason"] else (),
            TONES.get(str(document["status"]), "unknown"),
            None,
        )
        for document in documents
    ]
    blocks: list[Block] = [block for document in documents for block in sentinel_section(document).blocks]
    lead = sentinel_section(documents[0]).lead if documents else ""
    section = marked(Section("sentinel", "What was compared", lead, blocks), simulated)
    return render_page(
        "Sentinel",
        summary,
        answers,
        [section, _definitions()],
        ([SIMULATED] if simulated else []) + list(banners),
        "Is each judge still the one that was calibrated?",
    )
