"""Which held-out pairs an adapted judge is asked about, and which of them its gain is measured on."""

from __future__ import annotations

import pandas as pd

ALL = "all"
"""The learned source of a base, and of a judge that was adapted to all sources together."""


def of_source(held_out: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return the held-out pairs of the source that a judge learned from; all for `ALL`.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["p1", "p2"], "source": ["bank", "mine"]})
    >>> list(of_source(pairs, "mine")["pair_id"])
    ['p2']
    >>> len(of_source(pairs, "all"))
    2
    """
    return held_out if source == ALL else held_out[held_out["source"] == source]


def with_controlled(held_out: pd.DataFrame, controlled: pd.DataFrame) -> pd.DataFrame:
    """Return held-out pairs and, after them, the controlled pairs that are not among them.

    Examples
    --------
    >>> held_out = pd.DataFrame({"pair_id": ["p1"], "source": ["mine"]})
    >>> controlled = pd.DataFrame({"pair_id": ["p1", "p9"], "source": ["mine", "bank"]})
    >>> list(with_controlled(held_out, controlled)["pair_id"])
    ['p1', 'p9']
    """
    more = controlled[~controlled["pair_id"].isin(held_out["pair_id"])]
    if more.empty:
        return held_out
    return more if held_out.empty else pd.concat([held_out, more], ignore_index=True)
