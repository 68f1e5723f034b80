"""The rules that make a variant of an answer: pure functions from text to text.

The bank's own variants and the variants that users make of their answers go through the same functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from judge_calibration.bank.tasks import Addition, Edit, Injection, Length, Style
from judge_calibration.bank.words import INVISIBLE, paragraphs, without_markup
from judge_calibration.errors import JudgeCalibrationError

_ENDS_WITHOUT_SPACE = re.compile("[\u3000-\u9fff\uff00-\uffef]$")
_LIST_LINE = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s")


class RecipeError(JudgeCalibrationError):
    """A recipe names a span or a paragraph that the answer does not have, or has twice."""


def _once(text: str, span: str, what: str) -> int:
    count = text.count(span)
    if count != 1:
        shown = span if len(span) <= 60 else span[:57] + "..."
        raise RecipeError(f"{what}: the span {shown!r} occurs {count} times; it has to occur exactly once")
    return text.index(span)


def apply_edits(text: str, edits: Iterable[Edit], what: str = "edits") -> str:
    """Replace declared spans of the *given* text, each of which occurs exactly once and overlaps no other.

    Examples
    --------
    >>> apply_edits("It boils at 100 degrees.", [Edit(old="100", new="80")])
    'It boils at 80 degrees.'
    """
    places = sorted(((_once(text, edit.old, what), edit) for edit in edits), key=lambda place: place[0])
    out, end = [], 0
    for start, edit in places:
        if start < end:
            raise RecipeError(f"{what}: the span {edit.old[:60]!r} overlaps another one")
        out += [text[end:start], edit.new]
        end = start + len(edit.old)
    return "".join(out) + text[end:]


def _joined(before: str, after: str) -> str:
    if not before or _ENDS_WITHOUT_SPACE.search(before) or before.endswith(("\n", " ")):
        return before + after
    return f"{before} {after}"


def _paragraph(blocks: Sequence[str], number: int, what: str) -> int:
    if not 1 <= number <= len(blocks):
        raise RecipeError(f"{what}: paragraph {number} of {len(blocks)}")
    return number - 1


def lengthen(text: str, additions: Sequence[Addition]) -> str:
    """Add restatements after spans or after paragraphs.

    Examples
    --------
    >>> lengthen("Salt melts ice. Sand does not.", [Addition(after="Salt melts ice.", text="Ice thaws.")])
    'Salt melts ice. Ice thaws. Sand does not.'
    """
    blocks = paragraphs(text)
    for addition in (a for a in additions if isinstance(a.after, str)):
        holders = [i for i, block in enumerate(blocks) if str(addition.after) in block]
        if len(holders) != 1:
            _once(text, str(addition.after), "length.add")
            raise RecipeError(f"length.add: the span {str(addition.after)[:60]!r} crosses paragraphs")
        block = blocks[holders[0]]
        end = _once(block, str(addition.after), "length.add") + len(str(addition.after))
        blocks[holders[0]] = _joined(block[:end], addition.text) + block[end:]
        if addition.new_paragraph:
            raise RecipeError(
                "length.add: new_paragraph goes with the number of a paragraph, not with a span"
            )
    # From the last to the first, so that the numbers stay those of the canonical answer.
    for addition in reversed([a for a in additions if isinstance(a.after, int)]):
        index = _paragraph(blocks, int(addition.after), "length.add")
        if addition.new_paragraph:
            blocks.insert(index + 1, addition.text)
        else:
            blocks[index] = _joined(blocks[index], addition.text)
    return "\n\n".join(blocks)


def shorten(text: str, cuts: Sequence[str]) -> str:
    """Cut spans, and close the gaps that they leave.

    Examples
    --------
    >>> shorten("Salt melts ice. So it thaws. Sand does not.", ["So it thaws."])
    'Salt melts ice. Sand does not.'
    """
    out = apply_edits(text, [Edit(old=cut, new="\x00") for cut in cuts], "length.cut")
    out = re.sub(r"(?m)^[ \t]*(?:[-*+•]|\d{1,2}[.)])?[ \t]*\x00[ \t]*\n?", "", out)
    out = re.sub(r"[ \t]*\x00", "", out)
    return re.sub(r"\n{3,}", "\n\n", out).strip()


def vary_length(text: str, length: Length) -> str:
    """Make the length variant."""
    return shorten(text, length.cut) if length.cut else lengthen(text, length.add)


def _sentences_of(block: str) -> list[str]:
    pieces = re.split(r"(?<=[.!?؟।])(?=\s)|(?<=[.!?][\"'”’)\]])(?=\s)|(?<=[。！？])(?![」』）”])", block)
    return [piece.strip() for piece in pieces if piece.strip()]


def restyle(text: str, style: Style) -> str:
    """Make the style variant: paraphrases, then bold, then the rules on paragraphs, then opener and closer.

    Examples
    --------
    >>> print(restyle("Salt melts ice. Sand does not.", Style(bullets=(1,), headings={1: "In short"})))
    ## In short
    <BLANKLINE>
    - Salt melts ice.
    - Sand does not.
    """
    text = apply_edits(text, style.paraphrases, "style.paraphrases")
    text = apply_edits(text, [Edit(old=span, new=f"**{span}**") for span in style.bold], "style.bold")
    if style.strip:
        text = _plain(text)
    blocks = paragraphs(text)
    for what in ("headings", "bullets", "numbered", "quote", "split", "emoji"):
        for number in getattr(style, what):
            _paragraph(blocks, number, f"style.{what}")
    made = [_restyled(block, number, style) for number, block in enumerate(blocks, 1)]
    if style.join:
        made = [re.sub(r"\s*\n+\s*", " ", " ".join(made))]
    return "\n\n".join(part for part in (style.opener, *made, style.closer) if part)


def _restyled(block: str, number: int, style: Style) -> str:
    sentences = block.split("\n") if _LIST_LINE.match(block) else _sentences_of(block)
    if number in style.bullets:
        block = "\n".join(f"- {re.sub(_LIST_LINE, '', s)}" for s in sentences)
    elif number in style.numbered:
        block = "\n".join(f"{i}. {re.sub(_LIST_LINE, '', s)}" for i, s in enumerate(sentences, 1))
    elif number in style.split:
        block = "\n\n".join(re.sub(_LIST_LINE, "", s) for s in sentences)
    if number in style.quote:
        block = "\n".join(f"> {line}" for line in block.split("\n"))
    if number in style.emoji:
        block = f"{style.emoji[number]} {block}" if not _LIST_LINE.match(block) else re.sub(
            r"^(\s*(?:[-*+•]|\d{1,2}[.)])\s)", rf"\g<1>{style.emoji[number]} ", block, count=1
        )  # fmt: skip
    return f"## {style.headings[number]}\n\n{block}" if number in style.headings else block


def _plain(text: str) -> str:
    """Remove mark-up; a list's items become the sentences of a paragraph."""
    blocks = []
    for block in paragraphs(text):
        plain = [line for line in without_markup(block).split("\n") if line]
        if plain:
            joined = plain[0]
            for line in plain[1:]:
                joined = _joined(joined, line)
            blocks.append(joined)
    return "\n\n".join(blocks)


