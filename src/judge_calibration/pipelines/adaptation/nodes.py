"""Nodes of the pipeline `adaptation` that freeze the split, draw pairs, and reweight attribute reads."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from judge_calibration import schemas
from judge_calibration.adapt.adaptation_checks import check_names
from judge_calibration.adapt.before_after import BASE, SIMULATED
from judge_calibration.adapt.probability_calibration import probability_calibration
from judge_calibration.adapt.reweighting_panel import LabelledReads, PanelReweighting, reweight_panel
from judge_calibration.adapt.split import assign_split, split_report
from judge_calibration.adapt.subsets import training_subsets
from judge_calibration.options.adaptation import AdaptationOptions, HeldOutOptions
from judge_calibration.profiles.cube import cube_from_reads
from judge_calibration.profiles.panel_simulation import simulate_panel
from judge_calibration.profiles.storage import pack, unpack_stable
from judge_calibration.sources.draw import draw_pairs
from judge_calibration.text import canonical_json, sha256_of

_SIGNS = {"A": 1, "B": -1}
_LABELS = {1: "A", -1: "B"}
_SHAPE = ["protocol", "constraint", "temperature"]
METHOD = "reweighting"


def freeze_splits(pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Freeze which side of the 75/25 split every pair is on, and say what that came to in each source."""
    splits = pairs[["pair_id", "source", "base_id", "split"]].reset_index(drop=True)
    return splits, split_report(pairs)


def draw_training_subsets(
    pairs: pd.DataFrame, judged_pairs: pd.DataFrame, options: AdaptationOptions
) -> pd.DataFrame:
    """Rank the labelled training pairs of every source; every method and budget takes the first of them."""
    check_names(pairs, options)
    return training_subsets(_population(pairs, judged_pairs, options), options.budgets, options.resamples)


def draw_held_out(
    pairs: pd.DataFrame, judged_pairs: pd.DataFrame, options: AdaptationOptions
) -> pd.DataFrame:
    """Draw the held-out pairs that all methods are compared on: by hash, spread over the strata."""
    check_names(pairs, options)
    return _draw(_population(pairs, judged_pairs, options), options.held_out)


def draw_controlled(pairs: pd.DataFrame, options: AdaptationOptions) -> pd.DataFrame:
    """Draw the held-out pairs with a controlled change that every adapted judge is asked about."""
    check_names(pairs, options)
    if options.controlled is None:
        return schemas.empty(schemas.PAIRS)
    return _draw(pairs[pairs["manipulation"].notna()], options.controlled)


def _draw(wanted: pd.DataFrame, draw: HeldOutOptions) -> pd.DataFrame:
    wanted = wanted[wanted["split"] == "test"]
    if draw.sources:
        wanted = wanted[wanted["source"].isin(draw.sources)]
    if draw.manipulations:
        kinds = wanted["manipulation"]
        wanted = wanted[kinds.isna() | kinds.isin(draw.manipulations)]
    drawn = [draw_pairs(part, draw.size, draw.salt) for _, part in wanted.groupby("source", sort=True)]
    if not drawn:
        return schemas.empty(schemas.PAIRS)
    return schemas.conform(pd.concat(drawn, ignore_index=True), schemas.PAIRS)


def _population(pairs: pd.DataFrame, judged_pairs: pd.DataFrame, options: AdaptationOptions) -> pd.DataFrame:
    if options.population == "pairs":
        return pairs
    return pairs[pairs["pair_id"].isin(judged_pairs["pair_id"])]


