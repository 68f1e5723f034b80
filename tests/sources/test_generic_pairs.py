"""The generic importer of pairs: formats, encodings, labels, and every trap by its name."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_calibration.errors import SourceError
from judge_calibration.schemas import PAIRS, problems_of
from judge_calibration.sources import SOURCE_FILES, SourceFile, layout_names, load_layout, read_pairs
from judge_calibration.sources.identity import content_hash, question_cluster
from judge_calibration.sources.pages import write_pages
from judge_calibration.text import from_storable, sha256_of

HEADER = "question,response_a,response_b,reference_label\n"
ROW = {"question": "Is water wet?", "response_a": "Yes.", "response_b": "No."}
LABELLED = {"reference_kind": "human"}


def error_of(read, *args, **kwargs) -> str:
    with pytest.raises(SourceError) as caught:
        read(*args, **kwargs)
    return str(caught.value)


def test_an_absent_column_is_told_once_and_not_row_by_row(pairs_of):
    told = error_of(pairs_of, "p.csv", "prompt,response_a,response_b\n" + "q,x,y\n" * 9)
    assert "column question: found no such column (there are prompt, response_a, response_b)" in told
    assert "found null" not in told
    assert "more rows of this kind" not in told


class TestFormats:
    def test_the_same_rows_in_every_format_give_the_same_pairs(self, pairs_of):
        rows = [ROW, {**ROW, "question": "Is fire cold?"}]
        table = "question,response_a,response_b\nIs water wet?,Yes.,No.\nIs fire cold?,Yes.,No.\n"
        hashes = [
            pairs_of(name, content)[["question", "response_a", "response_b", "content_hash", "base_id"]]
            for name, content in (
                ("p.csv", table),
                ("p.tsv", table.replace(",", "\t")),
                ("p.jsonl", rows),
                ("p.json", rows),
                ("p.parquet", pd.DataFrame(rows)),
                ("p.csv.gz", gzip.compress(table.encode())),
            )
        ]
        for other in hashes[1:]:
            pd.testing.assert_frame_equal(hashes[0], other)

    def test_the_result_obeys_the_schema(self, pairs_of):
        frame = pairs_of("p.jsonl", [ROW], licence="CC0-1.0")
        assert problems_of(frame, PAIRS) == []
        assert frame.loc[0, "license"] == "CC0-1.0"
        assert frame.loc[0, "stakes"] == "ordinary"
        assert frame.loc[0, "provenance"].startswith("pairs: p.jsonl (sha256 ")
        assert not frame.loc[0, "sentinel"]

    def test_unknown_format_is_refused_by_name(self, pairs_of):
        text = error_of(pairs_of, "p.ods", "x")
        assert "p.ods" in text
        assert "format:" in text

    def test_records_inside_a_document(self, pairs_of):
        assert len(pairs_of("p.json", {"data": {"rows": [ROW]}}, records="data.rows")) == 1
        text = error_of(pairs_of, "q.json", {"data": [ROW]})
        assert "records:" in text

    def test_a_mapping_of_records(self, pairs_of):
        frame = pairs_of("p.json", {"k1": ROW}, records="*", fields={"pair_id": "_key"})
        assert frame["pair_id"].tolist() == ["k1"]

    def test_json_lines_called_json_are_read(self, pairs_of):
        lines = [json.dumps({**ROW, "question": text}) for text in "xy"]
        assert pairs_of("p.json", "\n".join(lines))["question"].tolist() == ["x", "y"]

    @pytest.mark.parametrize("content", ["", HEADER])
    def test_a_file_without_rows_is_refused(self, pairs_of, content):
        assert "empty" in error_of(pairs_of, "p.csv", content) or "no rows" in error_of(
            pairs_of, "p.csv", content
        )

    @pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.csv.xz"])
    @pytest.mark.parametrize("press", [gzip.compress, bytes])
    def test_the_bytes_say_whether_a_file_is_packed(self, pairs_of, name, press):
        assert len(pairs_of(name, press((HEADER + "q,a,b,\n").encode()))) == 1

    def test_a_cut_gzip_is_refused(self, pairs_of):
        whole = gzip.compress((HEADER + "q,a,b,\n" * 200).encode())
        assert "damaged" in error_of(pairs_of, "p.csv.gz", whole[:-20])

    def test_a_file_that_is_no_parquet(self, pairs_of):
        assert "a Parquet file" in error_of(pairs_of, "p.parquet", b"hello")

    def test_no_such_file_names_the_path(self, tmp_path):
        path = str(tmp_path / "nowhere" / "p.csv")
        assert path in error_of(read_pairs, [SourceFile(path=path, layout="pairs")])

    def test_a_pattern_reads_all_and_an_unmatched_one_is_refused(self, write, tmp_path):
        write("d/1.jsonl", [ROW])
        write("d/2.jsonl", [{**ROW, "question": "Other?"}])
        source = SourceFile(path=str(tmp_path / "d" / "*.jsonl"), layout="pairs")
        assert len(read_pairs([source]).source_files) == 2
        assert "no such file" in error_of(
            read_pairs, [SourceFile(path=str(tmp_path / "d" / "*.csv"), layout="pairs")]
        )

    def test_any_fsspec_address(self, write):
        import fsspec

        with fsspec.open("memory://folder/p.jsonl", "w") as handle:
            handle.write(json.dumps(ROW))
        read = read_pairs([SourceFile(path="memory://folder/p.jsonl", layout="pairs")])
        assert read.source_files.loc[0, "path"] == "memory://folder/p.jsonl"
        assert len(read.pairs) == 1

    def test_an_unknown_protocol_is_told(self):
        text = error_of(read_pairs, [SourceFile(path="nope://x/p.csv", layout="pairs")])
        assert "nope" in text

    @pytest.mark.parametrize("name", ["a=1,b^2.csv", "gpt:4.csv", "x#y?.csv", "[1].csv", "ünïcode 名.csv"])
    def test_odd_file_names(self, pairs_of, name):
        assert len(pairs_of(name, HEADER + "q,a,b,\n")) == 1


class TestEncodings:
    TEXT = "question,response_a,response_b\nCafé?,naïve – yes,“no”\n"

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_utf8_and_byte_order_marks(self, pairs_of, encoding):
        assert pairs_of("p.csv", self.TEXT, encoding=encoding).loc[0, "question"] == "Café?"

    def test_cp1252_is_refused_until_it_is_declared(self, write, tmp_path):
        path = write("p.csv", self.TEXT, "cp1252")
        text = error_of(read_pairs, [SourceFile(path=path, layout="pairs")])
        assert "0xe9 in line 2" in text
        assert "encoding: cp1252" in text
        read = read_pairs([SourceFile(path=path, layout="pairs", set={"encoding": "cp1252"})])
        assert read.pairs.loc[0, "response_b"] == "“no”"

    def test_utf16_without_a_mark_is_explained(self, pairs_of):
        assert "utf-16-le" in error_of(pairs_of, "p.csv", self.TEXT, encoding="utf-16-le")

    def test_an_unknown_encoding(self, pairs_of):
        text = error_of(
            pairs_of, "p.csv", self.TEXT, **{"encoding": "utf-8"}, delimiter=",", quoting=True, language=3
        )
        assert "language" in text

    def test_lone_surrogates_nul_crlf_and_zero_width_survive(self, pairs_of):
        odd = "a\ud800b \x00 c\r\nd\u200b \u202e \uffff"
        frame = pairs_of("p.jsonl", [{**ROW, "response_a": odd}])
        assert from_storable(frame.loc[0, "response_a"]) == odd
        assert frame.to_parquet(index=False)  # UTF-8 holds it

    def test_nul_in_a_csv_field(self, pairs_of):
        assert pairs_of("p.csv", HEADER + "q,a\x00b,c,\n").loc[0, "response_a"] == "a\x00b"

    def test_line_separators_of_unicode_do_not_end_a_json_line(self, pairs_of):
        line = json.dumps({**ROW, "response_a": "a\u2028b\x85c"}, ensure_ascii=False)
        assert pairs_of("p.jsonl", line).loc[0, "response_a"] == "a\u2028b\x85c"


class TestDelimited:
    def test_line_breaks_and_tabs_inside_quoted_tsv_fields(self, pairs_of):
        frame = pairs_of("p.tsv", 'question\tresponse_a\tresponse_b\nq\t"one\ntwo\tthree ""x"""\tb\n')
        assert frame.loc[0, "response_a"] == 'one\ntwo\tthree "x"'

    def test_an_unclosed_quote_is_refused_instead_of_eating_the_rest(self, pairs_of):
        assert "quoting: false" in error_of(
            pairs_of, "p.tsv", 'question\tresponse_a\tresponse_b\nq\t"one\tb\nq\tx\ty\n'
        )

    def test_plain_quotes_where_declared(self, pairs_of):
        frame = pairs_of("p.tsv", 'question\tresponse_a\tresponse_b\nq\t"one\tb\n', quoting=False)
        assert frame.loc[0, "response_a"] == '"one'

    @pytest.mark.parametrize("row", ["q,a\n", "q,a,b,A,extra\n"])
    def test_short_and_long_rows_are_refused(self, pairs_of, row):
        text = error_of(pairs_of, "p.csv", HEADER + "q,a,b,\n" + row)
        assert "row 3" in text
        assert "4 fields" in text

    def test_another_delimiter_is_one_problem_also_where_texts_have_commas(self, pairs_of):
        text = error_of(pairs_of, "p.csv", "question;response_a;response_b\nq, r;a, b;c\ns;t, u, v;w\n")
        assert "delimiter: ';'" in text
        assert text.count("  - ") == 1

    def test_another_delimiter_is_recognised_and_declared(self, pairs_of):
        text = "question;response_a;response_b\nq;a;b\n"
        assert "delimiter: ';'" in error_of(pairs_of, "p.csv", text)
        assert pairs_of("p.csv", text, delimiter=";").loc[0, "response_b"] == "b"

    def test_a_column_twice_in_the_header(self, pairs_of):
        assert "twice" in error_of(pairs_of, "p.csv", "question,question,response_a,response_b\nq,q,a,b\n")

    @pytest.mark.parametrize("text", ["NA", "null", "None", "nan", "-", "1.0", "TRUE", "007"])
    def test_words_that_other_readers_turn_into_nulls_or_numbers(self, pairs_of, text):
        assert pairs_of("p.csv", HEADER + f"q,{text},b,\n").loc[0, "response_a"] == text

    def test_a_field_longer_than_the_readers_usual_limit(self, pairs_of):
        assert len(pairs_of("p.csv", HEADER + f"q,{'x' * 200_000},b,\n").loc[0, "response_a"]) == 200_000