def replace_markers(text: str, replace: Mapping[str, str | None]) -> str:
    """Make the citation variant: every marker of a passage becomes another's, or goes.

    Examples
    --------
    >>> replace_markers("It froze [P1]. It thawed [P2].", {"P1": "P3", "P2": None})
    'It froze [P3]. It thawed.'
    """
    for old in replace:
        if f"[{old}]" not in text:
            raise RecipeError(f"citation.replace: the answer does not cite {old}")

    def changed(match: re.Match[str]) -> str:
        old = match.group(2)
        new = replace.get(old, old)
        return f"{match.group(1)}[{new}]" if new else ""

    return re.sub(r"([ \u00a0]?)\[(P\d+)\]", changed, text)


def add_invisible(text: str, character: str) -> str:
    r"""Add an invisible character after every sentence, or (for a space) two at every line's end.

    Examples
    --------
    >>> add_invisible("One. Two.", "\u200b") == "One.\u200b Two.\u200b"
    True
    """
    if character == " ":
        return "\n".join(f"{line}  " if line else line for line in text.split("\n"))
    return re.sub(r"([.!?؟।])(?=\s|$)|([。！？])", lambda m: m.group() + character, text)


def without_invisible(text: str) -> str:
    """Return the text without the characters that :func:`add_invisible` may add."""
    return "\n".join(re.sub(f"[{INVISIBLE}]", "", line).rstrip(" ") for line in text.split("\n"))


def interleave_zero_width(text: str) -> str:
    """Return the text with a zero-width space between its characters, spaces left alone."""
    return re.sub(r"(?<=\S)(?=\S)", "\u200b", text)


def as_invisible_tags(text: str) -> str:
    """Return ASCII text in Unicode's tag characters, which screens do not show and tokenisers can read."""
    if not text.isascii():
        raise RecipeError("injection.text: invisible_tags can hide ASCII text only")
    return "".join(chr(0xE0000 + ord(c)) if 32 <= ord(c) < 127 else "" for c in text)


def inject(text: str, injection: Injection, side: str) -> str:
    """Put the injection into an answer.

    Parameters
    ----------
    text : str
        The answer.
    injection : Injection
        ``<<MINE>>`` and ``<<OTHER>>`` in its text become the labels of this answer and of the other one.
    side : {"A", "B"}
        Where the answer stands in the pair.
    """
    snippet = injection.text.replace("<<MINE>>", side).replace("<<OTHER>>", "B" if side == "A" else "A")
    if injection.kind == "zero_width":
        snippet = interleave_zero_width(snippet)
    elif injection.kind == "invisible_tags":
        snippet = as_invisible_tags(snippet)
    if injection.place == "start":
        return f"{snippet}\n\n{text}"
    if injection.place == "end":
        return f"{text}\n\n{snippet}"
    blocks = paragraphs(text)
    blocks.insert(_paragraph(blocks, int(injection.place), "injection.place") + 1, snippet)
    return "\n\n".join(blocks)
