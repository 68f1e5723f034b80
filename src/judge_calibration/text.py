"""Text that cannot be lost: lone surrogates made storable, and back.

Models and files sometimes hold lone UTF-16 surrogates, which UTF-8 (and so Parquet) refuses. Tables hold
the storable form: a lone surrogate becomes U+FFFF (a noncharacter) and its four hex digits; a U+FFFF that
was there becomes U+FFFF and ``ffff``. All other text, NUL, CRLF and zero-width characters included, is left
as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_ESCAPE = "\uffff"
_UNSTORABLE = re.compile("[\ud800-\udfff\uffff]")
_STORED = re.compile(_ESCAPE + "([0-9a-f]{4})")


def to_storable(text: str) -> str:
    r"""Return `text` with lone surrogates escaped, so that UTF-8 can hold it.

    Examples
    --------
    >>> from_storable(to_storable("a\ud800b")) == "a\ud800b"
    True
    >>> to_storable("plain text")
    'plain text'
    """
    if text.isascii():  # known without a look at the text
        return text
    return _UNSTORABLE.sub(lambda match: f"{_ESCAPE}{ord(match.group()):04x}", text)


def from_storable(text: str) -> str:
    """Return the text that :func:`to_storable` was given."""
    return _STORED.sub(lambda match: chr(int(match.group(1), 16)), text)


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys, no spaces, no NaN, and non-ASCII text escaped.

    Two equal values give the same bytes on every platform, so that hashes can be taken of it.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256_of(value: Any) -> str:
    """Return the SHA-256, as 64 hex digits, of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()