class TestIds:
    def test_ids_from_content_do_not_depend_on_the_order_of_rows(self, pairs_of):
        rows = [{**ROW, "question": f"q{i}"} for i in range(5)]
        first = pairs_of("p.jsonl", rows)
        second = pairs_of("p.jsonl", rows[::-1])
        assert set(first["pair_id"]) == set(second["pair_id"])

    def test_the_files_ids_are_kept(self, pairs_of):
        assert pairs_of("p.jsonl", [{**ROW, "pair_id": 7}])["pair_id"].tolist() == ["7"]

    @pytest.mark.parametrize("missing", ["", "  ", None])
    def test_missing_pair_id(self, pairs_of, missing):
        rows = [{**ROW, "pair_id": "1"}, {**ROW, "question": "x", "pair_id": missing}]
        text = error_of(pairs_of, "p.jsonl", rows)
        assert "row 2, column pair_id" in text

    @pytest.mark.parametrize("value", [7, 7.0, "7"])
    def test_whole_numbers_as_ids(self, pairs_of, value):
        frame = pd.DataFrame([{**ROW, "pair_id": value}])
        assert pairs_of("p.parquet", frame)["pair_id"].tolist() == ["7"]

    def test_duplicated_pair_id_with_other_texts(self, pairs_of):
        rows = [{**ROW, "pair_id": "1"}, {**ROW, "question": "x", "pair_id": "1"}]
        text = error_of(pairs_of, "p.jsonl", rows, rules={"repeated_rows": "merge"})
        assert "row 2, column pair_id" in text
        assert "other texts than in row 1" in text

    def test_the_same_pair_in_two_files(self, write):
        files = [
            SourceFile(path=write(n, [{**ROW, "pair_id": "1"}]), layout="pairs")
            for n in ("1.jsonl", "2.jsonl")
        ]
        text = error_of(read_pairs, files)
        assert "2.jsonl, row 1" in text
        assert "1.jsonl, row 1" in text

    def test_one_question_under_several_ids_is_one_cluster(self, pairs_of):
        rows = [
            {**ROW, "pair_id": "1", "question": "What is it?"},
            {**ROW, "pair_id": "2", "question": "what  is it?\n"},
            {**ROW, "pair_id": "3", "question": "What is that?"},
        ]
        base = pairs_of("p.jsonl", rows)["base_id"]
        assert base[0] == base[1] != base[2]

    def test_a_given_base_id_is_kept(self, pairs_of):
        assert pairs_of("p.jsonl", [{**ROW, "base_id": "b1"}])["base_id"].tolist() == ["b1"]

    def test_content_hash_is_of_the_shown_texts_only(self, pairs_of):
        one = pairs_of("p.jsonl", [{**ROW, "pair_id": "1", "domain": "x"}])["content_hash"][0]
        two = pairs_of("q.csv", "question,response_a,response_b\nIs water wet?,Yes.,No.\n")["content_hash"][0]
        assert one == two == sha256_of(ROW)

    @given(st.text(), st.text(), st.text())
    @settings(max_examples=50, deadline=None)
    def test_content_hash_is_the_canonical_one(self, q, a, b):
        assert content_hash(q, a, b) == sha256_of({"question": q, "response_a": a, "response_b": b})

    @given(st.text(min_size=1))
    @settings(max_examples=50, deadline=None)
    def test_clusters_ignore_spaces_around(self, text):
        assert question_cluster(text) == question_cluster(f"  {text}\n")


