"""Records that hold several pairs, laid out as one row each before their fields are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from judge_calibration.options.layout import Expand
from judge_calibration.sources.fields import _walk, as_number
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import ABSENT, BLOCK, Block, RecordBlock, records_of

Row = tuple[int, dict[str, Any]]


def expand_blocks(
    blocks: Iterable[Block],
    steps: tuple[Expand, ...],
    file: str,
    problems: Problems,
    notes: Counter[str] | None = None,
) -> Iterator[Block]:
    """Yield the blocks with every record laid out by the described steps, in their order.

    Records that give no row, such as a single answer to a question, are counted in `notes`.
    """
    if not steps:
        yield from blocks
        return
    rows: Iterator[Row] = (
        (row, record) for block in blocks for row, record in zip(block.rows, records_of(block), strict=True)
    )
    for step in steps:
        rows = _laid_out(rows, step, file, problems, Counter() if notes is None else notes)
    numbers: list[int] = []
    records: list[dict[str, Any]] = []
    for row, record in rows:
        numbers.append(row)
        records.append(record)
        if len(numbers) >= BLOCK:
            yield RecordBlock(numbers, records)
            numbers, records = [], []
    if numbers:
        yield RecordBlock(numbers, records)


def _laid_out(
    rows: Iterator[Row], step: Expand, file: str, problems: Problems, notes: Counter[str]
) -> Iterator[Row]:
    if step.kind == "grouped":
        yield from _grouped(rows, step, file, problems, notes)
        return
    for item in rows:
        none = True
        for row in _STEPS[step.kind](iter([item]), step, file, problems):
            none = False
            yield row
        notes["records_without_a_row"] += none


def _get(record: dict[str, Any], name: str) -> Any:
    value = record[name] if name in record else _walk(record, name.split("."))
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value


def _list(record: dict[str, Any], name: str, row: int, file: str, problems: Problems) -> list[Any] | None:
    value = _get(record, name)
    if isinstance(value, list):
        return value
    problems.add(file, row, name, "no such field" if value is ABSENT else show(value), "a list")
    return None


def _parallel(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    for row, record in rows:
        lists = [_list(record, name, row, file, problems) for name in step.columns]
        if any(found is None for found in lists):
            continue
        lengths = {len(found or []) for found in lists}
        if len(lengths) > 1:
            problems.add(
                file,
                row,
                ", ".join(step.columns),
                f"lists of {sorted(lengths)} elements",
                "lists of one length",
            )
            continue
        for index, values in enumerate(zip(*[found or [] for found in lists], strict=True)):
            yield row, {**record, **dict(zip(step.columns, values, strict=True)), "_index": index}


def _elements(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    name = step.columns[0]
    for row, record in rows:
        for index, value in enumerate(_list(record, name, row, file, problems) or []):
            yield row, {**record, name: value, "_index": index}


def _chosen_rejected(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    good_name, bad_name = step.columns[:2]
    for row, record in rows:
        good = _list(record, good_name, row, file, problems)
        bad = _list(record, bad_name, row, file, problems)
        for i, chosen in enumerate(good or []):
            for j, rejected in enumerate(bad or []):
                yield row, {**record, good_name: chosen, bad_name: rejected, "_index": f"{i}-{j}"}


def _pairs_of_scored(
    items: list[tuple[Any, Any, Any]],
    record: dict[str, Any],
    row: int,
    columns: tuple[str, str],
    file: str,
    problems: Problems,
) -> Iterator[Row]:
    text_column, column = columns
    scored = []
    for text, score, who in items:
        if text is ABSENT:
            problems.add(file, row, text_column, "no such field", "an answer")
            return
        number = as_number(score)
        if number is None:
            problems.add(file, row, column, show(None if score is ABSENT else score), "a number as score")
            return
        scored.append((text, number, None if who is ABSENT else who))
    for (i, (text, score, who)), (j, (other, other_score, other_who)) in combinations(enumerate(scored), 2):
        first = (text, who)
        second = (other, other_who)
        if other_score > score:
            first, second = second, first
        yield (
            row,
            {
                **record,
                "chosen": first[0],
                "rejected": second[0],
                "candidate_chosen": first[1],
                "candidate_rejected": second[1],
                "tie": score == other_score,
                "gap": abs(score - other_score),
                "_index": f"{i}-{j}",
            },
        )


def _scored(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    name = step.columns[0]
    for row, record in rows:
        found = _list(record, name, row, file, problems)
        items = [
            tuple(
                _walk(item, path.split(".")) if path else ABSENT for path in (step.text, step.score, step.who)
            )
            for item in found or []
        ]
        columns = (f"{name}.{step.text}", f"{name}.{step.score}")
        yield from _pairs_of_scored(items, record, row, columns, file, problems)  # type: ignore[arg-type]


def _grouped(
    rows: Iterator[Row], step: Expand, file: str, problems: Problems, notes: Counter[str]
) -> Iterator[Row]:
    """Bring together the records of one question wherever they stand in the file."""
    groups: dict[str, list[Row]] = {}
    for row, record in rows:
        values = [_json_safe(_get(record, name)) for name in step.by]
        if all(value is None for value in values):
            problems.add(file, row, ", ".join(step.by), "nothing", "what the answers to one question share")
            continue
        groups.setdefault(json.dumps(values, sort_keys=True), []).append((row, record))
    for members in groups.values():
        row, first = members[0]
        notes["records_without_a_row"] += len(members) == 1
        items = [
            tuple(_get(record, path) if path else ABSENT for path in (step.text, step.score, step.who))
            for _, record in members
        ]
        columns = (step.text or "text", step.score or "score")
        yield from _pairs_of_scored(items, first, row, columns, file, problems)  # type: ignore[arg-type]


def _edges(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    for row, record in rows:
        edges = _list(record, step.columns[0], row, file, problems) or []
        answers = _list(record, step.columns[1], row, file, problems) or []
        for index, edge in enumerate(edges):
            texts = []
            for path in step.by:
                number = _walk(edge, path.split("."))
                if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(answers):
                    wanted = f"the number of one of {len(answers)} answers"
                    found = "no such field" if number is ABSENT else show(number)
                    problems.add(file, row, f"{step.columns[0]}.{path}", found, wanted)
                    break
                texts.append(
                    _walk(answers[number], (step.text or "").split(".")) if step.text else answers[number]
                )
            if len(texts) == 2:
                yield row, {**record, "chosen": texts[0], "rejected": texts[1], "_index": index}


def _orders(rows: Iterator[Row], step: Expand, file: str, problems: Problems) -> Iterator[Row]:
    for row, record in rows:
        for name, order in zip(step.columns, ("AB", "BA"), strict=True):
            shown = _get(record, name)
            if shown is ABSENT:
                shown = {key[len(name) :]: value for key, value in record.items() if key.startswith(name)}
            if not isinstance(shown, dict) or not shown:
                problems.add(
                    file, row, name, "nothing" if not shown else show(shown), "the verdict in this order"
                )
                continue
            yield row, {**record, "_shown": shown, "_order": order}


def _json_safe(value: Any) -> Any:
    return None if value is ABSENT else value


_STEPS = {
    "parallel": _parallel,
    "elements": _elements,
    "chosen_rejected": _chosen_rejected,
    "scored": _scored,
    "edges": _edges,
    "orders": _orders,
}
