import numpy as np
import pandas as pd
import pytest
import yaml

from judge_calibration.options.attributes import AttributesOptions, ReadsFile
from judge_calibration.pipelines.attributes import nodes
from judge_calibration.profiles.cube import ReadCube, ReadsError
from judge_calibration.profiles.gathering import gather
from judge_calibration.profiles.packed_tables import from_tables, joined, to_tables
from judge_calibration.profiles.read_files import import_reads
from judge_calibration.schemas import READS, VERDICT_ROWS, empty

ATTRIBUTES = ("depth", "list_structure")
PAIRS = ("p1", "p2")
JUDGING = {"judges": [{"judge_id": "j", "model": "m/x", "protocols": ["attribute"]}]}


def long_rows(judge="j", direction=lambda item, attribute, order: "A"):
    return pd.DataFrame(
        [
            {
                "pair_id": item,
                "judge_id": judge,
                "attribute": name,
                "order": order,
                "direction": direction(item, name, order),
            }
            for item in PAIRS
            for name in ("depth", "list structure")
            for order in ("AB", "BA")
        ]
    )


def packed_rows(judge=None, **columns):
    frame = pd.DataFrame({"pair_id": list(PAIRS), "depth": [8, 4], "list_structure": [0, 2], **columns})
    return frame if judge is None else frame.assign(judge_id=judge)


@pytest.fixture(scope="module")
def inventory(project_path):
    path = project_path / "data/01_raw/attributes/inventory.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def saved(tmp_path):
    def save(frame, name):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
        return str(path)

    return save


def read(*files, pairs=PAIRS):
    return import_reads([ReadsFile.model_validate(file) for file in files], ATTRIBUTES, pairs)


class TestLong:
    @pytest.mark.parametrize("name", ["reads.csv", "reads.parquet"])
    def test_csv_and_parquet_with_the_inventory_s_spelling(self, saved, name):
        path = saved(long_rows(), name)
        found = read({"path": path, "layout": "long"})
        assert found.cube.attributes == ATTRIBUTES
        assert (found.cube.stable == 1).all()
        assert found.outcomes["outcome"].tolist() == ["valid"] * 8

    def test_own_columns_and_codes(self, saved):
        frame = long_rows(direction=lambda *_: "-1").rename(columns={"pair_id": "item"})
        path = saved(frame.drop(columns="judge_id"), "r.csv")
        file = {"path": path, "layout": "long", "judge_id": "mine", "columns": {"pair_id": "item"}}
        found = read(file | {"directions": {"1": "A", "-1": "B"}})
        assert found.cube.judges == ("mine",)
        assert (found.cube.stable == -1).all()

    def test_shown_directions_are_mapped_back(self, saved):
        path = saved(long_rows(), "r.csv")
        # Always "A" as shown is always the first answer: no stable direction.
        found = read({"path": path, "layout": "long", "direction_names": "shown"})
        assert not found.cube.stable.any()

    def test_an_absent_direction_is_a_missing_read_not_a_none(self, saved):
        rows = long_rows()
        rows.loc[0, "direction"] = None
        found = read({"path": saved(rows, "r.csv"), "layout": "long"})
        assert found.outcomes["outcome"].value_counts().to_dict() == {"valid": 7, "missing": 1}
        assert found.cube.stable[0, 0].tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda r: r.assign(attribute="colour"), "'colour'"),
            (lambda r: r.iloc[1:], "no read in order AB"),
            (lambda r: pd.concat([r, r.iloc[:1], r.iloc[:1]]), "3 values; wanted one read an order"),
            (lambda r: r.assign(order=["AB", "BA", "AB", "BA", "AB", "BA", "AB", "CA"]), "'CA'"),
            (lambda r: r.assign(pair_id=r["pair_id"].replace("p2", "p9")), "'p9'"),
            (lambda r: r.assign(direction="left"), "'left' in 8 rows"),
            (lambda r: r.assign(outcome="broken"), "'broken' in 8 rows"),
            (lambda r: r.drop(columns="order"), "column order"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, saved, damage, message):
        with pytest.raises(ReadsError, match=message):
            read({"path": saved(damage(long_rows()), "r.csv"), "layout": "long"})

    def test_several_faults_are_told_together_with_their_rows(self, saved):
        rows = pd.concat([long_rows().drop(index=5), long_rows().iloc[[0]]], ignore_index=True)
        rows.loc[2, "direction"] = "left"
        with pytest.raises(ReadsError) as caught:
            read({"path": saved(rows, "r.csv"), "layout": "long"})
        text = str(caught.value)
        assert "r.csv, row 4, column direction: found 'left'; wanted A, B, NONE" in text
        assert "r.csv, rows 2, 9, judge j, item p1, attribute depth, order AB: found 2 values" in text
        assert "judge j, item p2, attribute depth: found no read in order BA" in text
        assert "1 of 8 reads are absent" in text

    def test_unknown_names_hide_what_is_absent_because_of_them(self, saved):
        rows = long_rows()
        rows.loc[3, "attribute"] = "colour"
        with pytest.raises(ReadsError) as caught:
            read({"path": saved(rows, "r.csv"), "layout": "long"})
        assert "row 5, column attribute: found 'colour'; wanted an attribute" in str(caught.value)
        assert len(caught.value.problems) == 1

    def test_rows_of_parquet_are_numbered_from_1(self, saved):
        rows = long_rows()
        rows.loc[3, "pair_id"] = "p9"
        with pytest.raises(ReadsError, match="row 4, column pair_id: found 'p9'"):
            read({"path": saved(rows, "r.parquet"), "layout": "long"})

    @pytest.mark.parametrize(
        ("outcome", "direction", "message"),
        [
            ("valid", None, "row 2, column direction: found nothing; wanted a direction"),
            ("malformed", "A", "row 2, column direction: found 'A'; wanted nothing"),
        ],
    )
    def test_an_outcome_and_its_direction_have_to_fit(self, saved, outcome, direction, message):
        rows = long_rows().assign(outcome="valid")
        rows.loc[0, ["outcome", "direction"]] = [outcome, direction]
        with pytest.raises(ReadsError, match=message):
            read({"path": saved(rows, "r.csv"), "layout": "long"})

    def test_confidence_outside_0_to_1_is_named(self, saved):
        rows = long_rows().assign(confidence=[0.5] * 7 + [1.5], magnitude="much")
        with pytest.raises(ReadsError) as caught:
            read({"path": saved(rows, "r.csv"), "layout": "long"})
        assert "row 9, column confidence: found '1.5'; wanted a number from 0 to 1" in str(caught.value)
        assert "row 2, column magnitude: found 'much' in 8 rows" in str(caught.value)

    def test_whole_numbers_and_white_space_do_not_matter(self, saved):
        rows = long_rows(direction=lambda *_: 1.0)
        file = {"layout": "long", "directions": {"1": "A"}}
        assert (read(file | {"path": saved(rows, "r.parquet")}).cube.stable == 1).all()
        assert (read(file | {"path": saved(rows.assign(direction=" 1 "), "r.csv")}).cube.stable == 1).all()

    def test_a_column_that_no_read_has_cannot_be_renamed(self):
        with pytest.raises(ValueError, match="'pairid', which no read has"):
            ReadsFile(path="r.csv", layout="long", columns={"pairid": "item"})