class TestLabels:
    def test_labels_ties_and_none(self, pairs_of):
        rows = [
            {**ROW, "question": str(i), "reference_label": v}
            for i, v in enumerate(["A", "B", "TIE", "", None])
        ]
        frame = pairs_of("p.jsonl", rows, **LABELLED)
        assert frame["reference_label"].tolist()[:3] == ["A", "B", "TIE"]
        assert frame["reference_label"].isna().tolist() == [False, False, False, True, True]
        assert frame["reference_kind"].isna().tolist() == [False, False, False, True, True]

    @pytest.mark.parametrize("label", ["C", "a", "tie", 1, True, 0.999, ["A"]])
    def test_a_label_outside_the_alphabet(self, pairs_of, label):
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "reference_label": label}], **LABELLED)
        assert "row 1, column reference_label" in text
        assert "TIE" in text

    def test_nan_is_no_label(self, pairs_of):
        rows = (
            '{"question": "q", "response_a": "a", "response_b": "b", "reference_label": NaN, "domain": NaN}'
        )
        assert pairs_of("p.jsonl", rows, **LABELLED)[["reference_label", "domain"]].isna().all(axis=None)

    def test_labels_need_to_say_who_made_them(self, pairs_of):
        assert "reference_kind" in error_of(pairs_of, "p.jsonl", [{**ROW, "reference_label": "A"}])

    @pytest.mark.parametrize(
        "tie", [0, 1.5, 2, 3, "C", "A=B", "Tie", "tie (inconsistent)", "tie (bothbad)", False, None]
    )
    def test_ties_are_what_the_codes_say(self, pairs_of, tie):
        rows = [{**ROW, "question": str(i), "reference_label": v} for i, v in enumerate(["x", "y", tie])]
        codes = {"A": ["x"], "B": ["y"], "TIE": [tie]}
        assert pairs_of("p.jsonl", rows, codes=codes, **LABELLED)["reference_label"].tolist() == [
            "A",
            "B",
            "TIE",
        ]

    def test_zero_means_first_only_where_it_is_declared(self, pairs_of):
        rows = [{**ROW, "reference_label": 0}]
        frame = pairs_of("p.jsonl", rows, codes={"A": [0], "B": [1]}, **LABELLED)
        assert frame["reference_label"].tolist() == ["A"]

    def test_a_boolean_is_not_a_number(self, pairs_of):
        text = error_of(
            pairs_of, "p.jsonl", [{**ROW, "reference_label": True}], codes={"A": [1], "B": [0]}, **LABELLED
        )
        assert "true (boolean)" in text

    @pytest.mark.parametrize(
        ("value", "label"), [(1.0, "A"), (1.49, "A"), (1.5, "TIE"), (1.999999, "B"), ("2", "B")]
    )
    def test_float_preferences(self, pairs_of, value, label):
        numeric = {"lowest": 1, "highest": 2, "tie_from": 1.5, "tie_to": 1.5}
        frame = pairs_of(
            "p.jsonl", [{**ROW, "reference_label": value}], codes={"numeric": numeric}, **LABELLED
        )
        assert frame["reference_label"].tolist() == [label]

    @pytest.mark.parametrize("value", [0, -1, 2.0001, "x", float("nan"), None])
    def test_float_preferences_out_of_their_range(self, pairs_of, value):
        numeric = {"lowest": 1, "highest": 2, "tie_from": 1.5, "tie_to": 1.5}
        error_of(
            pairs_of, "p.jsonl", [{**ROW, "reference_label": value}], codes={"numeric": numeric}, **LABELLED
        )

    def test_shown_labels_are_mapped_back_with_the_order(self, pairs_of):
        rows = [
            {**ROW, "question": "1", "reference_label": "left", "order": "AB"},
            {**ROW, "question": "2", "reference_label": "left", "order": "BA"},
        ]
        codes = {"first": ["left"], "second": ["right"]}
        frame = pairs_of(
            "p.jsonl", rows, codes=codes, order_mode="shown", fields={"order": "order"}, **LABELLED
        )
        assert frame["reference_label"].tolist() == ["A", "B"]

    def test_codes_that_do_not_fit_the_order_mode(self, pairs_of):
        text = error_of(pairs_of, "p.jsonl", [ROW], codes={"A": ["x"], "B": ["y"]}, order_mode="shown")
        assert "first and second" in text


