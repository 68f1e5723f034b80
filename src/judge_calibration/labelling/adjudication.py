"""What is done, what is missing, what the third annotator has to settle, and the settled label with its rule.

Ties and abstentions are labels like any other: two of them are an agreement, one against a win is a
disagreement. Individual labels are never changed; the adjudicated label stands beside them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from judge_calibration.labelling.importing import of_round
from judge_calibration.labelling.packets import make_packets
from judge_calibration.options.annotation import AdjudicationRule
from judge_calibration.text import canonical_json

ADJUDICATED_COLUMNS = [
    "pair_id",
    "attribute",
    "label",
    "rule",
    "primary_labels",
    "n_primary",
    "adjudicator_label",
    "reference_kind",
    "undefined",
]
"""Columns of the adjudicated labels.

``rule``: ``agreed`` (all primaries gave it), ``third_decides``, ``majority``; null while the label is. Then
``undefined`` says why: ``no_label``, ``primaries_missing``, ``adjudication_missing``, ``unresolved``.
"""

PROGRESS_COLUMNS = [
    "scope",
    "name",
    "stage",
    "assigned",
    "labelled",
    "remaining",
    "share_done",
    "ties",
    "abstentions",
    "disagreements",
]


def _overall(labels: pd.DataFrame) -> pd.DataFrame:
    return labels[labels["attribute"].isna()]


def settle_labels(
    plan: pd.DataFrame, labels: pd.DataFrame, rule: AdjudicationRule, primaries: int = 2
) -> pd.DataFrame:
    """Return the label of every planned or labelled pair (and attribute) with the rule that gave it.

    Parameters
    ----------
    plan : pandas.DataFrame
        The plan (planning.PLAN_COLUMNS).
    labels : pandas.DataFrame
        Individual labels (importing.LABEL_COLUMNS).
    rule : {"third_decides", "majority"}
        How a disagreement of the primaries is settled.
    primaries : int, optional
        Primary labels that a pair has to have.

    Returns
    -------
    pandas.DataFrame
        ADJUDICATED_COLUMNS, sorted by pair and attribute. `reference_kind` is the kind of the labels: human,
        ai or simulated; labels of different kinds are never settled together. Labels of other people's files
        settle only pairs that are not in the plan: where all of two or more agree, or where the file itself
        has an adjudication.
    """
    # A planned pair is settled by the round's own labels; of other pairs there are only other people's.
    in_plan = set(plan["pair_id"])
    elsewhere = np.array([pair not in in_plan for pair in labels["pair_id"]], dtype=bool)
    labels = labels[elsewhere | labels["round_id"].notna()]
    cells = labels[["pair_id", "attribute", "kind"]].drop_duplicates()
    labelled = set(_overall(labels)["pair_id"])
    bare = pd.DataFrame({"pair_id": sorted(in_plan - labelled), "attribute": None, "kind": None})
    cells = pd.concat([cells, bare.astype("str")], ignore_index=True)
    by = ["pair_id", "attribute", "kind"]
    primary = _joined(labels[labels["stage"] == "primary"].sort_values("slot"), by, "primary")
    third = _joined(labels[labels["stage"] == "adjudication"], by, "third")
    out = cells.merge(primary, on=by, how="left").merge(third, on=by, how="left")
    out["n_primary"] = out["primary"].map(len, na_action="ignore").fillna(0).astype("Int64")
    needed = [primaries if pair in in_plan else 2 for pair in out["pair_id"]]
    verdicts = [_settle(p, t, rule, n) for p, t, n in zip(out["primary"], out["third"], needed, strict=True)]
    out["label"] = [label for label, _, _ in verdicts]
    out["rule"] = [by_rule for _, by_rule, _ in verdicts]
    out["undefined"] = [reason for _, _, reason in verdicts]
    given = [tuple(p) if isinstance(p, list) else () for p in out["primary"]]
    texts = {labels_given: canonical_json(list(labels_given)) for labels_given in set(given)}
    out["primary_labels"] = [texts[labels_given] for labels_given in given]
    out["adjudicator_label"] = [t[0] if isinstance(t, list) else None for t in out["third"]]
    out["reference_kind"] = out["kind"]
    named = [column for column in ADJUDICATED_COLUMNS if column != "n_primary"]
    out = out[ADJUDICATED_COLUMNS].astype(dict.fromkeys(named, "str"))
    return out.sort_values(["pair_id", "attribute"], na_position="first", kind="stable").reset_index(
        drop=True
    )


def _joined(labels: pd.DataFrame, by: list[str], name: str) -> pd.DataFrame:
    """Return the labels of each cell as a list, in the order of the rows."""
    given: dict[tuple[object, ...], list[str]] = {}
    for *cell, label in labels[[*by, "label"]].astype("object").itertuples(index=False, name=None):
        given.setdefault(tuple(None if value != value else value for value in cell), []).append(label)
    frame = pd.DataFrame(list(given), columns=by).astype("str")
    return frame.assign(**{name: pd.Series(list(given.values()), dtype="object")})


def _settle(
    primary: object, third: object, rule: AdjudicationRule, primaries: int
) -> tuple[str | None, str | None, str | None]:
    """Return label, rule and the reason why there is no label."""
    given = primary if isinstance(primary, list) else []
    settled = third if isinstance(third, list) else []
    if not given and not settled:
        return None, None, "no_label"
    if len(given) < primaries:
        return None, None, "primaries_missing"
    if len(set(given)) == 1:
        return given[0], "agreed", None
    if not settled:
        return None, None, "adjudication_missing"
    if rule == "third_decides":
        return settled[0], rule, None
    votes = [*given, settled[0]]
    winner = max(sorted(set(votes)), key=votes.count)
    if votes.count(winner) * 2 > len(votes):
        return winner, rule, None
    return None, None, "unresolved"


def queue_disagreements(
    pairs: pd.DataFrame,
    unblinding: pd.DataFrame,
    labels: pd.DataFrame,
    primaries: int = 2,
    simulated: bool = False,
) -> pd.DataFrame:
    """Return the packets that wait for an adjudicator, as blinded as the first ones.

    A pair is in the queue when all its primaries have labelled it overall, not all with the same label, and
    the adjudicator has not labelled it. The packet shows neither label, nor that there were two.

    Parameters
    ----------
    pairs, unblinding, labels : pandas.DataFrame
        The pairs, the round's key and the individual labels.
    primaries : int, optional
        Primary labels a pair has.
    simulated : bool, optional
        Marks the packets SIMULATED.

    Returns
    -------
    pandas.DataFrame
        packets.PACKET_COLUMNS.
    """
    overall = _overall(of_round(labels))
    given = overall[overall["stage"] == "primary"].groupby("pair_id")["label"].agg(["size", "nunique"])
    open_pairs = given[(given["size"] >= primaries) & (given["nunique"] > 1)].index
    done = overall.loc[overall["stage"] == "adjudication", "pair_id"]
    waiting = open_pairs.difference(pd.Index(done))
    held = (unblinding["stage"] == "adjudication") & (unblinding["status"] == "reserved")
    return make_packets(pairs, unblinding[held & unblinding["pair_id"].isin(waiting)], simulated)


def measure_progress(
    plan: pd.DataFrame, labels: pd.DataFrame, pairs: pd.DataFrame, slice_by: tuple[str, ...]
) -> pd.DataFrame:
    """Return how far the round is: for the whole, each annotator, each slice.

    Parameters
    ----------
    plan, labels, pairs : pandas.DataFrame
        The plan, the individual labels, the pairs (for their slices).
    slice_by : tuple of str
        Columns of the pairs; one row for each value.

    Returns
    -------
    pandas.DataFrame
        PROGRESS_COLUMNS. ``stage`` adjudication counts only pairs whose primaries differ: before they do,
        nothing is assigned. `share_done` is NaN where nothing is assigned. Overall labels only.
    """
    overall = _overall(of_round(labels))
    primary = overall[overall["stage"] == "primary"]
    spread = primary.groupby("pair_id")["label"].nunique()
    differing = set(spread[spread > 1].index)
    active = plan[plan["status"].isin(["issued", "reserved", "unassigned"])]
    due = active[(active["stage"] == "primary") | active["pair_id"].isin(differing)]
    done = due.merge(
        overall[["pair_id", "annotator_id", "stage", "label"]],
        on=["pair_id", "annotator_id", "stage"],
        how="left",
    )
    wanted = [column for column in slice_by if column in pairs.columns]
    done = done.merge(pairs[["pair_id", *wanted]], on="pair_id", how="left")
    done["differs"] = done["pair_id"].map(dict.fromkeys(differing, True)).notna()
    frames = [_count(done, "all", pd.Series("all", index=done.index))]
    frames.append(_count(done, "annotator", done["annotator_id"].fillna("unassigned")))
    frames += [_count(done, column, done[column].astype("str").fillna("none")) for column in wanted]
    out = pd.concat(frames, ignore_index=True)
    integers = ["assigned", "labelled", "remaining", "ties", "abstentions", "disagreements"]
    return out[PROGRESS_COLUMNS].astype(
        dict.fromkeys(integers, "Int64")
        | {"share_done": "float64"}
        | dict.fromkeys(["scope", "name", "stage"], "str")
    )


def _count(done: pd.DataFrame, scope: str, names: pd.Series) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "name": names,
            "stage": done["stage"],
            "assigned": 1,
            "labelled": done["label"].notna().astype(int),
            "ties": (done["label"] == "TIE").astype(int),
            "abstentions": (done["label"] == "ABSTAIN").astype(int),
        }
    )
    out = frame.groupby(["name", "stage"], as_index=False).sum()
    unlike = done[done["differs"]].assign(name=names)
    counts = unlike.groupby(["name", "stage"])["pair_id"].nunique().rename("disagreements").reset_index()
    out = out.merge(counts, on=["name", "stage"], how="left")
    out["disagreements"] = out["disagreements"].fillna(0)
    out["remaining"] = out["assigned"] - out["labelled"]
    out["share_done"] = out["labelled"] / out["assigned"]
    out.insert(0, "scope", scope)
    return out.sort_values(["name", "stage"], ascending=[True, False], kind="stable")
