"""How many rows of a table the page shows; the download always has all."""

from __future__ import annotations

import pandas as pd

from judge_calibration.report.blocks import TableBlock

MOST_ROWS = 40


def shortened(shown: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return at most 40 rows, and a sentence that says how many there are if there are more.

    Examples
    --------
    >>> rows, more = shortened(pd.DataFrame({"a": range(50)}))
    >>> len(rows), more
    (40, 'The first 40 of 50 rows; the download has all.')
    """
    if len(shown) <= MOST_ROWS:
        return shown, ""
    return shown.head(MOST_ROWS), f"The first {MOST_ROWS} of {len(shown):,} rows; the download has all."


def short_table(id: str, title: str, note: str, shown: pd.DataFrame, exact: pd.DataFrame) -> TableBlock:
    """Return a table whose first rows stand on the page; a sentence after its note says if there are more."""
    rows, more = shortened(shown)
    return TableBlock(id, title, f"{note} {more}".strip(), rows, exact)
