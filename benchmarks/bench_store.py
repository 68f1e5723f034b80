"""Plan, ask and seal many scripted calls, and watch memory: ``bench_store.py --calls 1000000``.

The plan is made as it is read, the judge answers in the process, and every answer goes through the durable
store. Peak memory must not depend on the number of calls. With ``--compare`` a tenth is run first, each in a
process of its own, and the ratio of the peaks is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judge_calibration.judges.asking import ask_blocks
from judge_calibration.judges.engines.setup import AskSetup, Block
from judge_calibration.judges.store import shard_name
from judge_calibration.judges.transports.base import PlannedCall
from judge_calibration.options.asking import AskingOptions, TransportOptions
from judge_calibration.text import canonical_json

SHARD = 5_000
PROMPT = "word " * 300


def planned(number: int) -> PlannedCall:
    """The call of this number: both orders and five repetitions of each made-up pair."""
    pair, order = number // 10, "AB" if number % 2 == 0 else "BA"
    request = {
        "model": "scripted/position=0.2,noise=0.1",
        "messages": [
            {"role": "user", "content": f"{PROMPT}{pair} {order}\nReply with A or B and nothing else."}
        ],
        "temperature": 1.0,
        "seed": number,
        "max_tokens": 8,
        "substitutions": {},
    }
    call_id = hashlib.sha256(str(number).encode()).hexdigest()
    return PlannedCall(call_id, "judge", canonical_json(request), f"pair-{pair}", order, "direct", "verdict")


def blocks(calls: int) -> Iterator[Block]:
    """The plan, block by block."""
    for start in range(0, calls, SHARD):
        part = tuple(planned(number) for number in range(start, min(calls, start + SHARD)))
        yield Block(shard_name(call.call_id for call in part), part)


def measure(calls: int) -> dict[str, Any]:
    """Ask so many calls in this process."""
    folder = Path(tempfile.mkdtemp(prefix="bench-store-"))
    judge = TransportOptions(transport="scripted", concurrency=64)
    setup = AskSetup({"judge": judge}, AskingOptions(progress=False), folder, "bench")
    began = time.perf_counter()
    summary = ask_blocks(blocks(calls), setup)
    seconds = time.perf_counter() - began
    assert summary.asked == calls
    used = resource.getrusage(resource.RUSAGE_SELF)
    size = sum(path.stat().st_size for path in folder.rglob("*"))
    shutil.rmtree(folder)
    return {
        "calls": calls,
        "calls_a_second": calls / seconds,
        "cpu_s_per_1000": 1000 * (used.ru_utime + used.ru_stime) / calls,
        "peak_mb": used.ru_maxrss / 1024,
        "store_bytes_a_call": size / calls,
    }


def in_a_process(calls: int) -> dict[str, Any]:
    """Measure in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "--one", str(calls)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--compare", action="store_true", help="run a tenth first")
    parser.add_argument("--one", type=int)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    sizes = [options.calls // 10, options.calls] if options.compare else [options.calls]
    rows = [in_a_process(size) for size in sizes]
    for row in rows:
        print(json.dumps({name: round(value, 4) for name, value in row.items()}))
    if options.compare:
        print(f"peak memory: {rows[1]['peak_mb'] / rows[0]['peak_mb']:.3f} times that of a tenth")


if __name__ == "__main__":
    main()
