"""Driving a provider: requests in flight, requests and tokens a minute, and backing off together."""

import asyncio

import pytest

from judge_calibration.errors import OptionsError
from judge_calibration.judges.engines.setup import check_limits, provider_of
from judge_calibration.judges.limits import ProviderGate, _Bucket
from judge_calibration.options.asking import TransportOptions


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class TestBucket:
    def test_sixty_a_minute_is_one_a_second(self):
        bucket = _Bucket(60)
        assert [bucket.wait_for(1, 10.0) for _ in range(4)] == [0.0, 1.0, 2.0, 3.0]

    def test_what_is_left_over_is_kept_up_to_a_second(self):
        bucket = _Bucket(120)
        assert bucket.wait_for(1, 10.0) == 0.0
        assert [bucket.wait_for(1, 1000.0) for _ in range(3)] == [0.0, 0.0, 0.5]

    def test_a_request_larger_than_a_second_holds_up_those_behind_it(self):
        bucket = _Bucket(600)  # ten a second
        assert bucket.wait_for(100, 10.0) == pytest.approx(9.0)
        assert bucket.wait_for(10, 10.0) == pytest.approx(10.0)

    def test_unused_tokens_are_given_back(self):
        bucket = _Bucket(600)
        bucket.wait_for(100, 10.0)
        bucket.give_back(100)
        assert bucket.wait_for(1, 10.0) == 0.0


class TestGate:
    def test_no_more_than_allowed_are_in_flight_and_nobody_is_forgotten(self):
        async def run():
            gate = ProviderGate(3)
            most = 0

            async def one():
                nonlocal most
                await gate.enter(1)
                most = max(most, gate.in_flight)
                await asyncio.sleep(0)
                gate.leave(1, 1)

            await asyncio.gather(*(one() for _ in range(50)))
            assert (most, gate.in_flight) == (3, 0)

        asyncio.run(run())

    def test_one_throttled_burst_halves_once_and_answers_grow_it_again(self):
        clock = Clock()
        gate = ProviderGate(64, clock=clock)
        for _ in range(30):
            gate.throttled(1.0)
        assert gate.allowed == 32
        clock.now += 10
        gate.throttled(None)
        assert gate.allowed == 16
        for _ in range(5000):
            gate.answered()
        assert gate.allowed == 64

    def test_it_never_closes_for_good(self):
        clock = Clock()
        gate = ProviderGate(4, clock=clock)
        for _ in range(50):
            clock.now += 100
            gate.throttled(None)
        assert gate.allowed == 1.0

    def test_a_cancelled_waiter_leaves_its_place_to_the_next(self):
        async def run():
            gate = ProviderGate(1)
            await gate.enter(1)
            first, second = (asyncio.create_task(gate.enter(1)) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            gate.leave(1, 1)
            await asyncio.wait_for(second, 1)
            assert gate.in_flight == 1

        asyncio.run(run())

    def test_a_waiter_that_is_cancelled_just_as_its_turn_comes_gives_it_back(self):
        async def run():
            gate = ProviderGate(1)
            await gate.enter(1)
            first, second = (asyncio.create_task(gate.enter(1)) for _ in range(2))
            await asyncio.sleep(0)
            gate.leave(1, 1)  # the turn is the first one's now, which has not run yet
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await asyncio.wait_for(second, 1)
            assert gate.in_flight == 1

        asyncio.run(run())


class TestProviders:
    def test_judges_of_one_address_share_a_provider(self):
        options = TransportOptions(api_base="http://host:1/v1")
        assert provider_of(options, "hosted_vllm/a") == provider_of(options, "openai/b") == "host:1"

    def test_a_label_comes_before_everything(self):
        assert provider_of(TransportOptions(provider="mine", api_base="http://h/v1"), "x/y") == "mine"

    def test_judges_that_disagree_about_shared_limits_are_refused(self):
        limits = [("a", TransportOptions(concurrency=1)), ("b", TransportOptions(concurrency=2))]
        with pytest.raises(OptionsError, match=r"provider openai \(judges a, b\)"):
            check_limits({"openai": limits})
