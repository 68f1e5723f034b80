"""The engine of one process: asyncio, a set of workers for each provider, two blocks of the plan at a time.

Memory does not grow with the plan: a block is read when the one before the last is through, and what was
answered is in the store, not here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from judge_calibration.errors import InterruptedRunError, JudgeCalibrationError
from judge_calibration.judges.budget import BudgetGuard, Cost, usage_cost
from judge_calibration.judges.caller import Caller, Ended, Road, ending, request_digest
from judge_calibration.judges.engines.setup import AskSetup, Block, check_limits, provider_of
from judge_calibration.judges.failures import AuthenticationFailedError, Refused, StoppedError
from judge_calibration.judges.limits import ProviderGate
from judge_calibration.judges.progress import Progress
from judge_calibration.judges.secrets import Redactor
from judge_calibration.judges.store import OpenShard, StoredAnswer, StoreReader, StoreWriter
from judge_calibration.judges.transports.base import PlannedCall, Transport
from judge_calibration.options.asking import TransportOptions
from judge_calibration.text import canonical_json, from_storable, sha256_of

_BLOCKS_AT_ONCE: Final = 2
_OBJECTS_BEFORE_A_COLLECTION: Final = 5_000
"""Some 60 objects are alive for each call in flight; Python's own number is 700."""
_EMBEDDED: Final = "embedded/"
_BEGINNINGS: Final = "beginnings"
SUBSTITUTES: Final = '"substitutions":{"'
"""How the canonical JSON of a request that builds upon another call looks."""
_ONE_INTERRUPT_S: Final = 0.3
"""Signals within this time are one wish."""
_LONGEST_DRAIN_S: Final = 60.0
_MODEL: Final = '"model":"'
_DECODER: Final = json.JSONDecoder()


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Have Python look for cyclic garbage among what a run makes, and seldom: by default a sixth of its time.

    What was there before (imported modules, for the most part) is left out meanwhile.

    Examples
    --------
    >>> before = gc.get_threshold()
    >>> with rare_collections():
    ...     gc.get_threshold() == before
    False
    >>> gc.get_threshold() == before and gc.get_freeze_count() == 0
    True
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def event_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes uvloop's event loop, faster than Python's own; None where it is not installed."""
    try:
        import uvloop
    except ModuleNotFoundError:  # there is none for Windows
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def open_transport(options: TransportOptions, key: str | None) -> Transport:
    """Return the transport that a judge's options name."""
    if options.transport == "openai_http":
        from judge_calibration.judges.transports.openai_http import OpenAIHttp

        return OpenAIHttp(options, key)
    if options.transport == "scripted":
        from judge_calibration.judges.transports.scripted import Scripted

        return Scripted(options.answer_key)
    from judge_calibration.judges.transports.litellm_road import LiteLLMRoad

    return LiteLLMRoad(options, key)


@dataclass
class _Provider:
    label: str
    gate: ProviderGate
    queue: asyncio.Queue[tuple[_OpenBlock, list[PlannedCall]]] = field(default_factory=asyncio.Queue)
    workers: list[asyncio.Task[None]] = field(default_factory=list)
    failures_in_a_row: int = 0


@dataclass
class _OpenBlock:
    shard: OpenShard
    left: int
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, count: int = 1) -> None:
        self.left -= count
        if self.left <= 0:
            self.done.set()


@dataclass
class Summary:
    """What a run of an engine did.

    Attributes
    ----------
    planned, from_store, asked : int
        Calls.
    outcomes : dict of str to int
        Of the calls that were asked: ``answered``, or the failure.
    cost : Cost
        Of the calls that were asked now.
    cost_by_judge : dict of str to Cost
        The same by judge, with attempts that may have been charged although no answer came.
    """

    planned: int = 0
    from_store: int = 0
    asked: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)
    cost_by_judge: dict[str, Cost] = field(default_factory=dict)


