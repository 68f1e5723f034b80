"""Which pairs are labelled: a stratified draw of base tasks that adding or reordering rows does not move.

Within a stratum the base tasks are ranked by a hash of the seed and their id, and the first ones are drawn.
Strata get their share of the drawn base tasks in proportion to their size (largest remainders). Every drawn
pair carries the probability with which it was drawn, which estimates that weight by it need.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import pandas as pd

from judge_calibration.errors import Problem, TableError
from judge_calibration.labelling.power import Requirement, half_width, require
from judge_calibration.options.annotation import CriticalSliceOptions, DrawOptions

DESIGN_COLUMNS = [
    "slice_by",
    "slice",
    "target",
    "wanted",
    "base_tasks_wanted",
    "pairs_wanted",
    "labels_wanted",
    "base_tasks_there",
    "base_tasks_drawn",
    "pairs_drawn",
    "labels_planned",
    "half_width_reached",
    "undefined",
]

FRAME_COLUMNS = ["pair_id", "base_id", "stratum", "inclusion_probability", "drawn"]
"""Columns of the frame of a draw: every pair that could be drawn, with its chance (0 to 1)."""


class Draw(NamedTuple):
    """The drawn pairs and what the critical slices get.

    Attributes
    ----------
    pairs : pandas.DataFrame
        The drawn rows of the pairs, with the columns ``stratum`` and ``inclusion_probability`` (0 to 1).
    design : pandas.DataFrame
        One row a critical slice: wanted, there, drawn, and the half-width that the draw reaches.
    """

    pairs: pd.DataFrame
    design: pd.DataFrame


def rank_of(seed: int, purpose: str, name: str) -> float:
    """Return a number in [0, 1) that orders `name` among others, whatever the others are."""
    digest = hashlib.sha256(f"{seed}\x00{purpose}\x00{name}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def strata_of(pairs: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series:
    """Return each row's stratum: the values of the columns, joined; a missing one is ``none``."""
    missing = [column for column in columns if column not in pairs.columns]
    if missing:
        raise TableError(
            "The draw names strata that the pairs do not have.",
            [Problem("annotation.draw.strata", repr(column), "a column of the pairs") for column in missing],
        )
    if not columns:
        return pd.Series("all", index=pairs.index, dtype="str")
    parts = [pairs[column].astype("str").fillna("none") for column in columns]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined + " | " + part
    return joined


def in_slice(pairs: pd.DataFrame, slice_by: str, slice_: str) -> pd.Series:
    """Return which rows lie in the slice; none where the column is absent."""
    if slice_by == "all":
        return pd.Series(True, index=pairs.index)
    if slice_by not in pairs.columns:
        return pd.Series(False, index=pairs.index)
    return (pairs[slice_by].astype("str") == slice_).fillna(False).astype(bool)


def _allocate(sizes: pd.Series, total: int) -> pd.Series:
    """Return how many of each stratum: proportional, largest remainders, never more than there are."""
    total = min(total, int(sizes.sum()))
    exact = sizes / sizes.sum() * total
    share = exact.map(math.floor).astype(int)
    left = total - int(share.sum())
    order = (share - exact).sort_values(kind="stable").index
    for stratum in order:
        if left == 0:
            break
        if share[stratum] < sizes[stratum]:
            share[stratum] += 1
            left -= 1
    return share


def _draw_units(units: pd.DataFrame, total: int, seed: int, purpose: str) -> pd.DataFrame:
    """Return the units (columns ``unit``, ``stratum``) with ``drawn`` and ``probability``."""
    sizes = units.groupby("stratum")["unit"].size()
    share = _allocate(sizes, total)
    out = units.copy()
    out["rank"] = [rank_of(seed, purpose, unit) for unit in out["unit"]]
    out = out.sort_values(["stratum", "rank", "unit"], kind="stable")
    place = out.groupby("stratum").cumcount()
    wanted = out["stratum"].map(share)
    out["drawn"] = place < wanted
    out["probability"] = wanted / out["stratum"].map(sizes)
    return out.set_index("unit")


def _by_slice(
    pairs: pd.DataFrame, options: DrawOptions, primaries: int
) -> tuple[pd.Series, pd.Series, list[tuple[CriticalSliceOptions, Requirement | None]]]:
    missed = pd.Series(1.0, index=pairs.index)
    drawn = pd.Series(False, index=pairs.index)
    requirements: list[tuple[CriticalSliceOptions, Requirement | None]] = []
    for slice_ in options.critical_slices:
        rows = pairs[in_slice(pairs, slice_.slice_by, slice_.slice)]
        if rows.empty:
            requirements.append((slice_, None))
            continue
        units = rows.groupby("base_id", as_index=False).agg(
            stratum=("stratum", "first"), pairs=("pair_id", "size")
        )
        units = units.rename(columns={"base_id": "unit"})
        need = require(slice_, float(units["pairs"].mean()), primaries, options)
        requirements.append((slice_, need))
        done = _draw_units(units, need.base_tasks, options.seed, f"{slice_.slice_by}={slice_.slice}")
        probability = rows["base_id"].map(done["probability"])
        missed.loc[rows.index] *= 1 - probability
        drawn.loc[rows.index] |= rows["base_id"].map(done["drawn"]).astype(bool)
    # Draws of different slices are independent, so a pair is missed only if every one of them misses it.
    return 1 - missed, drawn, requirements


