"""Which version is the latest."""

import json

import pytest

from judge_calibration.runs import files
from judge_calibration.runs.environment import this_process
from judge_calibration.runs.versions import complete_versions, runs_folder_of, usable_versions

A, B, C = (f"2026-01-0{day}T00.00.00.000Z" for day in (1, 2, 3))


@pytest.fixture
def data(tmp_path):
    (tmp_path / "runs").mkdir()
    return tmp_path


def save(data, version, status=None, environment="base", process=None):
    path = data / "03_primary/pairs.parquet" / version / "pairs.parquet"
    files.write_checked(path, lambda file: file.write(version.encode()))
    if status:
        manifest(data, version, status, environment, process)
    return path


def manifest(data, run, status, environment="base", process=None):
    content = {"status": status, "environment": environment, "process": process or this_process()}
    files.write_bytes(data / "runs" / run / "manifest.json", json.dumps(content).encode())


def latest(data, own=None, environment=None):
    return next(usable_versions(data / "03_primary/pairs.parquet", own, environment), None)


class TestOutsideARun:
    def test_none_at_all(self, data):
        assert latest(data) is None

    def test_the_newest_finished_one(self, data):
        save(data, A, "finished")
        save(data, B, "finished")
        assert latest(data) == B

    @pytest.mark.parametrize("status", ["running", "interrupted"])
    def test_not_one_of_a_run_that_did_not_end_by_itself(self, data, status):
        save(data, A, "finished")
        save(data, B, status)
        assert latest(data) == A

    def test_not_one_of_a_killed_run(self, data):
        save(data, A, "finished")
        save(data, B, "running", process={"pid": 2**22 + 1, "host": "here"})
        assert latest(data) == A

    def test_a_complete_one_of_a_failed_run(self, data):
        save(data, A, "finished")
        save(data, B, "failed")
        assert latest(data) == B

    def test_one_that_was_saved_by_hand(self, data):
        save(data, A)
        assert latest(data) == A

    def test_not_one_whose_manifest_is_half_written(self, data):
        save(data, A, "finished")
        save(data, B)
        files.write_bytes(data / "runs" / B / "manifest.json", b'{"status": "fin')
        assert latest(data) == A

    def test_not_one_without_its_checksum(self, data):
        save(data, A, "finished")
        files.sidecar_of(save(data, B, "finished")).unlink()
        assert latest(data) == A
        assert complete_versions(data / "03_primary/pairs.parquet") == [A]

    def test_a_temporary_file_is_no_version(self, data):
        path = data / "03_primary/pairs.parquet" / A / ".pairs.parquet.1-ab.tmp"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half")
        assert latest(data) is None


class TestInARun:
    def test_its_own_first(self, data):
        save(data, A, "running")
        save(data, B, "finished")
        assert latest(data, own=A) == A

    def test_none_of_a_run_that_started_later(self, data):
        save(data, A, "finished")
        save(data, C, "finished")
        manifest(data, B, "running")
        assert latest(data, own=B) == A

    def test_none_of_another_environment(self, data):
        save(data, A, "finished")
        save(data, B, "finished", environment="replay")
        manifest(data, C, "running")
        assert latest(data, own=C) == A

    def test_before_it_has_a_manifest_the_environment_is_told(self, data):
        save(data, A, "finished", environment="replay")
        assert latest(data, own=C, environment="base") is None
        assert latest(data, own=C, environment="replay") == A


def test_the_folder_of_runs_is_the_nearest_above(data):
    assert runs_folder_of(data / "03_primary/deep/pairs.parquet") == data / "runs"
