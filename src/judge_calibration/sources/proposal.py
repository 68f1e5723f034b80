"""A first description of an unknown file, for a person to complete: names are proposed, meanings never.

Which column is the question can be read off its name. What ``0`` in a label means, whether verdicts name
candidates or places, who made the labels and under which licence: that a program cannot know, so it is left
open, with the values that were found.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from pydantic import ValidationError

from judge_calibration.errors import OptionsError
from judge_calibration.options.faults import problems_of
from judge_calibration.options.layout import FieldFrom, Layout
from judge_calibration.sources.expand import expand_blocks
from judge_calibration.sources.files import OpenFile, expand_path, open_file
from judge_calibration.sources.layouts import layout_names, load_layout
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import RecordBlock, read_blocks, records_of

_LOOKED_AT = 500
_OPEN = "'?'"
_WRITTEN = ("delimiter", "encoding", "format", "quoting")
"""Settings that say how a file is written, and so help to look at it."""
_SIDES = (("_a", "_b"), ("_1", "_2"), ("_A", "_B"), ("_0", "_1"), ("A", "B"), ("1", "2"))
_STEMS = ("response", "answer", "output", "completion", "candidate_answer", "reply", "text")
_NAMES = {
    "question": ("question", "prompt", "instruction", "query", "input", "task"),
    "chosen": ("chosen", "preferred", "winner_response"),
    "rejected": ("rejected", "dispreferred", "loser_response"),
    "pair_id": ("pair_id", "id", "question_id", "item_id", "uid", "idx"),
    "domain": ("domain", "category", "subset", "task_type"),
    "label": ("label", "reference_label", "winner", "preference", "human_label", "labels", "choice"),
    "judge_id": ("judge_id", "judge", "judge_model", "annotator", "grader", "model"),
    "order": ("order", "swap", "swapped", "position"),
    "verdict": ("verdict", "decision", "judgment", "judgement", "winner", "preference", "choice"),
    "repetition": ("repetition", "repeat", "run", "trial", "epoch"),
    "protocol": ("protocol", "strategy", "prompt_name", "template"),
    "temperature": ("temperature",),
}


class Proposal(NamedTuple):
    """What can be said of a file.

    Attributes
    ----------
    fitting : list of str
        Packaged layouts that describe every column that they read, best first.
    text : str
        A description in YAML to be completed; empty where a packaged layout fits.
    remarks : list of str
        What was seen, and what has to be decided.
    """

    fitting: list[str]
    text: str
    remarks: list[str]


def propose_layout(path: str, settings: Mapping[str, Any] | None = None) -> Proposal:
    r"""Look at the first rows of a file and propose how to describe it.

    Parameters
    ----------
    path : str
    settings : mapping, optional
        What is laid over every layout that is tried, such as ``{"delimiter": ";"}``.

    Raises
    ------
    SourceError
        If the file cannot be read at all.
    OptionsError
        If a setting is none of a layout.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.csv"
    >>> _ = path.write_text("prompt,answer_1,answer_2,best\nq,a,b,left\n")
    >>> proposal = propose_layout(str(path))
    >>> "question: prompt" in proposal.text and "response_b: answer_2" in proposal.text
    True
    """
    problems = Problems()
    with open_file(expand_path(path)[0]) as file:
        written = {name: value for name, value in (settings or {}).items() if name in _WRITTEN}
        layout = _proposed(written)
        fitting = [
            name for name in layout_names() if _fits(load_layout(name).model_copy(update=written), file)
        ]
        records = list(islice(_records(file, layout, problems), _LOOKED_AT))
    problems.raise_any("correct the file, or say how it is written: format, encoding, delimiter, records")
    names = _columns(records)
    fitting.sort(key=lambda name: -_read_by(load_layout(name), names))
    remarks = [f"{len(records)} rows were looked at; the columns are {', '.join(names)}."]
    if fitting:
        remarks.append(
            f"The packaged layout '{fitting[0]}' reads it: {{path: {path}, layout: {fitting[0]}}}."
        )
        return Proposal(fitting, "", remarks)
    text, open_questions = _describe(records, names)
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in written.items()) + text
    return Proposal([], text, [*remarks, *open_questions])


def _proposed(written: Mapping[str, Any]) -> Layout:
    try:
        return Layout.model_validate({"layout": "proposed", "title": "Proposed", "kind": "pairs", **written})
    except ValidationError as error:
        raise OptionsError(
            "The file is said to be written as no file can be.",
            problems_of(error, Layout, "settings"),
            "correct --delimiter or --set",
        ) from error


def _records(file: OpenFile, layout: Layout, problems: Problems) -> Any:
    for block in read_blocks(file, layout, problems):
        yield from records_of(block)


def _fits(layout: Layout, file: OpenFile) -> bool:
    """Say whether the layout finds all its columns in the file's first rows (its codes are not tried)."""
    if layout.layout in ("pairs", "verdicts", "labels"):
        return _fits_columns(layout, file, generic=True)
    return _fits_columns(layout, file, generic=False)


