"""The design check: everything that the bank promises, tested on its files and on the built pairs.

A pure function. It trusts neither the recipes nor the builder: each pair is compared with its task's
canonical answer and has to differ in its one declared dimension. All faults are raised together.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from judge_calibration.bank import rules, words
from judge_calibration.bank.build import (
    CANONICAL,
    EXPECTS_TIE,
    PRIVATE_SOURCE,
    QUALITY_GAP,
    SOURCE,
    content_hash_of,
)
from judge_calibration.bank.diffs import apply_differences
from judge_calibration.bank.leaks import Leak, leak_tests
from judge_calibration.bank.privacy import private_things
from judge_calibration.bank.proofs import Found, shortened
from judge_calibration.bank.tasks import DIFFICULTIES, DOMAINS, INJECTION_KINDS, Bank, BankError, Task
from judge_calibration.bank.transforms import RecipeError, inject, restyle, vary_length, without_invisible
from judge_calibration.bank.variants import mutated, polished
from judge_calibration.errors import Problem
from judge_calibration.schemas import PAIRS, problems_of
from judge_calibration.text import canonical_json, from_storable

Row = dict[Any, Any]
"""One pair by column."""

PLANNED = ("length", "style", "citation", "correctness", "identity")
EXTRA = ("polished_but_wrong", "injection")
RIGHT_TO_LEFT, CJK = {"ar", "he", "fa", "ur"}, {"zh", "ja", "ko"}
MEDIAN_WORDS = 140
MOST_TASKS_A_FRAME = 2
LIKENESS = 0.35
"""The share of common five-letter shingles from which two tasks are near-duplicates."""


@dataclass(frozen=True)
class DesignCheck:
    """A bank that passed.

    Attributes
    ----------
    table : pandas.DataFrame
        What was checked, a row each: ``check``, ``domain``, ``difficulty``, ``manipulation`` (null: all),
        ``found``, ``low`` and ``high`` (an interval, or the bounds that hold; null: none), ``passed``.
    """

    table: pd.DataFrame


def check_design(bank: Bank, pairs: pd.DataFrame) -> DesignCheck:
    """Check the whole design.

    Parameters
    ----------
    bank : Bank
        The files.
    pairs : pandas.DataFrame
        What :func:`judge_calibration.bank.build_pairs` made of them.

    Returns
    -------
    DesignCheck
        With the table for the report.

    Raises
    ------
    BankError
        With every fault of every file and pair.
    """
    leaks = leak_tests(pairs) if _has_columns(pairs) else []
    problems = design_problems(bank, pairs, leaks)
    if problems:
        raise BankError(
            f"The pair bank breaks its design in {len(problems)} places.",
            problems,
            "correct the task files named above; python -m judge_calibration.bank FOLDER checks them alone",
        )
    return DesignCheck(design_table(bank, pairs, leaks))


def _has_columns(pairs: pd.DataFrame) -> bool:
    return {column.name for column in PAIRS.columns} <= set(pairs.columns)


def design_problems(bank: Bank, pairs: pd.DataFrame, leaks: Sequence[Leak] = ()) -> list[Problem]:
    """List every fault of the bank's files and of its pairs, and the leaks that were found."""
    problems = [problem for file in bank.files for problem in rules.task_problems(file)]
    problems += problems_of(pairs, PAIRS, "pairs")
    if _has_columns(pairs):
        problems += _pair_problems(bank, pairs)
        problems += _balance_problems(bank, pairs)
    problems += [
        Problem(
            f"pairs, leak by {leak.name}",
            f"an AUC of {leak.auc:.3f} [{leak.low:.3f}, {leak.high:.3f}] for the expected answer",
            "an interval that covers .5",
        )
        for leak in leaks
        if leak.tells
    ]
    problems += _card_problems(bank)
    problems += _frame_problems(bank)
    problems += _likeness_problems(bank)
    return problems


# ---- single pairs