class TestDangerousRows:
    @pytest.mark.parametrize("empty", ["", " \n\t"])
    def test_empty_response_is_refused_by_default(self, pairs_of, empty):
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "response_b": empty}])
        assert "row 1, column response_b" in text

    def test_empty_response_kept_or_dropped_where_declared(self, pairs_of):
        rows = [ROW, {**ROW, "response_b": ""}]
        kept = pairs_of("p.jsonl", rows, rules={"empty_response": "keep"})
        assert kept["import_flags"].tolist()[1] == '["empty_response"]'
        assert len(pairs_of("p.jsonl", rows, rules={"empty_response": "drop"})) == 1

    @pytest.mark.parametrize("value", [None, True, 3, 2.5])
    def test_booleans_nulls_and_numbers_as_responses(self, pairs_of, value):
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "response_a": value}])
        assert "row 1, column response_a" in text
        assert "wanted the answer as text" in text

    def test_an_empty_question(self, pairs_of):
        assert "column question" in error_of(pairs_of, "p.jsonl", [{**ROW, "question": " "}])

    def test_identical_answers_with_a_winner_are_kept_as_an_identity_pair(self, pairs_of):
        row = {**ROW, "response_b": "Yes.", "reference_label": "A"}
        frame = pairs_of("p.jsonl", [row], **LABELLED)
        assert frame.loc[0, "manipulation"] == "identity"
        assert frame.loc[0, "reference_label"] == "A"
        assert json.loads(frame.loc[0, "import_flags"]) == [
            "identical_responses",
            "identical_responses_with_a_winner",
        ]

    def test_identical_answers_by_rule(self, pairs_of):
        row = {**ROW, "response_b": "Yes.", "reference_label": "A"}
        unlabelled = pairs_of("p.jsonl", [row], rules={"identical_responses": "unlabel"}, **LABELLED)
        assert unlabelled[["reference_label", "reference_kind"]].isna().all(axis=None)
        assert len(pairs_of("p.jsonl", [row, ROW], rules={"identical_responses": "drop"}, **LABELLED)) == 1
        error_of(pairs_of, "p.jsonl", [row], rules={"identical_responses": "refuse"}, **LABELLED)

    def test_duplicated_rows_with_conflicting_labels_are_refused(self, pairs_of):
        rows = [{**ROW, "reference_label": "A"}, {**ROW, "reference_label": "B"}]
        text = error_of(pairs_of, "p.jsonl", rows, rules={"repeated_rows": "merge"}, **LABELLED)
        assert "row 2" in text
        assert "['A', 'B']" in text

    def test_duplicated_rows_by_rule(self, pairs_of):
        rows = [{**ROW, "reference_label": v} for v in "ABA"]
        majority = pairs_of("p.jsonl", rows, rules={"repeated_rows": "majority"}, **LABELLED)
        assert majority["reference_label"].tolist() == ["A"]
        draw = pairs_of("p.jsonl", rows[:2], rules={"repeated_rows": "majority"}, **LABELLED)
        assert draw["reference_label"].tolist() == ["TIE"]
        unlabelled = pairs_of("p.jsonl", rows, rules={"repeated_rows": "merge_unlabel"}, **LABELLED)
        assert unlabelled["reference_label"].isna().all()
        assert len(pairs_of("p.jsonl", [ROW, ROW], rules={"repeated_rows": "merge"})) == 1
        assert "Nothing was imported" in error_of(pairs_of, "p.jsonl", [ROW, ROW])

    def test_a_file_of_which_nothing_is_left_is_told(self, pairs_of):
        told = error_of(pairs_of, "p.jsonl", [{**ROW, "response_b": ""}], rules={"empty_response": "drop"})
        assert "1 rows, of which nothing is left (dropped 1, empty_response 1)" in told

    def test_html_entities_are_kept_and_counted_or_unescaped_where_declared(self, write):
        path = write("p.jsonl", [{**ROW, "response_a": "1 &lt; 2 &amp;&amp; it&#39;s"}])
        read = read_pairs([SourceFile(path=path, layout="pairs")])
        assert read.pairs.loc[0, "response_a"] == "1 &lt; 2 &amp;&amp; it&#39;s"
        assert json.loads(read.source_files.loc[0, "notes"])["html_entities"] == 1
        rules = {"rules": {"html_entities": "unescape"}}
        read = read_pairs([SourceFile(path=path, layout="pairs", set=rules)])
        assert read.pairs.loc[0, "response_a"] == "1 < 2 && it's"

    def test_unknown_stakes(self, pairs_of):
        assert "medical" in error_of(pairs_of, "p.jsonl", [{**ROW, "stakes": "high"}])


