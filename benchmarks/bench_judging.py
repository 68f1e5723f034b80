"""Calls a second and CPU seconds of asking, beside the bare clients.

``make bench-judging`` (or ``python benchmarks/bench_judging.py --calls 5000``) asks a loopback server in a
process of its own, at 0 and 50 ms and with 64 and 256 in flight, with prompts of about 600 tokens in both
orders. Each arm runs in a fresh process; importing is not counted. Results are printed as a table, and
written as JSON with ``--out``.

=================  ==================================================================================
``aiohttp``        one session, one POST a call: what Python can do
``openai``         the openai client, one for all calls
``litellm``        litellm.acompletion, provider hosted_vllm
``runner-litellm`` this project's asking over litellm, with its durable store
``runner-http``    this project's asking over openai_http, with its durable store
``runner-http-x2`` the same by the engine dask in two processes
=================  ==================================================================================
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ARMS = ("aiohttp", "openai", "litellm", "runner-litellm", "runner-http", "runner-http-x2")
FILLER = "word " * 590


def prompts(calls: int) -> list[str]:
    """Both orders of calls/2 pairs, about 600 tokens each."""
    return [
        f"{FILLER}\nPair {n // 2}. Which answer is better?\nA: {n % 2}\nB: {1 - n % 2}" for n in range(calls)
    ]


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
    options = TransportOptions.model_validate(
        {"transport": transport, "api_base": base, "concurrency": concurrency}
    )
    asking = AskingOptions.model_validate(
        {
            "engine": engine,
            "progress": False,
            "shard_calls": max(1, len(plan) // 8) if engine == "dask" else 20_000,
            "dask": {"workers": 2},
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


def measure(arm: str, base: str, calls: int, concurrency: int) -> dict[str, float]:
    """Run one arm in this process. The first hundred calls warm it up and are not counted."""
    prepared(arm, base, prompts(100), min(concurrency, 16))()
    work = prepared(arm, base, prompts(calls), concurrency)
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "calls_a_second": calls / seconds,
        "cpu_s_per_1000": 1000 * used / calls,
        "peak_mb": after.ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=ARMS)
    parser.add_argument("--latency", nargs="*", type=float, default=[0.0, 0.05], help="seconds")
    parser.add_argument("--concurrency", nargs="*", type=int, default=[64, 256])
    parser.add_argument("--repeats", type=int, default=3, help="the median is shown")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--one", nargs=4, metavar=("ARM", "BASE", "CALLS", "CONCURRENCY"))
    options = parser.parse_args()
    if options.one:
        arm, base, calls, concurrency = options.one
        print(json.dumps(measure(arm, base, int(calls), int(concurrency))))
        return
    results = []
    print(f"{'latency':>8} {'in flight':>9} {'arm':<16} {'calls/s':>8} {'CPU s/1000':>10} {'peak MB':>8}")
    for latency in options.latency:
        for concurrency in options.concurrency:
            for arm in options.arms:
                runs = [
                    _in_a_process(arm, latency, options.calls, concurrency) for _ in range(options.repeats)
                ]
                middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
                row = {"latency_s": latency, "concurrency": concurrency, "arm": arm, **middle}
                results.append(row)
                print(
                    f"{latency * 1000:>6.0f}ms {concurrency:>9} {arm:<16} {middle['calls_a_second']:>8.0f} "
                    f"{middle['cpu_s_per_1000']:>10.3f} {middle['peak_mb']:>8.0f}",
                    flush=True,
                )
    if options.out:
        options.out.write_text(json.dumps({"calls": options.calls, "results": results}, indent=2) + "\n")


def _in_a_process(arm: str, latency: float, calls: int, concurrency: int) -> dict[str, float]:
    server = subprocess.Popen(
        [sys.executable, str(HERE / "verdict_server.py"), "--latency", str(latency)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        base = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        done = subprocess.run(
            [sys.executable, __file__, "--one", arm, base, str(calls), str(concurrency)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))
    finally:
        server.stdin.close()
        server.wait(10)


if __name__ == "__main__":
    main()
