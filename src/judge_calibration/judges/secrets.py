"""The one border where secrets are taken out of text, before it reaches a store, a log or an error.

Keys are known by value (those that the run was given, and whatever the environment holds under a name that
means a secret) and replaced wherever they occur: as they are, URL-quoted, or in base64.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

REDACTED: Final = "[REDACTED]"
_SHORTEST: Final = 8
"""Shorter values are no keys: replacing them would tear up ordinary text."""
_SECRET_NAME: Final = re.compile(r"(?:API_?KEY|_KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)
_SECRET_HEADERS: Final = re.compile(
    r"auth|cookie|api-?key|token|secret|signature|credential|organi[sz]ation|project", re.IGNORECASE
)
_KEPT_HEADERS: Final = re.compile(r"ratelimit|rate-limit|usage", re.IGNORECASE)
"""Limits of tokens are no tokens."""


def _base64_forms(secret: bytes) -> Iterable[str]:
    """What base64 of any text that holds the secret has to contain, for each of the three alignments."""
    for lead in range(3):
        padded = b"\0" * lead + secret
        encoded = base64.b64encode(padded).decode()
        # The first characters mix with what stands before, the last with what stands behind.
        first = {0: 0, 1: 2, 2: 3}[lead]
        last = len(padded) * 8 // 6
        inner = encoded[first:last]
        if len(inner) >= _SHORTEST:
            yield inner
            yield inner.replace("+", "-").replace("/", "_")


class Redactor:
    """Takes known secrets out of text.

    Parameters
    ----------
    secrets : iterable of str or None
        Keys by value; None and values under 8 characters are left out.

    Examples
    --------
    >>> Redactor(["sk-planted-0001"]).clean("Bearer sk-planted-0001 was refused")
    'Bearer [REDACTED] was refused'
    """

    def __init__(self, secrets: Iterable[str | None]) -> None:
        forms: set[str] = set()
        for given in secrets:
            secret = (given or "").strip()  # a line break at its end is not sent
            if len(secret) < _SHORTEST:
                continue
            forms |= {secret, quote(secret, safe=""), quote_plus(secret)}
            forms |= {json.dumps(secret)[1:-1], secret.replace("/", "\\/")}
            forms |= set(_base64_forms(secret.encode()))
        longest_first = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    @classmethod
    def of_environment(cls, keys: Iterable[str | None] = ()) -> Redactor:
        """Return a redactor of the given keys and of all that the environment names as secret."""
        named = [value for name, value in os.environ.items() if _SECRET_NAME.search(name)]
        return cls([*keys, *named])

    def clean(self, text: str) -> str:
        """Return `text` without secrets."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def clean_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers without those that carry secrets by their name, and the rest cleaned."""
        return {
            name.lower(): self.clean(str(value))
            for name, value in headers.items()
            if not _names_a_secret(name)
        }


@functools.lru_cache(maxsize=1024)
def _names_a_secret(header: str) -> bool:
    return bool(_SECRET_HEADERS.search(header)) and not _KEPT_HEADERS.search(header)
