"""Coordinators: which groups share one, how many requests are under way, and who is first when time is short."""

from __future__ import annotations

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from services.scraper.deadlines import MAX_PENDING_REQUESTS, MIN_LIBRARY_TIMEOUT_SECONDS
from services.scraper.kafka import coordinators
from services.scraper.kafka.coordinators import CoordinatorRequests, find_check_key, find_offsets_partition

NOW, LATER = 0.0, float("inf")


class Library:
    """What was sent, and answers when the test says so."""

    def __init__(self) -> None:
        self.sent: dict[str, Future[str]] = {}
        self.timeouts: list[float] = []
        self.answers = True

    def send(self, group: str, timeout: float) -> Future[str]:
        self.timeouts.append(timeout)
        self.sent[group] = Future()
        if self.answers:
            self.sent[group].set_result(group.upper())
        return self.sent[group]


@pytest.fixture
def library() -> Library:
    return Library()


def read(future: Future[Any] | None) -> str:
    if future is None:
        return "not asked"
    return str(future.result()) if future.done() else "late"


def many(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def test_all_are_requested_and_returned_in_their_order(library: Library) -> None:
    groups = many(3 * MAX_PENDING_REQUESTS)
    found = CoordinatorRequests().ask(groups, library.send, LATER)(read)
    assert list(found.items()) == [(group, group.upper()) for group in groups]


def test_no_more_are_under_way_than_are_answered_soon(library: Library) -> None:
    library.answers = False
    requests = CoordinatorRequests()
    collect = requests.ask(many(2 * MAX_PENDING_REQUESTS), library.send, LATER)
    assert len(library.sent) == MAX_PENDING_REQUESTS
    under_way: list[int] = []

    def answered_now(future: Future[Any] | None) -> str:
        under_way.append(sum(not sent.done() for sent in library.sent.values()))
        assert future is not None
        future.set_result("reply")
        return "reply"

    assert set(collect(answered_now).values()) == {"reply"}
    assert max(under_way) == MAX_PENDING_REQUESTS
    assert len(library.sent) == 2 * MAX_PENDING_REQUESTS


def test_nothing_is_sent_when_the_time_is_over(library: Library) -> None:
    assert CoordinatorRequests().ask(["a", "b"], library.send, NOW)(read) == {"a": "not asked", "b": "not asked"}
    assert library.sent == {}


def test_the_library_has_far_more_time_than_its_caller(library: Library) -> None:
    for seconds in (0.5, MIN_LIBRARY_TIMEOUT_SECONDS, 3 * MIN_LIBRARY_TIMEOUT_SECONDS):
        CoordinatorRequests().ask(["a"], library.send, time.monotonic() + seconds)
        assert library.timeouts[-1] >= max(MIN_LIBRARY_TIMEOUT_SECONDS, 1.9 * seconds)


def test_what_is_under_way_is_not_asked_for_again_until_it_has_ended(library: Library) -> None:
    requests = CoordinatorRequests()
    library.answers = False
    assert requests.ask(["a", "b"], library.send, LATER)(read) == {"a": "late", "b": "late"}
    assert not requests.is_quiet
    first = dict(library.sent)
    first["b"].set_result("too late to be believed")
    library.answers = True
    assert requests.ask(["a", "b"], library.send, LATER)(read) == {"a": "not asked", "b": "B"}
    first["a"].set_exception(RuntimeError("given up"))
    assert requests.is_quiet
    assert requests.ask(["a", "b"], library.send, LATER)(read) == {"a": "A", "b": "B"}


def test_two_who_ask_at_once_have_their_own_answers(library: Library) -> None:
    requests = CoordinatorRequests()
    library.answers = False
    first = requests.ask(["a", "b"], library.send, LATER)
    library.sent["a"].set_result("A")
    library.sent["b"].set_result("B")
    library.answers = True
    second = requests.ask(["b", "c"], library.send, LATER)
    assert second(read) == {"b": "B", "c": "C"}
    assert first(read) == {"a": "A", "b": "B"}


def test_who_was_not_asked_comes_first_the_next_time(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(coordinators, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    requests = CoordinatorRequests()
    groups = many(MAX_PENDING_REQUESTS + 2)
    collect = requests.ask(groups, library.send, 1.0)
    clock[0] = 2.0
    assert [group for group, reply in collect(read).items() if reply == "not asked"] == groups[-2:]
    library.sent.clear()
    requests.ask(groups, library.send, 3.0)
    assert list(library.sent)[:2] == groups[-2:]


@pytest.mark.parametrize(
    ("group", "hashed"),
    # What java.lang.String.hashCode gives; the last one is Java's least number, of which Kafka takes 0.
    [("", 0), ("a", 97), ("hello", 99_162_322), ("Straße", -1_808_122_922), ("polygenelubricants", 0)],
)
def test_the_slot_is_javas_hash_modulo_50(group: str, hashed: int) -> None:
    assert find_offsets_partition(group, 50) == abs(hashed) % 50


def test_a_letter_beyond_16_bits_counts_as_its_two_halves() -> None:
    assert find_offsets_partition("\U0001f600", 50) == (31 * 0xD83D + 0xDE00) % 50


def test_groups_of_one_slot_are_checked_together() -> None:
    groups = [f"g-{number}" for number in range(500)]
    for partition_count in (3, 100):
        keys = {find_check_key(group, partition_count) for group in groups}
        assert keys == set(range(partition_count))


def test_where_the_slots_are_not_known_each_group_is_checked() -> None:
    assert find_check_key("g-1", None) == "g-1"
