"""What a demonstration makes carries its word in every part."""

import json

import pandas as pd
import plotly.graph_objects as go
import pytest

from judge_calibration.datasets import Files, Html, Json, Parquet, PlotlyFigure, Text
from judge_calibration.datasets.marks import mark_catalog, marked
from judge_calibration.hooks import SimulationHooks
from judge_calibration.options.annotation import AnnotationOptions

PANEL = {
    "annotators": [{"code": f"annotator_{i}"} for i in range(1, 4)],
    "draw": {"mode": "everything"},
}


def saved(tmp_path, kind, data, **more):
    dataset = kind(filepath=str(tmp_path / "artifact"), **more)
    dataset.mark = "SIMULATED"
    dataset.save(data)
    return dataset


class TestSaved:
    def test_tables_and_their_csv(self, tmp_path):
        frame = pd.DataFrame({"C": [0.5, 0.6]})
        dataset = saved(tmp_path, Parquet, frame, csv=True)
        assert list(dataset.load()["mark"]) == ["SIMULATED"] * 2
        assert (tmp_path / "artifact.csv").read_text().splitlines()[1] == "0.5,SIMULATED"
        assert list(frame.columns) == ["C"]

    def test_an_empty_table_has_the_column(self, tmp_path):
        assert list(saved(tmp_path, Parquet, pd.DataFrame({"C": []})).load().columns) == ["C", "mark"]

    def test_the_file_of_an_empty_table_says_it(self, tmp_path):
        saved(tmp_path, Parquet, pd.DataFrame({"C": []}))
        assert b"SIMULATED" in (tmp_path / "artifact").read_bytes()

    def test_the_csv_of_an_empty_table_says_it_in_its_header(self, tmp_path):
        saved(tmp_path, Parquet, pd.DataFrame({"C": []}), csv=True)
        assert (tmp_path / "artifact.csv").read_text().splitlines() == ["C,mark: SIMULATED"]

    @pytest.mark.parametrize("data", [[], ["a"], [1, None]])
    def test_lists_that_cannot_carry_it_load_as_they_were(self, tmp_path, data):
        assert saved(tmp_path, Json, data).load() == data
        assert json.loads((tmp_path / "artifact").read_text())["mark"] == "SIMULATED"

    def test_of_a_folder_what_is_only_read(self, tmp_path):
        files = {"README.md": "plain", "a/page.html": "<body>x", "prompt.md": "prompt", "t.csv": "a\n"}
        loaded = saved(tmp_path, Files, files).load()
        assert {name for name, text in loaded.items() if "SIMULATED" in text} == {"README.md", "a/page.html"}
        assert (loaded["prompt.md"], loaded["t.csv"]) == ("prompt", "a\n")

    @pytest.mark.parametrize("data", [{"a": 1}, [{"a": 1}]])
    def test_documents(self, tmp_path, data):
        assert "SIMULATED" in json.dumps(saved(tmp_path, Json, data).load())

    def test_texts_and_pages(self, tmp_path):
        assert saved(tmp_path, Text, "plain").load() == "SIMULATED\n\nplain"
        page = saved(tmp_path, Html, "<html><body class='x'><p>C</p></body></html>").load()
        assert page.startswith("<html><body class='x'><p><strong>SIMULATED</strong></p><p>C")
        assert marked("this is SIMULATED", "SIMULATED") == "this is SIMULATED"

    def test_figures(self, tmp_path):
        figure = go.Figure(go.Scatter(x=[1], y=[2]), layout={"title": {"text": "Trust"}})
        stored = saved(tmp_path, PlotlyFigure, figure).load()
        assert stored.layout.title.text == "SIMULATED: Trust"
        assert [note.text for note in stored.layout.annotations] == ["SIMULATED"]
        assert not figure.layout.annotations

    def test_without_a_word_nothing_is_added(self, tmp_path):
        dataset = Parquet(filepath=str(tmp_path / "t.parquet"))
        dataset.save(pd.DataFrame({"C": [0.5]}))
        assert list(dataset.load().columns) == ["C"]


class TestHook:
    def catalog(self, tmp_path):
        return {"t": Parquet(filepath=str(tmp_path / "t.parquet")), "params:annotation": 1}

    @pytest.mark.parametrize("enabled", [True, False])
    def test_a_simulated_panel_marks_its_environment(self, tmp_path, enabled):
        catalog = self.catalog(tmp_path)
        options = AnnotationOptions.model_validate(PANEL | {"simulation": {"enabled": enabled}})
        SimulationHooks().after_catalog_created(catalog, {"params:annotation": options})
        assert catalog["t"].mark == ("SIMULATED" if enabled else None)

    def test_what_is_no_artifact_is_left_alone(self, tmp_path):
        catalog = self.catalog(tmp_path) | {"files": Files(filepath=str(tmp_path / "files"))}
        mark_catalog(catalog, "SIMULATED")
        assert catalog["params:annotation"] == 1
