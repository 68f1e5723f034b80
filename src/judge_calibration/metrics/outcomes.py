"""Outcome counts: how often a judgment was valid, and how the others failed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.metrics.estimation import SourceGroup, cell_keys, shown_cells, source_groups
from judge_calibration.metrics.judgments import CELL_COLUMNS, Ints, encode
from judge_calibration.metrics.share_rows import ratio_intervals
from judge_calibration.metrics.slices import WHOLE
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions

OUTCOME_COLUMNS = (
    "source",
    *CELL_COLUMNS,
    "kind",
    "name",
    "count",
    "judgments",
    "share",
    "low",
    "high",
    "method",
    "interval_reason",
)
"""Columns of the outcome table, in order."""


_KINDS = {
    "outcome": schemas.OUTCOMES,
    "verdict": schemas.VERDICTS,
    "shown": ("first", "second"),
    "parse_path": schemas.PARSE_PATHS,
}


def outcome_table(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions | None = None
) -> pd.DataFrame:
    """Count outcomes, verdicts and parse paths of every cell.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    options : ReportingOptions, optional
        Intervals.

    Returns
    -------
    pandas.DataFrame
        One row a source, cell and name. ``kind`` is ``outcome`` (all eleven, those that never happened
        with count 0; they sum to ``judgments``), ``verdict`` (A, B, TIE, ABSTAIN), ``shown`` (first,
        second: decisive verdicts by position) or ``parse_path`` (strict, fenced, embedded).
        ``judgments`` is the number of judgments of the cell, ``share`` is count / judgments, 0 to 1, with
        its interval or, in ``interval_reason``, why there is none.

    Raises
    ------
    TableError
        If the verdicts cannot be counted.

    References
    ----------
    Definitions, section 1.
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    judgments = encode(verdicts, pairs)
    frame = verdicts.reindex(columns=[*CELL_COLUMNS, "pair_id", "order", "outcome", "verdict", "parse_path"])
    decisive = frame["verdict"].isin(schemas.DECISIVE)
    first = (frame["order"] == "AB") == (frame["verdict"] == "A")
    frame["shown"] = pd.Series(np.where(first, "first", "second"), index=frame.index).where(decisive)
    frame["temperature"] = frame["temperature"].astype(float)
    cells = judgments.cells.reset_index(names="_cell")
    cell = frame[CELL_COLUMNS].merge(cells, on=CELL_COLUMNS, how="left")["_cell"].to_numpy(np.int64)
    pair = pd.Index(judgments.pairs["pair_id"]).get_indexer(pd.Index(frame["pair_id"]))
    said = {kind: pd.Index(names).get_indexer(pd.Index(frame[kind])) for kind, names in _KINDS.items()}
    parts = []
    with threadpool_limits(limits=1, user_api="blas"):
        for group in source_groups(judgments, chosen, ()):
            if group.name != WHOLE:
                for c in np.flatnonzero(shown_cells(judgments, group)):
                    own = np.flatnonzero((cell == c) & group.member[pair])
                    keys = cell_keys(judgments, int(c)) | {"source": group.name}
                    parts.append(_cell_counts(own, group, pair, said, keys, chosen.intervals))
    out = (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({name: [] for name in OUTCOME_COLUMNS})
    )
    text = {"source", *CELL_COLUMNS, "kind", "name", "method", "interval_reason"} - {"temperature"}
    kinds = {
        c: "str" if c in text else "Int64" if c in ("count", "judgments") else "float64"
        for c in OUTCOME_COLUMNS
    }
    return out[list(OUTCOME_COLUMNS)].astype(kinds)


def _cell_counts(
    own: Ints,
    group: SourceGroup,
    pair: Ints,
    said: dict[str, Ints],
    keys: dict[str, object],
    options: IntervalOptions,
) -> pd.DataFrame:
    """Count every name of every kind in the judgments of one cell, with intervals of their shares."""
    cluster = group.cluster[pair[own]]
    g = group.n_clusters
    columns, labels = [], []
    for kind, names in _KINDS.items():
        code = said[kind][own]
        known = code >= 0
        flat = np.bincount(cluster[known] * len(names) + code[known], minlength=g * len(names))
        columns.append(flat.reshape(g, len(names)).astype(np.float64))
        labels += [(kind, name) for name in names]
    counts = np.concatenate(columns, axis=1)
    every = np.bincount(cluster, minlength=g).astype(np.float64)
    found = ratio_intervals(
        counts, np.repeat(every[:, None], counts.shape[1], axis=1), group.resamples, True, options
    )
    rows = pd.DataFrame([keys] * len(labels))
    rows["kind"] = [kind for kind, _ in labels]
    rows["name"] = [name for _, name in labels]
    rows["count"] = counts.sum(axis=0)
    rows["judgments"] = len(own)
    rows["share"], rows["low"], rows["high"] = found.value, found.low, found.high
    rows["method"] = found.method.astype(object)
    rows["interval_reason"] = found.reason.astype(object)
    return rows
