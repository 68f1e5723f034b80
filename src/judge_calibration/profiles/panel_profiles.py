"""Perception and weight profiles of a panel: how alike, how reliable, and beside judges of one preference."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.options.attributes import NullOptions
from judge_calibration.profiles.correlation import (
    half_sample_reliability,
    identical_preference_null,
    profile_correlations,
    spearman_brown,
)
from judge_calibration.profiles.matched_items import per_judge
from judge_calibration.profiles.panel import Panel
from judge_calibration.profiles.storage import unpack_stable
from judge_calibration.profiles.weights import profiles_table

KINDS = {"perception": "resolution", "weight": "weight"}
SUMMARY_COLUMNS = (
    *("panel", "kind", "n_judges", "n_profiles", "pearson", "spearman", "null", "null_low", "null_high"),
    *("ratio", "repetitions", "half", "corrected", "splits", "undefined", "null_undefined"),
)
RELIABILITY_COLUMNS = (
    *("judge_id", "kind", "half", "half_sd", "corrected", "splits", "splits_defined", "mean_pearson"),
    *("mean_spearman", "flag"),
)


class ProfileTables(NamedTuple):
    """Tables of :func:`profile_panel`."""

    profiles: pd.DataFrame
    correlations: pd.DataFrame
    reliability: pd.DataFrame
    summary: pd.DataFrame


def profile_panel(
    panel: Panel, families: dict[str, str], seed: int, null: NullOptions, c: float, intercept: bool
) -> ProfileTables:
    """Fit every judge's profiles and compare them.

    Parameters
    ----------
    panel : Panel
    families : dict of str to str
        Family of each attribute, by its name in tables.
    seed : int
    null : NullOptions
        Repetitions of the identical-preference null, and random halves.
    c, intercept
        Of the logistic regressions.

    Returns
    -------
    profiles : pandas.DataFrame
        :func:`judge_calibration.profiles.weights.profiles_table` with family.
    correlations : pandas.DataFrame
        :func:`judge_calibration.profiles.correlation.profile_correlations` by kind {perception, weight}.
    reliability : pandas.DataFrame
        A row a judge and kind: half (mean half-sample correlation over the splits that have one), half_sd,
        corrected (Spearman-Brown of half), mean_pearson and mean_spearman (means over the other judges of the
        full panel), flag (``negative_half_correlation``, or why there is none).
    summary : pandas.DataFrame
        A row a panel and kind: mean correlations over judge pairs; for weights the null (its mean, lowest and
        highest over repetitions) and ratio = mean observed / mean null; mean half and corrected.
    """
    cube = panel.cube
    profiles = profiles_table(cube.codes, panel.verdicts, cube.judges, cube.attributes, c, intercept)
    profiles.insert(2, "family", profiles["attribute"].map(families).astype("str"))
    shape = (len(cube.judges), len(cube.attributes))
    arrays = {kind: profiles[column].to_numpy(dtype=float).reshape(shape) for kind, column in KINDS.items()}
    correlations = pd.concat(
        [profile_correlations(arrays[kind], cube.judges).assign(kind=kind) for kind in KINDS],
        ignore_index=True,
    ).astype({"judge_1": "str", "judge_2": "str", "undefined": "str", "kind": "str"})
    reliability = _reliability(panel, arrays["weight"], correlations, seed, null, c, intercept)
    rows = []
    for name, judges in panel.panels.items():
        chosen = panel.pairs_of(judges)
        members = [judge for judge, kept in zip(cube.judges, judges, strict=True) if kept]
        for kind in KINDS:
            rows.append(
                {
                    "panel": name,
                    "kind": kind,
                    "n_judges": int(judges.sum()),
                    "n_profiles": int((~np.isnan(arrays[kind][judges]).any(axis=1)).sum()),
                }
                | _means(correlations[correlations["kind"] == kind][chosen], reliability, members, kind)
                | {"splits": null.splits}
                | (
                    _null(panel, judges, arrays["weight"], seed, null, c, intercept)
                    if kind == "weight"
                    else {}
                )
            )
    summary = pd.DataFrame(rows, columns=list(SUMMARY_COLUMNS))
    names = ("panel", "kind", "undefined", "null_undefined")
    return ProfileTables(profiles, correlations, reliability, summary.astype(dict.fromkeys(names, "str")))


def _reliability(
    panel: Panel,
    weights: np.ndarray,
    correlations: pd.DataFrame,
    seed: int,
    null: NullOptions,
    c: float,
    intercept: bool,
) -> pd.DataFrame:
    from threadpoolctl import threadpool_limits

    others = {
        kind: per_judge(rows, ["pearson", "spearman"]).set_index("judge_id")
        for kind, rows in correlations.groupby("kind", sort=False)
    }
    rows: list[dict[str, Any]] = []
    for j, judge in enumerate(panel.cube.judges):
        with threadpool_limits(limits=1, user_api="blas"):
            splits = half_sample_reliability(
                unpack_stable(panel.cube.codes[j]),
                panel.verdicts[j],
                seed + j,
                null.splits,
                c,
                intercept,
                weights[j],
            )
        for kind in KINDS:
            part = splits[splits["kind"] == kind]
            half = part["half"].dropna()
            value = spearman_brown(float(half.mean())) if len(half) else None
            known = kind in others and judge in others[kind].index
            rows.append(
                {
                    "judge_id": judge,
                    "kind": kind,
                    "half": value.half if value else np.nan,
                    "half_sd": float(half.std()) if len(half) > 1 else np.nan,
                    "corrected": value.corrected if value else np.nan,
                    "splits": null.splits,
                    "splits_defined": len(half),
                    "mean_pearson": others[kind].loc[judge, "pearson"] if known else np.nan,
                    "mean_spearman": others[kind].loc[judge, "spearman"] if known else np.nan,
                    "flag": value.flag if value else part["flag"].iloc[0],
                }
            )
    frame = pd.DataFrame(rows, columns=list(RELIABILITY_COLUMNS))
    return frame.astype({"judge_id": "str", "kind": "str", "flag": "str"})


def _means(
    correlations: pd.DataFrame, reliability: pd.DataFrame, members: list[str], kind: str
) -> dict[str, Any]:
    own = reliability[(reliability["kind"] == kind) & reliability["judge_id"].isin(members)]
    known = correlations.dropna(subset="pearson")
    reason = None
    if not len(known):
        reason = "fewer_than_two_judges" if not len(correlations) else "no_judge_pair_defined"
    return {
        "pearson": float(known["pearson"].mean()) if len(known) else np.nan,
        "spearman": float(known["spearman"].mean()) if len(known) else np.nan,
        "half": float(own["half"].mean()),
        "corrected": float(own["corrected"].mean()),
        "undefined": reason,
    }


def _null(
    panel: Panel,
    judges: np.ndarray,
    weights: np.ndarray,
    seed: int,
    null: NullOptions,
    c: float,
    intercept: bool,
) -> dict[str, Any]:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        result = identical_preference_null(
            unpack_stable(panel.cube.codes[judges]),
            panel.verdicts[judges],
            seed,
            null.repetitions,
            c,
            intercept,
            null.scale,
            weights[judges],
        )
    defined = not np.isnan(result.null)
    return {
        "null": result.null,
        "null_low": float(result.null_by_repetition.min()) if defined else np.nan,
        "null_high": float(result.null_by_repetition.max()) if defined else np.nan,
        "ratio": result.ratio,
        "repetitions": null.repetitions,
        "null_undefined": result.undefined,
    }
