"""From a caller and its trigger to monitors: whose tenant, which registrations, by which policy.

Pure over the registrations in memory; the servicer and the streams call it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from lagscale.domain.keys import BY_NAME
from lagscale.domain.policy import Policy
from lagscale.domain.signal import Ask
from lagscale.domain.tenancy import content_hash, inline_name, near_names, tenant_of
from lagscale.errors import Fault, InvalidInput, LagscaleError, NotFound
from lagscale.store import InlineMonitor, Registration, Registrations, TenantEntry
from services.scaler.metadata import Reader, Trigger

#: Keys that change what is measured: no registration opens them to override.
_NEVER_BESIDE: Final = frozenset(name for name, key in BY_NAME.items() if key.measures)
#: KEDA writes the index of the trigger before the name.
_INDEX: Final = re.compile(r"s\d+-")
#: Monitors whose short names are remembered.
_REMEMBERED: Final = 50_000
_HINT: Final = "check serviceType and the trigger's other keys, and that this namespace is bound to its tenant"
_ALSO_REGISTER: Final = "or register it"


@dataclass(frozen=True, slots=True)
class Subject:
    """One monitor as a caller asks for it.

    Attributes:
        name: of the metric.
        ask: None while an inline monitor has no registration yet; then `inline` says what to create.
        topics: the names of the targets, for texts.
        key: a short name of tenant, targets and policy, equal in every replica.
        version: of the registration.
        overrides: policy keys given beside it, None without any.
        partial: why the targets are only a part of the monitor's topics; empty when they are all.
        over_quota: why some of the targets are not measured; empty when all are.
    """

    tenant_id: int
    tenant: str
    name: str
    policy: Policy
    monitor_id: int | None
    ask: Ask | None
    topics: Mapping[int, str]
    key: str
    version: int | None = field(default=None, kw_only=True)
    overrides: Mapping[str, str] | None = field(default=None, kw_only=True)
    inline: InlineMonitor | None = None
    partial: str = ""
    over_quota: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a trigger asks for, in its order: a monitor, or the error in the place of one."""

    entries: tuple[Subject | LagscaleError, ...]

    def subjects(self) -> Iterator[Subject]:
        """Every monitor.

        Raises:
            LagscaleError: the first one that is none.
        """
        for entry in self.entries:
            if isinstance(entry, LagscaleError):
                raise type(entry)(entry.message)
            yield entry

    def metric(self, name: str) -> Subject:
        """The monitor of a metric name, with or without KEDA's index before it, in any case.

        Raises:
            NotFound: the trigger has no such metric.
            LagscaleError: its monitor has a fault.
        """
        wanted = name.lower()
        names = {wanted, _INDEX.sub("", wanted, count=1) if _INDEX.match(wanted) else wanted}
        found = [entry for entry in self.entries if isinstance(entry, Subject)]
        for exact in (wanted, *names):
            for subject in found:
                if subject.name == exact:
                    return subject
        for _ in self.subjects():
            pass  # The metric of a missing monitor: its own error says more.
        raise missing(name, (subject.name for subject in found))


