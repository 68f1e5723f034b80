"""Nodes of the pipeline `attributes` that analyse a gathered panel (definitions, section 6)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.pipelines.attributes.nodes import as_panel, families_of, origins_of, true_core
from judge_calibration.profiles.attribute_table import COLUMNS as ATTRIBUTE_COLUMNS
from judge_calibration.profiles.case_view import case_rows, choose_case
from judge_calibration.profiles.descriptions import describe_panel
from judge_calibration.profiles.gathering import other_choices
from judge_calibration.profiles.panel_agreement import compare_judges as compare
from judge_calibration.profiles.panel_profiles import profile_panel
from judge_calibration.profiles.planted import COLUMNS as RECOVERY_COLUMNS
from judge_calibration.profiles.recovery import recovery_table
from judge_calibration.profiles.subjective_set import subjective_items, subjective_overlap

Packed = dict[str, pd.DataFrame]


def describe_reads(
    read_panel: Packed,
    read_outcomes: pd.DataFrame,
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Measure coverage and position preference by judge, detection and agreement by attribute and family."""
    panel = as_panel(read_panel, panel_items, panel_choices, options)
    return describe_panel(
        panel,
        read_outcomes,
        families_of(attribute_inventory),
        origins_of(attribute_inventory),
        options.position_limit,
        options.detection_unit,
    )


def select_items(
    read_panel: Packed,
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Mark the items on which the panel is split, count both panels' selections, pick one to look into."""
    panel = as_panel(read_panel, panel_items, panel_choices, options)
    items = subjective_items(panel, Fraction(options.subjective_threshold))
    overlap = subjective_overlap(items, len(panel.cube.judges), int(panel.reduced.sum()))
    case = case_rows(panel, choose_case(items), families_of(attribute_inventory))
    return items, overlap, case


def compare_judges(
    read_panel: Packed,
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    attribute_table: pd.DataFrame,
    subjective_set: pd.DataFrame,
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Compare all judge pairs: agreement by stratum, gaps, kappas, their summary with intervals, judges."""
    panel = as_panel(read_panel, panel_items, panel_choices, options)
    other, other_rule = other_choices(panel, panel_choices, options)
    return compare(
        panel,
        true_core(attribute_table, panel.cube.attributes),
        subjective_set["selected"].to_numpy(dtype=bool),
        other,
        options.seed,
        options.resamples,
        options.kappa_marginals == "own",
        (options.holistic.rule, other_rule),
    )


def profile_judges(
    read_panel: Packed,
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    attribute_inventory: dict[str, Any],
    options: AttributesOptions,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Fit perception and weight profiles, correlate them, and compare with judges of one preference."""
    panel = as_panel(read_panel, panel_items, panel_choices, options)
    families = families_of(attribute_inventory)
    return profile_panel(
        panel, families, options.seed, options.profile_null, options.penalty, options.intercept
    )


def check_recovery(
    read_panel: Packed,
    panel_items: pd.DataFrame,
    panel_choices: pd.DataFrame,
    panel_planted: pd.DataFrame,
    attribute_table: pd.DataFrame,
    attribute_agreement: pd.DataFrame,
    profiles: pd.DataFrame,
    options: AttributesOptions,
) -> pd.DataFrame:
    """Compare what was planted in a SIMULATED panel with what the tables found; empty for real reads."""
    if panel_planted.empty or options.panel is None or options.screening is not None:
        return pd.DataFrame(columns=list(RECOVERY_COLUMNS))
    panel = as_panel(read_panel, panel_items, panel_choices, options)
    full = attribute_table[attribute_table["panel"] == "full"][list(ATTRIBUTE_COLUMNS)]
    core = full.set_index("attribute").loc[list(panel.cube.attributes), "core"].to_numpy(dtype=bool)
    return recovery_table(
        panel.cube,
        panel_planted,
        attribute_agreement,
        np.asarray(core),
        profiles,
        options.seed,
        options.profile_null.repetitions,
        options.panel.check_items,
    )