def draw_pairs(pairs: pd.DataFrame, options: DrawOptions, primaries: int = 2) -> Draw:
    """Draw the pairs of a round.

    Parameters
    ----------
    pairs : pandas.DataFrame
        The canonical pairs.
    options : DrawOptions
        How many, from which sources, over which strata.
    primaries : int, optional
        Primary labels a pair.

    Returns
    -------
    Draw
        Rows keep the order of `pairs`. A critical slice without a pair is in the design with reason
        ``no_pairs``; one with fewer base tasks than it needs gets all of them, and its design row says which
        half-width they reach (reason ``too_few_base_tasks``).
    """
    frame, requirements = _chances(pairs, options, primaries)
    drawn = frame[frame["drawn"]].drop(columns="drawn").reset_index(drop=True)
    return Draw(drawn, _design(frame, drawn, requirements, options, primaries))


def frame_of_draw(pairs: pd.DataFrame, options: DrawOptions, primaries: int = 2) -> pd.DataFrame:
    """Return every pair that could be drawn with its chance, drawn or not.

    Parameters
    ----------
    pairs, options, primaries
        As :func:`draw_pairs` takes them.

    Returns
    -------
    pandas.DataFrame
        FRAME_COLUMNS, in the order of `pairs`; a pair with probability 0 (no critical slice holds it, or its
        stratum got no place) is in it, so that nobody takes it for one that might have been labelled.
    """
    frame, _ = _chances(pairs, options, primaries)
    texts = ["pair_id", "base_id", "stratum"]
    return frame[FRAME_COLUMNS].astype(dict.fromkeys(texts, "str") | {"drawn": "bool"})


def _chances(
    pairs: pd.DataFrame, options: DrawOptions, primaries: int
) -> tuple[pd.DataFrame, list[tuple[CriticalSliceOptions, Requirement | None]]]:
    """Return the pairs of the draw with ``stratum``, ``inclusion_probability`` and ``drawn``."""
    frame = pairs if options.sources is None else pairs[pairs["source"].isin(options.sources)]
    frame = frame.reset_index(drop=True)
    frame = frame.assign(stratum=strata_of(frame, options.strata))
    requirements: list[tuple[CriticalSliceOptions, Requirement | None]] = []
    if frame.empty:
        probability, drawn = pd.Series([], dtype="float64"), pd.Series([], dtype="bool")
        requirements = [(slice_, None) for slice_ in options.critical_slices]
    elif options.mode == "half_width":
        probability, drawn, requirements = _by_slice(frame, options, primaries)
    else:
        wanted = len(frame) if options.mode == "everything" else int(options.pairs or 0)
        units = frame[["pair_id", "stratum"]].rename(columns={"pair_id": "unit"})
        done = _draw_units(units, wanted, options.seed, "pairs")
        probability, drawn = (frame["pair_id"].map(done[name]) for name in ("probability", "drawn"))
        for slice_ in options.critical_slices:
            rows = frame[in_slice(frame, slice_.slice_by, slice_.slice)]
            mean = float(rows.groupby("base_id").size().mean()) if len(rows) else 0
            requirements.append((slice_, require(slice_, mean, primaries, options) if len(rows) else None))
    frame["inclusion_probability"] = probability.astype("float64")
    frame["drawn"] = drawn.astype("bool")
    return frame, requirements


def _design(
    frame: pd.DataFrame,
    drawn: pd.DataFrame,
    requirements: list[tuple[CriticalSliceOptions, Requirement | None]],
    options: DrawOptions,
    primaries: int,
) -> pd.DataFrame:
    records = []
    for slice_, need in requirements:
        there = frame[in_slice(frame, slice_.slice_by, slice_.slice)]
        got = drawn[in_slice(drawn, slice_.slice_by, slice_.slice)]
        tasks = int(got["base_id"].nunique())
        reached = half_width(slice_, tasks, len(got) / tasks, options) if tasks else math.nan
        reason = None
        if need is None:
            reason = "no_pairs"
        elif tasks < need.base_tasks:
            reason = "too_few_base_tasks"
        records.append(
            {
                "slice_by": slice_.slice_by,
                "slice": slice_.slice,
                "target": slice_.target,
                "wanted": slice_.half_width if slice_.target == "agreement" else slice_.margin,
                "base_tasks_wanted": need.base_tasks if need else None,
                "pairs_wanted": need.pairs if need else None,
                "labels_wanted": need.labels if need else None,
                "base_tasks_there": int(there["base_id"].nunique()),
                "base_tasks_drawn": tasks,
                "pairs_drawn": len(got),
                "labels_planned": len(got) * primaries
                + math.ceil(len(got) * options.expected_disagreement - 1e-9),
                "half_width_reached": reached,
                "undefined": reason,
            }
        )
    design = pd.DataFrame(records, columns=DESIGN_COLUMNS)
    integers = [name for name in DESIGN_COLUMNS if name.endswith(("_wanted", "_there", "_drawn", "_planned"))]
    texts = ["slice_by", "slice", "target", "undefined"]
    return design.astype(
        dict.fromkeys(integers, "Int64")
        | dict.fromkeys(texts, "str")
        | {"wanted": "float64", "half_width_reached": "float64"}
    )
