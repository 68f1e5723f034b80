"""`kedro doctor`: what a file is, what it allows, what is missing, and what it never guesses."""

import json

import pandas as pd
import pytest
import yaml
from command_tables import make_labels, make_pairs, make_verdicts

from judge_calibration.metrics.analyses import possible_analyses
from judge_calibration.report.page import render_page

OUR_PAGE = render_page("Title", "Summary", [], []).encode("utf-8")


def allowed(*tables):
    return {item.name: item.allowed for item in possible_analyses(*tables)}


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


@pytest.fixture
def pairs():
    return make_pairs(40, reference_label="A", reference_kind="human", candidate_a="old", candidate_b="new")


class TestAnalyses:
    def test_pairs_alone_can_be_judged_and_labelled(self, pairs):
        found = allowed(pairs)
        assert found["judging the pairs"]
        assert found["release gate"]
        assert not found["accuracy (A)"]
        assert not found["order effects (phi, position bias)"]

    def test_one_order_has_no_order_effects_and_no_t(self, pairs):
        verdicts = make_verdicts(pairs, ["A"] * 40)
        found = allowed(pairs, verdicts[verdicts["order"] == "AB"])
        assert found["accuracy (A)"]
        assert not found["order effects (phi, position bias)"]
        assert not found["trustworthy verdict rate (T)"]

    def test_one_repetition_has_no_c_and_t_says_what_it_lacks(self, pairs):
        verdicts = make_verdicts(pairs, ["A"] * 40)
        by_name = {item.name: item for item in possible_analyses(pairs, verdicts)}
        assert by_name["order effects (phi, position bias)"].allowed
        assert not by_name["reproducibility (C, C2)"].allowed
        assert by_name["trustworthy verdict rate (T)"].missing == "repetitions"
        again = pd.concat([verdicts, verdicts.assign(repetition=1)])
        assert allowed(pairs, again)["trustworthy verdict rate (T)"]

    def test_two_judges_with_one_order_each_are_no_two_orders(self, pairs):
        verdicts = make_verdicts(pairs, ["A"] * 40)
        other = verdicts.assign(judge_id="b")
        mixed = pd.concat([verdicts[verdicts["order"] == "AB"], other[other["order"] == "BA"]])
        assert not allowed(pairs, mixed)["order effects (phi, position bias)"]

    def test_people(self, pairs):
        labels = make_labels(pairs, ["A"] * 40)
        found = allowed(pairs.assign(reference_kind=None), make_verdicts(pairs, ["A"] * 40), labels)
        assert found["agreement of judge and people"]
        assert not found["agreement of people (the ceiling)"]
        two = pd.concat([labels, labels.assign(annotator_id="b")])
        assert allowed(pairs, None, two)["agreement of people (the ceiling)"]

    def test_ties_are_no_decisive_reference(self, pairs):
        assert not allowed(pairs.assign(reference_label="TIE"), make_verdicts(pairs, ["A"] * 40))[
            "accuracy (A)"
        ]

    def test_nine_tasks_have_no_interval(self):
        assert not allowed(make_pairs(9))["intervals"]
        assert allowed(make_pairs(10))["intervals"]

    def test_nothing_allows_nothing(self):
        assert not any(allowed().values())


