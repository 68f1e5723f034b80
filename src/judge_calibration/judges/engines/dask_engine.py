"""The engine of several processes or machines: each block of the plan is one task of Dask's.

A block has one shard of the store, and whoever works on it is the shard's only writer, held to that by a
lock. So there is nothing to put together afterwards: a worker that dies leaves its shard as it is, and
whoever gets the block next goes on from there. Workers need the store's folder under the same path.

Limits of a provider (requests in flight, requests and tokens a minute) are divided between the workers.
"""

from __future__ import annotations

import json
import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.budget import Cost, most_cost
from judge_calibration.judges.engines.local import SUBSTITUTES, LocalEngine, Summary
from judge_calibration.judges.engines.setup import AskSetup, Block
from judge_calibration.judges.failures import StoppedError
from judge_calibration.judges.lock import waiting_lock
from judge_calibration.judges.progress import Progress
from judge_calibration.judges.store import OpenShard, StoreReader
from judge_calibration.options.asking import BudgetOptions, TransportOptions

_CONNECT_WITHIN: Final = "20s"


class DaskError(JudgeCalibrationError):
    """Dask is not installed, its scheduler cannot be reached, or workers keep dying."""


def local_cluster(workers: int) -> Any:
    """Return a started cluster of this machine, one thread a worker process; use it as a context manager."""
    import dask
    from distributed import LocalCluster

    # By default each worker looks at its own stack a hundred times a second.
    with dask.config.set({"distributed.worker.profile.enabled": False}):
        return LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        )


@dataclass(frozen=True)
class _Parcel:
    """A block on its way to a worker, compressed: prompts repeat each other, and the scheduler holds many."""

    size: int
    content: bytes

    @classmethod
    def of(cls, block: Block) -> _Parcel:
        import pyarrow as pa

        content = pickle.dumps(block, pickle.HIGHEST_PROTOCOL)
        return cls(len(content), pa.compress(content, codec="zstd", asbytes=True))

    def block(self) -> Block:
        import pyarrow as pa

        content = pa.decompress(self.content, decompressed_size=self.size, codec="zstd", asbytes=True)
        block: Block = pickle.loads(content)  # noqa: S301 - made by the run itself, and Dask pickles anyway
        return block


def ask_block(setup: AskSetup, parcel: _Parcel) -> Summary:
    """Ask one block, in the process of a worker."""
    block = parcel.block()
    with waiting_lock(OpenShard(setup.folder, block.name).lock):
        return LocalEngine(setup, reader=_reader(setup.folder, setup.run_id)).run([block])


@cache
def _reader(folder: Path, run_id: str) -> StoreReader:
    """The worker's reader: what earlier runs sealed is looked through once a process, not once a block."""
    return StoreReader(folder)


@dataclass
class _Allowance:
    """What is left of the caps, and what blocks in flight may use of it."""

    run: BudgetOptions
    judges: Mapping[str, BudgetOptions]
    used: dict[str, Cost] = field(default_factory=dict)
    """Spent and promised, by judge."""

    @property
    def capped(self) -> bool:
        caps = [self.run, *self.judges.values()]
        return any(one.tokens is not None or one.money is not None for one in caps)

    def spend(self, judge_id: str, cost: Cost) -> None:
        self.used[judge_id] = self.used.get(judge_id, Cost()) + cost

    def left(self, judge_id: str | None = None) -> BudgetOptions:
        """What is left of the run's caps, or of one judge's."""
        caps = self.run if judge_id is None else self.judges[judge_id]
        used = Cost()
        for name, cost in self.used.items():
            if judge_id in (None, name):
                used += cost
        return BudgetOptions(
            tokens=None if caps.tokens is None else max(0, caps.tokens - used.tokens),
            money=None if caps.money is None else max(0.0, caps.money - used.money),
        )

    def fits(self, bounds: Mapping[str, Cost]) -> bool:
        total = Cost()
        for cost in bounds.values():
            total += cost
        return _within(total, self.left()) and all(
            _within(cost, self.left(judge_id)) for judge_id, cost in bounds.items()
        )


def _needs(block: Block) -> set[str]:
    """Calls of other blocks that this one builds upon."""
    own = {call.call_id for call in block.calls}
    return {
        needed
        for call in block.calls
        if SUBSTITUTES in call.request
        for needed in json.loads(call.request)["substitutions"].values()
    } - own


def _within(cost: Cost, caps: BudgetOptions) -> bool:
    return (caps.tokens is None or cost.tokens <= caps.tokens) and (
        caps.money is None or cost.money <= caps.money
    )


def _bounds(block: Block, judges: Mapping[str, TransportOptions]) -> dict[str, Cost]:
    """The most that a block can cost, by judge, were every call asked as often as it may be."""
    bounds: dict[str, Cost] = {}
    for call in block.calls:
        options = judges[call.judge_id]
        one = most_cost(json.loads(call.request), options.price)
        times = options.retries.attempts
        cost = Cost(one.tokens * times, one.money * times)
        bounds[call.judge_id] = bounds.get(call.judge_id, Cost()) + cost
    return bounds


