"""All agreement tables of a panel: stable and single reads, all attributes and the core set, both panels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.profiles.agreement import agreement_by_judge_pair
from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.direction_kappa import three_category_kappa, three_category_tables
from judge_calibration.profiles.item_tables import Read, item_tables, judge_pairs
from judge_calibration.profiles.matched_items import matched_gap, per_judge
from judge_calibration.profiles.pair_counts import PairCounts, count_pairs, stratum_masks
from judge_calibration.profiles.panel import Panel
from judge_calibration.profiles.two_way_interval import Term, by_cluster, item_resamples, two_way_interval

VIEWS: tuple[tuple[Read, str], ...] = (
    ("stable", "all"),
    ("stable", "core"),
    ("single", "all"),
    ("single", "core"),
)
SUMMARY_COLUMNS = (
    *("panel", "measure", "read", "attributes", "items_by", "items", "stratum", "n_items", "mean", "pooled"),
    *("item_averaged", "joint_coverage", "lowest", "highest", "above", "n_defined", "n_judge_pairs"),
    *("item_low", "item_high", "judge_low", "judge_high", "low", "high", "undefined", "interval_undefined"),
)
JUDGE_COLUMNS = (
    *("panel", "judge_id", "read", "attributes", "agreement", "agreement_same", "agreement_opposite"),
    *("joint_coverage", "gap", "preference"),
)


_ENDS = ("item_low", "item_high", "judge_low", "judge_high", "low", "high")
_NOT_MADE = {"interval_undefined": "not_made"}


class AgreementTables(NamedTuple):
    """Tables of :func:`compare_judges`."""

    pairs: pd.DataFrame
    gaps: pd.DataFrame
    kappas: pd.DataFrame
    summary: pd.DataFrame
    judges: pd.DataFrame


class _View(NamedTuple):
    read: Read
    attributes: str
    keep: np.ndarray
    counts: PairCounts
    groups: list[dict[str, str]]
    members: np.ndarray


def compare_judges(
    panel: Panel,
    core: np.ndarray,
    subjective: np.ndarray,
    other_rule: np.ndarray | None,
    seed: int,
    resamples: int = 1_000,
    own_marginals: bool = False,
    rules: tuple[str, str] = ("first_order", "order_stable"),
) -> AgreementTables:
    """Compare all judges of a panel on attributes and on their overall choices.

    Parameters
    ----------
    panel : Panel
    core : numpy.ndarray of bool, shape (n_attributes,)
        The core set.
    subjective : numpy.ndarray of bool, shape (n_items,)
        The SubjectiveSet of the full panel.
    other_rule : numpy.ndarray of int8, shape (n_judges, n_items), optional
        Overall choices by the other rule (order-stable where the declared one is the first order, and the
        other way round): gaps are made for both.
    seed, resamples : int
        For the intervals.
    own_marginals : bool
        Whether kappa's chance agreement is from each judge's own cells instead of the joint ones.
    rules : tuple of str
        What to call the declared and the other rule.

    Returns
    -------
    pairs : pandas.DataFrame
        :func:`agreement_by_judge_pair` with read {stable, single}, attributes {all, core}, items_by {all,
        subjective_set, source} and items.
    gaps : pandas.DataFrame
        :func:`matched_gap` with read, attributes and rule.
    kappas : pandas.DataFrame
        judge_1, judge_2, of {preference, stable, single}, categories (3: abstention counts), kappa,
        agreement, cells, undefined. Two-category kappas of attributes stand in `pairs`.
    summary : pandas.DataFrame
        A row a panel and measure (``agreement``, ``kappa``, ``gap:<rule>``, ``kappa_three``): mean over
        judge pairs, pooled, lowest, highest, how many lie above the measure's reference (.5 for agreement,
        0 for the others), mean joint coverage beside every agreement, and intervals by item, by judge, and
        by both (low, high) for agreement and the gap.
    judges : pandas.DataFrame
        Each judge's means over the others of its panel.
    """
    judges = panel.cube.judges
    n_attributes = len(panel.cube.attributes)
    everything = np.ones(n_attributes, dtype=bool)
    clusters = panel.cluster
    intervals = _Intervals(panel, clusters, seed, resamples)
    pairs, gaps, summary, by_judge = [], [], [], []
    for read, attributes in VIEWS:
        keep = everything if attributes == "all" else core
        main = (read, attributes) == ("stable", "all")
        members, groups = _groups(panel, subjective if main else None)
        reference = panel.reference if main else None
        counts = count_pairs(panel.cube.codes, panel.verdicts, members, reference, read, keep, own_marginals)
        view = _View(read, attributes, keep, counts, groups, members)
        frame = agreement_by_judge_pair(counts, judges, int(keep.sum()), groups)
        pairs.append(frame.assign(read=read, attributes=attributes))
        choices = {rules[0]: (panel.verdicts, counts)}
        if other_rule is not None:
            other = count_pairs(panel.cube.codes, other_rule, None, None, read, keep)
            choices[rules[1]] = (other_rule, other)
        found = {rule: matched_gap(counted, judges) for rule, (_, counted) in choices.items()}
        gaps += [gap.assign(read=read, attributes=attributes, rule=rule) for rule, gap in found.items()]
        tables = _whole_tables(panel, view)
        summary += list(_agreement_rows(panel, view, frame, tables, intervals))
        for rule, (verdicts, _) in choices.items():
            summary += list(_gap_rows(panel, view, found[rule], verdicts, rule, tables, intervals))
        by_judge += list(_judge_rows(panel, view, frame, found[rules[0]]))
    kappas = _three_category(panel)
    summary += list(_kappa_rows(panel, kappas))
    return AgreementTables(
        _ordered(pd.concat(pairs, ignore_index=True), ("read", "attributes", "items_by", "items")),
        _ordered(pd.concat(gaps, ignore_index=True), ("read", "attributes", "rule")),
        kappas,
        pd.DataFrame(summary, columns=list(SUMMARY_COLUMNS)).astype(
            dict.fromkeys((*SUMMARY_COLUMNS[:7], "undefined", "interval_undefined"), "str")
        ),
        pd.concat([pd.DataFrame(columns=list(JUDGE_COLUMNS)), *by_judge], ignore_index=True)[
            list(JUDGE_COLUMNS)
        ],
    )


def _ordered(frame: pd.DataFrame, first: tuple[str, ...]) -> pd.DataFrame:
    frame = frame.astype(dict.fromkeys(first, "str"))
    return frame[[*first, *(name for name in frame.columns if name not in first)]]


def _groups(panel: Panel, subjective: np.ndarray | None) -> tuple[np.ndarray, list[dict[str, str]]]:
    """Return the groups of items that the main view is split into: all, the SubjectiveSet, sources."""
    everyone = np.ones(len(panel.items), dtype=bool)
    members = [everyone]
    groups = [{"items_by": "all", "items": "all"}]
    if subjective is not None:
        members += [subjective, ~subjective]
        groups += [{"items_by": "subjective_set", "items": name} for name in ("selected", "others")]
        sources = panel.items["source"].astype("str")
        if len(set(sources)) > 1:
            for source in sorted(sources.unique()):
                members.append((sources == source).to_numpy())
                groups.append({"items_by": "source", "items": source})
    return np.stack(members), groups


class _Whole(NamedTuple):
    joint: np.ndarray
    agree: np.ndarray


def _whole_tables(panel: Panel, view: _View) -> _Whole:
    parts = list(item_tables(panel.cube.codes, view.read, view.keep))
    if not parts:
        none = np.zeros((len(judge_pairs(len(panel.cube.judges))[0]), 0), dtype=np.uint8)
        return _Whole(none, none)
    return _Whole(
        np.concatenate([part.joint for part in parts], axis=1),
        np.concatenate([part.agree for part in parts], axis=1),
    )


class _Intervals:
    """Two-way intervals with one set of item resamples a group of items."""

    def __init__(self, panel: Panel, cluster: np.ndarray | None, seed: int, resamples: int) -> None:
        self.panel, self.cluster, self.seed, self.resamples = panel, cluster, seed, resamples
        self._key: bytes = b""
        self._weights = np.zeros((0, 0), dtype=np.uint16)

    def clusters_of(self, member: np.ndarray) -> tuple[np.ndarray | None, int]:
        if self.cluster is None:
            return None, int(member.sum())
        codes, names = pd.factorize(self.cluster[member])
        return codes, len(names)

    def weights(self, member: np.ndarray, n_clusters: int) -> np.ndarray:
        key = member.tobytes()
        if key != self._key:
            self._key, self._weights = key, item_resamples(n_clusters, self.resamples, self.seed)
        return self._weights

    def of(
        self, terms: list[tuple[np.ndarray, np.ndarray, int]], member: np.ndarray
    ) -> dict[str, dict[str, Any]]:
        """Return the interval's columns for each panel."""
        panels = self.panel.panels
        nothing = dict.fromkeys(_ENDS, float("nan"))
        if not len(terms[0][0]) or not member.any():
            reason = "no_items" if len(terms[0][0]) else "fewer_than_two_judges"
            return {name: nothing | {"interval_undefined": reason} for name in panels}
        codes, n_clusters = self.clusters_of(member)
        whole = bool(member.all())
        built = [
            Term(
                by_cluster(top if whole else top[:, member], codes, n_clusters),
                by_cluster(bottom if whole else bottom[:, member], codes, n_clusters),
                sign,
            )
            for top, bottom, sign in terms
        ]
        results = two_way_interval(
            built,
            len(self.panel.reduced),
            self.weights(member, n_clusters),
            self.seed,
            list(panels.values()),
        )
        return {
            name: dict(zip(_ENDS, (*one.by_item, *one.by_judge, *one.two_way), strict=True))
            | {"interval_undefined": one.undefined}
            for name, one in zip(panels, results, strict=True)
        }


