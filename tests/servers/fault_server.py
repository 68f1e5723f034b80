"""A scripted OpenAI-compatible server on loopback that answers, misbehaves and counts, as it is told.

It speaks plain HTTP over asyncio streams, so that it can break the protocol in every way that real servers
and proxies do. Use :func:`running` in a test (the server gets a thread of its own), or start the file as a
program (``python fault_server.py --latency 0.05 --mix '{"status:503": 0.05}'``): it prints its port and
stops when its standard input is closed.

How a request is answered is decided by a script, a function from the request's JSON and the number of times
that this same request was received before, to a :class:`Behaviour`. ``GET /stats`` gives the counts.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True)
class Behaviour:
    """What to do with one request.

    `kind` is ``ok``, ``status`` (an error status), ``close`` (hang up without a word), ``reset`` (TCP
    reset), ``cut`` (hang up in the middle of the body), ``short`` (announce fewer bytes than are sent),
    ``invalid_json``, ``raw`` (the body as given) or ``hang`` (say nothing for `seconds`, then hang up).
    """

    kind: str = "ok"
    text: str | None = "A"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    reply: Mapping[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    seconds: float = 5.0
    drip: int = 0
    """Send the body in so many pieces over `seconds`."""


Script = Callable[[dict[str, Any], int], Behaviour]


def error(status: int, message: str = "scripted", code: str | None = None, **headers: str) -> Behaviour:
    """An error status with a body as OpenAI writes it; header names get dashes for underscores."""
    body = json.dumps({"error": {"message": message, "type": "scripted_error", "code": code}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Behaviour("status", status=status, headers=named, body=body)


def draw(request: Mapping[str, Any], salt: str = "") -> float:
    """A number in [0, 1) that depends on the request's content only."""
    content = json.dumps([salt, request.get("messages"), request.get("seed")], sort_keys=True)
    return int.from_bytes(hashlib.sha256(content.encode()).digest()[:8], "big") / 2**64


def coin(request: dict[str, Any], seen: int) -> Behaviour:
    """Answer A or B, by a hash of messages and seed."""
    return Behaviour(text="A" if draw(request) < 0.5 else "B")


def completion(request: Mapping[str, Any], behaviour: Behaviour) -> dict[str, Any]:
    """The reply's JSON."""
    prompt = sum(len(str(m.get("content", ""))) // 4 + 4 for m in request.get("messages", []))
    answer = len(behaviour.text or "") // 4 + 1
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": behaviour.text, **behaviour.message},
        "finish_reason": "stop",
        **behaviour.choice,
    }
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 1,
        "model": request.get("model"),
        "choices": [choice],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
        **behaviour.reply,
    }


