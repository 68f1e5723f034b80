"""Fixed-effects analysis of variance of T over judge, format and data set.

One value a cell, pairwise interactions, and the three-way interaction as residual. Where verdicts are at
hand the pairs are resampled and the whole table is computed again, so that every share has an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration.errors import Problem, TableError
from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.estimation import (
    cells_of,
    resampled_statistics,
    source_groups,
    sum_groups,
)
from judge_calibration.metrics.judgments import encode
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.trust_statistics import METRICS, statistics
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.metrics.units import FACTS
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.options.variance import VarianceOptions

RESIDUAL = "residual"
TOTAL = "total"

ANOVA_COLUMNS = (
    "temperature",
    "term",
    "df",
    "sum_of_squares",
    "mean_square",
    "F",
    "p_value",
    "eta2",
    "eta2_low",
    "eta2_high",
    "omega2",
    "omega2_low",
    "omega2_high",
    "n_cells",
    "resamples",
    "undefined",
)


def anova(cells: pd.DataFrame, factors: Sequence[str], value: str) -> pd.DataFrame:
    """Return the analysis of variance of a complete table with one value a cell.

    Parameters
    ----------
    cells : pandas.DataFrame
        One row a combination of the factors' levels.
    factors : sequence of str
        Two or three columns; one with a single level is left out with the reason ``one_level``.
    value : str
        The column to analyse, in any unit.

    Returns
    -------
    pandas.DataFrame
        One row a term (a factor, ``a:b``, ``residual``, ``total``) with df, sum_of_squares, mean_square, F,
        p_value, eta2 (share of the total sum of squares, 0 to 1), omega2 and ``undefined``. omega2 is
        (SS - df MS_residual) / (SS_total + MS_residual): the share without what chance alone adds; it can be
        negative and is not cut at 0.

    Raises
    ------
    TableError
        If a combination is missing, twice, or without a value.

    Notes
    -----
    The highest interaction is the residual. F tests a term against it, which takes the true highest
    interaction to be zero; with one value a cell nothing else can be tested.

    References
    ----------
    Definitions, section 3; "All Verdicts are Not Equal" (arXiv 2610.12083), appendix C.1.

    Examples
    --------
    Rows 1, 3 / 2, 8: grand mean 3.5, row means 2 and 5, column means 1.5 and 5.5. SS_row = 2 (1.5^2) 2 = 9,
    SS_column = 2 (2^2) 2 = 16, residuals 1 in size: SS 4, total 29. omega^2 of column:
    (16 - 4) / (29 + 4) = .3636.

    >>> table = pd.DataFrame({"judge": list("xxyy"), "format": list("uvuv"), "T": [1.0, 3.0, 2.0, 8.0]})
    >>> anova(table, ["judge", "format"], "T")[["term", "sum_of_squares", "F", "eta2", "omega2"]].round(4)
           term  sum_of_squares     F    eta2  omega2
    0     judge             9.0  2.25  0.3103  0.1515
    1    format            16.0  4.00  0.5517  0.3636
    2  residual             4.0   NaN  0.1379     NaN
    3     total            29.0   NaN  1.0000     NaN
    """
    levels, array = _complete_table(cells, factors, value)
    return _table(array[None], levels)


def _complete_table(
    cells: pd.DataFrame, factors: Sequence[str], value: str
) -> tuple[dict[str, list[str]], Floats]:
    """Return the levels of each factor and the values as an array with one axis a factor."""
    codes, levels = [], {}
    for factor in factors:
        code, names = pd.factorize(cells[factor], sort=True)
        codes.append(code)
        levels[factor] = [str(name) for name in names]
    shape = [len(names) for names in levels.values()]
    where = np.ravel_multi_index(tuple(codes), shape)
    count = np.bincount(where, minlength=int(np.prod(shape)))
    array = np.full(int(np.prod(shape)), np.nan)
    array[where] = cells[value].to_numpy(np.float64)
    problems = []
    for flat in np.flatnonzero((count != 1) | np.isnan(array))[:20]:
        index = np.unravel_index(flat, shape)
        name = ", ".join(f"{f}={levels[f][i]}" for f, i in zip(factors, index, strict=True))
        found = "no row" if count[flat] == 0 else f"{count[flat]} rows" if count[flat] > 1 else "no value"
        problems.append(Problem(name, found, f"one {value}"))
    if problems:
        raise TableError(
            "The analysis of variance needs one value in every combination of its factors.",
            problems,
            "analyse the judges, formats and data sets that were all crossed",
        )
    return levels, array.reshape(shape)


def _decompose(values: Floats, names: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int64], Floats]:
    """Return terms, degrees of freedom, and sums of squares of shape (n_tables, n_terms).

    `values` has a leading axis over tables; the last term is the highest interaction.
    """
    axes = range(1, values.ndim)
    centred = values - values.mean(axis=tuple(axes), keepdims=True)
    effects: dict[tuple[int, ...], Floats] = {}
    terms, degrees, squares = [], [], []
    sizes = values.shape[1:]
    total_cells = int(np.prod(sizes))
    for order in range(1, values.ndim):
        for term in combinations(axes, order):
            others = tuple(axis for axis in axes if axis not in term)
            effect = centred.mean(axis=others, keepdims=True) if others else centred
            for smaller, known in effects.items():
                if set(smaller) < set(term):
                    effect = effect - known
            effects[term] = effect
            multiple = total_cells // int(np.prod([sizes[axis - 1] for axis in term]))
            terms.append(":".join(names[axis - 1] for axis in term))
            degrees.append(int(np.prod([sizes[axis - 1] - 1 for axis in term])))
            squares.append(multiple * (effect**2).sum(axis=tuple(axes)))
    return terms, np.asarray(degrees), np.stack(squares, axis=1)


def _shares(squares: Floats, degrees: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return eta squared and omega squared of every term but the last, for every table."""
    total = squares.sum(axis=1, keepdims=True)
    error = squares[:, -1:] / degrees[-1]
    eta = ratio(squares, np.broadcast_to(total, squares.shape))
    omega = ratio(squares - degrees * error, np.broadcast_to(total + error, squares.shape))
    return eta, omega


