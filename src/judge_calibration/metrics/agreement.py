"""Agreement of judges with people, of people with one another, and of judges with references."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import Problem, TableError
from judge_calibration.metrics.ac1 import gwet_ac1
from judge_calibration.metrics.alpha import alpha_of, coincidences, krippendorff_alpha
from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.dawid_skene import dawid_skene
from judge_calibration.metrics.intervals import Intervals, choose_intervals
from judge_calibration.metrics.judgments import CELL_COLUMNS, A, B, Ints, Judgments, encode
from judge_calibration.metrics.kappa import cohen_kappa, observed_agreement, why_no_kappa
from judge_calibration.metrics.people import kinds_of
from judge_calibration.metrics.rates import Floats, ratio
from judge_calibration.metrics.share_rows import ratio_intervals
from judge_calibration.metrics.slices import WHOLE, slice_pairs
from judge_calibration.metrics.trust_table import rows_of_view
from judge_calibration.options.reporting import ReportingOptions

SLICES = ("difficulty", "manipulation")

AGREEMENT_COLUMNS = (
    "source",
    "comparison",
    "against",
    *CELL_COLUMNS,
    "view",
    "slice_by",
    "slice",
    "statistic",
    "value",
    "low",
    "high",
    "method",
    "jackknife_se",
    "ceiling",
    "n_items",
    "n_pairs",
    "n_clusters",
    "reason",
    "interval_reason",
)
"""Columns of the agreement table, in order."""

CONFUSION_COLUMNS = (
    "source",
    "comparison",
    "against",
    *CELL_COLUMNS,
    "slice_by",
    "slice",
    "row_label",
    "column_label",
    "count",
    "row_percent",
)
"""Columns of the confusion table, in order."""

# In the order of the codes of judgments.
LABELS = (*schemas.VERDICTS, "failed")
"""Labels of a confusion matrix; only a judge's verdict can be ``failed``."""

_K = len(LABELS)
_FEWEST_ANNOTATORS = 3
MANY_ANNOTATORS = 12
"""Above this number in one source, annotators with fewer clusters than an interval needs are only pooled."""


@dataclass(frozen=True)
class Comparison:
    """Two raters on the same items.

    Attributes
    ----------
    source, comparison, against : str
        Where, what kind (``human_human``, ``judge_human``, ``judge_adjudicated``, ``judge_dawid_skene``,
        ``judge_reference``; of simulated labels ``simulated_simulated``, ``judge_simulated`` and so on) and
        with whom or what the rater of the columns is compared.
    cell : int
        Row of the cells; -1 between people.
    pair, row, column : numpy.ndarray, shape (n_items,)
        Pair, label that is compared with, and label of the judge (or second annotator).
    kind : str or None
        Whose labels the judge is compared with (human, ai, simulated); None for references.
    """

    source: str
    comparison: str
    against: str
    cell: int
    pair: Ints
    row: Ints
    column: Ints
    kind: str | None = None


@dataclass(frozen=True)
class _People:
    """The overall labels of one kind by pair: annotators', adjudicated and posterior ones; -1 for none."""

    kind: str
    names: list[str]
    primary: Ints
    adjudicated: Ints
    posterior: Ints


