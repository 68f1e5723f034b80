"""One writer a store: the living one is named to whoever comes second, a dead one stands in nobody's way."""

import json
import os
import signal
import subprocess
import sys

import pytest

from judge_calibration.errors import StorageError
from judge_calibration.judges.asking import ask_blocks
from judge_calibration.judges.engines.setup import AskSetup
from judge_calibration.judges.lock import StoreLockedError, owned_lock, owner_of, waiting_lock
from judge_calibration.judges.store import OpenShard
from judge_calibration.options.asking import AskingOptions

HOLD = """
import sys
from pathlib import Path
from judge_calibration.judges.lock import owned_lock
with owned_lock(Path(sys.argv[1]), "run-of-another"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_second_run_is_refused_by_the_first_ones_name(tmp_path, holder):
    with (
        pytest.raises(StoreLockedError, match=rf"run-of-another \(process {holder.pid} on"),
        owned_lock(tmp_path / "lock", "mine"),
    ):
        pass


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with owned_lock(tmp_path / "lock", "mine") as dead:
        assert (dead.run_id, dead.pid) == ("run-of-another", holder.pid)
        assert owner_of(tmp_path / "lock").run_id == "mine"


def test_a_lock_that_was_given_back_names_nobody(tmp_path):
    with owned_lock(tmp_path / "lock", "first") as dead:
        assert dead is None
    with owned_lock(tmp_path / "lock", "second") as dead:
        assert dead is None


def test_a_lock_file_with_rubbish_in_it_is_no_obstacle(tmp_path):
    (tmp_path / "lock").write_text("[]")
    with owned_lock(tmp_path / "lock", "mine"):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_a_shard_that_a_worker_still_writes_to_is_left_alone_and_named(tmp_path):
    """A worker of a Dask cluster outlives the run that sent it."""
    shard = OpenShard(tmp_path, "shard")
    shard.path.parent.mkdir()
    shard.path.touch()
    setup = AskSetup({}, AskingOptions(progress=False), tmp_path, "run")
    with (
        waiting_lock(shard.lock),
        pytest.raises(StoreLockedError, match=r"shard shard .* still being written by a worker"),
    ):
        ask_blocks([], setup)
    ask_blocks([], setup)
    assert not list(shard.path.parent.iterdir())


def test_a_lock_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "store").write_text("a file where the folder should be")
    with (
        pytest.raises(StorageError, match=r"The lock .* cannot be written"),
        owned_lock(tmp_path / "store" / "lock", "mine"),
    ):
        pass