class FaultServer:
    """The server: start it with :func:`running` or :meth:`serve`."""

    def __init__(self, script: Script = coin, latency: float = 0.0) -> None:
        self.script = script
        self.latency = latency
        self.received: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.request_headers: list[dict[str, str]] = []
        self.keep_requests = True
        self.held = False
        """Whether requests have to wait: set it to keep clients waiting for as long as a test needs."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.port = 0
        self._came = threading.Condition()

    @property
    def api_base(self) -> str:
        """The address to give to a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def total(self) -> int:
        """Requests received."""
        return sum(self.received.values())

    def wait_for_requests(self, count: int, process: subprocess.Popen[str], within_s: float = 120) -> bool:
        """Wait until `count` requests have been received; False if the client ended before.

        Raises
        ------
        TimeoutError
            If neither happened in time.
        """
        end = time.monotonic() + within_s
        with self._came:
            while self.total < count:
                if process.poll() is not None:
                    return False
                if time.monotonic() > end:
                    raise TimeoutError(f"{self.total} of {count} requests came within {within_s:g} s")
                self._came.wait(0.1)  # a request wakes it; a client that died does not
        return True

    def stats(self) -> dict[str, Any]:
        """Counts: requests received, requests answered in full, and the most received for one content."""
        return {
            "received": self.total,
            "answered": sum(self.answered.values()),
            "distinct": len(self.received),
            "most_for_one": max(self.received.values(), default=0),
            "most_in_flight": self.most_in_flight,
        }

    async def serve(self) -> asyncio.Server:
        """Listen on a free port of 127.0.0.1."""
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=1 << 24)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        with suppress(ConnectionError):
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            if ":" in line:
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if first.startswith("GET"):
            models = {"object": "list", "data": []}
            self._send(writer, 200, json.dumps(self.stats() if "/stats" in first else models).encode(), {})
            await writer.drain()
            return True
        request = json.loads(body)
        key = hashlib.sha256(json.dumps([request.get("messages"), request.get("seed")]).encode()).hexdigest()
        seen = self.received[key]
        with self._came:
            self.received[key] += 1
            self._came.notify_all()
        if self.keep_requests:
            self.requests.append(request)
            self.request_headers.append(headers)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            behaviour = self.script(request, seen)
            while self.held:
                await asyncio.sleep(0.005)
            if behaviour.latency or self.latency:
                await asyncio.sleep(behaviour.latency or self.latency)
            return await self._behave(writer, request, behaviour, key)
        finally:
            self.in_flight -= 1

    async def _behave(
        self, writer: asyncio.StreamWriter, request: dict[str, Any], behaviour: Behaviour, key: str
    ) -> bool:
        kind = behaviour.kind
        if kind == "close":
            return False
        if kind == "reset":
            writer.transport.abort()
            return False
        if kind == "hang":
            await asyncio.sleep(behaviour.seconds)
            return False
        body = behaviour.body
        if body is None:
            body = json.dumps(completion(request, behaviour)).encode()
        if kind == "invalid_json":
            body = body[: len(body) // 2]
        if kind == "cut":
            self._head(writer, 200, len(body), behaviour.headers)
            writer.write(body[: len(body) // 2])
            await writer.drain()
            return False
        if kind == "short":
            self._head(writer, 200, len(body) // 2, behaviour.headers)
            writer.write(body)
            await writer.drain()
            return False
        if behaviour.drip:
            self._head(writer, behaviour.status, len(body), behaviour.headers)
            step = max(1, len(body) // behaviour.drip)
            for start in range(0, len(body), step):
                writer.write(body[start : start + step])
                await writer.drain()
                await asyncio.sleep(behaviour.seconds / behaviour.drip)
        else:
            self._send(writer, behaviour.status, body, behaviour.headers)
        await writer.drain()
        if behaviour.status == 200:
            self.answered[key] += 1
        return True

    @staticmethod
    def _head(
        writer: asyncio.StreamWriter, status: int, length: int, headers: Mapping[str, str], extra: bytes = b""
    ) -> None:
        lines = [
            f"HTTP/1.1 {status} {REASONS.get(status, 'Scripted')}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + extra)

    def _send(
        self, writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str]
    ) -> None:
        self._head(writer, status, len(body), headers, body)


@contextmanager
def running(script: Script = coin, latency: float = 0.0) -> Iterator[FaultServer]:
    """Run a server in a thread of its own for the length of the block."""
    server = FaultServer(script, latency)
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    listening: list[asyncio.Server] = []

    def run() -> None:
        asyncio.set_event_loop(loop)
        listening.append(loop.run_until_complete(server.serve()))
        ready.set()
        loop.run_forever()
        listening[0].close()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def mixed(mix: Mapping[str, float], seed: int = 0, base: Script = coin, faults: int = 1) -> Script:
    """A script in which some requests fail the first `faults` times, as `mix` says, then are answered.

    `mix` maps ``status:<code>`` or a kind of :class:`Behaviour` to the share of requests that meet it.
    """

    def script(request: dict[str, Any], seen: int) -> Behaviour:
        place = draw(request, f"fault {seed}")
        for name, share in mix.items():
            if place < share:
                if seen >= faults:
                    break
                kind, _, code = name.partition(":")
                return error(int(code)) if kind == "status" else Behaviour(kind, seconds=0.2)
            place -= share
        return base(request, seen)

    return script


def padded(base: Script, characters: int) -> Script:
    """The script's answers made longer by white space behind them (a long answer that still parses)."""

    def script(request: dict[str, Any], seen: int) -> Behaviour:
        behaviour = base(request, seen)
        return replace(behaviour, text=f"{behaviour.text}{' ' * characters}")

    return script


def main(arguments: list[str] | None = None) -> None:
    """Serve until standard input is closed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--jitter", type=float, default=0.0, help="share of the latency that varies")
    parser.add_argument("--mix", default="{}", help="JSON: kind of fault -> share of requests")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    noise = random.Random(options.seed)
    script = mixed(json.loads(options.mix), options.seed)

    def delayed(request: dict[str, Any], seen: int) -> Behaviour:
        behaviour = script(request, seen)
        wait = options.latency * (1 + options.jitter * (2 * noise.random() - 1))
        return replace(behaviour, latency=wait) if wait else behaviour

    async def serve() -> None:
        server = FaultServer(delayed)
        server.keep_requests = False
        listening = await server.serve()
        print(server.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        listening.close()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
