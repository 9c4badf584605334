"""Looks up the topics of monitors that do not list them, as topics come and go, and links what it finds.

Runs in a thread beside the planner, with clients of its own: a cluster that does not answer holds up no tick. The
next plan polls what was linked.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import structlog

from lagscale.errors import LagscaleError, LeaseLost
from lagscale.store.connection import ScraperDatabase
from lagscale.store.records import Lease
from lagscale.store.scraping import topic_links
from lagscale.store.scraping.targets import ClusterEntry
from lagscale.store.scraping.topic_links import ScopeEntry, ScopeState
from services.scraper.kafka.status import PollCode, PollProblem
from services.scraper.planning.round_robin import interleave
from services.scraper.topics.links import compute_links, keep_links
from services.scraper.topics.lookup import TopicClient, TopicsAnswer, read_committed_topics

log = structlog.get_logger(__name__)

#: However seldom a monitor is polled, new topics are found within this; seconds.
_MAX_INTERVAL_SECONDS = 60.0
_QUERY_SECONDS = 5.0
_THREADS = 32
#: Clusters that do not answer, or never did, asked in one pass; and how long each has.
_UNRESPONSIVE_LIMIT = 8
_UNRESPONSIVE_SECONDS = 2.0
#: What could not be asked is asked again after this long: each time holds up the whole pass; seconds.
_RETRY_SECONDS = 15.0
#: What has not changed is written about twice a minute.
_WRITE_SECONDS = 30.0


OpenTopicClient = Callable[[ClusterEntry], TopicClient | PollProblem | None]


@dataclass(frozen=True, slots=True)
class DiscoveryLimits:
    """The least time between two look-ups of one cluster in seconds, and the greatest number of topics of a monitor."""

    seconds: float
    topics: int


@dataclass(frozen=True, slots=True)
class _TopicQuery:
    """What is asked: a cluster's topics, or with a group the topics on which that has commits."""

    cluster_id: int
    group: str | None


