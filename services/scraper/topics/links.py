"""Links of a monitor after a topic discovery: topics that are added, absent or removed, and too many topics.

Functions without clock and I/O; `discovery.py` queries the clusters and stores the result.
"""

from __future__ import annotations

from collections.abc import Iterable

from lagscale.domain.lag.rounds import FIRST_SEEN_INTERVALS, Note
from lagscale.domain.state_codes import StateCode
from lagscale.domain.topics import MAX_TOPICS_SETTING
from lagscale.store.scraping.topic_links import LinkChange, ScopeEntry, ScopeState, TopicLink
from services.scraper.polling.round import PollProblem


def compute_links(entry: ScopeEntry, named: Iterable[str], at_ms: int, limit: int) -> tuple[LinkChange, ScopeState]:
    """The changes of a monitor's links after a complete answer.

    Args:
        named: the topics of the cluster, or for a monitor without a pattern those on which its group has commits.
        at_ms: time of the query in milliseconds, by the database's clock.
        limit: maximum number of topics of one monitor.
    """
    matched = entry.scope.filter_names(named)
    # A link that no longer matches the monitor is removed at once; one whose topic is absent only after a while.
    unmatched = tuple(link.target_id for link in entry.links if not link.fits or not entry.scope.matches(link.topic))
    if len(matched) > limit:
        # The existing links stay, so that their history goes on; a topic named now counts as known later.
        problem = PollProblem(
            StateCode.TOO_MANY_TOPICS, f"{len(matched)} topics, at most {limit} ({MAX_TOPICS_SETTING})"
        )
        return LinkChange(remove=unmatched), _build_state(entry, problem, None, len(matched))
    remaining = [link for link in entry.links if link.target_id not in unmatched]
    removed = tuple(
        link.target_id for link in remaining if link.topic not in matched and _is_removable(entry, link, at_ms)
    )
    absent: dict[int, int | None] = {link.target_id: at_ms for link in remaining if _is_newly_absent(link, matched)}
    absent |= {link.target_id: None for link in remaining if link.topic in matched and link.absent_ms is not None}
    added = tuple(sorted(matched - {link.topic for link in remaining}))
    change = LinkChange(
        add=added,
        unnamed_ms=_find_previous_ms(entry, at_ms) if added else None,
        note=Note.NO_COMMITS if entry.scope.pattern is None else Note.NO_TOPIC,
        remove=unmatched + removed,
        absent=absent or None,
    )
    # Topics that are absent are still measured until they are removed.
    total = len(remaining) - len(removed) + len(added)
    return change, _build_state(entry, PollProblem(StateCode.OK if total else StateCode.NO_MATCH), at_ms, len(matched))


def keep_links(entry: ScopeEntry, problem: PollProblem) -> ScopeState:
    """The state of a monitor whose cluster did not answer: its links stay as they are.

    A monitor with too many topics keeps that state: nothing shows that it matches fewer now.
    """
    if entry.code == StateCode.TOO_MANY_TOPICS:
        problem = PollProblem(StateCode.TOO_MANY_TOPICS)
    return _build_state(entry, problem, entry.resolved_ms, len(entry.links))


def _build_state(entry: ScopeEntry, problem: PollProblem, resolved_ms: int | None, matched: int) -> ScopeState:
    return ScopeState(entry.monitor_id, entry.version, resolved_ms, matched, problem.code.value, problem.message)


def _is_newly_absent(link: TopicLink, matched: frozenset[str]) -> bool:
    return link.topic not in matched and link.absent_ms is None


def _is_removable(entry: ScopeEntry, link: TopicLink, at_ms: int) -> bool:
    return link.absent_ms is not None and at_ms - link.absent_ms >= entry.stale_after_ms


def _find_previous_ms(entry: ScopeEntry, at_ms: int) -> int | None:
    """Time of the previous answer, without the new topics; None if it is too long ago to prove that they are new."""
    previous_ms = entry.resolved_ms
    if previous_ms is None or previous_ms >= at_ms or at_ms - previous_ms > FIRST_SEEN_INTERVALS * entry.sampling_ms:
        return None
    return previous_ms
