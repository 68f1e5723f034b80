"""Clusters of dependent pairs, and the weights of their resamples.

A resample draws as many clusters as there are, with replacement; a cluster drawn twice counts twice. The
weights of all resamples are one matrix W (resamples x clusters) and a statistic of all resamples is a ratio
of columns of ``W @ S``, where S holds each cluster's sums. W depends on the number of clusters, the number
of resamples and the seed only, so that all statistics of a report see the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

_BLOCK_ELEMENTS = 4_000_000


class Clusters(NamedTuple):
    """Cluster codes of rows.

    Attributes
    ----------
    codes : numpy.ndarray of int64, shape (n_rows,)
        0 for the cluster that appears first, 1 for the next new one, and so on.
    names : list of str
        The clusters in order of first appearance.
    """

    codes: npt.NDArray[np.int64]
    names: list[str]

    @property
    def size(self) -> int:
        """The number of clusters."""
        return len(self.names)


def cluster_codes(ids: npt.ArrayLike | pd.Series) -> Clusters:
    """Number clusters in order of first appearance.

    Parameters
    ----------
    ids : array-like of str
        Cluster (base_id) of each row.

    Returns
    -------
    Clusters

    Examples
    --------
    >>> cluster_codes(["t2", "t1", "t2"])
    Clusters(codes=array([0, 1, 0]), names=['t2', 't1'])
    """
    codes, names = pd.factorize(pd.Series(ids))
    return Clusters(codes.astype(np.int64), [str(name) for name in names])


def cluster_sums(values: npt.ArrayLike, codes: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.float64]:
    """Sum `values` within clusters.

    Parameters
    ----------
    values : array-like of shape (n_rows,) or (n_rows, n_columns)
        Contributions of each row to numerators and denominators.
    codes : numpy.ndarray of int64, shape (n_rows,)
        Cluster of each row, from :func:`cluster_codes`.
    count : int
        Number of clusters.

    Returns
    -------
    numpy.ndarray of float64, shape (count,) or (count, n_columns)

    Examples
    --------
    >>> cluster_sums([1, 0, 1], np.array([0, 1, 0]), 2)
    array([2., 0.])
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        return np.bincount(codes, weights=table, minlength=count).astype(np.float64)
    columns = [np.bincount(codes, weights=table[:, k], minlength=count) for k in range(table.shape[1])]
    return np.stack(columns, axis=1).astype(np.float64)


def weight_blocks(count: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield the weight matrix of all resamples in blocks of rows.

    Parameters
    ----------
    count : int
        Number of clusters, at least 1.
    resamples : int
        Number of resamples.
    seed : int
        Seed of :func:`numpy.random.default_rng`.

    Yields
    ------
    numpy.ndarray of int64, shape (rows, count)
        How often each cluster was drawn; every row sums to `count`. The blocks are consecutive rows of one
        matrix: the draws are those of ``rng.choice(count, count, replace=True)``, called once a resample.

    Examples
    --------
    >>> [block.shape for block in weight_blocks(3, 5, seed=7)]
    [(5, 3)]
    """
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK_ELEMENTS // count)
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        draws = rng.integers(0, count, size=(size, count))
        draws += np.arange(0, size * count, count)[:, None]
        yield np.bincount(draws.ravel(), minlength=size * count).reshape(size, count)
