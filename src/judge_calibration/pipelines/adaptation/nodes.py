"""Nodes of the pipeline `adaptation`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.adapt.evaluation import reweighting_curves, reweighting_table, sample_efficiency
from judge_calibration.adapt.split import assign_split, split_report
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.options.adaptation import AdaptationOptions
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.storage import pack, unpack_stable

_SIGNS = {"A": 1, "B": -1}
_LABELS = {1: "A", -1: "B"}


def freeze_splits(pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Freeze which side of the 75/25 split every pair is on, and say what that came to in each source."""
    splits = pairs[["pair_id", "source", "base_id", "split"]].reset_index(drop=True)
    return splits, split_report(pairs)


def draw_training_subsets(pairs: pd.DataFrame, options: AdaptationOptions) -> pd.DataFrame:
    """Rank the labelled training pairs of every source; every method and budget takes the first of them."""
    return training_subsets(pairs, options.budgets, options.resamples)


def simulate_reads(options: AdaptationOptions) -> pd.DataFrame:
    """Draw the SIMULATED panel: one row a judge and item, reads packed in one small integer an attribute."""
    planted = options.panel
    panel = simulate_panel(
        options.seed,
        planted.n_judges,
        planted.n_items,
        planted.n_attributes,
        planted.n_sources,
        planted.preferences,
        (planted.resolution_low, planted.resolution_high),
        (planted.accuracy_low, planted.accuracy_high),
        planted.position_share,
        planted.strength,
    )
    codes = pack(panel.first, panel.second)
    width = len(str(planted.n_attributes))
    frames = []
    for j in range(planted.n_judges):
        frame = pd.DataFrame(
            {
                "judge_id": f"SIMULATED-judge-{j + 1}",
                "pair_id": [f"SIMULATED-{i:06d}" for i in range(planted.n_items)],
                "source": [f"SIMULATED-source-{s + 1}" for s in panel.source],
                "reference_label": [_LABELS[int(v)] for v in panel.reference],
                "verdict": [_LABELS[int(v)] for v in panel.verdicts[j]],
            }
        )
        reads = pd.DataFrame(
            codes[j], columns=[f"attribute_{k + 1:0{width}d}" for k in range(codes.shape[2])]
        )
        frames.append(pd.concat([frame, reads], axis=1))
    panel_frame = pd.concat(frames, ignore_index=True)
    # Simulated items stand alone: each is a base task of its own.
    panel_frame.insert(2, "base_id", panel_frame["pair_id"])
    panel_frame.insert(5, "split", assign_split(panel_frame))
    return panel_frame


def adapt_by_reweighting(
    simulated_panel: pd.DataFrame, options: AdaptationOptions
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Fit every simulated judge, source and budget; tabulate gains with intervals, and the curves.

    Returns
    -------
    adaptation_table : pandas.DataFrame
        method, judge_id, source, budget, n_train, n_test, accuracy_base, accuracy, delta, delta_low,
        delta_high (points), undefined, simulated: on the frozen subsets (resample 0).
    sample_efficiency : pandas.DataFrame
        budget, accuracy, accuracy_base, sd_over_resamples, n_fits, n_undefined, simulated.
    """
    attributes = [name for name in simulated_panel.columns if name.startswith("attribute_")]
    judges = tuple(dict.fromkeys(simulated_panel["judge_id"]))
    by_judge = [simulated_panel[simulated_panel["judge_id"] == judge] for judge in judges]
    items = by_judge[0].reset_index(drop=True)
    stable = np.stack([unpack_stable(frame[attributes].to_numpy(dtype=np.int8)) for frame in by_judge])
    verdicts = np.stack([frame["verdict"].map(_SIGNS).to_numpy(dtype=np.int8) for frame in by_judge])
    reference = items["reference_label"].map(_SIGNS).to_numpy(dtype=np.int8)
    sources = tuple(sorted(set(items["source"])))
    source = pd.Categorical(items["source"], sources).codes
    test = (items["split"] == "test").to_numpy()
    clusters = items["base_id"].to_numpy(dtype=object)

    subsets = training_subsets(items, options.budgets, options.resamples)
    rank = np.full((options.resamples, len(items)), -1)
    row_of = {pair: row for row, pair in enumerate(items["pair_id"])}
    rows = subsets["pair_id"].map(row_of).to_numpy()
    rank[subsets["resample"].to_numpy(), rows] = subsets["rank"].to_numpy()

    table = []
    for s, source_name in enumerate(sources):
        ordered = np.flatnonzero((source == s) & (rank[0] >= 0))
        ordered = ordered[np.argsort(rank[0, ordered])]
        test_rows = np.flatnonzero((source == s) & test)
        for j, judge in enumerate(judges):
            for budget in (*options.budgets, None):
                row = reweighting_table(
                    stable[j],
                    verdicts[j],
                    reference,
                    clusters,
                    ordered[:budget],
                    test_rows,
                    options.penalty,
                    options.bootstrap,
                    options.seed,
                )
                name = {"method": "reweighting", "judge_id": judge, "source": source_name}
                table.append(name | {"budget": "full" if budget is None else str(budget)} | row)
    curves = reweighting_curves(
        stable, verdicts, reference, source, rank, test, judges, sources, options.budgets
    )
    return (
        pd.DataFrame(table).assign(simulated=True),
        sample_efficiency(curves).assign(simulated=True),
    )
