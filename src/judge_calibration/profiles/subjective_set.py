"""Items on which a panel's holistic verdicts are split: the minority share and the SubjectiveSet."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd

from judge_calibration.profiles.item_agreement import camp_agreement, item_agreement
from judge_calibration.profiles.panel import Panel


def minority_share(verdicts: np.ndarray) -> pd.DataFrame:
    """The share of definite verdicts that go to the less chosen answer, for each item.

    Parameters
    ----------
    verdicts : numpy.ndarray of int8, shape (n_judges, n_items)
        +1 for A, -1 for B, 0 for ties and unparsed.

    Returns
    -------
    pandas.DataFrame
        n_a, n_b, minority_share in [0, 0.5]; NaN, reason ``no_definite_verdict``, where all are 0.

    Examples
    --------
    >>> round(float(minority_share(np.array([[1], [1], [-1]], dtype=np.int8))["minority_share"][0]), 4)
    0.3333
    """
    n_a = (verdicts == 1).sum(axis=0)
    n_b = (verdicts == -1).sum(axis=0)
    total = n_a + n_b
    share = np.divide(np.minimum(n_a, n_b), total, out=np.full(total.shape, np.nan), where=total > 0)
    reason = [None if n else "no_definite_verdict" for n in total]
    return pd.DataFrame({"n_a": n_a, "n_b": n_b, "minority_share": share, "undefined": reason})


def select_subjective(shares: pd.DataFrame, threshold: Fraction = Fraction(1, 3)) -> np.ndarray:
    """Mark the items whose minority share is at least the threshold, compared in integers.

    The paper's number is lost in the stored text: 1/3 is inferred (.30 is the other candidate).

    Examples
    --------
    >>> shares = minority_share(np.array([[1], [1], [-1]], dtype=np.int8))
    >>> select_subjective(shares).tolist()
    [True]
    """
    n_a, n_b = shares["n_a"].to_numpy(), shares["n_b"].to_numpy()
    total = n_a + n_b
    return (total > 0) & (np.minimum(n_a, n_b) * threshold.denominator >= threshold.numerator * total)


def subjective_items(panel: Panel, threshold: Fraction = Fraction(1, 3)) -> pd.DataFrame:
    """Return for every item how split the panel is, overall and on attributes, and what is selected.

    Returns
    -------
    pandas.DataFrame
        A row an item: pair_id, source; n_a, n_b, minority_share, undefined and selected for the full panel
        (the primary definition of JudgeProfile); the same with ``_reduced`` for the panel without
        position-biased judges; comparable, unanimous, g_pooled, g_macro, g_undefined (agreement on
        attributes among all judges); verdict_agreement, within_camps, across_camps, camps_undefined.
    """
    codes, verdicts = panel.cube.codes, panel.verdicts
    frame = panel.items[["pair_id", "source"]].reset_index(drop=True)
    for suffix, judges in (("", np.ones(len(verdicts), dtype=bool)), ("_reduced", panel.reduced)):
        shares = minority_share(verdicts[judges])
        shares["selected"] = select_subjective(shares, threshold)
        frame = pd.concat([frame, shares.add_suffix(suffix)], axis=1)
    agreement = item_agreement(codes).rename(columns={"undefined": "g_undefined"})
    camps = camp_agreement(codes, verdicts).rename(columns={"undefined": "camps_undefined"})
    frame = pd.concat([frame, agreement, camps], axis=1)
    reasons = [name for name in frame.columns if name.startswith("undefined") or name.endswith("_undefined")]
    return frame.astype(dict.fromkeys(reasons, "str"))


OVERLAP_COLUMNS = (
    *("items_by", "items", "n_items", "selected", "selected_reduced", "both", "only_full", "only_reduced"),
    *("rate", "rate_reduced", "judges", "judges_reduced"),
)


def subjective_overlap(items: pd.DataFrame, n_judges: int, n_reduced: int) -> pd.DataFrame:
    """Count what the full and the reduced panel select, over all items and in each source.

    Parameters
    ----------
    items : pandas.DataFrame
        From :func:`subjective_items`.
    n_judges, n_reduced : int
        Judges of both panels.

    Returns
    -------
    pandas.DataFrame
        items_by {all, source}, items, n_items, selected, selected_reduced, both, only_full, only_reduced,
        rate and rate_reduced (shares of items, in [0, 1]; NaN without items), judges, judges_reduced.

    Examples
    --------
    >>> items = pd.DataFrame({"source": ["s", "s"], "selected": [True, True],
    ...     "selected_reduced": [True, False]})
    >>> subjective_overlap(items, 21, 19)[["both", "only_full", "only_reduced"]].values.tolist()[0]
    [1, 1, 0]
    """
    groups = [("all", "all", items)] if len(items) else []
    groups += [("source", str(name), part) for name, part in items.groupby("source", sort=True)]
    rows = []
    for items_by, name, part in groups:
        full = part["selected"].to_numpy(dtype=bool)
        reduced = part["selected_reduced"].to_numpy(dtype=bool)
        counts = {
            "n_items": len(part),
            "selected": int(full.sum()),
            "selected_reduced": int(reduced.sum()),
            "both": int((full & reduced).sum()),
            "only_full": int((full & ~reduced).sum()),
            "only_reduced": int((~full & reduced).sum()),
        }
        rates = {"rate": float(full.mean()), "rate_reduced": float(reduced.mean())}
        judges = {"judges": n_judges, "judges_reduced": n_reduced}
        rows.append({"items_by": items_by, "items": name} | counts | rates | judges)
    return pd.DataFrame(rows, columns=list(OVERLAP_COLUMNS)).astype({"items_by": "str", "items": "str"})
