"""From asked, imported or simulated reads to one panel: reads, items, overall choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.options.attributes import AttributesOptions, PanelOptions, ScreeningOptions
from judge_calibration.profiles.code_counts import code_counts
from judge_calibration.profiles.coverage import coverage_table
from judge_calibration.profiles.cube import ReadCube, cube_from_reads
from judge_calibration.profiles.holistic import holistic_verdicts
from judge_calibration.profiles.packed_tables import attribute_columns, from_tables, joined, to_tables
from judge_calibration.profiles.panel import CHOICE_RULES, Panel, choice_matrix, choice_rows
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.read_files import import_reads

ITEM_COLUMNS = ("pair_id", "base_id", "source", "reference_label", "simulated")
PLANTED_COLUMNS = (
    *("judge_id", "attribute", "resolution", "position", "accuracy", "picks_second", "weight", "simulated"),
)
SCREENING_COLUMNS = ("source", "items", "kept", "judge_id", "least_stable")
REUSE_COLUMNS = (
    *("judge_id", "calls", "answered", "prompt_tokens", "cached_tokens", "reuse", "completion_tokens"),
    "undefined",
)
_LABELS = np.array(["B", None, "A"], dtype=object)


class Gathered(NamedTuple):
    """A panel in tables.

    cube : ReadCube
    outcomes : pandas.DataFrame
        judge_id, outcome, reads: outcomes of the reads that tell them.
    items : pandas.DataFrame
        pair_id, base_id, source, reference_label, simulated.
    choices : pandas.DataFrame
        judge_id, pair_id, and the overall choice by the rules first_order and order_stable (A, B or null).
    planted : pandas.DataFrame
        What was planted in a SIMULATED panel; empty otherwise.
    screening : pandas.DataFrame
        Items before and after screening, by source; empty without screening.
    """

    cube: ReadCube
    outcomes: pd.DataFrame
    items: pd.DataFrame
    choices: pd.DataFrame
    planted: pd.DataFrame
    screening: pd.DataFrame

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the reads packed: one table a judge."""
        return to_tables(self.cube)


def gather(
    reads: pd.DataFrame,
    verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    attributes: Sequence[str],
    options: AttributesOptions,
) -> Gathered:
    """Bring reads together.

    Parameters
    ----------
    reads, verdicts, pairs : pandas.DataFrame
        The canonical tables; `reads` are those that were asked here.
    attributes : sequence of str
        Names as in tables.
    options : AttributesOptions
        Names files of reads, or a panel to simulate instead of everything else.

    Raises
    ------
    ReadsError
        Reads that do not make a complete panel, with every problem.
    """
    if options.panel is not None:
        return _screened(_simulated(options.panel, attributes, options.seed), options.screening)
    cubes, outcomes = [], []
    if len(reads) or not options.reads_files:
        cubes.append(cube_from_reads(reads, attributes))
        outcomes.append(reads[["judge_id", "outcome"]])
    if options.reads_files:
        imported = import_reads(options.reads_files, attributes, list(pairs["pair_id"]))
        cubes.append(imported.cube)
        outcomes.append(imported.outcomes)
    cube = cubes[0] if len(cubes) == 1 else joined(cubes)
    items = (
        pairs.set_index("pair_id").loc[list(cube.items)].reset_index() if len(cube.items) else pairs.head(0)
    )
    items = items.assign(simulated=False)[list(ITEM_COLUMNS)]
    holistic = options.holistic
    cell = (holistic.protocol, holistic.constraint, holistic.temperature)
    matrices = {
        rule: holistic_verdicts(verdicts, cube.judges, cube.items, rule, *cell)  # type: ignore[arg-type]
        for rule in CHOICE_RULES
    }
    counted = (
        pd.concat(outcomes)
        .groupby(["judge_id", "outcome"], sort=True)
        .size()
        .rename("reads")
        .reset_index()
        .astype({"judge_id": "str", "outcome": "str"})
    )
    gathered = Gathered(
        cube,
        counted,
        items,
        choice_rows(matrices, cube.judges, cube.items),
        pd.DataFrame(columns=list(PLANTED_COLUMNS)),
        pd.DataFrame(columns=list(SCREENING_COLUMNS)),
    )
    return _screened(gathered, options.screening)


