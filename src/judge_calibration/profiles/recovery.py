"""Whether the tables of a SIMULATED panel recover what was planted in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from judge_calibration.profiles import code_counts as cc
from judge_calibration.profiles.correlation import IdenticalPreferenceNull, identical_preference_null
from judge_calibration.profiles.cube import ReadCube
from judge_calibration.profiles.item_tables import judge_pairs
from judge_calibration.profiles.panel_simulation import draw_verdicts
from judge_calibration.profiles.planted import COLUMNS, planted_values, recovery_row, share_row
from judge_calibration.profiles.storage import unpack_stable

_Z = 1.959963984540054


def recovery_table(
    cube: ReadCube,
    planted: pd.DataFrame,
    pairs: pd.DataFrame,
    core: np.ndarray,
    profiles: pd.DataFrame,
    seed: int,
    repetitions: int,
    check_items: int,
) -> pd.DataFrame:
    """Compare planted with found values.

    Parameters
    ----------
    cube : ReadCube
        The simulated reads.
    planted : pandas.DataFrame
        What was planted, see :func:`judge_calibration.profiles.planted.planted_values`.
    pairs : pandas.DataFrame
        Agreement by judge pair (the rows of all items, stable reads, all attributes are used).
    core : numpy.ndarray of bool, shape (n_attributes,)
        The core set of the full panel.
    profiles : pandas.DataFrame
        Perception and weight profiles.
    seed, repetitions, check_items : int
        Of two further panels on the first `check_items` items, with the same reads: one whose judges all
        share one preference, and one of two camps with opposite ones.

    Returns
    -------
    pandas.DataFrame
        A row a statistic: of (what it is of), planted and found (means), n (how many values), inside (how
        many planted values lie in the 95 % interval of the found one), share_inside, largest_difference,
        low, high (of a single value), note, simulated.
    """
    truth = planted_values(planted)
    counts = cc.code_counts(cube.codes)
    n_judges, n_attributes = counts.shape[:2]
    n_items = len(cube.items)
    by_attribute = counts.transpose(1, 0, 2)
    both_k = cc.both_resolved(counts)
    rate_k = cc.stable_cells(counts) / np.maximum(1, both_k)
    main = pairs[
        (pairs["read"] == "stable")
        & (pairs["attributes"] == "all")
        & (pairs["items_by"] == "all")
        & (pairs["stratum"] == "all")
    ]
    joint = main["joint"].to_numpy(dtype=float)
    spread = _Z * np.sqrt((rate_k * (1 - rate_k) / np.maximum(1, both_k)).sum(axis=0)) / n_judges
    perception = profiles["resolution"].to_numpy(dtype=float)
    first, second = judge_pairs(n_judges)
    shared = perception.reshape(n_judges, n_attributes)[first] * perception.reshape(n_judges, -1)[second]
    shared_error = np.sqrt((shared * (1 - shared)).sum(axis=1) / n_items) / n_attributes
    weights = profiles["weight"].to_numpy(dtype=float)
    fitted = ~np.isnan(weights)
    rows = [
        _ratio_row("coverage", "judge", truth["coverage"], counts, cc.stable_cells, cc.cells),
        _ratio_row(
            "first_share", "judge", truth["first_share"], counts, cc.first_shown_chosen, cc.resolved_reads
        ),
        _ratio_row(
            "order_consistency",
            "judge",
            truth["order_consistency"],
            counts,
            cc.stable_cells,
            cc.both_resolved,
        ),
        _ratio_row("detection", "attribute", truth["detection"], by_attribute, _resolved_share, cc.cells),
        recovery_row(
            "order_consistency", "attribute", truth["attribute_consistency"], rate_k.mean(axis=0), spread
        ),
        recovery_row(
            "core",
            "attribute",
            truth["core"].astype(float),
            core.astype(float),
            np.zeros(n_attributes),
            "inside: planted and found membership are the same",
        ),
        share_row("agreement", "judge pair", truth["agreement"], main["agreement"].to_numpy(), joint),
        recovery_row(
            "joint_coverage",
            "judge pair",
            truth["joint_coverage"],
            main["joint_coverage"].to_numpy(),
            _Z * shared_error,
        ),
        share_row(
            "perception profile",
            "judge x attribute",
            truth["perception"].ravel(),
            perception,
            np.full(perception.shape, float(n_items)),
        ),
        recovery_row(
            "weight profile",
            "judge x attribute",
            truth["weight"].ravel()[fitted],
            weights[fitted],
            _Z * profiles["weight_se"].to_numpy(dtype=float)[fitted],
        ),
    ]
    rows += _preference_rows(cube, truth["weight"][0], seed, repetitions, check_items)
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(("statistic", "of", "note"), "str"))


def _resolved_share(counts: np.ndarray) -> np.ndarray:
    return cc.resolved_reads(counts) / 2


def _ratio_row(
    statistic: str,
    of: str,
    planted: np.ndarray,
    counts: np.ndarray,
    top: Callable[[np.ndarray], np.ndarray],
    bottom: Callable[[np.ndarray], np.ndarray],
) -> dict[str, object]:
    """Compare ratios of sums over cells with planted ones, by 95 % intervals from the cells' own spread."""
    below = bottom(counts).sum(axis=-1)
    known = below > 0
    found = top(counts).sum(axis=-1)[known] / below[known]
    return recovery_row(statistic, of, planted[known], found, _Z * cc.ratio_error(counts, top, bottom)[known])


def _preference_rows(
    cube: ReadCube, weights: np.ndarray, seed: int, repetitions: int, check_items: int
) -> list[dict[str, Any]]:
    """Judges that share one preference, and judges of two opposite camps, on the same reads."""
    stable = unpack_stable(cube.codes[:, :check_items])
    n_judges = len(stable)
    sign = np.where(np.arange(n_judges) % 2 == 0, 1.0, -1.0)
    found: dict[str, IdenticalPreferenceNull] = {}
    for number, (name, signs) in enumerate((("identical", np.ones(n_judges)), ("opposite", sign))):
        drawn = np.stack(
            [
                draw_verdicts(stable[j], signs[j] * weights, np.random.default_rng([seed, 10 + number, j]))
                for j in range(n_judges)
            ]
        )
        found[name] = identical_preference_null(stable, drawn, seed, repetitions)
    same, other = found["identical"], found["opposite"]
    deviation = float(same.null_by_repetition.std(ddof=1)) if repetitions > 1 else float("nan")
    half = _Z * deviation * np.sqrt(1 + 1 / repetitions)
    first, second = judge_pairs(n_judges)
    balance = float((sign[first] * sign[second]).mean())
    note = f"first {stable.shape[1]:,} items"
    one = recovery_row(
        "ratio, identical preferences",
        "panel",
        np.array([1.0]),
        np.array([same.ratio]),
        np.array([half / same.null]),
        f"{note}; observed {same.observed:.3f}, null {same.null:.3f}",
    )
    two = recovery_row(
        "mean weight correlation, opposite preferences",
        "panel",
        np.array([balance * same.null]),
        np.array([other.observed]),
        np.array([half * np.sqrt(2)]),
        f"{note}; planted: share of judge pairs of one camp less the others, times the identical null; "
        f"ratio {other.ratio:.3f}",
    )
    for row, centre, width in ((one, same.ratio, half / same.null), (two, other.observed, half * np.sqrt(2))):
        row["low"], row["high"] = centre - width, centre + width
    return [one, two]
