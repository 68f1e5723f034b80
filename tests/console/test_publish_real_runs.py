"""`kedro publish` on runs of the real pipelines: private sentinels stay here, and a round's secret, too."""

import csv
import os
import subprocess
import sys

import pandas as pd
import pytest

from judge_calibration.runs.manifest import read_all

SECRET = "a secret of 28 letters, drawn"

ONE_PAIR_OF_MINE = """
data_prep:
  use_bank: false
  judged: {size: 1}
  pair_files: [{path: mine.csv, layout: pairs, set: {licence: CC0-1.0}}]
"""


@pytest.fixture
def private(tool_project):
    """Return a folder with one private task: a task of the bank, which has it no more."""
    task = tool_project.data / "01_raw" / "pair_bank" / "tasks" / "s002.yml"
    tool_project.write("private/x001.yml", task.read_text("utf-8").replace("id: s002", "id: x001"))
    task.unlink()
    return tool_project.root / "private"


def newest(project) -> str:
    return read_all(project.runs)[-1].run_id


def run(project, *arguments):
    result = project.kedro("run", "--env", "test", *arguments)
    assert result.exit_code == 0, result.output
    return newest(project)


class TestPrivateSentinel:
    def test_a_run_that_named_one_is_refused_and_so_is_its_text_under_another_name(
        self, tool_project, private
    ):
        with_it = run(
            tool_project, "--pipelines", "data_prep", "--params", f"data_prep.private_sentinel={private.name}"
        )
        result = tool_project.kedro("publish", with_it, "--to", "out", "--propose", "form.yml")
        assert result.exit_code == 1, result.output
        assert "private_sentinel=null" in result.output
        assert "this cannot be reviewed away" in result.output
        # Nothing of it can be waved through, and the form offers nothing of the kind.
        form = (tool_project.root / "form.yml").read_text("utf-8")
        assert "crowns" not in form
        assert not (tool_project.root / "out").exists()

        pairs = pd.read_parquet(next(tool_project.data.glob("03_primary/pairs.parquet/*/pairs.parquet")))
        leaked = pairs.loc[pairs["source"] == "private_sentinel"].iloc[0]
        rows = [
            ["question", "response_a", "response_b"],
            ["Which one?", leaked["response_a"], "Another answer."],
        ]
        with (tool_project.root / "mine.csv").open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows(rows)
        tool_project.write("conf/test/data_prep/parameters.yml", ONE_PAIR_OF_MINE)
        without = run(tool_project, "--pipelines", "data_prep")
        result = tool_project.kedro("publish", without, "--to", "out")
        assert result.exit_code == 1, result.output
        assert f"a text or an id of run {with_it}" in result.output

    def test_a_folder_that_no_run_has_named_is_named_by_hand(self, tool_project, private):
        question = (
            "On market day our club managed to sell jugs and scarves for pounds, and nobody kept count."
        )
        with (tool_project.root / "mine.csv").open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows([["question", "response_a", "response_b"], [question, "x", "y"]])
        tool_project.write("conf/test/data_prep/parameters.yml", ONE_PAIR_OF_MINE)
        run_id = run(tool_project, "--pipelines", "data_prep")
        result = tool_project.kedro("publish", run_id, "--to", "out")
        assert result.exit_code == 0, result.output
        from judge_calibration.bank.build import build_pairs
        from judge_calibration.bank.tasks import load_bank

        bank = tool_project.data / "01_raw" / "pair_bank"
        pairs = build_pairs(load_bank(bank, str(private)))
        leaked = pairs.loc[pairs["source"] == "private_sentinel", "response_a"].iloc[0]
        with (tool_project.root / "mine.csv").open("a", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerow(["Which?", f"Somebody wrote: {leaked}", "y"])
        run_id = run(tool_project, "--pipelines", "data_prep")
        result = tool_project.kedro("publish", run_id, "--to", "out2", "--private", str(private))
        assert result.exit_code == 1, result.output
        assert "private sentinel private" in result.output


def test_names_of_people_in_label_files_are_found(tool_project):
    tool_project.write("mine.csv", "pair_id,question,response_a,response_b\np1,Which?,one,two\n")
    tool_project.write("people.csv", "pair_id,annotator_id,label\np1,Berta Beispiel,A\np1,expert_2,B\n")
    tool_project.write(
        "conf/test/data_prep/parameters.yml",
        "data_prep:\n  use_bank: false\n  judged: {size: 1}\n"
        "  pair_files: [{path: mine.csv, layout: pairs, set: {licence: CC0-1.0}}]\n"
        "  label_files: [{path: people.csv, layout: labels, set: {licence: CC0-1.0}}]\n",
    )
    run_id = run(tool_project, "--pipelines", "data_prep")
    result = tool_project.kedro("publish", run_id, "--to", "out")
    assert result.exit_code == 1, result.output
    assert "people.csv, annotators: found an annotator who is no pseudonym: Berta Beispiel" in result.output
    assert "expert_2" not in result.output


@pytest.mark.slow
def test_a_labelling_round_with_a_secret_is_published_and_reproduced_without_it(
    tool_project, tmp_path, monkeypatch
):
    monkeypatch.setenv("JUDGE_CALIBRATION_ANNOTATION_SECRET", SECRET)
    tool_project.write(
        "conf/test/annotation/parameters.yml",
        "annotation:\n  draw: {mode: pairs, pairs: 6}\n  annotators:\n"
        "    - {code: annotator_1}\n    - {code: annotator_2}\n"
        "    - {code: annotator_3, labels: false, adjudicates: true}\n",
    )
    run(tool_project)
    folder = next(tool_project.data.glob("03_primary/annotator_files/*/annotator_files"))
    sheets = sorted(folder.glob("primary/*.csv"))
    assert sheets
    named = []
    for number, sheet in enumerate(sheets, start=1):
        rows = list(csv.reader(sheet.read_text("utf-8-sig").splitlines(keepends=True)))
        column = rows[0].index("label")
        for row in rows[1:]:
            row[column] = "A"
        path = tool_project.data / "01_raw" / "labels" / f"sheet_{number}.csv"
        path.parent.mkdir(exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as handle:
            csv.writer(handle).writerows(rows)
        named.append(f"{{path: data/01_raw/labels/{path.name}}}")
    parameters = (tool_project.root / "conf/test/annotation/parameters.yml").read_text("utf-8")
    tool_project.write(
        "conf/test/annotation/parameters.yml", f"{parameters}  labels: {{files: [{', '.join(named)}]}}\n"
    )
    run_id = run(tool_project)
    out = tmp_path / "elsewhere" / "out"
    result = tool_project.kedro("publish", run_id, "--to", str(out))
    assert result.exit_code == 0, result.output
    files = [path for path in out.rglob("*") if path.is_file()]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert not [path for path in files if path.name.startswith("sheet_")]
    labels = pd.read_parquet(next(out.glob(f"data/04_feature/labels.parquet/{run_id}/labels.parquet")))
    assert len(labels) == 12
    assert labels["annotator_id"].str.startswith("ann_").all()
    monkeypatch.delenv("JUDGE_CALIBRATION_ANNOTATION_SECRET")
    done = subprocess.run(
        [sys.executable, "-m", "kedro", "reproduce", run_id],
        cwd=out,
        env={**os.environ, "KEDRO_DISABLE_TELEMETRY": "1", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "labelling" in done.stdout
