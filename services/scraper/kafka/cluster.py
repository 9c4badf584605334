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

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.errors import ERROR_STATES, ROOT_CAUSES
from lagscale.kafka.resolver_guard import open_admin
from services.scraper.kafka import responses
from services.scraper.kafka.client_log import get_client_logger
from services.scraper.kafka.coordinator_requests import CoordinatorRequests
from services.scraper.kafka.coordinators import (
    DEFAULT_OFFSETS_PARTITIONS,
    OFFSETS_TOPIC,
    find_move_problem,
    find_offsets_partition,
    pick_group_per_partition,
)
from services.scraper.kafka.status import PollCode, PollProblem
from services.scraper.polling.round import Committed, Ends, GroupDescription, Partition, TopicDescription

_EARLIEST: Any = _Spec.earliest()
_LATEST: Any = _Spec.latest()
#: The client's own limit is a little shorter than ours, so that its reason arrives.
_CLIENT_MARGIN_SECONDS = 0.1
_MIN_TIMEOUT_SECONDS = 0.2
#: A client that met silence is replaced, but not before it is so many seconds old.
MIN_LIFETIME_SECONDS = 5.0
#: Longer than requests to a lost coordinator are under way; where nobody ever answered there are none.
_PENDING_SECONDS = 30.0
_CODES: Mapping[int, PollCode] = {number: PollCode(kind) for number, kind in ERROR_STATES.items()}
_REASONS = tuple(PollCode(kind) for kind in ROOT_CAUSES)
#: A client tries again at least every second, so an older reason is none any more.
_REASON_MAX_AGE_SECONDS = 10.0
_GROUP_KIND_SECONDS = 30.0
#: A coordinator that answered serves for so long: the rest of the round.
_COORDINATOR_OK_SECONDS = 1.0
#: What is left for the others when a coordinator does not answer, as a share of the time that there is.
_OTHER_COORDINATORS_SHARE = 0.5
_MAX_UNLISTED_GROUPS = 20


