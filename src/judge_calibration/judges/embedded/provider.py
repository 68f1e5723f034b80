"""The embedded model as litellm's custom provider ``embedded``."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Final

from judge_calibration.judges.embedded.adapters import Adapter, check_adapter
from judge_calibration.judges.embedded.runtime import InstancePool, cores, pool_of
from judge_calibration.judges.embedded.weights import PREFIX, Weights, prepare
from judge_calibration.options.asking import EmbeddedOptions
from judge_calibration.text import sha256_of

PROVIDER: Final = "embedded"
POOL: Final = "embedded_pool"
"""Field of a request to litellm that says which judge's instances are to answer."""
_RANDOM_SEED: Final = 2**32 - 1
_PASSED_ON: Final = (
    "temperature",
    "seed",
    "max_tokens",
    "top_p",
    "grammar",
    "response_format",
    "logprobs",
    "top_logprobs",
    "cache_prompt",
)


@cache
def _weights(model: str, options: EmbeddedOptions) -> Weights:
    return prepare(model, options)


@cache
def _adapter(model: str, options: EmbeddedOptions) -> Adapter | None:
    return None if options.adapter is None else check_adapter(options.adapter, _weights(model, options))


def open_pool(model: str, options: EmbeddedOptions) -> InstancePool:
    """Return the instances that answer for a model, made ready first if need be.

    Raises
    ------
    EmbeddedModelError
        If the model or the runtime is not installed.
    AdapterError
        If the options name an adapter that is not there or was made for another model.
    """
    weights = _weights(model, options)
    adapter = _adapter(model, options)
    return pool_of(
        weights.path, options.context, options.instances or cores(), adapter.path if adapter else None
    )


@cache
def pool_name(options: EmbeddedOptions) -> str:
    """Return the field of a request that tells judges of one model with different options apart."""
    return sha256_of(options.model_dump())


def payload_of(messages: list[dict[str, str]], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the request as llama.cpp takes it.

    Only what the canonical request says is set; whatever llama.cpp would choose by itself otherwise (top_k,
    min_p, penalties) is switched off, so that the temperature and top_p alone decide. With log-probabilities
    the prompt is read anew each time, unless the judge's options say otherwise: only then are they the same
    to the last bit.
    """
    payload = {name: settings[name] for name in _PASSED_ON if settings.get(name) is not None}
    if "seed" in payload:
        payload["seed"] %= _RANDOM_SEED  # llama.cpp takes 32 bits, of which the last value means "any"
    return {
        "messages": messages,
        "top_p": 1.0,
        **payload,
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
    }


def register(litellm: Any, model: str, options: EmbeddedOptions) -> None:
    """Make `model` answer under litellm's provider ``embedded``.

    Raises
    ------
    EmbeddedModelError
        If the model or the runtime is not installed.
    """
    handler = next(
        (
            entry["custom_handler"]
            for entry in litellm.custom_provider_map
            if entry["provider"] == PROVIDER and hasattr(entry["custom_handler"], "pools")
        ),
        None,
    )
    if handler is None:
        handler = _handler_class(litellm)()
        litellm.custom_provider_map = [
            *litellm.custom_provider_map,
            {"provider": PROVIDER, "custom_handler": handler},
        ]
    handler.pools[model.removeprefix(PREFIX), pool_name(options)] = open_pool(model, options)


@cache
def _handler_class(litellm: Any) -> Any:
    class Embedded(litellm.CustomLLM):  # type: ignore[name-defined,misc]
        """Answers litellm's calls from the pools of instances."""

        def __init__(self) -> None:
            super().__init__()
            self.pools: dict[tuple[str, str], InstancePool] = {}

        async def acompletion(
            self, model: str, messages: list[Any], optional_params: dict[str, Any], **_: Any
        ) -> Any:
            pool = self.pools[model, optional_params[POOL]]
            payload = payload_of(messages, optional_params)
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(pool.threads, pool.complete, payload)
            error = result.get("error")
            if error:
                if error.get("type") == "exceed_context_size_error":
                    raise litellm.ContextWindowExceededError(error["message"], model, PROVIDER)
                raise litellm.BadRequestError(str(error.get("message")), model, PROVIDER)
            result["model"] = model
            return litellm.ModelResponse(**result)

    return Embedded
