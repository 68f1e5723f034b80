"""D-study: what a design with other numbers of pairs, judges, formats, orders and repetitions would give.

The components of a G-study say how the error of a mean shrinks when it is taken over more levels of each
facet. Every design gets its generalizability coefficient, its standard error and its price, and the
cheapest one that reaches the target is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.metrics.gstudy import FACETS, FORMAT, JUDGE, ORDER, PAIR
from judge_calibration.metrics.reml_balanced import RESIDUAL
from judge_calibration.options.variance import DStudyOptions, OrderAs, VarianceOptions

DESIGN_COLUMNS = ("pairs", "judges", "formats", "orders", "repetitions")
GROUP_COLUMNS = ("source", "temperature", "model", "order_as")


class Precision(NamedTuple):
    """What one design gives.

    Attributes
    ----------
    universe : float
        Variance between pairs that would be left with endless measurement.
    relative_error, absolute_error : float
        Error variance of one pair's mean verdict, without and with the effects that all pairs share.
    coefficient : float
        Generalizability, universe / (universe + relative error), 0 to 1.
    dependability : float
        The same with the absolute error.
    standard_error : float
        Of the mean direction over the design's pairs, in the unit of direction (0 to 1).
    """

    universe: float
    relative_error: float
    absolute_error: float
    coefficient: float
    dependability: float
    standard_error: float


def precision(
    components: Mapping[str, float],
    pairs: int,
    judges: int = 1,
    formats: int = 1,
    orders: int = 2,
    repetitions: int = 1,
    fixed: tuple[str, ...] = (),
) -> Precision:
    """Return the precision of a design.

    Parameters
    ----------
    components : mapping of str to float
        Variances by name (``pair``, ``pair:judge``, ..., ``residual``); absent terms count as zero.
    pairs, judges, formats, orders, repetitions : int
        Levels of the design.
    fixed : tuple of str
        Facets whose levels in the design are all there are, e.g. ``("order",)`` with both orders. What
        varies with them and the pair is then part of what is measured; what varies with them alone is no
        error.

    Returns
    -------
    Precision
        The coefficients are NaN where nothing varies.

    References
    ----------
    Brennan, Generalizability Theory (2001), chapters 4 and 5; definitions, section 3.

    Examples
    --------
    sigma^2_p = .10, pj = .04, residual = .08; two judges and two repetitions, one format, both orders: error
    .04/2 + .08/(2 x 2 x 2) = .03, coefficient .10/.13 = .7692; standard error over 50 pairs
    sqrt(.13/50) = .0510.

    >>> result = precision({"pair": 0.10, "pair:judge": 0.04, "residual": 0.08}, 50, judges=2, repetitions=2)
    >>> round(result.coefficient, 4), round(result.standard_error, 4)
    (0.7692, 0.051)
    """
    size = {JUDGE: judges, FORMAT: formats, ORDER: orders}
    universe = relative = shared = 0.0
    for name, variance in components.items():
        if name == RESIDUAL:
            relative += variance / (judges * formats * orders * repetitions)
            continue
        facets = name.split(":")
        others = [facet for facet in facets if facet != PAIR]
        value = variance / float(np.prod([size[facet] for facet in others]))
        if PAIR in facets:
            if all(facet in fixed for facet in others):
                universe += value
            else:
                relative += value
        elif not all(facet in fixed for facet in others):
            shared += value
    absolute = relative + shared
    nothing = universe + absolute <= 0
    return Precision(
        universe,
        relative,
        absolute,
        float("nan") if universe + relative <= 0 else universe / (universe + relative),
        float("nan") if nothing else universe / (universe + absolute),
        float(np.sqrt((universe + relative) / pairs + shared)),
    )


def d_study(
    components: Mapping[str, float],
    options: DStudyOptions | None = None,
    order_as: OrderAs = "random",
    single: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Return every design of the options with its precision and price, cheapest first.

    Parameters
    ----------
    components : mapping of str to float
        Variances by name.
    options : DStudyOptions, optional
    order_as : {"random", "fixed"}
        With ``fixed``, a design with both orders measures order out; a design with one order still has it as
        an error, since the other order exists.
    single : tuple of str
        Facets with one level in the data: nothing is known of more levels, so designs with more are
        undefined, ``one_level_<facet>``.

    Returns
    -------
    pandas.DataFrame
        The design's columns, calls, price, coefficient, dependability, standard_error, reaches (the target
        or both targets), cheapest (one row at most) and undefined.

    Examples
    --------
    >>> options = DStudyOptions(pairs=(50,), judges=(1,), formats=(1,), orders=(2,), repetitions=(1, 2, 4))
    >>> table = d_study({"pair": 0.1, "residual": 0.1}, options)
    >>> table.loc[table["cheapest"], ["repetitions", "coefficient", "price"]].values.tolist()
    [[2.0, 0.8, 200.0]]
    """
    chosen = options or DStudyOptions()
    rows = []
    levels = product(chosen.pairs, chosen.judges, chosen.formats, chosen.orders, chosen.repetitions)
    for n_pairs, judges, formats, orders, repetitions in levels:
        more = {JUDGE: judges, FORMAT: formats, ORDER: orders}
        unknown = [facet for facet in single if more.get(facet, 1) > 1]
        fixed = (ORDER,) if order_as == "fixed" and orders == 2 else ()
        # A facet with one level in the data is measured at that level, and says nothing of others.
        found = precision(
            components,
            n_pairs,
            judges,
            formats,
            orders,
            repetitions,
            (*fixed, *(f for f in single if f != PAIR)),
        )
        calls = n_pairs * judges * formats * orders * repetitions
        rows.append(
            {
                "pairs": n_pairs,
                "judges": judges,
                "formats": formats,
                "orders": orders,
                "repetitions": repetitions,
                "calls": calls,
                "price": calls * chosen.price_per_call + n_pairs * chosen.price_per_pair,
                "coefficient": np.nan if unknown else found.coefficient,
                "dependability": np.nan if unknown else found.dependability,
                "standard_error": np.nan if unknown else found.standard_error,
                "undefined": f"one_level_{unknown[0]}" if unknown else None,
            }
        )
    table = pd.DataFrame(rows)
    reaches = pd.Series(table["undefined"].isna())
    if chosen.target_coefficient is not None:
        # A hair's breadth, so that a design that reaches the target exactly is not lost to rounding.
        reaches &= table["coefficient"] >= chosen.target_coefficient - 1e-12
    if chosen.target_standard_error is not None:
        reaches &= table["standard_error"] <= chosen.target_standard_error + 1e-12
    table["reaches"] = reaches
    table = table.sort_values(["price", "calls", *DESIGN_COLUMNS], kind="stable", ignore_index=True)
    table["cheapest"] = False
    if table["reaches"].any():
        table.loc[table["reaches"].to_numpy().argmax(), "cheapest"] = True
    return table


