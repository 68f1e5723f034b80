"""What adaptation does to a judge's verdicts: the same statistics before and after, on the same pairs."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd

from judge_calibration.adapt.gains import HIT_COLUMNS
from judge_calibration.adapt.held_out import ALL, of_source, with_controlled
from judge_calibration.metrics.bootstrap import Resamples
from judge_calibration.metrics.clusters import cluster_codes, cluster_sums
from judge_calibration.metrics.intervals import choose_intervals
from judge_calibration.metrics.paired_differences import paired_differences
from judge_calibration.metrics.rates import ratio
from judge_calibration.options.reporting import ComparisonOptions, ReportingOptions

BASE = "base"
JOINT = "sft, joint"
"""The method of a judge that was fine-tuned on all sources together, beside ``sft`` on one source alone."""
SIMULATED = "SIMULATED"
ADAPTED = ("method", "budget", "resample", "source", "base_judge")
"""Columns of the table of adapted verdicts beside those of `verdicts`; all but method null for a base."""

STATISTICS = ("T_direct", "T_product", "C", "phi", "A", "PR")
CHANGE_COLUMNS = (
    "method",
    "judge_id",
    "protocol",
    "source",
    "budget",
    "slice_by",
    "slice",
    "statistic",
    "before",
    "after",
    "change",
    "low",
    "high",
    "n_pairs",
    "n_clusters",
    "reason",
    "adapted_judge",
    "simulated",
)
_SHAPE = ["protocol", "constraint", "temperature"]
_RESPONSES = ("response_a", "response_b")


def hits_of(adapted_verdicts: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Return how right every adapted judge was on each held-out pair, beside its base.

    Parameters
    ----------
    adapted_verdicts : pandas.DataFrame
        The table `verdicts` with the columns ADAPTED. The base of a judge is the cell of `base_judge` with
        the same protocol, constraint and temperature. Repetition 0 counts.
    pairs : pandas.DataFrame
        The held-out pairs. Only pairs with a decisive reference count, of the source that a judge learned
        from.

    Returns
    -------
    pandas.DataFrame
        HIT_COLUMNS and resample. A verdict that is not valid, a TIE and an ABSTAIN are wrong and stay in.
        A judge that was adapted to all sources together counts on each source by itself, with the method
        JOINT, so that it stands beside the judge that learned from that source alone.
    """
    facts = pairs.loc[
        pairs["reference_label"].isin(("A", "B")), ["pair_id", "base_id", "reference_label", "source"]
    ].rename(columns={"source": "_of"})
    rows = adapted_verdicts[adapted_verdicts["repetition"] == 0].merge(facts, on="pair_id")
    # A judge may have been asked about controlled pairs of another source than it learned from.
    rows = rows[(rows["method"] == BASE) | (rows["source"] == ALL) | (rows["source"] == rows["_of"])]
    # Only fine-tuning learns from all sources together.
    joint = (rows["method"] != BASE) & (rows["source"] == ALL)
    rows = rows.assign(
        method=rows["method"].where(~joint, JOINT), source=rows["source"].where(~joint, rows["_of"])
    )
    columns = [*HIT_COLUMNS, "resample"]
    if rows.empty:
        return pd.DataFrame({name: pd.Series(dtype="object") for name in columns})
    rows = rows.assign(
        right=((rows["outcome"] == "valid") & (rows["verdict"] == rows["reference_label"])).astype(float),
        no_verdict=((rows["outcome"] != "valid") | (rows["verdict"] == "ABSTAIN")).astype(float),
    )
    # The key of a temperature that cannot be set is null on both sides, which a merge takes for equal.
    unit = ["pair_id", "base_id"]
    base = rows[rows["method"] == BASE]
    before = base.groupby([*unit, "judge_id", *_SHAPE], dropna=False)[["right", "no_verdict"]].mean()
    before = before.rename(columns={"right": "base_right", "no_verdict": "base_no_verdict"}).reset_index()
    before = before.rename(columns={"judge_id": "base_judge"})
    own = [*unit, "method", "base_judge", *_SHAPE, "source", "budget", "resample"]
    after = rows[rows["method"] != BASE].groupby(own, dropna=False, sort=False)[["right", "no_verdict"]]
    joined = after.mean().reset_index().merge(before, on=[*unit, "base_judge", *_SHAPE], how="left")
    joined = joined.rename(columns={"base_judge": "judge_id"})
    # A source that a program made says so in its name.
    joined["simulated"] = joined["source"].str.startswith(SIMULATED).astype(bool)
    return joined[columns]


