"""How controlled pairs are made of a user's own responses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from judge_calibration.options.base import Options

LengthRule = Literal["repeat", "restate"]
StyleRule = Literal["headings", "bullets", "numbered", "bold", "emoji", "one_paragraph", "plain"]


class GenerateOptions(Options):
    """Which rules make pairs of one's own responses, and what the pairs are called."""

    length: tuple[LengthRule, ...] = ("repeat", "restate")
    """``repeat``: sentences are said again after their paragraph. ``restate``: a closing paragraph that says
    the answer's sentences again."""
    style: tuple[StyleRule, ...] = ("headings", "bullets", "bold", "emoji")
    ratio: Annotated[float, Field(ge=1.4, le=3)] = 1.5
    """How many times the words a longer answer has at least."""
    headings: tuple[str, ...] = ("Overview", "Details", "Further points", "In closing")
    """For the first paragraphs in turn, in the responses' own language."""
    emoji: tuple[str, ...] = ("✅", "📌", "💡", "🔎")
    restate_with: str = "To say it once more:"
    """What begins the closing paragraph of ``restate``."""
    source: str = "generated"
    license: str | None = None
    salt: str = "1"
    """Another salt draws other sides."""
