"""What calls may cost: a guard that stops before a cap is passed, however many are in flight.

Before a call is sent, the most that it can cost is set aside: a token is at least one byte of the prompt,
and the answer has at most `max_tokens`. When its usage is known, the difference is given back. So the sum of
what is spent and what is set aside never passes a cap. An attempt that may have been charged although no
answer arrived (a time-out, a broken connection) stays counted at its upper bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from judge_calibration.errors import JudgeCalibrationError, OptionsError, Problem
from judge_calibration.options.asking import BudgetOptions, PriceOptions

_TOKENS_A_MESSAGE: Final = 16
"""Room for the marks that a chat template puts around a message."""
_TOKENS_A_PROMPT: Final = 64
_TOKENS_WITHOUT_CAP: Final = 32_768
"""An answer for which no max_tokens was set."""


class BudgetReachedError(JudgeCalibrationError):
    """The next call could pass a cap. Everything received so far is kept."""


class Cost(NamedTuple):
    """Tokens, and money in the currency of the prices (0 where the model has no price)."""

    tokens: int = 0
    money: float = 0.0

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost(self.tokens + other.tokens, self.money + other.money)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.tokens - other.tokens, self.money - other.money)


def price_of(
    prompt_tokens: int, completion_tokens: int, cached_tokens: int, price: PriceOptions | None
) -> float:
    """Return the price of a call in the currency of the prices.

    Parameters
    ----------
    prompt_tokens, completion_tokens : int
        As the server counted them; cached tokens are part of the prompt's.
    cached_tokens : int
        Prompt tokens that the server took from its cache.
    price : PriceOptions or None
        None: the price is not known, and counts as 0 here (see :func:`check_prices`).

    Examples
    --------
    >>> price_of(1000, 10, 0, PriceOptions(input_per_million=2.0, output_per_million=8.0))
    0.00208
    """
    if price is None:
        return 0.0
    cached_price = price.cached_input_per_million
    if cached_price is None:
        cached_price, cached_tokens = 0.0, 0
    cached_tokens = min(cached_tokens, prompt_tokens)  # some servers count them apart
    paid = prompt_tokens - cached_tokens
    return (
        paid * price.input_per_million
        + cached_tokens * cached_price
        + completion_tokens * price.output_per_million
    ) / 1_000_000


def most_prompt_tokens(request: Mapping[str, Any]) -> int:
    """Return an upper bound of a prompt's tokens: its bytes, and room for the chat template.

    Examples
    --------
    >>> most_prompt_tokens({"messages": [{"role": "user", "content": "A or B?"}]})
    87
    """
    size = _TOKENS_A_PROMPT
    for message in request["messages"]:
        content = message["content"]
        size += len(content if content.isascii() else content.encode("utf-8", "surrogatepass"))
        size += _TOKENS_A_MESSAGE
    constraint = request.get("constraint") or {}
    # Some providers show a schema to the model.
    return size + len(str(constraint.get("schema") or ""))


def most_cost(request: Mapping[str, Any], price: PriceOptions | None) -> Cost:
    """Return the most that one attempt at a call can cost."""
    prompt = most_prompt_tokens(request)
    answer = request.get("max_tokens") or _TOKENS_WITHOUT_CAP
    return Cost(prompt + answer, _dearest(prompt, answer, price))


def _dearest(prompt: int, answer: int, price: PriceOptions | None) -> float:
    if price is None:
        return 0.0
    dearest = max(price.input_per_million, price.cached_input_per_million or 0.0)
    return (prompt * dearest + answer * price.output_per_million) / 1_000_000


def usage_cost(
    prompt_tokens: int | None,
    completion_tokens: int | None,
    cached_tokens: int | None,
    price: PriceOptions | None,
    bound: Cost,
) -> Cost:
    """Return what an answer cost; its upper bound where the server did not count."""
    if prompt_tokens is None or completion_tokens is None:
        return bound
    money = price_of(prompt_tokens, completion_tokens, cached_tokens or 0, price)
    return Cost(prompt_tokens + completion_tokens, money)


def check_prices(
    run: BudgetOptions, judges: Iterable[tuple[str, BudgetOptions, PriceOptions | None]]
) -> None:
    """Refuse a cap on money for a judge that has no price, unless a cap on tokens holds it too.

    Raises
    ------
    OptionsError
        With every such judge.
    """
    problems = [
        Problem(
            f"judge {judge_id}",
            "a cap on money and no price",
            "transport.price (0 for a model that costs nothing), or a cap on tokens",
        )
        for judge_id, own, price in judges
        if price is None
        and (own.money is not None or run.money is not None)
        and own.tokens is None
        and run.tokens is None
    ]
    if problems:
        raise OptionsError(
            "A cap on money cannot be kept for a model without a price.",
            problems,
            "set the price per million tokens in the judge's transport",
        )


@dataclass
class _Account:
    name: str
    caps: BudgetOptions
    used: Cost = field(default_factory=Cost)
    """Spent, and set aside."""

    def room_for(self, cost: Cost) -> bool:
        after = self.used + cost
        return (self.caps.tokens is None or after.tokens <= self.caps.tokens) and (
            # A sum of many small prices may lie a rounding error above the cap that it equals.
            self.caps.money is None or after.money <= self.caps.money * (1 + 1e-12)
        )


class BudgetGuard:
    """The accounts of a run and of its judges.

    Used from one event loop.

    Parameters
    ----------
    run : BudgetOptions
        Caps over all judges.
    judges : mapping of str to BudgetOptions
        Caps of each judge.
    """

    def __init__(self, run: BudgetOptions, judges: Mapping[str, BudgetOptions]) -> None:
        self._run = _Account("the run", run)
        self._judges = {name: _Account(f"judge {name}", caps) for name, caps in judges.items()}
        self._held = 0
        self._settled = asyncio.Condition()
        self.capped = any(
            caps.tokens is not None or caps.money is not None for caps in [run, *judges.values()]
        )

    @property
    def used(self) -> Cost:
        """Spent and set aside over all judges."""
        return self._run.used

    def used_by_judge(self) -> dict[str, Cost]:
        """Spent and set aside, by judge."""
        return {name: account.used for name, account in self._judges.items()}

    def spend(self, judge_id: str, cost: Cost) -> None:
        """Count what is already spent, with no question asked (answers that the store has)."""
        for account in (self._run, self._judges[judge_id]):
            account.used += cost

    async def hold(self, judge_id: str, bound: Cost) -> None:
        """Set the upper bound of a call aside; wait while only calls in flight stand in the way.

        Without a cap nothing is set aside.

        Raises
        ------
        BudgetReachedError
            If a cap would be passed even when all calls in flight are settled.
        """
        accounts = (self._run, self._judges[judge_id])
        if not self.capped:
            return
        async with self._settled:
            while not all(account.room_for(bound) for account in accounts):
                if self._held == 0:
                    full = next(account for account in accounts if not account.room_for(bound))
                    raise _reached(full, bound)
                await self._settled.wait()
            self._held += 1
            self.spend(judge_id, bound)

    async def settle(self, judge_id: str, bound: Cost, actual: Cost) -> None:
        """Replace what was set aside by what it cost."""
        self.spend(judge_id, actual - bound if self.capped else actual)
        if self.capped:
            async with self._settled:
                self._held -= 1
                self._settled.notify_all()


def _reached(account: _Account, bound: Cost) -> BudgetReachedError:
    caps, used = account.caps, account.used
    parts = []
    if caps.tokens is not None:
        parts.append(f"{used.tokens:,} of {caps.tokens:,} tokens are used")
    if caps.money is not None:
        parts.append(f"{used.money:.6g} of {caps.money:.6g} are spent")
    return BudgetReachedError(
        f"The budget of {account.name} is reached: {', '.join(parts)}, and the next call may take up to "
        f"{bound.tokens:,} tokens ({bound.money:.6g}). Every answer received so far is kept.",
        "raise the cap (judging.asking.budget, or the judge's transport.budget) and run again: only what is "
        "missing is asked",
    )
