"""How the sets of pairs differ: those with human labels, those that were judged, and all."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.metrics.authority import calibration_shift, human_labels

SHIFT_COLUMNS = (
    "calibration_set",
    "judged_set",
    "kind",
    "name",
    "calibration_n",
    "calibration_share",
    "judged_n",
    "judged_share",
    "difference",
    "never_calibrated",
    "undefined",
)
"""Columns of the table of shifts, in order."""


def set_shifts(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame | None = None,
    slice_by: tuple[str, ...] = ("domain",),
) -> pd.DataFrame:
    """Return how what a judge was measured on differs from what it is to be used on.

    Parameters
    ----------
    verdicts, pairs, labels : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`.
    slice_by : tuple of str
        Columns that make the slices.

    Returns
    -------
    pandas.DataFrame
        Columns SHIFT_COLUMNS, as :func:`judge_calibration.metrics.authority.calibration_shift` gives them,
        for two comparisons: ``human_labelled`` beside ``judged`` pairs, and ``judged`` beside ``all`` pairs.
        Where the calibration set is empty its shares are NaN, and ``undefined`` says ``no_human_labels`` or
        ``no_verdicts``.

    References
    ----------
    Definitions, section 8.

    Examples
    --------
    >>> pairs = pd.DataFrame({"pair_id": ["p1", "p2"], "domain": ["law", "art"], "question": ["a", "b"]})
    >>> shift = set_shifts(pd.DataFrame({"pair_id": ["p1"]}), pairs)
    >>> shift = shift[(shift["calibration_set"] == "judged") & (shift["kind"] == "slice")]
    >>> shift[["name", "calibration_share", "judged_share", "never_calibrated"]].values.tolist()
    [['art', 0.0, 0.5, True], ['law', 1.0, 0.5, False]]
    """
    judged = pairs[pairs["pair_id"].isin(verdicts["pair_id"])].reset_index(drop=True)
    labelled = judged[human_labels(judged, labels) >= 0].reset_index(drop=True)
    everything = pairs.reset_index(drop=True)
    frames = []
    for names, before, after, reason in (
        (("human_labelled", "judged"), labelled, judged, "no_human_labels"),
        (("judged", "all"), judged, everything, "no_verdicts"),
    ):
        if after.empty:
            continue
        found = calibration_shift(before, after, slice_by)
        if before.empty:
            found[["calibration_share", "difference"]] = np.nan
        found["undefined"] = pd.Series([reason if before.empty else None] * len(found), dtype="str")
        frames.append(found.assign(calibration_set=names[0], judged_set=names[1]))
    frame = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(SHIFT_COLUMNS))
    texts = ("calibration_set", "judged_set", "kind", "name", "undefined")
    kinds = {
        name: "str"
        if name in texts
        else "boolean"
        if name == "never_calibrated"
        else "Int64"
        if name.endswith("_n")
        else "float64"
        for name in SHIFT_COLUMNS
    }
    return frame[list(SHIFT_COLUMNS)].astype(kinds)