def _pair_problems(bank: Bank, pairs: pd.DataFrame) -> list[Problem]:
    tasks = {file.task.id: file.task for file in bank.files}
    private = {file.task.id for file in bank.files if file.private}
    rows: dict[str, Row] = {row["pair_id"]: row for row in pairs.to_dict("records")}
    problems = []
    for pair_id, row in rows.items():
        where = f"pairs, {pair_id} ({row['base_id']}, {row['manipulation']})"
        task = tasks.get(row["base_id"])
        if task is None:
            problems.append(Problem(where, f"the base task {row['base_id']!r}", "a task of the bank"))
            continue
        try:
            found = list(_row_faults(task, row, rows, row["base_id"] in private))
        except RecipeError as error:
            found = [("recipe", error.message, "a recipe that fits the answer")]
        problems += [Problem(f"{where}, {field}", what, wanted) for field, what, wanted in found]
    have = pairs.groupby(["base_id", "manipulation"]).size()
    for task in tasks.values():
        for manipulation in _planned(task):
            count = int(have.get((task.id, manipulation), 0))
            if count != 1:
                problems.append(Problem(f"pairs, {task.id}", f"{count} pairs of kind {manipulation}", "one"))
    return problems


def _planned(task: Task) -> list[str]:
    planned = [m for m in PLANNED if m != "citation" or task.domain != "reasoning"]
    return planned + [m for m, recipe in zip(EXTRA, (task.polished, task.injection), strict=True) if recipe]


def _row_faults(task: Task, row: Row, rows: dict[str, Row], private: bool) -> Found:
    side = row["modified"] if isinstance(row["modified"], str) else None
    changed, original = (
        from_storable(row[f"response_{letter}"]) for letter in (("a", "b") if side == "A" else ("b", "a"))
    )
    yield from _bookkeeping(task, row, rows, private, side)
    if original != task.answer:
        yield (
            f"response_{'b' if side == 'A' else 'a'}",
            shortened(original),
            "the canonical answer, unchanged",
        )
    if from_storable(row["question"]) != task.question:
        yield "question", shortened(row["question"]), "the task's question"
    kind = row["manipulation"]
    one_dimension: dict[str, Callable[[Task, str], Found]] = {
        "length": _length,
        "style": _style,
        "citation": rules.citation,
        "correctness": _only_declared_spans,
        "identity": lambda task, made: _identity(task, made, row["variant"]),
        "polished_but_wrong": _polish,
        "injection": lambda task, made: _injection(task, made, side or "B"),
    }
    if kind not in one_dimension:
        yield "manipulation", shortened(kind), "one of " + ", ".join(one_dimension)
        return
    yield from one_dimension[kind](task, changed)
    try:
        explained = apply_differences(task.answer, json.loads(from_storable(row["mutation_diff"])))
    except (ValueError, TypeError) as error:
        yield "mutation_diff", str(error), "changes of the canonical answer"
    else:
        if explained != changed:
            yield "mutation_diff", "changes that make another text", "exactly the changed answer"
    for thing in private_things(changed):
        yield "response", thing, "no links, personal data or secrets"