class KafkaCluster:
    """Requests to one cluster; the seam that `poll.py` speaks to. All times are `time.monotonic()` seconds."""

    def __init__(
        self,
        config: Mapping[str, Any],
        lifetime_seconds: float = MIN_LIFETIME_SECONDS,
        rules: AddressRules = ANY_ADDRESS,
    ) -> None:
        """Open a client, which serves for so many seconds also where it meets silence; nothing is connected yet.

        Raises:
            ValueError: the client refuses the settings, or this build of it cannot keep to the rules of addresses.
        """
        self._reasons: dict[PollCode, float] = {}
        self._opened_at = time.monotonic()
        self.lifetime_seconds = lifetime_seconds
        self._silent = self._answered = False
        self._abandoned_until = 0.0
        self._commits, self._states = CoordinatorRequests(), CoordinatorRequests()
        self._offsets_partition_count: int | None = None
        self._share_groups: frozenset[str] = frozenset()
        self._kind_checked_at: dict[str, float] = {}
        self._coordinator_ok_at: dict[int, float] = {}
        settings: dict[str, Any] = {**config, "error_cb": self._on_error}
        try:
            self._admin, self._guard = open_admin(settings, rules, get_client_logger())
        except (KafkaException, ValueError, TypeError, RuntimeError) as refused:
            raise ValueError("the client refuses the settings") from refused

    def topics(self, names: Sequence[str], until: float) -> dict[str, TopicDescription | PollProblem]:
        """Each topic's id and partitions; a Problem for one that is unknown or forbidden, or for all."""
        if (refused := self._check_addresses(until)) is not None:
            return dict.fromkeys(names, refused)
        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=_compute_timeout(until))
        return {name: self._await_result(asked[name], until, responses.topic) for name in names}

    def list_topics(self, until: float) -> frozenset[str] | PollProblem:
        """Names of all topics that the cluster's user may see."""
        if (refused := self._check_addresses(until)) is not None:
            return refused
        try:
            return frozenset(self._admin.list_topics(timeout=_compute_timeout(until)).topics)
        except KafkaException as failed:
            return self._to_problem(failed.args[0])

    def commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], dict[str, Committed | PollProblem]]:
        """Ask for the groups' committed offsets; the answers are collected by calling the result."""
        moving_groups = self._find_moving_coordinators(list(groups), until)

        def send(group: str, timeout: float) -> Future[Any]:
            # No partition named means all that the group has commits of.
            requested = [TopicPartition(topic, number) for topic, number in groups[group]] or None
            request = [ConsumerGroupTopicPartitions(group, requested)]
            asked: Mapping[str, Future[Any]] = self._admin.list_consumer_group_offsets(request, request_timeout=timeout)
            return asked[group]

        collect = self._commits.ask([group for group in groups if group not in moving_groups], send, until)
        return lambda: moving_groups | collect(lambda future: self._await_result(future, until, responses.committed))

    def _find_moving_coordinators(self, groups: list[str], until: float) -> dict[str, PollProblem]:
        """The groups whose coordinator is moving, or does not answer.

        Asked for commits, a broker that does not coordinate the group brings the library down
        (confluentinc/librdkafka#5040), as brokers do while they restart; asked for the state it only says so. One
        group tells it for all of its coordinator's partition.
        """
        now = time.monotonic()
        partition_count = self._offsets_partition_count or self._count_offsets_partitions(until)
        due = {
            offsets_partition: group
            for offsets_partition, group in pick_group_per_partition(groups, partition_count).items()
            if now - self._coordinator_ok_at.get(offsets_partition, float("-inf")) > _COORDINATOR_OK_SECONDS
        }
        if not due:
            return {}
        # Commits kept in a partition without a leader have no coordinator, for hours perhaps: other groups have one.
        descriptions = self.groups(list(due.values()), until - (until - now) * _OTHER_COORDINATORS_SHARE)()
        moving = {
            offsets_partition: answer
            for offsets_partition, group in due.items()
            if (answer := find_move_problem(descriptions[group])) is not None
        }
        self._coordinator_ok_at |= dict.fromkeys(due.keys() - moving.keys(), now)
        if moving:
            # The client remembers coordinators for long; another one looks them up anew.
            self._mark_silent()
        return {
            group: moving[offsets_partition]
            for group in groups
            if (offsets_partition := find_offsets_partition(group, partition_count)) in moving
        }

    def _count_offsets_partitions(self, until: float) -> int:
        """Partitions that keep commits; the usual number while the cluster does not tell."""
        answer = self.topics([OFFSETS_TOPIC], until)[OFFSETS_TOPIC]
        if isinstance(answer, PollProblem) or not answer.partitions:
            return DEFAULT_OFFSETS_PARTITIONS
        self._offsets_partition_count = len(answer.partitions)
        return self._offsets_partition_count

    def ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        """Ask for log starts and high watermarks, and for last stable offsets of some; collected by the result."""
        every = {TopicPartition(topic, number): None for topic, number in partitions}
        stable = {TopicPartition(topic, number): None for topic, number in committed_only}
        timeout = _compute_timeout(until)

        def ask(requested: Iterable[TopicPartition], spec: Any, level: IsolationLevel) -> Mapping[Any, Future[Any]]:
            specs = dict.fromkeys(requested, spec)
            if not specs:
                return {}
            asked: Mapping[Any, Future[Any]] = self._admin.list_offsets(
                specs, isolation_level=level, request_timeout=timeout
            )
            return asked

        starts = ask(every, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        highs = ask(every, _LATEST, IsolationLevel.READ_UNCOMMITTED)
        lasts = ask(stable, _LATEST, IsolationLevel.READ_COMMITTED)
        return lambda: Ends(*(self._collect_offsets(asked, until) for asked in (starts, highs, lasts)))

    def groups(self, names: Sequence[str], until: float) -> Callable[[], dict[str, GroupDescription | PollProblem]]:
        """Ask for the groups' states and member counts; collected by calling the result."""
        if (refused := self._check_addresses(until)) is not None:
            return lambda: dict.fromkeys(names, refused)

        def send(name: str, timeout: float) -> Future[Any]:
            asked: Mapping[str, Future[Any]] = self._admin.describe_consumer_groups([name], request_timeout=timeout)
            return asked[name]

        collect = self._states.ask(names, send, until)
        return lambda: collect(lambda future: self._await_result(future, until, responses.group))

    def find_share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        """Which of the groups are share groups; looked up for new names, and every half minute for all.

        The client does not know the kind. It leaves such a group out of the consumer groups; the older listing of
        all groups names it, but its description is that of a dead one, and it has no commits, unlike one of Streams.
        """
        now = time.monotonic()
        due = [
            name for name in names if now - self._kind_checked_at.get(name, -_GROUP_KIND_SECONDS) >= _GROUP_KIND_SECONDS
        ]
        if not due:
            return self._share_groups
        listed = self._await_result(
            self._admin.list_consumer_groups(request_timeout=_compute_timeout(until)), until, responses.listed
        )
        if isinstance(listed, PollProblem):
            return self._share_groups
        unlisted = [name for name in due if name not in listed][:_MAX_UNLISTED_GROUPS]
        shares = {name for name in unlisted if self._is_unsupported_group(name, until)}
        if shares:
            committed = self.commits(dict.fromkeys(shares, ()), until)()
            shares = {name for name, answer in committed.items() if answer == {}}
        # Names beyond the greatest number have their turn at the next poll.
        checked = listed.intersection(due).union(unlisted)
        self._kind_checked_at |= dict.fromkeys(checked, now)
        self._share_groups = (self._share_groups - checked) | shares
        return self._share_groups

    def _is_unsupported_group(self, name: str, until: float) -> bool:
        try:
            with warnings.catch_warnings():
                # The listing is old, but nothing newer names groups of other kinds.
                warnings.simplefilter("ignore", DeprecationWarning)
                answer: Any = self._admin.list_groups(name, timeout=_compute_timeout(until))
        except KafkaException:
            return False
        return any(group.id == name and group.state == "Dead" for group in answer)

    def _check_addresses(self, until: float) -> PollProblem | None:
        """Why nothing may be asked: an address of the cluster is refused, or it does not tell its addresses."""
        try:
            return (
                PollProblem(PollCode.ADDRESS_REFUSED)
                if self._guard.check_listeners(self._admin, _compute_timeout(until))
                else None
            )
        except KafkaException as failed:
            return self._to_problem(failed.args[0])

    def _collect_offsets(self, asked: Mapping[Any, Future[Any]], until: float) -> dict[Partition, int]:
        answer: dict[Partition, int] = {}
        for key, future in asked.items():
            offset = self._await_result(future, until, lambda result: int(result.offset))
            if not isinstance(offset, PollProblem) and offset >= 0:
                answer[(key.topic, key.partition)] = offset
        return answer

    def _await_result(self, future: Future[Any] | None, until: float, read: Callable[[Any], Any]) -> Any:
        if future is None:
            return self._explain_silence(PollCode.TIMEOUT, "")
        try:
            answer = future.result(timeout=max(until - time.monotonic(), 0.0))
            self._answered = True
            return read(answer)
        except KafkaException as failed:
            return self._to_problem(failed.args[0])
        except FutureTimeout:
            return self._explain_silence(PollCode.TIMEOUT, "")

    def _to_problem(self, error: KafkaError) -> PollProblem:
        code = _CODES.get(error.code(), PollCode.FAILED)
        if code in {PollCode.TIMEOUT, PollCode.UNREACHABLE}:
            return self._explain_silence(code, "")
        return PollProblem(code, error.name() if code is PollCode.FAILED else "")

    @property
    def needs_replacement(self) -> bool:
        """Whether another client must take over.

        After a broker's restart librdkafka may send no more requests for commits on the old connection, for ever.
        """
        return self._silent and time.monotonic() - self._opened_at > self.lifetime_seconds

    def _explain_silence(self, code: PollCode, detail: str) -> PollProblem:
        self._mark_silent()
        # Callbacks are served here: errors of connections come by them only.
        self._admin.poll(0)
        if self._guard.refused(_REASON_MAX_AGE_SECONDS):
            return PollProblem(PollCode.ADDRESS_REFUSED)
        recent = time.monotonic() - _REASON_MAX_AGE_SECONDS
        for reason in _REASONS:
            if self._reasons.get(reason, recent) > recent:
                return PollProblem(reason, detail)
        return PollProblem(code, detail)

    def _mark_silent(self) -> None:
        self._silent = True
        self._abandoned_until = time.monotonic() + (_PENDING_SECONDS if self._answered else 2 * _MIN_TIMEOUT_SECONDS)

    @property
    def busy_until(self) -> float:
        """Until when the library may be at work on what was given up here: closed before that, it could crash."""
        is_quiet = self._commits.is_quiet and self._states.is_quiet
        return self._abandoned_until if is_quiet else float("inf")

    def close(self) -> None:
        """End the library's client and its threads now: errors' tracebacks keep this object until a collection."""
        del self._admin

    def _on_error(self, error: KafkaError) -> None:
        if (code := _CODES.get(error.code())) is not None:
            self._reasons[code] = time.monotonic()


def _compute_timeout(until: float) -> float:
    return max(until - time.monotonic() - _CLIENT_MARGIN_SECONDS, _MIN_TIMEOUT_SECONDS)
