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
from lagscale.store.records import Lease
from lagscale.store.scraping import topic_links
from lagscale.store.scraping.targets import ClusterEntry
from lagscale.store.scraping.topic_links import ScopeEntry, ScopeState
from lagscale.store.sync_connection import ScraperDatabase
from services.scraper.kafka.status import Code, Problem
from services.scraper.planning.round_robin import in_turn
from services.scraper.topics.links import resolved, unresolved
from services.scraper.topics.lookup import Answer, Lookup, committed_topics

log = structlog.get_logger(__name__)

#: However seldom a monitor is polled, new topics are found within this; seconds.
_LONGEST_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
_THREADS = 32
#: Clusters that do not answer, or never did, asked in one pass; and how long each has.
_UNPROVEN = 8
_UNPROVEN_SECONDS = 2.0
#: What could not be asked is asked again after this long: each time holds up the whole pass; seconds.
_BACKOFF_SECONDS = 15.0
#: What has not changed is written about twice a minute.
_WRITE_SECONDS = 30.0


Open = Callable[[ClusterEntry], Lookup | Problem | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """The least time between two look-ups of one cluster in seconds, and the greatest number of topics of a monitor."""

    seconds: float
    topics: int


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked: a cluster's topics, or with a group the topics on which that has commits."""

    cluster_id: int
    group: str | None


class Resolver:
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
        open_cluster: Open,
        limits: Limits,
        lease: Callable[[], Lease | None],
        *,
        close_cluster: Callable[[Lookup], None] = lambda client: None,
        on_pass: Callable[[Mapping[str, int]], None] = lambda counts: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._open, self._close = open_cluster, close_cluster
        self._limits = limits
        self._lease = lease
        self._on_pass = on_pass
        self._clock = clock
        self._asked: dict[_Question, float] = {}
        self._failed: frozenset[_Question] = frozenset()
        #: Clusters that answered when they were asked last.
        self._proven: set[int] = set()
        # The newest complete answers, which the database is told of less often; good under one lease only.
        self._states: dict[int, ScopeState] = {}
        self._written: dict[int, float] = {}
        self._epoch = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="resolver", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; what is under way ends by itself."""
        self._stop.set()

    def is_proven(self, cluster_id: int) -> bool:
        """Whether the cluster answered when it was asked last."""
        return cluster_id in self._proven

    def once(self) -> None:
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
            self._written.clear()
        entries, clusters = topic_links.read(self._database)
        due = self._due(entries)
        at_ms, _ = self._database.now_ms()
        answers = self._ask({question for question in due if question.cluster_id in clusters}, clusters)
        failed = {question for question, answer in answers.items() if isinstance(answer, Problem)}
        self._failed = (self._failed & self._asked.keys() - answers.keys()) | failed
        asked = [entry for entry in entries if _question(entry) in answers]
        # What was not asked for want of a client is due again.
        for question in due - answers.keys():
            self._asked.pop(question, None)
        self._settle([(self._refreshed(entry), answers[_question(entry)]) for entry in asked], int(at_ms), lease)
        live = {entry.monitor_id for entry in entries}
        self._states = {number: state for number, state in self._states.items() if number in live}
        self._on_pass(Counter(state.code for state in self._states.values()))

    def _run(self) -> None:
        while not self._stop.wait(self._limits.seconds):
            try:
                self.once()
            except LagscaleError as away:
                log.info("topics_not_looked_up", error=away.message)
            except Exception:
                # The thread must go on: without it new topics are never found.
                log.exception("looking_up_topics_failed")
        self._database.close()

    def _due(self, entries: Iterable[ScopeEntry]) -> set[_Question]:
        """What has not been asked for as long as the most frequent of its monitors is polled."""
        now = self._clock()
        periods: dict[_Question, float] = {}
        tenants: dict[int, int] = {}
        for entry in entries:
            period = max(self._limits.seconds, min(entry.sampling_ms / 1000, _LONGEST_SECONDS))
            question = _question(entry)
            tenants[entry.cluster_id] = entry.tenant_id
            fresh = entry.code is None or (entry.resolved_ms is None and entry.code != Code.TOO_MANY_TOPICS)
            # A new monitor is looked up with the next pass; half a pass of jitter must not cost a whole one.
            wanted = self._limits.seconds if fresh else period
            if question in self._failed:
                wanted = max(period, _BACKOFF_SECONDS)
            periods[question] = min(periods.get(question, wanted), wanted)
        self._asked = {question: at for question, at in self._asked.items() if question in periods}
        early = self._limits.seconds / 2
        due = self._in_turn(
            {
                question: tenants[question.cluster_id]
                for question, period in periods.items()
                if now - self._asked.get(question, float("-inf")) >= period - early
            }
        )
        self._asked |= dict.fromkeys(due, now)
        return due

    def _in_turn(self, due: Mapping[_Question, int]) -> set[_Question]:
        """All questions to clusters that answered last, and those to a few others, the tenants taking turns."""
        others = {question.cluster_id: tenant for question, tenant in due.items()}
        for cluster in self._proven:
            others.pop(cluster, None)
        waited = {question.cluster_id: self._asked.get(question, float("-inf")) for question in due}
        oldest_first = sorted(others, key=lambda cluster: (waited[cluster], cluster))
        chosen = {*self._proven, *in_turn(oldest_first, others.__getitem__)[:_UNPROVEN]}
        return {question for question in due if question.cluster_id in chosen}

    def _ask(self, questions: set[_Question], clusters: Mapping[int, ClusterEntry]) -> dict[_Question, Answer]:
        by_cluster: dict[int, list[_Question]] = {}
        for question in questions:
            by_cluster.setdefault(question.cluster_id, []).append(question)
        if not by_cluster:
            return {}
        with ThreadPoolExecutor(min(len(by_cluster), _THREADS), "topics") as threads:
            # Whoever answered last first: the others may take as long as they are given.
            items = sorted(by_cluster.items(), key=lambda item: item[0] not in self._proven)
            found = list(threads.map(lambda item: self._ask_cluster(clusters[item[0]], item[1]), items))
        for (cluster, _), answers in zip(items, found, strict=True):
            if answers and all(isinstance(answer, Problem) for answer in answers.values()):
                self._proven.discard(cluster)
            elif answers:
                self._proven.add(cluster)
        return {question: answer for answers in found for question, answer in answers.items()}

    def _ask_cluster(self, cluster: ClusterEntry, questions: Sequence[_Question]) -> dict[_Question, Answer]:
        client = self._open(cluster)
        if client is None or isinstance(client, Problem):
            return {} if client is None else dict.fromkeys(questions, client)
        try:
            return self._ask_client(client, cluster, questions)
        finally:
            self._close(client)

    def _ask_client(
        self, client: Lookup, cluster: ClusterEntry, questions: Sequence[_Question]
    ) -> dict[_Question, Answer]:
        until = time.monotonic() + (_ANSWER_SECONDS if self.is_proven(cluster.cluster_id) else _UNPROVEN_SECONDS)
        groups = [question.group for question in questions if question.group is not None]
        answers: dict[_Question, Answer] = {
            question: client.listing(until) for question in questions if question.group is None
        }
        found = committed_topics(client, groups, until) if groups else {}
        return answers | {_Question(cluster.cluster_id, group): answer for group, answer in found.items()}

    def _refreshed(self, entry: ScopeEntry) -> ScopeEntry:
        """The entry with the newest complete answer, which may not be stored yet."""
        state = self._states.get(entry.monitor_id)
        if state is None or state.version != entry.version:
            return entry
        return replace(entry, resolved_ms=state.resolved_ms, code=state.code)

    def _settle(self, asked: Sequence[tuple[ScopeEntry, Answer]], at_ms: int, lease: Lease) -> None:
        unchanged: list[ScopeState] = []
        for entry, answer in asked:
            if isinstance(answer, Problem):
                unchanged.append(unresolved(entry, answer))
                continue
            change, state = resolved(entry, answer, at_ms, self._limits.topics)
            if not change:
                unchanged.append(state)
            elif self._change(entry, change, state, lease):
                self._note(state)
        now = self._clock()
        due = [state for state in unchanged if self._is_news(state, now)]
        try:
            topic_links.write_states(self._database, due, lease)
        except LeaseLost:
            log.info("lease_lost_while_looking_up_topics")
            return
        for state in due:
            self._written[state.monitor_id] = now
        self._states |= {state.monitor_id: state for state in unchanged}

    def _change(self, entry: ScopeEntry, change: topic_links.Change, state: ScopeState, lease: Lease) -> bool:
        try:
            done = topic_links.change(self._database, entry, change, state, lease)
        except LagscaleError as away:
            # The next pass decides anew from what is stored.
            self._states.pop(entry.monitor_id, None)
            log.info("topics_not_linked", monitor_id=entry.monitor_id, error=away.message)
            return False
        if done:
            log.info("topics_linked", monitor_id=entry.monitor_id, added=len(change.add), removed=len(change.remove))
        return done

    def _note(self, state: ScopeState) -> None:
        self._states[state.monitor_id] = state
        self._written[state.monitor_id] = self._clock()

    def _is_news(self, state: ScopeState, now: float) -> bool:
        before = self._states.get(state.monitor_id)
        if before is None or (before.version, before.code, before.message) != (
            state.version,
            state.code,
            state.message,
        ):
            return True
        return now - self._written.get(state.monitor_id, float("-inf")) >= _WRITE_SECONDS


def _question(entry: ScopeEntry) -> _Question:
    return _Question(entry.cluster_id, entry.consumer_group if entry.scope.pattern is None else None)
