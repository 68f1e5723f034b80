"""What `kedro run` does around a run, in words and in the manifest."""

import json
import stat
from pathlib import Path

import pytest
from kedro.framework.session import KedroSession
from kedro.runner import ParallelRunner, ThreadRunner

from judge_calibration.errors import RunError


class TestManifest:
    def test_a_finished_run_lists_everything(self, project):
        result = project.kedro("run")
        assert result.exit_code == 0, result.output
        content = project.last()
        assert content["status"] == "finished"
        assert content["environment"] == "base"
        assert list(content["outputs"]) == ["pairs", "verdicts", "attempts", "report", "judge_card"]
        pairs = content["outputs"]["pairs"]
        assert pairs["path"] == f"data/03_primary/pairs.parquet/{content['run_id']}/pairs.parquet"
        assert pairs["rows"] == 3
        assert pairs["version"] == content["run_id"]
        assert pairs["bytes"] == project.file(content, "pairs").stat().st_size
        assert content["inputs"]["bank"]["sha256"]
        assert content["calls"]["first"] is not None
        assert content["parameters"]["judging"]["asking"]["store"] == "data/calls"  # defaults are written out
        assert content["packages"]["kedro"] == "1.7.0"
        assert f"The report: {content['outputs']['report']['path']}" in result.output
        assert (project.runs / content["run_id"] / "manifest.json.sha256").is_file()

    def test_its_command_repeats_it_with_the_same_inputs(self, project):
        project.kedro("run")
        first = project.last()
        project.kedro("run", "--pipelines", "judging", "--params", "judging.repetitions=5")
        command = project.last()["command"]
        assert command == (
            "kedro run --pipelines judging --params judging.repetitions=5 "
            f"--load-versions pairs:{first['run_id']}"
        )

    def test_same_inputs_give_same_hashes(self, project):
        project.kedro("run")
        project.kedro("run")
        old, new = (m["outputs"] for m in project.manifests())
        for name in ("pairs", "verdicts", "report", "judge_card"):
            assert old[name]["sha256"] == new[name]["sha256"]
            assert old[name]["content_sha256"] == new[name]["content_sha256"]
        assert old["attempts"]["sha256"] != new["attempts"]["sha256"]

    def test_secrets_are_hidden(self, project, monkeypatch):
        project.write("conf/base/extra/parameters.yml", "extra: {api_key: sk-secret}\n")
        project.kedro("run")
        text = (project.runs / project.last()["run_id"] / "manifest.json").read_text()
        assert "sk-secret" not in text

    def test_thread_runner_is_supported(self, project):
        with KedroSession.create(project_path=project.root) as session:
            session.run(runner=ThreadRunner(max_workers=2))
        assert project.last()["status"] == "finished"


class TestFailure:
    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            ("bug", "KeyError: 'a bug'"),
            ("disk", "The disk is full: calls.sqlite was not written."),
            ("validator", "verdicts hold '?'"),
        ],
    )
    def test_says_where_and_why(self, project, fault, message):
        result = project.kedro("run", "--params", f"judging.fail={fault}")
        assert result.exit_code == 1
        assert message in result.stderr
        assert len(result.stderr.splitlines()) < 20
        content = project.last()
        assert content["status"] == "failed"
        assert content["failure"]["node"] == "judge"
        assert message in content["failure"]["message"]
        assert "Where: node judge" in result.stderr
        assert list(content["outputs"]) == ["pairs"]
        assert (project.root / content["failure"]["traceback"]).is_file()

    def test_a_fault_while_saving_names_the_dataset(self, project):
        project.kedro("run", "--params", "judging.fail=validator")
        assert project.last()["failure"]["where"] == "node judge, dataset verdicts"

    def test_verdicts_of_a_failed_run_can_be_reported(self, project):
        wording = "src/small_project/wording.py"
        project.write(wording, 'TITLE = "broken"\n')
        assert project.kedro("run").exit_code == 1
        failed = project.last()
        import small_project.wording

        small_project.wording.TITLE = "mended"
        result = project.kedro("run", "--pipelines", "reporting")
        assert result.exit_code == 0, result.output
        assert project.last()["inputs"]["verdicts"]["version"] == failed["run_id"]

    def test_ctrl_c_is_recorded_and_its_files_are_not_read(self, project):
        result = project.kedro("run", "--params", "judging.fail=ctrl-c")
        assert result.exit_code == 130
        assert "Interrupted" in result.stderr
        assert project.last()["status"] == "interrupted"
        result = project.kedro("run", "--pipelines", "judging")
        assert "Building data_prep first, because nothing has made pairs yet." in result.output

    def test_a_flipped_byte_is_refused_at_load_with_both_hashes(self, project, flip):
        project.kedro("run")
        first = project.last()
        flip(project.file(first, "verdicts"))
        result = project.kedro("run", "--pipelines", "reporting")
        assert result.exit_code == 1
        assert "was changed after it was written" in result.stderr
        assert first["outputs"]["verdicts"]["sha256"] in result.stderr
        assert project.last()["status"] == "failed"

    def test_a_read_only_data_folder_is_told(self, project, monkeypatch):
        from judge_calibration.runs import manifest

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied", "data/runs")

        monkeypatch.setattr(Path, "mkdir", refuse)
        result = project.kedro("run")
        assert result.exit_code == 1
        assert "cannot be written: permission denied" in result.stderr
        assert manifest.read_all(project.runs) == []