def _agreement_rows(
    panel: Panel, view: _View, frame: pd.DataFrame, tables: _Whole, intervals: _Intervals
) -> Iterator[dict[str, Any]]:
    masks = stratum_masks(panel.verdicts)
    for number, group in enumerate(view.groups):
        of_group = frame
        if len(view.groups) > 1:
            of_group = frame[(frame["items_by"] == group["items_by"]) & (frame["items"] == group["items"])]
        for stratum in view.counts.strata:
            rows = of_group[of_group["stratum"] == stratum]
            found: dict[str, dict[str, Any]] = {}
            # Reference strata have none, and of single sources the stratum `same`: they would be many.
            if stratum in masks and (group["items_by"] != "source" or stratum != "same"):
                mask = masks[stratum]
                inside = [t if mask is None else t * mask for t in (tables.agree, tables.joint)]
                found = intervals.of([(inside[0], inside[1], 1)], view.members[number])
            for name, judges in panel.panels.items():
                chosen = rows[panel.pairs_of(judges)]
                base = _base(name, view, group, stratum) | {"n_items": int(view.members[number].sum())}
                agreement = _summary(chosen, "agreement", 0.5) | {
                    "pooled": _share(chosen["agree"].sum(), chosen["joint"].sum()),
                    "item_averaged": _mean(chosen["item_averaged"]),
                    "joint_coverage": _mean(chosen["joint_coverage"]),
                }
                yield base | {"measure": "agreement"} | agreement | found.get(name, _NOT_MADE)
                kappa = _summary(chosen, "kappa", 0.0) | {"joint_coverage": agreement["joint_coverage"]}
                yield base | {"measure": "kappa"} | kappa | _NOT_MADE