def _people(labels: pd.DataFrame, pair_ids: pd.Index, kind: str) -> _People:
    """Arrange the overall labels of one kind by pair and annotator."""
    overall = labels[labels["attribute"].isna()]
    row = pair_ids.get_indexer(pd.Index(overall["pair_id"]))
    unknown = overall[row < 0]
    if len(unknown):
        raise TableError(
            "The table 'labels' names pairs that the table 'pairs' does not have.",
            [
                Problem(
                    "labels, column pair_id",
                    str(sorted(set(unknown["pair_id"]))[:5]),
                    "ids of the table pairs",
                )
            ],
            "label the pairs of this run, or add their pairs",
        )
    code = overall["label"].map({label: i for i, label in enumerate(schemas.VERDICTS)})
    if code.isna().any():
        bad = sorted({repr(value) for value in overall.loc[code.isna(), "label"]})[:5]
        raise TableError(
            "The table 'labels' holds labels outside the alphabet.",
            [Problem("labels, column label", ", ".join(bad), "one of " + ", ".join(schemas.VERDICTS))],
            "correct the labels; nothing was counted",
        )
    said = code.to_numpy(np.int64)
    names = sorted(overall.loc[overall["stage"] == "primary", "annotator_id"].unique())
    primary = np.full((len(pair_ids), len(names)), -1, dtype=np.int64)
    first = (overall["stage"] == "primary").to_numpy(bool)
    who = pd.Index(names).get_indexer(pd.Index(overall["annotator_id"]))
    primary[row[first], who[first]] = said[first]
    # People agree where every label of at least two is the same; else the adjudicator speaks.
    adjudicated = np.full(len(pair_ids), -1, dtype=np.int64)
    if len(names):
        given = (primary >= 0).sum(axis=1)
        most = primary.max(axis=1)
        alike = (given >= 2) & (np.where(primary < 0, most[:, None], primary) == most[:, None]).all(axis=1)
        adjudicated[alike] = most[alike]
    adjudicated[row[~first]] = said[~first]
    everyone = sorted(overall["annotator_id"].unique())
    posterior = np.full(len(pair_ids), -1, dtype=np.int64)
    if len(everyone) >= _FEWEST_ANNOTATORS:
        votes = np.zeros((len(pair_ids), len(everyone), len(schemas.VERDICTS)))
        np.add.at(votes, (row, pd.Index(everyone).get_indexer(pd.Index(overall["annotator_id"])), said), 1)
        belief = dawid_skene(votes).posterior
        known = ~np.isnan(belief).any(axis=1)
        posterior[known] = belief[known].argmax(axis=1)
    return _People(kind, names, primary, adjudicated, posterior)


def _listed(people: _People, member: npt.NDArray[np.bool_], cluster: Ints, fewest: int) -> list[int]:
    """Return the annotators of a source who are listed one by one."""
    there = (people.primary >= 0) & member[:, None]
    labelled = np.flatnonzero(there.any(axis=0))
    if len(labelled) <= MANY_ANNOTATORS:
        return [int(i) for i in labelled]
    return [int(i) for i in labelled if len(np.unique(cluster[there[:, i]])) >= fewest]


def _comparisons(
    judgments: Judgments,
    options: ReportingOptions,
    crowds: list[_People],
    member: npt.NDArray[np.bool_],
    source: str,
    cluster: Ints,
) -> Iterator[Comparison]:
    """Yield every comparison within one source."""
    fewest = options.intervals.refuse_below
    listed = {people.kind: _listed(people, member, cluster, fewest) for people in crowds}
    for people in crowds:
        for one, two in combinations(listed[people.kind], 2):
            both = (people.primary[:, one] >= 0) & (people.primary[:, two] >= 0) & member
            pair = np.flatnonzero(both)
            many = len(listed[people.kind]) > MANY_ANNOTATORS
            if len(pair) and not (many and len(np.unique(cluster[pair])) < fewest):
                name = f"{people.names[one]} and {people.names[two]}"
                labels = people.primary[pair]
                comparison = f"{people.kind}_{people.kind}"
                yield Comparison(source, comparison, name, -1, pair, labels[:, one], labels[:, two])
    units, _ = rows_of_view(judgments, "strict", options)
    targets: list[tuple[str, str, Ints, str | None]] = []
    for people in crowds:
        for i in listed[people.kind]:
            who = f"annotator:{people.names[i]}"
            targets.append((f"judge_{people.kind}", who, people.primary[:, i], people.kind))
        # Of people the settled labels are called plainly; whatever is simulated says so in every name.
        stem = "judge" if people.kind == "human" else f"judge_{people.kind}"
        targets.append((f"{stem}_adjudicated", "adjudicated", people.adjudicated, people.kind))
        targets.append((f"{stem}_dawid_skene", "dawid_skene", people.posterior, people.kind))
    kinds = judgments.pairs.get("reference_kind", pd.Series(index=judgments.pairs.index, dtype="str"))
    kinds = kinds.astype("str").where(kinds.notna(), "unnamed")
    for kind in sorted(kinds.unique()):
        label = np.where((kinds == kind).to_numpy(bool), judgments.reference, -1)
        targets.append(("judge_reference", f"reference:{kind}", label, None))
    for cell in range(len(judgments.cells)):
        own = (units.cell == cell) & member[units.pair]
        pair, verdict = units.pair[own], units.reduced[own]
        for people in crowds:
            # Every label of every annotator, one by one: what the ceiling is for people themselves.
            row, rater = np.nonzero(people.primary[pair] >= 0)
            if len(row):
                label = people.primary[pair[row], rater]
                name = f"judge_{people.kind}"
                yield Comparison(
                    source, name, "all annotators", cell, pair[row], label, verdict[row], people.kind
                )
        for comparison, against, label, whose in targets:
            there = label[pair] >= 0
            if there.any():
                yield Comparison(
                    source, comparison, against, cell, pair[there], label[pair[there]], verdict[there], whose
                )