class DaskEngine:
    """Hands blocks out to Dask's workers.

    Parameters
    ----------
    setup : AskSetup
        The store's lock is held by the caller.
    total : int, optional
        Planned calls, for the progress bar.
    """

    def __init__(self, setup: AskSetup, total: int | None = None) -> None:
        self._setup = setup
        self._progress = Progress(total, setup.options.progress)

    def run(self, blocks: Iterable[Block], spent: Iterable[tuple[str, Cost]] = ()) -> Summary:
        """Ask all blocks. See :class:`~judge_calibration.judges.engines.local.LocalEngine`."""
        try:
            import dask
            from distributed import Client
        except ModuleNotFoundError:
            raise DaskError(
                "The engine dask needs the extra 'distributed', which is not installed.",
                "run: pip install 'judge_calibration[distributed]', or set judging.asking.engine to local",
            ) from None
        options = self._setup.options.dask
        allowance = _Allowance(
            self._setup.options.budget, {name: one.budget for name, one in self._setup.judges.items()}
        )
        for judge_id, cost in spent:
            allowance.spend(judge_id, cost)
        with dask.config.set({"distributed.scheduler.allowed-failures": options.attempts_per_shard - 1}):
            if options.address is not None:
                try:
                    client = Client(options.address, timeout=_CONNECT_WITHIN)
                except OSError as problem:
                    raise DaskError(
                        f"The scheduler {options.address} cannot be reached: {problem}",
                        "start it, or leave judging.asking.dask.address empty for a cluster of this machine",
                    ) from None
                with client:
                    return self._hand_out(client, iter(blocks), allowance)
            with local_cluster(options.workers) as cluster, Client(cluster) as client:
                return self._hand_out(client, iter(blocks), allowance)

    def _hand_out(self, client: Any, blocks: Iterator[Block], allowance: _Allowance) -> Summary:
        from distributed import KilledWorker, wait

        workers = max(1, len(client.scheduler_info()["workers"]))
        shared = self._shared(workers)
        summary = Summary()
        in_flight: dict[Any, tuple[frozenset[str], dict[str, Cost]]] = {}
        waiting: deque[Block] = deque()
        ended = False
        try:
            while True:
                while not ended and len(waiting) + len(in_flight) < 2 * workers:
                    block = next(blocks, None)
                    ended = block is None
                    if block is not None:
                        waiting.append(block)
                while waiting:
                    if _needs(waiting[0]) & {name for ids, _ in in_flight.values() for name in ids}:
                        break  # it builds upon answers that are on their way
                    bounds = _bounds(waiting[0], self._setup.judges) if allowance.capped else {}
                    if in_flight and not allowance.fits(bounds):
                        break  # what is in flight may cost less than it was promised
                    setup = _within_allowance(shared, allowance, bounds)
                    block = waiting.popleft()
                    task = client.submit(ask_block, setup, _Parcel.of(block), pure=False)
                    in_flight[task] = (frozenset(call.call_id for call in block.calls), bounds)
                    for judge_id, cost in bounds.items():
                        allowance.spend(judge_id, cost)
                if not in_flight:
                    return summary
                done, _ = wait(list(in_flight), return_when="FIRST_COMPLETED")
                for task in done:
                    _, bounds = in_flight.pop(task)
                    for judge_id, cost in bounds.items():
                        allowance.spend(judge_id, Cost() - cost)
                    self._add(summary, task.result(), allowance, list(bounds))
        except KilledWorker as problem:
            raise DaskError(
                f"A block could not be asked: {problem}",
                "look at the workers' logs and memory, and run again",
            ) from None
        except KeyboardInterrupt:
            raise StoppedError(
                "Stopped by Ctrl-C. Every answer received is kept.",
                "run the same command again: only what is missing is asked",
            ) from None
        finally:
            client.cancel(list(in_flight), force=True)
            self._progress.close()

    def _shared(self, workers: int) -> AskSetup:
        """The setup of one worker: its part of every limit, no bar, no engine of its own."""
        judges = {}
        for name, options in self._setup.judges.items():
            update: dict[str, Any] = {"concurrency": max(1, options.concurrency // workers)}
            for limit in ("requests_per_minute", "tokens_per_minute"):
                value = getattr(options, limit)
                update[limit] = None if value is None else value / workers
            if options.embedded.instances is None:
                # One instance a core in all, not in each process.
                update["embedded"] = options.embedded.model_copy(update={"instances": 1})
            judges[name] = options.model_copy(update=update)
        asking = self._setup.options.model_copy(update={"engine": "local", "progress": False})
        return replace(self._setup, judges=judges, options=asking)

    def _add(self, summary: Summary, part: Summary, allowance: _Allowance, judges: list[str]) -> None:
        summary.planned += part.planned
        summary.from_store += part.from_store
        summary.asked += part.asked
        summary.cost += part.cost
        for name, cost in part.cost_by_judge.items():
            allowance.spend(name, cost)
        for outcome, count in part.outcomes.items():
            summary.outcomes[outcome] = summary.outcomes.get(outcome, 0) + count
        self._progress.stored(part.from_store)
        for outcome, count in part.outcomes.items():
            self._progress.ended(outcome, 0, 0.0, count)
        self._progress.spent(part.cost.tokens, part.cost.money)


def _within_allowance(setup: AskSetup, allowance: _Allowance, bounds: Mapping[str, Cost]) -> AskSetup:
    """The setup with what is left as its caps."""
    if not allowance.capped:
        return setup
    judges = {
        name: options.model_copy(update={"budget": allowance.left(name)})
        for name, options in setup.judges.items()
    }
    asking = setup.options.model_copy(update={"budget": allowance.left()})
    return replace(setup, judges=judges, options=asking)
