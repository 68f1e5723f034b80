"""Other people's runners at the same work, each in an environment of its own: run by ``bench_judging.py``.

``python peers.py NAME BASE CALLS CONCURRENCY`` runs with the peer's Python, imports nothing else of this
project, and prints one line of JSON. Each peer is used as its documentation shows, with one client for all
calls where it lets one choose, and with whatever it keeps by default. The server answers with ``VERDICT``, a
reply that each of them reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PACKAGES = {
    "lm-eval": ("lm-eval[api]==0.4.13",),
    "openevals": ("openevals==0.2.2", "openai"),
    "mistrial": ("mistrial==0.2.2",),
    "inspect-ai": ("inspect-ai==0.3.285", "openai"),
}
VERDICT = '{"reasoning": "", "score": true}'
FILLER = "word " * 590


def prompts(calls: int) -> list[str]:
    """Both orders of calls/2 pairs, about 600 tokens each."""
    return [
        f"{FILLER}\nPair {n // 2}. Which answer is better?\nA: {n % 2}\nB: {1 - n % 2}" for n in range(calls)
    ]


def run_lm_eval(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    """Plain generation through its model for local servers; its cache is off, as it is by default."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.api_models import JsonChatStr
    from lm_eval.models.openai_completions import LocalChatCompletion

    model = LocalChatCompletion(
        base_url=f"{base}/chat/completions",
        model="m",
        num_concurrent=concurrency,
        max_retries=1,
        tokenizer_backend=None,
        tokenized_requests=False,
    )

    def message(content: str) -> JsonChatStr:
        return JsonChatStr(json.dumps([{"role": "user", "content": content}]))

    requests = [
        Instance(
            request_type="generate_until",
            doc={},
            arguments=(message(content), {"max_gen_toks": 8, "until": []}),
            idx=number,
        )
        for number, content in enumerate(contents)
    ]

    def go() -> None:
        replies = model.generate_until(requests, disable_tqdm=True)
        assert replies == [VERDICT] * len(contents), replies[:2]

    return go


def run_openevals(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    """Its asynchronous judge over one openai client; nothing is kept."""
    os.environ["LANGSMITH_TRACING"] = "false"
    import openai
    from openevals.llm import create_async_llm_as_judge

    async def spread() -> None:
        async with openai.AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:
            judge = create_async_llm_as_judge(prompt="{inputs}", judge=client, model="m")
            remaining = iter(contents)

            async def worker() -> None:
                for content in remaining:
                    assert (await judge(inputs=content))["score"] is True

            await asyncio.gather(*(worker() for _ in range(concurrency)))

    return lambda: asyncio.run(spread())


def run_mistrial(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    """Its runner with its cache of replies, which commits each."""
    os.environ["MISTRIAL_BASE_URL"] = base
    from mistrial.cache import Cache
    from mistrial.cases import Case
    from mistrial.judges import LLMJudge
    from mistrial.runner import run

    cases = [Case(id=str(number), inputs=content, outputs="A") for number, content in enumerate(contents)]

    def go() -> None:
        with tempfile.TemporaryDirectory() as folder:
            judge = LLMJudge(provider="custom", model="m", max_tokens=8)
            cache = Cache(Path(folder) / "cache.sqlite")
            result = asyncio.run(run(cases, [judge], runs=1, concurrency=concurrency, cache=cache))
        assert all(verdict.error is None for verdict in result.verdicts), result.verdicts[0].error

    return go


def run_inspect(base: str, contents: list[str], concurrency: int) -> Callable[[], None]:
    """A task of one sample a call, plain generation, its log written as by default."""
    os.environ["INSPECT_DISPLAY"] = "none"
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import generate

    def go() -> None:
        task = Task(dataset=[Sample(input=content) for content in contents], solver=generate())
        model = get_model("openai/m", base_url=base, api_key="none", responses_api=False)
        with tempfile.TemporaryDirectory() as folder:
            (log,) = inspect_eval(
                task,
                model=model,
                log_dir=folder,
                display="none",
                max_samples=concurrency,
                max_connections=concurrency,
                max_tokens=8,
            )
        assert log.status == "success", log.error

    return go


ARMS = {
    "lm-eval": run_lm_eval,
    "openevals": run_openevals,
    "mistrial": run_mistrial,
    "inspect-ai": run_inspect,
}


def main() -> None:
    name, base, calls, concurrency = sys.argv[1:]
    ARMS[name](base, prompts(100), min(int(concurrency), 16))()
    work = ARMS[name](base, prompts(int(calls)), int(concurrency))
    before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        json.dumps(
            {
                "calls_a_second": int(calls) / seconds,
                "cpu_s_per_1000": 1000 * used / int(calls),
                "peak_mb": after.ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
