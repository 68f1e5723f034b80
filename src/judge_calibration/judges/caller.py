"""One call, from the request to the answer that lies in the store: limits, budget, attempts, retries.

Only failures of transport are asked again. An answer that arrived, however useless, is the answer.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from judge_calibration.judges.budget import BudgetGuard, Cost, most_cost, usage_cost
from judge_calibration.judges.failures import (
    AccountError,
    Attempt,
    AuthenticationFailedError,
    CallFailure,
    Refused,
    timed_out,
)
from judge_calibration.judges.limits import ClosedTooLongError, ProviderGate
from judge_calibration.judges.secrets import Redactor
from judge_calibration.judges.store import OpenShard, StoredAnswer, StoreWriter
from judge_calibration.judges.transports.base import PlannedCall, Reply, Transport
from judge_calibration.options.asking import TransportOptions
from judge_calibration.text import to_storable

_EXPECTED_BYTES_A_TOKEN: Final = 4
"""For the limit of tokens a minute, which is corrected by the true number afterwards."""
_HEADERS_JSON: Final = json.JSONEncoder(sort_keys=True)
_HASHED_WITH_THE_LOCK: Final = 2047


class Ended(NamedTuple):
    """How a call ended in this run.

    Attributes
    ----------
    answer : StoredAnswer or None
        None: it got none.
    failure : str or None
        Why it got none.
    cost : Cost
    detail : str
        What the last attempt said of its failure, less secrets.
    """

    answer: StoredAnswer | None
    failure: str | None = None
    cost: Cost = Cost()
    detail: str = ""


@dataclass
class Road:
    """Everything about one judge's way to its model."""

    judge_id: str
    options: TransportOptions
    transport: Transport
    gate: ProviderGate


@dataclass
class Caller:
    """Asks single calls. Used from one event loop."""

    run_id: str
    writer: StoreWriter
    guard: BudgetGuard
    redactor: Redactor
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    sending: set[asyncio.Task[Any]] = field(default_factory=set)
    """Tasks whose request is on its way: they are not interrupted when the run stops."""

    async def ask(
        self, road: Road, call: PlannedCall, request: dict[str, Any], digest: str, shard: OpenShard
    ) -> Ended | None:
        """Ask a call until it is answered, or may not be asked again.

        Parameters
        ----------
        road : Road
        call : PlannedCall
        request : dict
            The canonical request, other calls' answers filled in.
        digest : str
            SHA-256 of its canonical JSON.
        shard : OpenShard
            Where the answer is kept.

        Returns
        -------
        Ended or None
            None: the run stopped before the call was through.

        Raises
        ------
        AuthenticationFailedError, AccountError, BudgetReachedError
            For which the whole run has to stop.
        """
        retries = road.options.retries
        bound = most_cost(request, road.options.price)
        expected = _expected_tokens(request)
        began = time.monotonic()
        counted = 0
        number = 0
        answers_before: int | None = None
        while not self.stopping.is_set():
            await self.guard.hold(road.judge_id, bound)
            number += 1
            try:
                await road.gate.enter(expected, retries.deadline_s - (time.monotonic() - began))
            except ClosedTooLongError as closed:
                await self.guard.settle(road.judge_id, bound, Cost())
                attempt = self._not_sent(call, number, closed.seconds)
                self.writer.keep(shard, None, [attempt])
                return Ended(None, attempt.failure, detail=attempt.message or "")
            except BaseException:
                await self.guard.settle(road.judge_id, bound, Cost())
                raise
            reply, failed, attempt = await self._attempt(road, call, request, number)
            if reply is not None:
                used = usage_cost(
                    reply.prompt_tokens,
                    reply.completion_tokens,
                    reply.cached_tokens,
                    road.options.price,
                    bound,
                )
                road.gate.leave(expected, used.tokens)
                road.gate.answered()
                answer = _stored(call.call_id, digest, reply, self.redactor)
                await self.writer.kept(shard, answer, [attempt])
                await self.guard.settle(road.judge_id, bound, used)
                return Ended(answer, answer.failure, used)
            assert failed is not None
            road.gate.leave(expected, None if failed.perhaps_billed else 0)
            await self.guard.settle(road.judge_id, bound, bound if failed.perhaps_billed else Cost())
            if failed.terminal:
                road.gate.answered()
                nothing = _stored(call.call_id, digest, Reply(text=None), self.redactor)
                answer = nothing._replace(failure=failed.failure)
                await self.writer.kept(shard, answer, [attempt])
                return Ended(answer, failed.failure)
            self.writer.keep(shard, None, [attempt])
            if failed.failure == "rate_limited" or failed.retry_after_s is not None:
                road.gate.throttled(failed.retry_after_s)
            if failed.failure != "rate_limited" or answers_before in (None, road.gate.answers):
                counted += 1
            answers_before = road.gate.answers
            wait = _wait(call.call_id, counted, failed, road.options)
            late = time.monotonic() - began + wait > retries.deadline_s
            if (
                not failed.retryable
                or failed.failure not in retries.classes
                or counted >= retries.attempts
                or late
            ):
                return Ended(None, failed.failure, detail=attempt.message or "")
            await self._pause(wait)
        return None

    def _not_sent(self, call: PlannedCall, number: int, seconds: float) -> Attempt:
        """What is kept of a call that the provider's pause leaves no time for."""
        return Attempt(
            call_id=call.call_id,
            number=number,
            run_id=self.run_id,
            started_at=_now(),
            finished_at=_now(),
            failure="rate_limited",
            code="not_sent",
            message=f"the provider asked for a pause of {seconds:,.0f} s more, past retries.deadline_s",
        )

    async def _pause(self, seconds: float) -> None:
        """Sleep, unless the run stops."""
        try:
            await asyncio.wait_for(self.stopping.wait(), seconds)
        except TimeoutError:
            return

    async def _attempt(
        self, road: Road, call: PlannedCall, request: dict[str, Any], number: int
    ) -> tuple[Reply | None, CallFailure | None, Attempt]:
        """Send the request once."""
        task = asyncio.current_task()
        assert task is not None
        started = _now()
        reply: Reply | None = None
        failed: CallFailure | None = None
        self.sending.add(task)
        try:
            async with asyncio.timeout(road.options.timeout_s):
                reply = await road.transport.complete(request, call)
        except TimeoutError:
            failed = timed_out(road.options.timeout_s)
        except CallFailure as problem:
            failed = problem
        except Refused as problem:
            road.gate.leave(0, 0)
            raise ending(problem, road, self.redactor) from None
        except BaseException:
            road.gate.leave(0, None)
            raise
        finally:
            self.sending.discard(task)
        return reply, failed, self._record(call, number, started, reply or failed)

    def _record(
        self, call: PlannedCall, number: int, started: str, result: Reply | CallFailure | None
    ) -> Attempt:
        assert result is not None
        clean = self.redactor.clean
        failed = result if isinstance(result, CallFailure) else None
        headers = self.redactor.clean_headers(result.headers)
        return Attempt(
            call_id=call.call_id,
            number=number,
            run_id=self.run_id,
            started_at=started,
            finished_at=_now(),
            status=result.status,
            failure=result.failure,
            code=failed.code if failed else None,
            message=to_storable(clean(failed.message)) if failed else None,
            body=to_storable(clean(result.body)) if result.body is not None else None,
            headers=_HEADERS_JSON.encode(headers) if headers else None,
        )