def simulate_reads(options: AdaptationOptions) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw the SIMULATED panel, and say what was planted.

    Returns
    -------
    simulated_panel : pandas.DataFrame
        One row a judge and item, reads packed in one small integer an attribute.
    planted_weights : pandas.DataFrame
        source, attribute, weight; 0 in sources whose references are drawn by a coin.
    """
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
    names = [f"SIMULATED-source-{s + 1}" for s in range(planted.n_sources)]
    by_coin = panel.source >= planted.n_sources - planted.coin_sources
    coin = np.random.default_rng([options.seed, 1]).choice(np.array([-1, 1]), planted.n_items)
    reference = np.where(by_coin, coin, panel.reference)
    codes = pack(panel.first, panel.second)
    width = len(str(planted.n_attributes))
    attributes = [f"attribute_{k + 1:0{width}d}" for k in range(codes.shape[2])]
    weights = panel.reference_weights.copy()
    weights[planted.n_sources - planted.coin_sources :] = 0.0
    frames = []
    for j in range(planted.n_judges):
        frame = pd.DataFrame(
            {
                "judge_id": f"SIMULATED-judge-{j + 1}",
                "pair_id": [f"SIMULATED-{i:06d}" for i in range(planted.n_items)],
                "source": [names[s] for s in panel.source],
                "reference_label": [_LABELS[int(v)] for v in reference],
                "verdict": [_LABELS.get(int(v)) for v in panel.verdicts[j]],
            }
        )
        reads = pd.DataFrame(codes[j], columns=attributes)
        frames.append(pd.concat([frame, reads], axis=1))
    panel_frame = pd.concat(frames, ignore_index=True)
    # Simulated items stand alone: each is a base task of its own.
    panel_frame.insert(2, "base_id", panel_frame["pair_id"])
    panel_frame.insert(5, "split", assign_split(panel_frame))
    planted_weights = pd.DataFrame(
        {
            "source": np.repeat(names, len(attributes)),
            "attribute": attributes * len(names),
            "weight": weights.ravel(),
        }
    )
    return panel_frame, planted_weights


class ReweightedPanel(NamedTuple):
    """What `reweight_reads` gives, in the order of the node's outputs."""

    reweighting_fits: pd.DataFrame
    reweighting_coefficients: pd.DataFrame
    reweighting_predictions: pd.DataFrame
    reweighting_calibration: pd.DataFrame
    reweighting_reliability: pd.DataFrame
    reweighted_verdicts: pd.DataFrame


def reweight_reads(
    held_out_pairs: pd.DataFrame,
    pairs: pd.DataFrame,
    reads: pd.DataFrame,
    verdicts: pd.DataFrame,
    asked_verdicts: pd.DataFrame,
    training_subsets: pd.DataFrame,
    simulated_panel: pd.DataFrame,
    options: AdaptationOptions,
) -> ReweightedPanel:
    """Fit every judge that read attributes, and every SIMULATED one, on every source, budget and resample.

    A judge's base is what it said on the held-out pairs when it was asked beside adapted judges, else its
    first cell in the table `verdicts`. A reweighting of a real judge becomes rows of verdicts, with an
    instrument id of its own, that do not depend on the order.
    """
    base = _base_rows(verdicts, asked_verdicts, reads, held_out_pairs)
    real = labelled_reads(reads, pairs, held_out_pairs, training_subsets, base)
    planted = simulated_reads(simulated_panel, options)
    how = (options.budgets, options.penalty, options.intercept)
    found = [(reweight_panel(planted, *how), True)]
    if real is not None:
        found.insert(0, (reweight_panel(real, *how), False))
    fits, coefficients, predictions = (
        pd.concat([getattr(part, name).assign(simulated=simulated) for part, simulated in found])
        .reset_index(drop=True)
        .infer_objects()
        for name in ("curves", "coefficients", "predictions")
    )
    # A source that a program made is SIMULATED whoever read it.
    for table in (fits, coefficients, predictions):
        table["simulated"] |= table["source"].str.startswith(SIMULATED)
    summaries, curves = [], []
    for simulated, part in predictions.groupby("simulated", sort=True):
        summary, curve = probability_calibration(part, options.bins, options.bootstrap, options.seed)
        summaries.append(summary.assign(simulated=simulated))
        curves.append(curve.assign(simulated=simulated))
    rows = _empty_adapted()
    if real is not None:
        rows = reweighted_rows(found[0][0], base, training_subsets, reads, options)
    return ReweightedPanel(
        fits,
        coefficients,
        predictions,
        pd.concat(summaries, ignore_index=True),
        pd.concat(curves, ignore_index=True),
        rows,
    )


