"""Slices of pairs: which value of a column each pair belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

WHOLE = "all"
"""Value of ``slice_by`` and ``slice`` for all pairs together, and of ``source`` for all sources."""


class Slicing(NamedTuple):
    """One way to slice.

    Attributes
    ----------
    by : str
        ``all``, a column, or two columns joined by ``*``.
    names : list of str
        The slices, sorted; crossed ones as ``"length / hard"``.
    codes : numpy.ndarray of int64, shape (n_pairs,)
        Position in `names`, -1 for a pair that is in none.
    """

    by: str
    names: list[str]
    codes: npt.NDArray[np.int64]


def band_names(edges: Sequence[float]) -> list[str]:
    """Name the bands between ascending edges.

    Examples
    --------
    >>> band_names([0.25, 0.5])
    ['under 0.25', '0.25 to 0.5', '0.5 and over']
    """
    if not edges:
        return ["any"]
    shown = [f"{edge:g}" for edge in edges]
    middle = [f"{low} to {high}" for low, high in pairwise(shown)]
    return [f"under {shown[0]}", *middle, f"{shown[-1]} and over"]


def quality_bands(gap: pd.Series, edges: Sequence[float]) -> pd.Series:
    """Put each quality gap into its band; null stays null."""
    names = np.array(band_names(edges), dtype=object)
    values = gap.to_numpy(dtype=np.float64, na_value=np.nan)
    bands = names[np.searchsorted(np.asarray(edges, dtype=np.float64), values, side="right")]
    return pd.Series(bands, index=gap.index).where(~np.isnan(values))


def slice_pairs(pairs: pd.DataFrame, by: str, edges: Sequence[float] = ()) -> Slicing | None:
    """Slice pairs by a column, by two crossed ones, or not at all.

    Parameters
    ----------
    pairs : pandas.DataFrame
        One row a pair.
    by : str
        ``all``, a column's name, or ``"a*b"``. ``quality_gap`` is cut into bands.
    edges : sequence of float
        Inner edges of the bands of ``quality_gap``.

    Returns
    -------
    Slicing or None
        None if a column is absent or holds nothing. A pair without a value is in no slice.

    Examples
    --------
    >>> frame = pd.DataFrame({"difficulty": ["hard", None, "easy"]})
    >>> slice_pairs(frame, "difficulty")
    Slicing(by='difficulty', names=['easy', 'hard'], codes=array([ 1, -1,  0]))
    """
    if by == WHOLE:
        return Slicing(WHOLE, [WHOLE], np.zeros(len(pairs), dtype=np.int64))
    label: pd.Series | None = None
    for column in by.split("*"):
        if column not in pairs.columns or not pairs[column].notna().any():
            return None
        values = pairs[column]
        if column == "quality_gap":
            values = quality_bands(values, edges)
        text = values.astype("str").where(values.notna())
        label = text if label is None else label + " / " + text
    if label is None or not label.notna().any():
        return None
    codes, names = pd.factorize(label, sort=True)
    return Slicing(by, [str(name) for name in names], codes.astype(np.int64))
