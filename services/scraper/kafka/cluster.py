"""Requests to one Kafka cluster, for `polling/poll.py` and `topics/discovery.py`.

librdkafka up to 2.16 can abort its process when a coordinator is looked up too late (`coordinators.py`), when a
coordinator moves (confluentinc/librdkafka#5040), and when a client authenticates again on a connection in use. That ends
a worker and fails a batch; the query is then restarted.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
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

from lagscale.domain.state_codes import StateCode
from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules, split_server
from lagscale.kafka.client import ERROR_STATES, ROOT_CAUSES
from lagscale.kafka.errors import TLS_REQUIRED, classify_error, explain_sasl_error, explain_tls_error, requires_tls
from lagscale.kafka.resolver_guard import open_admin
from services.scraper import deadlines
from services.scraper.kafka.coordinators import (
    OFFSETS_TOPIC,
    CoordinatorRequests,
    find_check_key,
    find_move_problem,
    read_commits,
    read_group,
)
from services.scraper.polling.round import Committed, Ends, GroupDescription, Partition, PollProblem, TopicDescription

_EARLIEST: Any = _Spec.earliest()
_LATEST: Any = _Spec.latest()
_NO_PROBLEM = PollProblem(StateCode.OK)


class _ClientLogThrottle(logging.Filter):
    """Passes one line of each kind a minute: for a dead broker the client repeats the same line many times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.args[0] if isinstance(record.args, tuple) and record.args else record.msg)[:40]
        now = time.monotonic()
        if now - self._logged_at.get(kind, -deadlines.CLIENT_LOG_SECONDS) < deadlines.CLIENT_LOG_SECONDS:
            return False
        self._logged_at[kind] = now
        return True


@cache
def _open_client_log() -> logging.Logger:
    log = logging.getLogger(f"{__name__}.client")
    log.addFilter(_ClientLogThrottle())
    return log


