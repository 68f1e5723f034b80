"""Rubrics: what a source's labels reward, in words that a judge is given as instructions.

A rubric is a text that a person can read and change. It is written from training pairs only: in a fixed form
from the weights that predict the training labels from the judge's own attribute reads, or by a model that is
shown training pairs. What it says is measured by its diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.text import sha256_of

DIAGNOSTIC_COLUMNS = (
    "judge_id",
    "source",
    "budget",
    "resample",
    "writer",
    "edited",
    "n_train",
    "shown",
    "words",
    "attributes_named",
    "named",
    "weights_known",
    "share_of_strongest",
    "same_direction",
    "n_direction",
    "rank_agreement",
    "undefined",
)
_HEAD = (
    "In this collection, answers were labelled by a standard of its own. What decided, most important first:"
)
_TAIL = "Where these point both ways, the higher one in the list decides. Anything else counts little."
_LONGEST_NAME = 120
"""Characters of a judge's name."""


@dataclass(frozen=True)
class Rubric:
    """One rubric, or the reason why there is none.

    Attributes
    ----------
    judge_id, source, budget : str
        Whom it is for and which training subset it was written from ("32" to "full").
    resample : int
        Ranking of the training pairs; 0 is the frozen one.
    writer : str
        ``weights``, a judge's id, or ``person`` for an edited one.
    text : str
        Empty if `undefined`.
    n_train : int
        Training pairs that the writer used.
    shown, cut : int
        For a writing model: pairs that it was shown, and texts among them that were shortened.
    file : str or None
        Where an edited rubric was read from.
    undefined : str or None
        ``no_reads``, ``no_training_pair``, ``one_class_only``, ``no_stable_direction``, ``nothing_to_say``,
        ``too_long``, or ``writer_`` and the outcome of the writing call.
    """

    judge_id: str
    source: str
    budget: str
    resample: int
    writer: str
    text: str
    n_train: int
    shown: int = 0
    cut: int = 0
    file: str | None = None
    undefined: str | None = None

    @property
    def name(self) -> str:
        """Names the rubric in judges and tables.

        Where the source holds characters that no name may have, or the name would be too long for a judge, a
        part of a hash keeps apart what would otherwise read alike.
        """
        source = re.sub(r"[^A-Za-z0-9_.-]+", "_", self.source)
        end = f"-{self.budget}" + (f"-resample{self.resample}" if self.resample else "")
        stem = f"{self.judge_id}+rubric-{source}"
        if source == self.source and len(stem + end) <= _LONGEST_NAME:
            return stem + end
        end = f"-{sha256_of([self.judge_id, self.source])[:8]}{end}"
        return stem[: _LONGEST_NAME - len(end)] + end

    @property
    def file_name(self) -> str:
        """Names the rubric's file; the name of a judge may hold characters that no file may have."""
        plain = re.sub(r"[^A-Za-z0-9_.+-]+", "_", self.name)
        return plain if plain == self.name else f"{plain}-{sha256_of(self.name)[:8]}"


def write_from_weights(
    coefficients: Mapping[str, float], definitions: Mapping[str, str], most: int = 6
) -> str:
    """Return the rubric that the fitted weights make: the attributes with the largest weights, in words.

    Parameters
    ----------
    coefficients : mapping of str to float
        Log-odds for A a unit of direction, by attribute: positive where the answer with more of it wins.
    definitions : mapping of str to str
        What each attribute is, in a sentence.
    most : int
        Attributes that are named at most. Those with a weight of 0 are never named.

    Examples
    --------
    >>> print(write_from_weights({"depth": 0.9, "length": -1.2, "tone": 0.0}, {"depth": "How deep it goes."}))
    In this collection, answers were labelled by a standard of its own. What decided, most important first:
    1. Less length is better.
    2. More depth is better. Depth: How deep it goes.
    Where these point both ways, the higher one in the list decides. Anything else counts little.
    """
    ordered = sorted(coefficients.items(), key=lambda item: (-abs(item[1]), item[0]))
    chosen = [(name, value) for name, value in ordered if abs(value) > 1e-9][:most]
    if not chosen:
        return ""
    lines = []
    for number, (name, value) in enumerate(chosen, start=1):
        plain = name.replace("_", " ")
        meaning = f" {plain.capitalize()}: {definitions[name]}" if name in definitions else ""
        lines.append(f"{number}. {'More' if value > 0 else 'Less'} {plain} is better.{meaning}")
    return "\n".join([_HEAD, *lines, _TAIL])


