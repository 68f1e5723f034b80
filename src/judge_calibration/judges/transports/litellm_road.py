"""litellm: the default road, and the only one to providers with a protocol of their own.

litellm's own retries, caches and callbacks stay off: one request is one attempt, and all attempts are kept.
The embedded model takes this road too, as litellm's custom provider ``embedded``.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from judge_calibration.errors import JudgeCalibrationError
from judge_calibration.judges.failures import (
    CallFailure,
    Refused,
    no_connection,
    not_a_completion,
    of_status,
)
from judge_calibration.judges.transports.base import (
    PlannedCall,
    Reply,
    decoding_fields,
    grammar_field,
    messages_of,
    reply_of,
)
from judge_calibration.options.asking import TransportOptions

EMBEDDED: Final = "embedded/"
_SELF_SERVED: Final = "hosted_vllm/"
_PRICES: Final = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_creation_input_token_cost",
    "cache_read_input_token_cost",
)


class RequestRefusedError(JudgeCalibrationError):
    """litellm cannot make this request: an unknown provider, or a setting that the provider lacks."""


def load_litellm() -> Any:
    """Import litellm (about 2 s) so that it reaches for no network and prints nothing."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = False
    # Not turn_off_message_logging: it copies every answer deeply for loggers, of which there are none.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm


def _headers_of(problem: BaseException) -> Mapping[str, str]:
    for holder in (problem, getattr(problem, "response", None)):
        for name in ("litellm_response_headers", "headers"):
            headers = getattr(holder, name, None)
            if headers:
                return {str(key): str(value) for key, value in dict(headers).items()}
    return {}


def failure_of(problem: Exception) -> CallFailure | Refused:
    """Return what an exception of litellm means.

    litellm reports a refused or broken connection as an internal server error (500) and a reply that is no
    JSON as an error with status 200.
    """
    message = str(getattr(problem, "message", problem))
    status = getattr(problem, "status_code", None)
    # litellm puts its own words, " - " and the provider's body together.
    body = message.partition("Exception - ")[2] or message
    if not isinstance(status, int):
        return no_connection(message)
    if not 400 <= status < 600:  # the server's own word may be any number
        return not_a_completion(body, body, _headers_of(problem))
    if type(problem).__name__ == "ContextWindowExceededError":
        return CallFailure("context_overflow", f"http_{status}", body[:500], status=status, body=body)
    if type(problem).__name__ == "ContentPolicyViolationError":
        return CallFailure("refusal", f"http_{status}", body[:500], status=status, terminal=True, body=body)
    if "Invalid response object" in body:
        return not_a_completion("the reply is no chat completion", "", _headers_of(problem))
    if status == 500 and not body.lstrip().startswith("{"):
        return no_connection(body)
    return of_status(status, body, _headers_of(problem))


class LiteLLMRoad:
    """Requests through litellm's asynchronous completion.

    Parameters
    ----------
    options : TransportOptions
    key : str or None
        Handed to litellm with each call; None leaves it to litellm's own environment variables.
    """

    def __init__(self, options: TransportOptions, key: str | None = None) -> None:
        self._options = options
        self._key = key
        self._litellm: Any = None
        self._checked: set[str] = set()

    def _prepare(self, model: str) -> Any:
        """Import litellm, and check once a model that it can be asked at all."""
        if self._litellm is None:
            self._litellm = load_litellm()
        if model not in self._checked:
            if model.startswith(EMBEDDED):
                from judge_calibration.judges.embedded.provider import register

                register(self._litellm, model, self._options.embedded)
            else:
                self._check(model)
            self._checked.add(model)
        return self._litellm

    def _check(self, model: str) -> None:
        try:
            self._litellm.get_llm_provider(model, api_base=self._options.api_base)
        except self._litellm.exceptions.BadRequestError:
            raise RequestRefusedError(
                f"litellm does not know the provider of the model '{model}'.",
                "write the provider first, as in openai/gpt-5.2 or hosted_vllm/my-model with an api_base",
            ) from None
        if model.startswith(_SELF_SERVED):
            self._name_as_free(model)
        if self._key or self._options.key_variable or self._options.api_base:
            return
        missing = self._litellm.validate_environment(model).get("missing_keys") or []
        if missing:
            raise Refused("no_key", variable=" and ".join(missing))

    def _name_as_free(self, model: str) -> None:
        """Enter a self-served model in litellm's price list, which it would else search at every call.

        What a call costs is reckoned here, not there.
        """
        try:
            self._litellm.get_model_info(model)
        except self._litellm.exceptions.ModelNotMappedError:
            free = dict.fromkeys(_PRICES, 0.0)
            self._litellm.register_model(
                {model: {**free, "litellm_provider": _SELF_SERVED.rstrip("/"), "mode": "chat"}}
            )

    async def complete(self, request: dict[str, Any], call: PlannedCall) -> Reply:
        """Ask once. See :class:`~judge_calibration.judges.transports.base.Transport`."""
        model = request["model"]
        litellm = self._prepare(model)
        fields = decoding_fields(request)
        if grammar := grammar_field(model, request.get("constraint")):
            if model.startswith(EMBEDDED):
                fields |= grammar
            else:
                fields["extra_body"] = grammar
        if model.startswith(EMBEDDED):
            from judge_calibration.judges.embedded.provider import POOL, pool_name

            fields[POOL] = pool_name(self._options.embedded)
            if not self._options.embedded.repeatable:
                fields["cache_prompt"] = True
        try:
            response = await litellm.acompletion(
                model=model,
                messages=messages_of(request),
                api_base=self._options.api_base,
                api_key=self._key,
                timeout=self._options.timeout_s,
                num_retries=0,
                max_retries=0,
                **fields,
            )
        except litellm.exceptions.UnsupportedParamsError as problem:
            raise RequestRefusedError(
                f"The model '{model}' (judge {call.judge_id}) cannot take a setting of this request: "
                f"{str(problem)[:300]}",
                "name the setting in the judge's not_settable, and give it no value",
            ) from None
        except JudgeCalibrationError:
            raise
        except (litellm.exceptions.APIError, *litellm.exceptions.LITELLM_EXCEPTION_TYPES) as problem:
            if isinstance(own := problem.__cause__ or problem.__context__, JudgeCalibrationError):
                raise own from None
            failed = failure_of(problem)
            raise failed from None
        completion = response.model_dump()
        headers = getattr(response, "_response_headers", None) or {}
        body = json.dumps(completion)
        if len(body) > self._options.largest_answer_mb * 1_000_000:
            raise not_a_completion(f"the reply is larger than {self._options.largest_answer_mb:g} MB")
        return reply_of(completion, body, {str(key): str(value) for key, value in dict(headers).items()})

    async def close(self) -> None:
        """Close the connections that litellm keeps for this event loop."""
        if self._litellm is not None:
            await self._litellm.close_litellm_async_clients()
