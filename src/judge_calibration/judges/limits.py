"""How hard a provider is driven: requests in flight, requests and tokens a minute, and backing off.

One gate a provider, shared by all its judges in this process. When the provider says that it is too much,
everyone waits as long as it asked, and fewer requests go out at once; each answer lets them grow again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

_GROWTH: Final = 1.0
_SHRINK: Final = 0.5
_SHORTEST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 60.0


@dataclass
class _Bucket:
    """Lets through `per_minute` units a minute, and a second's worth at once."""

    per_minute: float
    level: float = field(init=False)
    capacity: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.capacity = max(self.per_minute / 60.0, 1.0)
        self.level = self.capacity
        self.at = 0.0

    def wait_for(self, units: float, now: float) -> float:
        """Take `units`, and return the seconds to wait before using them.

        The level may fall below zero: whoever takes, waits until it would be back at zero, so that a request
        larger than the bucket passes in its time and later ones queue behind it.
        """
        if self.at:
            self.level = min(self.capacity, self.level + (now - self.at) * self.per_minute / 60.0)
        self.at = now
        self.level -= units
        return max(0.0, -self.level * 60.0 / self.per_minute)

    def give_back(self, units: float) -> None:
        self.level = min(self.capacity, self.level + units)


class ClosedTooLongError(Exception):
    """The provider asked everyone to wait longer than the caller can."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class ProviderGate:
    """Admission to one provider.

    Parameters
    ----------
    concurrency : int
        Requests in flight at most.
    requests_per_minute, tokens_per_minute : float or None
        Limits of the provider; None for no limit.
    clock : callable, optional
        Monotonic seconds.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.concurrency = concurrency
        self.allowed = float(concurrency)
        """Requests in flight that are allowed now; between 1 and `concurrency`."""
        self.answers = 0
        """Answers so far: whether the provider is getting on with anything."""
        self._clock = clock
        self._requests = _Bucket(requests_per_minute) if requests_per_minute else None
        self._tokens = _Bucket(tokens_per_minute) if tokens_per_minute else None
        self._in_flight = 0
        self._closed_until = 0.0
        self._pause = _SHORTEST_PAUSE_S
        self._last_cut = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def in_flight(self) -> int:
        """Requests that were let in and have not left."""
        return self._in_flight

    async def _slot(self) -> None:
        if self._in_flight < int(self.allowed) and not self._waiting:
            self._in_flight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_slot_back()
            raise

    def _give_slot_back(self) -> None:
        self._in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and self._in_flight < int(self.allowed):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    async def enter(self, tokens: int, longest_s: float = math.inf) -> None:
        """Wait until a request that is expected to use `tokens` may be sent.

        Raises
        ------
        ClosedTooLongError
            If the provider asked for a pause that has more than `longest_s` seconds left. Limits of requests
            and tokens a minute are waited for however long they take.
        """
        await self._slot()
        try:
            now = self._clock()
            wait = max(
                self._requests.wait_for(1, now) if self._requests else 0.0,
                self._tokens.wait_for(tokens, now) if self._tokens else 0.0,
            )
            if wait:
                await asyncio.sleep(wait)
            while (closed := self._closed_until - self._clock()) > 0:
                if closed > longest_s:
                    raise ClosedTooLongError(closed)
                await asyncio.sleep(closed)
        except BaseException:
            self._give_slot_back()
            raise

    def leave(self, expected_tokens: int, used_tokens: int | None) -> None:
        """Report a request that is over: unused tokens of the limit are given back."""
        if self._tokens and used_tokens is not None:
            self._tokens.give_back(expected_tokens - used_tokens)
        self._give_slot_back()

    def answered(self) -> None:
        """An answer came: more may go out at once, and the next pause is short again."""
        self.answers += 1
        if self.allowed < self.concurrency:
            self.allowed = min(float(self.concurrency), self.allowed + _GROWTH / self.allowed)
        self._pause = _SHORTEST_PAUSE_S

    def throttled(self, retry_after_s: float | None) -> None:
        """The provider asked for less: close the gate for a while and halve what may be in flight.

        Refusals of requests that were sent before the last cut are one event, not many.
        """
        now = self._clock()
        if now >= self._last_cut + self._pause:
            self.allowed = max(1.0, self.allowed * _SHRINK)
            self._last_cut = now
            if retry_after_s is None:
                self._closed_until = max(self._closed_until, now + self._pause)
                self._pause = min(_LONGEST_PAUSE_S, 2 * self._pause)
        if retry_after_s is not None:
            self._closed_until = max(self._closed_until, now + retry_after_s)
