"""Checks the permissions that measuring needs, one by one, and names the command that grants them. Read-only."""

from __future__ import annotations

import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Event
from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient
from confluent_kafka.admin import OffsetSpec as _Spec
from cryptography import x509

from lagscale.domain.lag.offsets import OffsetInvalid, build_offsets, sum_topic_lag
from lagscale.domain.lag.samples import build_sample
from lagscale.domain.state_codes import StateCode
from lagscale.kafka.client import ERROR_STATES
from lagscale.kafka.probe.connect import ApiVersions
from lagscale.kafka.probe.result import AccessCheck, AccessStatus, GroupResult, TopicLag, TopicResult

#: The offsets of a partition that are read, in the order of `PartitionEnds`.
_ENDS: Any = (
    (_Spec.earliest(), IsolationLevel.READ_UNCOMMITTED),
    (_Spec.latest(), IsolationLevel.READ_UNCOMMITTED),
    (_Spec.latest(), IsolationLevel.READ_COMMITTED),
)
#: Log start, high watermark, last stable offset.
PartitionEnds = tuple[int, int, int]
_METADATA, _AUTHORIZED_OPERATIONS_VERSION = 3, 8
#: Errors while a coordinator moves or is elected; a new cluster has none for some seconds.
_TRANSIENT_ERRORS = {"not_coordinator", "coordinator_not_available", "coordinator_load_in_progress"}
_RETRY_SECONDS = 0.3
_MAX_EXTRA_TOPICS = 50
_TIMED_OUT = "The request to the cluster timed out."
#: Permission -> the kind of its resource, and what needs it.
_PURPOSES = {
    "describe_cluster": ("cluster", "Required to list all groups and to determine the group type."),
    "describe_topic": ("topic", "Required to find the topic."),
    "list_offsets": ("topic", "Required to read end offsets; without them there is no lag."),
    "describe_group": ("group", "Required to read the members of the group."),
    "read_commits": ("group", "Required to read committed offsets; without them there is no lag."),
}
#: Resource type -> its flag of `kafka-acls`.
_RESOURCE_FLAGS = {"topic": "--topic", "group": "--group"}