def _bookkeeping(task: Task, row: Row, rows: dict[str, Row], private: bool, side: str | None) -> Found:
    kind, other = row["manipulation"], {"A": "B", "B": "A"}.get(side or "")
    same_bytes = kind == "identity" and row["variant"] == "same_bytes"
    if (side is None) != same_bytes:
        yield "modified", shortened(side), "null for identical bytes, else the changed side"
    wanted = "TIE" if kind in EXPECTS_TIE else other
    for field in ("expected", "reference_label"):
        if row[field] != wanted:
            yield field, shortened(row[field]), str(wanted)
    if row["reference_kind"] != "constructed":
        yield "reference_kind", shortened(row["reference_kind"]), "constructed"
    severity = task.correctness.severity if kind in ("correctness", *EXTRA) else None
    if (row["severity"] if isinstance(row["severity"], str) else None) != severity:
        yield "severity", shortened(row["severity"]), str(severity)
    gap = QUALITY_GAP.get(severity or "", 0.0 if wanted == "TIE" else None)
    if (None if pd.isna(row["quality_gap"]) else row["quality_gap"]) != gap:
        yield "quality_gap", str(row["quality_gap"]), str(gap)
    for field in ("domain", "difficulty", "language", "stakes"):
        if row[field] != getattr(task, field):
            yield field, shortened(row[field]), str(getattr(task, field))
    if row["source"] != (PRIVATE_SOURCE if private else SOURCE):
        yield "source", shortened(row["source"]), PRIVATE_SOURCE if private else SOURCE
    if private and not row["sentinel"]:
        yield "sentinel", "False", "True for a private task"
    letter = "b" if side == "A" else "a"
    if row[f"candidate_{letter}"] != CANONICAL:
        yield f"candidate_{letter}", shortened(row[f"candidate_{letter}"]), CANONICAL
    for field in ("license", "provenance", "mutation_note", "mutation_diff"):
        if not isinstance(row[field], str) or not row[field].strip():
            yield field, "nothing", "text"
    packet = [{"id": p.id, "text": p.text} for p in task.passages]
    held = json.loads(from_storable(row["source_packet"])) if isinstance(row["source_packet"], str) else []
    if held != packet:
        yield "source_packet", "another packet", "the task's passages"
    listed = json.loads(row["source_packet_ids"]) if isinstance(row["source_packet_ids"], str) else []
    if listed != [p["id"] for p in packet]:
        yield "source_packet_ids", shortened(listed), "the ids of the task's passages"
    question, a, b = (from_storable(row[name]) for name in ("question", "response_a", "response_b"))
    if row["content_hash"] != content_hash_of(question, a, b, canonical_json(packet) if packet else None):
        yield "content_hash", shortened(row["content_hash"]), "the hash of what stands in the row"
    told = [
        m for m in (*PLANNED, *EXTRA, row["variant"]) if isinstance(m, str) and m in row["pair_id"].lower()
    ]
    if told:
        yield "pair_id", shortened(row["pair_id"]), "an id that does not name the manipulation"
    twin = rows.get(row["twin_pair_id"]) if isinstance(row["twin_pair_id"], str) else None
    if kind in EXTRA:
        if twin is None:
            yield "twin_pair_id", shortened(row["twin_pair_id"]), "the pair without the addition"
        elif (twin["base_id"], twin["manipulation"], twin["modified"]) != (task.id, "correctness", side):
            yield (
                "twin_pair_id",
                shortened(row["twin_pair_id"]),
                "its task's correctness pair, the same side changed",
            )
    elif isinstance(row["twin_pair_id"], str):
        yield "twin_pair_id", shortened(row["twin_pair_id"]), "null"


def _only_declared_spans(task: Task, made: str) -> Found:
    yield from rules.correctness(task, made)
    if made != mutated(task):
        yield "response", "a change outside the declared spans", "exactly the declared spans changed"


def _length(task: Task, made: str) -> Found:
    yield from rules.length(task, made)
    # The whole text counts, not the declared restatements only.
    known = task.question + "\n" + task.answer
    added = set(words.numbers(made, task.language)) - set(words.numbers(known, task.language))
    if added:
        yield "response", f"the new numbers {sorted(added)}", "no number that the answer and question lack"
    if set(words.markers(made)) - set(words.markers(task.answer)):
        yield "response", "a new citation", "none"
    if made != vary_length(task.answer, task.length):
        yield "response", "text that is not declared", "the declared restatements or cuts only"


def _style(task: Task, made: str) -> Found:
    yield from rules.style(task, made)
    if made != restyle(task.answer, task.style):
        yield "response", "a form that is not declared", "the declared form only"


def _identity(task: Task, made: str, variant: str) -> Found:
    if variant == "same_bytes":
        if made != task.answer:
            yield "response", "an answer that differs", "the same bytes"
    elif made == task.answer:
        yield "response", "the same bytes", "at least one invisible character"
    elif without_invisible(made) != without_invisible(task.answer):
        yield "response", "an answer that differs visibly", "the same text without the invisible characters"


def _polish(task: Task, made: str) -> Found:
    if task.polished is None:
        yield "response", "a pair", "none: the task declares no polished answer"
    elif made != polished(task):
        yield "response", "another text", "the mutated answer with the declared polish"


def _injection(task: Task, made: str, side: str) -> Found:
    if task.injection is None:
        yield "response", "a pair", "none: the task declares no injection"
    elif made != inject(mutated(task), task.injection, side):
        yield "response", "another text", "the mutated answer with the declared injection"


# ---- the bank as a whole