class TestCommand:
    def test_a_file_of_pairs(self, tool_project):
        rows = [{"question": f"q{i}", "response_a": "a", "response_b": "b"} for i in range(12)]
        path = lines(tool_project.root / "mine.jsonl", rows)
        result = tool_project.kedro("doctor", path)
        assert result.exit_code == 0, result.output
        assert "Layout 'pairs', pairs: 12 rows read" in result.output
        assert "data_prep.pair_files" in result.output
        allowed, missing = result.output.split("Not yet")
        assert "judging the pairs: 12 pairs" in allowed
        assert "accuracy (A): verdicts" in missing

    def test_what_was_left_out_or_not_read_is_told(self, tool_project):
        rows = [
            {"question": f"q{i}", "response_a": "a", "response_b": "a" if i else "b", "x": 1} for i in (0, 1)
        ]
        result = tool_project.kedro("doctor", lines(tool_project.root / "mine.jsonl", rows))
        assert "Noted: columns not read: x; identical responses: 1." in result.output

    def test_a_log_of_verdicts(self, tool_project):
        rows = [
            {"pair_id": f"p{i}", "judge_id": "j", "order": order, "verdict": "A", "reference_label": "A"}
            for i in range(12)
            for order in ("AB", "BA")
        ]
        path = lines(tool_project.root / "log.jsonl", rows)
        result = tool_project.kedro("doctor", path)
        assert result.exit_code == 3, result.output
        assert "--layout verdicts --reference-kind human" in result.output
        result = tool_project.kedro("doctor", path, "--set", "reference_kind=human")
        assert result.exit_code == 0, result.output
        assert "set: {reference_kind: human}" in result.output
        assert "order effects (phi, position bias): 12 pairs" in result.output
        assert "trustworthy verdict rate (T): repetitions" in result.output

    def test_pairs_whose_labels_have_no_maker(self, tool_project):
        rows = [{"question": "q", "response_a": "a", "response_b": "b", "reference_label": "A"}]
        result = tool_project.kedro("doctor", lines(tool_project.root / "p.jsonl", rows))
        assert result.exit_code == 3, result.output
        assert "--layout pairs --reference-kind human" in result.output

    def test_an_unknown_file_gets_a_layout_to_complete(self, tool_project):
        rows = [{"prompt": f"q{k}", "output_1": "a", "output_2": "b", "winner": k} for k in (0, 1, 2)]
        path = lines(tool_project.root / "x.jsonl", rows)
        result = tool_project.kedro("doctor", path, "--write", "mine.yml")
        assert result.exit_code == 3, result.output
        described = yaml.safe_load((tool_project.root / "mine.yml").read_text())
        assert described["fields"]["question"] == "prompt"
        assert described["order_mode"] == "?"
        # Not completed yet: the meaning of 0 is nobody's guess.
        assert tool_project.kedro("doctor", path, "--layout", "mine.yml").exit_code == 2
        assert tool_project.kedro("doctor", path, "--write", "mine.yml").exit_code == 2
        described |= {"title": "Mine", "licence": None, "order_mode": "identity", "reference_kind": "human"}
        described["codes"] = {"A": [0], "B": [1], "TIE": [2]}
        described["fields"] = {k: v for k, v in described["fields"].items() if v != "?"}
        tool_project.write("mine.yml", yaml.safe_dump(described))
        result = tool_project.kedro("doctor", path, "--layout", "mine.yml")
        assert result.exit_code == 0, result.output + result.stderr
        assert "3 rows read" in result.output

    def test_rows_that_are_refused(self, tool_project):
        rows = [{"pair_id": "1", "judge_id": "j", "order": "AB", "verdict": "left"}]
        result = tool_project.kedro("doctor", lines(tool_project.root / "log.jsonl", rows))
        assert result.exit_code == 1
        assert "left" in result.stderr

    def test_an_artifact_of_a_run(self, tool_project, pairs, tmp_path):
        run = "2026-11-01T10.00.00.000Z"
        tool_project.add_run(run, {"pairs": pairs})
        path = next(p for p in tool_project.files_below("03_primary") if p.suffix == ".parquet")
        result = tool_project.kedro("doctor", str(path))
        assert result.exit_code == 0, result.output
        assert f"an artifact of run {run}" in result.output
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        assert tool_project.kedro("doctor", str(path)).exit_code == 4

    def test_the_data_at_hand(self, tool_project, pairs):
        assert tool_project.kedro("doctor", "--env", "test").exit_code == 2
        tables = {"pairs": pairs, "verdicts": make_verdicts(pairs, ["A"] * 40)}
        tool_project.add_run("2026-11-01T10.00.00.000Z", tables, "test")
        result = tool_project.kedro("doctor", "--env", "test")
        assert result.exit_code == 0, result.output
        assert "verdicts: 80 rows" in result.output
        assert "agreement of judge and people: 40 pairs" in result.output

    def test_no_such_file_or_layout(self, tool_project):
        assert tool_project.kedro("doctor", "absent.csv").exit_code == 2
        path = lines(tool_project.root / "x.jsonl", [{"a": 1}])
        result = tool_project.kedro("doctor", path, "--layout", "no_such")
        assert result.exit_code == 2
        assert "no_such" in result.stderr


