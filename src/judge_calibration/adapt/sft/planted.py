"""Pairs with a planted rule, to see whether training can teach a judge anything at all. SIMULATED.

The rule is "the longer answer is the better one". Every answer is one line of invented minutes, and nothing
but length tells the better one: who, what, where and when are drawn alike for both, the lengths of better and
worse answers overlap over the whole set, and the better one stands in either place equally often, by lot.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

SOURCE = "SIMULATED-longer-answer"

_WHO = (
    "the clerk", "a courier", "the night guard", "our plumber", "the baker", "a student", "the conductor",
    "the gardener", "a neighbour", "the librarian", "the surveyor", "a nurse", "the ferryman", "a tailor",
)  # fmt: skip
_DID = (
    "counted", "moved", "painted", "returned", "measured", "labelled", "cleaned", "borrowed", "repaired",
    "stacked", "weighed", "listed", "opened", "locked",
)  # fmt: skip
_WHAT = (
    "the crates", "two ladders", "the green folders", "a bicycle", "the spare keys", "the lamps",
    "four chairs",
    "the parcels", "an old map", "the seed trays", "the blue cups", "a tool box", "the tickets",
    "the blankets",
)  # fmt: skip
_WHERE = (
    "in the yard", "by the gate", "upstairs", "near the pier", "in room nine", "behind the hall",
    "at the depot", "under the stairs", "on the porch", "beside the mill",
)  # fmt: skip
_WHEN = (
    "before noon", "on Monday", "after lunch", "at dusk", "last week", "during the break", "in the rain",
    "on the way home", "early", "once more",
)  # fmt: skip
_PLACES = (
    "harbour", "station", "orchard", "museum", "workshop", "school", "market", "clinic", "theatre", "quarry",
    "library", "bakery", "garage", "chapel", "farm", "hotel", "factory", "garden", "office", "kennel",
)  # fmt: skip
_ASKED = (
    "What happened at the {}?",
    "Tell me what was done at the {}.",
    "What do the minutes of the {} say?",
    "Sum up the day at the {}.",
)


def _clause(draw: np.random.Generator) -> str:
    words = [str(draw.choice(options)) for options in (_WHO, _DID, _WHAT)]
    for options in (_WHERE, _WHEN):
        if draw.random() < 0.5:
            words.append(str(draw.choice(options)))
    return " ".join(words)


def _answer(draw: np.random.Generator, clauses: int) -> str:
    text = "; ".join(_clause(draw) for _ in range(clauses))
    return text[0].upper() + text[1:] + "."


def planted_pairs(pairs: int, seed: int) -> pd.DataFrame:
    """Return pairs in which the longer answer is the better one, in the layout ``pairs``.

    Parameters
    ----------
    pairs : int
        How many.
    seed : int

    Returns
    -------
    pandas.DataFrame
        pair_id, base_id, source, domain, question, response_a, response_b, reference_label, reference_kind,
        candidate_a, candidate_b. The shorter answer has 1 to 3 clauses and the longer one 2 or 3 more.

    Examples
    --------
    >>> made = planted_pairs(40, seed=1)
    >>> longer_a = made["response_a"].str.len() > made["response_b"].str.len()
    >>> bool(((made["reference_label"] == "A") == longer_a).all())
    True
    """
    draw = np.random.default_rng(seed)
    labels = draw.permutation(["A", "B"] * (pairs // 2) + ["A"] * (pairs % 2))
    rows = []
    for number in range(pairs):
        shorter = int(draw.integers(1, 4))
        longer = shorter + int(draw.integers(2, 4))
        answers = [_answer(draw, longer), _answer(draw, shorter)]
        while len(answers[0]) <= len(answers[1]) + 10:  # clauses differ in length as well
            answers = [_answer(draw, longer), _answer(draw, shorter)]
        label = str(labels[number])
        place = _PLACES[int(draw.integers(len(_PLACES)))]
        asked = _ASKED[int(draw.integers(len(_ASKED)))].format(place)
        rows.append(
            {
                "pair_id": f"SIMULATED-longer-{number:04d}",
                "base_id": f"SIMULATED-longer-{place}-{number:04d}",
                "source": SOURCE,
                "domain": "simulated",
                "question": f"{asked} (entry {number + 1})",
                "response_a": answers[0] if label == "A" else answers[1],
                "response_b": answers[1] if label == "A" else answers[0],
                "candidate_a": "SIMULATED",
                "candidate_b": "SIMULATED",
                "reference_label": label,
                "reference_kind": "constructed",
            }
        )
    return pd.DataFrame(rows)


SHIPPED = "data/01_raw/planted/simulated_longer_answer.csv"
SHIPPED_PAIRS = 360
SHIPPED_SEED = 20261130


def shipped_bytes() -> bytes:
    """Return the file of planted pairs that comes with the project (`SHIPPED`)."""
    return planted_pairs(SHIPPED_PAIRS, SHIPPED_SEED).to_csv(index=False, lineterminator="\n").encode("utf-8")


if __name__ == "__main__":
    # python -m judge_calibration.adapt.sft.planted writes the file anew.
    from judge_calibration.runs.files import write_bytes

    write_bytes(Path(SHIPPED), shipped_bytes())
