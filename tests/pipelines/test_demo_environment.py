"""The environment `demo`: nothing is asked of a model, and everything says that it is simulated."""

import csv

import pytest
from kedro.config import OmegaConfigLoader

from judge_calibration.bank import build_pairs, load_bank
from judge_calibration.labelling.study import read_cases
from judge_calibration.options.annotation import AnnotationOptions
from judge_calibration.options.judging import JudgingOptions


@pytest.fixture(scope="module")
def parameters(project_path):
    loader = OmegaConfigLoader(
        conf_source=str(project_path / "conf"),
        base_env="base",
        default_run_env="local",
        env="demo",
        merge_strategy={"parameters": "soft"},
    )
    return loader["parameters"]


def test_every_judge_is_scripted_and_named_so(parameters):
    for block in (parameters["judging"], parameters["attributes"]["judging"]):
        judges = JudgingOptions.model_validate(block).judges
        assert {judge.transport.transport for judge in judges} == {"scripted"}
        assert all(judge.judge_id.startswith("SIMULATED-") for judge in judges)


def test_the_panel_is_simulated_and_no_label_file_stands_beside_it(parameters):
    options = AnnotationOptions.model_validate(parameters["annotation"])
    assert options.simulation.enabled
    assert not options.labels.files
    assert not parameters["data_prep"]["label_files"]


def test_the_answer_key_is_the_bank_s(parameters, project_path):
    paths = {judge["transport"]["answer_key"] for judge in parameters["judging"]["judges"]}
    (path,) = paths
    with (project_path / path).open(newline="") as file:
        key = {row["pair_id"]: row["label"] for row in csv.DictReader(file)}
    pairs = build_pairs(load_bank(project_path / "data" / "01_raw" / "pair_bank"))
    assert key == dict(zip(pairs["pair_id"], pairs["expected"], strict=True)), (
        "the bank has changed: write pair_id and expected of all its pairs into the key"
    )


def test_the_study_s_cases_are_pairs_of_the_bank(parameters, project_path):
    study = AnnotationOptions.model_validate(parameters["annotation"]).study
    path = project_path / study.cases_file
    pairs = build_pairs(load_bank(project_path / "data" / "01_raw" / "pair_bank"))
    cases = read_cases(str(path), pairs)
    assert cases["role"].value_counts().to_dict() == {"witness": 20, "control": 2}
    assert pairs.set_index("pair_id").loc[cases["pair_id"], "base_id"].is_unique
    assert path.read_text().count("SIMULATED") == len(cases)