class TestChat:
    def test_a_single_user_message_is_its_text(self, pairs_of):
        frame = pairs_of("p.jsonl", [{**ROW, "question": [{"role": "user", "content": "Hi"}]}])
        assert frame.loc[0, "question"] == "Hi"

    def test_nested_turns_from_value_and_parts(self, pairs_of):
        turns = [[{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]]
        frame = pairs_of(
            "p.jsonl",
            [
                {
                    **ROW,
                    "question": turns,
                    "response_a": [{"role": "assistant", "content": [{"type": "text", "text": "x"}]}],
                }
            ],
        )
        assert json.loads(frame.loc[0, "question"]) == [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "Ho"},
        ]
        assert frame.loc[0, "response_a"] == "x"

    @pytest.mark.parametrize(
        "turns",
        [
            [],
            [{"role": "wizard", "content": "x"}],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}],
            ["plain"],
        ],
    )
    def test_messages_that_cannot_be_read(self, pairs_of, turns):
        assert "column question" in error_of(pairs_of, "p.jsonl", [{**ROW, "question": turns}])

    def test_two_conversations_part_where_they_differ(self, pairs_of):
        start = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "same"}]
        more = [{"role": "user", "content": "and?"}]
        record = {
            "a": [*start, *more, {"role": "assistant", "content": "x"}],
            "b": [*start, *more, {"role": "assistant", "content": "y"}],
        }
        frame = pairs_of(
            "p.jsonl", [record], fields={"question": None, "response_a": None, "response_b": None},
            conversation={"a": "a", "b": "b"},
        )  # fmt: skip
        assert len(json.loads(frame.loc[0, "question"])) == 3
        assert frame[["response_a", "response_b"]].values.tolist() == [["x", "y"]]

    def test_chosen_answers_stand_on_both_sides(self, pairs_of):
        rows = [{"q": f"q{i}", "good": f"g{i}", "bad": f"b{i}"} for i in range(60)]
        fields = {
            "question": "q",
            "chosen": "good",
            "rejected": "bad",
            "response_a": None,
            "response_b": None,
        }
        frame = pairs_of("p.jsonl", rows, fields=fields, **LABELLED)
        winner = [
            row["response_a"] if row["reference_label"] == "A" else row["response_b"]
            for _, row in frame.iterrows()
        ]
        assert all(text.startswith("g") for text in winner)
        assert 15 < (frame["reference_label"] == "A").sum() < 45


