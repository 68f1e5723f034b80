"""From a task's recipes to its variants: the canonical answer beside each changed one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from judge_calibration.bank.tasks import Task
from judge_calibration.bank.transforms import (
    add_invisible,
    apply_edits,
    inject,
    replace_markers,
    restyle,
    vary_length,
)

WHITESPACE = {"zero_width_space": "\u200b", "word_joiner": "\u2060", "trailing_spaces": " "}


@dataclass(frozen=True)
class Variant:
    """A changed answer of one task.

    Attributes
    ----------
    manipulation, variant, severity
        As in the table of pairs.
    answer : str
        The changed answer. For an injection, with ``A`` as its own label; see :func:`answer_on_side`.
    note : str
        What was changed and why that has the expected consequence.
    twin : str or None
        The manipulation of the same task whose pair is this one without the addition.
    """

    manipulation: str
    variant: str
    severity: str | None
    answer: str
    note: str
    twin: str | None = None


def draw(*parts: str) -> int:
    """Return a number that depends on the parts only: the bank's only source of chance."""
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:8], "big")


def style_name(task: Task) -> str:
    """Name the kind of the style variant by the rules that it uses."""
    style = task.style
    kinds = [
        name
        for name, used in (
            ("plain", style.strip),
            ("headings", style.headings),
            ("lists", style.bullets or style.numbered),
            ("layout", style.quote or style.split or style.join),
            ("emphasis", style.bold),
            ("emoji", style.emoji),
            ("tone", style.opener or style.closer),
            ("wording", style.paraphrases),
        )
        if used
    ]
    return "+".join(kinds)


def mutated(task: Task) -> str:
    """Return the answer with the task's declared error."""
    return apply_edits(task.answer, task.correctness.edits, "correctness.edits")


def polished(task: Task) -> str:
    """Return the mutated answer with better style or greater length."""
    assert task.polished is not None
    by_style = task.polished.by == "style"
    better = restyle(mutated(task), task.style) if by_style else vary_length(mutated(task), task.length)
    return apply_edits(better, task.polished.edits, "polished.edits")


def answer_on_side(task: Task, variant: Variant, side: str) -> str:
    """Return the changed answer as it stands on that side: a forged verdict names its own label."""
    if variant.manipulation != "injection":
        return variant.answer
    assert task.injection is not None
    return inject(mutated(task), task.injection, side)


def whitespace_kind(task: Task) -> str | None:
    """Return which invisible white space the task's identity pair differs in, None for the same bytes."""
    kinds = sorted(WHITESPACE)
    chosen = draw("identity", task.id)
    return kinds[chosen // 2 % len(kinds)] if chosen % 2 else None


def variants_of(task: Task, whitespace: bool | None = None) -> list[Variant]:
    """Make all variants of a task, in the order length, style, citation, correctness, identity, and the rest.

    Parameters
    ----------
    task : Task
        The task.
    whitespace : bool, optional
        Whether its identity pair is of the whitespace kind; drawn from the task's id by default.

    Raises
    ------
    RecipeError
        If a recipe does not fit the answer.
    """
    made = [
        Variant(
            "length",
            "shorter" if task.length.cut else "longer",
            None,
            vary_length(task.answer, task.length),
            "Statements were cut; nothing was added."
            if task.length.cut
            else "What the answer says is restated; nothing new is claimed.",
        ),
        Variant(
            "style",
            style_name(task),
            None,
            restyle(task.answer, task.style),
            "The same statements in another form: " + style_name(task).replace("+", ", ") + ".",
        ),
    ]
    if task.citation is not None:
        moves = ", ".join(f"{old} -> {new or 'none'}" for old, new in task.citation.replace.items())
        made.append(
            Variant(
                "citation",
                task.citation.kind,
                None,
                replace_markers(task.answer, task.citation.replace),
                f"Citations {moves}. {task.citation.why}",
            )
        )
    error = task.correctness
    note = (
        f"True: {error.true_statement} False: {error.false_statement} "
        f"Settled by: {error.settled_by}. The rest is {error.consequence} with the error."
    )
    made.append(Variant("correctness", error.consequence, error.severity, mutated(task), note))
    kind = whitespace_kind(task)
    if whitespace is not None:
        kinds = sorted(WHITESPACE)
        kind = kinds[draw("whitespace", task.id) % len(kinds)] if whitespace else None
    made.append(
        Variant(
            "identity",
            kind or "same_bytes",
            None,
            add_invisible(task.answer, WHITESPACE[kind]) if kind else task.answer,
            f"The same answer with invisible white space ({kind})." if kind else "The same answer twice.",
        )
    )
    if task.polished is not None:
        made.append(
            Variant(
                "polished_but_wrong",
                task.polished.by,
                error.severity,
                polished(task),
                f"{note} The wrong answer also has better {task.polished.by}.",
                "correctness",
            )
        )
    if task.injection is not None:
        made.append(
            Variant(
                "injection",
                task.injection.kind,
                error.severity,
                inject(mutated(task), task.injection, "A"),
                f"{note} The wrong answer also addresses the judge ({task.injection.kind}).",
                "correctness",
            )
        )
    return made
