"""The engine of several processes: the same sealed bytes as the local one, whoever dies."""

import importlib.util
import json
import os
import signal
import subprocess
import sys

import pandas as pd
import pytest
from fault_server import Behaviour, running
from planned_calls import Asked, OneJudge
from test_killed_runs import CALLS, CONCURRENCY, finish, kill_a_hundred_times, start

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.budget import BudgetReachedError
from judge_calibration.judges.engines.dask_engine import DaskEngine, DaskError
from judge_calibration.judges.engines.setup import AskSetup
from judge_calibration.judges.failures import AuthenticationFailedError
from judge_calibration.options.asking import AskingOptions, TransportOptions

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="the extra 'distributed' is not installed"
)


@pytest.fixture(scope="module")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as running_cluster:
        yield running_cluster


def options_for(server, cluster, **asking):
    transport = TransportOptions(transport="openai_http", api_base=server.api_base, concurrency=8)
    dask = {"address": cluster.scheduler_address}
    asked = AskingOptions.model_validate({"engine": "dask", "shard_calls": 20, "dask": dask, **asking})
    return Asked((OneJudge("judge", transport),), asked)


@needs_dask
class TestCluster:
    def test_both_engines_seal_the_same_bytes(self, cluster, make_plan, tmp_path):
        from judge_calibration.judges.store import StoreReader

        calls = make_plan([f"call {n}" for n in range(100)])
        with running() as server:
            options = options_for(server, cluster)
            spread, _ = ask_calls(calls, options, tmp_path / "dask")
            assert server.total == 100
            asking = options.asking.model_copy(update={"engine": "local"})
            alone, _ = ask_calls(calls, Asked(options.judges, asking), tmp_path / "local")
            again, _ = ask_calls(calls, options, tmp_path / "dask")
            assert server.total == 200
        assert spread.equals(alone)
        assert again.equals(alone)
        hashes = StoreReader(tmp_path / "dask").sealed_hashes()
        assert len(hashes) == 5
        assert hashes == StoreReader(tmp_path / "local").sealed_hashes()
        assert not list((tmp_path / "dask" / "open").iterdir())

    def test_calls_that_build_upon_others_wait_for_them_in_whichever_worker(
        self, cluster, make_plan, tmp_path
    ):
        first = make_plan([f"checklist {n}" for n in range(6)])
        later = [
            make_plan([f"compare {n} by [1]"], substitutions={"[1]": call_id})
            for n, call_id in enumerate(first["call_id"])
        ]
        calls = pd.concat([first, *later], ignore_index=True)
        calls["pair_id"] = [f"pair-{n}" for n in range(len(calls))]
        with running(lambda request, seen: Behaviour(text="short", latency=0.05)) as server:
            options = options_for(server, cluster, shard_calls=2)
            answers, _ = ask_calls(calls, options, tmp_path)
            assert server.total == 12
            contents = {request["messages"][0]["content"] for request in server.requests}
        assert answers["failure"].isna().all()
        assert {f"compare {n} by short" for n in range(6)} <= contents

    def test_a_refused_key_comes_home_as_itself(self, cluster, make_plan, tmp_path):
        from fault_server import error

        with (
            running(lambda request, seen: error(401)) as server,
            pytest.raises(AuthenticationFailedError, match="refused the key"),
        ):
            ask_calls(make_plan(["x"]), options_for(server, cluster), tmp_path)

    def test_a_cap_holds_over_all_workers(self, cluster, make_plan, tmp_path):
        usage = {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}
        calls = make_plan([f"call {n:03d}" for n in range(200)])
        with running(lambda request, seen: Behaviour(text="A", reply={"usage": usage})) as server:
            options = options_for(server, cluster, budget={"tokens": 3000})
            with pytest.raises(BudgetReachedError):
                ask_calls(calls, options, tmp_path)
            assert 2800 < 42 * server.total <= 3000


@needs_dask
@pytest.mark.slow
class TestDeaths:
    def test_a_hundred_kills_lose_nothing(self, tmp_path):
        kill_a_hundred_times(tmp_path, 500, "dask")

    def test_a_killed_worker_changes_nothing(self, tmp_path):
        import psutil

        with running(latency=0.01) as calm:
            undisturbed = finish(start(tmp_path / "calm", calm))
        with running(latency=0.05) as server:
            process = start(tmp_path / "killed", server, "dask")
            assert server.wait_for_requests(CALLS // 4, process)
            workers = [
                child
                for child in psutil.Process(process.pid).children(recursive=True)
                if "spawn_main" in " ".join(child.cmdline())
            ]
            os.kill(workers[0].pid, signal.SIGKILL)
            assert finish(process) == undisturbed
            assert server.total - CALLS <= CONCURRENCY


@needs_dask
def test_a_scheduler_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("judge_calibration.judges.engines.dask_engine._CONNECT_WITHIN", "1s")
    asking = AskingOptions.model_validate({"engine": "dask", "dask": {"address": "tcp://127.0.0.1:9"}})
    with pytest.raises(DaskError, match=r"tcp://127\.0\.0\.1:9 cannot be reached"):
        DaskEngine(AskSetup({}, asking, tmp_path, "run")).run([])


def test_without_the_extra_the_command_that_brings_it_is_told(tmp_path):
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "from pathlib import Path\n"
        "from judge_calibration.judges.engines.dask_engine import DaskEngine, DaskError\n"
        "from judge_calibration.judges.engines.setup import AskSetup\n"
        "from judge_calibration.options.asking import AskingOptions\n"
        "try:\n"
        "    DaskEngine(AskSetup({}, AskingOptions(engine='dask'), Path('.'), 'run')).run([])\n"
        "except DaskError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'judge_calibration[distributed]'" in done.stdout, json.dumps(done.stderr)
