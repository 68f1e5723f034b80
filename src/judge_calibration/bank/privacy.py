"""Personal data, links and secrets: what must not stand in a bank that others may redistribute."""

from __future__ import annotations

import re

_PATTERNS = {
    "a link": re.compile(r"(?i)\b(?:https?|ftp)://|\bwww\.|\b[a-z0-9-]+\.(?:com|org|net|io|edu|gov)\b"),
    "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"),
    "a telephone number": re.compile(
        r"(?<![\d.,])\+?\d{1,3}[ -]?\(?\d{2,4}\)?[ -]\d{3}[ -]\d{3,4}(?![\d.,])"
    ),
    "an IP address": re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
    "a social security number": re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])"),
    "an account number": re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b"),
    "a secret key": re.compile(
        r"\bsk-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bAKIA[0-9A-Z]{16}\b|\bhf_[A-Za-z0-9]{20,}"
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----|\beyJ[\w-]{10,}\.[\w-]{10,}\.",
    ),
    "a password": re.compile(r"(?i)\b(?:password|passwd|api[_ -]?key|secret)\b\s*[:=]\s*\S{6,}"),
}
_CARD = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)")


def passes_luhn(digits: str) -> bool:
    """Say whether the check digit of a card number is right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def private_things(text: str) -> list[str]:
    """Return what kinds of personal data, links and secrets stand in the text, with the text found.

    Examples
    --------
    >>> private_things("Write to jo@example.org today")
    ["a link: 'example.org'", "an e-mail address: 'jo@example.org'"]
    >>> private_things("It took 120 minutes.")
    []
    """
    found = []
    for what, pattern in _PATTERNS.items():
        match = pattern.search(text)
        if match:
            found.append(f"{what}: {match.group()!r}")
    for match in _CARD.finditer(text):
        if passes_luhn(re.sub(r"\D", "", match.group())):
            found.append(f"a card number: {match.group()!r}")
    return found
