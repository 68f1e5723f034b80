"""Confusion matrices as counts and row percentages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio


def confusion_counts(rows: npt.ArrayLike, columns: npt.ArrayLike, k: int) -> npt.NDArray[np.int64]:
    """Count how often label `rows` met label `columns`.

    Parameters
    ----------
    rows, columns : array-like of int, shape (n_items,)
        Codes from 0 to k - 1.
    k : int
        Number of labels.

    Returns
    -------
    numpy.ndarray of int64, shape (k, k)

    Raises
    ------
    ValueError
        If a code is outside 0 to k - 1.

    Examples
    --------
    >>> confusion_counts([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1, 1], [0, 1]]
    """
    first, second = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    if len(first) and (min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= k):
        raise ValueError(f"a label's code lies outside 0 to {k - 1}")
    return np.bincount(first * k + second, minlength=k * k).reshape(k, k)


def row_percentages(confusion: npt.ArrayLike) -> Floats:
    """Return each row of a confusion matrix in percent of its sum; NaN for an empty row.

    Examples
    --------
    >>> row_percentages([[3, 1], [0, 0]]).tolist()
    [[75.0, 25.0], [nan, nan]]
    """
    table = np.asarray(confusion, dtype=np.float64)
    return 100 * ratio(table, table.sum(axis=-1, keepdims=True))