def _statistics(confusion: Floats, used: Ints) -> Floats:
    """Return raw, kappa, AC1 and the agreement on each label, shape (7, ...)."""
    raw = observed_agreement(confusion)
    rows = ratio(np.diagonal(confusion, axis1=-2, axis2=-1), confusion.sum(axis=-1))
    shrunk = confusion[..., used, :][..., used]
    by_label = [rows[..., k] for k in range(len(schemas.VERDICTS))]
    return np.stack([raw, cohen_kappa(confusion), gwet_ac1(shrunk), *by_label])


_NAMES = ("raw", "kappa", "ac1", *(f"agreement_{label}" for label in schemas.VERDICTS))


def confusion_intervals(
    confusion: Floats, resamples: Resamples, options: ReportingOptions, used: Ints | None = None
) -> Intervals:
    """Return raw agreement, kappa, AC1 and agreement by label with intervals.

    Parameters
    ----------
    confusion : numpy.ndarray, shape (n_clusters, k, k)
        Counts within clusters; k is the number of LABELS.
    resamples : Resamples
        The resamples that all statistics share.
    options : ReportingOptions
        Rules for intervals.
    used : numpy.ndarray of int, optional
        Categories that count for AC1; those that occur by default, at least two.

    Returns
    -------
    Intervals
        In the order raw, kappa, ac1, agreement_A, agreement_B, agreement_TIE, agreement_ABSTAIN.
    """
    g = len(confusion)
    total = confusion.sum(axis=0)
    if used is None:
        used = used_categories(total)
    drawn = resamples.totals(confusion.reshape(g, _K * _K)).T.reshape(-1, _K, _K)
    items = confusion.sum(axis=(1, 2))
    rows = confusion.sum(axis=2)[:, : len(schemas.VERDICTS)]
    counted = np.concatenate([np.repeat(items[:, None] > 0, 3, axis=1), rows > 0], axis=1)
    return choose_intervals(
        _statistics(total, used),
        _statistics(drawn, used),
        _statistics(total - confusion, used).T,
        counted,
        np.array([name not in ("kappa", "ac1") for name in _NAMES]),
        options.intervals,
    )


def used_categories(confusion: Floats) -> Ints:
    """Return the categories that either rater used, filled up to two."""
    present = np.flatnonzero((confusion.sum(axis=0) + confusion.sum(axis=1)) > 0)
    spare = [k for k in range(_K) if k not in present]
    return np.sort(np.r_[present, spare[: max(0, 2 - len(present))]]).astype(np.int64)


