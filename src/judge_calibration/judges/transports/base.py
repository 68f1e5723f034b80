"""What every transport takes and gives, and the readings that they share.

A transport gets the canonical request (see :class:`PlannedCall`) and returns a :class:`Reply` in the
project's own form, or raises :class:`~judge_calibration.judges.failures.CallFailure`. It never retries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from judge_calibration.judges.failures import CallFailure, Refused, not_a_completion, of_status
from judge_calibration.judges.parsing.fields import in_declared_order
from judge_calibration.judges.parsing.reasoning import is_cut_within, leading_block
from judge_calibration.text import canonical_json, to_storable

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOST_TOKENS: Final = 2**53
"""No model counts so far; a larger number is a fault, and SQLite would refuse it."""
_FINISH: Final = {
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "SAFETY": "content_filter",
    "safety": "content_filter",
}


@dataclass(frozen=True)
class PlannedCall:
    """One call to ask.

    Attributes
    ----------
    call_id : str
    judge_id : str
    request : str
        The canonical request as JSON.
    pair_id, order, protocol, step : str
        What it is for (of the first pair that needs it); transports to real models do not look at these.
    """

    call_id: str
    judge_id: str
    request: str
    pair_id: str = ""
    order: str = ""
    protocol: str = ""
    step: str = ""


class Reply(NamedTuple):
    """An answer that arrived, in the project's own form. Texts are storable (see judge_calibration.text).

    Attributes
    ----------
    text : str or None
        None: nothing was said.
    reasoning : str or None
        What the model thought aloud, where the provider or the reply keeps it apart.
    finish_reason : str or None
    served_model : str or None
        As the server names it.
    logprobs : str or None
        JSON list of ``{"token", "logprob", "top": [{"token", "logprob"}]}``, one a token of the answer.
    prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens : int or None
        None: the server did not say.
    failure : str or None
        ``refusal`` where the provider itself marks the answer as one.
    status, body, headers
        The transport's own reply, kept with the attempt only.
    """

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    served_model: str | None = None
    logprobs: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    failure: str | None = None
    status: int | None = None
    body: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})


class Transport(Protocol):
    """A road to a judge."""

    async def complete(self, request: dict[str, Any], call: PlannedCall) -> Reply:
        """Ask once.

        Raises
        ------
        CallFailure
            If no answer came.
        Refused
            If the provider turned down the key or the account.
        """
        ...

    async def close(self) -> None:
        """Give connections and threads back."""
        ...


def sendable(text: str) -> str:
    """Return `text` as a provider can take it: lone surrogates, which UTF-8 lacks, become U+FFFD."""
    if text.isascii():  # known without a look at the text
        return text
    return _SURROGATE.sub("\ufffd", text)


def messages_of(request: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the request's messages, ready to be sent."""
    return [{"role": m["role"], "content": sendable(m["content"])} for m in request["messages"]]


