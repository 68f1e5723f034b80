"""Logs of verdicts: orders, outcomes, repetitions, pairs without texts, and the packaged logs' traps."""

import json

import pytest

from judge_calibration.errors import SourceError
from judge_calibration.schemas import PAIRS, VERDICT_ROWS, problems_of
from judge_calibration.sources import SourceFile, read_logs

ROW = {"pair_id": "p1", "judge_id": "j", "order": "AB", "verdict": "A"}


@pytest.fixture
def log_of(write):
    def read(name, content, layout="verdicts", **over):
        return read_logs([SourceFile(path=write(name, content), layout=layout, set=over)])

    return read


def error_of(read, *args, **kwargs) -> str:
    with pytest.raises(SourceError) as caught:
        read(*args, **kwargs)
    return str(caught.value)


class TestGenericLog:
    def test_verdicts_and_pairs_obey_their_schemas(self, log_of):
        log = log_of("v.jsonl", [ROW, {**ROW, "order": "BA", "verdict": "B"}])
        assert problems_of(log.verdicts, VERDICT_ROWS) == []
        assert problems_of(log.pairs, PAIRS) == []
        assert log.verdicts["shown_winner"].tolist() == ["first", "first"]
        assert log.verdicts["flags"].tolist() == ['["replayed"]'] * 2
        assert log.verdicts["protocol"].tolist() == ["as_logged"] * 2

    def test_pairs_without_texts_hold_nulls_and_are_their_own_clusters(self, log_of):
        pairs = log_of("v.jsonl", [ROW, {**ROW, "pair_id": "p2"}]).pairs
        assert pairs[["question", "response_a", "response_b"]].isna().all(axis=None)
        assert pairs["base_id"].tolist() == ["p1", "p2"]
        assert pairs["content_hash"].nunique() == 2

    def test_missing_texts_are_refused_unless_declared(self, log_of):
        assert "missing_texts" in error_of(log_of, "v.jsonl", [ROW], rules={"missing_texts": "refuse"})

    def test_texts_in_the_log_name_the_pair_by_content(self, log_of):
        texts = {"question": "q", "response_a": "a", "response_b": "b"}
        rows = [{**texts, "judge_id": "j", "order": o, "verdict": "A"} for o in ("AB", "BA")]
        log = log_of("v.jsonl", rows, fields={"pair_id": None, **{name: name for name in texts}})
        assert log.pairs["pair_id"].nunique() == 1
        assert log.pairs.loc[0, "response_b"] == "b"

    def test_no_verdict_is_an_outcome_never_a_verdict(self, log_of):
        rows = [
            {**ROW, "pair_id": str(i), "verdict": None, "outcome": o}
            for i, o in enumerate(["refusal", "", None])
        ]
        verdicts = log_of("v.jsonl", rows).verdicts
        assert verdicts["outcome"].tolist() == ["refusal", "missing", "missing"]
        assert verdicts["verdict"].isna().all()

    def test_no_verdict_and_no_rule_is_a_problem(self, log_of):
        assert "no rule that says why" in error_of(log_of, "v.jsonl", [{**ROW, "verdict": None}], outcomes=[])

    @pytest.mark.parametrize("verdict", ["C", "a", 1, True, "A "])
    def test_a_verdict_outside_the_alphabet(self, log_of, verdict):
        if verdict == "A ":  # white space around a code is none of it
            assert log_of("v.jsonl", [{**ROW, "verdict": verdict}]).verdicts["verdict"].tolist() == ["A"]
        else:
            assert "row 1, column verdict" in error_of(log_of, "v.jsonl", [{**ROW, "verdict": verdict}])

    @pytest.mark.parametrize("order", ["ab", None, "1"])
    def test_an_unknown_order(self, log_of, order):
        assert "row 1, column order" in error_of(log_of, "v.jsonl", [{**ROW, "order": order}])

    def test_a_wrong_order_is_one_problem_and_says_what_to_do(self, log_of):
        rows = [
            {**ROW, "pair_id": f"p{k}", "order": order, "verdict": "A", "reference_label": "A"}
            for k in range(3)
            for order in ("ab", "ba")
        ]
        text = error_of(log_of, "v.jsonl", rows, reference_kind="human")
        problems = [line for line in text.splitlines() if line.startswith("  - ")]
        assert len(problems) == 6  # five rows of six, and how many more
        assert all("column order" in line for line in problems)
        assert "is 'AB' meant?" in text
        assert "order_codes: {AB: [...], BA: [...]}" in text

    def test_a_log_without_an_order_says_what_to_do(self, log_of):
        rows = [{key: value for key, value in ROW.items() if key != "order"}] * 2
        text = error_of(log_of, "v.jsonl", rows)
        problems = [line for line in text.splitlines() if line.startswith("  - ")]
        assert len(problems) == 1
        assert "a column 'order'" in problems[0]
        assert "order_recorded: false" in text
        over = {"fields": {"order": {"const": "AB"}}, "order_recorded": False, "number_repetitions": True}
        assert len(log_of("v.jsonl", rows, **over).verdicts) == 2

    def test_verdicts_that_are_no_code_are_counted_by_what_they_say(self, log_of):
        rows = [{**ROW, "verdict": "a"}, {**ROW, "order": "BA", "verdict": "Neither"}]
        log = log_of("v.jsonl", rows, rules={"unknown_verdict": "malformed"})
        told = json.loads(log.source_files.loc[0, "notes"])["verdicts_that_are_no_code"]
        assert set(told) == {"'a' (is 'A' meant? codes are compared letter by letter)", "'Neither'"}

    def test_identity_or_shown_is_what_is_declared(self, log_of):
        rows = [{**ROW, "verdict": "1"}, {**ROW, "order": "BA", "verdict": "1"}]
        identity = log_of("v.jsonl", rows, codes={"A": ["1"], "B": ["2"]}).verdicts
        shown = log_of("v.jsonl", rows, codes={"first": ["1"], "second": ["2"]}, order_mode="shown").verdicts
        assert identity["verdict"].tolist() == ["A", "A"]
        assert shown["verdict"].tolist() == ["A", "B"]

    def test_a_judgment_twice(self, log_of):
        text = error_of(log_of, "v.jsonl", [ROW, ROW])
        assert "row 2" in text
        assert "number_repetitions" in text
        log = log_of("v.jsonl", [ROW, ROW], number_repetitions=True)
        assert log.verdicts["repetition"].tolist() == [0, 1]

    def test_the_same_judgment_in_two_logs(self, write):
        files = [SourceFile(path=write(n, [ROW]), layout="verdicts") for n in ("1.jsonl", "2.jsonl")]
        assert "2.jsonl, row 1" in error_of(read_logs, files)

    @pytest.mark.parametrize("repetition", [-1, 0.5, 2**63, "x", ""])
    def test_a_wrong_repetition(self, log_of, repetition):
        assert "repetition" in error_of(log_of, "v.jsonl", [{**ROW, "repetition": repetition}])

    def test_conflicting_reference_labels_of_one_pair(self, log_of):
        rows = [{**ROW, "reference_label": "A"}, {**ROW, "order": "BA", "reference_label": "B"}]
        text = error_of(log_of, "v.jsonl", rows, reference_kind="human")
        assert "column reference_label" in text
        assert "'A' in row 1" in text

    def test_reference_labels_need_their_maker(self, log_of):
        assert "reference_kind" in error_of(log_of, "v.jsonl", [{**ROW, "reference_label": "A"}])

    def test_another_judge_or_protocol_is_another_instrument(self, log_of):
        rows = [{**ROW, "judge_id": j, "protocol": p} for j, p in (("j", "x"), ("k", "x"), ("j", "y"))]
        assert log_of("v.jsonl", rows).verdicts["instrument_id"].nunique() == 3

    def test_candidates_named_as_shown_give_the_order(self, log_of):
        rows = [
            {"pair_id": "q1", "judge_id": "j", "x": "zeta", "y": "alpha", "verdict": "x"},
            {"pair_id": "q1", "judge_id": "j", "x": "alpha", "y": "zeta", "verdict": "x"},
        ]
        log = log_of(
            "v.jsonl", rows, fields={"order": None}, shown={"first": "x", "second": "y"},
            codes={"first": ["x"], "second": ["y"]}, order_mode="shown",
        )  # fmt: skip
        assert log.verdicts["order"].tolist() == ["BA", "AB"]
        assert log.verdicts["verdict"].tolist() == ["B", "A"]
        assert log.pairs[["candidate_a", "candidate_b"]].values.tolist() == [["alpha", "zeta"]]