class TestAllOrNothing:
    def test_all_problems_of_all_files_in_one_report(self, write):
        files = [
            SourceFile(
                path=write("1.jsonl", [{**ROW, "response_a": ""}, {**ROW, "stakes": "no"}]), layout="pairs"
            ),
            SourceFile(path=write("2.csv", HEADER + "q,a,b,C\n"), layout="pairs"),
            SourceFile(path="nowhere.csv", layout="pairs"),
            SourceFile(path=write("3.jsonl", [ROW]), layout="nonsense"),
        ]
        with pytest.raises(SourceError) as caught:
            read_pairs(files)
        text = str(caught.value)
        for part in ("1.jsonl, row 1", "1.jsonl, row 2", "2.csv, row 2", "nowhere.csv", "nonsense", "Next:"):
            assert part in text

    def test_many_wrong_rows_are_counted_not_listed(self, pairs_of):
        rows = [{**ROW, "question": str(i), "reference_label": "X"} for i in range(1000)]
        text = error_of(pairs_of, "p.jsonl", rows, **LABELLED)
        assert "995 more rows" in text
        assert text.count("\n") < 15

    def test_a_misspelt_optional_column_is_not_left_out_silently(self, pairs_of):
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "refrence_label": "A"}])
        assert "refrence_label" in text

    def test_a_missing_column_names_the_nearest(self, pairs_of):
        text = error_of(pairs_of, "p.jsonl", [{"qestion": "q", "response_a": "a", "response_b": "b"}])
        assert "did you mean 'qestion'" in text

    @pytest.mark.parametrize(
        ("label", "meant"), [("a", "A"), ("tie", "TIE"), ("[[B]]", "B"), ("Tie.", "TIE")]
    )
    def test_a_code_that_differs_in_case_only_is_told(self, pairs_of, label, meant):
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "reference_label": label}], **LABELLED)
        assert f"is '{meant}' meant?" in text
        assert "set: {codes:" in text

    @pytest.mark.parametrize("value", ["1.0", "1", "1.00", 1.0])
    def test_a_whole_number_with_a_point_is_the_number(self, pairs_of, value):
        codes = {"A": [1], "B": [0], "TIE": [0.5]}
        frame = pairs_of("p.jsonl", [{**ROW, "reference_label": value}], codes=codes, **LABELLED)
        assert frame["reference_label"].tolist() == ["A"]

    def test_a_decimal_comma_is_told(self, pairs_of):
        codes = {"A": [1], "B": [0], "TIE": [0.5]}
        text = error_of(pairs_of, "p.jsonl", [{**ROW, "reference_label": "0,5"}], codes=codes, **LABELLED)
        assert "is 0.5 meant? it is written with a comma" in text

    def test_a_wrong_row_takes_no_part_in_comparisons(self, pairs_of):
        rows = [{**ROW, "pair_id": "1", "stakes": "no"}, {**ROW, "pair_id": "1", "question": "x"}]
        text = error_of(pairs_of, "p.jsonl", rows)
        assert "column stakes" in text
        assert "other texts" not in text

    def test_what_to_do_about_a_missing_column_is_told(self, pairs_of):
        text = error_of(pairs_of, "p.jsonl", [{"frage": "q", "response_a": "a", "response_b": "b"}])
        assert "set: {fields: {question: NAME}}" in text
        text = error_of(pairs_of, "p.jsonl", [{"frage": "q", "eins": "a", "zwei": "b"}])
        assert "set: {fields: {question: NAME, response_a: NAME, response_b: NAME}}" in text

    def test_columns_that_nothing_reads_are_told(self, write):
        read = read_pairs([SourceFile(path=write("p.jsonl", [{**ROW, "zzz": 1}]), layout="pairs")])
        assert json.loads(read.source_files.loc[0, "notes"])["columns_not_read"] == ["zzz"]

    def test_broken_json_lines_name_their_line(self, pairs_of):
        text = error_of(pairs_of, "p.jsonl", json.dumps(ROW) + "\n{oops\n[1]\n")
        assert "row 2" in text
        assert "row 3" in text

    def test_a_log_layout_is_no_pairs_layout(self, pairs_of):
        assert "a layout of verdicts" in error_of(pairs_of, "p.jsonl", [ROW], layout="verdicts")

    def test_an_unknown_setting_is_refused(self, pairs_of):
        assert "feilds" in error_of(pairs_of, "p.jsonl", [ROW], feilds={})

    def test_an_unknown_field_is_refused(self, pairs_of):
        assert "questoin" in error_of(pairs_of, "p.jsonl", [ROW], fields={"questoin": "question"})

    def test_source_files_table(self, write):
        table = read_pairs([SourceFile(path=write("p.jsonl", [ROW]), layout="pairs")]).source_files
        assert problems_of(table, SOURCE_FILES) == []
        assert table.loc[0, ["kind", "rows", "imported"]].tolist() == ["pairs", 1, 1]

    def test_no_files_give_empty_tables(self):
        read = read_pairs([])
        assert len(read.pairs) == len(read.source_files) == 0
        assert problems_of(read.pairs, PAIRS) == []


