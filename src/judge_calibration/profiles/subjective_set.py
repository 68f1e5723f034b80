"""Items on which a panel's holistic verdicts are split: the minority share and the SubjectiveSet."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd


def minority_share(verdicts: np.ndarray) -> pd.DataFrame:
    """The share of definite verdicts that go to the less chosen answer, for each item.

    Parameters
    ----------
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 for ties and unparsed.

    Returns
    -------
    pandas.DataFrame
        n_a, n_b, minority_share in [0, 0.5]; NaN, reason ``no_definite_verdict``, where all are 0.

    Examples
    --------
    >>> round(float(minority_share(np.array([[1], [1], [-1]], dtype=np.int8))["minority_share"][0]), 4)
    0.3333
    """
    n_a = (verdicts == 1).sum(axis=0)
    n_b = (verdicts == -1).sum(axis=0)
    total = n_a + n_b
    share = np.divide(np.minimum(n_a, n_b), total, out=np.full(total.shape, np.nan), where=total > 0)
    reason = [None if n else "no_definite_verdict" for n in total]
    return pd.DataFrame({"n_a": n_a, "n_b": n_b, "minority_share": share, "undefined": reason})


def select_subjective(shares: pd.DataFrame, threshold: Fraction = Fraction(1, 3)) -> np.ndarray:
    """Mark the items whose minority share is at least the threshold, compared in integers.

    The paper's number is lost in the stored text: 1/3 is inferred (.30 is the other candidate).

    Examples
    --------
    >>> shares = minority_share(np.array([[1], [1], [-1]], dtype=np.int8))
    >>> select_subjective(shares).tolist()
    [True]
    """
    n_a, n_b = shares["n_a"].to_numpy(), shares["n_b"].to_numpy()
    total = n_a + n_b
    return (total > 0) & (np.minimum(n_a, n_b) * threshold.denominator >= threshold.numerator * total)
