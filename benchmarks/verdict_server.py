"""The fastest server that a verdict can come from: a fixed OpenAI-compatible reply after a fixed latency.

It prints its port and stops when its standard input is closed. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys


def response(content: str) -> bytes:
    """The whole HTTP response that says `content`."""
    reply = json.dumps(
        {
            "id": "bench",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
            ],
            "usage": {"prompt_tokens": 620, "completion_tokens": 1, "total_tokens": 621},
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(reply)
    return head + reply


class Verdicts(asyncio.Protocol):
    """One connection: reads whole requests by their Content-Length, answers each."""

    latency = 0.0
    response = response("A")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while True:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buffer[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            if self.latency:
                asyncio.get_running_loop().call_later(self.latency, self.answer)
            else:
                self.answer()

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(self.response)


async def serve(latency: float, content: str) -> None:
    Verdicts.latency, Verdicts.response = latency, response(content)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Verdicts, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--content", default="A", help="what each answer says")
    options = parser.parse_args()
    asyncio.run(serve(options.latency, options.content))
