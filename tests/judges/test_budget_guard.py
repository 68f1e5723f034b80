"""The budget: a cap is never passed, however many calls are in flight, and the run says how to go on."""

import asyncio

import pytest
from fault_server import Behaviour, running
from hypothesis import given
from hypothesis import strategies as st
from planned_calls import Asked, OneJudge

from judge_calibration.errors import OptionsError
from judge_calibration.judges.asking import ask_calls
from judge_calibration.judges.budget import (
    BudgetGuard,
    BudgetReachedError,
    Cost,
    check_prices,
    most_cost,
    most_prompt_tokens,
    price_of,
)
from judge_calibration.judges.store import StoreReader
from judge_calibration.options.asking import AskingOptions, BudgetOptions, PriceOptions, TransportOptions

PRICE = PriceOptions(input_per_million=2.0, output_per_million=8.0, cached_input_per_million=0.5)


class TestPrices:
    def test_cached_tokens_have_their_own_price(self):
        # 600 at 2, 400 at 0.5, 10 at 8, over a million: 1200 + 200 + 80 = 1480 millionths.
        assert price_of(1000, 10, 400, PRICE) == pytest.approx(0.00148, abs=1e-15)

    def test_without_a_price_for_cached_tokens_they_cost_what_others_do(self):
        price = PriceOptions(input_per_million=2.0, output_per_million=8.0)
        assert price_of(1000, 10, 400, price) == pytest.approx(0.00208, abs=1e-15)

    @given(st.text(max_size=200))
    def test_a_prompt_has_never_more_tokens_than_its_bound(self, content):
        request = {"messages": [{"role": "user", "content": content}]}
        assert most_prompt_tokens(request) >= len(content.encode("utf-8", "surrogatepass"))

    def test_a_cap_on_money_needs_a_price_or_a_cap_on_tokens(self):
        money = BudgetOptions(money=1.0)
        with pytest.raises(OptionsError, match="judge b"):
            check_prices(money, [("a", BudgetOptions(), PRICE), ("b", BudgetOptions(), None)])
        check_prices(money, [("b", BudgetOptions(tokens=5), None)])
        check_prices(BudgetOptions(), [("b", BudgetOptions(), None)])


class TestGuard:
    @given(
        bounds=st.lists(st.integers(1, 50), min_size=1, max_size=30),
        cap=st.integers(0, 300),
        share=st.floats(0, 1),
    )
    def test_what_is_held_and_spent_never_passes_the_cap(self, bounds, cap, share):
        async def run():
            guard = BudgetGuard(BudgetOptions(tokens=cap), {"j": BudgetOptions()})
            most = 0

            async def one(bound):
                nonlocal most
                await guard.hold("j", Cost(bound))
                most = max(most, guard.used.tokens)
                await asyncio.sleep(0)
                await guard.settle("j", Cost(bound), Cost(int(bound * share)))

            results = await asyncio.gather(*map(one, bounds), return_exceptions=True)
            assert most <= cap
            assert all(isinstance(r, BudgetReachedError) for r in results if r is not None)
            if sum(bounds) <= cap:
                assert results == [None] * len(bounds)

        asyncio.run(run())

    def test_a_call_waits_for_those_in_flight_rather_than_give_up(self):
        async def run():
            guard = BudgetGuard(BudgetOptions(tokens=100), {"j": BudgetOptions()})
            await guard.hold("j", Cost(80))
            second = asyncio.create_task(guard.hold("j", Cost(80)))
            await asyncio.sleep(0)
            assert not second.done()
            await guard.settle("j", Cost(80), Cost(20))
            await second
            assert guard.used.tokens == 100

        asyncio.run(run())

    def test_a_judges_own_cap_does_not_stop_another_judge(self):
        async def run():
            guard = BudgetGuard(BudgetOptions(), {"a": BudgetOptions(tokens=10), "b": BudgetOptions()})
            with pytest.raises(BudgetReachedError, match="budget of judge a"):
                await guard.hold("a", Cost(11))
            await guard.hold("b", Cost(1000))

        asyncio.run(run())


