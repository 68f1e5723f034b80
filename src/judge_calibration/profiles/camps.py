"""Agreement within and across the camps that an item's holistic verdicts form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Camps(NamedTuple):
    """Judge pairs and pooled attribute agreement of one item.

    pairs_a, pairs_b, pairs_across : int
        Judge pairs within the camp for A, within the camp for B, and across.
    verdict_agreement : float
        (pairs_a + pairs_b) / all, in [0, 1]; NaN below two definite verdicts.
    within, across : float
        Pooled attribute agreement of those judge pairs, in [0, 1]; NaN where no attribute is shared.
    undefined : str or None
        ``camp_under_two`` if a camp has fewer than two judges (its within part is then the other camp's).
    """

    pairs_a: int
    pairs_b: int
    pairs_across: int
    verdict_agreement: float
    within: float
    across: float
    undefined: str | None


def camps(stable: np.ndarray, verdicts: np.ndarray) -> Camps:
    """Split one item's judges by their verdict and compare their attribute directions.

    Parameters
    ----------
    stable : numpy.ndarray of int8, shape (n_judges, n_attributes)
    verdicts : numpy.ndarray of int8, shape (n_judges,)
        +1, -1, or 0 (in no camp).

    Examples
    --------
    8 judges for A and 11 for B: 28 + 55 pairs within, 88 across, agreement 83/171.

    >>> v = np.array([1] * 8 + [-1] * 11, dtype=np.int8)
    >>> result = camps(np.ones((19, 1), dtype=np.int8), v)
    >>> result.pairs_a, result.pairs_b, result.pairs_across, round(result.verdict_agreement, 3)
    (28, 55, 88, 0.485)
    """
    a, b = stable[verdicts == 1], stable[verdicts == -1]
    na, nb = len(a), len(b)
    pairs = na * (na - 1) // 2, nb * (nb - 1) // 2, na * nb
    total = sum(pairs)
    counts = [_up_down(part) for part in (a, b)]
    same = joint = 0
    for up, down in counts:
        same += int((up * (up - 1) // 2 + down * (down - 1) // 2).sum())
        n = up + down
        joint += int((n * (n - 1) // 2).sum())
    (up_a, down_a), (up_b, down_b) = counts
    across_same = int((up_a * up_b + down_a * down_b).sum())
    across_joint = int(((up_a + down_a) * (up_b + down_b)).sum())
    nan = float("nan")
    return Camps(
        *pairs,
        (pairs[0] + pairs[1]) / total if total else nan,
        same / joint if joint else nan,
        across_same / across_joint if across_joint else nan,
        "camp_under_two" if min(na, nb) < 2 else None,
    )


def _up_down(part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (part > 0).sum(axis=0), (part < 0).sum(axis=0)
