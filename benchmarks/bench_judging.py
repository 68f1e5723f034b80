"""Calls a second and CPU seconds of asking, beside the bare clients and other people's runners.

``make bench-judging`` (or ``python benchmarks/bench_judging.py --calls 5000``) asks a loopback server in a
process of its own, at 0 and 50 ms and with 64 and 256 in flight, with prompts of about 600 tokens in both
orders. Each arm runs in a fresh process; importing is not counted. Results are printed as a table, with the
ratios that the goals are about, and written as JSON with ``--out``.

=================  ==================================================================================
``aiohttp``        one session, one POST a call: what Python can do
``openai``         the openai client, one for all calls
``litellm``        litellm.acompletion, provider hosted_vllm
``runner-litellm`` this project's asking over litellm, with its durable store
``runner-http``    this project's asking over openai_http, with its durable store
``runner-http-x2`` the same by the engine dask in two processes, each with as much to do, and in flight, as
                   the one
``lm-eval`` ...    others (see ``peers.py``), each in an environment of its own under a temporary folder (or
                   ``--environments``); one that cannot be installed is left out, and said why
=================  ==================================================================================
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import functools
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import PACKAGES, VERDICT, prompts

HERE = Path(__file__).resolve().parent
OWN = ("aiohttp", "openai", "litellm", "runner-litellm", "runner-http", "runner-http-x2")
ARMS = (*OWN, *PACKAGES)
WORKERS = 2


async def _spread(ask: Callable[[str], Any], contents: list[str], concurrency: int) -> None:
    remaining = iter(contents)

    async def worker() -> None:
        for content in remaining:
            await ask(content)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def run_aiohttp(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    import aiohttp

    async def go() -> None:
        connector = aiohttp.TCPConnector(limit=concurrency)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def ask(content: str) -> None:
                body = {"model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 8}
                async with session.post(f"{base}/chat/completions", json=body) as response:
                    assert (await response.json())["choices"][0]["message"]["content"] == "A"

            await _spread(ask, contents, concurrency)

    return lambda: asyncio.run(go())


def run_openai(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    import openai

    async def go() -> None:
        async with openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:

            async def ask(content: str) -> None:
                reply = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": content}], max_tokens=8
                )
                assert reply.choices[0].message.content == "A"

            await _spread(ask, contents, concurrency)

    return lambda: asyncio.run(go())


def run_litellm(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    import litellm

    async def ask(content: str) -> None:
        reply = await litellm.acompletion(
            model="hosted_vllm/m",
            api_base=base,
            api_key="none",
            messages=[{"role": "user", "content": content}],
            max_tokens=8,
            max_retries=0,
            num_retries=0,
        )
        assert reply.choices[0].message.content == "A"

    return lambda: asyncio.run(_spread(ask, contents, concurrency))


@functools.cache
def cluster_address() -> str:
    """The scheduler of a LocalCluster of this process, started once: its start is not counted."""
    from judge_calibration.judges.engines.dask_engine import local_cluster

    cluster = local_cluster(WORKERS)
    atexit.register(cluster.close)
    return str(cluster.scheduler_address)


def run_runner(
    base: str, contents: list[str], concurrency: int, transport: str, engine: str = "local"
) -> Callable[[], None]:
    from judge_calibration.judges.asking import ask_blocks, blocks_of
    from judge_calibration.judges.engines.setup import AskSetup
    from judge_calibration.judges.store import shard_name
    from judge_calibration.judges.transports.base import PlannedCall
    from judge_calibration.options.asking import AskingOptions, TransportOptions
    from judge_calibration.text import canonical_json

    if transport == "litellm":
        from judge_calibration.judges.transports.litellm_road import load_litellm

        load_litellm()
    request = {
        "model": "hosted_vllm/m",
        "temperature": None,
        "seed": None,
        "max_tokens": 8,
        "top_p": None,
        "constraint": {"kind": "none", "schema": None, "grammar": None},
        "top_logprobs": 0,
        "reasoning_effort": None,
        "substitutions": {},
    }
    plan = [
        PlannedCall(
            shard_name([content]) + "0" * 48,
            "judge",
            canonical_json({**request, "messages": [{"role": "user", "content": content}]}),
        )
        for content in contents
    ]
    folder = Path(tempfile.mkdtemp(prefix="bench-calls-"))
    if engine == "dask":
        concurrency *= WORKERS  # the engine divides it between the workers
    options = TransportOptions.model_validate(
        {"transport": transport, "api_base": base, "concurrency": concurrency}
    )
    asking = AskingOptions.model_validate(
        {
            "engine": engine,
            "progress": False,
            "shard_calls": max(1, len(plan) // WORKERS) if engine == "dask" else len(plan),
            "dask": {"address": cluster_address() if engine == "dask" else None},
        }
    )
    setup = AskSetup({"judge": options}, asking, folder, "bench")

    def go() -> None:
        summary = ask_blocks(list(blocks_of(plan, asking.shard_calls)), setup)
        assert summary.outcomes == {"answered": len(plan)}, summary
        shutil.rmtree(folder)

    return go


def prepared(arm: str, base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    """What an arm has to do, with everything imported."""
    if arm == "runner-litellm":
        return run_runner(base, contents, concurrency, "litellm")
    if arm == "runner-http":
        return run_runner(base, contents, concurrency, "openai_http")
    if arm == "runner-http-x2":
        return run_runner(base, contents, concurrency, "openai_http", "dask")
    bare = {"aiohttp": run_aiohttp, "openai": run_openai, "litellm": run_litellm}
    return bare[arm](base, contents, concurrency)


def cpu_seconds() -> float:
    """CPU seconds of this process and of its workers so far."""
    import psutil

    own = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in (own, *own.children(recursive=True)))


def measure(arm: str, base: str, calls: int, concurrency: int) -> dict[str, float]:
    """Run one arm in this process. The first hundred calls warm it up and are not counted."""
    prepared(arm, base, prompts(100), min(concurrency, 16))()
    if arm.endswith("-x2"):
        calls *= WORKERS  # so that each process has as much to do as the one
    work = prepared(arm, base, prompts(calls), concurrency)
    before, began = cpu_seconds(), time.perf_counter()
    work()
    seconds, used = time.perf_counter() - began, cpu_seconds() - before
    return {
        "calls_a_second": calls / seconds,
        "cpu_s_per_1000": 1000 * used / calls,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=ARMS)
    parser.add_argument("--latency", nargs="*", type=float, default=[0.0, 0.05], help="seconds")
    parser.add_argument("--concurrency", nargs="*", type=int, default=[64, 256])
    parser.add_argument("--repeats", type=int, default=3, help="the median is shown")
    parser.add_argument("--environments", type=Path, help="folder that keeps the peers' environments")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--one", nargs=4, metavar=("ARM", "BASE", "CALLS", "CONCURRENCY"))
    options = parser.parse_args()
    if options.one:
        arm, base, calls, concurrency = options.one
        print(json.dumps(measure(arm, base, int(calls), int(concurrency))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as made:
        pythons = environments(options.environments or Path(made), [a for a in options.arms if a in PACKAGES])
        arms = [arm for arm in options.arms if arm in OWN or arm in pythons]
        results = []
        print(f"{'latency':>8} {'in flight':>9} {'arm':<16} {'calls/s':>8} {'CPU s/1000':>10} {'peak MB':>8}")
        for latency in options.latency:
            for concurrency in options.concurrency:
                results += _setting(arms, pythons, latency, concurrency, options.calls, options.repeats)
    for line in verdicts(results):
        print(line)
    if options.out:
        options.out.write_text(json.dumps({"calls": options.calls, "results": results}, indent=2) + "\n")


def environments(folder: Path, names: list[str]) -> dict[str, str]:
    """Make an environment for each peer that has none in the folder; return the Pythons that work."""
    pythons = {}
    for name in names:
        home = folder / name
        python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        ready = home / "installed"
        if not ready.exists():
            print(f"Installing {', '.join(PACKAGES[name])} apart, into {home}", flush=True)
            venv.create(home, with_pip=True, clear=True)
            done = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]],
                capture_output=True,
                text=True,
            )
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
                print(f"{name} is left out: it cannot be installed here ({reason})", flush=True)
                continue
            ready.touch()
        pythons[name] = str(python)
    return pythons


def _setting(
    arms: list[str], pythons: dict[str, str], latency: float, concurrency: int, calls: int, repeats: int
) -> list[dict[str, Any]]:
    """All arms in turn, and that several times: what else the machine does meets them alike."""
    runs: dict[str, list[dict[str, float]]] = {arm: [] for arm in arms}
    for _ in range(repeats):
        for arm in arms:
            runs[arm].append(_in_a_process(arm, pythons.get(arm), latency, calls, concurrency))
    rows = []
    for arm in arms:
        middle = {name: statistics.median(run[name] for run in runs[arm]) for name in runs[arm][0]}
        rows.append({"latency_s": latency, "concurrency": concurrency, "arm": arm, **middle})
        print(
            f"{latency * 1000:>6.0f}ms {concurrency:>9} {arm:<16} {middle['calls_a_second']:>8.0f} "
            f"{middle['cpu_s_per_1000']:>10.3f} {middle['peak_mb']:>8.0f}",
            flush=True,
        )
    return rows


def verdicts(results: list[dict[str, Any]]) -> list[str]:
    """The ratios that the goals are about, a line each."""
    rates = {(r["latency_s"], r["concurrency"], r["arm"]): r["calls_a_second"] for r in results}
    lines = []
    for latency, concurrency in dict.fromkeys((r["latency_s"], r["concurrency"]) for r in results):
        goals = [("runner-litellm", "litellm", 0.9)]
        if (latency, concurrency) == (0.05, 64):
            goals.append(("runner-http", "aiohttp", 0.8))
        else:
            goals.append(("runner-http", "litellm", 3.0))
        goals.append(("runner-http-x2", "runner-http", 1.7))
        goals += [("runner-http", peer, 1.0) for peer in PACKAGES]
        for arm, other, goal in goals:
            ours, theirs = (rates.get((latency, concurrency, one)) for one in (arm, other))
            if ours is None or theirs is None:
                continue
            kept = "kept" if ours / theirs >= goal else "not kept"
            lines.append(
                f"{latency * 1000:.0f} ms, {concurrency} in flight: {arm} is {ours / theirs:.2f} times "
                f"{other} (goal {goal:g}: {kept})"
            )
    return lines


def _in_a_process(
    arm: str, python: str | None, latency: float, calls: int, concurrency: int
) -> dict[str, float]:
    content = "A" if python is None else VERDICT
    server = subprocess.Popen(
        [sys.executable, str(HERE / "verdict_server.py"), "--latency", str(latency), "--content", content],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        base = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        asked = [arm, base, str(calls), str(concurrency)]
        command = [sys.executable, __file__, "--one"] if python is None else [python, str(HERE / "peers.py")]
        done = subprocess.run([*command, *asked], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{arm} failed:\n{done.stderr[-3000:]}")
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))
    finally:
        server.stdin.close()
        server.wait(10)


if __name__ == "__main__":
    main()
