"""A verdict from the first answer token's log-probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from judge_calibration.judges.parsing.alphabet import Alphabet, Meaning
from judge_calibration.judges.parsing.replies import Parsed, malformed


def read_first_token(
    logprobs: str | None, alphabet: Alphabet, label_bias: Mapping[str, float] | None = None
) -> Parsed:
    """Read the most probable label of the first token that is not white space.

    Parameters
    ----------
    logprobs : str or None
        JSON list of ``{token, logprob, top: [{token, logprob}]}`` (natural logarithms), one a token.
    alphabet : Alphabet
        The labels. A token counts for a label if it is the label after white space is taken off (case
        ignored); the probabilities of several such tokens are added.
    label_bias : mapping of str to float, optional
        Natural-log units that are taken off a shown label's log-probability before labels are compared.

    Returns
    -------
    Parsed
        Values: ``winner``; ``logprob_confidence``, the probability of the chosen label among the labels (0 to
        1); ``label_logprobs``, after the subtraction, by meaning. A label that the model did not list is
        flagged ``label_not_listed`` and counted with the most it can have, so the confidence is a lower
        bound. Malformed if no label is listed, if two equally probable ones come first, or if one that is
        not listed might.

    Examples
    --------
    >>> top = [{"token": "A", "logprob": -0.5}, {"token": " B", "logprob": -1.5}]
    >>> parsed = read_first_token(json.dumps([{"token": "A", "logprob": -0.5, "top": top}]), Alphabet())
    >>> parsed.values["winner"], round(parsed.values["logprob_confidence"], 4)
    (<Meaning.FIRST: 'first'>, 0.7311)
    """
    candidates = _first_token(logprobs)
    if candidates is None:
        return malformed("no_logprobs")
    bias = {key.strip().lower(): value for key, value in (label_bias or {}).items()}
    offsets = {meaning: bias.get(label.lower(), 0.0) for label, meaning in alphabet.labels.items()}
    mass: dict[Meaning, float] = {}
    for token, logprob in candidates.items():
        meaning = alphabet.read(token)
        if meaning is not None and math.isfinite(logprob):
            mass[meaning] = mass.get(meaning, 0.0) + math.exp(logprob)
    scores = {meaning: math.log(p) - offsets[meaning] for meaning, p in mass.items() if p > 0}
    if not scores:
        return malformed("label_not_listed")
    best = max(scores.values())
    winners = [meaning for meaning, score in scores.items() if score == best]
    if len(winners) > 1:
        return malformed("equal_log_probabilities")
    unlisted = _most_unlisted(candidates)
    bounds = [unlisted - offset for meaning, offset in offsets.items() if meaning not in scores]
    if any(bound >= best for bound in bounds):
        return malformed("label_not_listed")
    total = sum(math.exp(score - best) for score in [*scores.values(), *bounds])
    return Parsed(
        "valid",
        {"winner": winners[0], "logprob_confidence": 1.0 / total, "label_logprobs": scores},
        flags=("label_not_listed",) if bounds else (),
    )


def _most_unlisted(candidates: Mapping[str, float]) -> float:
    """Return the log of the most that a token which is not listed can have.

    That is what the listed ones leave, and no more than the least probable of them.
    """
    listed = [value for value in candidates.values() if math.isfinite(value)]
    left = 1.0 - sum(math.exp(value) for value in listed)
    return min(*listed, math.log(left)) if left > 0 else -math.inf


def _first_token(logprobs: str | None) -> dict[str, float] | None:
    """Return token to log-probability at the first token with more than white space."""
    try:
        tokens = json.loads(logprobs) if logprobs else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(tokens, list):
        return None
    for entry in tokens:
        if not isinstance(entry, dict):
            return None
        listed = _listed(entry)
        if not listed:
            return None
        if str(entry.get("token", "")).strip():
            return listed
    return None


def _listed(entry: Mapping[str, Any]) -> dict[str, float]:
    top = entry.get("top")
    rows = [*(top if isinstance(top, list) else []), entry]
    listed: dict[str, float] = {}
    for row in rows:
        if not isinstance(row, dict):
            continue
        token, logprob = row.get("token"), row.get("logprob")
        if isinstance(token, str) and isinstance(logprob, (int, float)) and not isinstance(logprob, bool):
            listed[token] = float(logprob)
    return listed
