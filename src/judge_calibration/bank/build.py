"""From the bank's files to the table of pairs.

Everything that could tell the expected answer is drawn by hash: which side is changed (as often B as A
within every manipulation, and spread over domain, difficulty and severity), the pair's id, the order of the
rows and the sentinel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pandas as pd

from judge_calibration.bank.diffs import differences
from judge_calibration.bank.tasks import DIFFICULTIES, DOMAINS, Bank, BankError, Task, TaskFile
from judge_calibration.bank.transforms import RecipeError
from judge_calibration.bank.variants import Variant, answer_on_side, draw, variants_of
from judge_calibration.errors import Problem
from judge_calibration.schemas import PAIRS, conform
from judge_calibration.text import canonical_json, sha256_of, to_storable

SOURCE, PRIVATE_SOURCE = "pair_bank", "private_sentinel"
CANONICAL = "canonical"
EXPECTS_TIE = ("length", "style", "identity")
QUALITY_GAP = {"small": 0.5, "large": 1.0}
"""The quality gap that a declared severity stands for: an order, not a measurement."""


def pair_id_of(base_id: str, manipulation: str) -> str:
    """Return a pair's id: a hash, so that it tells neither the manipulation nor the expected answer.

    Examples
    --------
    >>> pair_id_of("t001", "style")
    'p9bc7521b19f4'
    """
    return "p" + sha256_of({"base_id": base_id, "manipulation": manipulation})[:12]


def content_hash_of(question: str, response_a: str, response_b: str, packet: str | None) -> str:
    """Return the hash of what a judge may see of a pair; the packet (JSON text) only where there is one."""
    content = {"question": question, "response_a": response_a, "response_b": response_b}
    return sha256_of(content | ({"source_packet": packet} if packet else {}))


def build_pairs(bank: Bank) -> pd.DataFrame:
    """Make every pair of the bank.

    Parameters
    ----------
    bank : Bank
        From :func:`judge_calibration.bank.load_bank`.

    Returns
    -------
    pandas.DataFrame
        The table `pairs`, a row a pair, in the order of the ids. ``mutation_diff`` holds the changes that
        turn the canonical answer into the changed one.

    Raises
    ------
    BankError
        If a recipe does not fit its answer.
    """
    made, problems = _variants(bank)
    if problems:
        raise BankError(
            f"{len(problems)} variants of the pair bank cannot be made.",
            problems,
            "correct the recipes; to check one file: python -m judge_calibration.bank FOLDER --task ID",
        )
    sides = _sides(made)
    sentinels = _sentinels(bank)
    rows = [
        _row(bank, file, variant, sides[file.task.id, variant.manipulation], file.task.id in sentinels)
        for file, variants in made
        for variant in variants
    ]
    frame = pd.DataFrame(rows).sort_values("pair_id", ignore_index=True)
    return conform(frame, PAIRS)


def published(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs that may leave the house: all but those of the private sentinel."""
    return pairs[pairs["source"] != PRIVATE_SOURCE].reset_index(drop=True)


def _variants(bank: Bank) -> tuple[list[tuple[TaskFile, list[Variant]]], list[Problem]]:
    ranked = sorted(bank.files, key=lambda f: (*_cell(f.task), draw("identity", f.task.id)))
    whitespace = {file.task.id: bool(rank % 2) for rank, file in enumerate(ranked)}
    made, problems = [], []
    for file in bank.files:
        try:
            made.append((file, variants_of(file.task, whitespace[file.task.id])))
        except RecipeError as error:
            problems.append(Problem(file.path, error.message, "recipes that fit the answer"))
    return made, problems


def _cell(task: Task) -> tuple[int, int]:
    return DOMAINS.index(task.domain), DIFFICULTIES.index(task.difficulty)