def _balance_problems(bank: Bank, pairs: pd.DataFrame) -> list[Problem]:
    problems = []
    for manipulation, group in pairs.groupby("manipulation"):
        a, b = ((group["modified"] == side).sum() for side in "AB")
        slack = 1 if manipulation in PLANNED else max(2, round(0.1 * len(group)))
        if abs(a - b) > slack:
            problems.append(
                Problem(f"pairs, {manipulation}", f"A changed {a} times, B {b} times", "as often")
            )
    kinds = pairs.loc[pairs["manipulation"] == "identity", "variant"] == "same_bytes"
    if len(kinds) > 1 and abs(2 * kinds.sum() - len(kinds)) > 1:
        problems.append(
            Problem("pairs, identity", f"{kinds.sum()} of {len(kinds)} of the same bytes", "half")
        )
    if bank.card.complete:
        problems += [
            Problem(f"bank, {what}", found, wanted) for what, found, wanted in _incomplete(bank, pairs)
        ]
    return problems


def _incomplete(bank: Bank, pairs: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    card = bank.card
    tasks = [file.task for file in bank.files if not file.private]
    public = pairs[pairs["source"] == SOURCE]
    if len(tasks) != card.tasks:
        yield "tasks", f"{len(tasks)}", f"{card.tasks}"
    for name, values in (("domain", DOMAINS), ("difficulty", DIFFICULTIES)):
        for value in values:
            count = sum(getattr(task, name) == value for task in tasks)
            if count != card.tasks // 3:
                yield f"{name} {value}", f"{count} tasks", f"{card.tasks // 3}"
    for domain in DOMAINS:
        for difficulty in DIFFICULTIES:
            count = sum((task.domain, task.difficulty) == (domain, difficulty) for task in tasks)
            if not card.tasks // 9 <= count <= -(-card.tasks // 9):
                yield (
                    f"{domain} x {difficulty}",
                    f"{count} tasks",
                    f"{card.tasks // 9} or {-(-card.tasks // 9)}",
                )
    planned = int(public["manipulation"].isin(PLANNED).sum())
    wanted = sum(5 if task.domain != "reasoning" else 4 for task in tasks)
    if planned != wanted:
        yield "pairs", f"{planned} controlled pairs", f"{wanted}"
    for manipulation, least in zip(EXTRA, (card.polished, card.injections), strict=True):
        count = int((public["manipulation"] == manipulation).sum())
        if count < least:
            yield manipulation, f"{count} pairs", f"at least {least}"
    other = [task.language for task in tasks if task.language != "en"]
    if len(other) < card.other_languages or len(set(other)) < card.languages:
        yield (
            "languages",
            f"{len(other)} tasks in {len(set(other))} languages besides English",
            f"at least {card.other_languages} in {card.languages}",
        )
    if not set(other) & RIGHT_TO_LEFT or not set(other) & CJK:
        yield "languages", ", ".join(sorted(set(other))), "a right-to-left and a CJK script among them"
    median = float(pd.Series([words.count_words(task.answer) for task in tasks]).median())
    if median < MEDIAN_WORDS:
        yield "answers", f"a median of {median:g} words", f"at least {MEDIAN_WORDS}"
    severities = pd.Series([task.correctness.severity for task in tasks]).value_counts(normalize=True)
    if severities.min() < 0.25 or len(severities) < 2:
        yield "severity", severities.round(2).to_dict().__repr__(), "at least a quarter of each"
    kinds = {task.injection.kind for task in tasks if task.injection}
    if set(INJECTION_KINDS) - kinds:
        yield "injection kinds", f"no {', '.join(sorted(set(INJECTION_KINDS) - kinds))}", "every kind"
    share = public.drop_duplicates("base_id")["sentinel"].mean()
    if abs(share - card.sentinel_share) > 0.03:
        yield "sentinel", f"{share:.2f} of the tasks", f"about {card.sentinel_share}"


def _card_problems(bank: Bank) -> list[Problem]:
    texts = {"bank.yml, license": bank.card.license, "bank.yml, provenance": bank.card.provenance}
    return [Problem(where, "nothing", "text") for where, text in texts.items() if not text.strip()]


def _written(task: Task) -> Iterator[str]:
    yield from (task.question, task.answer, task.style.opener, task.style.closer)
    yield from (passage.text for passage in task.passages)
    yield from (addition.text for addition in task.length.add)
    yield from (edit.new for edit in task.style.paraphrases)
    if task.injection:
        yield task.injection.text


def _frame_problems(bank: Bank) -> list[Problem]:
    """No sentence frame, names and numbers masked, stands in more than two tasks."""
    holders: dict[str, set[str]] = defaultdict(set)
    for task in bank.tasks:
        for text in _written(task):
            for sentence in words.sentences(text):
                frame = words.masked(sentence)
                plain = [part for part in frame.split() if part not in ("_", "#")]
                if len(plain) >= 3 or (plain and len(plain[0]) >= 8):
                    holders[frame].add(task.id)
    return [
        Problem(
            f"tasks {', '.join(sorted(ids))}",
            f"the same frame: {shortened(frame)}",
            "at most two tasks a frame",
        )
        for frame, ids in holders.items()
        if len(ids) > MOST_TASKS_A_FRAME
    ]


def _shingles(text: str) -> set[str]:
    plain = " ".join(words.without_markup(text).lower().split())
    return {plain[i : i + 5] for i in range(max(1, len(plain) - 4))}


def _likeness_problems(bank: Bank) -> list[Problem]:
    """No two tasks are near-duplicates, by the Jaccard index of their questions' or answers' shingles."""
    problems = []
    for field in ("question", "answer"):
        sets = [(task.id, _shingles(getattr(task, field))) for task in bank.tasks]
        for (left_id, left), (right_id, right) in combinations(sets, 2):
            if min(len(left), len(right)) < LIKENESS * max(len(left), len(right)):
                continue
            like = len(left & right) / len(left | right)
            if like > LIKENESS:
                problems.append(
                    Problem(
                        f"tasks {left_id}, {right_id}, {field}",
                        f"a likeness of {like:.2f}",
                        f"at most {LIKENESS}",
                    )
                )
    return problems


# ---- the table for the report


def design_table(bank: Bank, pairs: pd.DataFrame, leaks: list[Leak]) -> pd.DataFrame:
    """Make the table of what was checked: counts by domain, difficulty and manipulation first."""
    rows: list[dict[str, Any]] = []
    tasks = pd.DataFrame([{"domain": t.domain, "difficulty": t.difficulty} for t in bank.tasks])
    for domain in DOMAINS:
        for difficulty in DIFFICULTIES:
            cell: dict[str, Any] = {"domain": domain, "difficulty": difficulty}
            n = int(((tasks["domain"] == domain) & (tasks["difficulty"] == difficulty)).sum())
            rows.append(_line("tasks", n, **cell))
            here = pairs[(pairs["domain"] == domain) & (pairs["difficulty"] == difficulty)]
            for manipulation in (*PLANNED, *EXTRA):
                if manipulation == "citation" and domain == "reasoning":
                    continue
                found = int((here["manipulation"] == manipulation).sum())
                bounds = (n, n) if manipulation in PLANNED else (None, None)
                rows.append(_line("pairs", found, *bounds, manipulation=manipulation, **cell))
    for manipulation in (*PLANNED, *EXTRA):
        group = pairs[pairs["manipulation"] == manipulation]
        rows.append(_line("pairs", len(group), manipulation=manipulation))
        share = (group["modified"] == "B").sum() / max(1, group["modified"].notna().sum())
        rows.append(_line("share with B changed", share, manipulation=manipulation))
    counted = pd.Series([words.count_words(task.answer) for task in bank.tasks])
    rows.append(_line("words of the canonical answers: least", counted.min(), rules.ANSWER_WORDS[0]))
    rows.append(_line("words of the canonical answers: median", counted.median()))
    rows.append(_line("words of the canonical answers: most", counted.max(), None, rules.ANSWER_WORDS[1]))
    rows.append(_line("reasoning tasks proved by a program", sum(t.check is not None for t in bank.tasks)))
    rows.append(_line("tasks not in English", sum(t.language != "en" for t in bank.tasks)))
    rows.append(_line("pairs of the sentinel", int(pairs["sentinel"].sum())))
    rows += [
        _line(f"leak: AUC of {leak.name} for the expected answer", leak.auc, leak.low, leak.high)
        for leak in leaks
    ]
    return pd.DataFrame(rows)


def _line(
    check: str,
    found: float,
    low: float | None = None,
    high: float | None = None,
    *,
    domain: str | None = None,
    difficulty: str | None = None,
    manipulation: str | None = None,
) -> dict[str, Any]:
    return {
        "check": check,
        "domain": domain,
        "difficulty": difficulty,
        "manipulation": manipulation,
        "found": float(found),
        "low": float("nan") if low is None else float(low),
        "high": float("nan") if high is None else float(high),
        "passed": True,
    }