class TestLlmbarVerdicts:
    HEADER = (
        "subset,judge_model,strategy,row,label,order,shown_first,winner_identity,finish_reason,"
        "completion_chars,stage\n"
    )

    def test_the_second_order_is_mapped_back_and_causes_are_kept(self, log_of):
        rows = [
            "LLMBar/Natural,J,S,0,1,AB,1,1,stop,5,1",
            "LLMBar/Natural,J,S,0,1,BA,2,1,stop,5,1",
            "LLMBar/Natural,J,S,1,2,AB,1,,content management policy,,1",
            "LLMBar/Natural,J,S,1,2,BA,2,,length,5,1",
            "LLMBar/Natural,J,S,2,2,AB,1,,stop,5,1",
            "LLMBar/Natural,J,S,2,2,BA,2,,,5,2",
            # A cut text in which the publisher found a winner: the winner stands.
            "LLMBar/Natural,J,S,3,2,BA,2,2,length,5,1",
        ]
        log = log_of("v.csv", self.HEADER + "\n".join(rows) + "\n", layout="llmbar_verdicts")
        assert log.verdicts["outcome"].tolist() == [
            "valid", "valid", "refusal", "truncated", "malformed", "missing", "valid",
        ]  # fmt: skip
        assert log.verdicts["verdict"].tolist()[:2] == ["A", "A"]
        assert log.verdicts["flags"].tolist()[5] == '["replayed","second_stage"]'
        assert log.pairs["source"].unique().tolist() == ["LLMBar"]
        assert log.pairs["domain"].unique().tolist() == ["Natural"]
        assert log.pairs["reference_label"].tolist() == ["A", "B", "B", "B"]


