"""Derived judges: votes, both orders, panels; no verdict out of nothing."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from judge_calibration import schemas
from judge_calibration.errors import OptionsError
from judge_calibration.judges.ensembles import average_orders, panel_majority, vote_over_repetitions


def rows_of(verdicts, judge_id="j", **columns):
    """Rows from {(pair, order, repetition): verdict or outcome}."""
    rows = []
    for (pair, order, repetition), value in verdicts.items():
        valid = value in schemas.VERDICTS
        shown = None
        if value in ("A", "B"):
            shown = "first" if (value == "A") == (order == "AB") else "second"
        rows.append(
            {
                "pair_id": pair,
                "judge_id": judge_id,
                "instrument_id": f"id-of-{judge_id}",
                "protocol": "direct",
                "constraint": "none",
                "order": order,
                "temperature": 0.7,
                "repetition": repetition,
                "outcome": "valid" if valid else value,
                "verdict": value if valid else None,
                "shown_winner": shown,
            }
        )
    return schemas.conform(pd.DataFrame(rows).assign(**columns), schemas.VERDICT_ROWS)


def checked(frame):
    return schemas.check(frame, schemas.VERDICT_ROWS)


class TestVote:
    def test_the_majority_of_three(self):
        rows = rows_of({("p", "BA", r): v for r, v in enumerate("ABB")})
        derived = checked(vote_over_repetitions(rows, 3))
        assert derived["verdict"].tolist() == ["B"]
        assert derived["shown_winner"].tolist() == ["first"]
        assert json.loads(derived["scores"][0]) == {"votes": {"A": 1, "B": 2}}

    def test_an_even_split_is_what_was_declared(self):
        rows = rows_of({("p", "AB", 0): "A", ("p", "AB", 1): "B"})
        for undecided in ("TIE", "ABSTAIN"):
            derived = vote_over_repetitions(rows, 2, undecided)
            assert derived["verdict"].tolist() == [undecided]
            assert json.loads(derived["flags"][0]) == ["split_vote"]

    def test_a_failed_vote_gives_no_verdict(self):
        rows = rows_of({("p", "AB", 0): "A", ("p", "AB", 1): "truncated", ("p", "AB", 2): "A"})
        derived = checked(vote_over_repetitions(rows, 3))
        assert derived["outcome"].tolist() == ["truncated"]
        assert derived["verdict"].isna().all()

    def test_leftover_repetitions_are_not_used(self):
        rows = rows_of({("p", "AB", r): v for r, v in enumerate("AAABBBB")})
        assert vote_over_repetitions(rows, 3)["verdict"].tolist() == ["A", "B"]

    def test_one_voter_is_refused(self):
        with pytest.raises(OptionsError, match="voters"):
            vote_over_repetitions(rows_of({("p", "AB", 0): "A"}), 1)


class TestBothOrders:
    def test_agreement_stands_and_contradiction_is_declared(self):
        rows = rows_of({("p", "AB", 0): "A", ("p", "BA", 0): "A", ("q", "AB", 0): "A", ("q", "BA", 0): "B"})
        for undecided in ("TIE", "ABSTAIN"):
            derived = checked(average_orders(rows, undecided)).set_index(["pair_id", "order"])["verdict"]
            assert derived["p"].tolist() == ["A", "A"]
            assert derived["q"].tolist() == [undecided, undecided]

    def test_a_tie_against_a_winner_is_no_agreement(self):
        derived = average_orders(rows_of({("p", "AB", 0): "TIE", ("p", "BA", 0): "A"}), "ABSTAIN")
        assert set(derived["verdict"]) == {"ABSTAIN"}
        assert json.loads(derived["flags"][0]) == ["orders_differ", "order_free"]

    def test_a_missing_order_gives_no_verdict(self):
        derived = checked(average_orders(rows_of({("p", "AB", 0): "A"})))
        assert set(derived["outcome"]) == {"missing"}


class TestPanel:
    def test_the_majority_of_judges(self):
        rows = pd.concat(
            rows_of({("p", "AB", 0): v}, judge_id=name) for name, v in zip("xyz", "ABB", strict=True)
        )
        members = [(name, f"id-of-{name}") for name in "xyz"]
        derived = checked(panel_majority(rows, members))
        assert derived[["judge_id", "protocol", "verdict"]].values.tolist() == [["panel", "panel", "B"]]
        again = panel_majority(rows.iloc[::-1], members[::-1])
        assert again["instrument_id"].tolist() == derived["instrument_id"].tolist()

    def test_a_member_without_a_row_fails_it(self):
        rows = pd.concat(
            [rows_of({("p", "AB", 0): "A", ("q", "AB", 0): "A"}, "x"), rows_of({("p", "AB", 0): "A"}, "y")]
        )
        derived = panel_majority(rows, [("x", "id-of-x"), ("y", "id-of-y")]).set_index("pair_id")
        assert derived["outcome"].to_dict() == {"p": "valid", "q": "missing"}

    @pytest.mark.parametrize("members", [[("x", "id-of-x")], [("x", "id-of-x"), ("nobody", "?")]])
    def test_bad_members_are_refused(self, members):
        with pytest.raises(OptionsError, match="panel"):
            panel_majority(rows_of({("p", "AB", 0): "A"}, "x"), members)


def test_a_derived_judge_changes_with_its_member():
    ids = {
        vote_over_repetitions(rows_of({("p", "AB", r): "A" for r in range(2)}, name), 2)["instrument_id"][0]
        for name in "xy"
    }
    assert len(ids) == 2


def test_no_rows_give_no_rows():
    nothing = schemas.empty(schemas.VERDICT_ROWS)
    assert len(vote_over_repetitions(nothing, 3)) == len(average_orders(nothing)) == 0
