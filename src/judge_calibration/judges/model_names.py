"""Whether a run's models can be asked at all, looked at before anything is asked, with no network.

litellm knows its providers, and most models of the hosted ones. A provider that it does not know is refused;
a model that looks like one of its list, and is not in it, may be newer than the list, so that is only said.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from judge_calibration.errors import OptionsError, Problem
from judge_calibration.judges.transports.litellm_road import EMBEDDED, load_litellm

if TYPE_CHECKING:
    from judge_calibration.options.judging import JudgeSpec

logger = logging.getLogger(__name__)

_MISSPELT = 0.8
"""How like a listed name (ratio of matching characters) one has to be to look like a slip."""


def check_model_names(judges: Iterable[JudgeSpec]) -> None:
    """Refuse models of providers that litellm does not know; warn of models that look misspelt.

    Judges over other transports, and the embedded model, are not litellm's business.

    Parameters
    ----------
    judges : iterable of JudgeSpec

    Raises
    ------
    OptionsError
        With every judge whose provider is unknown, and the nearest name that is known.
    """
    named = [
        (judge.judge_id, judge.model, judge.transport.api_base)
        for judge in judges
        if judge.transport.transport == "litellm" and not judge.model.startswith(EMBEDDED)
    ]
    if not named:
        return
    litellm = load_litellm()
    problems = []
    for judge_id, model, api_base in named:
        try:
            _, provider, _, _ = litellm.get_llm_provider(model, api_base=api_base)
        except litellm.exceptions.BadRequestError:
            problems.append(_unknown_provider(judge_id, model, litellm))
            continue
        if api_base is None:
            _warn_of_misspelt(judge_id, model, provider, litellm)
    if problems:
        raise OptionsError(
            "Some judges name a model whose provider litellm does not know.",
            problems,
            "write the provider first, as in openai/gpt-4.1-mini-2025-04-14, or hosted_vllm/my-model with an "
            "api_base",
        )


def _unknown_provider(judge_id: str, model: str, litellm: Any) -> Problem:
    provider, slash, rest = model.partition("/")
    if slash:
        names = [str(getattr(one, "value", one)) for one in litellm.provider_list]
        near = [f"{name}/{rest}" for name in _near(provider, names)]
    else:
        near = _near(model, litellm.model_list)
    wanted = "a provider's name before the first slash"
    return Problem(
        f"judge {judge_id}", f"'{model}'", f"{wanted}; did you mean {near[0]}?" if near else wanted
    )


def _warn_of_misspelt(judge_id: str, model: str, provider: str, litellm: Any) -> None:
    """Warn of a model that the list lacks and that looks like one it has; own names of deployments do not."""
    listed = {name.removeprefix(f"{provider}/") for name in litellm.models_by_provider.get(provider, ())}
    name = model.removeprefix(f"{provider}/")
    if name in listed or not (near := _near(name, listed, _MISSPELT)):
        return
    try:
        litellm.get_model_info(model)
    except litellm.exceptions.ModelNotMappedError:
        logger.warning(
            "judge %s: litellm's list of %s's models has no '%s'; the nearest name is '%s'. It may be newer "
            "than the list; if it is misspelt, every call will come back without an answer.",
            judge_id,
            provider,
            name,
            near[0],
        )


def _near(name: str, known: Iterable[str], likeness: float = 0.6) -> list[str]:
    return difflib.get_close_matches(name, sorted(set(known)), n=1, cutoff=likeness)