def named_attributes(text: str, attributes: Sequence[str]) -> list[tuple[str, int]]:
    """Return the attributes that a text names, in the order in which it first does, with the direction.

    Parameters
    ----------
    text : str
        A rubric.
    attributes : sequence of str
        Names; underscores stand for spaces.

    Returns
    -------
    list of (str, int)
        +1 where the sentence in front of, or with, the first mention asks for more of it, -1 for less, 0
        where it says neither.

    Examples
    --------
    >>> named_attributes("Prefer less verbosity. Depth matters.", ["depth", "verbosity"])
    [('verbosity', -1), ('depth', 0)]
    """
    found = []
    for name in attributes:
        words = re.escape(name.replace("_", " ")).replace(r"\ ", r"[\s_-]+")
        match = re.search(rf"(?<![\w-]){words}(?![\w-])", text, re.IGNORECASE)
        if match:
            found.append((match.start(), -len(name), name, _direction(text, match)))
    taken: list[tuple[int, int]] = []
    out = []
    for start, size, name, direction in sorted(found):
        if any(begin <= start < end for begin, end in taken):
            continue  # part of a longer name that was named
        taken.append((start, start - size))
        out.append((name, direction))
    return out


def _direction(text: str, match: re.Match[str]) -> int:
    start = max(text.rfind(mark, 0, match.start()) for mark in (".", "\n", ";", ":")) + 1
    before = text[start : match.end()].lower()
    if re.search(r"\b(less|fewer|without|avoid|not|no)\b", before):
        return -1
    return 1 if re.search(r"\b(more|with|prefer|reward|better)\b", before) else 0


def rubric_diagnostics(
    rubrics: Sequence[Rubric],
    weights: Mapping[tuple[str, str, str, int], Mapping[str, float]],
    attributes: Sequence[str],
) -> pd.DataFrame:
    """Return what each rubric says, beside the weights that predict the labels it was written from.

    Parameters
    ----------
    rubrics : sequence of Rubric
    weights : mapping
        By (judge_id, source, budget, resample): coefficients by attribute.
    attributes : sequence of str
        All names.

    Returns
    -------
    pandas.DataFrame
        DIAGNOSTIC_COLUMNS: n_train, the training pairs that the writer used (a model: that it was shown, and
        then `shown` holds them as well, else 0); words; attributes_named and named (by commas, in order);
        share_of_strongest: of the k strongest weights, the share among the k named; same_direction: share of
        named attributes with a stated direction and a weight other than 0 whose directions agree, out of
        n_direction; rank_agreement: Spearman correlation of the order of naming with the order of the
        weights' sizes (NaN below three named). The last three need weights (`weights_known`).
    """
    rows = []
    for one in rubrics:
        named = named_attributes(one.text, attributes)
        fitted = weights.get((one.judge_id, one.source, one.budget, one.resample), {})
        row: dict[str, Any] = {
            "judge_id": one.judge_id,
            "source": one.source,
            "budget": one.budget,
            "resample": one.resample,
            "writer": one.writer,
            "edited": one.file is not None,
            "n_train": one.n_train,
            "shown": one.shown,
            "words": len(one.text.split()),
            "attributes_named": len(named),
            "named": ", ".join(name for name, _ in named),
            "weights_known": bool(fitted),
            "share_of_strongest": np.nan,
            "same_direction": np.nan,
            "n_direction": 0,
            "rank_agreement": np.nan,
            "undefined": one.undefined,
        }
        known = [(name, direction) for name, direction in named if name in fitted]
        if known:
            strongest = sorted(fitted, key=lambda name: (-abs(fitted[name]), name))[: len(known)]
            row["share_of_strongest"] = float(np.mean([name in strongest for name, _ in known]))
            said = [(d, np.sign(fitted[name])) for name, d in known if d and fitted[name]]
            row["n_direction"] = len(said)
            if said:
                row["same_direction"] = float(np.mean([d == sign for d, sign in said]))
            if len(known) >= 3:
                sizes = pd.Series([-abs(fitted[name]) for name, _ in known])
                row["rank_agreement"] = float(sizes.rank().corr(pd.Series(range(len(known)), dtype=float)))
        rows.append(row)
    return pd.DataFrame(rows, columns=list(DIAGNOSTIC_COLUMNS)).astype({"undefined": "str", "named": "str"})


def shortened(text: str, words: int) -> tuple[str, bool]:
    """Return the first `words` words of a text, and whether anything was cut (then it ends in a mark).

    Examples
    --------
    >>> shortened("one two three", 2)
    ('one two [...]', True)
    """
    parts = text.split()
    if len(parts) <= words:
        return text, False
    return " ".join(parts[:words]) + " [...]", True
