"""The only room that knows the Kafka client: requests to one cluster, and clients kept per process.

librdkafka up to 2.16 can abort its process when a coordinator is told too late (`coordinated.py`), when one moves
(confluentinc/librdkafka#5040), and when it authenticates anew on a connection that is in use. That ends a worker and
fails a batch; the query is then started again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec as _Spec

from lagscale.kafka.addresses import ANYWHERE, AddressRules
from lagscale.kafka.errors import KINDS, REASONS
from lagscale.kafka.resolver_guard import open_admin
from services.scraper.kafka import responses
from services.scraper.kafka.client_log import library_log
from services.scraper.kafka.coordinator_requests import Coordinated
from services.scraper.kafka.coordinators import OFFSETS_TOPIC, USUAL_SLOTS, first_of_each_slot, slot_of, why_moving
from services.scraper.kafka.status import Code, Problem
from services.scraper.polling.round import Committed, Ends, GroupSeen, Partition, TopicSeen

_EARLIEST: Any = _Spec.earliest()
_LATEST: Any = _Spec.latest()
#: The client's own limit is a little shorter than ours, so that its reason arrives.
_EARLIER = 0.1
_LEAST_TIMEOUT = 0.2
#: A client that met silence is replaced, but not before it is so many seconds old.
LEAST_LIFE = 5.0
#: Longer than requests to a lost coordinator are under way; where nobody ever answered there are none.
_UNDER_WAY_SECONDS = 30.0
_CODES: Mapping[int, Code] = {number: Code(kind) for number, kind in KINDS.items()}
_REASONS = tuple(Code(kind) for kind in REASONS)
#: A client tries again at least every second, so an older reason is none any more.
_REASON_SECONDS = 10.0
_KINDS_SECONDS = 30.0
#: A coordinator that answered serves for so long: the rest of the round.
_SETTLED_SECONDS = 1.0
#: What is left for the others when a coordinator does not answer, as a share of the time that there is.
_LEFT_FOR_OTHERS = 0.5
_MOST_STRANGERS = 20


class KafkaCluster:
    """Requests to one cluster; the seam that `poll.py` speaks to. All times are `time.monotonic()` seconds."""

    def __init__(
        self, config: Mapping[str, Any], life_seconds: float = LEAST_LIFE, rules: AddressRules = ANYWHERE
    ) -> None:
        """Open a client, which serves for so many seconds also where it meets silence; nothing is connected yet.

        Raises:
            ValueError: the client refuses the settings, or this build of it cannot keep to the rules of addresses.
        """
        self._reasons: dict[Code, float] = {}
        self._made_at = time.monotonic()
        self.life_seconds = life_seconds
        self._silent = self._answered = False
        self._given_up_until = 0.0
        self._commits, self._states = Coordinated(), Coordinated()
        self._slots: int | None = None
        self._shares: frozenset[str] = frozenset()
        self._kinds_at: dict[str, float] = {}
        self._settled_at: dict[int, float] = {}
        settings: dict[str, Any] = {**config, "error_cb": self._told}
        try:
            self._admin, self._guard = open_admin(settings, rules, library_log())
        except (KafkaException, ValueError, TypeError, RuntimeError) as refused:
            raise ValueError("the client refuses the settings") from refused

    def topics(self, names: Sequence[str], until: float) -> dict[str, TopicSeen | Problem]:
        """Each topic's id and partitions; a Problem for one that is unknown or forbidden, or for all."""
        if (refused := self._refusal(until)) is not None:
            return dict.fromkeys(names, refused)
        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=_timeout(until))
        return {name: self._result(asked[name], until, responses.topic) for name in names}

    def listing(self, until: float) -> frozenset[str] | Problem:
        """Names of all topics that the cluster's user may see."""
        if (refused := self._refusal(until)) is not None:
            return refused
        try:
            return frozenset(self._admin.list_topics(timeout=_timeout(until)).topics)
        except KafkaException as failed:
            return self._problem(failed.args[0])

    def commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], dict[str, Committed | Problem]]:
        """Ask for the groups' committed offsets; the answers are collected by calling the result."""
        unsettled = self._unsettled(list(groups), until)

        def send(group: str, timeout: float) -> Future[Any]:
            # No partition named means all that the group has commits of.
            wanted = [TopicPartition(topic, number) for topic, number in groups[group]] or None
            request = [ConsumerGroupTopicPartitions(group, wanted)]
            asked: Mapping[str, Future[Any]] = self._admin.list_consumer_group_offsets(request, request_timeout=timeout)
            return asked[group]

        collect = self._commits.ask([group for group in groups if group not in unsettled], send, until)
        return lambda: unsettled | collect(lambda future: self._result(future, until, responses.committed))

    def _unsettled(self, groups: list[str], until: float) -> dict[str, Problem]:
        """The groups whose coordinator is moving, or does not answer.

        Asked for commits, a broker that does not coordinate the group brings the library down
        (confluentinc/librdkafka#5040), as brokers do while they restart; asked for the state it only says so. One
        group tells it for all of its coordinator's partition.
        """
        now = time.monotonic()
        slots = self._slots or self._count_slots(until)
        due = {
            slot: group
            for slot, group in first_of_each_slot(groups, slots).items()
            if now - self._settled_at.get(slot, float("-inf")) > _SETTLED_SECONDS
        }
        if not due:
            return {}
        # Commits kept in a partition without a leader have no coordinator, for hours perhaps: other groups have one.
        seen = self.groups(list(due.values()), until - (until - now) * _LEFT_FOR_OTHERS)()
        moving = {slot: found for slot, group in due.items() if (found := why_moving(seen[group])) is not None}
        self._settled_at |= dict.fromkeys(due.keys() - moving.keys(), now)
        if moving:
            # The client remembers coordinators for long; another one looks them up anew.
            self._meet_silence()
        return {group: moving[slot] for group in groups if (slot := slot_of(group, slots)) in moving}

    def _count_slots(self, until: float) -> int:
        """Partitions that keep commits; the usual number while the cluster does not tell."""
        found = self.topics([OFFSETS_TOPIC], until)[OFFSETS_TOPIC]
        if isinstance(found, Problem) or not found.partitions:
            return USUAL_SLOTS
        self._slots = len(found.partitions)
        return self._slots

    def ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        """Ask for log starts and high watermarks, and for last stable offsets of some; collected by the result."""
        every = {TopicPartition(topic, number): None for topic, number in partitions}
        stable = {TopicPartition(topic, number): None for topic, number in committed_only}
        timeout = _timeout(until)

        def ask(wanted: Iterable[TopicPartition], spec: Any, level: IsolationLevel) -> Mapping[Any, Future[Any]]:
            specs = dict.fromkeys(wanted, spec)
            if not specs:
                return {}
            asked: Mapping[Any, Future[Any]] = self._admin.list_offsets(
                specs, isolation_level=level, request_timeout=timeout
            )
            return asked

        starts = ask(every, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        highs = ask(every, _LATEST, IsolationLevel.READ_UNCOMMITTED)
        lasts = ask(stable, _LATEST, IsolationLevel.READ_COMMITTED)
        return lambda: Ends(*(self._offsets(asked, until) for asked in (starts, highs, lasts)))

    def groups(self, names: Sequence[str], until: float) -> Callable[[], dict[str, GroupSeen | Problem]]:
        """Ask for the groups' states and member counts; collected by calling the result."""
        if (refused := self._refusal(until)) is not None:
            return lambda: dict.fromkeys(names, refused)

        def send(name: str, timeout: float) -> Future[Any]:
            asked: Mapping[str, Future[Any]] = self._admin.describe_consumer_groups([name], request_timeout=timeout)
            return asked[name]

        collect = self._states.ask(names, send, until)
        return lambda: collect(lambda future: self._result(future, until, responses.group))

    def share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        """Which of the groups are share groups; looked up for new names, and every half minute for all.

        The client does not know the kind. It leaves such a group out of the consumer groups; the older listing of
        all groups names it, but its description is that of a dead one, and it has no commits, unlike one of Streams.
        """
        now = time.monotonic()
        due = [name for name in names if now - self._kinds_at.get(name, -_KINDS_SECONDS) >= _KINDS_SECONDS]
        if not due:
            return self._shares
        listed = self._result(
            self._admin.list_consumer_groups(request_timeout=_timeout(until)), until, responses.listed
        )
        if isinstance(listed, Problem):
            return self._shares
        strangers = [name for name in due if name not in listed][:_MOST_STRANGERS]
        shares = {name for name in strangers if self._is_listed_dead(name, until)}
        if shares:
            committed = self.commits(dict.fromkeys(shares, ()), until)()
            shares = {name for name, found in committed.items() if found == {}}
        # Names beyond the greatest number have their turn at the next poll.
        checked = listed.intersection(due).union(strangers)
        self._kinds_at |= dict.fromkeys(checked, now)
        self._shares = (self._shares - checked) | shares
        return self._shares

    def _is_listed_dead(self, name: str, until: float) -> bool:
        try:
            with warnings.catch_warnings():
                # The listing is old, but nothing newer names groups of other kinds.
                warnings.simplefilter("ignore", DeprecationWarning)
                found: Any = self._admin.list_groups(name, timeout=_timeout(until))
        except KafkaException:
            return False
        return any(group.id == name and group.state == "Dead" for group in found)

    def _refusal(self, until: float) -> Problem | None:
        """Why nothing may be asked: an address of the cluster is refused, or it does not tell its addresses."""
        try:
            return Problem(Code.ADDRESS_REFUSED) if self._guard.refusals(self._admin, _timeout(until)) else None
        except KafkaException as failed:
            return self._problem(failed.args[0])

    def _offsets(self, asked: Mapping[Any, Future[Any]], until: float) -> dict[Partition, int]:
        found: dict[Partition, int] = {}
        for key, future in asked.items():
            offset = self._result(future, until, lambda result: int(result.offset))
            if not isinstance(offset, Problem) and offset >= 0:
                found[(key.topic, key.partition)] = offset
        return found

    def _result(self, future: Future[Any] | None, until: float, read: Callable[[Any], Any]) -> Any:
        if future is None:
            return self._behind(Code.TIMEOUT, "")
        try:
            found = future.result(timeout=max(until - time.monotonic(), 0.0))
            self._answered = True
            return read(found)
        except KafkaException as failed:
            return self._problem(failed.args[0])
        except FutureTimeout:
            return self._behind(Code.TIMEOUT, "")

    def _problem(self, error: KafkaError) -> Problem:
        code = _CODES.get(error.code(), Code.FAILED)
        if code in {Code.TIMEOUT, Code.UNREACHABLE}:
            return self._behind(code, "")
        return Problem(code, error.name() if code is Code.FAILED else "")

    @property
    def is_spent(self) -> bool:
        """Whether another client must take over.

        After a broker's restart librdkafka may send no more requests for commits on the old connection, for ever.
        """
        return self._silent and time.monotonic() - self._made_at > self.life_seconds

    def _behind(self, code: Code, detail: str) -> Problem:
        self._meet_silence()
        # Callbacks are served here: errors of connections come by them only.
        self._admin.poll(0)
        if self._guard.refused(_REASON_SECONDS):
            return Problem(Code.ADDRESS_REFUSED)
        recent = time.monotonic() - _REASON_SECONDS
        for reason in _REASONS:
            if self._reasons.get(reason, recent) > recent:
                return Problem(reason, detail)
        return Problem(code, detail)

    def _meet_silence(self) -> None:
        self._silent = True
        self._given_up_until = time.monotonic() + (_UNDER_WAY_SECONDS if self._answered else 2 * _LEAST_TIMEOUT)

    @property
    def busy_until(self) -> float:
        """Until when the library may be at work on what was given up here: closed before that, it could crash."""
        is_quiet = self._commits.is_quiet and self._states.is_quiet
        return self._given_up_until if is_quiet else float("inf")

    def close(self) -> None:
        """End the library's client and its threads now: errors' tracebacks keep this object until a collection."""
        del self._admin

    def _told(self, error: KafkaError) -> None:
        if (code := _CODES.get(error.code())) is not None:
            self._reasons[code] = time.monotonic()


def _timeout(until: float) -> float:
    return max(until - time.monotonic() - _EARLIER, _LEAST_TIMEOUT)
