"""A run of asking in a process of its own, for tests that kill it.

``python asking_process.py STORE API_BASE CALLS [engine]`` asks so many calls over ``openai_http`` and
prints the sealed hashes as JSON.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from planned_calls import Asked, OneJudge, plan

from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.store import StoreReader
from judge_calibration.options.asking import AskingOptions, TransportOptions

CONCURRENCY = 8


def main() -> None:
    """Ask, and say what is sealed."""
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # as a Kedro run does
    folder, api_base, count, *engine = sys.argv[1:]
    transport = TransportOptions(transport="openai_http", api_base=api_base, concurrency=CONCURRENCY)
    asking = AskingOptions.model_validate(
        {"shard_calls": 25, "engine": engine[0] if engine else "local", "dask": {"workers": 2}}
    )
    options = Asked((OneJudge("judge", transport),), asking)
    answers, _ = ask_calls(plan([f"call {n}" for n in range(int(count))]), options, folder, "a-run")
    assert answers["failure"].isna().all()
    print(json.dumps(dict(StoreReader(Path(folder)).sealed_hashes())))


if __name__ == "__main__":
    main()
