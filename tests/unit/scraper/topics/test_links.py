"""Links of a monitor after a topic discovery: added, absent, removed, too many, first seen or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row, is_first_seen
from lagscale.domain.state_codes import StateCode
from lagscale.domain.topics import TopicScope
from lagscale.store.scraping.topic_links import LinkChange, ScopeEntry, TopicLink
from services.scraper.polling.round import PollProblem
from services.scraper.topics.links import compute_links, keep_links

AT = 1_767_607_200_000
SAMPLING = 15_000
LIMIT = 3
PATTERN = ScopeEntry(
    7, 1, 2, "g", TopicScope(pattern="p\\..*", exclude=("p.not",)), "read_uncommitted", SAMPLING, 60_000, 1,
    resolved_ms=AT - 15_000, code="ok", links=(TopicLink(1, "p.a"),),
)  # fmt: skip


def settle(entry: ScopeEntry, *named: str, at_ms: int = AT) -> tuple[LinkChange, str, int | None]:
    change, state = compute_links(entry, named, at_ms, LIMIT)
    assert (state.monitor_id, state.version) == (entry.monitor_id, entry.version)
    return change, state.code, state.resolved_ms


def test_nothing_new_changes_nothing_and_moves_the_answer_on() -> None:
    change, code, resolved_ms = settle(PATTERN, "p.a", "other", "p.not", "__p.x")
    assert not change
    assert (code, resolved_ms) == ("ok", AT)


def test_a_new_topic_is_linked_and_the_answer_before_did_not_name_it() -> None:
    change, _, _ = settle(PATTERN, "p.a", "p.c", "p.b")
    assert change == LinkChange(add=("p.b", "p.c"), unnamed_ms=AT - 15_000, note=Note.NO_TOPIC)


@pytest.mark.parametrize(
    ("before", "is_proof"),
    [(AT - 37_500, True), (AT - 37_501, False), (AT - 50_000, False), (None, False), (AT, False)],
)
def test_only_a_recent_previous_answer_proves_that_a_topic_is_first_seen(before: int | None, is_proof: bool) -> None:
    change, _, _ = settle(replace(PATTERN, resolved_ms=before), "p.a", "p.b")
    assert change.add == ("p.b",)
    assert change.unnamed_ms == (before if is_proof else None)


def test_a_topic_with_its_first_commits_is_new_to_the_monitor_but_not_first_seen() -> None:
    group = replace(PATTERN, scope=TopicScope())
    change, _, _ = settle(group, "p.a", "elsewhere")
    assert change == LinkChange(add=("elsewhere",), unnamed_ms=AT - 15_000, note=Note.NO_COMMITS)


@pytest.mark.parametrize(("note", "first_seen"), [(Note.NO_TOPIC, True), (Note.NO_COMMITS, False)])
def test_the_previous_row_decides_whether_a_topic_is_first_seen(note: Note, first_seen: bool) -> None:
    row: SampleRow = build_row(None, TargetRound(AT - 15_000, 0, (), notes=note))
    assert is_first_seen(row, AT, SAMPLING, 0) is first_seen
    assert not is_first_seen(row, AT + 25_000, SAMPLING, 0)


def test_an_absent_topic_is_noted_and_removed_after_stale_after_seconds_not_before() -> None:
    change, code, _ = settle(PATTERN, "other")
    assert change == LinkChange(absent={1: AT})
    assert code == "ok"
    absent = replace(PATTERN, links=(TopicLink(1, "p.a", AT - 59_999),))
    assert not settle(absent, "other")[0]
    removed = replace(PATTERN, links=(TopicLink(1, "p.a", AT - 60_000),))
    change, code, _ = settle(removed, "other")
    assert change == LinkChange(remove=(1,))
    assert code == StateCode.NO_MATCH


def test_a_topic_that_is_there_again_is_not_absent_any_more() -> None:
    change, _, _ = settle(replace(PATTERN, links=(TopicLink(1, "p.a", AT - 90_000),)), "p.a")
    assert change == LinkChange(absent={1: None})


def test_links_that_the_monitor_does_not_mean_any_more_go_at_once() -> None:
    links = (TopicLink(1, "p.a"), TopicLink(2, "p.not"), TopicLink(3, "other"), TopicLink(4, "p.a", fits=False))
    change, _, _ = settle(replace(PATTERN, links=links), "p.a", "other", "p.not")
    assert change == LinkChange(remove=(2, 3, 4))


def test_too_many_topics_keep_the_former_links_and_say_so() -> None:
    change, state = compute_links(PATTERN, ["p.a", "p.b", "p.c", "p.d"], AT, LIMIT)
    assert not change
    assert (state.code, state.matched, state.resolved_ms) == (StateCode.TOO_MANY_TOPICS, 4, None)
    assert "4 topics, at most 3" in state.message
    # What was named then is not new later.
    narrowed = replace(PATTERN, code=state.code, resolved_ms=state.resolved_ms)
    change, code, _ = settle(narrowed, "p.a", "p.b")
    assert change == LinkChange(add=("p.b",))
    assert code == "ok"


def test_without_a_match_and_without_commits_there_is_nothing() -> None:
    nothing = replace(PATTERN, links=(), code=None, resolved_ms=None)
    for entry in (nothing, replace(nothing, scope=TopicScope())):
        change, code, _ = settle(entry, *(("other",) if entry.scope.pattern else ()))
        assert not change
        assert code == StateCode.NO_MATCH


def test_without_an_answer_everything_stays_and_a_part_stays_a_part() -> None:
    state = keep_links(PATTERN, PollProblem(StateCode.TIMEOUT))
    assert (state.code, state.resolved_ms) == (StateCode.TIMEOUT, AT - 15_000)
    part = replace(PATTERN, code=StateCode.TOO_MANY_TOPICS.value, resolved_ms=None)
    assert keep_links(part, PollProblem(StateCode.TIMEOUT)).code == StateCode.TOO_MANY_TOPICS
