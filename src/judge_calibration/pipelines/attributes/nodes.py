"""Nodes of the pipeline `attributes` that make reads: planned, asked, brought in or planted."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.planning import plan_attribute_calls
from judge_calibration.judges.reading import read_attribute_answers
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.judging import Criterion
from judge_calibration.pipelines.judging.nodes import RUN_ID_VARIABLE
from judge_calibration.profiles import gathering
from judge_calibration.profiles.holistic import other_cells
from judge_calibration.profiles.inventory import Attribute, column_name, read_inventory
from judge_calibration.sources.draw import draw_pairs

logger = logging.getLogger(__name__)


def chosen_attributes(inventory: Mapping[str, Any], options: AttributesOptions) -> list[Attribute]:
    """Return the attributes of the inventory that the parameters name, or all.

    Raises
    ------
    OptionsError
        If the parameters name attributes that the inventory lacks.
    """
    attributes = read_inventory(inventory)
    names = {attribute.name for attribute in attributes}
    unknown = [name for name in options.attributes if name not in names]
    if unknown:
        problems = [
            Problem("attributes.attributes", repr(name), "a name of the inventory") for name in unknown
        ]
        raise OptionsError("The parameters name attributes that the inventory lacks.", problems)
    return [a for a in attributes if not options.attributes or a.name in options.attributes]


def criteria_of(attributes: Sequence[Attribute], options: AttributesOptions) -> list[Criterion]:
    """Return attributes as judges are told of them."""
    return [
        Criterion(
            name=column_name(a.name),
            description=a.definition
            if options.description == "definition"
            else f"{a.definition} More of it: {a.more} It is not this: {a.not_}",
        )
        for a in attributes
    ]


def plan_reads(
    judged_pairs: pd.DataFrame, attribute_inventory: dict[str, Any], options: AttributesOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw the pairs that are read and plan one call for each judge, attribute and order."""
    pairs = draw_pairs(judged_pairs, options.pairs, options.salt)
    if pairs.empty:
        return pairs, schemas.empty(schemas.CALLS)
    criteria = criteria_of(chosen_attributes(attribute_inventory, options), options)
    return pairs, plan_attribute_calls(pairs, criteria, options.judging)


def ask_reads(
    attribute_calls: pd.DataFrame,
    call_store: Path,
    judge_keys: dict[str, str | None],
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ask what the store has no answer to; return all answers and every attempt."""
    store = Path(options.judging.asking.store) if options.judging.asking.store else call_store
    return ask_calls(attribute_calls, options.judging, store, os.environ.get(RUN_ID_VARIABLE), judge_keys)


def read_attributes(
    attribute_calls: pd.DataFrame,
    attribute_answers: pd.DataFrame,
    attribute_pairs: pd.DataFrame,
    options: AttributesOptions,
) -> pd.DataFrame:
    """Read every answer's direction, mapped back to candidate identity."""
    if attribute_calls.empty:
        return schemas.empty(schemas.READS)
    return read_attribute_answers(attribute_calls, attribute_answers, attribute_pairs, options.judging)


def count_reuse(attribute_calls: pd.DataFrame, attribute_answers: pd.DataFrame) -> pd.DataFrame:
    """Count how many prompt tokens of the reads the judges' prefix caches spared."""
    return gathering.prefix_reuse(attribute_calls, attribute_answers)


def gather_reads(
    reads: pd.DataFrame,
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    options: AttributesOptions,
) -> tuple[dict[str, pd.DataFrame], pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Bring asked and imported reads, or a SIMULATED panel's, into one panel with its items and choices."""
    names = tuple(column_name(a.name) for a in chosen_attributes(attribute_inventory, options))
    gathered = gathering.gather(reads, verdicts, pairs, names, options)
    cube, chosen = gathered.cube, options.holistic
    cell = (chosen.protocol, chosen.constraint, chosen.temperature)
    lost = {} if options.panel else other_cells(verdicts, cube.judges, cube.items, *cell)
    for judge, cells in lost.items():
        logger.warning(
            "No overall choice of %s stands beside its attribute reads: its verdicts have other cells than "
            "attributes.holistic names (protocol, constraint, temperature). There are: %s.",
            judge,
            "; ".join(cells[:5]),
        )
    return (
        gathered.tables(),
        gathered.outcomes,
        gathered.items,
        gathered.choices,
        gathered.planted,
        gathered.screening,
    )


def families_of(attribute_inventory: dict[str, Any]) -> dict[str, str]:
    """Return each attribute's family, by its name in tables."""
    return {column_name(a.name): a.family for a in read_inventory(attribute_inventory)}


def origins_of(attribute_inventory: dict[str, Any]) -> dict[str, str]:
    """Return whether each attribute's name stands in the paper, by its name in tables."""
    return {column_name(a.name): a.origin for a in read_inventory(attribute_inventory)}


def as_panel(
    read_panel: dict[str, pd.DataFrame],
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    options: AttributesOptions,
) -> gathering.Panel:
    """Return the panel of the gathered tables."""
    return gathering.panel_of(read_panel, panel_items, panel_choices, options)


def true_core(table: pd.DataFrame, attributes: tuple[str, ...]) -> np.ndarray:
    """Return the core set as a mask: of the reduced panel where there is one, as in JudgeProfile."""
    panel = "reduced" if (table["panel"] == "reduced").any() else "full"
    rows = table[table["panel"] == panel].set_index("attribute")["core"]
    return np.array([bool(rows[name]) for name in attributes], dtype=bool)