def changes(
    adapted_verdicts: pd.DataFrame,
    pairs: pd.DataFrame,
    options: ReportingOptions | None = None,
    controlled: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return T, C, phi, A and PR before and after, whole and by manipulation, with paired intervals.

    Parameters
    ----------
    adapted_verdicts, pairs : pandas.DataFrame
        As for :func:`hits_of`; pairs of every kind count as each statistic says.
    options : ReportingOptions, optional
        Reduction and intervals.
    controlled : pandas.DataFrame, optional
        Pairs with a controlled change that every judge was asked about, whatever it learned from. They count
        by controlled change, beside those of `pairs`, and not in what is said of the whole.

    Returns
    -------
    pandas.DataFrame
        CHANGE_COLUMNS, of the frozen subsets, for each adapted judge: before, after in [0, 1]
        (those with ``minus`` -1 to 1) and change = after - before. Beside the statistics of the trust
        table, for the whole ``longer_chosen``: share of decisive verdicts for the longer answer, over pairs
        whose lengths differ; and by controlled change, in shares of pairs whose both orders agree on it:
        ``modified_wins``, ``original_wins`` and their difference, and ``longer_minus_shorter``, by words
        (pairs that expect a TIE); ``worse_wins`` (pairs with a better side).
    """
    chosen = options or ReportingOptions()
    comparisons = ComparisonOptions(
        within=("judge_id",), metrics=STATISTICS, slices=("manipulation",), sliced_up_to=10_000
    )
    chosen = chosen.model_copy(update={"comparisons": comparisons})
    frames = []
    for names, part in _each_adapted(adapted_verdicts):
        own = of_source(pairs, names["source"])
        known = own if controlled is None else with_controlled(own, controlled)
        on_own = part[part["pair_id"].isin(own["pair_id"])]
        on_known = part[part["pair_id"].isin(known["pair_id"])]
        frames.append(_trust_changes(on_own, own, chosen, whole=True).assign(**names))
        frames.append(_trust_changes(on_known, known, chosen, whole=False).assign(**names))
        frames.append(_longer(on_own, own, chosen).assign(**names))
        frames.append(_controlled(on_known, known, chosen).assign(**names))
    filled = [frame for frame in frames if len(frame)]
    if not filled:
        return pd.DataFrame({name: pd.Series(dtype="object") for name in CHANGE_COLUMNS})
    return pd.concat(filled, ignore_index=True)[list(CHANGE_COLUMNS)]


def _each_adapted(verdicts: pd.DataFrame) -> Any:
    """Yield the names of each adapted judge and its verdicts beside its base's on the same pairs."""
    base = verdicts[verdicts["method"] == BASE]
    frozen = verdicts[(verdicts["method"] != BASE) & (verdicts["resample"].fillna(0) == 0)]
    keys = ["method", "base_judge", "source", "budget", "judge_id", *_SHAPE]
    for key, own in frozen.groupby(keys, dropna=False, sort=False):
        named: dict[str, Any] = dict(zip(keys, cast("tuple[Any, ...]", key), strict=True))
        before = base[(base["judge_id"] == named["base_judge"]) & base["pair_id"].isin(own["pair_id"])]
        for column in _SHAPE:
            same = before[column] == named[column]
            before = before[same | (before[column].isna() & pd.isna(named[column]))]
        if before.empty:
            continue
        names = {
            "method": named["method"],
            "judge_id": named["base_judge"],
            "protocol": named["protocol"],
            "source": named["source"],
            "budget": named["budget"],
            "adapted_judge": named["judge_id"],
            "simulated": str(named["source"]).startswith(SIMULATED),
        }
        both = pd.concat([before.assign(judge_id="judge", _after=False), own.assign(_after=True)])
        yield names, both.assign(judge_id="judge").reset_index(drop=True)


def _trust_changes(
    both: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions, whole: bool
) -> pd.DataFrame:
    """Return the changes of the trust statistics over all pairs (`whole`), or by controlled change."""
    after = set(both.loc[both["_after"], "instrument_id"])
    here = pairs[pairs["pair_id"].isin(both["pair_id"])].assign(source="held out")
    found = paired_differences(both, here, options) if len(both) else pd.DataFrame()
    if found.empty:
        return found
    found = found[(found["slice_by"] == "all") == whole].reset_index(drop=True)
    # One comparison of two cells: which of them is the adapted one decides the sign.
    turned = np.where(found["instrument_id_1"].isin(after), 1.0, -1.0)
    swap = turned < 0
    low, high = found["low"] * turned, found["high"] * turned
    why = found["reason"].where(found["reason"] != "", found["interval_reason"])
    return pd.DataFrame(
        {
            "slice_by": found["slice_by"],
            "slice": found["slice"],
            "statistic": found["metric"],
            "before": np.where(swap, found["value_1"], found["value_2"]),
            "after": np.where(swap, found["value_2"], found["value_1"]),
            "change": found["difference"] * turned,
            "low": np.where(swap, high, low),
            "high": np.where(swap, low, high),
            "n_pairs": found["n_pairs"],
            "n_clusters": found["n_clusters"],
            "reason": why,
        }
    )


def _longer_side(pairs: pd.DataFrame) -> np.ndarray:
    """Return which answer has more words: A, B, or nothing where both have as many."""
    a, b = (pairs[name].fillna("").map(lambda text: len(str(text).split())) for name in _RESPONSES)
    return np.select([a > b, b > a], ["A", "B"], "")


def _longer(both: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Return whether the judge comes to choose the longer answer, by words, more often than before."""
    sizes = pairs[["pair_id", "base_id"]].assign(longer=_longer_side(pairs))
    rows = both[(both["repetition"] == 0) & both["verdict"].isin(("A", "B"))].merge(
        sizes[sizes["longer"] != ""], on="pair_id"
    )
    rows = rows.assign(value=(rows["verdict"] == rows["longer"]).astype(float))
    return _paired(rows, "all", "all", "longer_chosen", options)


def _controlled(both: pd.DataFrame, pairs: pd.DataFrame, options: ReportingOptions) -> pd.DataFrame:
    """Return what controlled changes do to the verdicts that both orders share, before and after."""
    known = pairs[pairs["manipulation"].notna() & pairs["pair_id"].isin(both["pair_id"])]
    # Identity pairs have no side that was made better or worse.
    known = known[known["manipulation"] != "identity"]
    columns = ["pair_id", "base_id", "manipulation", "modified", "reference_label", *_RESPONSES]
    first = both[(both["repetition"] == 0)].assign(
        verdict=both["verdict"].where(both["outcome"] == "valid").fillna("none")
    )
    wide = first.pivot_table(
        index=["pair_id", "_after"], columns="order", values="verdict", aggfunc="first"
    ).reset_index()
    if known.empty or not {"AB", "BA"} <= set(wide.columns):
        return pd.DataFrame()
    wide = wide[wide["AB"].notna() & wide["BA"].notna()].merge(known[columns], on="pair_id")
    said = wide["AB"].where((wide["AB"] == wide["BA"]) & wide["AB"].isin(("A", "B")), "")
    same_text = wide[_RESPONSES[0]] == wide[_RESPONSES[1]]
    wide["longer"] = _longer_side(wide)
    frames = []
    for name, part in wide.groupby("manipulation", sort=True):
        verdict = said[part.index]
        tie = part["modified"].isin(("A", "B")) & (part["reference_label"] == "TIE") & ~same_text[part.index]
        decisive = part["reference_label"].isin(("A", "B"))
        won = (verdict != "") & (verdict == part["modified"])
        lost = (verdict != "") & (verdict != part["modified"])
        worse = (verdict != "") & (verdict != part["reference_label"])
        # The changed side of a length pair may be the shorter one.
        sized = (part["reference_label"] == "TIE") & (part["longer"] != "")
        longer = (verdict != "") & (verdict == part["longer"])
        shorter = (verdict != "") & (verdict != part["longer"])
        for statistic, value, over in (
            ("modified_wins", won.astype(float), tie),
            ("original_wins", lost.astype(float), tie),
            ("modified_minus_original", won.astype(float) - lost, tie),
            ("longer_minus_shorter", longer.astype(float) - shorter, sized),
            ("worse_wins", worse.astype(float), decisive),
        ):
            rows = part[over].assign(value=value[over])
            frames.append(_paired(rows, "manipulation", str(name), statistic, options))
    known_frames = [frame for frame in frames if len(frame)]
    return pd.concat(known_frames, ignore_index=True) if known_frames else pd.DataFrame()


def _paired(
    rows: pd.DataFrame, slice_by: str, name: str, statistic: str, options: ReportingOptions
) -> pd.DataFrame:
    """Return the mean of `value` before and after, and the interval of the change over base tasks."""
    if rows.empty:
        return pd.DataFrame()
    value, after = rows["value"].to_numpy(float), rows["_after"].to_numpy(bool)
    clusters = cluster_codes(rows["base_id"])
    columns = np.stack([value * ~after, ~after, value * after, after], axis=1).astype(float)
    sums = cluster_sums(columns, clusters.codes, clusters.size)

    def change(totals: np.ndarray) -> np.ndarray:
        return np.asarray(ratio(totals[2], totals[3]) - ratio(totals[0], totals[1]))

    whole = sums.sum(axis=0)
    settings = options.intervals
    drawn = change(Resamples(clusters.size, settings.resamples, settings.seed).totals(sums))
    rest = np.where(np.abs(whole - sums) < 1e-9, 0.0, whole - sums)
    found = choose_intervals(
        np.atleast_1d(change(whole)),
        drawn[None, :],
        change(rest.T)[:, None],
        np.ones((clusters.size, 1), dtype=bool),
        np.zeros(1, dtype=bool),
        settings,
    )
    return pd.DataFrame(
        {
            "slice_by": [slice_by],
            "slice": [name],
            "statistic": [statistic],
            "before": [float(ratio(whole[0], whole[1]))],
            "after": [float(ratio(whole[2], whole[3]))],
            "change": found.value,
            "low": found.low,
            "high": found.high,
            "n_pairs": [rows["pair_id"].nunique()],
            "n_clusters": [clusters.size],
            "reason": found.reason.astype(object),
        }
    )
