"""The section on the people who label: filled, and where there is nothing, why and what would help."""

import numpy as np
import pandas as pd
import pytest

from judge_calibration.report.labelling_section import TABLES, labelling_section
from judge_calibration.report.wording import cell_name

RATE = {"low": 0.4, "high": 0.6, "method": "percentile", "jackknife_se": 0.05, "n": 40, "n_clusters": 20}
RATE |= {"undefined": None}
STATISTICS = (
    *("agreement_with_others", "upheld_when_disputed", "agreement_with_expected"),
    *("first_position", "ties", "abstentions"),
)


def rates(keys, statistics, value=0.5):
    return pd.DataFrame([key | {"statistic": s, "value": value} | RATE for key in keys for s in statistics])


def filled():
    people = [{"kind": "human", "annotator_id": name} for name in ("all", "ann_b", "ann_c")]
    drift = [
        key | {"block": block, "since": "x", "until": "y"} for key in people[1:] for block in ("1", "change")
    ]
    progress = {
        "scope": "all",
        "name": "all",
        "stage": "primary",
        "assigned": 4,
        "labelled": 3,
        "remaining": 1,
    }
    items = pd.DataFrame(
        {
            "kind": "human",
            "pair_id": ["p1", "p2", "p3"],
            "base_id": ["t1", "t2", "t3"],
            "n_labels": [2, 2, 1],
            "A": [1, 2, 1],
            "B": [1, 0, 0],
            "TIE": 0,
            "ABSTAIN": 0,
            "raw": [0.0, 1.0, np.nan],
            "reason_codes": ['["<b>style</b>"]', None, None],
            "hard": [True, False, False],
        }
    )
    expected = [
        {"kind": "human", "stage": stage, "manipulation": name, "difficulty": "all"}
        for stage in ("individual", "adjudicated")
        for name in ("citation", "length")
    ]
    study = [{"kind": "human", "cases": "all", "question": q} for q in ("overall", "attributes")]
    settled = pd.DataFrame(
        {
            "pair_id": ["p1", "p2", "p3"],
            "attribute": None,
            "rule": ["third_decides", "agreed", None],
            "undefined": [None, None, "primaries_missing"],
        }
    )
    errors = pd.DataFrame(
        [
            {"kind": "human", "annotator_id": "ann_b", "true_label": "A", "given_label": g, "probability": p}
            | {"n_labels": 40, "undefined": None}
            for g, p in (("A", 0.9), ("B", 0.1))
        ]
    )
    return {
        "label_progress": pd.DataFrame(
            [progress | {"share_done": 0.75, "ties": 0, "abstentions": 0, "disagreements": 1}]
        ),
        "adjudicated_labels": settled,
        "human_agreement": pd.DataFrame(),
        "item_agreement": items,
        "annotator_table": rates(people, STATISTICS),
        "annotator_drift": rates(drift, STATISTICS[:2] + STATISTICS[3:], -0.1),
        "expected_relationship": rates(expected, ("as_expected", "abstained")),
        "annotator_errors": errors,
        "study_results": rates(study, ("agreement", "resolved", "answered")),
    }


def by_id(section):
    return {block.id: block for block in section.blocks if hasattr(block, "id")}


def missing(section):
    return [(block.what, block.command) for block in section.blocks if block.kind == "missing"]


class TestFilled:
    def test_every_part_is_there(self):
        section = labelling_section(filled())
        assert missing(section) == []
        assert set(by_id(section)) == {
            *("progress-table", "settled-table", "annotators-figure", "drift-figure", "hard-items-table"),
            *("expected-figure", "errors-table", "study-table"),
        }

    def test_each_share_has_its_interval_and_n(self):
        table = by_id(labelling_section(filled()))["annotators-figure"].table
        assert table.rows[0][:2] == ["all together", "50.0 %\n(40.0 to 60.0)\nn 40"]

    def test_only_hard_pairs_are_listed_and_all_are_in_the_download(self):
        table = by_id(labelling_section(filled()))["hard-items-table"]
        assert [row[0] for row in table.rows] == ["p1"]
        assert "1 of 2 pairs" in table.note
        assert len(table.exact) == 3

    def test_settled_labels_are_counted_by_rule(self):
        rows = by_id(labelling_section(filled()))["settled-table"].rows
        assert [row[1:] for row in rows] == [["1", "33.3 %"]] * 3
        assert rows[1][0] == "open: first labels are missing"


class TestEmpty:
    def test_nothing_at_all_says_why_with_a_command_each(self):
        section = labelling_section({name: pd.DataFrame() for name in TABLES})
        assert by_id(section) == {}
        told = missing(section)
        assert len(told) == 3
        assert all(command.startswith("kedro run ") for _, command in told)
        assert [what.split(":")[0].split(".")[0] for what, _ in told] == [
            "No pair waits for people",
            "No labels are there yet",
            "No human attribute study was run",
        ]

    @pytest.mark.parametrize(
        ("table", "word"),
        [
            ("annotator_drift", "No drift over time"),
            ("item_agreement", "No pair has labels of two people"),
            ("expected_relationship", "No labelled pair was constructed"),
            ("annotator_errors", "No error rates"),
            ("study_results", "No human attribute study"),
        ],
    )
    def test_one_part_alone(self, table, word):
        section = labelling_section(filled() | {table: pd.DataFrame()})
        ((what, _),) = missing(section)
        assert what.startswith(word)

    def test_too_few_people_for_the_model(self):
        tables = filled()
        tables["annotator_errors"] = tables["annotator_errors"].assign(
            probability=np.nan, undefined="fewer_than_three_annotators"
        )
        ((what, _),) = missing(labelling_section(tables))
        assert "fewer than three annotators" in what


def test_a_row_without_a_judge_is_of_people():
    assert cell_name({"judge_id": np.nan, "protocol": np.nan, "temperature": np.nan}) == "people"
