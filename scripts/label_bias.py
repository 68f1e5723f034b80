"""Measure how far the judges of an environment prefer a label whatever the answers are.

    python scripts/label_bias.py --env attributes

asks every judge that reads log-probabilities and declares no `label_bias`, on pairs of the bank that the
environment does not judge (the next ones of its draw by hash, of other base tasks while there are some), in
both orders: over both orders no label ought to be favoured. It prints how much more log-probability B has
than A, with a 95 % interval over pairs, and the `label_bias` that takes it off, for reads of attributes and
for overall choices apart. Answers stay in the call store, so a second run asks nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.bank import build_pairs, load_bank
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.planning import plan_attribute_calls, plan_calls
from judge_calibration.judges.reading import estimate_label_bias
from judge_calibration.options.attributes import AttributesOptions
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.options.judging import JudgeSpec, JudgingOptions
from judge_calibration.pipelines.attributes.nodes import criteria_of
from judge_calibration.profiles.inventory import read_inventory
from judge_calibration.sources.draw import draw_pairs


class Preference(NamedTuple):
    """Mean of log P(B) - log P(A) over pairs, its 95 % interval, pairs, and reads that list both labels."""

    mean: float
    low: float
    high: float
    pairs: int
    reads: int


def pairs_apart(pairs: pd.DataFrame, judged: int, size: int, salt: str) -> pd.DataFrame:
    """Return the `size` pairs that a draw takes after the `judged` ones: a longer draw holds the shorter."""
    taken = set(draw_pairs(pairs, judged, salt)["pair_id"])
    longer = draw_pairs(pairs, judged + size, salt)
    return longer[~longer["pair_id"].isin(taken)].reset_index(drop=True)


def without_bias(options: JudgingOptions, protocol: str) -> JudgingOptions | None:
    """Return the judges whose log-probabilities are read as they are, with that protocol alone."""
    judges: list[JudgeSpec] = []
    for judge in options.judges:
        uses = tuple(
            use
            for use in judge.protocols
            if use.name == protocol and not use.label_bias and use.variant in (None, "likelihood")
        )
        if uses:
            judges.append(judge.model_copy(update={"protocols": uses}))
    return options.model_copy(update={"judges": tuple(judges)}) if judges else None


def preference_by_pair(
    calls: pd.DataFrame, answers: pd.DataFrame, options: JudgingOptions, probes: bool
) -> dict[str, Preference]:
    """Return every judge's preference for the label B over A. Pairs count alike."""
    from scipy import stats

    found: dict[str, list[tuple[float, int]]] = {}
    for _, own in calls.groupby("pair_id", sort=False):
        bias = estimate_label_bias(own, answers, options, probes)
        for judge, rows in bias.groupby("judge_id", sort=False):
            by_label = rows.set_index("label")
            # A pair none of whose reads lists one of the labels has no difference.
            if {"A", "B"} <= set(by_label.index):
                means, n = by_label["mean_logprob"], int(by_label.loc[["A", "B"], "n"].min())
                found.setdefault(str(judge), []).append((float(means["B"] - means["A"]), n))
    result = {}
    for judge, values in found.items():
        each = np.array([value for value, _ in values])
        half = stats.t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
        reads = sum(n for _, n in values)
        result[judge] = Preference(each.mean(), each.mean() - half, each.mean() + half, len(each), reads)
    return result


def main() -> None:
    """Ask, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--env", default="attributes")
    parser.add_argument("--pairs", type=int, default=24, help="pairs set apart (24)")
    parser.add_argument("--every", type=int, default=3, help="ask every n-th attribute of the inventory (3)")
    parser.add_argument("--store", default="data/calls")
    given = parser.parse_args()
    parameters = _parameters(given.env)
    attributes = AttributesOptions.model_validate(parameters["attributes"])
    judged = DataPrepOptions.model_validate(parameters["data_prep"]).judged
    bank = build_pairs(load_bank(Path("data/01_raw/pair_bank")))
    pairs = pairs_apart(bank, judged.size or 0, given.pairs, judged.salt)
    criteria = criteria_of(read_inventory(_inventory()), attributes)
    plans = (
        ("reads of attributes", without_bias(attributes.judging, "attribute"), criteria[:: given.every]),
        (
            "overall choices",
            without_bias(JudgingOptions.model_validate(parameters["judging"]), "likelihood"),
            None,
        ),
    )
    for what, options, asked in plans:
        if options is None:
            print(f"{what}: no judge reads log-probabilities without a declared label_bias")
            continue
        calls = plan_calls(pairs, options) if asked is None else plan_attribute_calls(pairs, asked, options)
        answers, _ = ask_calls(calls, options, Path(given.store))
        for judge, one in preference_by_pair(calls, answers, options, asked is not None).items():
            half = round(one.mean / 2, 3)
            print(
                f"{what}, {judge}: B above A by {one.mean:.3f} ({one.low:.3f} to {one.high:.3f}; "
                f"{one.pairs} pairs, {one.reads:,} reads): label_bias: {{A: {-half}, B: {half}}}"
            )


def _parameters(env: str) -> dict[str, Any]:
    from kedro.config import OmegaConfigLoader

    from judge_calibration.settings import CONFIG_LOADER_ARGS

    arguments: dict[str, Any] = {**CONFIG_LOADER_ARGS}
    loader = OmegaConfigLoader("conf", env=env, **arguments)
    return dict(loader["parameters"])


def _inventory() -> dict[str, Any]:
    import yaml

    path = Path("data/01_raw/attributes/inventory.yml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
