"""Which topics a scope admits, and which patterns are refused before they can do harm."""

from __future__ import annotations

import time

import pytest

from lagscale.domain.topics import MOST_EXCLUDED, TopicScope, in_order

NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}


def faults(scope: TopicScope) -> dict[str, str]:
    return {fault.field: fault.text for fault in scope.faults(NAMES)}


def test_a_pattern_means_whole_names() -> None:
    scope = TopicScope(pattern="orders|orders\\..*")
    assert scope.among({"orders", "orders.eu", "my.orders", "orders-eu", "xorders", "orders2"}) == {
        "orders",
        "orders.eu",
    }


@pytest.mark.parametrize("scope", [TopicScope(pattern=".*"), TopicScope()])
def test_internal_topics_are_never_meant(scope: TopicScope) -> None:
    assert scope.among({"a", "__consumer_offsets", "__x", "_schemas"}) == {"a", "_schemas"}


def test_a_plain_name_is_left_out_by_itself_and_a_pattern_by_whole_names() -> None:
    scope = TopicScope(pattern=".*", exclude=("a.b", "retry-.*", "[xy]"))
    assert scope.among({"a.b", "a-b", "a.b.c", "retry-1", "my-retry-1", "x", "xy"}) == {
        "a-b",
        "a.b.c",
        "my-retry-1",
        "xy",
    }


def test_without_list_and_pattern_everything_is_meant_that_the_group_committed_on() -> None:
    scope = TopicScope(exclude=("b",))
    assert not scope.is_listed
    assert scope.among({"a", "b"}) == {"a"}


@pytest.mark.parametrize("pattern", ["(a+)+b", "(x+x+)+y", "(.*)*c", "(?:a?){100}a{100}", "(a|aa)+$", ".*.*.*.*=.*"])
def test_patterns_that_hang_others_are_matched_at_once(pattern: str) -> None:
    scope = TopicScope(pattern=pattern)
    assert faults(scope) == {}
    began = time.perf_counter()
    scope.among("a" * 240 + str(number) for number in range(100))
    assert time.perf_counter() - began < 2.0


@pytest.mark.parametrize(
    "pattern", ["", "(", "a{1001}", "(?=a)", "(a)\\1", "a" * 301, "ö", "a\n", "(?:a?b?c?){300}x", "\\pL{250}"]
)
def test_what_cannot_be_matched_in_bounded_time_is_refused_by_the_fields_name(pattern: str) -> None:
    assert set(faults(TopicScope(pattern=pattern))) == {"topicPattern"}


@pytest.mark.parametrize("pattern", ["(", "a{1001}", "(?=a)", "(a)\\1"])
def test_what_cannot_be_read_and_stands_in_the_store_all_the_same_means_nothing(pattern: str) -> None:
    assert TopicScope(pattern=pattern).among({"a", "aa"}) == frozenset()
    assert TopicScope(exclude=(pattern,)).among({"a", "aa"}) == {"a", "aa"}


def test_a_list_stands_alone() -> None:
    assert set(faults(TopicScope(("a",), "b", ("c",)))) == {"topicPattern", "excludeTopics"}
    assert faults(TopicScope(("a",))) == {}


def test_the_list_of_what_is_left_out_is_bounded() -> None:
    assert "at most" in faults(TopicScope(exclude=tuple(f"t{n}" for n in range(MOST_EXCLUDED + 1))))["excludeTopics"]


def test_entries_have_one_order_and_no_doubles() -> None:
    assert in_order(["b ", "", " a", "b"]) == ("a", "b")
