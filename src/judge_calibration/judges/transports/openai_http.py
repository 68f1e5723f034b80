"""aiohttp straight to an OpenAI-compatible endpoint: for servers of one's own, where litellm is the limit.

The same answers, outcomes and hashes as over litellm: a prefix that litellm would read as the provider
(``hosted_vllm/``, ``openai/``) is taken off the model's name, and replies are read by the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from judge_calibration.judges.failures import no_connection, not_a_completion, of_status
from judge_calibration.judges.transports.base import (
    PlannedCall,
    Reply,
    decoding_fields,
    grammar_field,
    messages_of,
    reply_of,
)
from judge_calibration.options.asking import TransportOptions

if TYPE_CHECKING:
    import aiohttp

_PREFIXES: Final = ("hosted_vllm/", "openai/")
_MESSAGES: Final = '"messages":'
_MODEL: Final = ',"model":'
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def served_name(model: str) -> str:
    """Return the model's name as the server knows it.

    Examples
    --------
    >>> served_name("hosted_vllm/Qwen/Qwen3-8B")
    'Qwen/Qwen3-8B'
    """
    for prefix in _PREFIXES:
        if model.startswith(prefix):
            return model.removeprefix(prefix)
    return model


def _planned_messages(request: Mapping[str, Any], call: PlannedCall) -> str | None:
    """Return the messages' JSON as it stands in the plan; None if they are sent otherwise.

    To write the long texts anew takes longer than all else of a request. The request's keys are sorted, and
    within its texts each quote is escaped: its messages end where its model begins.
    """
    if request["substitutions"] or request["constraint"]["kind"] != "none":
        return None
    start, end = call.request.find(_MESSAGES), call.request.rfind(_MODEL)
    messages = call.request[start + len(_MESSAGES) : end]
    # A lone surrogate is written as its escape, and may not be sent.
    return None if start < 0 or end < 0 or "\\ud" in messages else messages


class OpenAIHttp:
    """One pool of connections to one endpoint.

    Parameters
    ----------
    options : TransportOptions
        With `api_base`.
    key : str or None
        Sent as a bearer token.
    """

    def __init__(self, options: TransportOptions, key: str | None = None) -> None:
        self._options = options
        self._address = (options.api_base or "").rstrip("/") + "/chat/completions"
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._most_bytes = int(options.largest_answer_mb * 1_000_000)
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        import aiohttp
        from yarl import URL

        if self._session is None:
            self._url = URL(self._address)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._options.concurrency, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=None, sock_connect=self._options.connect_timeout_s
                ),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),  # one call has nothing to say about the next
            )
        return self._session

    async def complete(self, request: dict[str, Any], call: PlannedCall) -> Reply:
        """Ask once. See :class:`~judge_calibration.judges.transports.base.Transport`."""
        import aiohttp

        settings = {
            "model": served_name(request["model"]),
            **decoding_fields(request),
            **grammar_field(request["model"], request.get("constraint")),
        }
        messages = _planned_messages(request, call) or _ENCODER.encode(messages_of(request))
        data = f'{_ENCODER.encode(settings)[:-1]}, "messages": {messages}}}'.encode()
        try:
            session = self._open()
            async with session.post(self._url, data=data, allow_redirects=False) as response:
                raw = await self._read(response)
                status, headers = response.status, response.headers
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as problem:
            raise no_connection(str(problem), perhaps_billed=False) from None
        except (aiohttp.ClientError, ConnectionError) as problem:
            raise no_connection(f"{type(problem).__name__}: {problem}") from None
        body = raw.decode("utf-8", "replace")
        named = dict(headers)
        if status >= 300:
            raise of_status(status, body, named)
        try:
            completion = json.loads(raw)
        except (ValueError, RecursionError) as problem:
            raise not_a_completion(str(problem), body, named) from None
        return reply_of(completion, body, named)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        """Read the body up to the largest size that an answer may have."""
        length = response.content_length
        packed = "Content-Encoding" in response.headers  # and larger than its length says
        if length is not None and length <= self._most_bytes and not packed:
            return await response.read()
        parts: list[bytes] = []
        size = 0
        async for part in response.content.iter_any():
            size += len(part)
            if size > self._most_bytes:
                response.close()
                raise not_a_completion(f"the reply is larger than {self._options.largest_answer_mb:g} MB")
            parts.append(part)
        return b"".join(parts)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
