"""Nodes of the pipeline `attributes`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from judge_calibration import schemas
from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.planning import plan_attribute_calls
from judge_calibration.judges.reading import read_attribute_answers
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.judging import Criterion
from judge_calibration.pipelines.judging.nodes import RUN_ID_VARIABLE
from judge_calibration.profiles.agreement import agreement_by_judge_pair, item_agreement
from judge_calibration.profiles.attribute_table import attribute_table
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.cube import cube_from_reads
from judge_calibration.profiles.holistic import holistic_verdicts
from judge_calibration.profiles.inventory import Attribute, read_inventory
from judge_calibration.profiles.subjective_set import minority_share, select_subjective
from judge_calibration.profiles.weights import profiles_table
from judge_calibration.sources.draw import draw_pairs


def column_name(attribute: str) -> str:
    """Return an attribute's name as tables hold it: spaces and hyphens as underscores."""
    return attribute.replace(" ", "_").replace("-", "_")


def _chosen(inventory: Mapping[str, Any], options: AttributesOptions) -> list[Attribute]:
    attributes = read_inventory(inventory)
    names = {attribute.name for attribute in attributes}
    unknown = [name for name in options.attributes if name not in names]
    if unknown:
        problems = [
            Problem("attributes.attributes", repr(name), "a name of the inventory") for name in unknown
        ]
        raise OptionsError("The parameters name attributes that the inventory lacks.", problems)
    return [a for a in attributes if not options.attributes or a.name in options.attributes]


def plan_reads(
    judged_pairs: pd.DataFrame, attribute_inventory: dict[str, Any], options: AttributesOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw the pairs that are read and plan one call for each judge, attribute and order."""
    pairs = draw_pairs(judged_pairs, options.pairs, options.salt)
    if pairs.empty:
        return pairs, schemas.empty(schemas.CALLS)
    criteria = [
        Criterion(
            name=column_name(a.name),
            description=f"{a.definition} More of it: {a.more} It is not this: {a.not_}",
        )
        for a in _chosen(attribute_inventory, options)
    ]
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


def profile_judges(
    reads: pd.DataFrame,
    verdicts: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Make coverage, the attribute table, agreement, profiles and the SubjectiveSet from the reads.

    Every attribute and item is kept; what is undefined for lack of judges, verdicts or stable reads carries
    its reason.
    """
    names = [column_name(a.name) for a in _chosen(attribute_inventory, options)]
    cube = cube_from_reads(reads, names)
    holistic = options.holistic
    choices = holistic_verdicts(
        verdicts,
        cube.judges,
        cube.items,
        holistic.rule,
        holistic.protocol,
        holistic.constraint,
        holistic.temperature,
    )
    shares = minority_share(choices)
    items = pd.concat(
        [shares, item_agreement(cube.stable).rename(columns={"undefined": "g_undefined"})], axis=1
    )
    items.insert(0, "pair_id", list(cube.items))
    items["selected"] = select_subjective(shares, Fraction(options.subjective_threshold))
    return (
        coverage_table(cube, reads, options.position_limit),
        attribute_table(cube, options.detection_unit),
        agreement_by_judge_pair(cube.stable, choices, cube.judges),
        profiles_table(cube.stable, choices, cube.judges, cube.attributes),
        items,
    )