def _sides(made: Iterable[tuple[TaskFile, list[Variant]]]) -> dict[tuple[str, str], str]:
    """Draw the changed side of every pair: alternating within a manipulation, a twin's the same."""
    strata: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    twins: list[tuple[str, str, str]] = []
    for file, variants in made:
        extra = {v.manipulation for v in variants if v.twin}
        for variant in variants:
            if variant.twin:
                twins.append((file.task.id, variant.manipulation, variant.twin))
                continue
            # Correctness pairs alternate within those with the same twins, so that the twins balance, too.
            key = (
                variant.variant == "same_bytes",
                "polished_but_wrong" in extra,
                "injection" in extra,
                *_cell(file.task),
                variant.severity or "",
                draw("side", file.task.id, variant.manipulation),
                file.task.id,
            )
            strata[variant.manipulation].append(key)
    sides = {}
    for manipulation, keys in strata.items():
        first = draw("first", manipulation) % 2
        for rank, key in enumerate(sorted(keys)):
            sides[key[-1], manipulation] = "AB"[(rank + first) % 2]
    for base_id, manipulation, twin in twins:
        sides[base_id, manipulation] = sides[base_id, twin]
    return sides


def _sentinels(bank: Bank) -> set[str]:
    """Draw the protected subset: whole tasks, spread over domain and difficulty; private ones all belong."""
    cells: dict[tuple[int, int], list[str]] = defaultdict(list)
    for file in bank.files:
        if not file.private:
            cells[_cell(file.task)].append(file.task.id)
    wanted = round(bank.card.sentinel_share * sum(map(len, cells.values())))
    drawn = {
        cell: sorted(ids, key=lambda task_id: draw("sentinel", task_id))
        for cell, ids in sorted(cells.items())
    }
    queue = sorted(
        ((place + 0.5) / len(ids), draw("cell", *map(str, cell)), task_id)
        for cell, ids in drawn.items()
        for place, task_id in enumerate(ids)
    )
    return {task_id for _, _, task_id in queue[:wanted]} | {f.task.id for f in bank.files if f.private}


def _row(bank: Bank, file: TaskFile, variant: Variant, side: str, sentinel: bool) -> dict[str, Any]:
    task = file.task
    changed = answer_on_side(task, variant, side)
    other = "B" if side == "A" else "A"
    answers = {side: changed, other: task.answer}
    expected = "TIE" if variant.manipulation in EXPECTS_TIE else other
    same = changed == task.answer
    made_by = CANONICAL if same else f"{variant.manipulation}:{variant.variant}"
    candidates = {side: made_by, other: CANONICAL}
    packet = [{"id": passage.id, "text": passage.text} for passage in task.passages]
    held = canonical_json(packet) if packet else None
    gap = QUALITY_GAP.get(variant.severity or "", 0.0 if expected == "TIE" else float("nan"))
    row = {
        "pair_id": pair_id_of(task.id, variant.manipulation),
        "base_id": task.id,
        "source": PRIVATE_SOURCE if file.private else SOURCE,
        "split": None,
        "domain": task.domain,
        "difficulty": task.difficulty,
        "stakes": task.stakes,
        "manipulation": variant.manipulation,
        "variant": variant.variant,
        "severity": variant.severity,
        "modified": None if same else side,
        "twin_pair_id": pair_id_of(task.id, variant.twin) if variant.twin else None,
        "language": task.language,
        "question": task.question,
        "response_a": answers["A"],
        "response_b": answers["B"],
        "candidate_a": candidates["A"],
        "candidate_b": candidates["B"],
        "reference_label": expected,
        "reference_kind": "constructed",
        "expected": expected,
        "quality_gap": gap,
        "source_packet_ids": canonical_json([p["id"] for p in packet]) if packet else None,
        "source_packet": held,
        "mutation_note": variant.note,
        "mutation_diff": canonical_json(differences(task.answer, changed)),
        "sentinel": sentinel,
        "license": task.license or bank.card.license,
        "provenance": f"{task.provenance or bank.card.provenance} {file.path}, SHA-256 {file.sha256}.",
        "content_hash": content_hash_of(task.question, answers["A"], answers["B"], held),
    }
    return {name: to_storable(value) if isinstance(value, str) else value for name, value in row.items()}
