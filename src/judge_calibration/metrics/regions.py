"""Failure regions: where a judge stands in the plane of consistency and order flips."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.metrics.share_rows import CELL_KEYS
from judge_calibration.options.reporting import RegionOptions

REGIONS = ("trustworthy", "noisy_but_fair", "confidently_biased", "chaos")

REMEDY_OF = {
    "trustworthy": "none",
    "noisy_but_fair": "repeat_and_vote",
    "confidently_biased": "average_both_orders",
    "chaos": "average_both_orders_and_vote",
}
"""What each region asks for."""


def region_of(consistency: float, flip_rate: float, options: RegionOptions | None = None) -> str:
    """Name the region of one judge; empty if C or phi is undefined.

    Parameters
    ----------
    consistency, flip_rate : float
        C and phi, shares from 0 to 1.
    options : RegionOptions, optional
        Thresholds; both are inclusive on the good side.

    References
    ----------
    Definitions, section 2, after "All Verdicts are Not Equal" (arXiv 2610.12083), section 5.5; the paper
    prints no thresholds.

    Examples
    --------
    >>> region_of(1.0, 0.98), region_of(0.8, 0.05)
    ('confidently_biased', 'noisy_but_fair')
    """
    chosen = options or RegionOptions()
    if np.isnan(consistency) or np.isnan(flip_rate):
        return ""
    steady = consistency >= chosen.min_consistency
    fair = flip_rate <= chosen.max_flip_rate
    if fair:
        return "trustworthy" if steady else "noisy_but_fair"
    return "confidently_biased" if steady else "chaos"


def region_table(trust: pd.DataFrame, options: RegionOptions | None = None) -> pd.DataFrame:
    """Return the region of every cell, and whether the intervals leave room for another one.

    Parameters
    ----------
    trust : pandas.DataFrame
        The trust table.
    options : RegionOptions, optional
        Thresholds.

    Returns
    -------
    pandas.DataFrame
        Cell keys, C and phi with intervals, ``region`` (null if undefined), ``sure`` (true if both
        intervals lie on one side of their thresholds; false also where there is none), ``remedy`` and
        ``reason``.
    """
    chosen = options or RegionOptions()
    whole = trust[(trust["slice_by"] == "all") & (trust["view"] == "strict")]
    out = whole[[*CELL_KEYS, "C", "C_low", "C_high", "phi", "phi_low", "phi_high"]].reset_index(drop=True)
    names = [region_of(c, phi, chosen) for c, phi in zip(out["C"], out["phi"], strict=True)]
    steady = (out["C_low"] >= chosen.min_consistency) | (out["C_high"] < chosen.min_consistency)
    fair = (out["phi_high"] <= chosen.max_flip_rate) | (out["phi_low"] > chosen.max_flip_rate)
    out["region"] = pd.Series(names, dtype="str").where(pd.Series(names, dtype="str") != "")
    out["sure"] = (steady & fair).astype(bool)
    out["remedy"] = out["region"].map(REMEDY_OF).astype("str")
    out["reason"] = pd.Series(np.where(out["region"].isna(), "C_or_phi_undefined", "")).astype("str")
    return out
