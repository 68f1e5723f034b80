"""`kedro audit`, `kedro runs` and `kedro reproduce` on a small project."""

import json
import shutil
import subprocess

import pytest

NAMES = ["pairs", "verdicts", "attempts", "report", "judge_card"]


class TestAudit:
    def test_an_untouched_project_passes(self, project):
        project.kedro("run")
        result = project.kedro("audit")
        assert result.exit_code == 0
        assert "all intact" in result.output

    @pytest.mark.parametrize("name", NAMES)
    def test_a_flipped_byte_in_any_artifact_is_named(self, project, flip, name):
        project.kedro("run")
        content = project.last()
        flip(project.file(content, name))
        for arguments in ([], [content["run_id"]]):
            result = project.kedro("audit", *arguments)
            assert result.exit_code == 1
            assert content["outputs"][name]["path"] in result.output
            assert content["outputs"][name]["sha256"] in result.output

    def test_a_flipped_byte_in_the_csv_beside_is_named(self, project, flip):
        project.kedro("run")
        path = project.file(project.last(), "pairs").with_suffix(".csv")
        flip(path)
        result = project.kedro("audit")
        assert result.exit_code == 1
        assert path.relative_to(project.root).as_posix() in result.output

    def test_a_flipped_byte_in_a_manifest_is_named(self, project):
        project.kedro("run")
        path = project.runs / project.last()["run_id"] / "manifest.json"
        path.write_text(path.read_text().replace('"rows": 3', '"rows": 4'))
        assert project.kedro("audit").exit_code == 1

    def test_a_manifest_that_is_no_json_any_more_is_named(self, project):
        project.kedro("run")
        path = project.runs / project.last()["run_id"] / "manifest.json"
        path.write_text(path.read_text()[1:])
        result = project.kedro("audit")
        assert result.exit_code == 1
        assert "manifest.json" in result.output
        assert "unreadable" in project.kedro("runs").output

    def test_a_file_changed_together_with_its_checksum_is_found(self, project):
        from judge_calibration.runs import files

        project.kedro("run")
        path = project.file(project.last(), "judge_card")
        files.write_checked(path, lambda file: file.write(b'{"n": 99}\n'))
        result = project.kedro("audit")
        assert result.exit_code == 1
        assert "judge_card.json" in result.output

    def test_a_deleted_artifact_is_named(self, project):
        project.kedro("run")
        shutil.rmtree(project.file(project.last(), "report").parent)
        result = project.kedro("audit")
        assert result.exit_code == 1
        assert "absent" in result.output
        assert "report.html" in result.output

    def test_an_unfinished_version_is_told_but_is_no_failure(self, project):
        project.kedro("run")
        left = project.data / "04_feature/verdicts.parquet/2031-01-01T00.00.00.000Z/verdicts.parquet"
        left.parent.mkdir()
        left.write_bytes(b"half")
        result = project.kedro("audit")
        assert result.exit_code == 0
        assert "unfinished" in result.output

    def test_an_unknown_run_is_a_usage_error(self, project):
        result = project.kedro("audit", "yesterday")
        assert result.exit_code == 2
        assert "There is no run 'yesterday'" in result.stderr

    def test_checksum_files_are_those_of_sha256sum(self, project):
        project.kedro("run")
        path = project.file(project.last(), "pairs")
        subprocess.run(["sha256sum", "-c", f"{path.name}.sha256"], cwd=path.parent, check=True)


class TestRuns:
    def test_none_yet(self, project):
        result = project.kedro("runs")
        assert result.exit_code == 0
        assert "kedro run" in result.output

    def test_each_run_with_its_end(self, project):
        project.kedro("run")
        project.kedro("run", "--params", "judging.fail=bug")
        lines = project.kedro("runs").output.splitlines()
        assert "finished" in lines[1]
        assert "failed" in lines[2]
        assert "node judge" in lines[3]
        assert "judging.fail=bug" in lines[2]


class TestReproduce:
    def test_the_same_is_reproduced_by_bytes(self, project):
        project.kedro("run")
        run = project.last()["run_id"]
        result = project.kedro("reproduce", run)
        assert result.exit_code == 0, result.output
        assert "bytes" in result.output
        assert "Not compared: attempts" in result.output
        assert project.last()["parameters"]["judging"]["asking"]["offline"] is True

    def test_a_changed_parameter_is_named(self, project):
        project.kedro("run")
        run = project.last()["run_id"]
        project.write(
            "conf/base/judging/parameters.yml", "judging: {repetitions: 3, fail: '', block: '', asking: {}}\n"
        )
        result = project.kedro("reproduce", run)
        assert result.exit_code == 1
        assert "The first artifact that differs: verdicts (node judge)" in result.output
        assert "parameter: judging.repetitions was 2, is 3" in result.output
        assert result.output.count("because of") == 1

    def test_a_changed_input_is_named(self, project):
        project.kedro("run")
        run = project.last()["run_id"]
        project.write("data/01_raw/bank/one.yml", "a: 2\n")
        result = project.kedro("reproduce", run)
        assert result.exit_code == 1
        assert "The first artifact that differs: pairs" in result.output
        assert "input: bank (data/01_raw/bank)" in result.output

    def test_changed_code_is_named(self, project):
        import small_project.wording

        project.kedro("run")
        run = project.last()["run_id"]
        project.write("src/small_project/wording.py", 'TITLE = "Other"\n')
        project.write("src/small_project/unused.py", "X = 1\n")
        small_project.wording.TITLE = "Other"
        result = project.kedro("reproduce", run)
        assert result.exit_code == 1
        assert "The first artifact that differs: report (node report)" in result.output
        assert "code: small_project/wording.py changed" in result.output
        assert "unused" not in result.output

    def test_its_own_overrides_are_repeated(self, project):
        project.kedro("run", "--params", "judging.repetitions=7")
        result = project.kedro("reproduce", project.last()["run_id"])
        assert result.exit_code == 0, result.output

    def test_a_part_is_repeated_with_the_inputs_it_had(self, project):
        project.kedro("run")
        project.kedro("run", "--pipelines", "judging")
        run = project.last()
        project.kedro("run", "--params", "data_prep.rows=9")
        result = project.kedro("reproduce", run["run_id"])
        assert result.exit_code == 0, result.output
        assert project.last()["inputs"]["pairs"] == run["inputs"]["pairs"]

    def test_elsewhere_numbers_are_compared_with_a_tolerance(self, project):
        project.kedro("run")
        content = project.last()
        path = project.runs / content["run_id"] / "manifest.json"
        content["platform"]["blas"] = ["another kernel"]
        content["outputs"]["judge_card"]["sha256"] = "0" * 64
        path.write_text(json.dumps(content))
        result = project.kedro("reproduce", content["run_id"])
        assert result.exit_code == 0, result.output
        assert "within 1e-08 relative" in result.output

    def test_a_run_that_breaks_decides_nothing(self, project):
        import small_project.wording

        project.kedro("run")
        run = project.last()["run_id"]
        small_project.wording.TITLE = "broken"
        result = project.kedro("reproduce", run)
        assert result.exit_code == 4
        assert "the report is broken" in result.stderr

    def test_an_unknown_run_is_a_usage_error(self, project):
        assert project.kedro("reproduce", "yesterday").exit_code == 2