class AccessChecker:
    """Checks permissions with one client, until a point in time of `time.monotonic()`."""

    def __init__(self, admin: AdminClient, principal: str, server: str, apis: ApiVersions, until: float) -> None:
        self._admin, self._principal, self._server, self._apis, self._until = admin, principal, server, apis, until
        self.access_checks: list[AccessCheck] = []
        self.topics: dict[str, TopicResult] = {}
        self.groups: dict[str, GroupResult] = {}

    def check_all(
        self, topics: Iterable[str], groups: Mapping[str, tuple[str, ...]], *, read_committed: bool = False
    ) -> None:
        """Check them all; what the cluster does not report in time is unknown."""
        names = sorted(set(topics) | {name for group_topics in groups.values() for name in group_topics})
        self._check_cluster()
        commits = self._check_groups(groups)
        # For a group without named topics: those with commits.
        more = {
            part.topic for name, found in commits.items() if not groups[name] for part in found if _is_committed(part)
        }
        ends = self._check_topics(sorted(set(names) | set(sorted(more - set(names))[:_MAX_EXTRA_TOPICS])))
        for name, found in commits.items():
            self.groups[name] = add_commits(self.groups[name], found, groups[name], ends, read_committed)

    def _check_cluster(self) -> None:
        seconds = self._compute_timeout()
        found = self._await_result(
            self._admin.describe_cluster(include_authorized_operations=True, request_timeout=seconds)
        )
        if isinstance(found, str):
            self._add_check("describe_cluster", "", _to_access_status(found), _explain_problem(found))
        elif self._apis.get(_METADATA, (0, _AUTHORIZED_OPERATIONS_VERSION))[1] < _AUTHORIZED_OPERATIONS_VERSION:
            self._add_check(
                "describe_cluster",
                "",
                AccessStatus.UNKNOWN,
                "This broker version does not report authorized operations.",
            )
        else:
            allowed = {AclOperation.DESCRIBE, AclOperation.ALL} & set(found.authorized_operations or ())
            self._add_check("describe_cluster", "", AccessStatus.GRANTED if allowed else AccessStatus.DENIED)

    def _check_topics(self, names: list[str]) -> dict[str, dict[int, PartitionEnds]]:
        """Describe the topics and read the offsets of their partitions, by topic and partition."""
        if not names:
            for permission in ("describe_topic", "list_offsets"):
                self._add_check(permission, "", AccessStatus.UNKNOWN, "No monitor of this cluster names a topic.")
            return {}
        pending = self._admin.describe_topics(TopicCollection(names), request_timeout=self._compute_timeout())
        partitions: list[TopicPartition] = []
        for name in names:
            found = self._await_result(pending[name])
            absent = found == StateCode.NO_TOPIC
            is_readable = not isinstance(found, str)
            self.topics[name] = TopicResult(name, len(found.partitions) if is_readable else 0 if absent else None)
            # A broker reports that a topic does not exist only to clients that may describe it.
            status = AccessStatus.GRANTED if is_readable or absent else _to_access_status(str(found))
            text = "Topic not found." if absent else "" if is_readable else _explain_problem(str(found))
            self._add_check("describe_topic", name, status, text)
            if is_readable:
                partitions += [TopicPartition(name, part.id) for part in found.partitions if part.leader is not None]
            else:
                self._add_check("list_offsets", name, AccessStatus.UNKNOWN if absent else status, text)
        return self._read_ends(partitions)

    def _read_ends(self, partitions: list[TopicPartition]) -> dict[str, dict[int, PartitionEnds]]:
        timeout = self._compute_timeout()
        pending = [
            self._admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level, request_timeout=timeout)
            for spec, level in (_ENDS if partitions else ())
        ]
        ends: dict[str, dict[int, PartitionEnds]] = {}
        problems: dict[str, str] = {}
        for partition in partitions:
            found = [self._await_result(asked[partition]) for asked in pending]
            problem = next((one for one in found if isinstance(one, str)), None)
            if problem is None:
                start, high, stable = (int(one.offset) for one in found)
                ends.setdefault(partition.topic, {})[partition.partition] = start, high, stable
            else:
                problems[partition.topic] = problem
        for topic in {partition.topic for partition in partitions}:
            problem = problems.get(topic)
            if problem is not None:
                # A sum over some of the partitions would be too low.
                ends.pop(topic, None)
            self._add_check(
                "list_offsets", topic, AccessStatus.GRANTED if problem is None else _to_access_status(problem)
            )
        return ends

    def _check_groups(self, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """Describe the groups and read their commits: group -> partitions with their offsets."""
        if not groups:
            for permission in ("describe_group", "read_commits"):
                self._add_check(permission, "", AccessStatus.UNKNOWN, "No monitor of this cluster names a group.")
            return {}
        ready: list[str] = []
        for name, found in self._describe_groups(list(groups)).items():
            if isinstance(found, str):
                self.groups[name] = GroupResult(name)
                for permission in ("describe_group", "read_commits"):
                    self._add_check(permission, name, _to_access_status(found), _explain_problem(found))
            else:
                kind = getattr(getattr(found, "type", None), "name", "UNKNOWN").lower()
                self.groups[name] = GroupResult(name, None if kind == "unknown" else kind, len(found.members))
                self._add_check("describe_group", name, AccessStatus.GRANTED)
                ready.append(name)
        return self._read_commits(ready)

    def _describe_groups(self, names: list[str]) -> dict[str, Any]:
        """Description of each group, or the name of its error; retried while coordinators move."""
        found: dict[str, Any] = {}
        left = names
        while left:
            pending = self._admin.describe_consumer_groups(left, request_timeout=self._compute_timeout())
            found |= {name: self._await_result(pending[name]) for name in left}
            left = [name for name in left if isinstance(found[name], str) and found[name] in _TRANSIENT_ERRORS]
            if time.monotonic() + _RETRY_SECONDS > self._until:
                break
            if left:
                Event().wait(_RETRY_SECONDS)
        return {name: found[name] for name in names}

    def _read_commits(self, ready: list[str]) -> dict[str, Any]:
        commits: dict[str, Any] = {}
        pending: dict[str, Future[Any]] = {}
        # The client crashes on a response that the broker is not the coordinator; these groups were just described.
        for name in ready:
            request = [ConsumerGroupTopicPartitions(name, None)]
            pending |= self._admin.list_consumer_group_offsets(request, request_timeout=self._compute_timeout())
        for name, future in pending.items():
            found = self._await_result(future)
            if isinstance(found, str):
                self._add_check("read_commits", name, _to_access_status(found), _explain_problem(found))
                continue
            self._add_check("read_commits", name, AccessStatus.GRANTED)
            commits[name] = found.topic_partitions
        return commits

    def _add_check(self, permission: str, name: str, status: AccessStatus, text: str = "") -> None:
        kind, purpose = _PURPOSES[permission]
        if status is AccessStatus.DENIED:
            text = purpose
        elif status is AccessStatus.UNKNOWN and not text:
            text = _TIMED_OUT
        # Without any name yet, the command grants the permission on all resources.
        needs_grant = status is AccessStatus.DENIED or (status is AccessStatus.UNKNOWN and not name)
        grant = build_acl_command(self._principal, self._server, kind, name) if needs_grant else ""
        self.access_checks.append(AccessCheck(permission, kind, name, status, text, grant))

    def _await_result(self, future: Future[Any]) -> Any:
        """The result, or the name of the error."""
        try:
            return future.result(timeout=max(self._until - time.monotonic(), 0.0))
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            return ERROR_STATES.get(error.code(), error.name().lower())
        except FutureTimeout:
            return StateCode.TIMEOUT

    def _compute_timeout(self) -> float:
        return max(self._until - time.monotonic() - 0.1, 0.2)


def _to_access_status(problem: str) -> AccessStatus:
    return AccessStatus.DENIED if problem == StateCode.AUTHORIZATION_FAILED else AccessStatus.UNKNOWN


def _explain_problem(problem: str) -> str:
    """Text for an error that is neither a missing permission nor a timeout."""
    if problem in {StateCode.TIMEOUT, StateCode.UNREACHABLE, StateCode.AUTHORIZATION_FAILED}:
        return ""
    return f"The cluster returned an error ({problem}); retry."


def _is_committed(part: Any) -> bool:
    return part.error is None and part.offset != OFFSET_INVALID


def add_commits(
    group: GroupResult,
    committed: Iterable[Any],
    topics: tuple[str, ...],
    ends: Mapping[str, Mapping[int, PartitionEnds]],
    read_committed: bool,
) -> GroupResult:
    """The group with its commits, and with the lag of topics whose offsets were read, as the scraper measures it."""
    count: dict[str, int] = dict.fromkeys(topics, 0)
    lags: dict[str, list[TopicLag]] = defaultdict(list)
    invalid: dict[str, str] = {}
    for part in committed:
        if not _is_committed(part) or (topics and part.topic not in count):
            continue
        count[part.topic] = count.get(part.topic, 0) + 1
        if part.partition not in ends.get(part.topic, {}):
            continue
        start, high, stable = ends[part.topic][part.partition]
        try:
            end = stable if read_committed else high
            sample = build_sample(build_offsets(part.partition, start, end, int(part.offset), high), None)
            lags[part.topic].append(TopicLag(sample.lag, sample.lost, max(high - max(stable, start), 0)))
            sum_topic_lag(one.lag for one in lags[part.topic])
        except OffsetInvalid as refused:
            invalid[part.topic] = str(refused)
    sums = {
        topic: TopicLag(sum(p.lag for p in parts), sum(p.lost for p in parts), sum(p.unstable for p in parts))
        for topic, parts in lags.items()
        if topic not in invalid
    }
    return GroupResult(group.name, group.kind, group.members, count, sums, invalid)


def build_acl_command(principal: str, server: str, kind: str, name: str) -> str:
    """The `kafka-acls` command that grants DESCRIBE; on all resources if there is no name."""
    resource = ["--cluster"] if kind == "cluster" else [_RESOURCE_FLAGS[kind], name or "*"]
    command = ["kafka-acls", "--bootstrap-server", server, "--add", "--allow-principal", principal, "--operation"]
    return shlex.join([*command, "Describe", *resource])


def describe_principal(security: Mapping[str, Any]) -> str:
    """The principal that the cluster sees, as far as it is known here."""
    if str(security.get("protocol", "PLAINTEXT")).startswith("SASL_"):
        if security.get("mechanism") == "OAUTHBEARER":
            return "User:<subject of the token>"
        # A user name by reference is not shown.
        return f"User:{security.get('username') or '<user name>'}"
    certificate = security.get("certificate")
    return f"User:{_read_subject(str(certificate))}" if certificate else "User:ANONYMOUS"


def _read_subject(certificate: str) -> str:
    try:
        return x509.load_pem_x509_certificate(certificate.encode()).subject.rfc4514_string()
    except ValueError:
        return "<subject of the certificate>"