def _empty_adapted() -> pd.DataFrame:
    frame = schemas.empty(schemas.VERDICT_ROWS)
    for name in ("method", "budget", "source", "base_judge"):
        frame[name] = pd.Series(dtype="str")
    frame["resample"] = pd.Series(dtype="Int64")
    return frame


def adapted_rows(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return parts of the table of adapted verdicts as one, typed; empty with all columns without any."""
    known = [part for part in parts if len(part)]
    if not known:
        return _empty_adapted()
    frame = schemas.conform(pd.concat(known, ignore_index=True), schemas.VERDICT_ROWS)
    text = dict.fromkeys(("method", "budget", "source", "base_judge"), "str")
    return frame.astype({**text, "resample": "Int64"})


def _base_rows(
    verdicts: pd.DataFrame, asked: pd.DataFrame, reads: pd.DataFrame, held_out: pd.DataFrame
) -> pd.DataFrame:
    """Return the base verdicts, on held-out pairs, of the judges that read attributes."""
    out = []
    for judge in dict.fromkeys(reads["judge_id"]):
        own = asked[(asked["method"] == BASE) & (asked["judge_id"] == judge)]
        if own.empty:
            own = verdicts[(verdicts["judge_id"] == judge) & verdicts["pair_id"].isin(held_out["pair_id"])]
        if own.empty:
            continue
        shapes = own[_SHAPE].drop_duplicates(ignore_index=True)
        first = own.groupby(_SHAPE, dropna=False, sort=False).ngroup() == 0
        own = own[first] if len(shapes) > 1 else own
        out.append(own.assign(method=BASE, budget=None, resample=None, source="all", base_judge=judge))
    return adapted_rows(out)


def labelled_reads(
    reads: pd.DataFrame,
    pairs: pd.DataFrame,
    held_out: pd.DataFrame,
    subsets: pd.DataFrame,
    base: pd.DataFrame,
) -> LabelledReads | None:
    """Arrange real reads beside reference, split and subsets; None where nothing was read.

    Of the test side only held-out pairs enter; of the training side only pairs of the shared subsets.
    """
    if reads.empty:
        return None
    cube = cube_from_reads(reads, tuple(dict.fromkeys(reads["attribute"])))
    facts = pairs.set_index("pair_id").reindex(list(cube.items))
    place = {pair: i for i, pair in enumerate(cube.items)}
    rank = np.full((int(subsets["resample"].max()) + 1 if len(subsets) else 1, len(place)), -1)
    known = subsets[subsets["pair_id"].isin(place)]
    rank[known["resample"].to_numpy(int), known["pair_id"].map(place).to_numpy(int)] = known["rank"]
    right = np.full((len(cube.judges), len(place)), np.nan)
    rows = base[(base["repetition"] == 0) & base["pair_id"].isin(place)]
    reference = facts["reference_label"]
    said = rows["verdict"].where(rows["outcome"] == "valid").fillna("").to_numpy(object)
    is_right = pd.Series((said == reference.reindex(rows["pair_id"]).to_numpy(object)).astype(float))
    shares = is_right.groupby([rows["judge_id"].to_numpy(), rows["pair_id"].to_numpy()]).mean()
    for key, value in shares.items():
        judge, pair = cast("tuple[str, str]", key)
        right[cube.judges.index(judge), place[pair]] = value
    test = (facts["split"] == "test") & facts.index.isin(held_out["pair_id"])
    return LabelledReads(
        cube.judges,
        cube.items,
        cube.attributes,
        cube.stable,
        right,
        reference.map(_SIGNS).fillna(0).to_numpy(np.int8),
        facts["source"].fillna("unknown").to_numpy(object),
        facts["base_id"].fillna("unknown").to_numpy(object),
        rank,
        test.to_numpy(bool),
    )


def simulated_reads(simulated_panel: pd.DataFrame, options: AdaptationOptions) -> LabelledReads:
    """Arrange the SIMULATED panel in the same way, with subsets of its own."""
    attributes = tuple(name for name in simulated_panel.columns if name.startswith("attribute_"))
    judges = tuple(dict.fromkeys(simulated_panel["judge_id"]))
    by_judge = [simulated_panel[simulated_panel["judge_id"] == judge] for judge in judges]
    items = by_judge[0].reset_index(drop=True)
    reference = items["reference_label"].map(_SIGNS).to_numpy(dtype=np.int8)
    subsets = training_subsets(items, options.budgets, options.resamples)
    rank = np.full((options.resamples, len(items)), -1)
    place = {pair: row for row, pair in enumerate(items["pair_id"])}
    rank[subsets["resample"].to_numpy(int), subsets["pair_id"].map(place).to_numpy(int)] = subsets["rank"]
    verdicts = np.stack(
        [frame["verdict"].map(_SIGNS).fillna(0).to_numpy(dtype=np.int8) for frame in by_judge]
    )
    return LabelledReads(
        judges,
        tuple(items["pair_id"]),
        attributes,
        np.stack([unpack_stable(frame[list(attributes)].to_numpy(dtype=np.int8)) for frame in by_judge]),
        (verdicts == reference).astype(float),
        reference,
        items["source"].to_numpy(object),
        items["base_id"].to_numpy(object),
        rank,
        (items["split"] == "test").to_numpy(),
    )


def reweighted_rows(
    found: PanelReweighting,
    base: pd.DataFrame,
    subsets: pd.DataFrame,
    reads: pd.DataFrame,
    options: AdaptationOptions,
) -> pd.DataFrame:
    """Return reweightings of the frozen subsets as verdicts on held-out pairs, after the base verdicts.

    Both orders hold the same verdict: stable directions have no order (flag ``order_free``). A probability of
    one half is an ABSTAIN. The instrument id is the hash of the reading instrument, the training pairs and
    the penalty.
    """
    shapes = base.drop_duplicates("judge_id").set_index("judge_id")
    readers = (
        reads.drop_duplicates("judge_id").set_index("judge_id")["instrument_id"]
        if "instrument_id" in reads.columns
        else pd.Series(dtype="str")
    )
    frozen = subsets[subsets["resample"] == 0]
    parts: list[pd.DataFrame] = [base]
    for key, part in found.predictions.groupby(["judge_id", "source", "budget"], sort=False):
        judge, source, budget = map(str, key)
        ranked = frozen[frozen["source"] == source]
        trained = ranked if budget == "full" else ranked[ranked["rank"] < int(budget)]
        identity: dict[str, Any] = {
            "rule": METHOD,
            "version": 2,
            "reader": str(readers.get(judge, judge)),
            "source": source,
            "training_pairs": sorted(trained["pair_id"]),
            "penalty": options.penalty,
            "intercept": options.intercept,
        }
        shape = shapes.loc[judge] if judge in shapes.index else None
        verdict = part["predicted"].map({1: "A", -1: "B", 0: "ABSTAIN"})
        probability = np.maximum(part["probability"], 1 - part["probability"])
        rows = pd.DataFrame(
            {
                "pair_id": part["pair_id"],
                "judge_id": f"{judge}+reweighting-{source}-{budget}",
                "instrument_id": sha256_of(identity),
                "protocol": METHOD if shape is None else shape["protocol"],
                "constraint": None if shape is None else shape["constraint"],
                "temperature": np.nan if shape is None else shape["temperature"],
                "repetition": 0,
                "outcome": "valid",
                "verdict": verdict,
                "shown_winner": None,
                "logprob_confidence": probability,
                "flags": canonical_json(["order_free"]),
                "method": METHOD,
                "budget": budget,
                "resample": 0,
                "source": source,
                "base_judge": judge,
            }
        )
        parts += [rows.assign(order=order) for order in ("AB", "BA")]
    return adapted_rows(parts)
