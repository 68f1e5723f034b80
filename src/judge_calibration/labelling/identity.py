"""Ids that tell nothing: packet ids and annotator pseudonyms by a keyed hash.

Both are HMAC-SHA-256 under a key that is derived from the round's secret. The secret is never stored:
without one a published practice key is used, which gives the same ids on every machine but can be
recomputed by anyone who has the pairs; artifacts say which of the two it was (``key_kind``).

A packet id has letters only, in groups of four, so that no spreadsheet takes it for a number, a date or a
formula; vowels are left out, so that it spells no word; the last letter is a check letter (Luhn), so that
a slip of the hand is told from an unknown id.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Literal

from judge_calibration.errors import JudgeCalibrationError

LETTERS = "bcdfghjkmnpqrstvwxyz"
SHORTEST_SECRET = 16
_PRACTICE = b"judge-calibration practice key: known to everyone"
_PACKET_ID = re.compile(f"[{LETTERS}]{{4}}(-[{LETTERS}]{{4}}){{3}}")
_PSEUDONYM = re.compile(f"ann_[{LETTERS}]{{8}}")

KeyKind = Literal["secret", "practice"]


class SecretError(JudgeCalibrationError):
    """The secret of a round of labelling is too short to keep anything secret."""


class RoundKey:
    """The key of one round, derived from its secret; it holds no way back and shows nothing when printed.

    Parameters
    ----------
    secret : str or None
        At least 16 characters; None or empty: the published practice key.
    round_id : str
        Another round has other ids under the same secret, and the same pseudonyms.

    Examples
    --------
    >>> RoundKey(None, "round-1")
    RoundKey(practice, round-1)
    """

    def __init__(self, secret: str | None, round_id: str) -> None:
        if secret and len(secret) < SHORTEST_SECRET:
            raise SecretError(
                f"The secret of the labelling round has {len(secret)} characters; "
                f"at least {SHORTEST_SECRET} are wanted.",
                "make one: python -c 'import secrets; print(secrets.token_hex(16))'",
            )
        self.kind: KeyKind = "secret" if secret else "practice"
        self.round_id = round_id
        self._key = hashlib.sha256(secret.encode() if secret else _PRACTICE).digest()

    def __repr__(self) -> str:
        return f"RoundKey({self.kind}, {self.round_id})"

    def __reduce__(self) -> str:
        raise TypeError("a RoundKey is not pickled: it must reach no file")

    def digest(self, purpose: str, *parts: str) -> bytes:
        """Return 32 bytes that depend on the key, the purpose and the parts, and tell nothing of them."""
        # Lengths before the parts: ("ab", "c") and ("a", "bc") must differ.
        encoded = [part.encode() for part in (purpose, *parts)]
        message = b"".join([len(part).to_bytes(8, "big") + part for part in encoded])
        return hmac.digest(self._key, message, "sha256")

    def uniform(self, purpose: str, *parts: str) -> float:
        """Return a number in [0, 1) by the same rule, for draws that adding rows does not move."""
        return int.from_bytes(self.digest(purpose, *parts)[:7], "big") / 2**56

    def packet_id(self, pair_id: str, annotator_id: str, stage: str) -> str:
        """Return the id of what one annotator sees of one pair at one stage.

        Examples
        --------
        >>> is_packet_id(RoundKey(None, "round-1").packet_id("p1", "ann_bcdfghjk", "primary"))
        True
        """
        number = int.from_bytes(
            self.digest("packet", self.round_id, pair_id, annotator_id, stage)[:16], "big"
        )
        letters = ""
        for _ in range(15):
            number, rest = divmod(number, len(LETTERS))
            letters += LETTERS[rest]
        letters += _check_letter(letters)
        return "-".join(letters[i : i + 4] for i in range(0, 16, 4))

    def pseudonym(self, code: str) -> str:
        """Return the annotator's pseudonym: the same in every round under one secret."""
        number = int.from_bytes(self.digest("annotator", code)[:10], "big")
        letters = ""
        for _ in range(8):
            number, rest = divmod(number, len(LETTERS))
            letters += LETTERS[rest]
        return f"ann_{letters}"


def is_pseudonym(text: str) -> bool:
    """Return whether the text has the form of an annotator's pseudonym.

    Examples
    --------
    >>> is_pseudonym(RoundKey(None, "round-1").pseudonym("annotator_1")), is_pseudonym("ann_example")
    (True, False)
    """
    return bool(_PSEUDONYM.fullmatch(text))


def _luhn_sum(letters: str, first_factor: int) -> int:
    size = len(LETTERS)
    total, factor = 0, first_factor
    for letter in reversed(letters):
        addend = factor * LETTERS.index(letter)
        total += addend // size + addend % size
        factor = 3 - factor
    return total


def _check_letter(letters: str) -> str:
    return LETTERS[-_luhn_sum(letters, 2) % len(LETTERS)]


def is_packet_id(text: str) -> bool:
    """Return whether the text has the form of a packet id and its check letter is right.

    Examples
    --------
    >>> is_packet_id("1.23E+12"), is_packet_id("bcdf-bcdf-bcdf-bcdf")
    (False, False)
    """
    if not _PACKET_ID.fullmatch(text):
        return False
    return _luhn_sum(text.replace("-", ""), 1) % len(LETTERS) == 0


def has_packet_form(text: str) -> bool:
    """Return whether the text has the form of a packet id, whatever its check letter."""
    return bool(_PACKET_ID.fullmatch(text))
