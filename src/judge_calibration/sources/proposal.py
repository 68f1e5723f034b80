"""A first description of an unknown file, for a person to complete: names are proposed, meanings never.

Which column is the question can be read off its name. What ``0`` in a label means, whether verdicts name
candidates or places, who made the labels and under which licence: that a program cannot know, so it is left
open, with the values that were found.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from judge_calibration.errors import OptionsError
from judge_calibration.options.faults import problems_of
from judge_calibration.options.layout import FieldFrom, Layout
from judge_calibration.sources.expand import expand_blocks
from judge_calibration.sources.fields import _walk
from judge_calibration.sources.files import OpenFile, expand_path, open_file
from judge_calibration.sources.layouts import layout_names, load_layout, written_as
from judge_calibration.sources.problems import Problems, show
from judge_calibration.sources.records import ABSENT, RecordBlock, read_blocks, records_of

_LOOKED_AT = 500
_OPEN = "'?'"
_WRITTEN = ("delimiter", "encoding", "format", "quoting", "records", "sheet")
"""Settings that say how a file is written, and so help to look at it."""
_SIDES = (
    ("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"), ("one", "two"), ("x", "y"),
    ("old", "new"), ("eins", "zwei"),
)  # fmt: skip
_STEMS = ("response", "answer", "output", "completion", "candidate_answer", "reply", "generation", "text")
_NO_ANSWERS = (
    "model",
    "generator",
    "winner",
    "score",
    "id",
    "name",
    "rank",
    "rating",
    "label",
    "n",
    "tokens",
)
_NAMES = {
    "question": (
        "question", "prompt", "instruction", "query", "input", "task", "messages", "user_prompt", "post",
    ),
    "chosen": ("chosen", "preferred", "winner_response"),
    "rejected": ("rejected", "dispreferred", "loser_response"),
    "pair_id": (
        "pair_id", "id", "question_id", "item_id", "example_id", "sample_id", "task_id", "uid", "idx",
        "example", "sample", "item",
    ),
    "domain": ("domain", "category", "subset", "task_type"),
    "label": (
        "label", "reference_label", "winner", "preference", "human_label", "labels", "choice", "gold_label",
        "gold", "better", "best", "vote",
    ),
    "judge_id": ("judge_id", "judge", "judge_model", "annotator", "grader", "model"),
    "order": ("order", "swap", "swapped", "position"),
    "verdict": ("verdict", "decision", "judgment", "judgement", "winner", "preference", "choice"),
    "repetition": ("repetition", "repeat", "run", "trial", "epoch"),
    "protocol": ("protocol", "strategy", "prompt_name", "template"),
    "temperature": ("temperature",),
    "reference_label": ("reference_label", "gold_label", "human_label", "gold", "label", "reference"),
}  # fmt: skip
_TEXTS = ("question", "response_a", "response_b")
_HOW = {
    "order": "if the log does not tell which answer was shown first, write `order: {const: AB}` and "
    "`order_recorded: false`; then nothing that needs both orders is computed",
    "pair_id": "if there is none, put `question`, `response_a` and `response_b` in its place: pairs are then "
    "named by their texts",
    "judge_id": "if there is one judge, write `judge_id: {const: ITS NAME}`",
    "label": "if there is none, take the line and `codes` out",
}
"""What to do where a column is not recognised, beside naming it."""
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*( [\w.-]+)*")
_DEEPEST, _LONGEST_LIST, _MOST = 6, 4, 200


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
        fitting = [name for name in layout_names() if _fits(_tried(name, written, file), file)]
        if fitting:  # which says where the records are
            layout, problems = _tried(fitting[0], written, file), Problems()
        records = list(islice(_records(file, layout, problems), _LOOKED_AT))
    problems.raise_any(
        "correct the file, or say how it is written: "
        "`--set format=...,encoding=...,delimiter=...,records=...,sheet=...`"
    )
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


def _tried(name: str, written: Mapping[str, Any], file: OpenFile) -> Layout:
    layout = load_layout(name)
    if "format" not in written:
        layout = written_as(layout, file.name)
    return layout.model_copy(update=written)


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
    in_path = [field.file for field in layout.fields.values() if field.file and not field.optional]
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
        talk = layout.conversation
        fields += [field for field in (talk.a, talk.b, talk.asked) if field]
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


def _leaves(records: list[dict[str, Any]]) -> list[str]:
    """Return the dotted paths of all single values in the records; chat messages are one value."""
    paths: dict[str, None] = {}
    for record in records:
        for name, value in record.items():
            if not name.startswith("_"):
                paths.update(dict.fromkeys(_ends(name, value, _DEEPEST)))
    return list(paths)[:_MOST]


def _ends(path: str, value: Any, depth: int) -> Iterator[str]:
    inner: list[tuple[str, Any]] = []
    if isinstance(value, dict) and not _is_message(value):
        inner = [(name, part) for name, part in value.items() if "." not in name]
    elif isinstance(value, list) and len(value) <= _LONGEST_LIST and not any(map(_is_message, value)):
        inner = [(str(place), part) for place, part in enumerate(value)]
    if not inner or not depth:
        yield path
        return
    for name, part in inner:
        yield from _ends(f"{path}.{name}", part, depth - 1)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and ({"role", "content"} <= set(value) or {"from", "value"} <= set(value))


def _value(record: dict[str, Any], path: str) -> Any:
    value = record[path] if path in record else _walk(record, path.split("."))
    return None if value is ABSENT else value


def _named(paths: list[str], words: tuple[str, ...]) -> str | None:
    """Return the path that is called by one of the words: by its end, else by a part of it."""
    for at_the_end in (True, False):
        for word in words:
            found = [path for path in paths if word in _parts(path, at_the_end)]
            if found:
                return min(found, key=lambda path: path.count("."))
    return None


def _parts(path: str, at_the_end: bool) -> list[str]:
    parts = [path.lower(), *path.lower().split(".")]
    return [parts[0], parts[-1]] if at_the_end else parts


def _describe(records: list[dict[str, Any]], names: list[str]) -> tuple[str, list[str]]:
    paths = _leaves(records) or names
    found = {field: _named(paths, words) for field, words in _NAMES.items()}
    judge, verdict = found["judge_id"], found["verdict"]
    is_log = bool(judge and verdict) and judge.split(".")[-1].lower() != "model"  # type: ignore[union-attr]
    sides = _answer_columns(paths, records)
    fields: dict[str, str | None] = {"question": found["question"]}
    if found["chosen"] and found["rejected"]:
        fields |= {"chosen": found["chosen"], "rejected": found["rejected"]}
    else:
        fields |= {"response_a": sides[0], "response_b": sides[1]}
    reference = None
    if is_log:
        if None in fields.values():  # a log may come without the texts
            fields = {}
        fields |= {name: found[name] for name in ("pair_id", "judge_id", "order", "verdict")}
        fields |= {n: found[n] for n in ("repetition", "protocol", "temperature") if found[n]}
        reference = found["reference_label"] if found["reference_label"] != verdict else None
        if reference:
            fields["reference_label"] = reference
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
    if not is_log or reference:
        lines.append("reference_kind: '?'  # human, ai, benchmark or constructed")
    lines.append("fields:")
    lines += [f"  {name}: {_OPEN if value is None else _yaml(value)}" for name, value in fields.items()]
    questions = [
        f"No column for {name} was recognised: name one of the columns"
        + (f"; {_HOW[name]}." if name in _HOW else ".")
        for name, value in fields.items()
        if value is None
    ]
    questions += [
        f"Column {name} holds JSON as text: name what is inside by "
        f"{{column: {name}, json_text: true, path: ...}}."
        for name in paths
        if _is_json_text(records, name)
    ]
    for key, column in (("codes", label), ("reference_codes", reference)):
        if column is None:
            continue
        values = Counter(show(_value(record, column)) for record in records).most_common(12)
        seen = ", ".join(f"{value} ({count})" for value, count in values)
        lines += [
            f"{key}:  # found in {column}: {seen}",
            "  A: ['?']",
            "  B: ['?']",
            "  TIE: ['?']",
            "  none: ['?']",
        ]
        questions.append(f"What the values of {column} mean has to be said: {seen}.")
    order = fields.get("order")
    if order:
        orders = Counter(show(_value(record, order)) for record in records)
        if set(orders) - {"'AB'", "'BA'"}:
            seen = ", ".join(f"{value} ({count})" for value, count in orders.most_common(12))
            lines += [f"order_codes:  # AB shows candidate A first; found in {order}: {seen}"]
            lines += ["  AB: ['?']", "  BA: ['?']"]
            questions.append(f"Which values of {order} show candidate A first has to be said: {seen}.")
    if is_log:
        lines += ["outcomes:", "  - {outcome: missing}  # or why a row has no verdict, by a column's value"]
        if "question" not in fields:
            lines += [
                "rules: {missing_texts: allow}  # the log has no texts, so its pairs are not judged anew"
            ]
    questions.append("order_mode, licence and who made the labels have to be said; nothing is guessed.")
    questions.append("In order_mode shown, codes are `first` and `second` in place of `A` and `B`.")
    return "\n".join(lines) + "\n", questions


def _yaml(name: str) -> str:
    odd = _PLAIN.fullmatch(name) is None or yaml.safe_load(name) != name
    return json.dumps(name, ensure_ascii=False) if odd else name


def _is_json_text(records: list[dict[str, Any]], path: str) -> bool:
    values = [value for record in records[:20] if isinstance(value := _value(record, path), str) and value]
    if not values or any(value[0] not in "[{" for value in values):
        return False
    try:
        return all(isinstance(json.loads(value), (list, dict)) for value in values)
    except ValueError:
        return False


def _answer_columns(paths: list[str], records: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    """Return the two columns that differ by their side only, best those that are called like answers."""
    best: tuple[tuple[int, float], str, str] | None = None
    there = set(paths)
    for path in paths:
        for words, other in _other_side(path):
            called = any(stem in path.lower() for stem in _STEMS)
            if other not in there or (not called and set(words) & set(_NO_ANSWERS)):
                continue
            texts = [_value(record, path) for record in records[:20]]
            lengths = [len(text) if isinstance(text, (str, list)) else 0 for text in texts]
            rank = next((k for k, word in enumerate(_STEMS) if word in path.lower()), len(_STEMS))
            score = (rank, -sum(lengths) / max(len(lengths), 1))
            if any(lengths) and (best is None or score < best[0]):
                best = (score, path, other)
    return (best[1], best[2]) if best else (None, None)


def _other_side(path: str) -> Iterator[tuple[list[str], str]]:
    """Yield the path with one side in it exchanged for the other, and the words around that side."""
    parts = path.split(".")
    for place, part in enumerate(parts):
        # `answer_a`, `a.text`, `old answer`, and `answerA`, `answer1` without a mark between.
        words = re.split(r"([_\- ]+)", part)
        found = [(k, word) for k, word in enumerate(words)]
        glued = re.fullmatch(r"(.*[A-Za-z])([AB012])", part)
        if glued:
            words, found = [glued[1], glued[2]], [(1, glued[2])]
        for k, word in found:
            for first, second in _SIDES:
                for one, two in ((first, second), (first.upper(), second.upper())):
                    if word == one:
                        other = "".join([*words[:k], two, *words[k + 1 :]])
                        rest = [w.lower() for j, w in enumerate(words) if j != k and w.strip("_- ")]
                        yield rest, ".".join([*parts[:place], other, *parts[place + 1 :]])
