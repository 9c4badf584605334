"""Token buckets by name, and whom the guard refuses: by a clock that the test moves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from lagscale.errors import RateExceeded
from lagscale.rate_limit import RateLimiter
from services.api.auth.rate_limits import AuthRateLimiter

KEY, OTHER = b"k" * 32, b"o" * 32


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_a_burst_may_come_at_once_and_then_the_rate(clock: Clock) -> None:
    rates = RateLimiter(2.0, 3, clock=clock)
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert rates.take("b") == 0
    clock.now += 0.5
    assert [rates.take("a"), rates.take("a")] == [0, 0.5]
    clock.now += 3600
    assert [rates.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_waiting_takes_nothing(clock: Clock) -> None:
    rates = RateLimiter(1.0, 1, clock=clock)
    assert [rates.wait("a"), rates.wait("a"), rates.take("a"), rates.wait("a")] == [0, 0, 0, 1]


@given(
    st.floats(0.1, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_no_stretch_of_time_has_more_than_the_rate_and_a_burst(rate: float, burst: int, pauses: list[float]) -> None:
    clock = Clock()
    rates = RateLimiter(rate, burst, clock=clock)
    granted: list[float] = []
    for pause in pauses:
        clock.now += pause
        wait = rates.take("a")
        if wait == 0:
            granted.append(clock.now)
        else:
            # Exactly then, and no earlier, there is one.
            assert RateLimiter.wait(rates, "a") == wait
    for first in range(len(granted)):
        for last in range(first, len(granted)):
            most = burst + rate * (granted[last] - granted[first])
            assert last - first + 1 <= math.floor(most + 1e-3)


def test_a_key_that_asks_too_often_is_told_when_to_go_on(clock: Clock) -> None:
    guard = AuthRateLimiter(RateLimiter(0.1, 2, clock=clock))
    before = count("lagscale_api_rate_limited_total", of="key")
    guard.count("a")
    guard.count("a")
    with pytest.raises(
        RateExceeded, match=r"0\.1 requests/s, bursts of 2\); retry after 10 s\. .*LAGSCALE_API_RATE_LIMIT"
    ) as refused:
        guard.count("a")
    assert refused.value.facts["retry_after_seconds"] == 10
    assert count("lagscale_api_rate_limited_total", of="key") == before + 1
    guard.count("b")
    clock.now += 10
    guard.count("a")


def test_an_address_that_fails_too_often_waits_before_anything_is_looked_up(clock: Clock) -> None:
    guard = AuthRateLimiter(None, RateLimiter(1 / 60, 3, clock=clock))
    for _ in range(3):
        guard.check_address(KEY, "192.0.2.1")
        guard.record_failure(KEY, "192.0.2.1", "unknown_key")
    with pytest.raises(RateExceeded, match=r"attempts from this address; retry after 60 s\. Check the key"):
        guard.check_address(KEY, "192.0.2.1")
    guard.check_address(KEY, "192.0.2.2")
    clock.now += 60
    guard.check_address(KEY, "192.0.2.1")


def test_who_proved_itself_goes_on_beside_a_stranger(clock: Clock) -> None:
    guard = AuthRateLimiter(None, RateLimiter(1 / 60, 1, clock=clock))
    guard.record_success(KEY)
    guard.record_failure(OTHER, "192.0.2.1", "unknown_key")
    guard.check_address(KEY, "192.0.2.1")
    # A key that is revoked since has proved nothing.
    guard.record_failure(KEY, "192.0.2.1", "revoked_key")
    with pytest.raises(RateExceeded):
        guard.check_address(KEY, "192.0.2.1")


def test_nothing_sent_counts_for_no_address(clock: Clock) -> None:
    guard = AuthRateLimiter(None, RateLimiter(1 / 60, 1, clock=clock))
    before = count("lagscale_api_failed_attempts_total", reason="missing")
    for _ in range(5):
        guard.record_failure(None, "192.0.2.1", "missing")
    guard.check_address(KEY, "192.0.2.1")
    assert count("lagscale_api_failed_attempts_total", reason="missing") == before + 5


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        (None, None, True),
        (None, "192.0.2.1", False),
    ],
)
def test_an_ipv6_network_is_one_address(clock: Clock, first: str | None, second: str | None, *, same: bool) -> None:
    guard = AuthRateLimiter(None, RateLimiter(1 / 60, 1, clock=clock))
    guard.record_failure(KEY, first, "unknown_key")
    if same:
        with pytest.raises(RateExceeded):
            guard.check_address(KEY, second)
    else:
        guard.check_address(KEY, second)
        assert count("lagscale_api_failed_attempts_total", reason="unknown_key") > 0


def test_without_rates_there_is_no_limit() -> None:
    guard = AuthRateLimiter()
    before = count("lagscale_api_failed_attempts_total", reason="unknown_key")
    for _ in range(1000):
        guard.check_address(KEY, "192.0.2.1")
        guard.count("a")
        guard.record_failure(KEY, "192.0.2.1", "unknown_key")
    assert count("lagscale_api_failed_attempts_total", reason="unknown_key") == before + 1000