def _fits_columns(layout: Layout, file: OpenFile, generic: bool) -> bool:
    problems = Problems()
    blocks = read_blocks(file, layout, problems)
    first = next(iter(blocks), None)
    if first is None or problems:
        return False
    sample = RecordBlock(first.rows[:50], records_of(first)[:50])
    block = next(iter(expand_blocks([sample], layout.expand, file.given, problems)), None)
    if block is None or problems:
        return False
    wanted = [field for field in _fields(layout) if field.column is not None and not field.optional]
    found = [_has(block, field.column or "") for field in wanted]
    in_path = [field.file for field in layout.fields.values() if field.file]
    if not all(re.search(pattern, file.given.replace("\\", "/")) for pattern in in_path):
        return False
    # Two common names are no evidence, unless the file has no other column.
    enough = generic or sum(found) >= 3 or {f.column for f in wanted} == set(_columns(records_of(first)[:50]))
    return bool(found) and all(found) and enough


def _has(block: Any, name: str) -> bool:
    if block.column(name) is not None:
        return True
    first, *rest = name.split(".")
    outer = block.column(first)
    return bool(rest) and outer is not None and any(isinstance(value, (dict, list)) for value in outer)


def _fields(layout: Layout) -> list[FieldFrom]:
    fields = list(layout.fields.values())
    if layout.conversation:
        fields += [layout.conversation.a, layout.conversation.b]
    if layout.shown:
        fields += [layout.shown.first, layout.shown.second]
    if layout.votes:
        fields += [*layout.votes.labels, *(f for f in (layout.votes.a, layout.votes.b) if f)]
    parts = [part for field in fields for part in (*field.join, *field.any_of)]
    return [field for field in (*fields, *parts) if field.column]


def _read_by(layout: Layout, names: list[str]) -> int:
    columns = {(field.column or "").split(".")[0] for field in _fields(layout)}
    return len(columns & set(names))


def _columns(records: list[dict[str, Any]]) -> list[str]:
    names: dict[str, None] = {}
    for record in records:
        names.update(dict.fromkeys(record))
    return [name for name in names if not name.startswith("_")]


def _describe(records: list[dict[str, Any]], names: list[str]) -> tuple[str, list[str]]:
    lower = {name.lower(): name for name in names}
    found = {
        field: next((lower[word] for word in words if word in lower), None) for field, words in _NAMES.items()
    }
    sides = _answer_columns(names)
    is_log = found["judge_id"] is not None and found["verdict"] is not None and found["judge_id"] != "model"
    fields: dict[str, str | None] = {"question": found["question"]}
    if found["chosen"] and found["rejected"]:
        fields |= {"chosen": found["chosen"], "rejected": found["rejected"]}
    else:
        fields |= {"response_a": sides[0], "response_b": sides[1]}
    if is_log:
        fields |= {name: found[name] for name in ("pair_id", "judge_id", "order", "verdict")}
        fields |= {n: found[n] for n in ("repetition", "protocol", "temperature") if found[n]}
        fields = {name: value for name, value in fields.items() if value or name not in ("question",)}
    else:
        fields |= {name: found[name] for name in ("pair_id", "domain") if found[name]}
        if "chosen" not in fields:
            fields["label"] = found["label"]
    label = fields.get("verdict" if is_log else "label")
    lines = [
        "layout: mine",
        "title: '?'  # what the file is",
        f"kind: {'verdicts' if is_log else 'pairs'}",
        "licence: '?'  # e.g. CC-BY-4.0, or null",
        "order_mode: '?'  # identity: labels name the candidate; shown: they name the place",
    ]
    if not is_log:
        lines.append("reference_kind: '?'  # human, ai, benchmark or constructed")
    lines.append("fields:")
    lines += [f"  {name}: {value or _OPEN}" for name, value in fields.items()]
    questions = [f"No column for {name} was recognised." for name, value in fields.items() if value is None]
    if label is not None:
        values = Counter(show(record.get(label)) for record in records).most_common(12)
        seen = ", ".join(f"{value} ({count})" for value, count in values)
        lines += [
            f"codes:  # found in {label}: {seen}",
            "  A: ['?']",
            "  B: ['?']",
            "  TIE: ['?']",
            "  none: ['?']",
        ]
        questions.append(f"What the values of {label} mean has to be said: {seen}.")
    if is_log:
        lines += ["outcomes:", "  - {outcome: missing}  # or why a row has no verdict, by a column's value"]
    questions.append("order_mode, licence and who made the labels have to be said; nothing is guessed.")
    return "\n".join(lines) + "\n", questions


def _answer_columns(names: list[str]) -> tuple[str | None, str | None]:
    for stem in _STEMS:
        for first, second in _SIDES:
            if stem + first in names and stem + second in names:
                return stem + first, stem + second
    return None, None