def response_format(constraint: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the constraint as the field ``response_format`` of OpenAI-compatible requests.

    None for no constraint and for a grammar, which has a field of its own.
    """
    kind = (constraint or {}).get("kind", "none")
    if kind == "json_object":
        return {"type": "json_object"}
    if kind == "json_schema":
        ordered = in_declared_order(constraint["schema"])  # type: ignore[index]
        schema = {"name": "verdict", "schema": ordered, "strict": True}
        return {"type": "json_schema", "json_schema": schema}
    return None


def grammar_field(model: str, constraint: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the fields that carry a grammar (GBNF): vLLM has its own name for it, llama.cpp another."""
    if (constraint or {}).get("kind") != "grammar":
        return {}
    grammar = constraint["grammar"]  # type: ignore[index]
    if model.startswith("hosted_vllm/"):
        return {"structured_outputs": {"grammar": grammar}}
    return {"grammar": grammar}


def decoding_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decoding settings under the names of OpenAI-compatible requests, nulls left out."""
    fields: dict[str, Any] = {
        name: request[name]
        for name in ("temperature", "seed", "max_tokens", "top_p", "reasoning_effort")
        if request.get(name) is not None
    }
    if form := response_format(request.get("constraint")):
        fields["response_format"] = form
    if request.get("top_logprobs"):
        fields["logprobs"] = True
        fields["top_logprobs"] = request["top_logprobs"]
    return fields


def _number(value: Any) -> int | None:
    """A count; None for whatever else a server may have put there: a text, -1, NaN, 1e999."""
    return int(value) if type(value) in (int, float) and 0 <= value < _MOST_TOKENS else None


def _mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object; empty for whatever else stands in its place."""
    return value if isinstance(value, dict) else {}


def _finite(value: Any) -> float | None:
    """A log-probability; minus infinity has no JSON and is null."""
    # An integer of hundreds of digits is no float.
    return float(value) if isinstance(value, int | float) and abs(value) < _MOST_TOKENS else None


def _text(value: Any) -> str | None:
    """A text; None for whatever else stands in its place."""
    return value if isinstance(value, str) else None


def _storable(value: Any) -> str | None:
    return to_storable(value) if isinstance(value, str) else None


def _logprobs(choice: Mapping[str, Any]) -> str | None:
    content = _mapping(choice.get("logprobs")).get("content")
    if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
        return None
    tokens = []
    for item in content:
        top = item.get("top_logprobs")
        listed = [_token(one) for one in top if isinstance(one, dict)] if isinstance(top, list) else []
        tokens.append({**_token(item), "top": listed})
    return canonical_json(tokens)


def _token(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": to_storable(str(item.get("token", ""))), "logprob": _finite(item.get("logprob"))}


def split_reasoning(text: str, reasoning: str | None = None) -> tuple[str | None, str]:
    """Part a closed reasoning block at the very start of an answer from the rest.

    Parameters
    ----------
    text : str
        What the answer says.
    reasoning : str, optional
        What the server, or the client, took apart already. Some end the block at the first closing tag, and
        leave the end of a block with a block in it in the answer: that is put right.

    Examples
    --------
    >>> split_reasoning("<think>both fine</think>A")
    ('both fine', 'A')
    >>> split_reasoning("<think>no end")
    (None, '<think>no end')
    >>> split_reasoning(" no</think>A", "A? <think>B?")
    ('A? <think>B?</think> no', 'A')
    """
    if reasoning:
        if not is_cut_within(reasoning):
            return reasoning, text
        text = f"<think>{reasoning}</think>{text}"
    parts = leading_block(text)
    return parts if parts is not None else (None, text)


def reply_of(completion: Any, body: str | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    """Return the reply that a chat completion (OpenAI's JSON, decoded) holds.

    No choices, or a null content, is an answer that says nothing.

    Raises
    ------
    CallFailure
        If the object is no chat completion, or is an error in the guise of a success.
    """
    shown = body if body is not None else ""
    if not isinstance(completion, dict):
        raise not_a_completion("the reply is no JSON object", shown, headers)
    if completion.get("error") and not completion.get("choices"):
        error = completion["error"]
        code = _mapping(error).get("code")
        if isinstance(code, int) and 400 <= code < 600:
            failed = of_status(code, shown or json.dumps(completion), headers or {})
            raise failed
        raise not_a_completion(f"the reply is an error: {str(error)[:200]}", shown, headers)
    choices = completion.get("choices")
    if not isinstance(choices, list):
        raise not_a_completion("the reply has no list of choices", shown, headers)
    usage = _mapping(completion.get("usage"))
    prompt, answered = _number(usage.get("prompt_tokens")), _number(usage.get("completion_tokens"))
    counted = bool(prompt or answered)  # some clients write 0 and 0 where the server said nothing
    common: dict[str, Any] = {
        "served_model": _storable(completion.get("model")),
        "prompt_tokens": prompt if counted else None,
        "completion_tokens": answered if counted else None,
        "cached_tokens": _number(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        "reasoning_tokens": _number(_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")),
        "status": 200,
        "body": body,
        "headers": headers or {},
    }
    if not choices:
        return Reply(text=None, **common)
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise not_a_completion("the reply's choice has no message", shown, headers)
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise not_a_completion("the message's content is no text", shown, headers)
    own = _mapping(message.get("provider_specific_fields"))
    refusal = _text(message.get("refusal")) or _text(own.get("refusal"))
    reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    if content:
        reasoning, content = split_reasoning(content, reasoning)
    finish = choice.get("finish_reason")
    return Reply(
        text=_storable(content if content is not None or not refusal else refusal),
        reasoning=_storable(reasoning),
        finish_reason=_storable(_FINISH.get(finish, finish)) if isinstance(finish, str) else None,
        logprobs=_logprobs(choice),
        failure="refusal" if refusal and not content else None,
        **common,
    )


__all__ = [
    "CallFailure",
    "PlannedCall",
    "Refused",
    "Reply",
    "Transport",
    "decoding_fields",
    "grammar_field",
    "messages_of",
    "reply_of",
    "response_format",
    "sendable",
    "split_reasoning",
]