class TestFiles:
    """What is wrong with a file as such."""

    def text(self):
        return long_rows("jé").to_csv(index=False)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_byte_order_marks_are_understood(self, tmp_path, encoding):
        path = tmp_path / "r.csv"
        path.write_bytes(self.text().replace("\n", "\r\n").encode(encoding))
        assert read({"path": str(path), "layout": "long"}).cube.judges == ("jé",)

    def test_empty_lines_count_as_rows(self, tmp_path):
        path = tmp_path / "r.csv"
        path.write_text(self.text().replace("\n", "\n\n", 1).replace("BA,A", "BA,left", 1), encoding="utf-8")
        with pytest.raises(ReadsError, match="row 4, column direction: found 'left'"):
            read({"path": str(path), "layout": "long"})

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            (lambda t: b"", "no header"),
            (lambda t: t.split(b"\n")[0] + b"\n", "no rows"),
            (lambda t: t.replace(b"j\xc3\xa9", b"j\xe9"), "line 2: found byte 0xe9, which is not UTF-8"),
            (lambda t: t.rstrip()[:-2], "row 9: found 4 cells; wanted 5, as in the header"),
            (lambda t: t + b"p1,j,depth,AB,A,more\n", "row 10: found 6 cells"),
            (lambda t: t.replace(b"order", b"direction", 1), "several columns of this name"),
            (lambda t: t.replace(b",", b";"), "column pair_id: found no such column"),
        ],
    )
    def test_what_is_no_table_is_named(self, tmp_path, damage, message):
        path = tmp_path / "r.csv"
        path.write_bytes(damage(self.text().encode()))
        with pytest.raises(ReadsError, match=message):
            read({"path": str(path), "layout": "long"})

    def test_endings_in_capitals_are_found_in_a_folder(self, saved, tmp_path):
        saved(packed_rows(), "folder/first.csv")
        (tmp_path / "folder/first.csv").rename(tmp_path / "folder/first.CSV")
        found = read({"path": str(tmp_path / "folder"), "layout": "packed"})
        assert found.cube.judges == ("first",)


