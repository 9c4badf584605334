"""The only room that knows the database. The ports are here; `postgres*.py` and `memory.py` implement them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lagscale.domain.lag.rounds import SampleRow
from lagscale.domain.policy.policy import Policy
from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota
from lagscale.domain.verdict.contract import Answer, Judgment, VerdictRequest
from lagscale.domain.verdict.freezes import Freeze


class VerdictStore(Protocol):
    """Judges monitors from the stored samples. Async; used by the scaler and by the API."""

    async def judge(self, requests: Sequence[VerdictRequest]) -> list[Judgment]:
        """One judgement for each ask, in order, all from one snapshot.

        Raises:
            StoreUnavailable: the store did not answer in time.
        """
        ...

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        """The held answer for an unknown judgement, from the samples; None when there is nothing to hold."""
        ...


@dataclass(frozen=True, slots=True)
class Registration:
    """A monitor as the scaler needs it.

    Attributes:
        topics: the names of the targets, in their order.
        partial: why only a part of its topics is measured; empty when all are.
        over_quota: why some of its targets are not measured; empty when all are.
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
    partial: str = ""
    over_quota: str = ""


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """What the scaler needs of a tenant: its rules, its clusters by name, and their bootstrap addresses."""

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
    """Everything registered, at one version: kept in memory and on local scratch by every scaler."""

    version: int
    tenants: tuple[TenantEntry, ...] = ()
    monitors: tuple[Registration, ...] = ()
    #: (KEDA instance, Kubernetes namespace or '*') -> tenant id
    bindings: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: Those that had not ended when this was read.
    freezes: tuple[Freeze, ...] = ()
    #: The database's clock when this was read; None where it was not told.
    now_ms: int | None = None


@dataclass(frozen=True, slots=True)
class InlineMonitor:
    """A monitor to be created from trigger metadata; idempotent by `content_hash` within the tenant.

    Attributes:
        inherited: policy keys that the tenant's defaults add.
        tenant_version: of the tenant by whose rules it was made; 0 where that does not matter.
        asked_by: `instance`, `namespace` and `scaled_object`; empty where nobody knows.
    """

    tenant_id: int
    name: str
    cluster: str
    consumer_group: str
    topics: tuple[str, ...]
    given: Mapping[str, str]
    policy: Policy
    content_hash: str
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict)
    tenant_version: int = 0
    asked_by: Mapping[str, str] = field(default_factory=dict)

    @property
    def effective_policy(self) -> dict[str, str]:
        """The policy keys in force, as texts."""
        return {**self.inherited, **self.given}

    @property
    def actor(self) -> str:
        """Who had it created, as the audit names it."""
        if not self.asked_by:
            return "auto-registration"
        return f"keda {self.asked_by.get('instance', '')}/{self.asked_by.get('namespace', '')}"


class RegistrationStore(Protocol):
    """Reads registrations for the scaler and creates inline ones. Async."""

    async def version(self) -> int:
        """A number that grows with every change of a registration."""
        ...

    async def load(self) -> Registrations:
        """All registrations of all tenants, from one snapshot."""
        ...

    async def register(self, monitor: InlineMonitor) -> None:
        """Create the monitor and its targets unless its content exists.

        Raises:
            QuotaExceeded: the tenant has its greatest number of monitors.
        """
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write samples: an epoch that only the present leader's transactions carry."""

    holder: str
    epoch: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """What became of a batch of rows."""

    stored: int
    duplicates: int
    refused: int  # stamped more than 1 s in the database's future


class SampleStore(Protocol):
    """What the scraper's sink needs. Synchronous."""

    def newest(self, target_ids: Sequence[int]) -> dict[int, SampleRow]:
        """The newest row of each target that has one."""
        ...

    def append(self, rows: Sequence[tuple[int, int, SampleRow]], lease: Lease) -> AppendResult:
        """Store (tenant id, target id, row) by COPY in one transaction that checks the lease.

        Raises:
            LeaseLost: another scraper leads; nothing was written.
        """
        ...