def _simulated(planted: PanelOptions, attributes: Sequence[str], seed: int) -> Gathered:
    panel = simulate_panel(
        seed,
        planted.n_judges,
        planted.n_items,
        len(attributes),
        planted.n_sources,
        planted.preferences,
        (planted.resolution_low, planted.resolution_high),
        (planted.accuracy_low, planted.accuracy_high),
        planted.position_share,
        planted.strength,
        planted.attribute_spread,
        planted.biased_judges,
        planted.biased_share,
        planted.unresolved_share,
    )
    width = len(str(planted.n_judges))
    judges = tuple(
        f"SIMULATED-{'second' if second else 'judge'}-{j + 1:0{width}d}"
        for j, second in enumerate(panel.picks_second)
    )
    digits = len(str(planted.n_items))
    ids = tuple(f"SIMULATED-{i + 1:0{digits}d}" for i in range(planted.n_items))
    sources = len(str(planted.n_sources))
    items = pd.DataFrame(
        {
            "pair_id": ids,
            "base_id": ids,
            "source": [f"SIMULATED-source-{s + 1:0{sources}d}" for s in panel.source],
            "reference_label": _LABELS[panel.reference.astype(np.int64) + 1],
        }
    ).astype("str")
    n = len(attributes)
    table = pd.DataFrame(
        {
            "judge_id": np.repeat(np.array(judges, dtype=object), n),
            "attribute": list(attributes) * len(judges),
            "resolution": panel.resolution.ravel(),
            "position": panel.position.ravel(),
            "accuracy": np.repeat(panel.accuracy, n),
            "picks_second": np.repeat(panel.picks_second, n),
            "weight": panel.weights.ravel(),
            "simulated": True,
        }
    ).astype({"judge_id": "str", "attribute": "str"})
    both = np.where(panel.verdicts == panel.second_verdicts, panel.verdicts, np.int8(0))
    return Gathered(
        ReadCube.of_directions(judges, ids, tuple(attributes), panel.first, panel.second),
        pd.DataFrame({"judge_id": judges, "outcome": "valid", "reads": 2 * n * planted.n_items}).astype(
            {"judge_id": "str", "outcome": "str"}
        ),
        items.assign(simulated=True),
        choice_rows({"first_order": panel.verdicts, "order_stable": both}, judges, ids),
        table,
        pd.DataFrame(columns=list(SCREENING_COLUMNS)),
    )


def _screened(gathered: Gathered, screening: ScreeningOptions | None) -> Gathered:
    """Keep the items on which the named judge has enough stable directions."""
    if screening is None:
        return gathered
    cube = gathered.cube
    if screening.judge not in cube.judges:
        raise OptionsError(
            "The collection is to be screened by a judge that has no reads.",
            [
                Problem(
                    "attributes.screening.judge", repr(screening.judge), "one of " + ", ".join(cube.judges)
                )
            ],
        )
    codes = cube.codes[cube.judges.index(screening.judge)]
    keep = ((codes == 8) | (codes == 0)).sum(axis=1) >= screening.least_stable
    items = gathered.items.reset_index(drop=True)
    counts = (
        pd.DataFrame({"source": items["source"], "kept": keep})
        .groupby("source", sort=True)["kept"]
        .agg(["size", "sum"])
        .reset_index()
    )
    table = pd.DataFrame(
        {
            "source": counts["source"],
            "items": counts["size"].astype(np.int64),
            "kept": counts["sum"].astype(np.int64),
            "judge_id": screening.judge,
            "least_stable": screening.least_stable,
        }
    )
    kept = set(items.loc[keep, "pair_id"])
    return gathered._replace(
        cube=cube.of_items(keep),
        items=items[keep].reset_index(drop=True),
        choices=gathered.choices[gathered.choices["pair_id"].isin(kept)].reset_index(drop=True),
        screening=table,
    )


def panel_of(
    read_panel: dict[str, pd.DataFrame],
    items: pd.DataFrame,
    choices: pd.DataFrame,
    options: AttributesOptions,
) -> Panel:
    """Return the panel of gathered tables, with its reduced panel by the declared rule of position bias."""
    names = attribute_columns(read_panel)
    cube = from_tables(read_panel, names)
    verdicts = choice_matrix(choices, cube.judges, cube.items, options.holistic.rule)
    coverage = coverage_table(code_counts(cube.codes), cube.judges, len(cube.items), options.position_limit)
    reduced = ~coverage["position_biased"].to_numpy(dtype=bool)
    return Panel(cube, verdicts, items.reset_index(drop=True), reduced)


def other_choices(panel: Panel, choices: pd.DataFrame, options: AttributesOptions) -> tuple[np.ndarray, str]:
    """Return overall choices by the rule that is not the declared one, and that rule's name."""
    other = next(rule for rule in CHOICE_RULES if rule != options.holistic.rule)
    return choice_matrix(choices, panel.cube.judges, panel.cube.items, other), other


def prefix_reuse(calls: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """Count prompt tokens that were in a judge's cache already.

    Returns
    -------
    pandas.DataFrame
        A row a judge: calls, answered, prompt_tokens, cached_tokens (sums over the answers that tell both),
        reuse (their ratio, in [0, 1]; NaN, reason ``usage_missing``, where none does), completion_tokens.
    """
    usage = ["prompt_tokens", "cached_tokens", "completion_tokens"]
    planned = calls[["call_id", "judge_id"]].drop_duplicates()
    came = answers.loc[answers["failure"].isna(), ["call_id", *usage]].assign(came=True)
    merged = planned.merge(came, on="call_id", how="left")
    rows: list[dict[str, Any]] = []
    for judge, part in merged.groupby("judge_id", sort=False):
        told = part.dropna(subset=["prompt_tokens", "cached_tokens"])
        prompt, cached = int(told["prompt_tokens"].sum()), int(told["cached_tokens"].sum())
        rows.append(
            {
                "judge_id": judge,
                "calls": len(part),
                "answered": int(part["came"].notna().sum()),
                "prompt_tokens": prompt,
                "cached_tokens": cached,
                "reuse": cached / prompt if prompt else np.nan,
                "completion_tokens": int(part["completion_tokens"].fillna(0).sum()),
                "undefined": None if prompt else "usage_missing",
            }
        )
    return pd.DataFrame(rows, columns=list(REUSE_COLUMNS)).astype({"judge_id": "str", "undefined": "str"})
