"""Each attribute's detection rate and order consistency, and the core set that both medians select."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from judge_calibration.profiles import code_counts as cc

COLUMNS = ("attribute", "detection", "order_consistency", "n_judges", "core", "undefined")


def attribute_table(
    counts: np.ndarray, attributes: tuple[str, ...], n_items: int, unit: Literal["reads", "cells"] = "reads"
) -> pd.DataFrame:
    """Detection and order consistency of each attribute, as means over judges.

    Parameters
    ----------
    counts : numpy.ndarray of int, shape (n_judges, n_attributes, 9)
        From :func:`judge_calibration.profiles.code_counts.code_counts`.
    attributes : tuple of str
    n_items : int
    unit : {"reads", "cells"}
        What detection counts: single reads that resolve, or cells whose direction is stable. The paper is
        ambiguous; ``reads`` is the default.

    Returns
    -------
    pandas.DataFrame
        A row an attribute: detection in [0, 1], order_consistency in [0, 1] (NaN, reason
        ``never_resolved_in_both_orders``, where no judge resolves both orders of any cell; a judge without
        such a cell is left out of the mean and n_judges says how many were in), core (both values at least
        their medians over attributes, inclusive; an undefined attribute is never core).

    Examples
    --------
    >>> counts = cc.code_counts(np.array([[[8, 5]]], dtype=np.int8))
    >>> attribute_table(counts, ("x", "y"), 1)["detection"].tolist()
    [1.0, 0.5]
    """
    if not counts.size or not n_items:
        return pd.DataFrame(columns=list(COLUMNS))
    found = cc.resolved_reads(counts) / 2 if unit == "reads" else cc.stable_cells(counts)
    detection = (found / n_items).mean(axis=0)
    both = cc.both_resolved(counts)
    per_judge = np.divide(cc.stable_cells(counts), both, out=np.full(both.shape, np.nan), where=both > 0)
    defined = both > 0
    n_judges = defined.sum(axis=0)
    consistency = np.divide(
        np.where(defined, per_judge, 0.0).sum(axis=0),
        n_judges,
        out=np.full(n_judges.shape, np.nan),
        where=n_judges > 0,
    )
    known = consistency[n_judges > 0]
    median = float(np.median(known)) if known.size else np.inf
    core = (
        (n_judges > 0)
        & (np.nan_to_num(consistency, nan=-1.0) >= median)
        & (detection >= np.median(detection))
    )
    return pd.DataFrame(
        {
            "attribute": list(attributes),
            "detection": detection,
            "order_consistency": consistency,
            "n_judges": n_judges,
            "core": core,
            "undefined": [None if n else "never_resolved_in_both_orders" for n in n_judges],
        }
    ).astype({"undefined": "str"})