def d_study_table(components: pd.DataFrame, options: VarianceOptions | None = None) -> pd.DataFrame:
    """Return the designs worth considering for every decomposition of a G-study.

    Parameters
    ----------
    components : pandas.DataFrame
        ``components`` of :func:`judge_calibration.metrics.gstudy.gstudy`.
    options : VarianceOptions, optional

    Returns
    -------
    pandas.DataFrame
        Source, temperature, model, order_as, and the columns of :func:`d_study`; only designs that no other
        one beats in price, coefficient and standard error together. A decomposition without components, or
        whose designs all miss the target, has one row with the reason.
    """
    chosen = options or VarianceOptions()
    parts = []
    for key, group in components.groupby(list(GROUP_COLUMNS), dropna=False, sort=False):
        about = dict(zip(GROUP_COLUMNS, key, strict=True))
        known = group[group["undefined"].isna()]
        if known.empty:
            reasons = group.loc[group["undefined"] != "one_level", "undefined"]
            reason = str(reasons.iloc[0]) if len(reasons) else "no_components"
            parts.append(pd.DataFrame([{**about, "undefined": reason}]))
            continue
        variances = {str(n): float(v) for n, v in zip(known["component"], known["variance"], strict=True)}
        single = tuple(facet for facet in FACETS if facet not in variances and facet != PAIR)
        table = d_study(variances, chosen.d_study, str(about["order_as"]), single)  # type: ignore[arg-type]
        defined = table[table["undefined"].isna()]
        kept = defined[_not_beaten(defined) | defined["cheapest"]]
        if not defined["reaches"].any():
            kept = pd.concat([kept, pd.DataFrame([{"undefined": "no_design_reaches_the_target"}])])
        parts.append(kept.assign(**about))
    columns = [
        *GROUP_COLUMNS,
        *DESIGN_COLUMNS,
        "calls",
        "price",
        "coefficient",
        "dependability",
        "standard_error",
        "reaches",
        "cheapest",
        "undefined",
    ]
    if not parts:
        return _typed(pd.DataFrame(columns=columns))
    return _typed(pd.concat(parts, ignore_index=True).reindex(columns=columns))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = dict.fromkeys((*DESIGN_COLUMNS, "calls"), "Int64")
    kinds |= dict.fromkeys(("reaches", "cheapest"), "boolean")
    kinds |= dict.fromkeys(("source", "model", "order_as", "undefined"), "str")
    return frame.astype({name: kinds.get(name, "float64") for name in frame.columns})


def _not_beaten(table: pd.DataFrame) -> np.ndarray:
    """Tell which designs no cheaper or equally dear one equals or beats in both precisions."""
    coefficient = table["coefficient"].fillna(-np.inf).to_numpy()
    error = table["standard_error"].to_numpy()
    price = table["price"].to_numpy()
    kept = np.ones(len(table), dtype=bool)
    for i in range(len(table)):
        as_good = (price <= price[i]) & (coefficient >= coefficient[i]) & (error <= error[i])
        better = as_good & ((price < price[i]) | (coefficient > coefficient[i]) | (error < error[i]))
        # Of equal designs the first is shown.
        same = as_good & ~better & (np.arange(len(table)) < i)
        kept[i] = not better.any() and not same.any()
    return kept