class TestJudgingTheJudges:
    HEADER = (
        "benchmark,set,repetition,judge,n_options,cmp_index,task,shown_first,shown_second,"
        "verdict_letter,n_verdict_matches,output_chars\n"
    )

    def test_letters_name_places(self, log_of):
        rows = [
            "MTBench,repetition,1,J,3,81;vic;alp,writing,vic,alp,A,1,9",
            "MTBench,repetition,1,J,3,81;alp;vic,writing,alp,vic,A,1,9",
            "MTBench,repetition,2,J,3,81;alp;vic,writing,alp,vic,C,2,9",
            "MTBench,repetition,3,J,3,81;alp;vic,writing,alp,vic,,0,9",
            "MTBench,repetition,2,J,3,81;vic;alp,writing,vic,alp,,0,0",
        ]
        log = log_of("v.csv", self.HEADER + "\n".join(rows) + "\n", layout="judging_the_judges")
        assert len(log.pairs) == 1
        assert log.pairs.loc[0, "base_id"] == "MTBench/81"
        verdicts = log.verdicts
        assert verdicts["order"].tolist() == ["BA", "AB", "AB", "AB", "BA"]
        assert verdicts["verdict"].tolist()[:3] == ["B", "A", "TIE"]
        assert verdicts["repetition"].tolist() == [0, 0, 1, 2, 1]
        assert verdicts["outcome"].tolist()[3:] == ["malformed", "empty"]
        assert "several_verdicts_in_text" in verdicts["flags"][2]
        assert log.pairs["reference_label"].isna().all()


class TestAmel:
    def test_the_label_is_flipped_with_the_order_and_errors_are_no_verdicts(self, log_of):
        base = {"judge": "j", "regime": "fresh", "item_id": "i1", "seed": 1}
        told = [  # repetition, swapped, raw response, parsed label
            (0, False, "1", "1"),
            (1, True, "1", "1"),
            (3, True, "ERROR: Client error '429 Too Many Requests'", "2"),
            (4, True, "Well,", None),
            (5, True, "ERROR: ", None),
        ]
        rows = [
            {
                **base,
                "repetition": repetition,
                "swap": swap,
                "truth_label_after_swap": "2" if swap else "1",
                "raw_response": raw,
                "parsed_label": parsed,
            }
            for repetition, swap, raw, parsed in told
        ]
        log = log_of("pilot_responses.jsonl", rows, layout="amel_llmbar")
        assert log.pairs["reference_label"].tolist() == ["A"]
        assert log.verdicts["verdict"].tolist()[:2] == ["A", "B"]
        assert log.verdicts["outcome"].tolist()[2:] == ["rate_limited", "malformed", "error"]
        assert log.verdicts["verdict"].isna().tolist()[2:] == [True] * 3
        # The order is drawn for each repetition, so each order's are numbered anew.
        assert log.verdicts["repetition"].tolist() == [0, 0, 1, 2, 3]
        assert log.verdicts["protocol"].unique().tolist() == ["pilot/fresh"]
        notes = json.loads(log.source_files.loc[0, "notes"])
        assert notes["verdicts_overruled_by_rate_limited"] == 1
