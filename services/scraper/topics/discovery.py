"""Topic discovery: finds and links the topics of monitors that do not list them, as topics come and go.

Runs in a thread beside the planner, with clients of its own: a cluster that does not answer delays no tick. The next
plan polls the linked topics.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from lagscale.domain.state_codes import StateCode
from lagscale.errors import LagscaleError, LeaseLost
from lagscale.store.connection import ScraperDatabase
from lagscale.store.scraping import topic_links
from lagscale.store.scraping.leases import Lease
from lagscale.store.scraping.targets import ClusterEntry
from lagscale.store.scraping.topic_links import ScopeEntry, ScopeState
from services.scraper import deadlines
from services.scraper.planning.quotas import interleave
from services.scraper.polling.poll import ClientOpener, GroupClient
from services.scraper.polling.round import PollProblem
from services.scraper.topics.links import compute_links, keep_links

log = structlog.get_logger(__name__)


class TopicClient(GroupClient, Protocol):
    """All requests of topic discovery."""

    def list_topics(self, until: float) -> frozenset[str] | PollProblem:
        """Names of all topics; `until` is in `time.monotonic()` seconds."""


TopicsAnswer = frozenset[str] | PollProblem


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """Minimum interval between two queries of one cluster in seconds, and maximum number of topics of one monitor."""

    seconds: float
    topics: int


@dataclass(frozen=True, slots=True)
class _TopicQuery:
    """A query: all topics of a cluster, or the topics on which a group has commits."""

    cluster_id: int
    group: str | None


class TopicDiscovery(threading.Thread):
    """Discovers topics while this scraper leads, that is while `lease` returns one.

    The connection to the database is its own, `on_pass` is called after each pass with the number of monitors by state,
    and the clock returns seconds.
    """

    def __init__(
        self,
        database: ScraperDatabase,
        opener: ClientOpener[TopicClient],
        limits: DiscoveryLimits,
        lease: Callable[[], Lease | None],
        *,
        on_pass: Callable[[Mapping[str, int]], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="topic-discovery", daemon=True)
        self._database, self._opener, self._limits, self._lease = database, opener, limits, lease
        self._on_pass, self._clock = on_pass, clock
        self._queried_at: dict[_TopicQuery, float] = {}
        self._failed: frozenset[_TopicQuery] = frozenset()
        #: Clusters that answered their last query.
        self._responsive: set[int] = set()
        # The latest complete answers, which are written less often; valid under one lease only.
        self._states: dict[int, ScopeState] = {}
        self._written_at: dict[int, float] = {}
        self._epoch = -1
        self._stop_asked = threading.Event()

    def stop(self) -> None:
        """Stop after the current pass."""
        self._stop_asked.set()

    def run_once(self) -> None:
        """One pass: run the due queries and store the resulting links and states.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        lease = self._lease()
        if lease is None:
            return
        if lease.epoch != self._epoch:
            self._epoch = lease.epoch
            self._states.clear()
            self._written_at.clear()
        entries, clusters = topic_links.read_scopes(self._database)
        due = self._find_due(entries)
        at_ms, _ = self._database.now_ms()
        answers = self._run_queries({query for query in due if query.cluster_id in clusters}, clusters)
        failed = {query for query, answer in answers.items() if isinstance(answer, PollProblem)}
        self._failed = (self._failed & self._queried_at.keys() - answers.keys()) | failed
        queried = [entry for entry in entries if _build_query(entry) in answers]
        # A query for which no client was free is due again.
        for query in due - answers.keys():
            self._queried_at.pop(query, None)
        answered = [(self._refresh(entry), answers[_build_query(entry)]) for entry in queried]
        self._store_answers(answered, int(at_ms), lease)
        live = {entry.monitor_id for entry in entries}
        self._states = {number: state for number, state in self._states.items() if number in live}
        self._on_pass(Counter(state.code for state in self._states.values()))

    def run(self) -> None:
        """Run a pass at each interval, until `stop`."""
        while not self._stop_asked.wait(self._limits.seconds):
            try:
                self.run_once()
            except LagscaleError as error:
                log.info("topic_discovery_failed", reason=error.message)
            except Exception:
                # Without this thread new topics are never found.
                log.exception("topic_discovery_failed")
        self._database.close()

    def _find_due(self, entries: Iterable[ScopeEntry]) -> set[_TopicQuery]:
        """Queries older than the shortest sampling interval of their monitors."""
        now = self._clock()
        periods: dict[_TopicQuery, float] = {}
        tenants: dict[int, int] = {}
        for entry in entries:
            period = max(self._limits.seconds, min(entry.sampling_ms / 1000, deadlines.MAX_DISCOVERY_SECONDS))
            query = _build_query(entry)
            tenants[entry.cluster_id] = entry.tenant_id
            is_new = entry.code is None or (entry.resolved_ms is None and entry.code != StateCode.TOO_MANY_TOPICS)
            # A new monitor has its turn in the next pass; half a pass of jitter must not cost a whole one.
            interval = self._limits.seconds if is_new else period
            if query in self._failed:
                interval = max(period, deadlines.TOPIC_RETRY_SECONDS)
            periods[query] = min(periods.get(query, interval), interval)
        self._queried_at = {query: at for query, at in self._queried_at.items() if query in periods}
        early = self._limits.seconds / 2
        passed = {query: now - self._queried_at.get(query, float("-inf")) for query in periods}
        old = [query for query, period in periods.items() if passed[query] >= period - early]
        due = self._limit_unresponsive({query: tenants[query.cluster_id] for query in old})
        self._queried_at |= dict.fromkeys(due, now)
        return due

    def _limit_unresponsive(self, due: Mapping[_TopicQuery, int]) -> set[_TopicQuery]:
        """All queries of responsive clusters, and those of a few others, round robin over the tenants."""
        unresponsive_clusters = {query.cluster_id: tenant for query, tenant in due.items()}
        for cluster in self._responsive:
            unresponsive_clusters.pop(cluster, None)
        waited = {query.cluster_id: self._queried_at.get(query, float("-inf")) for query in due}
        oldest_first = sorted(unresponsive_clusters, key=lambda cluster: (waited[cluster], cluster))
        chosen = {
            *self._responsive,
            *interleave(oldest_first, unresponsive_clusters.__getitem__)[: deadlines.MAX_TOPIC_PROBES],
        }
        return {query for query in due if query.cluster_id in chosen}

    def _run_queries(
        self, queries: set[_TopicQuery], clusters: Mapping[int, ClusterEntry]
    ) -> dict[_TopicQuery, TopicsAnswer]:
        by_cluster: dict[int, list[_TopicQuery]] = {}
        for query in queries:
            by_cluster.setdefault(query.cluster_id, []).append(query)
        if not by_cluster:
            return {}
        with ThreadPoolExecutor(min(len(by_cluster), deadlines.TOPIC_QUERY_THREADS), "topics") as threads:
            # Responsive clusters first: the others may take all of their time.
            items = sorted(by_cluster.items(), key=lambda item: item[0] not in self._responsive)
            cluster_answers = list(threads.map(lambda item: self._query_cluster(clusters[item[0]], item[1]), items))
        for (cluster, _), answers in zip(items, cluster_answers, strict=True):
            if answers and all(isinstance(answer, PollProblem) for answer in answers.values()):
                self._responsive.discard(cluster)
            elif answers:
                self._responsive.add(cluster)
        return {query: answer for answers in cluster_answers for query, answer in answers.items()}

    def _query_cluster(self, cluster: ClusterEntry, queries: Sequence[_TopicQuery]) -> dict[_TopicQuery, TopicsAnswer]:
        responsive = cluster.cluster_id in self._responsive
        client = self._opener.open(cluster, responsive=responsive)
        if client is None or isinstance(client, PollProblem):
            return {} if client is None else dict.fromkeys(queries, client)
        seconds = deadlines.TOPIC_QUERY_SECONDS if responsive else deadlines.UNRESPONSIVE_TOPIC_QUERY_SECONDS
        try:
            return _query_client(client, cluster.cluster_id, queries, time.monotonic() + seconds)
        finally:
            self._opener.release(client)

    def _refresh(self, entry: ScopeEntry) -> ScopeEntry:
        """The entry with the latest complete answer, which may not be stored yet."""
        state = self._states.get(entry.monitor_id)
        if state is None or state.version != entry.version:
            return entry
        return replace(entry, resolved_ms=state.resolved_ms, code=state.code)

    def _store_answers(self, queried: Sequence[tuple[ScopeEntry, TopicsAnswer]], at_ms: int, lease: Lease) -> None:
        unchanged: list[ScopeState] = []
        for entry, answer in queried:
            if isinstance(answer, PollProblem):
                unchanged.append(keep_links(entry, answer))
                continue
            change, state = compute_links(entry, answer, at_ms, self._limits.topics)
            if not change:
                unchanged.append(state)
            elif self._store_change(entry, change, state, lease):
                self._remember(state)
        now = self._clock()
        due = [state for state in unchanged if self._needs_write(state, now)]
        try:
            topic_links.write_scope_states(self._database, due, lease)
        except LeaseLost:
            log.info("lease_lost", during="topic_discovery")
            return
        for state in due:
            self._written_at[state.monitor_id] = now
        self._states |= {state.monitor_id: state for state in unchanged}

    def _store_change(self, entry: ScopeEntry, change: topic_links.LinkChange, state: ScopeState, lease: Lease) -> bool:
        try:
            done = topic_links.apply_change(self._database, entry, change, state, lease)
        except LagscaleError as error:
            # The next pass decides again from the stored links.
            self._states.pop(entry.monitor_id, None)
            log.info("topic_link_failed", monitor_id=entry.monitor_id, reason=error.message)
            return False
        if done:
            log.info("topics_linked", monitor_id=entry.monitor_id, added=len(change.add), removed=len(change.remove))
        return done

    def _remember(self, state: ScopeState) -> None:
        self._states[state.monitor_id] = state
        self._written_at[state.monitor_id] = self._clock()

    def _needs_write(self, state: ScopeState, now: float) -> bool:
        before = self._states.get(state.monitor_id)
        written = None if before is None else (before.version, before.code, before.message)
        if written != (state.version, state.code, state.message):
            return True
        return now - self._written_at.get(state.monitor_id, float("-inf")) >= deadlines.SCOPE_WRITE_SECONDS


def _build_query(entry: ScopeEntry) -> _TopicQuery:
    return _TopicQuery(entry.cluster_id, entry.consumer_group if entry.scope.pattern is None else None)


def _query_client(
    client: TopicClient, cluster_id: int, queries: Sequence[_TopicQuery], until: float
) -> dict[_TopicQuery, TopicsAnswer]:
    groups = [query.group for query in queries if query.group is not None]
    answers: dict[_TopicQuery, TopicsAnswer] = {
        query: client.list_topics(until) for query in queries if query.group is None
    }
    of_groups = _read_committed_topics(client, groups, until) if groups else {}
    return answers | {_TopicQuery(cluster_id, group): answer for group, answer in of_groups.items()}


def _read_committed_topics(client: TopicClient, groups: Sequence[str], until: float) -> dict[str, TopicsAnswer]:
    """The topics on which each of the groups has commits."""
    return {
        group: committed
        if isinstance(committed, PollProblem)
        else frozenset(topic for (topic, _), offset in committed.items() if offset is not None)
        for group, committed in client.request_commits(dict.fromkeys(groups, ()), until)().items()
    }