def _table(values: Floats, levels: dict[str, list[str]], level: float = 0.95) -> pd.DataFrame:
    """Return the rows for the first table in `values`; the others, if any, are its resamples."""
    kept = [factor for factor, names in levels.items() if len(names) > 1]
    dropped = [factor for factor in levels if factor not in kept]
    squeezed = values.reshape(values.shape[0], *(len(levels[factor]) for factor in kept))
    rows: list[dict[str, object]] = []
    if len(kept) < 2:
        reason = "one_level" if not kept else "no_residual"
        rows = [{"term": factor, "undefined": reason} for factor in kept]
        rows += [{"term": RESIDUAL, "undefined": "no_residual"}, {"term": TOTAL, "undefined": "no_residual"}]
    else:
        rows = _rows(squeezed, kept, level)
    rows += [{"term": factor, "undefined": "one_level"} for factor in dropped]
    frame = pd.DataFrame(rows).reindex(columns=list(ANOVA_COLUMNS))
    frame["n_cells"] = int(values[0].size)
    frame["resamples"] = values.shape[0] - 1
    return _typed(frame)


def _rows(values: Floats, names: Sequence[str], level: float) -> list[dict[str, object]]:
    from scipy.special import fdtrc

    terms, degrees, squares = _decompose(values, names)
    eta, omega = _shares(squares, degrees)
    total = float(squares[0].sum())
    error = float(squares[0, -1] / degrees[-1])
    tails = [(1 - level) / 2, (1 + level) / 2]
    rows: list[dict[str, object]] = []
    for k, term in enumerate(terms):
        last = k == len(terms) - 1
        mean_square = float(squares[0, k] / degrees[k])
        row: dict[str, object] = {
            "term": RESIDUAL if last else term,
            "df": int(degrees[k]),
            "sum_of_squares": float(squares[0, k]),
            "mean_square": mean_square,
            "eta2": float(eta[0, k]),
        }
        if total <= 0:
            row["undefined"] = "no_variance"
        elif not last:
            row["omega2"] = float(omega[0, k])
            if error > 0:
                row["F"] = mean_square / error
                row["p_value"] = float(fdtrc(degrees[k], degrees[-1], mean_square / error))
            else:
                row["undefined"] = "residual_is_zero"
        if len(values) > 1 and total > 0:
            usable = ~np.isnan(eta[1:, k])
            row["eta2_low"], row["eta2_high"] = np.quantile(eta[1:, k][usable], tails)
            if not last:
                row["omega2_low"], row["omega2_high"] = np.quantile(omega[1:, k][usable], tails)
        rows.append(row)
    share = 1.0 if total > 0 else np.nan
    rows.append({"term": TOTAL, "df": int(degrees.sum()), "sum_of_squares": total, "eta2": share})
    return rows


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    kinds = {"term": "str", "undefined": "str", "df": "Int64", "n_cells": "Int64", "resamples": "Int64"}
    return frame.astype({column: kinds.get(column, "float64") for column in frame.columns})


