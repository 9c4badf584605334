"""From the topics that a cluster names to the links of a monitor: what is new, what is gone, and what is too much.

Plain functions without clock and I/O; `resolver` asks the clusters and stores what is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

from lagscale.domain.lag.rounds import FIRST_SEEN_INTERVALS, Note
from lagscale.store.scraping.topic_links import LinkChange, ScopeEntry, ScopeState, TopicLink
from services.scraper.kafka.status import PollCode, PollProblem


def compute_links(entry: ScopeEntry, named: Iterable[str], at_ms: int, limit: int) -> tuple[LinkChange, ScopeState]:
    """What becomes of a monitor's links by a complete answer.

    Args:
        entry: the monitor with its present links.
        named: the topics of the cluster, or for a monitor without a pattern those on which its group has commits.
        at_ms: when the answer was asked for, by the database's clock.
        limit: the greatest number of topics of one monitor.
    """
    matched = entry.scope.filter_names(named)
    # What does not belong to the monitor as it is now goes at once; what is absent only after a while.
    unmatched = tuple(link.target_id for link in entry.links if not link.fits or not entry.scope.matches(link.topic))
    if len(matched) > limit:
        # The former links stay, so that history goes on; what was named and not linked is not new later.
        problem = PollProblem(PollCode.TOO_MANY_TOPICS, f"{len(matched)} topics, at most {limit}")
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
    # Topics that are absent for now are still measured, so there is something.
    total = len(remaining) - len(removed) + len(added)
    return change, _build_state(entry, PollProblem(PollCode.OK if total else PollCode.NO_MATCH), at_ms, len(matched))


def keep_links(entry: ScopeEntry, problem: PollProblem) -> ScopeState:
    """The state of a monitor whose cluster gave no answer: its links stay as they are.

    A monitor that is judged by a part stays so: nothing says that its topics have become fewer.
    """
    if entry.code == PollCode.TOO_MANY_TOPICS:
        problem = PollProblem(PollCode.TOO_MANY_TOPICS)
    return _build_state(entry, problem, entry.resolved_ms, len(entry.links))


def _build_state(entry: ScopeEntry, problem: PollProblem, resolved_ms: int | None, matched: int) -> ScopeState:
    return ScopeState(entry.monitor_id, entry.version, resolved_ms, matched, problem.code.value, problem.message)


def _is_newly_absent(link: TopicLink, matched: frozenset[str]) -> bool:
    return link.topic not in matched and link.absent_ms is None


def _is_removable(entry: ScopeEntry, link: TopicLink, at_ms: int) -> bool:
    return link.absent_ms is not None and at_ms - link.absent_ms >= entry.stale_after_ms


def _find_previous_ms(entry: ScopeEntry, at_ms: int) -> int | None:
    """When the answer before did not name the new topics; None when that is too long ago to prove a birth."""
    previous_ms = entry.resolved_ms
    if previous_ms is None or previous_ms >= at_ms or at_ms - previous_ms > FIRST_SEEN_INTERVALS * entry.sampling_ms:
        return None
    return previous_ms
