"""Every dataset class: what it saves it loads, equal data give equal bytes, and a changed bit is refused."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kedro.io import DataCatalog
from kedro.io.core import DatasetError, Version

from judge_calibration import datasets, schemas
from judge_calibration.datasets import (
    Csv,
    Files,
    Folder,
    Html,
    Json,
    Parquet,
    PlotlyFigure,
    Text,
    Workbook,
    Yaml,
)
from judge_calibration.datasets.tables import csv_bytes, escape_formulae, parquet_bytes, unescape_formulae
from judge_calibration.errors import ChecksumError
from judge_calibration.text import to_storable

FRAME = pd.DataFrame(
    {
        "pair_id": pd.Series(["1", "2", None], dtype="str"),
        "C": [0.1, float("nan"), 1 / 3],
        "n": pd.Series([1, None, 3], dtype="Int64"),
    }
)


def figure():
    import plotly.graph_objects as go

    return go.Figure(go.Scatter(x=np.arange(3), y=[0.5, float("nan"), 1.0]))


CASES = {
    "parquet": (Parquet, "t.parquet", lambda: FRAME),
    "csv": (Csv, "t.csv", lambda: FRAME),
    "workbook": (Workbook, "t.xlsx", lambda: {"one": FRAME}),
    "json": (Json, "t.json", lambda: {"b": [1, None], "a": "é"}),
    "text": (Text, "t.txt", lambda: "a\r\nb\n\x00"),
    "html": (Html, "t.html", lambda: "<p>é</p>"),
    "files": (Files, "packets", lambda: {"a/one.csv": "x\n1\n", "two.txt": "2"}),
    "figure": (PlotlyFigure, "t.json", figure),
}


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request, tmp_path):
    """A dataset class, a path for it and data for it."""
    kind, name, make = CASES[request.param]
    return kind, tmp_path / "08_reporting" / name, make


def versioned(kind, path, save="2026-01-01T00.00.00.000Z", load=None):
    return kind(filepath=str(path), version=Version(load, save))


def files_of(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file())


class TestEveryClass:
    def test_what_is_saved_is_loaded(self, case):
        kind, path, make = case
        dataset = versioned(kind, path)
        dataset.save(make())
        assert dataset.exists()
        loaded = dataset.load()
        if kind is Parquet:
            pd.testing.assert_frame_equal(loaded, FRAME)
        elif kind is Csv:
            assert loaded["C"].tolist()[2] == 1 / 3
        elif kind is Workbook:
            assert loaded["one"]["pair_id"].tolist()[:2] == ["1", "2"]
        elif kind is PlotlyFigure:
            assert loaded.to_dict()["data"][0]["type"] == "scatter"
        else:
            assert loaded == make()

    def test_equal_data_give_equal_bytes(self, case):
        kind, path, make = case
        hashes = []
        for version in ("2026-01-01T00.00.00.000Z", "2026-01-02T00.00.00.000Z"):
            versioned(kind, path, version).save(make())
            hashes.append([p.read_bytes() for p in files_of(path / version)])
        assert hashes[0] == hashes[1]

    def test_a_flipped_byte_is_refused_with_both_hashes_and_the_path(self, case):
        kind, path, make = case
        dataset = versioned(kind, path)
        dataset.save(make())
        for file in files_of(path):
            if file.suffix == ".sha256":
                continue
            raw = file.read_bytes()
            file.write_bytes(bytes([raw[0] ^ 1]) + raw[1:])
            with pytest.raises(DatasetError) as caught:
                dataset.load()
            cause = caught.value.__cause__
            assert isinstance(cause, ChecksumError)
            assert str(file) in str(cause)
            assert hashlib.sha256(raw).hexdigest() in str(cause)
            assert hashlib.sha256(file.read_bytes()).hexdigest() in str(cause)
            file.write_bytes(raw)
        dataset.load()

    def test_a_version_without_its_checksum_is_not_a_version(self, case):
        kind, path, make = case
        versioned(kind, path, "2026-01-01T00.00.00.000Z").save(make())
        versioned(kind, path, "2026-01-02T00.00.00.000Z").save(make())
        later = path / "2026-01-02T00.00.00.000Z" / f"{path.name}.sha256"
        later.unlink()
        reader = versioned(kind, path, "2026-01-03T00.00.00.000Z")
        assert reader.resolve_load_version() == "2026-01-01T00.00.00.000Z"
        (path / "2026-01-01T00.00.00.000Z" / f"{path.name}.sha256").unlink()
        assert not versioned(kind, path, "2026-01-03T00.00.00.000Z").exists()

    def test_a_version_is_never_overwritten(self, case):
        kind, path, make = case
        versioned(kind, path).save(make())
        with pytest.raises(DatasetError, match="must not exist"):
            versioned(kind, path).save(make())

    def test_without_versions_it_is_one_checked_file(self, case):
        kind, path, make = case
        dataset = kind(filepath=str(path))
        dataset.save(make())
        dataset.save(make())
        dataset.load()
        assert path.with_name(path.name + ".sha256").is_file()

    def test_no_temporary_file_is_left(self, case):
        kind, path, make = case
        versioned(kind, path).save(make())
        assert not [p for p in files_of(path) if p.name.endswith(".tmp")]

    def test_a_full_disk_leaves_nothing_and_says_so(self, case, monkeypatch):
        kind, path, make = case

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(DatasetError, match="The disk is full"):
            versioned(kind, path).save(make())
        assert files_of(path) == []

    def test_the_catalog_makes_it_by_its_short_name(self, case):
        kind, path, make = case
        config = {"it": {"type": f"judge_calibration.datasets.{kind.__name__}", "filepath": str(path)}}
        catalog = DataCatalog.from_config(config)
        catalog.save("it", make())
        catalog.load("it")


class TestParquet:
    def test_the_csv_beside_is_checked_too(self, tmp_path):
        table = Parquet(filepath=str(tmp_path / "t.parquet"), csv=True)
        table.save(FRAME)
        assert (tmp_path / "t.csv").read_bytes() == csv_bytes(FRAME)
        assert (tmp_path / "t.csv.sha256").is_file()

    def test_how_the_frame_was_put_together_does_not_show(self):
        whole = pd.DataFrame({"text": [f"text {i}" for i in range(100)], "n": range(100)})
        parts = pd.concat([whole.iloc[:37], whole.iloc[37:]])
        assert parquet_bytes(whole) == parquet_bytes(parts)

    def test_a_named_index_is_refused_because_it_would_be_lost(self, tmp_path):
        with pytest.raises(DatasetError, match="would be lost"):
            Parquet(filepath=str(tmp_path / "t.parquet")).save(FRAME.set_index("pair_id"))

    def test_only_frames(self, tmp_path):
        with pytest.raises(DatasetError, match="wanted a pandas DataFrame"):
            Parquet(filepath=str(tmp_path / "t.parquet")).save([1])

    def test_empty_canonical_tables_survive(self, tmp_path):
        for table in schemas.TABLES.values():
            dataset = Parquet(filepath=str(tmp_path / f"{table.name}.parquet"), csv=True)
            dataset.save(schemas.empty(table))
            pd.testing.assert_frame_equal(dataset.load(), schemas.empty(table))

    def test_the_preview_is_json(self, tmp_path):
        dataset = Parquet(filepath=str(tmp_path / "t.parquet"))
        dataset.save(FRAME)
        preview = dataset.preview(nrows=2)
        assert json.loads(json.dumps(preview, allow_nan=False))["data"] == [["1", 0.1, 1], ["2", None, None]]

    @given(st.lists(st.text(st.characters(exclude_categories=[]))))
    @settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_any_text_survives(self, tmp_path, texts):
        stored = pd.DataFrame({"text": pd.Series([to_storable(t) for t in texts], dtype="str")})
        dataset = Parquet(filepath=str(tmp_path / "t.parquet"), csv=True)
        dataset.save(stored)
        assert dataset.load()["text"].tolist() == stored["text"].tolist()


class TestCsv:
    @pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
    def test_no_cell_is_a_formula(self, start):
        frame = pd.DataFrame({"note": [f"{start}cmd|' /C calc'!A0"]})
        cell = csv_bytes(frame).decode().split("\n", 1)[1].lstrip('"')
        assert cell.startswith("'")

    def test_headers_too(self):
        assert csv_bytes(pd.DataFrame({"=1+1": [1]})).startswith(b"'=1+1")

    def test_numbers_stay_numbers(self):
        assert csv_bytes(pd.DataFrame({"gap": [-0.25]})) == b"gap\n-0.25\n"

    @given(st.lists(st.text(alphabet="'=+-@ab\t", max_size=5)))
    @settings(deadline=None)
    def test_escaping_is_undone(self, texts):
        frame = pd.DataFrame({"'=note": pd.Series(texts, dtype="str")})
        pd.testing.assert_frame_equal(unescape_formulae(escape_formulae(frame)), frame)


class TestWorkbook:
    def test_no_cell_is_a_formula(self, tmp_path):
        from openpyxl import load_workbook

        Workbook(filepath=str(tmp_path / "b.xlsx")).save(pd.DataFrame({"note": ["=1+1"]}))
        cell = load_workbook(tmp_path / "b.xlsx").active["A2"]
        assert cell.value == "=1+1"
        assert cell.data_type == "s"


class TestDocuments:
    def test_json_has_sorted_keys_and_ends_its_line(self, tmp_path):
        Json(filepath=str(tmp_path / "d.json")).save({"b": 1, "a": 2})
        assert (tmp_path / "d.json").read_bytes() == b'{\n  "a": 2,\n  "b": 1\n}\n'

    def test_nan_is_no_json(self, tmp_path):
        with pytest.raises(DatasetError, match="not JSON compliant"):
            Json(filepath=str(tmp_path / "d.json")).save({"C": float("nan")})

    def test_previews_for_kedro_viz(self, tmp_path):
        import inspect

        page, chart = Html(filepath=str(tmp_path / "p.html")), PlotlyFigure(filepath=str(tmp_path / "f.json"))
        page.save("<p>")
        chart.save(figure())
        assert page.preview() == "<p>"
        assert "data" in chart.preview()
        for dataset, name in ((page, "HTMLPreview"), (chart, "PlotlyPreview")):
            found = inspect.signature(dataset.preview).return_annotation
            assert getattr(found, "__name__", found) == name


class TestFiles:
    @pytest.mark.parametrize("name", ["../out.txt", "/etc/x", "a\nb"])
    def test_no_way_out_of_the_folder(self, tmp_path, name):
        with pytest.raises(DatasetError, match="below the folder"):
            Files(filepath=str(tmp_path / "packets")).save({name: "x"})

    def test_nothing_to_save_is_an_error(self, tmp_path):
        with pytest.raises(DatasetError, match="at least one"):
            Files(filepath=str(tmp_path / "packets")).save({})


class TestInputs:
    def test_a_folder_is_read_in_the_order_of_names_and_never_written(self, tmp_path):
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub/b.yml").write_text("2")
        (tmp_path / "a.yml").write_text("1")
        (tmp_path / "c.txt").write_text("3")
        folder = Folder(path=str(tmp_path), glob="**/*.yml")
        assert list(folder.load().items()) == [("a.yml", "1"), ("sub/b.yml", "2")]
        with pytest.raises(DatasetError, match="never written"):
            folder.save({})

    def test_its_hash_sees_every_file_and_name(self, tmp_path):
        (tmp_path / "a.yml").write_text("1")
        folder = Folder(path=str(tmp_path))
        before = folder.input_sha256()
        (tmp_path / "a.yml").write_text("2")
        changed = folder.input_sha256()
        (tmp_path / "a.yml").rename(tmp_path / "b.yml")
        assert len({before, changed, folder.input_sha256()}) == 3

    def test_an_empty_folder_and_a_file_that_is_not_text_are_named(self, tmp_path):
        with pytest.raises(DatasetError, match="no file matches"):
            Folder(path=str(tmp_path)).load()
        (tmp_path / "a.yml").write_bytes(b"\xff")
        with pytest.raises(DatasetError, match=r"a\.yml is not UTF-8 at byte 0"):
            Folder(path=str(tmp_path)).load()

    def test_yaml(self, tmp_path):
        path = tmp_path / "a.yml"
        inventory = Yaml(filepath=str(path))
        assert not inventory.exists()
        with pytest.raises(DatasetError, match="absent"):
            inventory.load()
        path.write_text("a: [1, 2]")
        assert inventory.load() == {"a": [1, 2]}
        path.write_text("a: [1")
        with pytest.raises(DatasetError, match="line 1"):
            inventory.load()


class TestValidators:
    @pytest.mark.parametrize("name", sorted(schemas.TABLES))
    def test_there_is_one_for_every_canonical_table(self, name):
        from judge_calibration.datasets import validators

        check = getattr(validators, name)
        check(schemas.empty(schemas.TABLES[name]))
        with pytest.raises(Exception, match="no such column"):
            check(pd.DataFrame({"x": [1]}))

    def test_the_catalog_calls_it_on_save_and_load(self, tmp_path):
        path = str(tmp_path / "pairs.parquet")
        entry = {"type": "judge_calibration.datasets.Parquet", "filepath": path}
        checked = {**entry, "validator": "judge_calibration.datasets.validators.pairs"}
        catalog = DataCatalog.from_config({"pairs": checked, "same": entry})
        with pytest.raises(Exception, match="breaks its schema"):
            catalog.save("pairs", pd.DataFrame({"pair_id": ["1"]}))
        catalog.save("same", pd.DataFrame({"pair_id": ["1"]}))
        with pytest.raises(Exception, match="breaks its schema"):
            catalog.load("pairs")


def test_other_file_systems_are_refused():
    dataset = Parquet(filepath="memory://t.parquet")
    with pytest.raises(DatasetError, match="local file system"):
        dataset.save(FRAME)


def test_unknown_names_are_no_attributes():
    with pytest.raises(AttributeError, match="no attribute 'Pickle'"):
        datasets.Pickle  # noqa: B018