class Directory:
    """One version of the registrations, indexed, with what was resolved from it."""

    def __init__(self, registrations: Registrations, reader: Reader) -> None:
        self.registrations = registrations
        self._reader = reader
        self._tenants = {tenant.tenant_id: tenant for tenant in registrations.tenants}
        self._named: dict[int, dict[str, Registration]] = {}
        self._by_content: dict[tuple[int, str], Registration] = {}
        for monitor in registrations.monitors:
            self._named.setdefault(monitor.tenant_id, {})[monitor.name] = monitor
            self._by_content[monitor.tenant_id, monitor.content_hash] = monitor
        # By trigger and tenant; forgotten with the trigger, or with this version of the registrations.
        self._resolved: WeakKeyDictionary[Trigger, dict[int, Asked | LagscaleError]] = WeakKeyDictionary()

    def resolve(self, trigger: Trigger, instance: str, namespace: str) -> Asked:
        """What the trigger asks for on behalf of (KEDA instance, Kubernetes namespace).

        Raises:
            NotFound: the namespace is bound to no tenant, or not to the one that the trigger names.
            InvalidInput: keys stand beside `serviceType` that may not.
        """
        tenant = self._tenants.get(tenant_of(self.registrations.bindings, instance, namespace) or 0)
        if tenant is None or (trigger.tenant is not None and trigger.tenant != tenant.name):
            raise missing(_subject_of(trigger))
        of_trigger = self._resolved.setdefault(trigger, {})
        resolved = of_trigger.get(tenant.tenant_id)
        if resolved is None:
            resolved = of_trigger[tenant.tenant_id] = self._find(trigger, tenant)
        if isinstance(resolved, InvalidInput):
            raise InvalidInput(resolved.faults)
        if isinstance(resolved, LagscaleError):
            raise type(resolved)(resolved.message)
        return resolved

    def calls_per_second(self, tenant_id: int) -> int | None:
        """A tenant's quota of calls; None of one that is not known."""
        tenant = self._tenants.get(tenant_id)
        return None if tenant is None else tenant.calls_per_second

    def _find(self, trigger: Trigger, tenant: TenantEntry) -> Asked | LagscaleError:
        try:
            return self._by_service(trigger, tenant) if trigger.services else self._inline(trigger, tenant)
        except LagscaleError as error:
            return error.with_traceback(None)

    def _by_service(self, trigger: Trigger, tenant: TenantEntry) -> Asked:
        named = self._named.get(tenant.tenant_id, {})
        entries: list[Subject | LagscaleError] = []
        faults: list[Fault] = []
        for name in trigger.services:
            monitor = named.get(name)
            if monitor is None:
                entries.append(missing(name, named))
            elif not trigger.given:
                entries.append(_by_version(_subject(tenant, monitor, monitor.policy), monitor))
            else:
                wrong = list(_beside(trigger, monitor))
                faults += wrong
                entries += [] if wrong else [self._overridden(trigger, tenant, monitor)]
        if faults:
            raise InvalidInput(faults)
        return Asked(tuple(entries))

    def _overridden(self, trigger: Trigger, tenant: TenantEntry, monitor: Registration) -> Subject:
        given = {**monitor.given, **trigger.given}
        interval = min(tenant.min_sampling_seconds, monitor.policy.sampling_ms // 1000)
        # The interval stays the registration's, so the tick and the minimum were checked with it.
        policy = Policy.parse(given, tick_seconds=0.0, minimum_interval=interval)
        return _by_version(_subject(tenant, monitor, policy), monitor, trigger.given)

    def _inline(self, trigger: Trigger, tenant: TenantEntry) -> Asked:
        cluster = _cluster_of(trigger, tenant)
        group = trigger.group or ""
        policy = self._reader.policy(trigger, tenant.min_sampling_seconds)
        scope = trigger.scope
        digest = content_hash(cluster, group, scope.topics, trigger.given, pattern=scope.pattern, exclude=scope.exclude)
        name = inline_name(group, scope.topics if scope.pattern is None else (scope.pattern,), digest)
        monitor = self._by_content.get((tenant.tenant_id, digest))
        if monitor is not None:
            return Asked((_by_version(_subject(tenant, monitor, monitor.policy, name), monitor),))
        if not tenant.auto_register:
            raise missing(_subject_of(trigger))
        wanted = InlineMonitor(
            tenant.tenant_id, name, cluster, group, scope.topics, dict(trigger.given), policy, digest,
            scope.pattern, scope.exclude,
        )  # fmt: skip
        return Asked((Subject(tenant.tenant_id, tenant.name, name, policy, None, None, {}, digest, wanted),))


def missing(name: str, visible: Iterable[str] = ()) -> NotFound:
    """The one answer for a monitor that is missing, another tenant's, or asked for from an unbound namespace.

    Args:
        name: as the caller wrote it.
        visible: names of the caller's own tenant; near ones are listed.
    """
    near = near_names(name, visible)
    listed = f" Near names: {', '.join(near)}." if near else ""
    return NotFound(f"There is no monitor {name[:63]!r} for this namespace: {_HINT}, {_ALSO_REGISTER}.{listed}")


def _subject_of(trigger: Trigger) -> str:
    return (trigger.services or (trigger.group or "",))[0]


def _subject(tenant: TenantEntry, monitor: Registration, policy: Policy, name: str | None = None) -> Subject:
    ask = Ask(tenant.tenant_id, monitor.target_ids, policy)
    topics = dict(zip(monitor.target_ids, monitor.topics, strict=False))
    return Subject(
        tenant.tenant_id, tenant.name, name or monitor.name, policy, monitor.monitor_id, ask, topics, key_of(ask),
        partial=monitor.partial, over_quota=monitor.over_quota,
    )  # fmt: skip


def _by_version(subject: Subject, monitor: Registration, overrides: Mapping[str, str] | None = None) -> Subject:
    """The subject with what its decisions are explained by."""
    return replace(subject, version=monitor.version, overrides=dict(overrides) if overrides else None)


@lru_cache(maxsize=_REMEMBERED)
def key_of(ask: Ask) -> str:
    """A short name of tenant, targets and policy, equal in every replica and after a restart."""
    return hashlib.blake2b(repr(ask).encode(), digest_size=12).hexdigest()


def _beside(trigger: Trigger, monitor: Registration) -> Iterator[Fault]:
    for name in trigger.given:
        if name in _NEVER_BESIDE:
            yield Fault(name, f"changes what {monitor.name!r} measures, which its registration says; remove it")
        elif not monitor.overridable:
            yield Fault(
                name, f"the registration of {monitor.name!r} rules; remove it, or mark the monitor as overridable"
            )


def _cluster_of(trigger: Trigger, tenant: TenantEntry) -> str:
    """The name of the tenant's cluster that an inline trigger means."""
    named = trigger.cluster
    if named is not None and named not in tenant.clusters:
        near = near_names(named, tenant.clusters)
        listed = f"; near names: {', '.join(near)}" if near else ""
        raise NotFound(f"This namespace's tenant has no cluster {named[:63]!r}: register it, or correct it{listed}.")
    if not trigger.bootstrap and named is not None:
        return named
    found = [name for name, addresses in sorted(tenant.clusters.items()) if frozenset(addresses) == trigger.bootstrap]
    if named is not None:
        if named not in found:
            raise InvalidInput([Fault("bootstrapServers", f"are not those of cluster {named!r}; give one of the two")])
        return named
    if not found:
        raise NotFound(
            "This namespace's tenant has no cluster of these bootstrapServers: register it, or correct them."
        )
    if len(found) > 1:
        raise InvalidInput(
            [Fault("bootstrapServers", f"are those of several clusters; give cluster: {' or '.join(found)}")]
        )
    return found[0]