def _gap_rows(
    panel: Panel,
    view: _View,
    gap: pd.DataFrame,
    verdicts: np.ndarray,
    rule: str,
    tables: _Whole,
    intervals: _Intervals,
) -> Iterator[dict[str, Any]]:
    first, second = judge_pairs(len(panel.cube.judges))
    product = verdicts[first] * verdicts[second]
    matched = (product != 0) & (tables.joint > 0)
    terms = [
        (tables.agree * matched, tables.joint * matched, 1),
        (matched & (product == 1), matched, -1),
    ]
    group = {"items_by": "all", "items": "all"}
    found = intervals.of(terms, view.members[0])
    for name, judges in panel.panels.items():
        chosen = gap[panel.pairs_of(judges)]
        base = _base(name, view, group, "matched") | {"n_items": len(panel.items)}
        yield base | {"measure": f"gap:{rule}"} | _summary(chosen, "gap", 0.0) | found[name]
        yield base | {"measure": f"preference:{rule}"} | _summary(chosen, "preference", 0.5) | _NOT_MADE


def _base(name: str, view: _View, group: Mapping[str, str], stratum: str) -> dict[str, Any]:
    return {"panel": name, "read": view.read, "attributes": view.attributes, **group, "stratum": stratum}


def _summary(rows: pd.DataFrame, column: str, reference: float) -> dict[str, Any]:
    known = rows[column].dropna()
    return {
        "mean": _mean(known),
        "lowest": float(known.min()) if len(known) else float("nan"),
        "highest": float(known.max()) if len(known) else float("nan"),
        "above": int((known > reference).sum()),
        "n_defined": len(known),
        "n_judge_pairs": len(rows),
        "undefined": None
        if len(known)
        else "no_judge_pair_defined"
        if len(rows)
        else "fewer_than_two_judges",
    }


