"""Agreement counts straight from packed files, range of items by range of items, here or on Dask's workers.

Counts of disjoint items add up, so a panel that is larger than memory is counted in ranges; a range is read
from the row groups that hold it. The sums are made in the order of the ranges, whoever counted them: the
numbers are the same with any number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.pair_counts import PairCounts, count_pairs

if TYPE_CHECKING:
    import pyarrow.parquet as pq

RANGE = 10_000
"""Items a range: the row groups of the packed files are as long."""


class PanelCounts(NamedTuple):
    """Counts of a set of items.

    codes : numpy.ndarray of int64, shape (n_judges, n_attributes, 9)
        Enough for coverage, detection and order consistency.
    pairs : PairCounts
        Enough for agreement, joint coverage and kappa by stratum.
    """

    codes: np.ndarray
    pairs: PairCounts

    def __add__(self, other: object) -> PanelCounts:  # type: ignore[override]
        """Add the counts of other items."""
        if not isinstance(other, PanelCounts):
            return NotImplemented
        return PanelCounts(self.codes + other.codes, self.pairs + other.pairs)


def read_codes(
    paths: Sequence[str | Path], attributes: Sequence[str], start: int = 0, stop: int | None = None
) -> np.ndarray:
    """Read a range of items from packed files, one a judge, with the same items in the same order.

    Returns
    -------
    numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
    """
    import pyarrow.parquet as pq

    parts: np.ndarray | None = None
    for j, path in enumerate(paths):
        with pq.ParquetFile(path) as file:
            end = file.metadata.num_rows if stop is None else min(stop, file.metadata.num_rows)
            if parts is None:
                parts = np.empty((len(paths), max(0, end - start), len(attributes)), dtype=np.int8)
            _fill(parts[j], file, list(attributes), start, end)
    return np.zeros((0, 0, len(attributes)), dtype=np.int8) if parts is None else parts


def _fill(out: np.ndarray, file: pq.ParquetFile, attributes: list[str], start: int, stop: int) -> None:
    begin = 0
    for number in range(file.metadata.num_row_groups):
        end = begin + file.metadata.row_group(number).num_rows
        low, high = max(begin, start), min(end, stop)
        if low < high:
            table = file.read_row_group(number, columns=attributes, use_threads=False)
            for k, name in enumerate(attributes):
                values = table.column(name).to_numpy()
                out[low - start : high - start, k] = values[low - begin : high - begin]
        begin = end


def count_range(
    paths: Sequence[str | Path], attributes: Sequence[str], verdicts: np.ndarray, start: int
) -> PanelCounts:
    """Count the items from `start` on, as many as there are verdicts for: shape (n_judges, n_items)."""
    codes = read_codes(paths, attributes, start, start + verdicts.shape[1])
    return PanelCounts(code_counts(codes), count_pairs(codes, verdicts))


def count_files(
    paths: Sequence[str | Path],
    attributes: Sequence[str],
    verdicts: np.ndarray,
    items: int = RANGE,
    client: Any = None,
) -> PanelCounts:
    """Count a whole panel from its packed files.

    Parameters
    ----------
    paths : sequence of path
        One packed Parquet file a judge, the same items in the same order in all.
    attributes : sequence of str
        The columns to count.
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        Overall choices: +1 for A, -1 for B, 0 unresolved.
    items : int
        Items a range.
    client : dask.distributed.Client, optional
        Counts the ranges on its workers (which have to see the files); here, one by one, without.
    """
    starts = range(0, verdicts.shape[1], items)
    parts = [verdicts[:, start : start + items] for start in starts]
    names = [str(path) for path in paths]
    if client is None:
        counted = (count_range(names, attributes, v, s) for v, s in zip(parts, starts, strict=True))
    else:
        futures = [
            client.submit(count_range, names, list(attributes), v, s, pure=False)
            for v, s in zip(parts, starts, strict=True)
        ]
        counted = (future.result() for future in futures)
    total: PanelCounts | None = None
    for part in counted:
        total = part if total is None else total + part
    if total is None:
        raise ValueError("verdicts have no item, so there is nothing to count")
    return total