def request_digest(text: str) -> str:
    """Return the SHA-256 of a request's JSON, taken in pieces that keep the interpreter's lock.

    For a longer piece hashlib lets go of it, and the loop then waits for it behind other threads.

    Examples
    --------
    >>> request_digest("{}" * 5000) == hashlib.sha256(b"{}" * 5000).hexdigest()
    True
    """
    data = text.encode()
    digest = hashlib.sha256()
    for start in range(0, len(data), _HASHED_WITH_THE_LOCK):
        digest.update(data[start : start + _HASHED_WITH_THE_LOCK])
    return digest.hexdigest()


def _now() -> str:
    """The time in ISO 8601, in UTC, with microseconds.

    Examples
    --------
    >>> datetime.fromisoformat(_now()).tzinfo
    datetime.timezone.utc
    """
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}+00:00"


@functools.lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    """A second since 1970, written out once for all calls within it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _expected_tokens(request: Mapping[str, Any]) -> int:
    size = sum(len(message["content"]) for message in request["messages"])
    return size // _EXPECTED_BYTES_A_TOKEN + int(request.get("max_tokens") or 0)


def _stored(call_id: str, request_sha256: str, reply: Reply, redactor: Redactor) -> StoredAnswer:
    def clean(text: str | None) -> str | None:
        return None if text is None else redactor.clean(text)

    return StoredAnswer(
        call_id=call_id,
        request_sha256=request_sha256,
        failure=reply.failure,
        text=clean(reply.text),
        reasoning=clean(reply.reasoning),
        finish_reason=clean(reply.finish_reason),
        served_model=clean(reply.served_model),
        logprobs=reply.logprobs,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        cached_tokens=reply.cached_tokens,
        reasoning_tokens=reply.reasoning_tokens,
    )


def _wait(call_id: str, counted: int, failed: CallFailure, options: TransportOptions) -> float:
    """Seconds before the next attempt: doubled each time, spread by a number drawn from the call."""
    if failed.retry_after_s is not None:
        return failed.retry_after_s
    draw = hashlib.sha256(f"{call_id} {counted}".encode()).digest()[0] / 255
    retries = options.retries
    longest = min(retries.longest_wait_s, retries.first_wait_s * 2.0 ** max(0, counted - 1))
    return float(longest * (0.5 + 0.5 * draw))


def ending(problem: Refused, road: Road, redactor: Redactor) -> AuthenticationFailedError | AccountError:
    """Return the error that ends the run, with the variable's name and never the key."""
    variable = road.options.key_variable or problem.variable
    where = f"judge {road.judge_id}"
    words = redactor.clean(problem.message)[:200]
    source = f"the environment variable {variable}" if variable else "the judge's key_variable"
    if problem.code == "no_key":
        return AuthenticationFailedError(
            f"No key for {where}: {source} is not set.",
            f"set it and run again, for example:  export {variable or 'OPENAI_API_KEY'}=...",
        )
    if problem.code == "quota":
        return AccountError(
            f"The provider of {where} says that the account has no quota left (HTTP {problem.status}): "
            f"{words}",
            "add credit or another key, and run again: every answer received so far is kept",
        )
    return AuthenticationFailedError(
        f"The provider of {where} refused the key (HTTP {problem.status}). It was read from {source}.",
        "correct the key and run again: every answer received so far is kept",
    )
