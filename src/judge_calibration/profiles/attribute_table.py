"""Each attribute's detection rate and order consistency, and the core set that both medians select."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from judge_calibration.profiles.cube import ReadCube

COLUMNS = ("attribute", "detection", "order_consistency", "n_judges", "core", "undefined")


def attribute_table(cube: ReadCube, unit: Literal["reads", "cells"] = "reads") -> pd.DataFrame:
    """Detection and order consistency of each attribute, as means over judges.

    Parameters
    ----------
    cube : ReadCube
        The panel's reads.
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
    >>> ab = np.array([[[1, 0]]], dtype=np.int8); ba = np.array([[[1, 1]]], dtype=np.int8)
    >>> attribute_table(ReadCube(("j",), ("p",), ("x", "y"), ab, ba))["detection"].tolist()
    [1.0, 0.5]
    """
    if not cube.first.size:
        return pd.DataFrame(columns=list(COLUMNS))
    resolved_1, resolved_2 = cube.first != 0, cube.second != 0
    if unit == "reads":
        detection = ((resolved_1.mean(axis=1) + resolved_2.mean(axis=1)) / 2).mean(axis=0)
    else:
        detection = (cube.stable != 0).mean(axis=1).mean(axis=0)
    both = resolved_1 & resolved_2
    n_both = both.sum(axis=1)
    n_equal = (both & (cube.first == cube.second)).sum(axis=1)
    per_judge = np.divide(n_equal, n_both, out=np.full(n_both.shape, np.nan), where=n_both > 0)
    defined = ~np.isnan(per_judge)
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
            "attribute": cube.attributes,
            "detection": detection,
            "order_consistency": consistency,
            "n_judges": n_judges,
            "core": core,
            "undefined": [None if n else "never_resolved_in_both_orders" for n in n_judges],
        }
    )