def anova_table(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    reporting: ReportingOptions | None = None,
    variance: VarianceOptions | None = None,
) -> pd.DataFrame:
    """Return the analysis of variance of T_product over judge x format x source, with intervals.

    Parameters
    ----------
    verdicts, pairs : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`; base_id names the clusters that are resampled.
    reporting : ReportingOptions, optional
        Reduction of verdicts.
    variance : VarianceOptions, optional
        ``resamples``, ``seed`` and ``level``.

    Returns
    -------
    pandas.DataFrame
        Columns `ANOVA_COLUMNS`, one table a temperature. A judge that lacks a format or a source leaves
        the design incomplete, and a cell may have no T (one order, one repetition, no decisive reference):
        then there is one row with the reason ``incomplete_cells`` or ``T_undefined``.

    Notes
    -----
    Sources are resampled independently, clusters of pairs with all their verdicts. Resampling adds noise
    to every cell, so the intervals of eta^2 lie a little high for small terms; omega^2 is corrected for
    what the residual shows of it.

    References
    ----------
    Definitions, section 3.
    """
    chosen, settings = reporting or ReportingOptions(), variance or VarianceOptions()
    intervals = chosen.intervals.model_copy(update={"resamples": settings.resamples, "seed": settings.seed})
    trust = chosen.trust.model_copy(update={"pool_sources": False})
    chosen = chosen.model_copy(update={"intervals": intervals, "trust": trust})
    judgments = encode(verdicts, pairs)
    _, rows = rows_of_view(judgments, "strict", chosen)
    t_product = METRICS.index("T_product")
    formats = judgments.cells["protocol"]
    if len(judgments.cells["constraint"].unique()) > 1:
        formats = formats + "|" + judgments.cells["constraint"].fillna("none")
    values: list[dict[str, object]] = []
    groups = []
    for number, group in enumerate(source_groups(judgments, chosen, ())):
        cells = cells_of(judgments, group)
        sums = sum_groups(rows, group, group.slicings[0].codes, 0, cells, FACTS.index("kept"))
        # Each source has its own stream, so that sources with as many clusters are not resampled alike.
        resamples = Resamples(group.n_clusters, settings.resamples, settings.seed + number)
        groups.append((sums.by_cluster, resamples))
        point = statistics(sums.by_cluster.sum(axis=1).T)[t_product]
        for i, cell in enumerate(cells):
            about = judgments.cells.iloc[cell]
            values.append(
                {
                    "judge": str(about["judge_id"]),
                    "format": formats.iloc[cell],
                    "dataset": group.name,
                    "temperature": about["temperature"],
                    "instrument": about["instrument_id"],
                    "T": point[i],
                    "_group": number,
                    "_cell": i,
                }
            )
    frame = pd.DataFrame(values)
    if frame.empty:
        return _typed(pd.DataFrame(columns=list(ANOVA_COLUMNS)))
    found = []
    for temperature, part in frame.groupby("temperature", dropna=False, sort=True):
        found.append(_one_temperature(part, groups, settings.level).assign(temperature=temperature))
    return _typed(pd.concat(found, ignore_index=True)[list(ANOVA_COLUMNS)])


def _resampled(part: pd.DataFrame, groups: list[tuple[Floats, Resamples]]) -> Floats:
    """Return T_product of the cells in `part` in every resample, shape (resamples, n_cells)."""
    columns: list[Floats] = [np.zeros(0)] * len(part)
    rows = part[["_group", "_cell"]].to_numpy(np.int64)
    for number, (by_cluster, resamples) in enumerate(groups):
        mine = np.flatnonzero(rows[:, 0] == number)
        if len(mine):
            again = resampled_statistics(by_cluster[rows[mine, 1]], resamples)[METRICS.index("T_product")]
            for k, at in enumerate(mine):
                columns[at] = again[k]
    return np.stack(columns, axis=1)


def _one_temperature(
    part: pd.DataFrame, groups: list[tuple[Floats, Resamples]], level: float
) -> pd.DataFrame:
    """Return the table of one temperature; a reason if its cells are incomplete."""
    factors = ["judge", "format", "dataset"]
    # Two instruments of one judge are two judges here.
    several = part.groupby(factors)["instrument"].transform("nunique") > 1
    if several.any():
        part = part.assign(judge=part["judge"] + "|" + part["instrument"].str[:12])
    sizes = [part[factor].nunique() for factor in factors]
    reason = None
    if len(part) != int(np.prod(sizes)):
        reason = "incomplete_cells"
    elif part["T"].isna().any():
        reason = "T_undefined"
    if reason is not None:
        frame = pd.DataFrame([{"term": TOTAL, "undefined": reason, "n_cells": len(part), "resamples": 0}])
        return _typed(frame.reindex(columns=list(ANOVA_COLUMNS)))
    part = part.sort_values(factors, kind="stable")
    levels = {factor: sorted(part[factor].unique()) for factor in factors}
    stacked = np.vstack([part["T"].to_numpy(np.float64)[None], _resampled(part, groups)])
    return _table(stacked.reshape(-1, *sizes), levels, level)