def _coverage(
    kept: npt.NDArray[np.bool_],
    asked: npt.NDArray[np.bool_],
    cluster: Ints,
    resamples: Resamples,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Return the share of items that the policy view keeps, as one row."""
    under = np.bincount(cluster[asked], minlength=resamples.count).astype(np.float64)[:, None]
    over = np.bincount(cluster[kept], minlength=resamples.count).astype(np.float64)[:, None]
    found = ratio_intervals(over, under, resamples, True, options.intervals)
    return pd.DataFrame(
        {
            "statistic": ["coverage"],
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "method": found.method.astype(object),
            "jackknife_se": found.se,
            "n_items": [float(asked.sum())],
            "n_clusters": found.clusters,
            "reason": [""],
            "interval_reason": found.reason.astype(object),
        }
    )


def _slice_rows(
    judgments: Judgments,
    one: Comparison,
    view: str,
    slices: list[tuple[str, str, npt.NDArray[np.bool_]]],
    cluster: Ints,
    resamples: Resamples,
    options: ReportingOptions,
) -> list[Block]:
    """Return the rows of one comparison in one view, a block a slice."""
    kept = np.ones(len(one.pair), dtype=bool)
    if view == "policy":
        kept = (one.column == A) | (one.column == B)
    blocks: list[Block] = []
    cell = {
        column: None if one.cell < 0 else judgments.cells[column].iloc[one.cell] for column in CELL_COLUMNS
    }
    used: Ints | None = None
    for by, name, inside in slices:
        there = kept & inside[one.pair]
        if not inside[one.pair].any():
            continue
        cells = cluster[one.pair[there]] * _K * _K + one.row[there] * _K + one.column[there]
        counts = np.bincount(cells, minlength=resamples.count * _K * _K).astype(np.float64)
        confusion = counts.reshape(resamples.count, _K, _K)
        total = confusion.sum(axis=0)
        used = used_categories(total) if used is None else used
        found = confusion_intervals(confusion, resamples, options, used)
        no_kappa = why_no_kappa(total)
        missing = {"raw": "nothing_kept", "kappa": no_kappa, "ac1": no_kappa}
        reasons = [
            missing.get(statistic, "label_never_given") if np.isnan(value) else ""
            for statistic, value in zip(_NAMES, found.value, strict=True)
        ]
        row_sums = total.sum(axis=1)[: len(schemas.VERDICTS)]
        block: Block = {
            "statistic": list(_NAMES),
            "value": list(found.value),
            "low": list(found.low),
            "high": list(found.high),
            "method": list(found.method),
            "jackknife_se": list(found.se),
            "n_items": [*np.repeat(total.sum(), 3), *row_sums],
            "n_pairs": [len(np.unique(one.pair[there]))] * len(_NAMES),
            "n_clusters": list(found.clusters),
            "reason": reasons,
            "interval_reason": list(found.reason),
        }
        if view == "policy":
            share = _coverage(there, inside[one.pair], cluster[one.pair], resamples, options)
            share["n_pairs"] = len(np.unique(one.pair[inside[one.pair]]))
            # Of what is kept only the raw agreement; beside it how much that is.
            block = {column: [values[0], share[column].iloc[0]] for column, values in block.items()}
        whose: dict[str, Any] = {"source": one.source, "comparison": one.comparison, "against": one.against}
        whose |= {"view": view, "slice_by": by, "slice": name} | cell
        size = len(block["statistic"])
        blocks.append(block | {column: [value] * size for column, value in whose.items()})
    return blocks


Block = dict[str, list[Any]]
"""Some rows of a table by column. Thousands of small frames would take longer than what they hold."""


def _joined(blocks: list[Block], columns: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows of all blocks as one typed table; a column that a block lacks is null there."""
    data: Block = {column: [] for column in columns}
    for block in blocks:
        size = len(next(iter(block.values())))
        for column, values in data.items():
            values += block.get(column) or [None] * size
    return _typed(pd.DataFrame({c: pd.Series(v, dtype="object") for c, v in data.items()}), columns)


def _alpha_rows(
    people: _People,
    member: npt.NDArray[np.bool_],
    slices: list[tuple[str, str, npt.NDArray[np.bool_]]],
    cluster: Ints,
    resamples: Resamples,
    source: str,
    options: ReportingOptions,
) -> pd.DataFrame:
    """Return alpha and pooled raw agreement among all annotators, the ceiling of every judge."""
    k = len(schemas.VERDICTS)
    counts = np.stack([(people.primary == code).sum(axis=1) for code in range(k)], axis=1)
    frames = []
    for by, name, inside in slices:
        chosen = np.flatnonzero(member & inside & (counts.sum(axis=1) >= 2))
        if not len(chosen):
            continue
        per_item = coincidences(counts[chosen])
        pairs_of = counts[chosen] * (counts[chosen] - 1)
        raters = counts[chosen].sum(axis=1)
        stacked = np.concatenate(
            [
                per_item.reshape(len(chosen), k * k),
                pairs_of.sum(axis=1)[:, None],
                (raters * (raters - 1))[:, None],
            ],
            axis=1,
        )
        sums = cluster_sums(stacked, cluster[chosen], resamples.count)

        def both(totals: Floats) -> Floats:
            table = totals[..., : k * k].reshape(*totals.shape[:-1], k, k)
            return np.stack([alpha_of(table), ratio(totals[..., k * k], totals[..., k * k + 1])])

        total = sums.sum(axis=0)
        value = both(total)
        value[0] = krippendorff_alpha(counts[chosen])
        found = choose_intervals(
            value,
            both(resamples.totals(sums).T),
            both(np.where(np.abs(total - sums) < 1e-9, 0.0, total - sums)).T,
            np.repeat(sums[:, -1:] > 0, 2, axis=1),
            np.array([False, True]),
            options.intervals,
        )
        frames.append(
            pd.DataFrame(
                {
                    "statistic": ["alpha", "raw"],
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                    "method": found.method.astype(object),
                    "jackknife_se": found.se,
                    "n_items": float(len(chosen)),
                    "n_pairs": len(chosen),
                    "n_clusters": found.clusters,
                    "reason": ["one_category" if np.isnan(found.value[0]) else "", ""],
                    "interval_reason": found.reason.astype(object),
                    "slice_by": by,
                    "slice": name,
                }
            )
        )
    if not frames:
        return pd.DataFrame()
    frame = pd.concat(frames, ignore_index=True)
    comparison = f"{people.kind}_{people.kind}"
    return frame.assign(source=source, comparison=comparison, against="all annotators", view="strict")


def _typed(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    integers = ("n_items", "n_pairs", "n_clusters", "count")
    numbers = ("temperature", "value", "low", "high", "jackknife_se", "ceiling", "row_percent")
    kinds = {c: "Int64" if c in integers else "float64" if c in numbers else "str" for c in columns}
    return frame.reindex(columns=list(columns)).astype(kinds)


def _prepare(
    verdicts: pd.DataFrame, pairs: pd.DataFrame, labels: pd.DataFrame
) -> tuple[Judgments, list[_People]]:
    """Encode the verdicts over all pairs that were judged or labelled, and the labels of each kind."""
    judgments = encode(verdicts, pairs)
    if labels.empty:
        return judgments, []
    known = pd.Index(pairs["pair_id"])
    kinds = kinds_of(labels)
    crowds = [_people(labels[kinds == kind], known, kind) for kind in sorted(kinds.unique())]
    # Labels of pairs that no judge saw still tell how people agree: they follow the judged ones.
    judged = known.get_indexer(pd.Index(judgments.pairs["pair_id"]))
    labelled = np.zeros(len(known), dtype=bool)
    for people in crowds:
        labelled |= (people.primary >= 0).any(axis=1) | (people.adjudicated >= 0)
    labelled[judged] = False
    order = np.r_[judged, np.flatnonzero(labelled)].astype(np.int64)
    everything = pairs.iloc[order].reset_index(drop=True)
    extra = len(order) - len(judged)
    wider = Judgments(
        judgments.cells,
        everything,
        np.r_[judgments.reference, np.full(extra, -1)],
        np.r_[judgments.identity, np.zeros(extra, dtype=bool)],
        judgments.cell,
        judgments.pair,
        judgments.order,
        judgments.repetition,
        judgments.code,
    )
    ordered = [
        _People(
            people.kind,
            people.names,
            people.primary[order],
            people.adjudicated[order],
            people.posterior[order],
        )
        for people in crowds
    ]
    return wider, ordered


def _sources(judgments: Judgments) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    for name in sorted(judgments.pairs["source"].astype(str).unique()):
        yield name, (judgments.pairs["source"] == name).to_numpy(bool)


def _slices(
    judgments: Judgments, member: npt.NDArray[np.bool_]
) -> list[tuple[str, str, npt.NDArray[np.bool_]]]:
    found = []
    for by in (WHOLE, *SLICES):
        slicing = slice_pairs(judgments.pairs, by)
        if slicing is not None:
            found += [
                (by, name, member & (slicing.codes == value)) for value, name in enumerate(slicing.names)
            ]
    return found


def agreement_table(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    options: ReportingOptions | None = None,
) -> pd.DataFrame:
    """Return agreement of judges with people and references, beside that of people with one another.

    Parameters
    ----------
    verdicts, pairs, labels : pandas.DataFrame
        Tables of :mod:`judge_calibration.schemas`; `labels` may be empty. Labels name candidates (A is the
        pair's first), whatever order was shown; only overall ones (attribute null) count here.
    options : ReportingOptions, optional
        Reduction and intervals.

    Returns
    -------
    pandas.DataFrame
        Columns AGREEMENT_COLUMNS, one row a source, comparison, cell, view, slice and statistic.
        ``comparison`` is ``human_human``, ``judge_human`` (each annotator; ``all annotators`` takes every
        label by itself), ``judge_adjudicated`` (the adjudicator's label, or the annotators' common one),
        ``judge_dawid_skene`` (most likely label, from three annotators on) or ``judge_reference`` (one a kind
        of reference; kinds are never merged). Labels whose column ``kind`` says other than human have names
        of their own (``simulated_simulated``, ``judge_simulated``, ``judge_simulated_adjudicated``). In a
        source with more than MANY_ANNOTATORS, those with fewer clusters than an interval needs are in
        ``all annotators`` only.
        Statistics: ``raw``, ``kappa``, ``ac1``, ``agreement_<label>`` (share of the items with that label
        on which the judge gave it), ``alpha`` among all annotators. Under the view ``strict`` an item is a
        (pair, order) and a failed judgment disagrees; under ``policy`` only A and B are kept, with
        ``coverage``. ``ceiling`` repeats the annotators' pooled raw agreement of the slice beside a judge's
        raw agreement.

    Raises
    ------
    TableError
        If verdicts or labels cannot be counted.

    References
    ----------
    Definitions, section 5.
    """
    from threadpoolctl import threadpool_limits

    chosen = options or ReportingOptions()
    judgments, crowds = _prepare(verdicts, pairs, labels)
    blocks: list[Block] = []
    with threadpool_limits(limits=1, user_api="blas"):
        for source, member in _sources(judgments):
            codes = cluster_codes(judgments.pairs.loc[member, "base_id"])
            cluster = np.full(len(judgments.pairs), -1, dtype=np.int64)
            cluster[member] = codes.codes
            resamples = Resamples(codes.size, chosen.intervals.resamples, chosen.intervals.seed)
            slices = _slices(judgments, member)
            ceilings: dict[tuple[str, str, str], float] = {}
            for people in crowds:
                pooled = _alpha_rows(people, member, slices, cluster, resamples, source, chosen)
                if len(pooled):
                    blocks.append({column: list(pooled[column]) for column in pooled.columns})
                    raw = pooled[pooled["statistic"] == "raw"]
                    for by, name, value in raw[["slice_by", "slice", "value"]].itertuples(index=False):
                        ceilings[people.kind, by, name] = value
            for one in _comparisons(judgments, chosen, crowds, member, source, cluster):
                views = ("strict",) if one.cell < 0 else ("strict", "policy")
                for view in views:
                    for block in _slice_rows(judgments, one, view, slices, cluster, resamples, chosen):
                        if one.kind is not None:
                            where = (one.kind, block["slice_by"][0], block["slice"][0])
                            ceiling = ceilings.get(where, np.nan)
                            block["ceiling"] = [
                                ceiling if statistic == "raw" else np.nan for statistic in block["statistic"]
                            ]
                        blocks.append(block)
    return _joined(blocks, AGREEMENT_COLUMNS)


def confusion_table(
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    labels: pd.DataFrame,
    options: ReportingOptions | None = None,
) -> pd.DataFrame:
    """Return every confusion matrix as counts and row percentages.

    Parameters
    ----------
    verdicts, pairs, labels, options
        As for :func:`agreement_table`.

    Returns
    -------
    pandas.DataFrame
        Columns CONFUSION_COLUMNS: 4 x 5 rows a matrix (row labels A, B, TIE, ABSTAIN of the person or
        reference; column labels those and ``failed`` of the judge, or the second annotator's). Row
        percentages are NaN where the row label was never given.
    """
    chosen = options or ReportingOptions()
    judgments, crowds = _prepare(verdicts, pairs, labels)
    k = len(schemas.VERDICTS)
    blocks: list[Block] = []
    for source, member in _sources(judgments):
        slices = _slices(judgments, member)
        cluster = np.full(len(judgments.pairs), -1, dtype=np.int64)
        cluster[member] = cluster_codes(judgments.pairs.loc[member, "base_id"]).codes
        for one in _comparisons(judgments, chosen, crowds, member, source, cluster):
            for by, name, inside in slices:
                there = inside[one.pair]
                if not there.any():
                    continue
                flat = np.bincount(one.row[there] * _K + one.column[there], minlength=_K * _K)
                counts = flat.reshape(_K, _K)[:k]
                percent = 100 * ratio(counts, counts.sum(axis=1, keepdims=True))
                whose: dict[str, Any] = {
                    "source": source,
                    "comparison": one.comparison,
                    "against": one.against,
                }
                whose |= {"slice_by": by, "slice": name}
                for column in CELL_COLUMNS:
                    whose[column] = None if one.cell < 0 else judgments.cells[column].iloc[one.cell]
                block: Block = {column: [value] * counts.size for column, value in whose.items()}
                block["row_label"] = [label for label in schemas.VERDICTS for _ in LABELS]
                block["column_label"] = [*LABELS] * k
                block["count"] = counts.ravel().tolist()
                block["row_percent"] = percent.ravel().tolist()
                blocks.append(block)
    return _joined(blocks, CONFUSION_COLUMNS)
