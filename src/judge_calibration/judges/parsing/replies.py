"""What every reply goes through, whatever its form: the transport's word, emptiness, truncation, refusals.

The order is fixed: a content filter is a ``refusal``; a reply that hit its cap is ``truncated``, whatever it
says; a reply without text is ``empty``; then the form's own parser decides, and only what it calls
``malformed`` is looked at for a refusal in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judge_calibration.judges.parsing.reasoning import without_reasoning

PARSER_VERSION = "1"
"""Part of every instrument's identity: another version may read the same reply otherwise."""

LONGEST_REPLY = 2_000_000
"""Characters above which a reply is looked at as a whole only, never searched."""

ParsePath = Literal["strict", "fenced", "embedded"]

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "token_limit"})
_FILTERED = frozenset({"content_filter", "content_filtered", "safety", "refusal", "recitation", "blocklist"})


@dataclass(frozen=True)
class Reply:
    """What came back, in the project's own form. The reasoning channel is never read for a verdict."""

    text: str | None
    finish_reason: str | None = None
    logprobs: str | None = None
    """JSON list of tokens, as in the column `logprobs` of the table `answers`."""


@dataclass(frozen=True)
class Parsed:
    """What one reply states, in shown labels.

    Attributes
    ----------
    outcome : str
        ``valid``, ``malformed``, ``truncated``, ``empty`` or ``refusal``.
    values : mapping
        The fields that were read; empty unless valid.
    path : str or None
        How the object was found in a structured reply: ``strict``, ``fenced`` or ``embedded``.
    reason : str or None
        Why it is not valid, in snake_case.
    flags : tuple of str
        What was odd but harmless to the verdict.
    found : str or None
        The text of an object that was found inside a longer text. It is no verdict if a candidate holds it.
    """

    outcome: str
    values: Mapping[str, Any] = field(default_factory=dict)
    path: ParsePath | None = None
    reason: str | None = None
    flags: tuple[str, ...] = ()
    found: str | None = None


def malformed(reason: str) -> Parsed:
    """Return the outcome of a reply that arrived whole and states nothing that can be used."""
    return Parsed("malformed", reason=reason)


def truncated(reason: str) -> Parsed:
    """Return the outcome of a reply that was cut off before it ended."""
    return Parsed("truncated", reason=reason)


def before_parsing(reply: Reply, cap_is_planned: bool = False) -> Parsed | None:
    """Return the outcome that is settled before the text is read, or None.

    Parameters
    ----------
    reply : Reply
        What came back.
    cap_is_planned : bool
        Whether the reply is meant to stop at its cap (one token whose log-probabilities are read).

    Examples
    --------
    >>> before_parsing(Reply('{"winner": "A"}', "length")).outcome
    'truncated'
    >>> before_parsing(Reply("  ", "stop")).outcome
    'empty'
    >>> before_parsing(Reply("A", "stop")) is None
    True
    """
    finish = (reply.finish_reason or "").strip().lower()
    if finish in _FILTERED:
        return Parsed("refusal", reason="content_filter")
    if finish in _CUT_OFF and not cap_is_planned:
        return truncated("cap_reached")
    if not outer_stripped(reply.text or ""):
        return Parsed("empty", reason="no_text")
    return None


def after_parsing(parsed: Parsed, text: str) -> Parsed:
    """Return the parsed reply, with ``malformed`` turned to ``refusal`` where the text refuses in words."""
    if parsed.outcome == "malformed" and is_refusal(without_reasoning(text) or ""):
        return Parsed("refusal", reason="refused_in_words")
    return parsed


def outer_stripped(text: str) -> str:
    """Return the text without outer white space and byte-order marks."""
    return text.strip().strip("\ufeff").strip()


# How a refusal is recognised: the reply opens with one of these, holds no verdict in the asked-for form, and
# is short. English only, first person only; anything else stays `malformed`, which is a failure all the same.
_APOLOGY = (
    r"(?:(?:i(?:'|’)?m|i am)\s+(?:very\s+|really\s+|so\s+)?(?:sorry|afraid)"
    r"|sorry|apologies|my apologies|i apologi[sz]e|unfortunately)"
)
_CANNOT = (
    r"i\s+(?:can(?:no|'|’)?t|can\s+not|am\s+unable\s+to|am\s+not\s+able\s+to|won(?:'|’)t|will\s+not"
    r"|must\s+decline|have\s+to\s+decline|decline\s+to)"
)
_UNABLE = r"i(?:'|’)m\s+(?:unable|not\s+able)\s+to"
_ACT = (
    r"(?:\s+to)?\s+(?:help|assist|comply|continue|provide|do\s+(?:that|this)|engage|evaluate|judge|compare|rate|"
    r"discuss|answer|respond|fulfil|fulfill|participate|decide|choose|process|review|support|make)\b"
)
_REFUSAL = re.compile(
    rf"(?:{_APOLOGY}[\s,.:;!—–-]+(?:but\s+|that\s+)?)?"
    rf"(?:as\s+an\s+ai(?:\s+(?:language\s+)?model|\s+assistant)?[\s,]+)?"
    rf"(?:{_CANNOT}(?:{_ACT}|\s*$)|{_UNABLE}{_ACT}|i\s+(?:must|have\s+to)\s+(?:refuse|decline)\b)",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_REFUSAL = 1_500


def is_refusal(text: str) -> bool:
    """Say whether a reply without a verdict refuses, by its opening words.

    Examples
    --------
    >>> is_refusal("I'm sorry, but I can't help with that.")
    True
    >>> is_refusal("I cannot say that A is worse; B it is.")
    False
    """
    opening = outer_stripped(text).lstrip("*_\"'“ ")
    return len(opening) <= _LONGEST_REFUSAL and _REFUSAL.match(opening) is not None