class KafkaCluster:
    """Requests to one cluster. All times are `time.monotonic()` seconds."""

    def __init__(
        self,
        config: Mapping[str, Any],
        lifetime_seconds: float = deadlines.MIN_CLIENT_LIFETIME_SECONDS,
        rules: AddressRules = ANY_ADDRESS,
    ) -> None:
        """Create a client; nothing is connected yet. It serves for its lifetime even if its requests are not answered.

        Raises:
            ValueError: the client refuses the settings, or this build of it cannot enforce the address rules.
        """
        self._config = config
        self._rules = rules
        #: Time and text of the last error of each kind.
        self._reasons: dict[StateCode, tuple[float, str]] = {}
        self._connect_failed = False
        self._tls_required: bool | None = None
        self._opened_at = time.monotonic()
        self.lifetime_seconds = lifetime_seconds
        self._silent = self._answered = self._is_disconnected = False
        self._abandoned_until = 0.0
        self._commits, self._states = CoordinatorRequests(), CoordinatorRequests()
        self._offsets_partition_count: int | None = None
        self._share_groups: frozenset[str] = frozenset()
        self._kind_checked_at: dict[str, float] = {}
        self._coordinator_ok_at: dict[int | str, float] = {}
        self._undescribed_until = float("-inf")
        try:
            self._admin, self._guard = open_admin({**config, "error_cb": self._on_error}, rules, _open_client_log())
        except (KafkaException, ValueError, TypeError, RuntimeError) as refused:
            raise ValueError("the client refuses the settings") from refused

    def describe_topics(self, names: Sequence[str], until: float) -> dict[str, TopicDescription | PollProblem]:
        """Id and partitions of each topic; a problem for a topic that is unknown or forbidden, or for all."""
        if (refused := self._check_addresses(until)) is not None:
            return dict.fromkeys(names, refused)
        asked = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=_compute_timeout(until))
        return {name: self._await_result(asked[name], until, _read_topic) for name in names}

    def list_topics(self, until: float) -> frozenset[str] | PollProblem:
        """Names of all topics that the cluster's user may describe."""
        if (refused := self._check_addresses(until)) is not None:
            return refused
        try:
            return frozenset(self._admin.list_topics(timeout=_compute_timeout(until)).topics)
        except KafkaException as failed:
            return self._to_problem(failed.args[0])

    def request_commits(
        self, groups: Mapping[str, Sequence[Partition]], until: float
    ) -> Callable[[], dict[str, Committed | PollProblem]]:
        """Request the committed offsets of groups, of all topics where no partition is named; call the result to collect."""
        moving_groups = self._find_moving_coordinators(list(groups), until)

        def send(group: str, timeout: float) -> Future[Any]:
            # None requests all partitions with commits.
            requested = [TopicPartition(topic, number) for topic, number in groups[group]] or None
            request = [ConsumerGroupTopicPartitions(group, requested)]
            asked: Mapping[str, Future[Any]] = self._admin.list_consumer_group_offsets(request, request_timeout=timeout)
            return asked[group]

        collect = self._commits.ask([group for group in groups if group not in moving_groups], send, until)

        def collect_commits() -> dict[str, Committed | PollProblem]:
            answers = moving_groups | collect(lambda future: self._await_result(future, until, read_commits))
            if all(isinstance(answer, PollProblem) for answer in answers.values()):
                # Nothing shows that it is only descriptions that are not answered.
                self._undescribed_until = float("-inf")
            return answers

        return collect_commits

    def _find_moving_coordinators(self, groups: list[str], until: float) -> dict[str, PollProblem]:
        """The groups whose coordinator is moving, or does not answer.

        A request for commits to a broker that is not the group's coordinator, as while brokers restart, crashes the
        library (confluentinc/librdkafka#5040); a request for the state only fails. One group is checked for all whose
        commits are in the same partition, and each where the number of those partitions is not known.
        """
        now = time.monotonic()
        partition_count = self._offsets_partition_count or self._count_offsets_partitions(until)
        keys = {group: find_check_key(group, partition_count) for group in groups}
        due: dict[int | str, str] = {}
        for group, key in keys.items():
            if now - self._coordinator_ok_at.get(key, float("-inf")) > deadlines.COORDINATOR_OK_SECONDS:
                due.setdefault(key, group)
        # Groups of an offsets partition without a leader have no coordinator, perhaps for hours; the others have one.
        check_until = now + (until - now) * deadlines.COORDINATOR_CHECK_SHARE
        problems = self._check_coordinators(set(due.values()), check_until, until) if due else {}
        moving = {key: problems[group] for key, group in due.items() if group in problems}
        self._coordinator_ok_at |= dict.fromkeys(due.keys() - moving.keys(), now)
        if moving:
            # The client caches coordinators for long; a new one looks them up again.
            self._mark_silent()
        return {group: moving[key] for group, key in keys.items() if key in moving}

    def _check_coordinators(self, groups: set[str], check_until: float, until: float) -> dict[str, PollProblem]:
        """The groups whose coordinator cannot be asked for commits now."""
        if not self.describes_groups:
            return {} if self._do_brokers_answer(until) else dict.fromkeys(groups, PollProblem(StateCode.TIMEOUT))
        began_at = time.monotonic()
        descriptions = self.request_groups(sorted(groups), check_until)()
        moving = {group: found for group, one in descriptions.items() if (found := find_move_problem(one)) is not None}
        is_silent = len(moving) == len(groups) and all(one.code is StateCode.TIMEOUT for one in moving.values())
        if is_silent and time.monotonic() - began_at > deadlines.MIN_SILENCE_SECONDS and self._do_brokers_answer(until):
            # There are brokers, and proxies before them, that answer everything but this.
            self._undescribed_until = began_at + deadlines.DESCRIBE_RETRY_SECONDS
            return {}
        return moving

    def _do_brokers_answer(self, until: float) -> bool:
        """Whether each broker lists its groups: none has failed, and none is still loading them."""
        list_until = time.monotonic() + (until - time.monotonic()) * deadlines.COORDINATOR_CHECK_SHARE
        pending = self._admin.list_consumer_groups(request_timeout=_compute_timeout(list_until))
        return self._await_result(pending, list_until, lambda listing: not listing.errors) is True

    @property
    def describes_groups(self) -> bool:
        """Whether the cluster answers requests for states and members of groups, as far as is known."""
        return time.monotonic() >= self._undescribed_until

    def _count_offsets_partitions(self, until: float) -> int | None:
        """Partitions of `__consumer_offsets`; None while the cluster does not describe the topic, or has none."""
        answer = self.describe_topics([OFFSETS_TOPIC], until)[OFFSETS_TOPIC]
        if isinstance(answer, PollProblem) or not answer.partitions:
            return None
        self._offsets_partition_count = len(answer.partitions)
        return self._offsets_partition_count

    def request_ends(
        self, partitions: Iterable[Partition], committed_only: Iterable[Partition], until: float
    ) -> Callable[[], Ends]:
        """Request log starts and high watermarks, and last stable offsets of some; call the result to collect."""
        every = {TopicPartition(topic, number): None for topic, number in partitions}
        stable = {TopicPartition(topic, number): None for topic, number in committed_only}
        timeout = _compute_timeout(until)

        def ask(requested: Iterable[TopicPartition], spec: Any, level: IsolationLevel) -> Mapping[Any, Future[Any]]:
            specs = dict.fromkeys(requested, spec)
            return self._admin.list_offsets(specs, isolation_level=level, request_timeout=timeout) if specs else {}

        starts = ask(every, _EARLIEST, IsolationLevel.READ_UNCOMMITTED)
        highs = ask(every, _LATEST, IsolationLevel.READ_UNCOMMITTED)
        lasts = ask(stable, _LATEST, IsolationLevel.READ_COMMITTED)
        return lambda: Ends(*(self._collect_offsets(asked, until) for asked in (starts, highs, lasts)))

    def request_groups(
        self, names: Sequence[str], until: float
    ) -> Callable[[], dict[str, GroupDescription | PollProblem]]:
        """Request states and member counts of groups; call the result to collect."""
        if (refused := self._check_addresses(until)) is not None:
            return lambda: dict.fromkeys(names, refused)
        if not self.describes_groups:
            # Waiting for each would leave no time for commits and end offsets.
            return lambda: dict.fromkeys(names, PollProblem(StateCode.MEMBERS_UNKNOWN))

        def send(name: str, timeout: float) -> Future[Any]:
            asked: Mapping[str, Future[Any]] = self._admin.describe_consumer_groups([name], request_timeout=timeout)
            return asked[name]

        collect = self._states.ask(names, send, until)
        return lambda: collect(lambda future: self._await_result(future, until, read_group))

    def find_share_groups(self, names: Sequence[str], until: float) -> frozenset[str]:
        """Which of the groups are share groups; looked up for new names, and every half minute for all.

        The client does not support the kind. It omits such a group from the consumer groups; the older listing of all
        groups names it with the state Dead, and it has no commits, unlike a group of Kafka Streams.
        """
        now = time.monotonic()
        period = deadlines.GROUP_KIND_SECONDS
        due = [name for name in names if now - self._kind_checked_at.get(name, -period) >= period]
        if not due or not self.describes_groups:
            return self._share_groups
        pending = self._admin.list_consumer_groups(request_timeout=_compute_timeout(until))
        listed = self._await_result(pending, until, lambda listing: {one.group_id for one in listing.valid})
        if isinstance(listed, PollProblem):
            return self._share_groups
        unlisted = [name for name in due if name not in listed][: deadlines.MAX_UNLISTED_GROUPS]
        # This describes groups one by one, and a cluster may answer everything but that.
        kind_until = now + (until - now) * deadlines.GROUP_KIND_SHARE
        shares = {
            name for name in unlisted if time.monotonic() < kind_until and self._is_unsupported_group(name, kind_until)
        }
        if shares:
            committed = self.request_commits(dict.fromkeys(shares, ()), until)()
            shares = {name for name, answer in committed.items() if answer == {}}
        # Names beyond the limit are checked at the next poll.
        checked = listed.intersection(due).union(unlisted)
        self._kind_checked_at |= dict.fromkeys(checked, now)
        self._share_groups = (self._share_groups - checked) | shares
        return self._share_groups

    def _is_unsupported_group(self, name: str, until: float) -> bool:
        try:
            with warnings.catch_warnings():
                # The call is deprecated, but no newer one names groups of other kinds.
                warnings.simplefilter("ignore", DeprecationWarning)
                answer: Any = self._admin.list_groups(name, timeout=_compute_timeout(until))
        except KafkaException:
            return False
        return any(group.id == name and group.state == "Dead" for group in answer)

    def _check_addresses(self, until: float) -> PollProblem | None:
        """Why no request may be sent: an address of the cluster is denied, or its addresses cannot be read."""
        try:
            refused = self._guard.check_listeners(self._admin, _compute_timeout(until))
            return PollProblem(StateCode.ADDRESS_REFUSED) if refused else None
        except KafkaException as failed:
            return self._to_problem(failed.args[0])

    def _collect_offsets(self, asked: Mapping[Any, Future[Any]], until: float) -> dict[Partition, int]:
        answer: dict[Partition, int] = {}
        for key, future in asked.items():
            offset = self._await_result(future, until, lambda result: int(result.offset))
            if not isinstance(offset, PollProblem):
                answer[(key.topic, key.partition)] = offset
        return answer

    def _await_result(self, future: Future[Any] | None, until: float, read: Callable[[Any], Any]) -> Any:
        if future is None:
            return self._explain_silence(StateCode.TIMEOUT)
        try:
            answer = future.result(timeout=max(until - time.monotonic(), 0.0))
            self._answered = True
            return read(answer)
        except KafkaException as failed:
            return self._to_problem(failed.args[0])
        except FutureTimeout:
            return self._explain_silence(StateCode.TIMEOUT)

    def _to_problem(self, error: KafkaError) -> PollProblem:
        code = ERROR_STATES.get(error.code(), StateCode.FAILED)
        if code in {StateCode.TIMEOUT, StateCode.UNREACHABLE}:
            return self._explain_silence(code)
        return PollProblem(code, error.name() if code is StateCode.FAILED else "")

    @property
    def needs_replacement(self) -> bool:
        """Whether another client must take over.

        After a restart of a broker librdkafka may never again send requests for commits on the old connection.
        """
        return self._silent and time.monotonic() - self._opened_at > self.lifetime_seconds

    @property
    def has_lost_connections(self) -> bool:
        """Whether a client that was answered has no connection left, as brokers close idle ones, and end.

        librdkafka 2.16 may never again send a request to a coordinator whose connection was closed before.
        """
        # This serves callbacks.
        self._admin.poll(0)
        return self._answered and self._is_disconnected

    def _explain_silence(self, code: StateCode) -> PollProblem:
        self._mark_silent()
        # This serves callbacks, which alone report errors of connections.
        self._admin.poll(0)
        if self._guard.refused(deadlines.REASON_MAX_AGE_SECONDS):
            return PollProblem(StateCode.ADDRESS_REFUSED)
        recent, text = time.monotonic() - deadlines.REASON_MAX_AGE_SECONDS, ""
        for reason in ROOT_CAUSES:
            at, reason_text = self._reasons.get(reason, (recent, ""))
            if at > recent:
                code, text = reason, reason_text
                break
        if code is StateCode.UNREACHABLE and not self._connect_failed and self._requires_tls():
            return PollProblem(StateCode.TLS_FAILED, text=TLS_REQUIRED)
        return PollProblem(code, text=text)

    def _requires_tls(self) -> bool:
        """Whether the first bootstrap server uses TLS and the client does not; asked once.

        Of a connection that is accepted and closed again the client says only that all brokers are down.
        """
        if self._tls_required is None:
            server = split_server(str(self._config["bootstrap.servers"]).partition(",")[0])
            self._tls_required = requires_tls(self._config, *server, self._rules, deadlines.TLS_PROBE_SECONDS)
        return self._tls_required

    def _mark_silent(self) -> None:
        self._silent = True
        seconds = deadlines.ABANDONED_SECONDS if self._answered else 2 * deadlines.MIN_TIMEOUT_SECONDS
        self._abandoned_until = time.monotonic() + seconds

    @property
    def busy_until(self) -> float:
        """Until when abandoned requests may be under way in the library, which can crash if it is closed before."""
        is_quiet = self._commits.is_quiet and self._states.is_quiet
        return self._abandoned_until if is_quiet else float("inf")

    def close(self) -> None:
        """End the library's client and its threads now: tracebacks of errors keep this object until a collection."""
        del self._admin

    def _on_error(self, error: KafkaError) -> None:
        self._is_disconnected |= error.code() == KafkaError._ALL_BROKERS_DOWN
        code, text = classify_error(error), ""
        if code is StateCode.TLS_FAILED:
            text = explain_tls_error(error.str(), self._config)
        elif code is StateCode.AUTHENTICATION_FAILED:
            text = explain_sasl_error(error.str())
        elif error.code() in {KafkaError._TRANSPORT, KafkaError._RESOLVE}:
            self._connect_failed = True
        if code is not None:
            self._reasons[code] = time.monotonic(), text


def _compute_timeout(until: float) -> float:
    return max(until - time.monotonic() - deadlines.CLIENT_MARGIN_SECONDS, deadlines.MIN_TIMEOUT_SECONDS)


def _read_topic(described: Any) -> TopicDescription:
    return TopicDescription(
        str(described.topic_id),
        {part.id: part.leader is not None and part.leader.id >= 0 for part in described.partitions},
    )
