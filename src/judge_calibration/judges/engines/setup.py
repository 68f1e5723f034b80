"""What an engine needs to ask a plan, in a form that can be sent to another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.transports.base import PlannedCall
from judge_calibration.options.asking import AskingOptions, TransportOptions


@dataclass(frozen=True)
class Block:
    """A part of the plan that makes one shard of the store.

    Attributes
    ----------
    name : str
        The shard's name, made from its calls.
    calls : tuple of PlannedCall
        Each call once; a call that another one builds upon stands before it.
    """

    name: str
    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True)
class AskSetup:
    """How a plan is asked.

    Attributes
    ----------
    judges : mapping of str to TransportOptions
        The road to each judge.
    options : AskingOptions
    folder : pathlib.Path
        The call store.
    run_id : str
    keys : mapping of str to str or None
        Key by the name of its variable. Not shown by ``repr``.
    """

    judges: Mapping[str, TransportOptions]
    options: AskingOptions
    folder: Path
    run_id: str
    keys: Mapping[str, str | None] = field(default_factory=dict, repr=False)


def provider_of(options: TransportOptions, model: str) -> str:
    """Return the label under which a judge shares limits with others.

    Examples
    --------
    >>> provider_of(TransportOptions(), "openai/gpt-5.2")
    'openai'
    >>> provider_of(TransportOptions(api_base="http://127.0.0.1:8000/v1"), "hosted_vllm/m")
    '127.0.0.1:8000'
    """
    if options.provider:
        return options.provider
    if options.api_base:
        return urlsplit(options.api_base).netloc or options.api_base
    return model.partition("/")[0] if "/" in model else options.transport


def check_limits(providers: Mapping[str, list[tuple[str, TransportOptions]]]) -> None:
    """Refuse judges that share a provider and disagree about its limits.

    Raises
    ------
    OptionsError
        With each provider for which they do.
    """
    problems = []
    for provider, judges in providers.items():
        limits = {(o.concurrency, o.requests_per_minute, o.tokens_per_minute) for _, o in judges}
        if len(limits) > 1:
            names = ", ".join(judge_id for judge_id, _ in judges)
            problems.append(
                Problem(
                    f"provider {provider} (judges {names})",
                    f"{len(limits)} settings of concurrency, requests_per_minute and tokens_per_minute",
                    "one setting, or a transport.provider label of its own for each",
                )
            )
    if problems:
        raise OptionsError("Judges of one provider share its limits.", problems, "make the limits equal")