class LocalEngine:
    """Asks the blocks of a plan in this process.

    Parameters
    ----------
    setup : AskSetup
        The store's lock is held by the caller.
    total : int, optional
        Planned calls, for the progress bar.
    reader : StoreReader, optional
        One that has looked at the store before.
    """

    def __init__(self, setup: AskSetup, total: int | None = None, reader: StoreReader | None = None) -> None:
        self._setup = setup
        self._reader = reader or StoreReader(setup.folder)
        self._progress = Progress(total, setup.options.progress)
        self._summary = Summary()
        self._providers: dict[str, _Provider] = {}
        self._roads: dict[tuple[str, str], tuple[Road, _Provider]] = {}
        self._transports: dict[str, Transport] = {}
        self._known: dict[str, list[tuple[str, TransportOptions]]] = {}
        self._pending: dict[str, asyncio.Future[StoredAnswer | None]] = {}
        self._needed: dict[str, asyncio.Future[StoredAnswer | None]] = {}
        self._needs: dict[str, set[str]] = {}
        """By block that is open, the calls of which its own ones need the answer."""
        self._reason: BaseException | None = None
        self._halt = asyncio.Event()

    def run(self, blocks: Iterable[Block], spent: Iterable[tuple[str, Cost]] = ()) -> Summary:
        """Ask all blocks and seal each when it is through.

        Parameters
        ----------
        blocks : iterable of Block
            Taken one after the other; an iterator keeps memory flat.
        spent : iterable of (judge_id, Cost)
            What answers of the plan that the store has already cost, for the budget.

        Raises
        ------
        JudgeCalibrationError
            Whatever ended the run early. All answers that arrived are in the store.
        """
        with rare_collections(), asyncio.Runner(loop_factory=event_loop_factory()) as runner:
            return runner.run(self._run(iter(blocks), spent))

    async def _run(self, blocks: Iterator[Block], spent: Iterable[tuple[str, Cost]]) -> Summary:
        setup = self._setup
        writer = StoreWriter(setup.folder)
        guard = BudgetGuard(
            setup.options.budget, {name: options.budget for name, options in setup.judges.items()}
        )
        for judge_id, cost in spent:
            guard.spend(judge_id, cost)
        before = guard.used_by_judge()
        redactor = Redactor.of_environment(setup.keys.values())
        self._caller = Caller(setup.run_id, writer, guard, redactor)
        interrupt = self._listen_for_interrupt()
        feeder = asyncio.create_task(self._feed(blocks, writer))
        halted = asyncio.create_task(self._halt.wait())
        try:
            await asyncio.wait({feeder, halted}, return_when=asyncio.FIRST_COMPLETED)
            if feeder.done() and self._reason is None and (problem := feeder.exception()) is not None:
                self._stop(problem)
            if self._reason is not None:
                await self._drain()
                raise self._reason
        except asyncio.CancelledError:
            if self._reason is None:
                raise
            raise self._reason from None
        finally:
            interrupt()
            halted.cancel()
            feeder.cancel()
            for provider in self._providers.values():
                for worker in provider.workers:
                    worker.cancel()
            for transport in self._transports.values():
                await transport.close()
            writer.close()
            self._progress.close()
        self._summary.outcomes = dict(self._progress.outcomes)
        self._summary.cost_by_judge = {
            name: used - before[name] for name, used in guard.used_by_judge().items()
        }
        return self._summary

    # ------------------------------------------------------------------------------------- the plan

    async def _feed(self, blocks: Iterator[Block], writer: StoreWriter) -> None:
        """Open blocks one after the other, at most two at once; seal each when it is through."""
        sealing: list[asyncio.Task[None]] = []
        open_blocks = asyncio.Semaphore(_BLOCKS_AT_ONCE)

        async def seal(block: _OpenBlock) -> None:
            await block.done.wait()
            self._needs.pop(block.shard.name, None)
            open_blocks.release()
            try:
                await asyncio.wrap_future(writer.seal(block.shard))
            except JudgeCalibrationError as problem:
                self._stop(problem)

        while True:
            await open_blocks.acquire()
            block = await asyncio.to_thread(next, blocks, None)
            if block is None:
                break
            sealing.append(asyncio.create_task(seal(await self._open(block))))
            sealing = [task for task in sealing if not task.done()]
        await asyncio.gather(*sealing)

    async def _open(self, block: Block) -> _OpenBlock:
        """Look up what the store has, and queue the rest."""
        stored = await asyncio.to_thread(
            self._reader.answers, [call.call_id for call in block.calls], block.name
        )
        self._summary.planned += len(block.calls)
        self._summary.from_store += len(stored)
        self._progress.stored(len(stored))
        missing = [
            call for call in block.calls if call.call_id not in stored and not self._is_pending(call.call_id)
        ]
        opened = _OpenBlock(OpenShard(self._setup.folder, block.name), len(missing))
        self._pending = {name: future for name, future in self._pending.items() if not future.done()}
        for call in missing:
            self._pending[call.call_id] = asyncio.get_running_loop().create_future()
        await self._find_needed(block.name, missing, stored)
        if not missing:
            opened.done.set()
        for provider, groups in self._grouped(missing):
            for group in groups:
                provider.queue.put_nowait((opened, group))
            wanted = min(provider.gate.concurrency, provider.queue.qsize())
            while len(provider.workers) < wanted:
                worker = asyncio.create_task(self._work(provider))
                worker.add_done_callback(self._worker_ended)
                provider.workers.append(worker)
        return opened

    async def _find_needed(
        self, block: str, calls: list[PlannedCall], stored: dict[str, StoredAnswer]
    ) -> None:
        """Have the calls at hand that others in the block build upon: answered, or on their way."""
        needs = {
            call_id
            for call in calls
            if SUBSTITUTES in call.request
            for call_id in (json.loads(call.request).get("substitutions") or {}).values()
        }
        # What only blocks needed that are through by now is let go: memory stays flat.
        self._needs[block] = needs
        still = set().union(*self._needs.values())
        self._needed = {name: future for name, future in self._needed.items() if name in still}
        needed = needs - set(self._needed)
        elsewhere = [name for name in needed if name not in stored and name not in self._pending]
        found = await asyncio.to_thread(self._reader.answers, elsewhere)
        for call_id in needed:
            if call_id in self._pending:
                self._needed[call_id] = self._pending[call_id]
                continue
            self._needed[call_id] = asyncio.get_running_loop().create_future()
            self._needed[call_id].set_result(stored.get(call_id) or found.get(call_id))

    def _is_pending(self, call_id: str) -> bool:
        future = self._pending.get(call_id)
        return future is not None and not future.done()

    def _grouped(self, calls: list[PlannedCall]) -> list[tuple[_Provider, list[list[PlannedCall]]]]:
        """Sort calls by provider; the embedded model's calls with one prompt, or beginning, stay together."""
        by_provider: dict[int, tuple[_Provider, dict[Any, list[PlannedCall]]]] = {}
        for call in calls:
            model = _model_of(call.request)
            _, provider = self._road(call.judge_id, model)
            _, groups = by_provider.setdefault(id(provider), (provider, {}))
            key: Any = call.call_id
            if model.startswith(_EMBEDDED) and SUBSTITUTES not in call.request:
                if self._setup.judges[call.judge_id].embedded.repeatable:
                    key = sha256_of(json.loads(call.request)["messages"])
                else:
                    key = _BEGINNINGS
            groups.setdefault(key, []).append(call)
        return [
            (
                provider,
                [*_by_beginning(groups.pop(_BEGINNINGS, []), provider.gate.concurrency), *groups.values()],
            )
            for provider, groups in by_provider.values()
        ]

    def _road(self, judge_id: str, model: str) -> tuple[Road, _Provider]:
        if (judge_id, model) not in self._roads:
            options = self._setup.judges[judge_id]
            label = provider_of(options, model)
            if not any(name == judge_id for name, _ in self._known.setdefault(label, [])):
                self._known[label].append((judge_id, options))
                check_limits(self._known)
            if label not in self._providers:
                concurrency = options.concurrency
                if model.startswith(_EMBEDDED):
                    from judge_calibration.judges.embedded.runtime import cores

                    concurrency = options.embedded.instances or cores()
                gate = ProviderGate(concurrency, options.requests_per_minute, options.tokens_per_minute)
                self._providers[label] = _Provider(label, gate)
            provider = self._providers[label]
            if judge_id not in self._transports:
                key = self._key(judge_id, options)
                self._transports[judge_id] = open_transport(options, key)
            road = Road(judge_id, options, self._transports[judge_id], provider.gate)
            self._roads[judge_id, model] = (road, provider)
        return self._roads[judge_id, model]

    def _key(self, judge_id: str, options: TransportOptions) -> str | None:
        name = options.key_variable
        if name is None:
            return None
        key = (self._setup.keys.get(name) or os.environ.get(name) or "").strip()
        if not (key.isascii() and key.isprintable()):
            raise AuthenticationFailedError(
                f"The key of judge {judge_id} cannot be sent: the environment variable {name} holds a line "
                "break or a character that is in no key.",
                f"set {name} again, to the key alone",
            )
        return key or None

    # ---------------------------------------------------------------------------------- the workers

    async def _work(self, provider: _Provider) -> None:
        while True:
            block, group = await provider.queue.get()
            for call in group:
                if self._reason is not None:
                    return
                try:
                    ended = await self._one(provider, call, block.shard)
                except JudgeCalibrationError as problem:
                    self._stop(problem)
                    return
                if ended is None:
                    return
                self._count(provider, ended)
                block.end()

    async def _one(self, provider: _Provider, call: PlannedCall, shard: OpenShard) -> Ended | None:
        request = json.loads(call.request)
        road, _ = self._road(call.judge_id, request["model"])
        if road.options.key_variable is not None and self._key(call.judge_id, road.options) is None:
            raise ending(Refused("no_key"), road, self._caller.redactor)
        ready = await self._with_substitutions(request)
        if ready is None:
            ended: Ended | None = Ended(None, "missing")
        else:
            text = call.request if ready is request else canonical_json(ready)
            digest = request_digest(text)
            ended = await self._caller.ask(road, call, ready, digest, shard)
        future = self._pending.get(call.call_id)
        if ended is not None and future is not None and not future.done():
            future.set_result(ended.answer)
        return ended

    async def _with_substitutions(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Put the texts of other calls' answers in the place of their markers; None if one is missing."""
        substitutions = request.get("substitutions") or {}
        texts: dict[str, str] = {}
        for marker, call_id in substitutions.items():
            answer = await asyncio.shield(self._needed[call_id])
            if answer is None or answer.failure is not None or not answer.text:
                return None
            texts[marker] = from_storable(answer.text)
        return fill_in(request, texts)

    def _count(self, provider: _Provider, ended: Ended) -> None:
        self._summary.asked += 1
        self._summary.cost += ended.cost
        self._progress.ended(ended.failure or "answered", ended.cost.tokens, ended.cost.money)
        if ended.answer is not None:
            provider.failures_in_a_row = 0
        elif ended.failure != "missing":
            provider.failures_in_a_row += 1
        most = self._setup.options.most_failures
        if most is not None and provider.failures_in_a_row >= most:
            self._stop(
                StoppedError(
                    f"{most} calls in a row got no answer from {provider.label}; the last one: "
                    f"{ended.failure}{', ' + ended.detail if ended.detail else ''}.",
                    "look at the server, then run again: every answer received so far is kept "
                    "(judging.asking.most_failures sets the number)",
                )
            )

    # ----------------------------------------------------------------------------------- the end

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        """A worker that broke ends the run: nobody else would ask its calls."""
        if not worker.cancelled() and (problem := worker.exception()) is not None:
            self._stop(problem)

    def _stop(self, reason: BaseException) -> None:
        """End the run: nothing new is sent, what is on its way may arrive. The first reason counts."""
        if self._reason is None:
            self._reason = reason
            self._caller.stopping.set()
            self._halt.set()

    async def _drain(self) -> None:
        """Cancel the workers that only wait; let the others finish the request that is on its way."""
        workers = {worker for provider in self._providers.values() for worker in provider.workers}
        busy = {worker for worker in workers if worker in self._caller.sending}
        for worker in workers - busy:
            worker.cancel()
        if busy:
            longest = max(options.timeout_s for options in self._setup.judges.values())
            await asyncio.wait(busy, timeout=min(longest, _LONGEST_DRAIN_S))

    def _listen_for_interrupt(self) -> Any:
        """Stop cleanly at Ctrl-C; a second one drops what is on its way. Returns what undoes it."""
        if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
            return lambda: None
        loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGINT)
        main = asyncio.current_task()
        assert main is not None

        heard_at = -math.inf

        def interrupted() -> None:
            nonlocal heard_at
            # One that is passed on by the handler of another signal is heard twice.
            echo, heard_at = loop.time() < heard_at + _ONE_INTERRUPT_S, loop.time()
            if echo:
                return
            if self._reason is not None:
                main.cancel()
                return
            in_flight = len(self._caller.sending)
            if in_flight:
                print(
                    f"\nStopping: waiting for {in_flight} calls on their way (Ctrl-C again drops them).",
                    file=sys.stderr,
                )
            done = self._summary.from_store + self._summary.asked
            self._stop(
                InterruptedRunError(
                    f"Stopped by Ctrl-C after {done} calls. Every answer received is kept.",
                    "run the same command again: only what is missing is asked",
                )
            )

        loop.add_signal_handler(signal.SIGINT, interrupted)

        def undo() -> None:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)

        return undo


