"""Records that cross rooms: what the scaler knows of a registration, and what the scraper's writer reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota
from lagscale.domain.verdict.freezes import Freeze


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered monitor, as the scaler needs it.

    Attributes:
        topics: the names of the targets, in their order.
        partial_reason: why only some of its topics are measured; empty when all are.
        over_quota_reason: why some of its targets are not measured; empty when all are.
    """

    monitor_id: int
    tenant_id: int
    name: str
    cluster: str
    consumer_group: str
    topics: tuple[str, ...]
    policy: Policy
    given: Mapping[str, str]
    target_ids: tuple[int, ...]
    overridable: bool
    content_hash: str
    version: int
    partial_reason: str = ""
    over_quota_reason: str = ""


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """A tenant, as the scaler needs it: its rules, and its clusters' bootstrap addresses by name."""

    tenant_id: int
    name: str
    auto_register: bool
    min_sampling_seconds: int
    max_monitors: int
    clusters: Mapping[str, tuple[str, ...]]
    policy_defaults: Mapping[str, str] = field(default_factory=dict)
    policy_limits: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    version: int = 0
    calls_per_second: int = DEFAULT_QUOTAS[Quota.CALLS]


@dataclass(frozen=True, slots=True)
class Registrations:
    """All registrations at one version; every scaler has them in memory and in its local cache."""

    version: int
    tenants: tuple[TenantEntry, ...] = ()
    monitors: tuple[Registration, ...] = ()
    #: (KEDA instance, Kubernetes namespace or '*') -> tenant id
    bindings: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Freezes that had not ended when this was read.
    freezes: tuple[Freeze, ...] = ()
    #: The database's clock when this was read; None from the local cache.
    now_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write samples: an epoch that only the current leader's transactions carry."""

    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The outcome of appending a batch of rows."""

    stored: int
    duplicates: int
    refused: int  # stamped more than 1 s in the database's future
