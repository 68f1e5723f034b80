"""A run that is killed loses nothing that it received, and pays for nothing twice."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fault_server import running
from planned_calls import SERVERS

RUNNER = str(Path(SERVERS) / "asking_process.py")
CALLS = 150
CONCURRENCY = 8
"""As in asking_process.py."""


def start(folder, server, engine="local"):
    return subprocess.Popen(
        [sys.executable, RUNNER, str(folder), server.api_base, str(CALLS), engine],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process):
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors[-2000:]
    return json.loads(output.splitlines()[-1])


def killed_at(process, server, received, extra, alone):
    """Kill the run a moment after the server has received so many requests; False if it ended before.

    With `alone` its workers are left to notice by themselves that they are on their own.
    """
    if not server.wait_for_requests(received, process):
        return False
    try:
        process.wait(extra)
    except subprocess.TimeoutExpired:
        (os.kill if alone else os.killpg)(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    return False


def kill_a_hundred_times(folder, seed, engine):
    """Series of five kills each, until a hundred have met a run that was going on."""
    kills = series = 0
    while kills < 100:
        killed, twice = kill_and_finish(folder / str(series), 5, seed + series, engine, alone=series % 2 == 1)
        assert twice <= killed * CONCURRENCY
        kills, series = kills + killed, series + 1
        assert series <= 60


def kill_and_finish(folder, moments, seed, engine="local", alone=False):
    """Kill a run at random moments, let it finish, and compare with one that nobody disturbed."""
    noise = random.Random(seed)
    with running(latency=0.01) as calm:
        undisturbed = finish(start(folder / "calm", calm, engine))
        assert calm.total == CALLS
    with running(latency=0.01) as server:
        killed = 0
        for _ in range(moments):
            asked_before = server.total
            room = max(1, CALLS - len(server.received))
            process = start(folder / "killed", server, engine)
            moment = asked_before + noise.randint(1, max(1, room // 3))
            killed += killed_at(process, server, moment, noise.random() / 50, alone)
        hashes = finish(start(folder / "killed", server, engine))
        twice = server.total - len(server.received)
    assert hashes == undisturbed
    assert len(server.received) == CALLS
    return killed, twice


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
class TestKilledRuns:
    def test_five_kills_lose_nothing_and_ask_again_only_what_was_on_its_way(self, tmp_path):
        killed, twice = kill_and_finish(tmp_path, 5, seed=1)
        assert killed >= 3
        assert twice <= killed * CONCURRENCY

    @pytest.mark.slow
    def test_a_hundred_kills_of_the_local_engine(self, tmp_path):
        kill_a_hundred_times(tmp_path, 100, "local")

    def test_a_second_run_on_one_store_is_refused_by_the_first_ones_name(self, tmp_path):
        with running() as server:
            server.held = True
            first = start(tmp_path, server)
            assert server.wait_for_requests(5, first)
            second = start(tmp_path, server)
            _, errors = second.communicate(timeout=120)
            assert second.returncode != 0
            assert f"is in use by run a-run (process {first.pid} on" in errors
            server.held = False
            finish(first)
            assert server.total == CALLS

    @pytest.mark.parametrize("wish", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_stops_in_order_and_the_next_run_goes_on(self, tmp_path, wish):
        with running(latency=0.2) as server:
            process = start(tmp_path, server)
            assert server.wait_for_requests(40, process)
            os.kill(process.pid, wish)
            _, errors = process.communicate(timeout=60)
            assert process.returncode not in (0, -wish)
            assert "Stopped by Ctrl-C" in errors
            assert "run the same command again" in errors
            assert server.total < CALLS
            finish(start(tmp_path, server))
            assert server.total == CALLS  # what was on its way was waited for, so nothing is asked twice
