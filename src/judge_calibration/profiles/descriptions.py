"""What a panel's reads are worth: by judge, by judge and source, by attribute, by family."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from judge_calibration.profiles.attribute_table import COLUMNS, attribute_table
from judge_calibration.profiles.by_attribute import agreement_by_group, count_by_attribute
from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.panel import Panel

_STRATA = ("all", "same", "opposite")
AGREEMENT_COLUMNS = tuple(
    f"{name}_{stratum}" for stratum in _STRATA for name in ("agreement", "joint_coverage", "judge_pairs")
)


def describe_panel(
    panel: Panel,
    outcomes: pd.DataFrame,
    families: dict[str, str],
    origins: dict[str, str],
    position_limit: float,
    unit: Literal["reads", "cells"],
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Describe a panel's reads.

    Parameters
    ----------
    panel : Panel
    outcomes : pandas.DataFrame
        judge_id, outcome, reads (counts), where reads tell them.
    families, origins : dict of str to str
        Of each attribute, by its name in tables.
    position_limit : float
    unit : {"reads", "cells"}
        Of detection.

    Returns
    -------
    coverage : pandas.DataFrame
        :func:`judge_calibration.profiles.coverage.coverage_table` with items_by {all, source}, items,
        simulated, and definite_verdicts (items with an overall choice; ``no_definite_verdict`` in
        verdicts_undefined where it is 0).
    attributes : pandas.DataFrame
        :func:`judge_calibration.profiles.attribute_table.attribute_table` for each panel, with family,
        origin, and agreement and joint coverage by stratum (means over judge pairs).
    families : pandas.DataFrame
        A row a panel and family: attributes, core (how many are in it), detection and order_consistency
        (means over attributes), and agreement by stratum over the family's cells.
    """
    attributes, family_rows = [], []
    counted = count_by_attribute(panel.cube.codes, panel.verdicts)
    counts = code_counts(panel.cube.codes)
    names = panel.cube.attributes
    own = np.array([families.get(name, "") for name in names], dtype=object)
    for name, judges in panel.panels.items():
        table = attribute_table(counts[judges], names, len(panel.items), unit)
        pairs = panel.pairs_of(judges)
        if len(table):
            table = pd.concat(
                [table, agreement_by_group(counted, list(np.eye(len(names), dtype=bool)), pairs)], axis=1
            )
        else:
            table = table.reindex(columns=[*COLUMNS, *AGREEMENT_COLUMNS])
        table.insert(0, "panel", name)
        table.insert(2, "family", table["attribute"].map(families))
        table.insert(3, "origin", table["attribute"].map(origins))
        attributes.append(table)
        present = list(dict.fromkeys(own)) if len(table) else []
        of_family = (
            agreement_by_group(counted, [own == family for family in present], pairs)
            if present
            else pd.DataFrame(columns=list(AGREEMENT_COLUMNS))
        )
        grouped = table.groupby("family", sort=False)
        of_family.insert(
            0, "order_consistency", grouped["order_consistency"].mean().reindex(present).to_numpy(dtype=float)
        )
        of_family.insert(0, "detection", grouped["detection"].mean().reindex(present).to_numpy(dtype=float))
        of_family.insert(0, "core", grouped["core"].sum().reindex(present).to_numpy(dtype=float))
        of_family.insert(0, "attributes", [int((own == family).sum()) for family in present])
        of_family.insert(0, "family", present)
        of_family.insert(0, "panel", name)
        family_rows.append(of_family)
    texts = ("panel", "attribute", "family", "origin", "undefined")
    by_attribute = pd.concat(attributes, ignore_index=True).astype(dict.fromkeys(texts, "str"))
    by_family = pd.concat(family_rows, ignore_index=True).astype({"panel": "str", "family": "str"})
    return _coverage(panel, outcomes, position_limit), by_attribute, by_family


def _coverage(panel: Panel, outcomes: pd.DataFrame, position_limit: float) -> pd.DataFrame:
    sources = panel.items["source"].astype("str")
    everyone = np.ones(len(panel.items), dtype=bool)
    groups = [("all", "all", everyone)]
    if len(set(sources)) > 1:
        groups += [("source", s, (sources == s).to_numpy()) for s in sorted(sources.unique())]
    whole: pd.DataFrame | None = None
    rows = []
    for items_by, name, member in groups:
        counts = code_counts(panel.cube.codes if items_by == "all" else panel.cube.codes[:, member])
        table = coverage_table(counts, panel.cube.judges, int(member.sum()), position_limit)
        definite = (panel.verdicts[:, member] != 0).sum(axis=1)
        table = table.rename(columns={"items": "n_items"})
        table.insert(1, "items_by", items_by)
        table.insert(2, "items", name)
        table["definite_verdicts"] = definite
        table["verdicts_undefined"] = ["no_definite_verdict" if not n else None for n in definite]
        if items_by == "all":
            whole = table
            valid = outcomes[outcomes["outcome"] == "valid"].groupby("judge_id")["reads"].sum()
            told = outcomes.groupby("judge_id")["reads"].sum()
            table["valid"] = [
                int(valid.get(judge, 0)) if judge in told.index else None for judge in table["judge_id"]
            ]
        elif whole is not None:
            # The rule is declared for a judge's reads as a whole.
            table["position_biased"] = whole["position_biased"].to_numpy()
        rows.append(table)
    frame = pd.concat(rows, ignore_index=True)
    frame["simulated"] = bool(panel.items["simulated"].any())
    texts = ("judge_id", "items_by", "items", "undefined", "verdicts_undefined")
    return frame.astype({"valid": "Int64", **dict.fromkeys(texts, "str")})
