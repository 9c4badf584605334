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

from lagscale.domain.policy.keys import BY_NAME
from lagscale.domain.policy.policy import Policy
from lagscale.domain.tenancy import content_hash, inline_name, near_names, tenant_of
from lagscale.domain.topics import limitation_needs_one
from lagscale.domain.verdict.contract import Ask
from lagscale.domain.verdict.freezes import Freeze, Freezes
from lagscale.errors import Fault, InvalidInput, LagscaleError, NotFound
from lagscale.store.records import InlineMonitor, Registration, Registrations, TenantEntry
from services.scaler.triggers.inline_clusters import cluster_of
from services.scaler.triggers.metadata import Reader, Trigger
from services.scaler.triggers.tenant_rules import read_rules

#: Keys that change what is measured: no registration opens them to override.
_NEVER_BESIDE: Final = frozenset(name for name, key in BY_NAME.items() if key.measures)
#: KEDA writes the index of the trigger before the name.
_INDEX: Final = re.compile(r"s\d+-")
#: Monitors whose short names are remembered.
_REMEMBERED: Final = 50_000
#: Of the names of an instance, a namespace and a ScaledObject, letters.
_LONGEST_ASKER: Final = 253
_HINT: Final = (
    "check serviceType and the trigger's other keys, and that this namespace is bound to its tenant, or register it"
)


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
        freezes: those that the monitor is under, if they have not ended meanwhile.
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
    freezes: tuple[Freeze, ...] = field(default=(), kw_only=True)
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

    def by(self, instance: str, namespace: str, scaled_object: str) -> Asked:
        """The same, where a monitor is to be registered with who asks for it."""
        if all(not isinstance(entry, Subject) or entry.inline is None for entry in self.entries):
            return self
        names = {"instance": instance, "namespace": namespace, "scaled_object": scaled_object}
        shown = {name: "".join(filter(str.isprintable, text))[:_LONGEST_ASKER] for name, text in names.items()}
        return Asked(
            tuple(
                replace(entry, inline=replace(entry.inline, asked_by=shown))
                if isinstance(entry, Subject) and entry.inline is not None
                else entry
                for entry in self.entries
            )
        )

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
        self.freezes = Freezes(registrations.freezes)
        #: Quotas of calls by the tenant's number.
        self.calls_per_second = {tenant.tenant_id: tenant.calls_per_second for tenant in registrations.tenants}
        self._tenants = {tenant.tenant_id: tenant for tenant in registrations.tenants}
        self._rules = {tenant.tenant_id: read_rules(tenant) for tenant in registrations.tenants}
        self._named: dict[int, dict[str, Registration]] = {}
        self._by_content: dict[tuple[int, str], Registration] = {}
        for monitor in registrations.monitors:
            self._named.setdefault(monitor.tenant_id, {})[monitor.name] = monitor
            self._by_content[monitor.tenant_id, monitor.content_hash] = monitor
        # By trigger and tenant; forgotten with the trigger, or with this version of the registrations.
        self._resolved: WeakKeyDictionary[Trigger, dict[int, Asked | LagscaleError]] = WeakKeyDictionary()

    def resolve(self, trigger: Trigger, instance: str | None, namespace: str, scaled_object: str = "") -> Asked:
        """What the trigger asks for on behalf of (KEDA instance, Kubernetes namespace); None is bound to nobody.

        The ScaledObject's name is only remembered with what it registers.

        Raises:
            NotFound: the namespace is bound to no tenant, or not to the one that the trigger names.
            InvalidInput: keys stand beside `serviceType` that may not.
        """
        bound = None if instance is None else tenant_of(self.registrations.bindings, instance, namespace)
        tenant = self._tenants.get(bound or 0)
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
        return resolved.by(instance or "", namespace, scaled_object)

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
                entries.append(self._subject(tenant, monitor, monitor.policy))
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
        # What the registration itself has is not the trigger's to answer for.
        if faults := self._rules[tenant.tenant_id].faults(policy, given, but_for=monitor.policy):
            raise InvalidInput(faults)
        return self._subject(tenant, monitor, policy, overrides=trigger.given)

    def _inline(self, trigger: Trigger, tenant: TenantEntry) -> Asked:
        cluster = cluster_of(trigger, tenant)
        group = trigger.group or ""
        scope = trigger.scope
        digest = content_hash(cluster, group, scope.topics, trigger.given, pattern=scope.pattern, exclude=scope.exclude)
        name = inline_name(group, scope.topics if scope.pattern is None else (scope.pattern,), digest)
        monitor = self._by_content.get((tenant.tenant_id, digest))
        if monitor is not None:
            # What rules forbid today may be registered from before, and goes on.
            return Asked((self._subject(tenant, monitor, monitor.policy, name),))
        rules = self._rules[tenant.tenant_id]
        policy = self._reader.policy(trigger, tenant.min_sampling_seconds, rules)
        if not tenant.auto_register:
            raise missing(_subject_of(trigger))
        inherited = rules.inherited(trigger.given)
        faults = rules.faults(policy, trigger.given)
        if inherited.get("partitionLimitation") and limitation_needs_one(scope):
            faults.append(Fault("partitionLimitation", "is the tenant's default, and needs exactly one topic"))
        if faults:
            raise InvalidInput(faults)
        wanted = InlineMonitor(
            tenant.tenant_id, name, cluster, group, scope.topics, dict(trigger.given), policy, digest,
            scope.pattern, scope.exclude, inherited, tenant.version,
        )  # fmt: skip
        freezes = self.freezes.of(tenant.tenant_id, cluster, None)
        nothing: Mapping[int, str] = {}
        subject = Subject(
            tenant.tenant_id, tenant.name, name, policy, None, None, nothing, digest, wanted, freezes=freezes
        )
        return Asked((subject,))

    def _subject(
        self,
        tenant: TenantEntry,
        monitor: Registration,
        policy: Policy,
        name: str | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> Subject:
        ask = Ask(tenant.tenant_id, monitor.target_ids, policy)
        topics = dict(zip(monitor.target_ids, monitor.topics, strict=False))
        return Subject(
            tenant.tenant_id, tenant.name, name or monitor.name, policy, monitor.monitor_id, ask, topics, key_of(ask),
            partial=monitor.partial, over_quota=monitor.over_quota,
            # With what its decisions are explained by.
            version=monitor.version, overrides=dict(overrides) if overrides else None,
            freezes=self.freezes.of(tenant.tenant_id, monitor.cluster, monitor.monitor_id),
        )  # fmt: skip


def missing(name: str, visible: Iterable[str] = ()) -> NotFound:
    """The one answer for a monitor that is missing, another tenant's, or asked for from an unbound namespace.

    Args:
        name: as the caller wrote it.
        visible: names of the caller's own tenant; near ones are listed.
    """
    near = near_names(name, visible)
    listed = f" Near names: {', '.join(near)}." if near else ""
    return NotFound(f"There is no monitor {name[:63]!r} for this namespace: {_HINT}.{listed}")


def _subject_of(trigger: Trigger) -> str:
    return (trigger.services or (trigger.group or "",))[0]


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
