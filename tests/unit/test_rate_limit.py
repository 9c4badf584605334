"""Token buckets: a burst at once, a rate on average, each key by itself."""

from __future__ import annotations

import pytest

from lagscale.rate_limit import TokenBuckets


class Clock:
    """Stands still until the test moves it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Tenants:
    """Buckets that hold what their rates give in so many seconds, as the scaler and the API have them."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._buckets = TokenBuckets(clock)

    def take(self, key: str, rate: float, tokens: float = 1.0) -> float:
        return self._buckets.take(key, rate, rate * self._seconds, tokens)


def taken(buckets: Tenants, key: str, rate: float, attempts: int) -> int:
    return sum(buckets.take(key, rate) == 0.0 for _ in range(attempts))


def test_a_burst_passes_at_once_and_no_more() -> None:
    assert taken(Tenants(30.0, Clock()), "a", 2.0, 100) == 60


def test_on_average_no_more_than_the_rate_passes() -> None:
    clock = Clock()
    buckets = Tenants(5.0, clock)
    taken(buckets, "a", 2.0, 10)
    passed = 0
    for _ in range(100):
        clock.now += 0.25
        passed += taken(buckets, "a", 2.0, 3)
    assert passed == 50


def test_a_refused_call_takes_nothing_and_hears_when_there_is_room() -> None:
    clock = Clock()
    buckets = Tenants(1.0, clock)
    assert taken(buckets, "a", 2.0, 9) == 2
    wait = buckets.take("a", 2.0)
    assert wait == pytest.approx(0.5)
    clock.now += wait
    assert buckets.take("a", 2.0) == 0.0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock()
    buckets = Tenants(2.0, clock)
    taken(buckets, "a", 3.0, 1)
    clock.now += 1e6
    assert taken(buckets, "a", 3.0, 50) == 6


def test_keys_do_not_share() -> None:
    buckets = Tenants(1.0, Clock())
    taken(buckets, "a", 1.0, 5)
    assert buckets.take("b", 1.0) == 0.0


def test_a_changed_rate_counts_at_once() -> None:
    clock = Clock()
    buckets = Tenants(10.0, clock)
    assert taken(buckets, "a", 100.0, 1) == 1
    assert taken(buckets, "a", 1.0, 50) == 10, "a lowered one empties what was saved"
    clock.now += 1.0
    assert taken(buckets, "a", 20.0, 50) == 20


def test_what_takes_more_than_a_burst_passes_when_the_bucket_is_full() -> None:
    assert Tenants(1.0, Clock()).take("a", 2.0, tokens=9.0) == 0.0