def capped(server, tokens=None, money=None, **transport):
    options = TransportOptions(
        transport="openai_http", api_base=server.api_base, concurrency=64, price=PRICE, **transport
    )
    return Asked(
        (OneJudge("judge", options),), AskingOptions(budget=BudgetOptions(tokens=tokens, money=money))
    )


def replies_of(prompt, answer):
    usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    return lambda request, seen: Behaviour(text="A", latency=0.002, reply={"usage": usage})


class TestRuns:
    def test_at_concurrency_64_the_cap_on_tokens_holds_and_is_used(self, make_plan, tmp_path):
        calls = make_plan([f"call {n:03d}" for n in range(400)])
        bound = most_cost({"messages": [{"role": "user", "content": "call 000"}], "max_tokens": 8}, PRICE)
        cap = 5000
        with running(replies_of(40, 2)) as server:
            with pytest.raises(BudgetReachedError, match="budget of the run is reached"):
                ask_calls(calls, capped(server, tokens=cap), tmp_path)
            spent = 42 * server.total
            assert server.most_in_flight > 8
        assert spent <= cap
        # It stops only when one more call at its upper bound no longer fits.
        assert spent > cap - bound.tokens
        assert len(StoreReader(tmp_path).answers(calls["call_id"])) == server.total

    def test_at_concurrency_64_the_cap_on_money_holds(self, make_plan, tmp_path):
        calls = make_plan([f"call {n:03d}" for n in range(400)])
        with running(replies_of(40, 2)) as server:
            with pytest.raises(BudgetReachedError):
                ask_calls(calls, capped(server, money=0.01), tmp_path)
            # 40 at 2 and 2 at 8 are 96 millionths a call: 104 calls fit.
            assert 100 <= server.total <= 104

    def test_a_plan_that_fits_exactly_is_asked_whole(self, make_plan, tmp_path):
        calls = make_plan([f"call {n}" for n in range(10)])
        bound = most_cost({"messages": [{"role": "user", "content": "call 0"}], "max_tokens": 8}, PRICE)
        with running(replies_of(bound.tokens - 8, 8)) as server:
            answers, _ = ask_calls(calls, capped(server, tokens=10 * bound.tokens), tmp_path)
            assert answers["failure"].isna().all()
            assert server.total == 10

    def test_one_token_less_and_the_last_call_is_not_sent(self, make_plan, tmp_path):
        calls = make_plan([f"call {n}" for n in range(10)])
        bound = most_cost({"messages": [{"role": "user", "content": "call 0"}], "max_tokens": 8}, PRICE)
        with running(replies_of(bound.tokens - 8, 8)) as server:
            with pytest.raises(BudgetReachedError):
                ask_calls(calls, capped(server, tokens=10 * bound.tokens - 1), tmp_path)
            assert server.total == 9

    def test_what_the_store_has_counts_and_a_higher_cap_goes_on(self, make_plan, tmp_path):
        calls = make_plan([f"call {n}" for n in range(30)])
        with running(replies_of(40, 2)) as server:
            for _ in range(2):
                with pytest.raises(BudgetReachedError, match="raise the cap"):
                    ask_calls(calls, capped(server, tokens=600), tmp_path)
                before = server.total
            assert 42 * before <= 600
            answers, _ = ask_calls(calls, capped(server, tokens=6000), tmp_path)
            assert answers["failure"].isna().all()
            assert server.total == 30

    def test_an_attempt_that_may_have_been_charged_counts_in_full(self, make_plan, tmp_path):
        with running(lambda request, seen: Behaviour("cut")) as server:
            options = capped(server, tokens=250, retries={"first_wait_s": 0.001, "attempts": 50})
            with pytest.raises(BudgetReachedError):
                ask_calls(make_plan(["x"]), options, tmp_path)
            assert server.total == 2

    def test_money_without_a_price_is_refused_before_anything_is_sent(self, make_plan, tmp_path):
        with running() as server:
            options = Asked(
                (OneJudge("judge", TransportOptions(transport="openai_http", api_base=server.api_base)),),
                AskingOptions(budget=BudgetOptions(money=1.0)),
            )
            with pytest.raises(OptionsError, match="cap on money cannot be kept"):
                ask_calls(make_plan(["x"]), options, tmp_path)
            assert server.total == 0
