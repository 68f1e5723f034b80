"""G-study of verdict direction: how much of its variance belongs to pair, judge, format and order.

A verdict's direction is 1 for A, 0 for B and (by default) 1/2 for TIE, by candidate identity. It is
decomposed over pair (p) x judge (j) x format (f) x order (o), repetitions nested, by REML: exactly from sums
of squares where the design is balanced (:mod:`.reml_balanced`), else by the general solver
(:mod:`.reml_general`), which uses every verdict that is there.

By candidate identity a judge that favours what is shown first makes the order component, judges that do so
to different degrees the judge:order component, and pairs that are harder to tell apart pair:order.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judge_calibration.errors import Problem, RemlError, TableError, VarianceModelError
from judge_calibration.metrics.judgments import identity_pairs
from judge_calibration.metrics.reml_balanced import (
    RESIDUAL,
    Strata,
    Term,
    fit_balanced,
    name_of,
    pivotal_draws,
    pooled,
    strata_of,
    subsets,
)
from judge_calibration.metrics.reml_general import CellTable, cell_table, fit_general, upper_limit
from judge_calibration.metrics.reml_scoring import Array, RemlFit
from judge_calibration.options.variance import GModel, OrderAs, VarianceOptions
from judge_calibration.schemas import ORDERS, VERDICTS

PAIR, JUDGE, FORMAT, ORDER = "pair", "judge", "format", "order"
FACETS = (PAIR, JUDGE, FORMAT, ORDER)

MAIN_TERMS: tuple[Term, ...] = (
    (PAIR,),
    (JUDGE,),
    (FORMAT,),
    (ORDER,),
    (PAIR, JUDGE),
    (PAIR, FORMAT),
    (PAIR, ORDER),
)

NOTE = (
    "Verdicts are binary: this is a linear-probability decomposition of their variance, and its intervals "
    "take the strata to be normal."
)

COMPONENT_COLUMNS = [
    "source",
    "temperature",
    "model",
    "order_as",
    "component",
    "kind",
    "variance",
    "variance_low",
    "variance_high",
    "share",
    "share_low",
    "share_high",
    "at_boundary",
    "n_levels",
    "n_verdicts",
    "n_missing",
    "balanced",
    "solver",
    "interval_method",
    "criterion",
    "undefined",
]
MISSING_COLUMNS = ["source", "temperature", "judge_id", "protocol", "planned", "scored", "share_missing"]

_NEEDED = ("pair_id", "judge_id", "protocol", "order", "repetition", "verdict")
_DIRECTION = {"A": 1.0, "B": 0.0}


class GStudy(NamedTuple):
    """The result of :func:`gstudy`.

    Attributes
    ----------
    components : pandas.DataFrame
        One row a component, for each source, temperature, model and treatment of order; columns
        `COMPONENT_COLUMNS`. ``variance`` is in squared units of direction (0 to 1), ``share`` of the total
        of all components. ``undefined`` is a reason code where there is no number.
    missing : pandas.DataFrame
        Verdicts that the crossed design would have and that are not there, per judge and format. Planned is
        pairs x orders x the largest number of repetitions.
    note : str
        What a reader has to know of the method.
    """

    components: pd.DataFrame
    missing: pd.DataFrame
    note: str


class _Design(NamedTuple):
    """The scored verdicts of one source and temperature, by level numbers."""

    facets: tuple[str, ...]
    sizes: tuple[int, ...]
    table: CellTable
    dropped: tuple[str, ...]  # facets with a single level
    repetitions: int
    n_verdicts: int
    n_missing: int

    @property
    def balanced(self) -> bool:
        counts = self.table.counts
        return bool((counts == counts.flat[0]).all())


def gstudy(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame | None = None,
    options: VarianceOptions | None = None,
) -> GStudy:
    """Decompose the variance of verdict direction.

    Parameters
    ----------
    verdicts : pandas.DataFrame
        Columns pair_id, judge_id, protocol, order, repetition, verdict; and, where there is more than one
        value, constraint (joined to the format) and temperature (decomposed apart).
    pairs : pandas.DataFrame, optional
        Columns pair_id and source. With it each source is decomposed apart, and pairs that show the same
        answer twice, where direction has no meaning, are left out.
    options : VarianceOptions, optional

    Returns
    -------
    GStudy

    Raises
    ------
    TableError
        If a column is missing or one judgment has two rows.

    Notes
    -----
    Facets with one level leave the model (``one_level``). The extended model holds every interaction; the
    highest one only with repetitions, since without them it is the residual. With order fixed its two levels
    are all there are: its variance is the sum of its squared effects over its degrees of freedom, corrected
    for sampling, and interactions with it stay random. An abstention and a failed judgment have no
    direction: they are missing, never imputed. Order as a random facet has one degree of freedom; its
    interval says so.

    References
    ----------
    Definitions, section 3; "All Verdicts are Not Equal" (arXiv 2610.12083), appendix C.2; Brennan,
    Generalizability Theory (2001).

    Examples
    --------
    Two judges on three pairs in both orders; judge y follows the order, judge x the pair.

    >>> rows = [(p, j, o, ("A" if (o == "AB") == (j == "y") else "B") if j == "y" else w)
    ...         for p, w in (("1", "A"), ("2", "B"), ("3", "A")) for j in "xy" for o in ("AB", "BA")]
    >>> frame = pd.DataFrame(rows, columns=["pair_id", "judge_id", "order", "verdict"])
    >>> frame = frame.assign(protocol="direct", repetition=0)
    >>> result = gstudy(frame, options=VarianceOptions(models=("main",), orders=("random",)))
    >>> result.components[["component", "undefined"]].query("undefined.notna()").values.tolist()
    [['format', 'one_level'], ['pair:format', 'one_level']]
    """
    chosen = options or VarianceOptions()
    _check(verdicts)
    rows: list[dict[str, object]] = []
    missing: list[pd.DataFrame] = []
    for source, temperature, part in _groups(verdicts, pairs):
        design, lost = _design(part, chosen)
        base = {"source": source, "temperature": temperature}
        missing.append(lost.assign(**base))
        for model in chosen.models:
            for order_as in chosen.orders:
                for row in _decompose(design, model, order_as, chosen):
                    rows.append({**base, "model": model, "order_as": order_as, **row})
    components = pd.DataFrame(rows, columns=COMPONENT_COLUMNS)
    table = pd.concat(missing) if missing else pd.DataFrame(columns=MISSING_COLUMNS)
    return GStudy(components, table[MISSING_COLUMNS].reset_index(drop=True), NOTE)


def _check(verdicts: pd.DataFrame) -> None:
    """Refuse a table that cannot be read without guessing, with all its problems."""
    problems = [
        Problem(f"verdicts, column {name}", "no such column", "a column")
        for name in _NEEDED
        if name not in verdicts.columns
    ]
    if not problems:
        said = [label for label in verdicts["verdict"].unique() if not pd.isna(label)]
        unknown = sorted(str(label)[:40] for label in said if label not in VERDICTS)
        if unknown:
            problems.append(
                Problem("verdicts, column verdict", ", ".join(unknown[:5]), "one of " + ", ".join(VERDICTS))
            )
        orders = sorted(str(order)[:40] for order in verdicts["order"].unique() if order not in ORDERS)
        if orders:
            problems.append(Problem("verdicts, column order", ", ".join(orders[:5]), "AB or BA"))
        problems += [
            Problem(f"verdicts, column {name}", f"{int(verdicts[name].isna().sum())} nulls", "a value")
            for name in ("pair_id", "judge_id", "protocol", "repetition")
            if verdicts[name].isna().any()
        ]
    if problems:
        raise TableError(
            "The G-study cannot read the verdicts.",
            problems,
            "give the table 'verdicts' as the pipeline judging writes it",
        )


def _groups(
    verdicts: pd.DataFrame, pairs: pd.DataFrame | None
) -> Iterator[tuple[str | None, float, pd.DataFrame]]:
    """Yield source, temperature and the rows that belong to them."""
    source: pd.Series | None = None
    kept = verdicts
    if pairs is not None:
        same = pairs.loc[identity_pairs(pairs), "pair_id"]
        if len(same):
            kept = verdicts[~verdicts["pair_id"].isin(same)]
        source = kept["pair_id"].map(pairs.set_index("pair_id")["source"])
    keys: list[pd.Series] = []
    if source is not None and len(source.unique()) > 1:
        keys.append(source)
    has_temperature = "temperature" in kept.columns
    if has_temperature and len(kept["temperature"].unique()) > 1:
        keys.append(kept["temperature"])
    only_source = None if source is None or source.empty else str(source.iloc[0])
    only_temperature = float(kept["temperature"].iloc[0]) if has_temperature and len(kept) else np.nan
    if not keys:
        if len(kept):
            yield only_source, only_temperature, kept
        return
    for _, index in kept.groupby(keys, dropna=False, sort=True).indices.items():
        part = kept.iloc[index]
        here = only_source if source is None else str(source.iloc[index[0]])
        yield here, float(part["temperature"].iloc[0]) if has_temperature else np.nan, part


def _design(part: pd.DataFrame, options: VarianceOptions) -> tuple[_Design, pd.DataFrame]:
    """Number the levels, score the verdicts and count what is missing."""
    formats = part["protocol"]
    if "constraint" in part.columns and len(part["constraint"].unique()) > 1:
        formats = formats.str.cat(part["constraint"].fillna("none"), sep="|")
    coded = {}
    names: dict[str, pd.Index] = {}
    for facet, column in zip(
        FACETS, (part["pair_id"], part["judge_id"], formats, part["order"]), strict=True
    ):
        coded[facet], names[facet] = pd.factorize(column)
    direction, said = pd.factorize(part["verdict"])
    values = dict(_DIRECTION)
    if options.tie == "half":
        values["TIE"] = 0.5
    scores = np.asarray([*(values.get(str(label), np.nan) for label in said), np.nan])[direction]
    scored = ~np.isnan(scores)

    sizes = tuple(len(names[facet]) for facet in FACETS)
    repetition = part["repetition"].to_numpy(dtype=np.int64)
    levels = np.ravel_multi_index(tuple(coded[facet] for facet in FACETS), sizes)
    repetitions = int(repetition.max()) + 1
    if repetition.min() < 0 or np.bincount(levels * repetitions + repetition).max() > 1:
        raise TableError(
            "One judgment has two rows.",
            [
                Problem(
                    "verdicts",
                    "the same pair, judge, format, order, temperature and repetition twice",
                    "one row each",
                )
            ],
            "remove the duplicates, or tell two instruments of one judge apart by their judge_id",
        )

    planned = sizes[0] * sizes[3] * repetitions
    cell = coded[JUDGE] * sizes[2] + coded[FORMAT]
    got = np.bincount(cell[scored], minlength=sizes[1] * sizes[2])
    lost = pd.DataFrame(
        {
            "judge_id": np.repeat(np.asarray(names[JUDGE], dtype=object), sizes[2]),
            "protocol": np.tile(np.asarray(names[FORMAT], dtype=object), sizes[1]),
            "planned": planned,
            "scored": got,
            "share_missing": 1 - got / planned,
        }
    )
    # Levels without a single scored verdict are no levels of the design that is fitted.
    kept, kept_sizes, dropped = [], [], []
    for facet in FACETS:
        code = coded[facet][scored]
        present = np.bincount(code, minlength=len(names[facet])) > 0
        if present.all():
            level, size = code, len(names[facet])
        else:
            level, size = (np.cumsum(present) - 1)[code], int(present.sum())
        if size > 1:
            kept.append((facet, level))
            kept_sizes.append(size)
        else:
            dropped.append(facet)
    facets = tuple(facet for facet, _ in kept)
    if facets:
        table = cell_table([level for _, level in kept], kept_sizes, scores[scored], facets)
    else:
        table = CellTable((), np.zeros(1, dtype=np.int64), np.zeros(1), 0.0)
    design = _Design(
        facets,
        tuple(kept_sizes),
        table,
        tuple(dropped),
        int(table.counts.max(initial=0)),
        int(scored.sum()),
        planned * sizes[1] * sizes[2] - int(scored.sum()),
    )
    return design, lost


def _terms(design: _Design, model: GModel, order_as: OrderAs) -> tuple[list[Term], list[Term], list[Term]]:
    """Return random, fixed and left-out terms of a model on this design."""
    wanted = list(MAIN_TERMS) if model == "main" else subsets(FACETS)
    left_out = [term for term in wanted if set(term) & set(design.dropped)]
    random = [term for term in wanted if term not in left_out]
    # Without a repetition anywhere the highest interaction is the residual.
    if design.facets and design.repetitions == 1 and design.facets in random:
        random.remove(design.facets)
    fixed: list[Term] = []
    if order_as == "fixed" and (ORDER,) in random:
        random.remove((ORDER,))
        fixed.append((ORDER,))
    return random, fixed, left_out


def _decompose(
    design: _Design, model: GModel, order_as: OrderAs, options: VarianceOptions
) -> Iterator[dict[str, object]]:
    """Yield the rows of one model."""
    random, fixed, left_out = _terms(design, model, order_as)
    about = {
        "n_verdicts": design.n_verdicts,
        "n_missing": design.n_missing,
        "balanced": design.balanced,
    }
    sizes = dict(zip(design.facets, design.sizes, strict=True))
    reason = None
    try:
        if PAIR not in design.facets:
            raise VarianceModelError("Fewer than two pairs have a verdict.")
        fitted = _fit(design, random, fixed, options)
    except VarianceModelError as error:
        reason = "no_variance" if "equal" in error.message else "not_estimable"
        if PAIR not in design.facets:
            reason = "fewer_than_two_pairs"
    except RemlError:
        reason = "not_converged"
    for term in (*fixed, *random):
        yield {
            **about,
            "component": name_of(term),
            "kind": "fixed" if term in fixed else "random",
            "n_levels": int(np.prod([sizes[facet] for facet in term])),
            **(fitted[name_of(term)] if reason is None else {"undefined": reason}),
        }
    yield {
        **about,
        "component": RESIDUAL,
        "kind": "random",
        **(fitted[RESIDUAL] if reason is None else {"undefined": reason}),
    }
    for term in left_out:
        yield {**about, "component": name_of(term), "kind": "random", "undefined": "one_level"}


def _fit(
    design: _Design, random: list[Term], fixed: list[Term], options: VarianceOptions
) -> dict[str, dict[str, object]]:
    rng = np.random.default_rng(options.seed)
    table = design.table
    if design.balanced:
        strata = strata_of(table.means, table.facets, design.repetitions, table.within_squares)
        if sum(strata.squares.values()) + strata.within_squares <= 0:
            raise VarianceModelError("All verdicts are equal: there is no variance to decompose.")
        fit = fit_balanced(strata, random, fixed)
        drawn = pivotal_draws(strata, random, fixed, options.draws, rng)
        values = list(fit.components.values())
        for term in reversed(fixed):
            value, draws = _fixed_variance_balanced(strata, random, fixed, term, fit, options.draws, rng)
            values.insert(0, value)
            drawn = np.column_stack([draws, drawn])
        method = "pivotal"
    else:
        fit = fit_general(table, random, fixed)
        drawn = _satterthwaite_draws(fit, options.draws, rng)
        values = list(fit.components.values())
        if fixed:
            # One fixed term, order, with two levels: effects +a and -a, so 2 a^2 with one degree of freedom.
            effect, variance = fit.fixed_effects[1], fit.fixed_covariance[1, 1]
            values.insert(0, max(0.0, 2 * (float(effect) ** 2 - float(variance))))
            draws = 2 * (effect + np.sqrt(variance) * rng.standard_normal(options.draws)) ** 2
            drawn = np.column_stack([draws, drawn])
        method = "satterthwaite"
    names = [name_of(term) for term in (*fixed, *random)] + [RESIDUAL]
    total = sum(values)
    tails = [(1 - options.level) / 2, (1 + options.level) / 2]
    low, high = np.quantile(drawn, tails, axis=0)
    sums = drawn.sum(axis=1, keepdims=True)
    shares = np.divide(drawn, sums, out=np.zeros_like(drawn), where=sums > 0)
    share_low, share_high = np.quantile(shares, tails, axis=0)
    if not design.balanced:
        rise = NormalDist().inv_cdf((1 + options.level) / 2) ** 2
        for k, term in enumerate(random, start=len(fixed)):
            if _degrees(fit)[k - len(fixed)] < _FEWEST_DEGREES:
                low[k], share_low[k] = 0.0, 0.0
                high[k] = upper_limit(table, random, fixed, fit, term, rise)
                share_high[k] = 1.0 if np.isinf(high[k]) else high[k] / (total - values[k] + high[k])
    return {
        name: {
            "variance": float(values[k]),
            "variance_low": float(low[k]),
            "variance_high": float(high[k]),
            "share": float(values[k] / total),
            "share_low": float(share_low[k]),
            "share_high": float(share_high[k]),
            "at_boundary": values[k] == 0,
            "solver": fit.solver,
            "interval_method": method,
            "criterion": fit.criterion,
        }
        for k, name in enumerate(names)
    }


def _fixed_variance_balanced(
    strata: Strata,
    random: list[Term],
    fixed: list[Term],
    term: Term,
    fit: RemlFit,
    draws: int,
    rng: np.random.Generator,
) -> tuple[float, Array]:
    """Return a fixed term's variance (sum of squared effects over its df) and draws of it."""
    names, matrix, degrees, squares = pooled(strata, random, fixed)
    shared = [strata.multiplicity(t) if set(term) <= set(t) else 0 for t in random]
    weights = np.asarray([*shared, 1.0])
    df, c = strata.degrees[term], strata.multiplicity(term)
    noise = float(weights @ np.asarray([fit.components[name] for name in names]))
    value = max(0.0, (strata.squares[term] / df - noise) / c)
    eigenvalues = squares / rng.chisquare(degrees, size=(draws, len(degrees)))
    noises = np.maximum(np.linalg.solve(matrix, eigenvalues.T).T, 0.0) @ weights
    # The effect's length is known up to noise of variance `noises` in each of its df directions.
    shift = rng.standard_normal((draws, df)) * np.sqrt(noises)[:, None]
    shift[:, 0] += np.sqrt(strata.squares[term])
    return value, (shift**2).sum(axis=1) / (df * c)


_FEWEST_DEGREES = 0.5
"""Below so many degrees of freedom a component is too near zero for a chi-squared interval."""


def _degrees(fit: RemlFit) -> Array:
    """Return Satterthwaite's degrees of freedom of each component, from the information matrix."""
    variances = np.diag(2 * np.linalg.pinv(fit.information))
    values = np.asarray(list(fit.components.values()))
    return np.divide(2 * values**2, variances, out=np.full(len(values), np.inf), where=variances > 0)


def _satterthwaite_draws(fit: RemlFit, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw each component as df sigma^2 over a chi-squared variate, with Satterthwaite's df.

    A component near zero has no such df: it is kept as it is here, and its upper limit is found apart.
    """
    columns = [
        df * value / rng.chisquare(df, size=draws)
        if _FEWEST_DEGREES <= df < np.inf
        else np.full(draws, value)
        for value, df in zip(fit.components.values(), _degrees(fit), strict=True)
    ]
    return np.column_stack(columns)
