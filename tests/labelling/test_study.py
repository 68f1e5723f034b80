import pandas as pd
import pytest
from labelling_helpers import fabricate_pairs, make_key, make_options

from judge_calibration import schemas
from judge_calibration.errors import SourceError
from judge_calibration.labelling.importing import check_rows
from judge_calibration.labelling.label_rows import rows_frame
from judge_calibration.labelling.packets import make_packets, primary_packets
from judge_calibration.labelling.planning import plan_round
from judge_calibration.labelling.spreadsheets import packets_as_csv, read_label_sheet
from judge_calibration.labelling.study import (
    ask_attributes,
    asked_answers,
    pooled_agreement,
    read_cases,
    select_cases,
    study_results,
)
from judge_calibration.options.annotation import LabelFileOptions

STUDY = {
    "enabled": True,
    "witnesses": 3,
    "controls": 2,
    "judges_at_least": 3,
    "attributes": {
        "warmth": "Which is warmer?",
        "depth": "Which goes deeper?",
        "order": "Which is better ordered?",
    },
    "attributes_per_pair": 2,
}


def make_options_of_study(**changes):
    return make_options(study=STUDY | changes, primaries=3)


def panel(votes: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Return verdicts of a panel: for each pair so many judges for A and for B, in both orders."""
    rows = []
    for pair_id, (a, b) in votes.items():
        for judge, verdict in enumerate("A" * a + "B" * b):
            for order in ("AB", "BA"):
                rows.append({"pair_id": pair_id, "judge_id": f"j{judge}", "order": order, "verdict": verdict})
        # A judge that contradicts itself has no preference.
        rows += [
            {"pair_id": pair_id, "judge_id": "torn", "order": order, "verdict": v}
            for order, v in (("AB", "A"), ("BA", "B"))
        ]
    frame = pd.DataFrame(rows).assign(instrument_id="i", protocol="direct", repetition=0, outcome="valid")
    return schemas.conform(frame, schemas.VERDICT_ROWS)


@pytest.mark.parametrize(
    ("agreeing", "resolved", "rate"),
    [(246, 396, 0.621), (1003, 1087, 0.923), (204, 354, 0.576), (942, 1015, 0.928)],
)
def test_published_rates_from_counts(agreeing, resolved, rate):
    assert round(pooled_agreement(agreeing, resolved).rate, 3) == rate


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="5 agreeing of 4"):
        pooled_agreement(5, 4)


class TestCases:
    PAIRS = fabricate_pairs(8)

    def _ids(self):
        return list(self.PAIRS.groupby("base_id")["pair_id"].first())

    def test_witnesses_are_the_most_split_and_controls_are_united(self):
        ids = self._ids()
        votes = dict(
            zip(ids, [(6, 6), (8, 4), (9, 3), (12, 0), (0, 5), (7, 5), (2, 0), (11, 1)], strict=True)
        )
        cases = select_cases(panel(votes), self.PAIRS, make_options_of_study().study, seed=1)
        # 4 of 12 is exactly one third: a witness. 3 of 12 is neither. 2 judges are too few.
        assert list(cases["pair_id"]) == [ids[0], ids[5], ids[1], ids[3], ids[4]]
        assert list(cases["role"]) == ["witness"] * 3 + ["control"] * 2
        assert cases["minority_share"].iloc[2] == pytest.approx(1 / 3)

    def test_one_pair_a_base_task(self):
        both = list(self.PAIRS["pair_id"].iloc[:2])
        cases = select_cases(
            panel(dict.fromkeys(both, (5, 5))), self.PAIRS, make_options_of_study().study, seed=1
        )
        assert len(cases) == 1

    def test_no_verdicts_no_cases(self):
        empty = schemas.empty(schemas.VERDICT_ROWS)
        assert select_cases(empty, self.PAIRS, make_options_of_study().study, seed=1).empty


class TestStudyRound:
    @pytest.fixture(scope="class")
    @staticmethod
    def round_():
        pairs = fabricate_pairs(8)
        ids = list(pairs.groupby("base_id")["pair_id"].first())
        votes = dict(zip(ids[:5], [(6, 6), (7, 5), (8, 4), (12, 0), (0, 11)], strict=True))
        options = make_options_of_study()
        key = make_key(options)
        cases = select_cases(panel(votes), pairs, options.study, seed=1)
        planned = plan_round(pairs, options, key, cases=cases)
        questions = ask_attributes(list(cases["pair_id"]), options.study)
        return pairs, options, key, cases, planned, questions

    def test_three_people_label_each_case_and_nobody_adjudicates(self, round_):
        planned = round_[4]
        assert set(planned.plan["stage"]) == {"primary"}
        assert (planned.plan.groupby("pair_id")["annotator_id"].nunique() == 3).all()
        assert planned.plan["pair_id"].nunique() == 5

    def test_sheets_ask_overall_first_and_show_no_role(self, round_):
        pairs, _, _, _, planned, questions = round_
        packets = primary_packets(pairs, planned.key, questions=questions)
        own = packets[packets["annotator_id"] == packets["annotator_id"][0]]
        text = packets_as_csv(own).decode("utf-8-sig")
        header = text.splitlines()[0].replace('"', "").split(",")
        assert header.index("label") < header.index("attribute_1_label") < header.index("attribute_2_label")
        assert "witness" not in text
        assert "control" not in text

    def test_answers_come_back_and_are_counted(self, round_):
        pairs, options, key, cases, planned, questions = round_
        packets = make_packets(pairs, planned.key, questions=questions)
        # Overall: two people say A, the third B. Attributes: all say A, but one does not answer the second.
        records = []
        for row in planned.key.merge(questions, on="pair_id").to_dict("records"):
            common = {
                "file": "f",
                "row": 2,
                "made_by": "human",
                "packet_id": row["packet_id"],
                "state": "completed",
            }
            shown = {"A": "A", "B": "B"} if row["order"] == "AB" else {"A": "B", "B": "A"}
            records.append(common | {"label": shown["A" if row["slot"] < 3 else "B"]})
            records.append(common | {"attribute": row["attribute_1"], "label": shown["A"]})
            if row["slot"] < 3:
                records.append(common | {"attribute": row["attribute_2"], "label": shown["A"]})
        labels = check_rows(rows_frame(records), planned.key, packets, options, key).labels
        assert len(labels) == 5 * 8
        asked = asked_answers(planned.key, questions)
        assert len(asked) == 5 * 3 * 3
        table = study_results(labels, pairs, cases, asked, options.analysis)
        table = table.set_index(["cases", "question", "statistic"])
        # Overall: of 3 comparisons a pair one agrees. Attributes: 3 + 1 comparisons a pair, all agree.
        assert table.loc[("all", "overall", "agreement"), ["agreeing", "n"]].tolist() == [5, 15]
        assert table.loc[("all", "attributes", "agreement"), ["agreeing", "n"]].tolist() == [20, 20]
        assert table.loc[("witnesses", "overall", "agreement"), ["agreeing", "n"]].tolist() == [3, 9]
        assert table.loc[("all", "attributes", "answered"), "value"] == pytest.approx(25 / 30)
        assert table.loc[("all", "overall", "agreement"), "lowest_item"] == pytest.approx(1 / 3)

    def test_an_attribute_without_the_overall_preference_is_out_of_order(self, round_):
        pairs, options, key, _, planned, questions = round_
        packets = make_packets(pairs, planned.key, questions=questions)
        row = planned.key.merge(questions, on="pair_id").iloc[0]
        common = {
            "file": "f",
            "row": 2,
            "made_by": "human",
            "packet_id": row["packet_id"],
            "state": "completed",
        }
        rows = rows_frame([common | {"attribute": row["attribute_1"], "label": "A"}])
        lenient = options.model_copy(
            update={"labels": options.labels.model_copy(update={"on_problem": "set_aside"})}
        )
        assert list(check_rows(rows, planned.key, packets, lenient, key).set_aside["reason"]) == [
            "overall_missing"
        ]

    def test_a_filled_sheet_round_trips(self, round_):
        pairs, options, key, _, planned, questions = round_
        packets = make_packets(pairs, planned.key, questions=questions)
        own = packets[packets["annotator_id"] == packets["annotator_id"][0]]
        import csv
        import io

        table = list(csv.reader(io.StringIO(packets_as_csv(own).decode("utf-8-sig"), newline="")))
        for row in table[1:]:
            for name in ("label", "attribute_1_label", "attribute_2_label"):
                row[table[0].index(name)] = "TIE"
        out = io.StringIO()
        csv.writer(out).writerows(table)
        rows = read_label_sheet(out.getvalue().encode(), LabelFileOptions(path="own.csv"))
        labels = check_rows(rows, planned.key, packets, options, key).labels
        assert len(labels) == 3 * len(own)
        assert labels["attribute"].nunique() <= 3


def test_attributes_are_asked_about_equally_often():
    questions = ask_attributes([f"p{i}" for i in range(9)], make_options_of_study().study)
    counts = pd.concat([questions["attribute_1"], questions["attribute_2"]]).value_counts()
    assert set(counts) == {6}


def test_a_study_needs_its_attributes():
    with pytest.raises(ValueError, match="attributes_per_pair"):
        make_options(study={"enabled": True})


class TestCasesOfAFile:
    PAIRS = fabricate_pairs(4)
    GOOD = "bank-0001-style"

    def read(self, folder, *lines):
        file = folder / "cases.csv"
        file.write_text("\n".join(lines))
        return read_cases(str(file), self.PAIRS)

    def test_numbers_of_judges_may_be_missing(self, tmp_path):
        cases = self.read(tmp_path, "note,pair_id,role", f"x,{self.GOOD},control")
        assert cases[["pair_id", "role"]].values.tolist() == [[self.GOOD, "control"]]
        assert cases[["judges_a", "minority_share"]].isna().all(axis=None)

    def test_every_problem_is_told_with_its_row(self, tmp_path):
        with pytest.raises(SourceError) as caught:
            self.read(
                tmp_path,
                "pair_id,role,judges_a",
                f"{self.GOOD},witness,many",
                f"{self.GOOD},control,1",
                "p?,judge,1",
            )
        told = [(problem.where.rsplit(", ", 2)[1:], problem.found) for problem in caught.value.problems]
        assert told == [
            (["row 2", "column judges_a"], "'many'"),
            (["row 3", "column pair_id"], f"{self.GOOD!r} again"),
            (["row 4", "column pair_id"], "'p?'"),
            (["row 4", "column role"], "'judge'"),
        ]

    def test_no_such_column_and_no_such_file(self, tmp_path):
        with pytest.raises(SourceError, match="a column role"):
            self.read(tmp_path, "pair_id", self.GOOD)
        with pytest.raises(SourceError, match="cases_file"):
            read_cases(str(tmp_path / "nowhere.csv"), self.PAIRS)
