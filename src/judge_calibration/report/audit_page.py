"""The audit queue as a page: filter by reason, open one, read both answers, every raw request and reply."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from judge_calibration.metrics.audit_queue import REASONS, people_say
from judge_calibration.metrics.cell_choice import NAMES, rows_of_cell
from judge_calibration.metrics.judgments import CELL_COLUMNS
from judge_calibration.report.page import packaged, templates
from judge_calibration.report.wording import cell_name, count_noun, is_missing

_JUDGMENT = ["order", "temperature", "repetition"]


class Before(NamedTuple):
    """The earlier of two runs.

    Attributes
    ----------
    verdicts, calls, answers : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    cells : tuple of (dict, dict)
        Which of its cells is held beside which of the later run's (earlier first).
    """

    verdicts: pd.DataFrame
    calls: pd.DataFrame
    answers: pd.DataFrame
    cells: tuple[tuple[Mapping[Any, Any], Mapping[Any, Any]], ...]


def audit_page(
    queue: pd.DataFrame,
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    calls: pd.DataFrame,
    answers: pd.DataFrame,
    labels: pd.DataFrame,
    most_judgments: int = 6,
    simulated: bool = False,
    title: str = "Audit queue",
    table: str = "audit_queue",
    before: Before | None = None,
) -> str:
    """Return the page as HTML text. It un-blinds: it is for whoever decides, not for those who label.

    Parameters
    ----------
    queue : pandas.DataFrame
        metrics.audit_queue.AUDIT_COLUMNS; only queued rows are shown.
    verdicts, pairs, calls, answers, labels : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`; of verdicts from logs there are no calls.
    most_judgments : int
        Judgments of one cell and pair that are shown.
    simulated : bool
        Marks the page SIMULATED.
    title : str
    table : str
        Name of the table that holds the whole queue.
    before : Before, optional
        What the same judgments were in the earlier of two runs.
    """
    queued = queue[queue["queued"]]
    asked = _asked(queued, calls, answers)
    about = pairs.drop_duplicates("pair_id").set_index("pair_id")
    given = verdicts[verdicts["pair_id"].isin(set(queued["pair_id"]))]
    people = people_say(labels)
    items = [_item(row, given, about, asked, people, most_judgments) for row in queued.to_dict("records")]
    if before is not None:
        _add_before(items, queued, before, most_judgments)
    counts = {name: sum(name in item["reasons"] for item in items) for name in REASONS}
    heads = [
        {name: item[name] for name in ("priority", "pair", "cell", "reasons", "domain", "stakes")}
        for item in items
    ]
    packed = base64.b64encode(
        gzip.compress(json.dumps(items, ensure_ascii=False).encode("utf-8", "replace"), 9, mtime=0)
    ).decode("ascii")
    return (
        templates()
        .get_template("audit.html.j2")
        .render(  # type: ignore[no-any-return]
            title=title,
            summary=_summary(queue, queued, table),
            simulated=simulated,
            reasons=[(name, REASONS[name], n) for name, n in counts.items() if n],
            words=REASONS,
            table=table,
            items=heads,
            packed=packed,
            style=packaged("page.css") + packaged("audit.css"),
            script=packaged("audit.js"),
        )
    )


def _summary(queue: pd.DataFrame, queued: pd.DataFrame, table: str) -> str:
    if queue.empty:
        return "Nothing here has a reason to be looked at."
    packets = "audit_packets" if table == "audit_queue" else f"{table}_packets"
    return (
        f"{count_noun(len(queued), 'judge and pair', 'judges and pairs')} of {len(queue):,} that have a "
        "reason, in turns over reasons and slices, rare reasons and several reasons first. The table "
        f"{table} has all; {packets} holds the same pairs blinded, for people to label. This page "
        "un-blinds: keep it from them."
    )


def _asked(
    queued: pd.DataFrame, calls: pd.DataFrame, answers: pd.DataFrame
) -> dict[tuple[str, ...], list[Any]]:
    """Return the calls of the queued cells and pairs with their answers, by judgment."""
    wanted = calls[calls["pair_id"].isin(set(queued["pair_id"]))]
    if wanted.empty:
        return {}
    columns = ["call_id", "request", "text", "reasoning", "failure", "finish_reason"]
    joined = wanted.drop(columns="request").merge(answers[columns], on="call_id", how="left")
    found: dict[tuple[str, ...], list[Any]] = {}
    for row in joined.to_dict("records"):
        key = _key(row, ["pair_id", "judge_id", "instrument_id", *_JUDGMENT])
        found.setdefault(key, []).append(row)
    return found


def _key(row: Mapping[Any, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple("" if is_missing(row.get(name)) else str(row[name]) for name in names)


def _item(
    row: Mapping[Any, Any],
    verdicts: pd.DataFrame,
    about: pd.DataFrame,
    asked: Mapping[tuple[str, ...], list[Any]],
    people: Mapping[str, str],
    most: int,
) -> dict[str, Any]:
    pair = about.loc[row["pair_id"]]
    own = verdicts[verdicts["pair_id"] == row["pair_id"]]
    for name in CELL_COLUMNS:
        own = own[own[name].isna()] if is_missing(row[name]) else own[own[name] == row[name]]
    return {
        "priority": int(row["priority"]),
        "pair": str(row["pair_id"]),
        "cell": cell_name(row),
        "reasons": json.loads(row["reasons"]),
        "domain": _text(pair.get("domain")),
        "stakes": _text(pair.get("stakes")),
        "source": _text(pair.get("source")),
        "manipulation": _text(pair.get("manipulation")),
        "modified": _text(pair.get("modified")),
        "reference": _text(pair.get("reference_label")),
        "reference_kind": _text(pair.get("reference_kind")),
        "people": people.get(str(row["pair_id"]), ""),
        "question": _text(pair.get("question")),
        "answer_a": _text(pair.get("response_a")),
        "answer_b": _text(pair.get("response_b")),
        "candidates": [_text(pair.get(name)) for name in ("candidate_a", "candidate_b")],
        "left_out": max(0, len(own) - most),
        "judgments": _judgments(own, asked, most),
    }


def _judgments(
    own: pd.DataFrame, asked: Mapping[tuple[str, ...], list[Any]], most: int
) -> list[dict[str, Any]]:
    found = []
    ordered = own.sort_values(["repetition", "order"], kind="stable")
    for verdict in ordered.head(most).to_dict("records"):
        key = _key(verdict, ["pair_id", "judge_id", "instrument_id", *_JUDGMENT])
        found.append(_judgment(verdict, asked.get(key, [])))
    return found


def _add_before(items: list[dict[str, Any]], queued: pd.DataFrame, before: Before, most: int) -> None:
    """Add what each item's judgments were in the earlier run."""
    asked = _asked(queued, before.calls, before.answers)
    earlier = {_cell_key(after): cell for cell, after in before.cells}
    given = before.verdicts[before.verdicts["pair_id"].isin(set(queued["pair_id"]))]
    for item, row in zip(items, queued.to_dict("records"), strict=True):
        own = rows_of_cell(given[given["pair_id"] == row["pair_id"]], earlier[_cell_key(row)])
        item["before"] = _judgments(own, asked, most)


def _cell_key(row: Mapping[Any, Any]) -> tuple[str, ...]:
    return _key(row, NAMES)


def _judgment(verdict: Mapping[Any, Any], calls: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    return {
        "order": str(verdict["order"]),
        "repetition": int(verdict["repetition"]),
        "outcome": str(verdict["outcome"]),
        "verdict": _text(verdict.get("verdict")),
        "confidence": _text(verdict.get("confidence")),
        "parse_path": _text(verdict.get("parse_path")),
        "flags": _text(verdict.get("flags")),
        "calls": [
            {
                "step": str(call["step"]),
                "request": _pretty(_text(call["request"])),
                "reply": _text(call["text"]),
                "reasoning": _text(call["reasoning"]),
                "failure": _text(call["failure"]),
                "finish_reason": _text(call["finish_reason"]),
            }
            for call in calls
        ],
    }


def _pretty(request: str) -> str:
    """Return a canonical request with one field a line; the text in it stays as it was sent."""
    return json.dumps(json.loads(request), indent=1, ensure_ascii=False) if request else ""


def _text(value: Any) -> str:
    return "" if is_missing(value) or (isinstance(value, float) and pd.isna(value)) else str(value)
