"""Shifts between the labelled, the judged and all pairs."""

import pandas as pd

from judge_calibration.metrics.set_shifts import SHIFT_COLUMNS, set_shifts

PAIRS = pd.DataFrame(
    {
        "pair_id": ["p1", "p2", "p3", "p4"],
        "domain": ["law", "law", "art", "art"],
        "language": ["en", "en", "en", "sr"],
        "question": ["q", "qq", "qqq", "qqqq"],
    }
)
VERDICTS = pd.DataFrame({"pair_id": ["p1", "p2", "p3"]})


def labels(*ids):
    return pd.DataFrame({"pair_id": list(ids), "label": "A", "attribute": None, "stage": "primary"})


def test_both_comparisons_by_hand():
    table = set_shifts(VERDICTS, PAIRS, labels("p1")).set_index(["calibration_set", "kind", "name"])
    art = table.loc[("human_labelled", "slice", "art")]
    # One of three judged pairs is art, none of the labelled one.
    assert (art["calibration_n"], art["judged_n"], art["never_calibrated"]) == (0, 1, True)
    serbian = table.loc[("judged", "language", "sr")]
    assert (serbian["calibration_share"], serbian["judged_share"], serbian["never_calibrated"]) == (
        0,
        0.25,
        True,
    )
    assert table["undefined"].isna().all()


def test_without_labels_the_shares_are_undefined_and_not_0():
    table = set_shifts(VERDICTS, PAIRS, labels())
    part = table[table["calibration_set"] == "human_labelled"]
    assert part["calibration_share"].isna().all()
    assert part["difference"].isna().all()
    assert set(part["undefined"]) == {"no_human_labels"}


def test_without_verdicts():
    table = set_shifts(VERDICTS.iloc[:0], PAIRS)
    assert set(table["undefined"]) == {"no_verdicts"}
    assert set(table["calibration_set"]) == {"judged"}


def test_without_pairs_the_columns_stay():
    table = set_shifts(VERDICTS.iloc[:0], PAIRS.iloc[:0])
    assert table.empty
    assert list(table.columns) == list(SHIFT_COLUMNS)
