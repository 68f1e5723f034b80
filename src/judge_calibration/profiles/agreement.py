"""Agreement of judges on the attributes of the same items, over the cells that both resolve.

Definitions, section 6; JudgeProfile, appendix on attribute agreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from judge_calibration.profiles.item_tables import judge_pairs
from judge_calibration.profiles.pair_counts import PairCounts

KEYS = ("judge_1", "judge_2", "stratum")
VALUES = (
    *("n_items", "matched_items", "joint", "agree", "agreement", "joint_coverage", "item_averaged"),
    *("kappa", "undefined", "kappa_undefined"),
)


def agreement_by_judge_pair(
    counts: PairCounts,
    judges: Sequence[str],
    n_attributes: int,
    groups: Sequence[Mapping[str, str]] = ({},),
) -> pd.DataFrame:
    """Attribute agreement and joint coverage of every pair of judges, by stratum and group of items.

    Parameters
    ----------
    counts : PairCounts
        From :func:`judge_calibration.profiles.pair_counts.count_pairs`.
    judges : sequence of str
        Names for the rows.
    n_attributes : int
        Attributes that were counted: the cells of an item.
    groups : sequence of mapping
        Further columns of the rows of each group of the counts.

    Returns
    -------
    pandas.DataFrame
        One row a group, stratum and judge pair: n_items; matched_items (with a jointly resolved attribute);
        joint, agree (cells); agreement in [0, 1] (NaN where joint is 0, reason ``no_items`` or
        ``no_shared_stable_cell``); joint_coverage in [0, 1] (NaN where n_items is 0); item_averaged (mean
        over matched items of their own agreement); kappa in [-1, 1] over the joint cells, with chance from
        their marginals, or from each judge's own where the counts hold those (NaN, kappa_undefined
        ``one_category``).

    Examples
    --------
    >>> from judge_calibration.profiles.pair_counts import count_pairs
    >>> codes = np.array([[[8, 8, 4, 0]], [[8, 0, 4, 0]]], dtype=np.int8)
    >>> counts = count_pairs(codes, np.zeros((2, 1), dtype=np.int8))
    >>> table = agreement_by_judge_pair(counts, ("j1", "j2"), 4)
    >>> table.loc[0, ["joint", "agree"]].tolist(), table["undefined"].tolist()[1]
    ([3, 2], 'no_items')
    """
    first, second = judge_pairs(len(judges))
    names = np.array(list(judges), dtype=object)
    frames = []
    for number, group in enumerate(groups):
        for place, stratum in enumerate(counts.strata):
            frame = pd.DataFrame({"judge_1": names[first], "judge_2": names[second], "stratum": stratum})
            frame = frame.assign(
                **_values({k: v[place, :, number] for k, v in counts.sums.items()}, n_attributes)
            )
            frames.append(frame.assign(**group) if group else frame)
    whole = pd.concat(frames, ignore_index=True)
    labels = dict.fromkeys((*KEYS, "undefined", "kappa_undefined"), "str")
    return whole.astype(labels)


def _values(sums: dict[str, np.ndarray], n_attributes: int) -> dict[str, Any]:
    joint, agree, items, matched = (sums[name] for name in ("joint", "agree", "items", "matched"))
    agreement = ratio(agree, joint)
    if "own_1" in sums:
        up_1, up_2 = ratio(sums["own_up_1"], sums["own_1"]), ratio(sums["own_up_2"], sums["own_2"])
    else:
        up_1, up_2 = ratio(sums["up_1"], joint), ratio(sums["up_2"], joint)
    chance = up_1 * up_2 + (1 - up_1) * (1 - up_2)
    informative = (joint > 0) & (chance < 1)
    kappa = np.divide(agreement - chance, 1 - chance, out=np.full(len(joint), np.nan), where=informative)
    undefined = [
        "no_items" if not n else "no_shared_stable_cell" if not j else None
        for n, j in zip(items, joint, strict=True)
    ]
    return {
        "n_items": items.astype(np.int64),
        "matched_items": matched.astype(np.int64),
        "joint": joint.astype(np.int64),
        "agree": agree.astype(np.int64),
        "agreement": agreement,
        "joint_coverage": ratio(joint, items * n_attributes),
        "item_averaged": ratio(sums["rate_sum"], matched),
        "kappa": kappa,
        "undefined": undefined,
        "kappa_undefined": [
            reason or (None if known else "one_category")
            for reason, known in zip(undefined, informative, strict=True)
        ],
    }


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide; NaN where the denominator is 0.

    Examples
    --------
    >>> ratio(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, nan]
    """
    out = np.full(np.shape(denominator), np.nan)
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)


class PanelAgreement(NamedTuple):
    """Agreement over judge pairs: the mean of defined rates, the ratio of sums, and how many were defined."""

    mean: float
    pooled: float
    n_defined: int
    n_judge_pairs: int


def panel_agreement(agree: np.ndarray, joint: np.ndarray) -> PanelAgreement:
    """Summarise judge pairs: each defined rate with equal weight, and all cells pooled.

    Undefined (NaN) where no judge pair shares a stable cell.

    Examples
    --------
    >>> result = panel_agreement(np.array([3, 4]), np.array([4, 4]))
    >>> result.mean, result.pooled
    (0.875, 0.875)
    """
    defined = joint > 0
    if not defined.any():
        return PanelAgreement(float("nan"), float("nan"), 0, int(joint.size))
    rates = agree[defined] / joint[defined]
    pooled = float(agree[defined].sum() / joint[defined].sum())
    return PanelAgreement(float(rates.mean()), pooled, int(defined.sum()), int(joint.size))
