"""What a look at a cluster asks for, and what it finds; plain data that travels between processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StepOutcome(StrEnum):
    """How a step went; `NOT_TRIED` because one before it failed or time was up, `NOT_USED` where there is no such step."""

    OK = "ok"
    FAILED = "failed"
    NOT_TRIED = "not_tried"
    NOT_USED = "not_used"


class AccessStatus(StrEnum):
    """Whether a right is held; `UNKNOWN` where nothing could tell."""

    GRANTED = "granted"
    DENIED = "denied"
    UNKNOWN = "not_known"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A cluster to look at.

    Attributes:
        bootstrap: `host:port` each.
        security: the canonical form; nothing secret in it.
        secrets: all of them, opened and resolved. They travel through a pipe only.
        rules: `AddressRules.text`.
        seconds: the look ends within so many.
        properties: of the Kafka client, as the cluster sets them.
        groups: group -> the topics on which its commits matter; none: all on which it has any.
        topics: topics beside those of groups.
        each_address: whether every bootstrap server is tried alone, and every listener that the brokers advertise.
        with_topic_names: whether the names of all topics are wanted.
    """

    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    secrets: Mapping[str, str]
    rules: str
    seconds: float
    properties: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    each_address: bool = True
    with_topic_names: bool = False


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One step, and what to do where it failed."""

    outcome: StepOutcome = StepOutcome.NOT_TRIED
    text: str = ""


@dataclass(slots=True)
class AddressResult:
    """A bootstrap server, or a listener that a broker advertises, step by step.

    Attributes:
        address: `host:port` as it was given or advertised.
        broker: the number of the broker that advertises it; None for a bootstrap server.
        resolved: the name has addresses that may be connected to.
        connected: a TCP connection.
        tls: the handshake.
        authenticated: SASL.
        answered: a request about the cluster was answered.
    """

    address: str
    broker: int | None = None
    resolved: ProbeStep = field(default_factory=ProbeStep)
    connected: ProbeStep = field(default_factory=ProbeStep)
    tls: ProbeStep = field(default_factory=ProbeStep)
    authenticated: ProbeStep = field(default_factory=ProbeStep)
    answered: ProbeStep = field(default_factory=ProbeStep)


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """One right on one resource.

    Attributes:
        permission: what it is needed for, as in `describe_topic`.
        kind: `cluster`, `topic` or `group`.
        name: of the resource; empty where none is registered.
    """

    permission: str
    kind: str
    name: str
    status: AccessStatus
    text: str = ""
    grant: str = ""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """A topic: its number of partitions, 0 where there is no such topic, None where that could not be told."""

    name: str
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group.

    Attributes:
        kind: `classic`, `consumer`; None where it could not be told.
        members: None where that could not be told.
        commits: topic -> number of partitions that it has committed on; None where commits could not be read.
        lag: topic -> messages behind over the partitions committed on; without a topic whose ends could not be read.
    """

    name: str
    kind: str | None = None
    members: int | None = None
    commits: Mapping[str, int] | None = None
    lag: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ProbeResult:
    """What a look has found until its time was up.

    Attributes:
        problem: a named state such as `unreachable`, why no more could be asked; empty where all was.
        text: the problem in words, and the way out.
        version: the least version of Kafka that knows what this broker knows; None where it does not tell.
        group_types: kinds of groups that the brokers know.
        topic_names: names of all topics, where they were wanted and told.
    """

    problem: str = ""
    text: str = ""
    addresses: list[AddressResult] = field(default_factory=list)
    advertised: list[AddressResult] = field(default_factory=list)
    access_checks: list[AccessCheck] = field(default_factory=list)
    version: str | None = None
    group_types: list[str] = field(default_factory=list)
    topics: list[TopicResult] = field(default_factory=list)
    groups: list[GroupResult] = field(default_factory=list)
    topic_names: list[str] | None = None
    seconds: float = 0.0
