"""The report's part on the audit queue: what waits for a person, and where it can be browsed."""

from __future__ import annotations

import json
from collections import Counter

import pandas as pd

from judge_calibration.metrics.audit_queue import REASONS
from judge_calibration.report.blocks import Block, FileLink, Missing, Section, TableBlock
from judge_calibration.report.result_tables import Tables, some
from judge_calibration.report.wording import count_noun

PAGE = "audit_page.html"
_LEAD = (
    "Judgments that a person should look at first: contradictions, abstentions, low confidence, failed "
    "outcomes, unsupported citations, disagreements with people, and changed verdicts where two runs are "
    "compared."
)


def audit_section(tables: Tables) -> Section:
    """Return the section."""
    frame = some(tables, "audit_queue")
    if frame is None:
        if "audit_queue" in tables:
            what = (
                "Nothing in this run has a reason to be looked at. Changed verdicts come from comparing runs:"
            )
            return Section("audit", "Audit queue", _LEAD, [Missing(what, "kedro compare RUN RUN")])
        missing = Missing("It takes verdicts:", "kedro run --pipeline judging")
        return Section("audit", "Audit queue", _LEAD, [missing])
    blocks: list[Block] = [
        reasons_block(frame, "audit-table"),
        FileLink(f"Browse the queue with raw requests and replies ({PAGE} of the same run)", PAGE),
    ]
    return Section("audit", "Audit queue", _LEAD, blocks)


def reasons_block(frame: pd.DataFrame, id: str) -> TableBlock:
    """Return how many judges and pairs each reason names, and how many of them are queued.

    Parameters
    ----------
    frame : pandas.DataFrame
        metrics.audit_queue.AUDIT_COLUMNS.
    id : str
        Of the table on its page.
    """
    named: Counter[str] = Counter()
    queued: Counter[str] = Counter()
    for reasons, taken in zip(frame["reasons"], frame["queued"], strict=True):
        own = json.loads(reasons)
        named.update(own)
        queued.update(own if taken else [])
    shown = pd.DataFrame(
        [
            {
                "Reason": name.replace("_", " "),
                "Meaning": words,
                "Judge and pair": named[name],
                "Queued": queued[name],
            }
            for name, words in REASONS.items()
            if named[name]
        ]
    ).astype("str")
    note = (
        f"{int(frame['queued'].sum()):,} of {count_noun(len(frame), 'judge and pair', 'judges and pairs')} "
        "are queued, in turns over reasons and slices (reporting.audit). A row may have several reasons."
    )
    return TableBlock(id, "Why judgments wait", note, shown, frame)
