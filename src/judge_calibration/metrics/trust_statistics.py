"""Every statistic of the trust table as a function of sums over pairs.

The same function serves the data, their resamples and the data less one cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.units import COLUMNS

METRICS = (
    "C",
    "C2",
    "phi",
    "order_excess",
    "A",
    "A_dec",
    "q",
    "A_max",
    "gap",
    "PR",
    "T_product",
    "T_direct",
    "T_pair",
    "first_share",
)
"""The statistics, in the order of the trust table's columns."""

PROPORTIONS = tuple(name for name in METRICS if name != "order_excess")
"""Those that lie between 0 and 1, and get Wilson's interval at the ends."""

_K = {name: k for k, name in enumerate(COLUMNS)}


class Fraction(NamedTuple):
    """A statistic as numerator and denominator."""

    numerator: Floats
    denominator: Floats


def fractions(totals: npt.ArrayLike) -> dict[str, Fraction]:
    """Return numerator and denominator of every statistic that is one ratio of sums.

    Parameters
    ----------
    totals : array-like of shape (len(COLUMNS), ...)
        Sums over pairs.

    Returns
    -------
    dict of str to Fraction
        T_product, a product of two ratios, is not among them; see :func:`statistics`.
    """
    t = np.asarray(totals, dtype=np.float64)

    def of(name: str) -> Floats:
        return t[_K[name]]

    flips = of("decisive") - of("same")
    return {
        "C": Fraction(of("C_n"), of("C_d")),
        "C2": Fraction(of("C2_n"), of("C_d")),
        "phi": Fraction(of("phi_n"), of("phi_d")),
        "order_excess": Fraction(of("excess_n"), of("excess_d")),
        "A": Fraction(of("A_n"), of("A_d")),
        "A_dec": Fraction(of("same_right"), of("same")),
        "q": Fraction(of("flip_right"), 2 * flips),
        "A_max": Fraction(of("same") + of("flip_right") / 2, of("decisive")),
        "gap": Fraction(of("same") - of("same_right"), of("decisive")),
        "PR": Fraction(of("same_right"), of("decisive")),
        "T_direct": Fraction(of("T_direct_n"), 2 * of("T_d")),
        "T_pair": Fraction(of("T_pair_n"), of("T_d")),
        "first_share": Fraction(of("first_n"), of("first_d")),
    }


def statistics(totals: npt.ArrayLike, names: Sequence[str] = METRICS) -> Floats:
    """Return statistics from sums over pairs.

    Parameters
    ----------
    totals : array-like of shape (len(COLUMNS), ...)
        Sums of the contributions made by :func:`judge_calibration.metrics.units.pair_rows`.
    names : sequence of str
        Which of METRICS, in this order; all by default.

    Returns
    -------
    numpy.ndarray of float64, shape (len(names), ...)
        NaN where undefined.

    Notes
    -----
    T_product is C (A - phi q) on the pairs that every T is defined on. There A - phi q = (1 - phi) A_dec
    is the share of pairs that are right in both orders, so the product is C times that share.
    """
    t = np.asarray(totals, dtype=np.float64)
    parts = fractions(t)
    out = np.empty((len(names), *t.shape[1:]))
    for k, name in enumerate(names):
        if name == "T_product":
            pairs = t[_K["T_d"]]
            out[k] = ratio(t[_K["T_c"]], 2 * pairs) * ratio(t[_K["T_right"]], pairs)
        else:
            out[k] = ratio(*parts[name])
    return out


def denominators(sums: npt.ArrayLike) -> Floats:
    """Return the denominator of every statistic, shape (len(METRICS), ...); that of T_product in pairs."""
    t = np.asarray(sums, dtype=np.float64)
    parts = fractions(t)
    return np.stack([t[_K["T_d"]] if name == "T_product" else parts[name].denominator for name in METRICS])