def _mean(values: pd.Series) -> float:
    known = values.dropna()
    return float(known.mean()) if len(known) else float("nan")


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _judge_rows(panel: Panel, view: _View, frame: pd.DataFrame, gap: pd.DataFrame) -> Iterator[pd.DataFrame]:
    whole = frame if len(view.groups) == 1 else frame[frame["items_by"] == "all"]
    by_stratum = {s: whole[whole["stratum"] == s].reset_index(drop=True) for s in ("all", "same", "opposite")}
    wide = by_stratum["all"][["judge_1", "judge_2", "agreement", "joint_coverage"]].assign(
        agreement_same=by_stratum["same"]["agreement"],
        agreement_opposite=by_stratum["opposite"]["agreement"],
        gap=gap["gap"],
        preference=gap["preference"],
    )
    values = [name for name in JUDGE_COLUMNS if name in wide.columns]
    for name, judges in panel.panels.items():
        means = per_judge(wide[panel.pairs_of(judges)], values)
        yield means.assign(panel=name, read=view.read, attributes=view.attributes)


def _three_category(panel: Panel) -> pd.DataFrame:
    """Kappa of every judge pair with abstention as a category: overall choices, stable and single reads."""
    judges = panel.cube.judges
    first, second = judge_pairs(len(judges))
    rows = []
    codes = code_counts(panel.cube.codes).sum(axis=1)
    cells = len(panel.items) * len(panel.cube.attributes)
    ends = {"stable": ([0], [8]), "single": ([0, 1, 2], [6, 7, 8])}
    for read in ("stable", "single"):
        sums = count_pairs(panel.cube.codes, panel.verdicts, read=read).sums  # type: ignore[arg-type]
        joint, agree, up_1, up_2 = (
            sums[name][0, :, 0].astype(np.int64) for name in ("joint", "agree", "up_1", "up_2")
        )
        own = np.stack([codes[:, end].sum(axis=1) for end in ends[read]], axis=1)
        tables = three_category_tables(
            joint, agree, up_1, up_2, np.stack([own[first], own[second]], axis=1), cells
        )
        rows += [(j, k, read, table) for j, k, table in zip(first, second, tables, strict=True)]
    for j, k in zip(first, second, strict=True):
        codes_of_pair = 3 * (panel.verdicts[j].astype(np.int64) + 1) + panel.verdicts[k] + 1
        rows.append((j, k, "preference", np.bincount(codes_of_pair, minlength=9).reshape(3, 3)))
    records = []
    for j, k, of, table in rows:
        found = three_category_kappa(table)
        records.append(
            (judges[j], judges[k], of, 3, found.kappa, found.agreement, found.cells, found.undefined)
        )
    columns = ["judge_1", "judge_2", "of", "categories", "kappa", "agreement", "cells", "undefined"]
    frame = pd.DataFrame(records, columns=columns)
    return frame.astype(dict.fromkeys(("judge_1", "judge_2", "of", "undefined"), "str"))


def _kappa_rows(panel: Panel, kappas: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for of, rows in kappas.groupby("of", sort=False):
        for name, judges in panel.panels.items():
            base: dict[str, Any] = {
                "panel": name,
                "measure": "kappa_three",
                "read": str(of),
                "attributes": "all",
            }
            base |= {"items_by": "all", "items": "all", "stratum": "all", "n_items": len(panel.items)}
            yield base | _summary(rows[panel.pairs_of(judges)], "kappa", 0.0) | _NOT_MADE
