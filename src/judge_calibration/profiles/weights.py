"""What a judge rewards: logistic weights of its own verdicts on its own stable attribute directions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.logistic import fit_logistic
from judge_calibration.profiles.storage import unpack_stable

PROFILE_COLUMNS = (
    *("judge_id", "attribute", "resolution", "weight", "weight_se", "intercept", "n_verdicts", "undefined"),
)


class WeightProfile(NamedTuple):
    """Coefficients of one judge's L2 logistic regression; `undefined` names why there are none.

    `errors` are the coefficients' approximate standard errors (of the Laplace posterior under the penalty).
    """

    coefficients: np.ndarray
    errors: np.ndarray
    intercept: float
    n: int
    undefined: str | None


def fit_weights(
    stable: np.ndarray, verdicts: np.ndarray, c: float = 1.0, intercept: bool = True
) -> WeightProfile:
    """Fit one judge's weight profile (JudgeProfile, appendix on priority profiles).

    Parameters
    ----------
    stable : numpy.ndarray, shape (n_items, n_attributes)
        Stable directions in {-1, 0, +1}.
    verdicts : numpy.ndarray, shape (n_items,)
        +1 for A, -1 for B; 0 (ties, unparsed) are left out.
    c : float
        Inverse of the L2 penalty, as in scikit-learn; the paper has 1.
    intercept : bool
        Whether an unpenalised intercept is fitted: it takes up a preference for A as such.

    Returns
    -------
    WeightProfile
        Coefficients of shape (n_attributes,), all NaN with the reason ``no_definite_verdict``,
        ``one_class_only`` or ``no_stable_direction`` where they are undefined.

    Examples
    --------
    >>> s = np.array([[1], [1], [-1], [-1]]); v = np.array([1, 1, -1, -1])
    >>> bool(fit_weights(s, v).coefficients[0] > 0)
    True
    """
    definite = verdicts != 0
    x, y = stable[definite].astype(float), verdicts[definite]
    reason = None
    if not len(y):
        reason = "no_definite_verdict"
    elif len(np.unique(y)) < 2:
        reason = "one_class_only"
    elif not x.any():
        reason = "no_stable_direction"
    if reason:
        none = np.full(stable.shape[1], np.nan)
        return WeightProfile(none, none, float("nan"), len(y), reason)
    fit = fit_logistic(x, y, c, intercept)
    return WeightProfile(fit.coefficients, np.sqrt(np.diag(fit.covariance)), fit.intercept, len(y), None)


def profiles_table(
    codes: np.ndarray,
    verdicts: np.ndarray,
    judges: tuple[str, ...],
    attributes: tuple[str, ...],
    c: float = 1.0,
    intercept: bool = True,
) -> pd.DataFrame:
    """Perception and weight profile of every judge, in long form.

    Parameters
    ----------
    codes : numpy.ndarray of int8, shape (n_judges, n_items, n_attributes)
        Packed reads.
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
    judges, attributes : tuple of str
    c, intercept : as in :func:`fit_weights`

    Returns
    -------
    pandas.DataFrame
        judge_id, attribute, resolution (share of items with a stable direction, in [0, 1]; NaN without
        items), weight (log-odds for A per unit of direction) and weight_se (NaN with a reason), intercept,
        n_verdicts, undefined.

    Examples
    --------
    >>> codes = np.array([[[8], [0]]], dtype=np.int8)
    >>> profiles_table(codes, np.array([[1, -1]]), ("j",), ("depth",))["resolution"].tolist()
    [1.0]
    """
    frames = []
    for j, judge in enumerate(judges):
        stable = unpack_stable(codes[j])
        profile = fit_weights(stable, verdicts[j], c, intercept)
        frames.append(
            pd.DataFrame(
                {
                    "judge_id": judge,
                    "attribute": list(attributes),
                    "resolution": (stable != 0).mean(axis=0) if len(stable) else np.nan,
                    "weight": profile.coefficients,
                    "weight_se": profile.errors,
                    "intercept": profile.intercept,
                    "n_verdicts": profile.n,
                    "undefined": profile.undefined,
                }
            )
        )
    if not frames:
        return pd.DataFrame(columns=list(PROFILE_COLUMNS))
    return pd.concat(frames, ignore_index=True).astype({"undefined": "str"})