class TestBeforeTheRun:
    def test_parallel_runner_is_refused_in_a_session(self, project):
        with (
            KedroSession.create(project_path=project.root) as session,
            pytest.raises(RunError, match="ParallelRunner is not supported"),
        ):
            session.run(runner=ParallelRunner())

    @pytest.mark.parametrize("option", ["--pipeline", "--pipelines"])
    def test_judging_first_builds_what_it_needs(self, project, option):
        result = project.kedro("run", option, "judging")
        assert result.exit_code == 0, result.output
        assert "Building data_prep first" in result.output
        assert project.last()["pipelines"] == ["data_prep", "judging"]
        again = project.kedro("run", option, "judging")
        assert "Building" not in again.output

    def test_other_missing_inputs_name_dataset_and_command(self, project):
        result = project.kedro("run", "--pipelines", "reporting", "--env", "other")
        assert result.exit_code == 1
        assert "dataset verdicts" in result.stderr
        assert "kedro run --env other --pipelines judging" in result.stderr
        assert project.last()["failure"]["where"] == "before the first node"

    def test_environments_do_not_read_each_other(self, project):
        project.kedro("run")
        result = project.kedro("run", "--pipelines", "judging", "--env", "other")
        assert "Building data_prep first" in result.output
        assert project.last()["parameters"]["judging"]["repetitions"] == 4
        assert project.last()["parameters"]["judging"]["fail"] == ""  # merged softly

    def test_all_faulty_parameters_are_told_at_once(self, project):
        project.write("conf/base/data_prep/parameters.yml", "data_prep: {rows: 0}\n")
        result = project.kedro("run", "--params", "judging.repetitions=0,judging.colour=red")
        assert result.exit_code == 1
        assert "3 parameters are not what they have to be" in result.stderr
        assert "data_prep.rows (conf/base/data_prep/parameters.yml)" in result.stderr
        assert "judging.repetitions" in result.stderr
        assert "judging.colour" in result.stderr
        assert not project.runs.exists()

    def test_unreadable_configuration_is_named_with_file_and_line(self, project):
        project.write("conf/base/data_prep/parameters.yml", "data_prep:\n  rows: [1, 2\n  other: 3\n")
        project.write("conf/base/judging/parameters.yml", "- judging\n")
        result = project.kedro("run")
        assert result.exit_code == 1
        assert "conf/base/data_prep/parameters.yml, line 3" in result.stderr
        assert "conf/base/judging/parameters.yml: found a list" in result.stderr
        assert "Traceback" not in result.stderr

    def test_a_block_with_a_misspelt_name_is_refused(self, project):
        project.write("conf/base/more/parameters.yml", "data_prap: {rows: 2}\nmine: {x: 1}\n")
        result = project.kedro("run")
        assert result.exit_code == 1
        assert "parameter data_prap (conf/base/more/parameters.yml)" in result.stderr
        assert "'data_prep'" in result.stderr
        assert "mine" not in result.stderr  # a block of one's own is nobody's mistake

    @pytest.mark.parametrize(
        ("asked", "told"),
        [
            (
                ("--pipelines", "judgin"),
                ("There is no pipeline 'judgin'", "data_prep, judging, reporting"),
            ),
            (("--env", "nowhere"), ("There is no environment 'nowhere'", "other")),
            (("--nodes", "nonode"), ("nodes named ['nonode']",)),
            (("--runner", "ParallelRunner"), ("ParallelRunner is not supported",)),
        ],
    )
    def test_what_is_not_there_is_named_without_a_traceback(self, project, asked, told):
        result = project.kedro("run", *asked)
        assert result.exit_code == 1
        assert all(words in result.stderr for words in told), result.stderr
        assert "Traceback" not in result.stderr
        assert not project.runs.exists()

    def test_a_missing_raw_folder_is_named(self, project):
        (project.data / "01_raw/bank/one.yml").unlink()
        result = project.kedro("run")
        assert result.exit_code == 1
        assert "dataset bank" in result.stderr
        assert "01_raw/bank" in result.stderr


def test_the_manifest_is_json_without_nan(project):
    project.kedro("run")
    path = project.runs / project.last()["run_id"] / "manifest.json"
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert not path.stat().st_mode & stat.S_IXUSR


class TestParametersThatNothingReads:
    @pytest.mark.parametrize(
        ("given", "told"),
        [
            (
                "judging.repetitons=2",
                ("judging.repetitons", "an unknown name (did you mean 'repetitions'?)"),
            ),
            ("judgng.repetitions=2", ("--params", "a block that nothing reads (did you mean 'judging'?)")),
        ],
    )
    def test_a_misspelt_one_is_refused_with_a_suggestion(self, project, given, told):
        result = project.kedro("run", "--params", given)
        assert result.exit_code == 1
        assert all(words in result.output for words in told), result.output

    def test_no_pairs_at_all_is_told_before_anything_is_done(self, project):
        project.write("conf/base/data_prep/parameters.yml", "data_prep: {rows: 3, use_bank: false}\n")
        result = project.kedro("run")
        assert result.exit_code == 1
        assert "there would be 0 pairs" in result.output
        assert "kedro doctor" in result.output
