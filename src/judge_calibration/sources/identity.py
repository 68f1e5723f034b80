"""Names that depend on content alone: a pair's hash, its cluster, and where a chosen answer stands."""

from __future__ import annotations

import hashlib
import json
import unicodedata

from judge_calibration.text import sha256_of

_encode = json.encoder.encode_basestring_ascii


def content_hash(question: str | None, response_a: str | None, response_b: str | None) -> str:
    """Return the SHA-256 of what a judge is shown: the same texts give the same hash in every source.

    Examples
    --------
    >>> content_hash("q", "a", "b") == sha256_of({"question": "q", "response_a": "a", "response_b": "b"})
    True
    """
    if question is None or response_a is None or response_b is None:
        return sha256_of({"question": question, "response_a": response_a, "response_b": response_b})
    # The canonical JSON of that mapping, written out: a million pairs are hashed in seconds.
    texts = {"question": question, "response_a": response_a, "response_b": response_b}
    body = ",".join(f'"{name}":{_encode(text)}' for name, text in texts.items())
    return hashlib.sha256(f"{{{body}}}".encode("ascii")).hexdigest()


def question_cluster(question: str) -> str:
    r"""Return the cluster of a question: one name for texts that differ in case, spaces or Unicode form only.

    Examples
    --------
    >>> question_cluster("What is  it?\n") == question_cluster("what is it?")
    True
    """
    text = question if question.isascii() else unicodedata.normalize("NFKC", question)
    folded = " ".join(text.casefold().split())
    return "question-" + hashlib.sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def chosen_is_a(question: str, chosen: str, rejected: str) -> bool:
    """Say whether the chosen answer is candidate A: half of them are, by a hash that ignores which is chosen.

    Files with a chosen and a rejected column would else have the right answer at A everywhere.

    Examples
    --------
    >>> chosen_is_a("q", "x", "y") != chosen_is_a("q", "y", "x")
    True
    """
    low, high = sorted((chosen, rejected))
    digest = hashlib.sha256("\x1f".join((question, low, high)).encode("utf-8", "surrogatepass")).digest()
    return (digest[0] % 2 == 0) == (chosen == low)
