"""The pipeline data_prep: from named files to pairs, judged pairs and logged verdicts."""

import json
from pathlib import Path

import pytest
from kedro.config import OmegaConfigLoader
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner
from pandas import DataFrame

from judge_calibration.errors import SourceError, TableError
from judge_calibration.metrics.trust_table import trust_table
from judge_calibration.options.data_prep import DataPrepOptions
from judge_calibration.options.reporting import ReportingOptions
from judge_calibration.pipelines.data_prep.nodes import hide_annotators, import_files, join_pairs
from judge_calibration.pipelines.data_prep.pipeline import create_pipeline
from judge_calibration.schemas import LABELS, PAIRS, VERDICT_ROWS, conform, empty, problems_of


def write_lines(path: Path, records: list[dict]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return str(path)


@pytest.fixture
def options(tmp_path: Path) -> DataPrepOptions:
    pairs = [
        {
            "pair_id": f"p{i}",
            "question": f"q{i}",
            "response_a": "a",
            "response_b": "b",
            "reference_label": "A",
        }
        for i in range(40)
    ]
    log = [
        {"pair_id": f"p{i}", "judge_id": "j", "order": order, "verdict": "A"}
        for i in range(38, 42)
        for order in ("AB", "BA")
    ]
    return DataPrepOptions(
        use_bank=False,
        pair_files=[
            {
                "path": write_lines(tmp_path / "mine.jsonl", pairs),
                "layout": "pairs",
                "set": {"reference_kind": "human"},
            }
        ],
        log_files=[{"path": write_lines(tmp_path / "log.jsonl", log), "layout": "verdicts"}],
        judged={"size": 5},
    )


class Kept(MemoryDataset):
    """A dataset in memory that the runner does not empty when it thinks that nobody reads it any more."""

    def _release(self) -> None:
        pass


def run(options: DataPrepOptions) -> dict:
    pipeline = create_pipeline()
    inputs = {
        "pair_bank": MemoryDataset({}),
        "params:data_prep": MemoryDataset(options),
        "annotation_secret": MemoryDataset(""),
    }
    catalog = DataCatalog({**inputs, **{name: Kept() for name in pipeline.all_outputs()}})
    SequentialRunner().run(pipeline, catalog)
    return {name: catalog.load(name) for name in pipeline.all_outputs()}


def parameters(environment: str, project_path: Path) -> DataPrepOptions:
    loader = OmegaConfigLoader(
        conf_source=str(project_path / "conf"),
        base_env="base",
        default_run_env="local",
        env=environment,
        merge_strategy={"parameters": "soft"},
    )
    return DataPrepOptions(**loader["parameters"]["data_prep"])


class TestEnvironments:
    @pytest.mark.parametrize("environment", ["base", "bank", "replay", "test"])
    def test_parameters_are_valid(self, environment, project_path):
        options = parameters(environment, project_path)
        assert (options.judged.size is None) == (environment == "bank")

    def test_replay_asks_no_judge_and_gives_the_published_rates(self, project_path, public_data, monkeypatch):
        monkeypatch.chdir(project_path)
        out = run(parameters("replay", project_path))
        assert len(out["judged_pairs"]) == 0
        assert out["logged_verdicts"]["flags"].str.contains("replayed").all()
        llmbar = out["pairs"][out["pairs"]["source"] == "LLMBar"]
        verdicts = out["logged_verdicts"]
        verdicts = verdicts[
            verdicts["pair_id"].isin(llmbar["pair_id"])
            & (verdicts["judge_id"] == "GPT-4")
            & (verdicts["protocol"] == "Vanilla")
        ]
        table = trust_table(verdicts, llmbar, ReportingOptions())
        whole = table[(table["slice_by"] == "all") & (table["view"] == "strict")].iloc[0]
        assert whole[["A", "phi", "PR"]].astype(float).round(3).tolist() == [0.845, 0.072, 0.809]


class TestPipeline:
    def test_files_and_logs_are_joined_split_and_drawn_from(self, options):
        out = run(options)
        assert problems_of(out["pairs"], PAIRS) == []
        assert problems_of(out["logged_verdicts"], VERDICT_ROWS) == []
        # p38 and p39 are described by the file; of p40 and p41 only the log knows.
        assert len(out["pairs"]) == 42
        assert out["pairs"].set_index("pair_id")["question"].isna().sum() == 2
        assert set(out["pairs"]["split"]) == {"train", "test"}
        assert len(out["judged_pairs"]) == 5
        assert out["source_files"]["kind"].tolist() == ["pairs", "verdicts"]

    def test_every_pair_with_texts_is_judged_where_size_is_null(self, options):
        every = options.model_copy(update={"judged": options.judged.model_copy(update={"size": None})})
        assert len(run(every)["judged_pairs"]) == 40

    def test_a_pair_of_the_judged_set_can_be_limited_to_sources(self, options):
        other = options.model_copy(update={"judged": options.judged.model_copy(update={"sources": ("x",)})})
        assert len(run(other)["judged_pairs"]) == 0

    def test_nothing_at_all_is_no_error(self):
        out = run(DataPrepOptions(use_bank=False))
        assert len(out["pairs"]) == 0
        assert problems_of(out["judged_pairs"], PAIRS) == []

    def test_problems_of_pairs_and_logs_are_told_together(self, options):
        wrong = options.model_copy(
            update={
                "pair_files": (options.pair_files[0].model_copy(update={"path": "no-pairs.csv"}),),
                "log_files": (options.log_files[0].model_copy(update={"path": "no-log.csv"}),),
            }
        )
        with pytest.raises(SourceError) as caught:
            import_files(wrong)
        assert "no-pairs.csv" in str(caught.value)
        assert "no-log.csv" in str(caught.value)

    def test_a_frozen_split_wins(self, options, tmp_path):
        first = run(options)["pairs"].drop_duplicates("base_id")
        turned = first.assign(split=first["split"].map({"train": "test", "test": "train"}))
        path = tmp_path / "splits.csv"
        turned[["source", "base_id", "split"]].to_csv(path, index=False)
        again = run(options.model_copy(update={"frozen_split": str(path)}))["pairs"]
        wanted = turned.set_index("base_id")["split"]
        assert (again["split"].to_numpy() == wanted.loc[again["base_id"]].to_numpy()).all()

    @pytest.mark.parametrize("text", ["source,base_id\ns,b\n", "source,base_id,split\ns,b,left\n", ""])
    def test_a_frozen_split_that_cannot_be_used(self, options, tmp_path, text):
        path = tmp_path / "splits.csv"
        path.write_text(text)
        with pytest.raises((SourceError, TableError), match="split"):
            run(options.model_copy(update={"frozen_split": str(path)}))

    def test_labels_by_people_come_in_beside(self, options, tmp_path):
        labels = [{"pair_id": "p1", "annotator_id": name, "label": "A"} for name in ("x", "y")]
        files = [{"path": write_lines(tmp_path / "labels.jsonl", labels), "layout": "labels"}]
        out = run(DataPrepOptions(**{**options.model_dump(), "label_files": files}))
        assert problems_of(out["imported_labels"], LABELS) == []
        imported = out["imported_labels"]
        assert imported["kind"].tolist() == ["human", "human"]
        assert imported["annotator_id"].str.fullmatch("ann_[a-z]{8}").all()
        assert imported["annotator_id"].nunique() == 2
        assert out["source_files"]["kind"].tolist() == ["pairs", "verdicts", "labels"]

    def test_one_name_in_two_sources_is_two_people(self, options):
        pairs = run(options)["pairs"].head(2).assign(source=["one", "two"])
        read = conform(DataFrame({"pair_id": pairs["pair_id"], "annotator_id": "ann", "label": "A"}), LABELS)
        read = read.assign(stage="primary", kind="human")
        hidden = hide_annotators(read, pairs, "")
        assert hidden["annotator_id"].nunique() == 2
        other = hide_annotators(read, pairs, "a secret that is long enough")
        assert set(other["annotator_id"]).isdisjoint(hidden["annotator_id"])

    def test_labels_about_pairs_that_nobody_described(self, options, tmp_path):
        labels = [{"pair_id": "nowhere", "annotator_id": "x", "label": "A"}]
        files = [{"path": write_lines(tmp_path / "labels.jsonl", labels), "layout": "labels"}]
        with pytest.raises(TableError, match=r"(?s)label_files, column pair_id: found 'nowhere'.*pair_files"):
            run(DataPrepOptions(**{**options.model_dump(), "label_files": files}))

    def test_a_log_that_contradicts_a_file(self, options):
        files = import_files(options)
        logged = files.logged_pairs.assign(reference_label="B")
        with pytest.raises(TableError, match="different reference labels"):
            join_pairs(empty(PAIRS), files.imported_pairs, logged, options)

    def test_a_pair_of_the_bank_and_of_a_file_under_one_id(self, options):
        files = import_files(options)
        with pytest.raises(TableError, match="the same pair_id"):
            join_pairs(files.imported_pairs, files.imported_pairs, files.logged_pairs, options)
