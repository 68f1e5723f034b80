"""What the statistics of a SIMULATED panel ought to be, from what was planted in it.

With r the probability that judge j resolves a cell of attribute k, p that a read follows the position and a
that the judge sees the true sign (a fair coin over items): a cell has a stable direction with probability
r (1 - p), whatever its sign, and then shows what the judge saw. So

- coverage of j: mean over k of r (1 - p); the perception profile is r (1 - p) itself;
- detection of k: mean over j of r; order consistency of k: mean over j of 1 - p;
- first-position share of j: p + (1 - p) / 2, or (1 - p) / 2 if it names the second answer, weighted by r;
- agreement of j and l over all items: a_j a_l + (1 - a_j)(1 - a_l); joint coverage: the mean over k of the
  product of both stable probabilities.

All cells are drawn apart, so intervals for sums over cells hold; both orders of one cell are not.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.profiles.item_tables import judge_pairs

COLUMNS = (
    *("statistic", "of", "planted", "found", "n", "inside", "share_inside", "largest_difference"),
    *("low", "high", "note", "simulated"),
)
_Z = 1.959963984540054


def planted_values(planted: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return what was planted as arrays, and the values that follow from it.

    Parameters
    ----------
    planted : pandas.DataFrame
        Rows judge x attribute (judges slowest): judge_id, attribute, resolution, position, accuracy,
        picks_second, weight.

    Returns
    -------
    dict of str to numpy.ndarray
        coverage, first_share, order_consistency (by judge); detection, attribute_consistency, core (by
        attribute); agreement, joint_coverage (by judge pair); perception, weight (judge x attribute).
    """
    n_judges = planted["judge_id"].nunique()
    square = {
        name: planted[name].to_numpy().reshape(n_judges, -1)
        for name in ("resolution", "position", "accuracy", "picks_second", "weight")
    }
    r, p = square["resolution"].astype(float), square["position"].astype(float)
    stable = r * (1 - p)
    first = np.where(square["picks_second"].astype(bool), (1 - p) / 2, p + (1 - p) / 2)
    a = square["accuracy"][:, 0].astype(float)
    one, two = judge_pairs(n_judges)
    detection, consistency = r.mean(axis=0), (1 - p).mean(axis=0)
    return {
        "coverage": stable.mean(axis=1),
        "first_share": (r * first).sum(axis=1) / r.sum(axis=1),
        "order_consistency": stable.sum(axis=1) / r.sum(axis=1),
        "detection": detection,
        "attribute_consistency": consistency,
        "core": (detection >= np.median(detection)) & (consistency >= np.median(consistency)),
        "agreement": a[one] * a[two] + (1 - a[one]) * (1 - a[two]),
        "joint_coverage": (stable[one] * stable[two]).mean(axis=1),
        "perception": stable,
        "weight": square["weight"].astype(float),
    }


def share_row(
    statistic: str, of: str, planted: np.ndarray, found: np.ndarray, n: np.ndarray
) -> dict[str, object]:
    """Compare shares of `n` independent cells with their planted probabilities, by 95 % intervals.

    Examples
    --------
    >>> row = share_row("coverage", "judge", np.array([0.5]), np.array([0.51]), np.array([100.0]))
    >>> row["inside"], row["n"]
    (1, 1)
    """
    known = ~np.isnan(found) & (n > 0)
    planted, found, n = planted[known], found[known], n[known]
    # The planted probability's own spread: at 0 or 1 a found share has none.
    half = _Z * np.sqrt(planted * (1 - planted) / n)
    return recovery_row(statistic, of, planted, found, half)


def recovery_row(
    statistic: str, of: str, planted: np.ndarray, found: np.ndarray, half_width: np.ndarray, note: str = ""
) -> dict[str, object]:
    """Return how many planted values lie in the 95 % intervals around the found ones."""
    difference = np.abs(found - planted)
    inside = int((difference <= half_width + 1e-12).sum())
    return {
        "statistic": statistic,
        "of": of,
        "planted": float(planted.mean()) if len(planted) else float("nan"),
        "found": float(found.mean()) if len(found) else float("nan"),
        "n": len(found),
        "inside": inside,
        "share_inside": inside / len(found) if len(found) else float("nan"),
        "largest_difference": float(difference.max()) if len(found) else float("nan"),
        "note": note,
        "simulated": True,
    }