class TopicDiscovery:
    """Looks up topics while this scraper leads.

    Args:
        database: a connection of its own.
        open_cluster: a cluster's client, or why there is none; None while none is free.
        limits: how often, and how many.
        lease: the present lease; None while another scraper leads.
        close_cluster: hears when a cluster's client is used no more.
        on_pass: hears of every pass how many monitors are in which state.
        clock: decides what is due; seconds.
    """

    def __init__(
        self,
        database: ScraperDatabase,
        open_cluster: OpenTopicClient,
        limits: DiscoveryLimits,
        lease: Callable[[], Lease | None],
        *,
        close_cluster: Callable[[TopicClient], None] = lambda client: None,
        on_pass: Callable[[Mapping[str, int]], None] = lambda counts: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._open, self._close = open_cluster, close_cluster
        self._limits = limits
        self._lease = lease
        self._on_pass = on_pass
        self._clock = clock
        self._queried_at: dict[_TopicQuery, float] = {}
        self._failed: frozenset[_TopicQuery] = frozenset()
        #: Clusters that answered when they were asked last.
        self._responsive: set[int] = set()
        # The newest complete answers, which the database is told of less often; good under one lease only.
        self._states: dict[int, ScopeState] = {}
        self._written_at: dict[int, float] = {}
        self._epoch = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resolver", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; what is under way ends by itself."""
        self._stop.set()

    def is_responsive(self, cluster_id: int) -> bool:
        """Whether the cluster answered when it was asked last."""
        return cluster_id in self._responsive

    def run_once(self) -> None:
        """One pass: ask what is due, and store what follows from the answers.

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
        entries, clusters = topic_links.read(self._database)
        due = self._find_due(entries)
        at_ms, _ = self._database.now_ms()
        answers = self._run_queries({query for query in due if query.cluster_id in clusters}, clusters)
        failed = {query for query, answer in answers.items() if isinstance(answer, PollProblem)}
        self._failed = (self._failed & self._queried_at.keys() - answers.keys()) | failed
        queried = [entry for entry in entries if _build_query(entry) in answers]
        # What was not asked for want of a client is due again.
        for query in due - answers.keys():
            self._queried_at.pop(query, None)
        self._store_answers(
            [(self._refresh(entry), answers[_build_query(entry)]) for entry in queried], int(at_ms), lease
        )
        live = {entry.monitor_id for entry in entries}
        self._states = {number: state for number, state in self._states.items() if number in live}
        self._on_pass(Counter(state.code for state in self._states.values()))

    def _run(self) -> None:
        while not self._stop.wait(self._limits.seconds):
            try:
                self.run_once()
            except LagscaleError as error:
                log.info("topics_not_looked_up", error=error.message)
            except Exception:
                # The thread must go on: without it new topics are never found.
                log.exception("looking_up_topics_failed")
        self._database.close()

    def _find_due(self, entries: Iterable[ScopeEntry]) -> set[_TopicQuery]:
        """What has not been asked for as long as the most frequent of its monitors is polled."""
        now = self._clock()
        periods: dict[_TopicQuery, float] = {}
        tenants: dict[int, int] = {}
        for entry in entries:
            period = max(self._limits.seconds, min(entry.sampling_ms / 1000, _MAX_INTERVAL_SECONDS))
            query = _build_query(entry)
            tenants[entry.cluster_id] = entry.tenant_id
            is_new = entry.code is None or (entry.resolved_ms is None and entry.code != PollCode.TOO_MANY_TOPICS)
            # A new monitor is looked up with the next pass; half a pass of jitter must not cost a whole one.
            interval = self._limits.seconds if is_new else period
            if query in self._failed:
                interval = max(period, _RETRY_SECONDS)
            periods[query] = min(periods.get(query, interval), interval)
        self._queried_at = {query: at for query, at in self._queried_at.items() if query in periods}
        early = self._limits.seconds / 2
        due = self._limit_unresponsive(
            {
                query: tenants[query.cluster_id]
                for query, period in periods.items()
                if now - self._queried_at.get(query, float("-inf")) >= period - early
            }
        )
        self._queried_at |= dict.fromkeys(due, now)
        return due

    def _limit_unresponsive(self, due: Mapping[_TopicQuery, int]) -> set[_TopicQuery]:
        """All questions to clusters that answered last, and those to a few others, the tenants taking turns."""
        unresponsive_clusters = {query.cluster_id: tenant for query, tenant in due.items()}
        for cluster in self._responsive:
            unresponsive_clusters.pop(cluster, None)
        waited = {query.cluster_id: self._queried_at.get(query, float("-inf")) for query in due}
        oldest_first = sorted(unresponsive_clusters, key=lambda cluster: (waited[cluster], cluster))
        chosen = {*self._responsive, *interleave(oldest_first, unresponsive_clusters.__getitem__)[:_UNRESPONSIVE_LIMIT]}
        return {query for query in due if query.cluster_id in chosen}

    def _run_queries(
        self, queries: set[_TopicQuery], clusters: Mapping[int, ClusterEntry]
    ) -> dict[_TopicQuery, TopicsAnswer]:
        by_cluster: dict[int, list[_TopicQuery]] = {}
        for query in queries:
            by_cluster.setdefault(query.cluster_id, []).append(query)
        if not by_cluster:
            return {}
        with ThreadPoolExecutor(min(len(by_cluster), _THREADS), "topics") as threads:
            # Whoever answered last first: the others may take as long as they are given.
            items = sorted(by_cluster.items(), key=lambda item: item[0] not in self._responsive)
            cluster_answers = list(threads.map(lambda item: self._query_cluster(clusters[item[0]], item[1]), items))
        for (cluster, _), answers in zip(items, cluster_answers, strict=True):
            if answers and all(isinstance(answer, PollProblem) for answer in answers.values()):
                self._responsive.discard(cluster)
            elif answers:
                self._responsive.add(cluster)
        return {query: answer for answers in cluster_answers for query, answer in answers.items()}

    def _query_cluster(self, cluster: ClusterEntry, queries: Sequence[_TopicQuery]) -> dict[_TopicQuery, TopicsAnswer]:
        client = self._open(cluster)
        if client is None or isinstance(client, PollProblem):
            return {} if client is None else dict.fromkeys(queries, client)
        try:
            return self._query_client(client, cluster, queries)
        finally:
            self._close(client)

    def _query_client(
        self, client: TopicClient, cluster: ClusterEntry, queries: Sequence[_TopicQuery]
    ) -> dict[_TopicQuery, TopicsAnswer]:
        until = time.monotonic() + (_QUERY_SECONDS if self.is_responsive(cluster.cluster_id) else _UNRESPONSIVE_SECONDS)
        groups = [query.group for query in queries if query.group is not None]
        answers: dict[_TopicQuery, TopicsAnswer] = {
            query: client.list_topics(until) for query in queries if query.group is None
        }
        cluster_answers = read_committed_topics(client, groups, until) if groups else {}
        return answers | {_TopicQuery(cluster.cluster_id, group): answer for group, answer in cluster_answers.items()}

    def _refresh(self, entry: ScopeEntry) -> ScopeEntry:
        """The entry with the newest complete answer, which may not be stored yet."""
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
            topic_links.write_states(self._database, due, lease)
        except LeaseLost:
            log.info("lease_lost_while_looking_up_topics")
            return
        for state in due:
            self._written_at[state.monitor_id] = now
        self._states |= {state.monitor_id: state for state in unchanged}

    def _store_change(self, entry: ScopeEntry, change: topic_links.LinkChange, state: ScopeState, lease: Lease) -> bool:
        try:
            done = topic_links.change(self._database, entry, change, state, lease)
        except LagscaleError as error:
            # The next pass decides anew from what is stored.
            self._states.pop(entry.monitor_id, None)
            log.info("topics_not_linked", monitor_id=entry.monitor_id, error=error.message)
            return False
        if done:
            log.info("topics_linked", monitor_id=entry.monitor_id, added=len(change.add), removed=len(change.remove))
        return done

    def _remember(self, state: ScopeState) -> None:
        self._states[state.monitor_id] = state
        self._written_at[state.monitor_id] = self._clock()

    def _needs_write(self, state: ScopeState, now: float) -> bool:
        before = self._states.get(state.monitor_id)
        if before is None or (before.version, before.code, before.message) != (
            state.version,
            state.code,
            state.message,
        ):
            return True
        return now - self._written_at.get(state.monitor_id, float("-inf")) >= _WRITE_SECONDS


def _build_query(entry: ScopeEntry) -> _TopicQuery:
    return _TopicQuery(entry.cluster_id, entry.consumer_group if entry.scope.pattern is None else None)
