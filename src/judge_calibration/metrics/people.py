"""Whose labels a table holds: those of people, of models or of a simulated panel."""

from __future__ import annotations

import pandas as pd


def kinds_of(labels: pd.DataFrame) -> pd.Series:
    """Return who made each label, by the column ``kind`` (of settled ones ``reference_kind``).

    Human where nothing is said: then the table is one of people's labels.

    Examples
    --------
    >>> kinds_of(pd.DataFrame({"label": ["A", "B"], "kind": ["simulated", None]})).tolist()
    ['simulated', 'human']
    >>> kinds_of(pd.DataFrame({"label": ["A"]})).tolist()
    ['human']
    """
    kinds = pd.Series(index=labels.index, dtype="str")
    for column in ("kind", "reference_kind"):
        if column in labels.columns:
            kinds = kinds.fillna(labels[column].astype("str"))
    return kinds.fillna("human")


def of_people(labels: pd.DataFrame) -> pd.DataFrame:
    """Return the labels that people gave. Those of a model or of a simulated panel are nobody's."""
    return labels[kinds_of(labels) == "human"]