class TestOddFiles:
    """Whatever a person names, something sensible is said of it, and never a traceback."""

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("empty.csv", b"", "empty: 0 bytes"),
            ("paper.pdf", b"%PDF-1.7 ...", "a PDF document"),
            ("plot.csv", b"\x89PNG\r\n\x1a\n....", "a picture (PNG)"),
            ("broken.zip", b"PK\x03\x04 cut", "a broken or cut zip archive"),
            ("old.xls", b"\xd0\xcf\x11\xe0....", "an old Office document"),
            ("rows.db", b"SQLite format 3\x00...", "an SQLite database"),
            ("page.html", b"<!DOCTYPE html><html></html>", "a web page"),
            ("report.html", OUR_PAGE, "a page of ours"),
            ("x.parquet.sha256", b"abc  x.parquet\n", "the checksum of another file"),
            ("mine.yml", b"layout: mine\nkind: pairs\nfields:\n  question: q\n", "a description of a layout"),
            ("manifest.json", b'{"nodes": [], "inputs": {}, "outputs": {}}', "the manifest of a run"),
        ],
    )
    def test_no_rows_to_read(self, tool_project, name, content, said):
        path = tool_project.root / name
        path.write_bytes(content)
        result = tool_project.kedro("doctor", str(path))
        assert result.exit_code == 3, result.output
        assert said in result.output
        assert "What to do: " in result.output

    def test_a_workbook_and_a_whole_archive(self, tool_project):
        import zipfile

        for name, inside, said in (
            ("book.xlsx", "xl/workbook.xml", "a workbook that cannot be read"),
            ("data.zip", "pairs.csv", "a zip archive with pairs.csv"),
        ):
            path = tool_project.root / name
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(inside, "x")
            assert said in tool_project.kedro("doctor", str(path)).output

    @pytest.mark.parametrize(
        ("offset", "value", "said"),
        [
            (8, 1, "locked with a password"),  # bit 0 of the flags in the list of contents
            (10, 99, "cannot unpack"),  # a method of compression that nobody has
        ],
    )
    def test_an_archive_that_is_whole_and_cannot_be_read(self, tool_project, offset, value, said):
        import zipfile

        path = tool_project.root / "data.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("pairs.csv", "x")
        data = bytearray(path.read_bytes())
        data[data.index(b"PK\x01\x02") + offset] = value
        path.write_bytes(bytes(data))
        result = tool_project.kedro("doctor", str(path))
        assert result.exit_code == 3, result.output
        assert said in result.output

    def test_a_folder(self, tool_project):
        folder = tool_project.root / "some"
        folder.mkdir()
        assert "an empty folder" in tool_project.kedro("doctor", str(folder)).output
        (folder / "a.csv").write_text("x\n")
        result = tool_project.kedro("doctor", str(folder))
        assert result.exit_code == 3
        assert "a folder with a.csv" in result.output

    def test_semicolons_are_noticed_and_the_kind_of_labels_is_an_option(self, tool_project):
        path = tool_project.root / "ours.csv"
        rows = "".join(f"q{i};one, two;three;A\n" for i in range(12))
        path.write_text("question;response_a;response_b;label\n" + rows, encoding="utf-8")
        result = tool_project.kedro("doctor", str(path), "--reference-kind", "human")
        assert result.exit_code == 0, result.output + result.stderr
        assert "separated by ';'" in result.output
        assert "12 pairs" in result.output
        assert 'delimiter: ";"' in result.output

    @pytest.mark.parametrize(
        ("said", "wanted"),
        [
            (("--delimiter", "::"), "delimiter: found '::'; wanted at most 1 character"),
            (("--set", "format=text"), "format: found 'text'; wanted one of auto, csv"),
        ],
    )
    def test_settings_that_are_none_are_refused(self, tool_project, said, wanted):
        path = tool_project.root / "ours.csv"
        path.write_text("question,response_a,response_b\nq,a,b\n", encoding="utf-8")
        result = tool_project.kedro("doctor", str(path), *said)
        assert result.exit_code == 2
        assert wanted in result.stderr

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
    def test_byte_order_marks(self, tool_project, encoding):
        path = tool_project.root / "marked.csv"
        path.write_text("question;response_a;response_b\nq;a;b\n", encoding=encoding)
        result = tool_project.kedro("doctor", str(path))
        assert "1 pairs" in result.output, result.output + result.stderr
