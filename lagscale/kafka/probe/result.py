"""Request and result of a cluster probe: plain data that travels between processes as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StepOutcome(StrEnum):
    """Outcome of a step: `NOT_TRIED` after a failed step or a timeout, `NOT_USED` if the protocol has no such step."""

    OK = "ok"
    FAILED = "failed"
    NOT_TRIED = "not_tried"
    NOT_USED = "not_used"


class AccessStatus(StrEnum):
    """Whether a permission is granted; `UNKNOWN` if the cluster did not report it."""

    GRANTED = "granted"
    DENIED = "denied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A cluster to probe.

    Attributes:
        bootstrap: `host:port` each.
        security: the canonical form, without secrets.
        secrets: all of them, decrypted and resolved. They travel through a pipe only.
        rules: `AddressRules.text`.
        seconds: timeout of the probe.
        groups: group -> topics whose commits are read; empty: all topics with commits.
        read_committed: whether lag ends at the last stable offset.
        each_address: whether to try each bootstrap server and each advertised listener by itself.
    """

    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    secrets: Mapping[str, str]
    rules: str
    seconds: float
    properties: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()
    read_committed: bool = False
    each_address: bool = True
    with_topic_names: bool = False


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One step, and what to do if it failed."""

    outcome: StepOutcome = StepOutcome.NOT_TRIED
    text: str = ""


@dataclass(slots=True)
class AddressResult:
    """A bootstrap server, or a listener that a broker advertises, step by step: name, TCP, TLS, SASL, metadata request.

    `address` is `host:port` as given or advertised; `broker` is the id of the broker that advertises it.
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
    """One permission on one resource.

    Attributes:
        permission: what it is needed for, for example `describe_topic`.
        kind: `cluster`, `topic` or `group`.
        name: of the resource; empty if none is registered.
        grant: the command that grants it; empty if it is granted.
    """

    permission: str
    kind: str
    name: str
    status: AccessStatus
    text: str = ""
    grant: str = ""


@dataclass(frozen=True, slots=True)
class TopicResult:
    """A topic and its number of partitions: 0 if it does not exist, None if unknown."""

    name: str
    partitions: int | None = None


@dataclass(frozen=True, slots=True)
class TopicLag:
    """What a group has not read of a topic, messages; of partitions with a committed offset.

    Attributes:
        lag: what it can read.
        lost: what retention deleted before it was read.
        unstable: what lies behind the last stable offsets, because a transaction is open.
    """

    lag: int
    lost: int = 0
    unstable: int = 0


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A group; None where something is unknown.

    Attributes:
        kind: `classic` or `consumer`.
        commits: topic -> number of partitions with a committed offset.
        lags: topic -> its lag; without topics whose offsets could not be read.
        invalid: topic -> an offset that no topic can have, in place of its lag.
    """

    name: str
    kind: str | None = None
    members: int | None = None
    commits: Mapping[str, int] | None = None
    lags: Mapping[str, TopicLag] = field(default_factory=dict)
    invalid: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class ProbeResult:
    """Result of a probe, complete or as far as it came before its timeout.

    Attributes:
        problem: a named state such as `unreachable`, why the probe ended early; empty if it is complete.
        text: the problem in words, with a remediation.
        version: minimum Kafka version of the brokers.
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
