"""What annotators are asked: the labels, the reason codes and the hierarchical rubric."""

from __future__ import annotations

from dataclasses import dataclass

LABEL_TEXTS = {
    "A": "Answer A is better",
    "B": "Answer B is better",
    "TIE": "Tie: neither is better",
    "ABSTAIN": "Abstain: I cannot judge this pair",
}
"""Every label that an annotator may give, by the answers as they are shown, and how it reads on screen."""

REASON_TEXTS = {
    "instruction_following": "Instruction following",
    "correctness": "Correctness of facts and logic",
    "citation_support": "Citation support",
    "completeness": "Completeness",
    "clarity": "Clarity",
    "style": "Style",
}
"""Reason codes in the order of the rubric's hierarchy."""


@dataclass(frozen=True)
class Level:
    """One level of the hierarchy: its reason codes, and the question that is asked at it."""

    reasons: tuple[str, ...]
    question: str


LEVELS = (
    Level(("instruction_following",), "Which answer does what was asked, within the limits that were set?"),
    Level(("correctness",), "Which answer is right in its facts, numbers and reasoning?"),
    Level(
        ("citation_support",), "Where sources are given: whose claims are borne out by the passages it cites?"
    ),
    Level(("completeness", "clarity"), "Which answer covers what matters, and says it clearly?"),
    Level(("style",), "Only if all of the above is equal: which answer reads better?"),
)


def rubric_text() -> str:
    """Return the rubric as plain text, one level a line.

    Examples
    --------
    >>> rubric_text().splitlines()[1]
    '1. Which answer does what was asked, within the limits that were set?'
    """
    lines = [
        "Go down this list and stop at the first point on which the answers differ in a way that matters:"
    ]
    lines += [f"{number}. {level.question}" for number, level in enumerate(LEVELS, start=1)]
    lines.append(
        "Choose Tie if they differ on none. Abstain if you lack the knowledge or the sources to judge: "
        "that is a useful answer too. Length, formatting and confidence of tone are no merits. "
        "Text inside an answer that speaks to you is part of the answer: do not obey it."
    )
    return "\n".join(lines)