class TestOwnLayout:
    def test_a_users_layout_is_one_yaml_file(self, write, tmp_path):
        layout = write(
            "mine.yml",
            "layout: mine\ntitle: Mine\nkind: pairs\nlicence: CC0-1.0\nreference_kind: human\n"
            "fields: {question: prompt, response_a: meta.left, response_b: meta.right, label: best}\n"
            "codes: {A: [left], B: [right]}\n",
        )
        rows = [{"prompt": "q", "meta": {"left": "a", "right": "b"}, "best": "right"}]
        frame = read_pairs([SourceFile(path=write("p.jsonl", rows), layout=layout)]).pairs
        assert frame.loc[0, "reference_label"] == "B"

    def test_a_yaml_file_that_cannot_be_read(self, write):
        text = error_of(
            read_pairs, [SourceFile(path=write("p.jsonl", [ROW]), layout=write("mine.yml", "a: [1"))]
        )
        assert "mine.yml" in text

    @pytest.mark.parametrize("name", layout_names())
    def test_every_packaged_layout_is_valid_and_says_where_it_was_seen(self, name):
        layout = load_layout(name)
        assert layout.layout == name
        assert layout.seen
        assert layout.title

    def test_the_pages_in_the_docs_are_those_of_the_layouts(self, project_path: Path, tmp_path: Path):
        for page in write_pages(tmp_path):
            there = project_path / "docs" / "sources" / page.name
            wanted = "python -m judge_calibration.sources.pages docs/sources writes the pages anew"
            assert there.read_text("utf-8") == page.read_text("utf-8"), wanted