class TestPacked:
    def test_a_folder_with_one_file_a_judge(self, saved, tmp_path):
        saved(packed_rows(), "folder/first.parquet")
        saved(packed_rows("named inside"), "folder/second.csv")
        found = read({"path": str(tmp_path / "folder"), "layout": "packed"})
        assert found.cube.judges == ("first", "named inside")
        assert found.cube.stable[0].tolist() == [[1, -1], [0, 0]]

    def test_rows_in_another_order_are_put_right(self):
        tables = {"a": packed_rows(), "b": packed_rows().iloc[::-1].reset_index(drop=True)}
        codes = from_tables(tables, ATTRIBUTES).codes
        np.testing.assert_array_equal(codes[0], codes[1])

    def test_tables_of_a_cube_give_the_cube_back(self):
        cube = ReadCube(("x/y", "z"), PAIRS, ATTRIBUTES, np.arange(8, dtype=np.int8).reshape(2, 2, 2))
        back = from_tables(to_tables(cube), ATTRIBUTES)
        assert (back.judges, back.items, back.attributes) == (cube.judges, cube.items, cube.attributes)
        np.testing.assert_array_equal(back.codes, cube.codes)

    @pytest.mark.parametrize(
        ("tables", "message"),
        [
            ({"a": packed_rows(colour=[1, 1])}, "column colour"),
            ({"a": packed_rows(depth=[8, 9])}, "found 9 in 1 rows; wanted a whole number from 0 to 8"),
            ({"a": packed_rows(depth=[8, None])}, "no code in 1 rows; wanted a read in both orders"),
            ({"a": packed_rows(depth=["A", "B"])}, "attribute depth"),
            ({"a": packed_rows(), "b": packed_rows().drop(columns="depth")}, "b, attribute depth"),
            ({"a": packed_rows(), "b": packed_rows().iloc[:1]}, "b, item p2: found absent"),
            ({"a": packed_rows(pair_id=["p1", "p1"])}, "item p1: found 2 rows"),
            ({"a": packed_rows("j"), "b": packed_rows("j")}, "a second table of this judge"),
            ({"a": packed_rows(pair_id=["p1", "p9"])}, "item p9: found no such pair"),
            ({"a": packed_rows().drop(columns="pair_id")}, "column pair_id"),
            ({"a": packed_rows(pair_id=["p1", None])}, "a, row 1, column pair_id: found nothing"),
            ({"a": packed_rows(**{"list structure": [1, 1]})}, "list_structure: found 2 columns"),
            ({"a": packed_rows()[["pair_id"]]}, "no column of an attribute"),
        ],
    )
    def test_what_is_no_panel_is_named(self, tables, message):
        with pytest.raises(ReadsError, match=message):
            from_tables(tables, ATTRIBUTES, PAIRS)

    def test_ids_of_a_renamed_column_keep_their_zeros(self, saved):
        path = saved(packed_rows(pair_id=["007", "010"]).rename(columns={"pair_id": "item"}), "j.csv")
        file = {"path": path, "layout": "packed", "columns": {"pair_id": "item"}}
        assert read(file, pairs=["007", "010"]).cube.items == ("007", "010")

    def test_files_and_rows_are_named(self, saved, tmp_path):
        saved(packed_rows(), "folder/first.csv")
        saved(packed_rows(depth=[8, 11]), "folder/second.csv")
        with pytest.raises(ReadsError, match=r"second\.csv, row 3, attribute depth: found 11 in 1 rows"):
            read({"path": str(tmp_path / "folder"), "layout": "packed"})

    def test_a_judge_cannot_be_asked_and_imported(self):
        cube = from_tables({"j": packed_rows("j")}, ATTRIBUTES)
        with pytest.raises(ReadsError, match="a second table of this judge"):
            joined([cube, cube])

    def test_no_file_and_an_unknown_ending_are_told_together(self, tmp_path, saved):
        odd = tmp_path / "reads.xlsx"
        odd.write_text("x")
        with pytest.raises(ReadsError) as caught:
            read({"path": str(odd), "layout": "long"}, {"path": "nowhere/*.csv", "layout": "packed"})
        assert "no such file" in str(caught.value)
        assert "'.xlsx'" in str(caught.value)


