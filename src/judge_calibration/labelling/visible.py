"""Hidden text made visible, for people: zero-width characters, direction marks, controls, hidden tags.

An answer may carry text that a model reads and a person does not see. Annotators see a visible mark in its
place, so that an injected instruction is judged like any other text. Nothing visible is changed.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata

from judge_calibration.text import from_storable

_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS_SUPPLEMENT = re.compile("[\U000e0100-\U000e01ef]+")
# Letters that are drawn as nothing although Unicode calls them letters or marks.
_BLANK_LETTERS = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u034f"
_ODD_SPACES = "\u2028\u2029"
_KEPT = "\n\t"
_NAMELESS = {
    "\u0000": "NUL",
    "\u0008": "BACKSPACE",
    "\u000b": "LINE TABULATION",
    "\u000c": "FORM FEED",
    "\u001b": "ESCAPE",
    "\u007f": "DELETE",
}
_OPEN, _CLOSE = "\u27e6", "\u27e7"


def _is_hidden(character: str) -> bool:
    if character in _KEPT:
        return False
    if character in _BLANK_LETTERS or character in _ODD_SPACES:
        return True
    if "\ufe00" <= character <= "\ufe0f":
        return True
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"}


def _joins_script(text: str, place: int) -> bool:
    # ZWNJ and ZWJ are spelling in Arabic-script and Indic languages; between other letters they hide.
    if text[place] not in "\u200c\u200d" or not 0 < place < len(text) - 1:
        return False
    return all(
        "\u0600" <= neighbour <= "\u0dff" and unicodedata.category(neighbour)[0] in "LM"
        for neighbour in (text[place - 1], text[place + 1])
    )


def _is_pictograph(character: str) -> bool:
    return unicodedata.category(character) in {"So", "Sk"} or character in "#*0123456789"


def _draws_emoji(text: str, place: int) -> bool:
    if place == 0:
        return False
    before = text[place - 1]
    if text[place] in "\ufe0e\ufe0f":
        return _is_pictograph(before)
    if text[place] == "\u200d":
        after = text[place + 1 : place + 2]
        return (before == "\ufe0f" or _is_pictograph(before)) and bool(after) and _is_pictograph(after)
    return False


def _name(character: str) -> str:
    known = _NAMELESS.get(character) or unicodedata.name(character, "")
    return f"U+{ord(character):04X} {known}".strip()


def _mark_tags(match: re.Match[str]) -> str:
    hidden = "".join(chr(ord(c) - 0xE0000) if 0xE0020 <= ord(c) <= 0xE007E else "" for c in match.group())
    return f"{_OPEN}hidden tag text: {hidden}{_CLOSE}"


def make_visible(text: str) -> str:
    r"""Return the text with every hidden character replaced by a mark that names it.

    Parameters
    ----------
    text : str
        Text as tables hold it (see :mod:`judge_calibration.text`).

    Returns
    -------
    str
        Line ends are newlines; runs of one hidden character are one mark with a count. Joiners that spell
        (Arabic and Indic scripts) or that draw an emoji stay.

    Examples
    --------
    >>> make_visible("one\u200b\u200btwo")
    'one⟦U+200B ZERO WIDTH SPACE ×2⟧two'
    >>> make_visible("plain\r\ntext")
    'plain\ntext'
    """
    shown = from_storable(text).replace("\r\n", "\n").replace("\r", "\n")
    if shown.isascii() and shown.isprintable():
        return shown
    shown = _TAGS.sub(_mark_tags, shown)
    shown = _SELECTORS_SUPPLEMENT.sub(
        lambda match: f"{_OPEN}{len(match.group())} hidden variation selectors{_CLOSE}", shown
    )
    pieces: list[str] = []
    place = 0
    while place < len(shown):
        character = shown[place]
        hidden = _is_hidden(character) and not _joins_script(shown, place) and not _draws_emoji(shown, place)
        if not hidden:
            pieces.append(character)
            place += 1
            continue
        run = place
        while run < len(shown) and shown[run] == character:
            run += 1
        count = f" ×{run - place}" if run - place > 1 else ""
        pieces.append(f"{_OPEN}{_name(character)}{count}{_CLOSE}")
        place = run
    return "".join(pieces)


def as_html(text: str) -> str:
    """Return the visible text as inert HTML: everything escaped, no element, no link.

    Examples
    --------
    >>> as_html("<a href='https://example.org'>x</a>")
    '&lt;a href=&#x27;https://example.org&#x27;&gt;x&lt;/a&gt;'
    """
    return html.escape(make_visible(text), quote=True)


def _message_text(message: object) -> str | None:
    if not isinstance(message, dict) or not {"role", "content"} <= set(message):
        return None
    content = message["content"]
    if isinstance(content, list):
        content = "\n".join(
            part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else json.dumps(part)
            for part in content
        )
    return f"[{message['role']}]\n{content}"


def question_text(question: str) -> str:
    r"""Return the question as a person reads it; chat messages as turns, each with its role.

    Examples
    --------
    >>> question_text('[{"role": "user", "content": "How far?"}]')
    '[user]\nHow far?'
    """
    if question.lstrip().startswith("["):
        try:
            messages = json.loads(question)
        except ValueError:
            return make_visible(question)
        if isinstance(messages, list) and messages:
            turns = [_message_text(message) for message in messages]
            if all(turn is not None for turn in turns):
                return make_visible("\n\n".join(turn for turn in turns if turn is not None))
    return make_visible(question)


def packet_text(source_packet: str | None) -> str:
    """Return the source packet (JSON list of ``{id, text}``) as numbered passages; '' where there is none.

    Examples
    --------
    >>> packet_text('[{"id": "S1", "text": "Tides follow the moon."}]')
    '[S1] Tides follow the moon.'
    """
    if not source_packet:
        return ""
    try:
        passages = json.loads(source_packet)
    except ValueError:
        return make_visible(source_packet)
    if not isinstance(passages, list):
        return make_visible(source_packet)
    lines = [
        f"[{passage['id']}] {passage['text']}"
        if isinstance(passage, dict) and {"id", "text"} <= set(passage)
        else json.dumps(passage, ensure_ascii=False)
        for passage in passages
    ]
    return make_visible("\n\n".join(lines))
