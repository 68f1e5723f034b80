"""Runs that are killed, and runs at once: each in a process of its own."""

import os
import signal

import pytest

from judge_calibration.runs.manifest import read_all

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are needed")


def test_a_killed_run_is_never_the_latest(project, fifo):
    project.kedro("run")
    good = project.last()["run_id"]
    process = project.start("run", "--params", f"judging.block={fifo}")
    with fifo.open("w"):  # opens once the node waits at the other end, so `pairs` is written
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = read_all(project.runs)[-1]
    assert killed.status == "killed"
    assert killed.content["status"] == "running"
    assert (project.data / "03_primary/pairs.parquet" / killed.run_id / "pairs.parquet.sha256").is_file()

    project.kedro("run", "--pipelines", "judging")
    assert project.last()["inputs"]["pairs"]["version"] == good
    assert "killed" in project.kedro("runs").output
    audit = project.kedro("audit")
    assert audit.exit_code == 0
    assert "killed" in audit.output


def test_a_terminated_run_says_that_it_was_interrupted(project, fifo):
    process = project.start("run", "--params", f"judging.block={fifo}")
    with fifo.open("w"):
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate()
    assert process.returncode == 130
    assert "Interrupted" in output
    assert "Traceback" not in output
    assert project.last()["status"] == "interrupted"


def test_one_that_lets_its_calls_end_first_is_interrupted_too(project, fifo):
    process = project.start("run", "--params", f"judging.block={fifo},judging.fail=listen")
    with fifo.open("w"):
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate()
    assert process.returncode == 130
    assert "Stopped in order." in output
    assert project.last()["status"] == "interrupted"
    assert list(project.last()["outputs"]) == ["pairs"]


def test_runs_at_once_do_not_read_each_others_half(project, fifo):
    first = project.start("run", "--params", f"judging.block={fifo},data_prep.rows=5")
    with fifo.open("w"):
        # The first has written pairs and is in the middle of judging. Another starts and ends meanwhile.
        result = project.kedro("run", "--pipelines", "judging")
        assert "Building data_prep first" in result.output
        second = project.last()
        assert second["outputs"]["verdicts"]["rows"] == 3
        project.kedro("run")
    first.communicate()
    assert first.returncode == 0
    slow = project.manifests()[0]
    assert slow["status"] == "finished"
    assert slow["outputs"]["verdicts"]["rows"] == 5
    assert slow["outputs"]["judge_card"]["sha256"] != project.last()["outputs"]["judge_card"]["sha256"]
