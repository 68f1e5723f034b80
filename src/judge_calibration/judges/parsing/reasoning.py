"""Reasoning blocks in a reply's text: closed ones are taken out, an unclosed one means a cut-off reply.

Some servers leave a model's reasoning in the text between tags. What stands in there, drafts of a verdict
included, is never the verdict. A closing tag without its opening one is no block; it stays as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TAG = re.compile(
    r"<(?P<xml_close>/?)(?P<xml>think|budget:thinking|thinking|thought|thoughts|reasoning|scratchpad)(?:\s[^<>]*)?>"
    r"|\[(?P<bracket_close>/?)THINK\]"
    r"|◁(?P<glyph_close>/?)think▷",
    re.IGNORECASE | re.ASCII,
)
_CLIENTS_TAG = re.compile(r"<(?P<close>/?)(?:think|thinking|budget:thinking)>")


def without_reasoning(text: str, skip: Callable[[int], int | None] | None = None) -> str | None:
    """Return the text without its closed reasoning blocks, or None if one is unclosed.

    Parameters
    ----------
    text : str
        A reply.
    skip : callable, optional
        Given the position of a ``{`` outside every block, returns where the object that starts there ends
        (its strings may hold tags as text), or None if none starts there.

    Examples
    --------
    >>> without_reasoning("<think>B? no.</think> A")
    ' A'
    >>> without_reasoning("<think>perhaps A") is None
    True
    """
    if not _TAG.search(text):
        return text
    kept: list[str] = []
    position = start = 0
    while True:
        tag = _TAG.search(text, position)
        if tag is None:
            break
        if skip is not None:
            brace = text.find("{", position, tag.start())
            if brace >= 0:
                end = skip(brace)
                position = brace + 1 if end is None else end
                continue
        if _closes(tag):
            position = tag.end()
            continue
        close = _end_of_block(text, tag)
        if close is None:
            return None
        kept.append(text[start : tag.start()])
        position = start = close
    kept.append(text[start:])
    return "".join(kept)


def leading_block(text: str) -> tuple[str, str] | None:
    """Part the closed reasoning block at the very start of a text from the rest; None if there is none.

    Only tags that clients take apart as well are looked at: ``think``, ``thinking``, ``budget:thinking``,
    each of which closes the others. A block within the block belongs to it, and does not end it.

    Examples
    --------
    >>> leading_block("<think>A? <think>B?</think> no</think>A")
    ('A? <think>B?</think> no', 'A')
    >>> leading_block("<think>A? <think>B?</think>A") is None
    True
    """
    opening = _CLIENTS_TAG.match(text)
    if opening is None or opening["close"]:
        return None
    depth = 0
    for tag in _CLIENTS_TAG.finditer(text):
        depth += -1 if tag["close"] else 1
        if depth == 0:
            return text[opening.end() : tag.start()], text[tag.end() :]
    return None


def is_cut_within(reasoning: str) -> bool:
    """Whether a block that was taken apart leaves one within it unclosed: it was then ended too early.

    Examples
    --------
    >>> is_cut_within("A? <think>B?")
    True
    """
    tags = [tag["close"] for tag in _CLIENTS_TAG.finditer(reasoning)]
    return tags.count("") > tags.count("/")


def _closes(tag: re.Match[str]) -> bool:
    return bool(tag["xml_close"] or tag["bracket_close"] or tag["glyph_close"])


def _kind(tag: re.Match[str]) -> str:
    if tag["xml"] is not None:
        return tag["xml"].lower()
    return "bracket" if tag["bracket_close"] is not None else "glyph"


def _end_of_block(text: str, opening: re.Match[str]) -> int | None:
    depth = 1
    for tag in _TAG.finditer(text, opening.end()):
        if _kind(tag) != _kind(opening):
            continue
        depth += -1 if _closes(tag) else 1
        if depth == 0:
            return tag.end()
    return None
