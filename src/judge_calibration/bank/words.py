"""Words, sentences, numbers, names and citation markers of a text, in any script.

What the rules of the pair bank count. Nothing here knows a model's tokeniser: a word is what stands
between white space and holds a letter or a digit, and two Han or kana characters count as one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from math import ceil

MARKER = re.compile(r"\[(P\d+)\]")
"""A citation marker: the id of a passage in square brackets."""

INVISIBLE = "\u200b\u2060\ufeff"
"""The characters that the whitespace kind of identity pair may add (besides spaces at line ends)."""

_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SENTENCE_END = re.compile(r"(?<=[.!?؟।])[\"'”’)\]]*\s+|(?<=[。！？])[”」』）]*")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+.*$")
_RULE = re.compile(r"^\s*([-*_])(\s*\1){2,}\s*$")
_LINE_MARK = re.compile(r"^\s*(?:>\s*)*(?:[-*+•]\s+|\d{1,2}[.)]\s+)?")
_RARE = re.compile("[^\x00-\u0fff]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")

# "one", "once" and "second" are left out: they are rarely quantities.
_NUMBER_WORDS = {
    "en": """
        two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
        sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
        ninety hundred thousand million billion dozen half third thirds quarter quarters twice
        double triple
    """,
    "es": """
        dos tres cuatro cinco seis siete ocho nueve diez once doce quince veinte treinta
        cuarenta cincuenta sesenta setenta ochenta noventa cien ciento mil millón millones
        docena mitad tercio cuarto doble triple
    """,
    "fr": """
        deux trois quatre cinq six sept huit dix onze douze quinze vingt trente quarante
        cinquante soixante cent mille million millions douzaine moitié tiers quart double triple
    """,
    "de": """
        zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig vierzig
        fünfzig sechzig siebzig achtzig neunzig hundert tausend million millionen dutzend hälfte
        drittel viertel doppelt dreifach
    """,
    "pt": """
        dois duas três quatro cinco seis sete oito nove dez onze doze quinze vinte trinta
        quarenta cinquenta sessenta setenta oitenta noventa cem cento mil milhão milhões dúzia
        metade terço dobro triplo
    """,
    "it": """
        due tre quattro cinque sei sette otto nove dieci undici dodici venti trenta quaranta
        cinquanta cento mille milione milioni dozzina metà terzo quarto doppio triplo
    """,
    "ar": """
        اثنان اثنين ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة عشرون عشرين مئة مائة ألف مليون
        نصف ثلث ربع ضعف
    """,
    "he": """
        שניים שתיים שלושה שלוש ארבעה ארבע חמישה חמש שישה שש שבעה שבע שמונה תשעה תשע עשרה עשר מאה
        אלף מיליון חצי שליש רבע
    """,
    "hi": """
        दो तीन चार पाँच पांच छह सात आठ नौ दस बीस सौ हज़ार हजार लाख करोड़ आधा तिहाई चौथाई दोगुना
    """,
}
_CJK_NUMBERS = re.compile("[二三四五六七八九十百千万億亿两兩半]")

# Languages in which a capital letter inside a sentence marks a name.
_CAPITALS_MARK_NAMES = {"en", "es", "fr", "pt", "it", "nl", "sv", "tr", "vi", "id"}


def without_markers(text: str) -> str:
    """Return the text without citation markers and the space before each.

    Examples
    --------
    >>> without_markers("It froze early [P2][P3].")
    'It froze early.'
    """
    return re.sub(r"[ \u00a0]?\[P\d+\]", "", text)


def markers(text: str) -> list[str]:
    """Return the passage ids that the text cites, in order, with repeats."""
    return MARKER.findall(text)


def without_markup(text: str) -> str:
    r"""Return the text without headings, rules, list marks, quotes, bold, code ticks and emoji.

    Line breaks stay. Numbered list marks go, too; other numbers stay.

    Examples
    --------
    >>> without_markup("## Why\n- **Salt** lowers it. ✅\n> Ice melts.")
    'Salt lowers it.\nIce melts.'
    """
    lines = []
    for line in text.split("\n"):
        if _HEADING.match(line) or _RULE.match(line):
            continue
        line = _LINE_MARK.sub("", line, count=1)
        line = re.sub(r"\*\*|__|`", "", line)
        line = _RARE.sub(lambda found: "" if _is_pictograph(found.group()) else found.group(), line)
        lines.append(re.sub(r"[ \t\u00a0]+", " ", line).strip())
    return "\n".join(lines)


def _is_pictograph(character: str) -> bool:
    return (
        unicodedata.category(character) == "So" and ord(character) > 0x2100
    ) or character in "\ufe0f\u200d"


def sentences(text: str) -> list[str]:
    r"""Return the text's sentences in order, mark-up and headings removed.

    A line break ends a sentence, so list items without a full stop are sentences of their own.

    Examples
    --------
    >>> sentences("Heat rises. It cools by 2.5 degrees.\n- A third line")
    ['Heat rises.', 'It cools by 2.5 degrees.', 'A third line']
    """
    found = []
    for line in without_markup(text).split("\n"):
        found += [piece.strip() for piece in _SENTENCE_END.split(line) if piece and piece.strip()]
    return found


def paragraphs(text: str) -> list[str]:
    """Return the blocks that blank lines separate."""
    return [block for block in re.split(r"\n[ \t]*\n", text.strip("\n")) if block.strip()]


def count_words(text: str) -> int:
    """Return the number of words, markers and mark-up not counted.

    Examples
    --------
    >>> count_words("A well-known fact [P1]: it is 3.5 m long.")
    8
    >>> count_words("水会结冰。")
    2
    """
    plain = without_markers(without_markup(text))
    han = len(_CJK.findall(plain))
    rest = _CJK.sub(" ", plain)
    return ceil(han / 2) + sum(1 for token in rest.split() if any(c.isalnum() for c in token))


def western_digits(text: str) -> str:
    """Return the text with every decimal digit of any script as 0 to 9."""
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def canonical_number(token: str) -> str:
    """Return a number as written, without thousands separators and with a decimal point.

    Examples
    --------
    >>> canonical_number("1,250.50"), canonical_number("4,5"), canonical_number("007")
    ('1250.5', '4.5', '7')
    """
    if token.count(",") and token.count("."):
        decimal = max(token.rfind(","), token.rfind("."))
        token = re.sub(r"[.,]", "", token[:decimal]) + "." + token[decimal + 1 :]
    elif re.fullmatch(r"\d{1,3}(,\d{3})+", token) or re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", token):
        token = re.sub(r"[.,]", "", token)
    else:
        token = token.replace(",", ".")
    if token.count(".") == 1:
        token = token.rstrip("0").rstrip(".")
    return token.lstrip("0") or "0" if not token.startswith("0.") else token


def numbers(text: str, language: str = "en") -> Counter[str]:
    """Return the numbers of a text, in digits and in words, with their counts. Markers do not count."""
    plain = western_digits(MARKER.sub(" ", text))
    found = Counter(canonical_number(token) for token in _NUMBER.findall(plain))
    words = set(_NUMBER_WORDS.get(language, "").split())
    if words:
        found.update(word for word in re.split(r"[^\w\u0900-\u097f]+", plain.lower()) if word in words)
    if language in ("zh", "ja"):
        found.update(_CJK_NUMBERS.findall(plain))
    return found


def names(text: str, language: str = "en") -> Counter[str]:
    """Return the words that a capital letter inside a sentence marks as names, with their counts.

    Empty for languages whose capitals do not mark names (German) and for scripts without capitals.
    """
    found: Counter[str] = Counter()
    if language not in _CAPITALS_MARK_NAMES:
        return found
    for sentence in sentences(without_markers(text)):
        for match in list(_WORD.finditer(sentence))[1:]:
            word = match.group()
            before = sentence[: match.start()].rstrip(" \"'“‘(")
            if (
                word[0].isupper()
                and word not in ("I", "I'm", "I've", "I'd", "I'll")
                and before[-1:] not in ":–—"
            ):
                found[re.sub(r"['’]s$", "", word)] += 1
    return found


def masked(sentence: str) -> str:
    """Return a sentence as its frame: names and numbers masked, case and punctuation dropped.

    Examples
    --------
    >>> masked("In 1998 the Alba plant made 40 tonnes.") == masked("In 2003 the Brook plant made 7 tonnes.")
    True
    """
    text = western_digits(without_markers(sentence))
    first = True

    def mask(match: re.Match[str]) -> str:
        nonlocal first
        word, was_first = match.group(), first
        first = False
        return "_" if word[0].isupper() and not was_first else word.lower()

    text = _NUMBER.sub("#", text)
    text = _WORD.sub(mask, text)
    return " ".join(re.findall(r"[#_]|[^\W\d_]+(?:['’-][^\W\d_]+)*", text))