class TestGather:
    def pairs(self):
        return pd.DataFrame(
            {"pair_id": ["p0", *PAIRS], "base_id": "b", "source": "s", "reference_label": ["A", "B", None]}
        )

    def options(self, **values):
        return AttributesOptions.model_validate({"judging": JUDGING, **values})

    def test_imported_reads_without_verdicts_have_no_choices(self, saved):
        path = saved(packed_rows("j"), "j.parquet")
        options = self.options(reads_files=[{"path": path, "layout": "packed"}])
        found = gather(empty(READS), empty(VERDICT_ROWS), self.pairs(), ATTRIBUTES, options)
        assert found.items["pair_id"].tolist() == list(PAIRS)
        assert found.choices["first_order"].isna().all()
        assert found.planted.empty

    def test_asked_and_imported_judges_form_one_panel(self, saved):
        path = saved(packed_rows("theirs"), "theirs.parquet")
        options = self.options(reads_files=[{"path": path, "layout": "packed"}])
        asked = long_rows("ours").assign(
            attribute=lambda r: r["attribute"].str.replace(" ", "_"), outcome="valid"
        )
        found = gather(asked, empty(VERDICT_ROWS), self.pairs(), ATTRIBUTES, options)
        assert found.cube.judges == ("ours", "theirs")
        assert found.outcomes["judge_id"].tolist() == ["ours"]

    def test_a_judge_whose_verdicts_are_of_other_cells_is_named(self, saved, inventory, caplog):
        path = saved(packed_rows("j"), "j.parquet")
        verdicts = pd.DataFrame(
            {"judge_id": "j", "pair_id": list(PAIRS), "order": "AB", "verdict": "A", "repetition": 0}
        ).assign(protocol="as_logged", constraint=None, temperature=np.nan)
        file = {"path": path, "layout": "packed"}
        for protocol, told in (("direct", ["as_logged, null, null"]), ("as_logged", [])):
            caplog.clear()
            options = self.options(reads_files=[file], holistic={"protocol": protocol})
            choices = nodes.gather_reads(empty(READS), verdicts, self.pairs(), inventory, options)[3]
            assert choices["first_order"].isna().all() == bool(told)
            assert [text for text in told if text in caplog.text] == told
            assert bool(caplog.text) == bool(told)

    def test_screening_keeps_what_one_judge_reads_stably_and_counts(self, saved):
        path = saved(packed_rows("j"), "j.parquet")
        file = {"path": path, "layout": "packed"}
        options = self.options(reads_files=[file], screening={"judge": "j", "least_stable": 2})
        found = gather(empty(READS), empty(VERDICT_ROWS), self.pairs(), ATTRIBUTES, options)
        assert found.cube.items == ("p1",)
        assert found.screening[["items", "kept"]].to_numpy().tolist() == [[2, 1]]

    def test_screening_by_an_unknown_judge_is_refused(self, saved):
        path = saved(packed_rows("j"), "j.parquet")
        file = {"path": path, "layout": "packed"}
        options = self.options(reads_files=[file], screening={"judge": "nobody"})
        with pytest.raises(Exception, match="'nobody'"):
            gather(empty(READS), empty(VERDICT_ROWS), self.pairs(), ATTRIBUTES, options)

    def test_a_simulated_panel_never_mixes_with_real_reads(self):
        with pytest.raises(ValueError, match="never mixes"):
            self.options(panel={})


class TestChunked:
    def test_ranges_of_files_add_up_to_the_panel_in_memory(self, tmp_path):
        from judge_calibration.datasets.tables import parquet_bytes
        from judge_calibration.profiles.chunked import count_files, read_codes
        from judge_calibration.profiles.code_counts import code_counts
        from judge_calibration.profiles.pair_counts import count_pairs

        rng = np.random.default_rng(0)
        codes = rng.integers(0, 9, (3, 57, 5)).astype(np.int8)
        verdicts = rng.integers(-1, 2, (3, 57)).astype(np.int8)
        names = tuple(f"a{k}" for k in range(5))
        cube = ReadCube(("x", "y", "z"), tuple(f"p{i}" for i in range(57)), names, codes)
        paths = []
        for judge, table in to_tables(cube).items():
            paths.append(tmp_path / f"{judge}.parquet")
            paths[-1].write_bytes(parquet_bytes(table, 10))
        np.testing.assert_array_equal(read_codes(paths, names, 7, 33), codes[:, 7:33])
        found = count_files(paths, names, verdicts, items=20)
        np.testing.assert_array_equal(found.codes, code_counts(codes))
        whole = count_pairs(codes, verdicts).sums
        for name, values in whole.items():
            np.testing.assert_allclose(found.pairs.sums[name], values, rtol=1e-12)
