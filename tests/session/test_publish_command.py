"""`kedro publish` on a small project: what is refused, and what others can do with the folder."""

import csv
import json
import os
import subprocess
import sys

import yaml

from judge_calibration.runs.manifest import read_all

BANK = "data/01_raw/bank/one.yml"
REVIEW = {
    "reviewed_by": "the editors",
    "licences": [{"path": BANK, "licence": "CC-BY-4.0", "reason": "we wrote it ourselves"}],
}


def reviewed(project, **more):
    project.write("review.yml", yaml.safe_dump({**REVIEW, **more}))
    return "review.yml"


class TestRefusals:
    def test_all_reasons_are_told_at_once_and_nothing_is_written(self, project, tmp_path):
        project.write(BANK, "a: write to jo@example.org\n")
        project.kedro("run")
        project.write(
            "conf/base/judging/parameters.yml",
            "judging: {repetitions: 3, fail: '', block: '', asking: {offline: false}}\n",
        )
        result = project.kedro("publish", "--to", str(tmp_path / "out"), "--propose", "form.yml")
        assert result.exit_code == 1
        for told in (
            "no licence",
            "jo@example.org",
            "the parameters: found other values of judging.repetitions",
        ):
            assert told in result.output
        assert not (tmp_path / "out").exists()
        form = (project.root / "form.yml").read_text()
        assert "jo@example.org" in form
        assert BANK in form

    def test_a_reviewed_finding_is_accepted_and_kept(self, project, tmp_path):
        project.write(BANK, "a: write to jo@example.org\n")
        project.kedro("run")
        result = project.kedro("publish", "--to", str(tmp_path / "out"), "--review", reviewed(project))
        found = result.output.split("a review of ")[1][:12]
        review = reviewed(project, findings=[{"id": found, "reason": "an invented address"}])
        assert project.kedro("publish", "--to", str(tmp_path / "out"), "--review", review).exit_code == 0
        assert "invented address" in (tmp_path / "out" / "REVIEW.yml").read_text()

    def test_changed_code_is_refused(self, project, tmp_path):
        project.kedro("run")
        project.write("src/small_project/wording.py", 'TITLE = "Another"\n')
        result = project.kedro("publish", "--to", str(tmp_path / "out"), "--review", reviewed(project))
        assert result.exit_code == 1
        assert "small_project/wording.py" in result.output

    def test_a_folder_with_files_and_an_unknown_run_are_usage_errors(self, project, tmp_path):
        project.kedro("run")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "x").touch()
        for arguments in (["--to", str(tmp_path / "full")], ["no-such-run", "--to", str(tmp_path / "out")]):
            assert project.kedro("publish", *arguments).exit_code == 2


def published(project, folder):
    assert project.kedro("run").exit_code == 0
    result = project.kedro("publish", "--to", str(folder), "--review", reviewed(project))
    assert result.exit_code == 0, result.output
    return folder


class TestPublication:
    def test_checksums_hold_for_every_file(self, project, tmp_path):
        folder = published(project, tmp_path / "out")
        done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
        assert done.returncode == 0
        listed = {line.split("  ", 1)[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert there - listed == {"SHA256SUMS"}

    def test_every_file_has_a_known_licence(self, project, tmp_path):
        folder = published(project, tmp_path / "out")
        with (folder / "LICENCES.csv").open() as handle:
            licences = {row["path"]: row["licence"] for row in csv.DictReader(handle)}
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert there - set(licences) == {"SHA256SUMS"}
        assert licences[BANK] == "CC-BY-4.0"
        assert all(licences.values())

    def test_nothing_tells_the_machine(self, project, tmp_path):
        folder = published(project, tmp_path / "out")
        (run,) = read_all(folder / "data" / "runs")
        assert run.content["process"] == {}
        assert str(project.root) not in json.dumps(run.content)
        assert run.status == "finished"

    def test_it_is_reproduced_in_another_place_by_another_process(self, project, tmp_path):
        folder = published(project, tmp_path / "elsewhere" / "out")
        run_id = project.last()["run_id"]
        project.root.rename(tmp_path / "gone")  # what follows must not read the original

        def kedro(*arguments):
            return subprocess.run(
                [sys.executable, "-m", "kedro", *arguments],
                cwd=folder,
                env={**os.environ, "KEDRO_DISABLE_TELEMETRY": "1", "HOME": str(tmp_path)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip

        assert kedro("audit").returncode == 0
        done = kedro("reproduce", run_id)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "no artifact differs" in done.stdout


class TestReproduce:
    def test_lacking_answers_are_counted(self, project, tmp_path):
        import pandas as pd

        from judge_calibration.runs import artifacts, files, manifest

        project.kedro("run")
        content = project.last()
        path = project.data / "04_feature" / "answers.parquet"
        frame = pd.DataFrame({"call_id": ["0" * 64, "1" * 64, "2" * 64], "text": ["A", "B", None]})
        files.write_checked(path, lambda file: frame.to_parquet(file))
        content["outputs"]["answers"] = artifacts.describe(path, project.root)
        content["parameters"]["judging"]["asking"]["store"] = "data/calls"
        manifest.Run(project.runs / content["run_id"], content).save()
        result = project.kedro("reproduce", content["run_id"])
        assert result.exit_code == 2
        assert "lacks 2 of the 2 answers" in result.output