class TestRowNumbers:
    """A row is named as one finds it: as a spreadsheet shows it, or by its line or number."""

    def provenance(self, frame):
        return [int(text.rpartition(", row ")[2]) for text in frame["provenance"]]

    def test_a_spreadsheet_counts_the_header_and_empty_lines(self, pairs_of):
        # Row 1 header, row 2 with a cell of three lines, row 3 empty, row 4, row 5 wrong.
        text = HEADER + 'q1,"a\n\nc",b,\n\nq2,a,b,\n'
        assert self.provenance(pairs_of("p.csv", text)) == [2, 4]
        assert "row 5, column reference_label" in error_of(pairs_of, "p.csv", text + "q3,a,b,C\n", **LABELLED)

    def test_empty_lines_before_the_header(self, pairs_of):
        assert self.provenance(pairs_of("p.csv", "\n\n" + HEADER + "q,a,b,\n")) == [4]

    def test_lines_of_json_lines(self, pairs_of):
        assert self.provenance(pairs_of("p.jsonl", "\n" + json.dumps(ROW) + "\n")) == [2]

    def test_numbers_in_a_json_list(self, pairs_of):
        text = json.dumps([ROW, {**ROW, "question": "another"}], indent=1)
        assert self.provenance(pairs_of("p.json", text)) == [1, 2]