def _model_of(request: str) -> str:
    r"""Return a request's model without reading its messages.

    The request's keys are sorted and the messages, in which every quote is escaped, stand before the model.

    Examples
    --------
    >>> _model_of(r'{"messages":[{"content":"\"model\":\"x\""}],"model":"openai/m","seed":1}')
    'openai/m'
    """
    model: str = _DECODER.raw_decode(request, request.rindex(_MODEL) + len(_MODEL) - 1)[0]
    return model


def _by_beginning(calls: list[PlannedCall], workers: int) -> list[list[PlannedCall]]:
    """Cut calls that come in the order of their prompts into groups with one beginning, for one worker each.

    A group ends where the next prompt shares less than half with the one before, and no group is so long
    that a worker would be left without work.
    """
    most = math.ceil(len(calls) / (2 * workers))
    groups: list[list[PlannedCall]] = []
    before = ""
    for call in calls:
        prompt = call.request[call.request.index('"messages":') :]
        half = len(prompt) // 2
        if not groups or prompt[:half] != before[:half] or len(groups[-1]) >= most:
            groups.append([])
        groups[-1].append(call)
        before = prompt
    return groups


def fill_in(request: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    """Return the request with each marker in its messages replaced by a text.

    Examples
    --------
    >>> asked = {"messages": [{"role": "user", "content": "Checklist: <<1>>"}]}
    >>> fill_in(asked, {"<<1>>": "be brief"})["messages"][0]["content"]
    'Checklist: be brief'
    """
    if not texts:
        return request
    messages = []
    for message in request["messages"]:
        content = message["content"]
        for marker, text in texts.items():
            content = content.replace(marker, text)
        messages.append({**message, "content": content})
    return {**request, "messages": messages}


def stored_cost(answers: Iterable[StoredAnswer], options: TransportOptions) -> Cost:
    """Return what answers of the store cost."""
    total = Cost()
    for answer in answers:
        total += usage_cost(
            answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens, options.price, Cost()
        )
    return total
