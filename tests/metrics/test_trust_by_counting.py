"""The trust table against a plain count, pair by pair, straight from the definitions."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.reporting import IntervalOptions, ReportingOptions, TrustOptions


def share(values):
    """Mean of a list; NaN if it is empty."""
    return sum(values) / len(values) if values else math.nan


def reduced(reads, reduction):
    """The verdict of one (pair, order): None if it failed or is split."""
    if reduction == "first_read":
        return reads[0]
    votes = {verdict: reads.count(verdict) for verdict in reads}
    best = [verdict for verdict, n in votes.items() if n == max(votes.values())]
    return best[0] if len(best) == 1 else None


def count(reads, references, view, reduction):
    """Every statistic of definitions, section 2, by loops over pairs."""
    n_units, c2_units, p_pairs, excess = [], [], [], []
    a_units, dec, flip, both_right, t_units, t_pairs = [], [], [], [], [], []
    c_of_t, ps = [], []
    for pair, orders in reads.items():
        verdict = [reduced(order, reduction) for order in orders]
        kept = [True, True]
        if view == "resolved" and (None in verdict or any(None in order for order in orders)):
            continue
        if view == "policy":
            kept = [v in ("A", "B") for v in verdict]
        same = [None not in order and len(set(order)) == 1 for order in orders]
        differ = []
        for order, keep, equal in zip(orders, kept, same, strict=True):
            pairs = list(combinations(order, 2))
            disagree = share([x is None or y is None or x != y for x, y in pairs])
            differ.append(disagree)
            if keep:
                n_units.append(equal)
                c2_units.append(1 - disagree)
        right = [v == references[pair] for v in verdict]
        a_units += [r for r, keep in zip(right, kept, strict=True) if keep]
        if not all(kept):
            continue
        agree = verdict[0] == verdict[1] and verdict[0] is not None
        p_pairs.append(not agree)
        between = share([x is None or y is None or x != y for x in orders[0] for y in orders[1]])
        excess.append(between - sum(differ) / 2)
        (dec if agree else flip).extend(right)
        both_right.append(agree and right[0])
        c_of_t += same
        units = [n and agree and r for n, r in zip(same, right, strict=True)]
        t_units += units
        t_pairs.append(all(units))
        ps.append(agree)
    phi, q = share(p_pairs), share(flip)
    lost = 0 if phi == 0 else phi * q
    accuracy = share(dec + flip)
    return {
        "C": share(n_units),
        "C2": share(c2_units),
        "phi": phi,
        "order_excess": share(excess),
        "A": share(a_units),
        "A_dec": share(dec),
        "q": q,
        "A_max": 1 - phi + lost,
        "gap": 1 - phi + lost - accuracy,
        "PR": share(both_right),
        "T_product": share(c_of_t) * (accuracy - lost),
        "T_direct": share(t_units),
        "T_pair": share(t_pairs),
    }


@pytest.mark.parametrize("reduction", ["first_read", "majority"])
@pytest.mark.parametrize("view", ["strict", "resolved", "policy"])
@pytest.mark.parametrize("seed", range(12))
def test_equals_the_count(view, reduction, seed):
    rng = np.random.default_rng(seed)
    n, repetitions = int(rng.integers(1, 12)), int(rng.integers(2, 5))
    symbols = ["A", "B", "TIE", "ABSTAIN", None][: int(rng.integers(2, 6))]
    reads = {
        f"p{i}": [[symbols[k] for k in rng.integers(0, len(symbols), repetitions)] for _ in range(2)]
        for i in range(n)
    }
    references = {pair: str(rng.choice(["A", "B"])) for pair in reads}
    rows = [
        (pair, order, repetition, "malformed" if verdict is None else "valid", verdict)
        for pair, orders in reads.items()
        for order, own in zip(("AB", "BA"), orders, strict=True)
        for repetition, verdict in enumerate(own)
    ]
    frame = pd.DataFrame(rows, columns=["pair_id", "order", "repetition", "outcome", "verdict"])
    frame = frame.assign(judge_id="j", protocol="direct", instrument_id="i")
    pairs = pd.DataFrame({"pair_id": list(references), "reference_label": list(references.values())})
    pairs = pairs.assign(base_id=pairs["pair_id"], source="made")
    options = ReportingOptions(
        intervals=IntervalOptions(resamples=200),
        trust=TrustOptions(views=(view,), reduction=reduction, slices=()),
    )
    row = trust_table(frame, pairs, options).iloc[0]
    for metric, expected in count(reads, references, view, reduction).items():
        np.testing.assert_allclose(row[metric], expected, atol=1e-12, err_msg=metric)
