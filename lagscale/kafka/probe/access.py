"""Tries the rights that measuring needs, one by one, and says what to grant. Only reads are asked for."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from threading import Event
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient
from confluent_kafka.admin import OffsetSpec as _Spec

from lagscale.kafka.errors import AUTHORIZATION_FAILED, KINDS, NO_TOPIC
from lagscale.kafka.probe.connect import Apis
from lagscale.kafka.probe.result import GroupFound, Holding, Right, TopicFound

_LATEST: Any = _Spec.latest()
_METADATA, _TELLS_OPERATIONS = 3, 8
#: Errors of a coordinator that is on its way; a fresh cluster has none for some seconds.
_MOVING = {"not_coordinator", "coordinator_not_available", "coordinator_load_in_progress"}
_PAUSE_SECONDS = 0.3
_MOST_MORE = 50
_SLOW = "The cluster did not answer in time."
_WHY = {
    "describe_cluster": "Without it the cluster does not list all groups, so the kind of a group cannot be told.",
    "describe_topic": "Without it the topic cannot be found.",
    "list_offsets": "Without it the topic's ends are not known, so there is no lag.",
    "describe_group": "Without it the group's members are not known.",
    "read_commits": "Without it the group's position is not known, so there is no lag.",
}
#: What each right is called with `kafka-acls`: the flag of the resource.
_FLAG = {"topic": "--topic", "group": "--group"}


class Rights:
    """Tries rights with one client until a moment of `time.monotonic()`."""

    def __init__(self, admin: AdminClient, principal: str, server: str, apis: Apis, until: float) -> None:
        self._admin, self._principal, self._server, self._apis, self._until = admin, principal, server, apis, until
        self.rights: list[Right] = []
        self.topics: dict[str, TopicFound] = {}
        self.groups: dict[str, GroupFound] = {}

    def try_all(self, topics: Iterable[str], groups: Mapping[str, tuple[str, ...]]) -> None:
        """Try them all; what could not be told in time is not known."""
        names = sorted(set(topics) | {name for wanted in groups.values() for name in wanted})
        self._cluster()
        commits = self._groups(groups)
        # Of a group without named topics those matter on which it has commits.
        more = {part.topic for name, found in commits.items() if not groups[name] for part in found if part.offset >= 0}
        ends = self._topics(sorted(set(names) | set(sorted(more - set(names))[:_MOST_MORE])))
        for name, found in commits.items():
            self.groups[name] = _with_commits(self.groups[name], found, groups[name], ends)

    def _cluster(self) -> None:
        asked = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=self._timeout())
        found = self._answer(asked)
        if isinstance(found, str):
            self._note("describe_cluster", "cluster", "", _of_problem(found), _of_error(found))
        elif self._apis.get(_METADATA, (0, _TELLS_OPERATIONS))[1] < _TELLS_OPERATIONS:
            self._note("describe_cluster", "cluster", "", Holding.NOT_KNOWN, "This broker does not tell rights.")
        else:
            held = {AclOperation.DESCRIBE, AclOperation.ALL} & set(found.authorized_operations or ())
            self._note("describe_cluster", "cluster", "", Holding.GRANTED if held else Holding.DENIED)

    def _topics(self, names: list[str]) -> dict[str, dict[int, int]]:
        """Describe the topics and read their ends: topic -> partition -> end offset."""
        if not names:
            for right in ("describe_topic", "list_offsets"):
                self._note(right, "topic", "", Holding.NOT_KNOWN, "No monitor of this cluster names a topic yet.")
            return {}
        asked = self._admin.describe_topics(TopicCollection(names), request_timeout=self._timeout())
        partitions: list[TopicPartition] = []
        for name in names:
            found = self._answer(asked[name])
            absent = found == NO_TOPIC
            known = not isinstance(found, str)
            self.topics[name] = TopicFound(name, len(found.partitions) if known else 0 if absent else None)
            # A broker tells only those that the topic is not there who may know it.
            holding = Holding.GRANTED if known or absent else _of_problem(str(found))
            text = "There is no such topic." if absent else "" if known else _of_error(str(found))
            self._note("describe_topic", "topic", name, holding, text)
            if known:
                partitions += [TopicPartition(name, part.id) for part in found.partitions if part.leader is not None]
            elif absent:
                self._note("list_offsets", "topic", name, Holding.NOT_KNOWN, text)
            else:
                self._note("list_offsets", "topic", name, holding, text)
        return self._ends(partitions)

    def _ends(self, partitions: list[TopicPartition]) -> dict[str, dict[int, int]]:
        ends: dict[str, dict[int, int]] = {}
        problems: dict[str, str] = {}
        if partitions:
            asked = self._admin.list_offsets(
                dict.fromkeys(partitions, _LATEST),
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=self._timeout(),
            )
            for partition, future in asked.items():
                found = self._answer(future)
                if isinstance(found, str):
                    problems[partition.topic] = found
                else:
                    ends.setdefault(partition.topic, {})[partition.partition] = int(found.offset)
        for topic in {partition.topic for partition in partitions}:
            problem = problems.get(topic)
            if problem is not None:
                # A sum over a part would be told too low.
                ends.pop(topic, None)
            self._note("list_offsets", "topic", topic, Holding.GRANTED if problem is None else _of_problem(problem))
        return ends

    def _groups(self, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """Describe the groups and read their commits: group -> its partitions with their offsets."""
        if not groups:
            for right in ("describe_group", "read_commits"):
                self._note(right, "group", "", Holding.NOT_KNOWN, "No monitor of this cluster names a group yet.")
            return {}
        ready: list[str] = []
        for name, found in self._described(list(groups)).items():
            if isinstance(found, str):
                self.groups[name] = GroupFound(name)
                for right in ("describe_group", "read_commits"):
                    self._note(right, "group", name, _of_problem(found), _of_error(found))
            else:
                kind = getattr(getattr(found, "type", None), "name", "UNKNOWN").lower()
                self.groups[name] = GroupFound(name, None if kind == "unknown" else kind, len(found.members))
                self._note("describe_group", "group", name, Holding.GRANTED)
                ready.append(name)
        return self._commits(ready)

    def _described(self, names: list[str]) -> dict[str, Any]:
        """What the cluster says of each group, or the name of the problem; asked again while coordinators move."""
        found: dict[str, Any] = {}
        left = names
        while left:
            asked = self._admin.describe_consumer_groups(left, request_timeout=self._timeout())
            found |= {name: self._answer(asked[name]) for name in left}
            left = [name for name in left if isinstance(found[name], str) and found[name] in _MOVING]
            if time.monotonic() + _PAUSE_SECONDS > self._until:
                break
            if left:
                Event().wait(_PAUSE_SECONDS)
        return {name: found[name] for name in names}

    def _commits(self, ready: list[str]) -> dict[str, Any]:
        commits: dict[str, Any] = {}
        asked: dict[str, Future[Any]] = {}
        # The client crashes when a broker answers that it does not coordinate the group; those were described just now.
        for name in ready:
            request = [ConsumerGroupTopicPartitions(name, None)]
            asked |= self._admin.list_consumer_group_offsets(request, request_timeout=self._timeout())
        for name, future in asked.items():
            found = self._answer(future)
            if isinstance(found, str):
                self._note("read_commits", "group", name, _of_problem(found), _of_error(found))
                continue
            self._note("read_commits", "group", name, Holding.GRANTED)
            commits[name] = found.topic_partitions
        return commits

    def _note(self, right: str, kind: str, name: str, holding: Holding, text: str = "") -> None:
        if holding is Holding.DENIED:
            text = _WHY[right]
        elif holding is Holding.NOT_KNOWN and not text:
            text = _SLOW
        # Where nothing has a name yet, it is told what everything would need.
        wanted = holding is Holding.DENIED or (holding is Holding.NOT_KNOWN and not name)
        grant = grant_line(self._principal, self._server, kind, name) if wanted else ""
        self.rights.append(Right(right, kind, name, holding, text, grant))

    def _answer(self, future: Future[Any]) -> Any:
        """The result, or the name of the problem."""
        try:
            return future.result(timeout=max(self._until - time.monotonic(), 0.0))
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            return KINDS.get(error.code(), error.name().lower())
        except FutureTimeout:
            return "timeout"

    def _timeout(self) -> float:
        return max(self._until - time.monotonic() - 0.1, 0.2)


def _of_problem(problem: str) -> Holding:
    return Holding.DENIED if problem == AUTHORIZATION_FAILED else Holding.NOT_KNOWN


def _of_error(problem: str) -> str:
    """What to say of an error that is neither a missing right nor a lack of time."""
    if problem in {"timeout", "unreachable", AUTHORIZATION_FAILED}:
        return ""
    return f"The cluster answered with an error ({problem}); try again."


def _with_commits(
    group: GroupFound, committed: Iterable[Any], wanted: tuple[str, ...], ends: Mapping[str, Mapping[int, int]]
) -> GroupFound:
    count: dict[str, int] = dict.fromkeys(wanted, 0)
    lag: dict[str, int] = {}
    for part in committed:
        if part.error is not None or part.offset < 0 or (wanted and part.topic not in count):
            continue
        count[part.topic] = count.get(part.topic, 0) + 1
        end = ends.get(part.topic, {}).get(part.partition)
        if end is not None:
            lag[part.topic] = lag.get(part.topic, 0) + max(end - int(part.offset), 0)
    return GroupFound(group.name, group.kind, group.members, count, lag)


def grant_line(principal: str, server: str, kind: str, name: str) -> str:
    """The command by which an administrator of the cluster grants the right; for all where no name is known."""
    resource = ["--cluster"] if kind == "cluster" else [_FLAG[kind], name or "*"]
    argv = [
        "kafka-acls",
        "--bootstrap-server",
        server,
        "--add",
        "--allow-principal",
        principal,
        "--operation",
        "Describe",
    ]
    return shlex.join([*argv, *resource])


def principal_of(security: Mapping[str, Any], subject: Callable[[str], str]) -> str:
    """The name under which the cluster knows this client, as far as it can be told from here."""
    if str(security.get("protocol", "PLAINTEXT")).startswith("SASL_"):
        if security.get("mechanism") == "OAUTHBEARER":
            return "User:<subject of the token>"
        # A name that stands outside is not shown.
        return f"User:{security.get('username') or '<its user name>'}"
    certificate = security.get("certificate")
    return f"User:{subject(str(certificate))}" if certificate else "User:ANONYMOUS"
