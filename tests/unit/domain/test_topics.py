"""Which topics a scope admits, and which patterns are refused before they can do harm."""

from __future__ import annotations

import time

import pytest

from lagscale.domain.topics import MAX_EXCLUDED, TopicScope, normalize_names

NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}


def field_errors(scope: TopicScope) -> dict[str, str]:
    return {field_error.field: field_error.text for field_error in scope.field_errors(NAMES)}


def test_a_pattern_means_whole_names() -> None:
    scope = TopicScope(pattern="orders|orders\\..*")
    assert scope.filter_names({"orders", "orders.eu", "my.orders", "orders-eu", "xorders", "orders2"}) == {
        "orders",
        "orders.eu",
    }


@pytest.mark.parametrize("scope", [TopicScope(pattern=".*"), TopicScope()])
def test_internal_topics_are_never_meant(scope: TopicScope) -> None:
    assert scope.filter_names({"a", "__consumer_offsets", "__x", "_schemas"}) == {"a", "_schemas"}


def test_a_plain_name_is_left_out_by_itself_and_a_pattern_by_whole_names() -> None:
    scope = TopicScope(pattern=".*", exclude=("a.b", "retry-.*", "[xy]"))
    assert scope.filter_names({"a.b", "a-b", "a.b.c", "retry-1", "my-retry-1", "x", "xy"}) == {
        "a-b",
        "a.b.c",
        "my-retry-1",
        "xy",
    }


def test_without_list_and_pattern_everything_is_meant_that_the_group_committed_on() -> None:
    scope = TopicScope(exclude=("b",))
    assert not scope.is_listed
    assert scope.filter_names({"a", "b"}) == {"a"}


@pytest.mark.parametrize("pattern", ["(a+)+b", "(x+x+)+y", "(.*)*c", "(?:a?){100}a{100}", "(a|aa)+$", ".*.*.*.*=.*"])
def test_patterns_that_hang_others_are_matched_at_once(pattern: str) -> None:
    scope = TopicScope(pattern=pattern)
    assert field_errors(scope) == {}
    began = time.perf_counter()
    scope.filter_names("a" * 240 + str(number) for number in range(100))
    assert time.perf_counter() - began < 2.0


@pytest.mark.parametrize(
    "pattern", ["", "(", "a{1001}", "(?=a)", "(a)\\1", "a" * 301, "ö", "a\n", "(?:a?b?c?){300}x", "\\pL{250}"]
)
def test_what_cannot_be_matched_in_bounded_time_is_refused_by_the_fields_name(pattern: str) -> None:
    assert set(field_errors(TopicScope(pattern=pattern))) == {"topicPattern"}


@pytest.mark.parametrize("pattern", ["(", "a{1001}", "(?=a)", "(a)\\1"])
def test_what_cannot_be_read_and_stands_in_the_store_all_the_same_means_nothing(pattern: str) -> None:
    assert TopicScope(pattern=pattern).filter_names({"a", "aa"}) == frozenset()
    assert TopicScope(exclude=(pattern,)).filter_names({"a", "aa"}) == {"a", "aa"}


def test_a_list_stands_alone() -> None:
    assert set(field_errors(TopicScope(("a",), "b", ("c",)))) == {"topicPattern", "excludeTopics"}
    assert field_errors(TopicScope(("a",))) == {}


def test_the_list_of_what_is_left_out_is_bounded() -> None:
    assert (
        "at most" in field_errors(TopicScope(exclude=tuple(f"t{n}" for n in range(MAX_EXCLUDED + 1))))["excludeTopics"]
    )


def test_entries_have_one_order_and_no_doubles() -> None:
    assert normalize_names(["b ", "", " a", "b"]) == ("a", "b")


@pytest.mark.parametrize(
    "pattern",
    ["(?!kube_logs_foo)^kube_logs.*", "^nginx.(?!svc$|.*sandbox).*", "^((?!exclude_me).)*$", "a(?<=b)", "a(?<!b)"],
)
def test_a_lookahead_points_to_the_excluded_topics(pattern: str) -> None:
    names = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}
    for scope, field in (
        (TopicScope((), pattern), "topicPattern"),
        (TopicScope((), None, (pattern,)), "excludeTopics"),
    ):
        (fault,) = scope.field_errors(names)
        assert fault.field == field
        assert "RE2 has no lookahead or lookbehind" in fault.text
        assert "exclude others with excludeTopics" in fault.text
    (other,) = TopicScope((), "a(").field_errors(names)
    assert "lookahead" not in other.text
