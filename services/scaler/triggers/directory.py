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

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.tenancy import build_inline_name, compute_content_hash, find_tenant, suggest_names
from lagscale.domain.topics import lacks_single_topic
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.domain.verdict.freezes import Freeze, Freezes
from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotFound
from lagscale.store.records import InlineMonitor, Registration, Registrations, TenantEntry
from services.scaler.triggers.inline_clusters import find_inline_cluster
from services.scaler.triggers.metadata import TriggerMetadata, TriggerReader
from services.scaler.triggers.tenant_rules import read_rules

#: Keys that change what is measured: no registration opens them to override.
_NEVER_OVERRIDABLE: Final = frozenset(name for name, key in KEYS_BY_NAME.items() if key.affects_sampling)
#: KEDA writes the index of the trigger before the name.
_INDEX: Final = re.compile(r"s\d+-")
#: Monitors whose short names are remembered.
_CACHE_SIZE: Final = 50_000
#: Of the names of an instance, a namespace and a ScaledObject, letters.
_MAX_REQUESTER_LENGTH: Final = 253
_HINT: Final = (
    "check serviceType and the trigger's other keys, and that this namespace is bound to its tenant, or register it"
)


@dataclass(frozen=True, slots=True)
class ResolvedMonitor:
    """One monitor as a caller asks for it.

    Attributes:
        name: of the metric.
        request: None while an inline monitor has no registration yet; then `inline` says what to create.
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
    request: VerdictRequest | None
    topics: Mapping[int, str]
    key: str
    version: int | None = field(default=None, kw_only=True)
    overrides: Mapping[str, str] | None = field(default=None, kw_only=True)
    inline: InlineMonitor | None = None
    partial: str = ""
    freezes: tuple[Freeze, ...] = field(default=(), kw_only=True)
    over_quota: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class ResolvedTrigger:
    """What a trigger asks for, in its order: a monitor, or the error in the place of one."""

    entries: tuple[ResolvedMonitor | LagscaleError, ...]

    def iter_monitors(self) -> Iterator[ResolvedMonitor]:
        """Every monitor.

        Raises:
            LagscaleError: the first one that is none.
        """
        for entry in self.entries:
            if isinstance(entry, LagscaleError):
                raise type(entry)(entry.message)
            yield entry

    def with_requester(self, instance: str, namespace: str, scaled_object: str) -> ResolvedTrigger:
        """The same, where a monitor is to be registered with who asks for it."""
        if all(not isinstance(entry, ResolvedMonitor) or entry.inline is None for entry in self.entries):
            return self
        names = {"instance": instance, "namespace": namespace, "scaled_object": scaled_object}
        printable = {
            name: "".join(filter(str.isprintable, text))[:_MAX_REQUESTER_LENGTH] for name, text in names.items()
        }
        return ResolvedTrigger(
            tuple(
                replace(entry, inline=replace(entry.inline, asked_by=printable))
                if isinstance(entry, ResolvedMonitor) and entry.inline is not None
                else entry
                for entry in self.entries
            )
        )

    def find_metric(self, name: str) -> ResolvedMonitor:
        """The monitor of a metric name, with or without KEDA's index before it, in any case.

        Raises:
            NotFound: the trigger has no such metric.
            LagscaleError: its monitor has a fault.
        """
        requested = name.lower()
        names = {requested, _INDEX.sub("", requested, count=1) if _INDEX.match(requested) else requested}
        found = [entry for entry in self.entries if isinstance(entry, ResolvedMonitor)]
        for exact in (requested, *names):
            for resolved in found:
                if resolved.name == exact:
                    return resolved
        for _ in self.iter_monitors():
            pass  # The metric of a missing monitor: its own error says more.
        raise build_not_found(name, (resolved.name for resolved in found))


class MonitorDirectory:
    """One version of the registrations, indexed, with what was resolved from it."""

    def __init__(self, registrations: Registrations, reader: TriggerReader) -> None:
        self.registrations = registrations
        self._reader = reader
        self.freezes = Freezes(registrations.freezes)
        #: Quotas of calls by the tenant's number.
        self.calls_per_second = {tenant.tenant_id: tenant.calls_per_second for tenant in registrations.tenants}
        self._tenants = {tenant.tenant_id: tenant for tenant in registrations.tenants}
        self._rules = {tenant.tenant_id: read_rules(tenant) for tenant in registrations.tenants}
        self._by_name: dict[int, dict[str, Registration]] = {}
        self._by_content: dict[tuple[int, str], Registration] = {}
        for monitor in registrations.monitors:
            self._by_name.setdefault(monitor.tenant_id, {})[monitor.name] = monitor
            self._by_content[monitor.tenant_id, monitor.content_hash] = monitor
        # By trigger and tenant; forgotten with the trigger, or with this version of the registrations.
        self._resolved: WeakKeyDictionary[TriggerMetadata, dict[int, ResolvedTrigger | LagscaleError]] = (
            WeakKeyDictionary()
        )

    def resolve(
        self, trigger: TriggerMetadata, instance: str | None, namespace: str, scaled_object: str = ""
    ) -> ResolvedTrigger:
        """What the trigger asks for on behalf of (KEDA instance, Kubernetes namespace); None is bound to nobody.

        The ScaledObject's name is only remembered with what it registers.

        Raises:
            NotFound: the namespace is bound to no tenant, or not to the one that the trigger names.
            InvalidInput: keys stand beside `serviceType` that may not.
        """
        bound = None if instance is None else find_tenant(self.registrations.bindings, instance, namespace)
        tenant = self._tenants.get(bound or 0)
        if tenant is None or (trigger.tenant is not None and trigger.tenant != tenant.name):
            raise build_not_found(_find_display_name(trigger))
        of_trigger = self._resolved.setdefault(trigger, {})
        resolved = of_trigger.get(tenant.tenant_id)
        if resolved is None:
            resolved = of_trigger[tenant.tenant_id] = self._resolve_trigger(trigger, tenant)
        if isinstance(resolved, InvalidInput):
            raise InvalidInput(resolved.field_errors)
        if isinstance(resolved, LagscaleError):
            raise type(resolved)(resolved.message)
        return resolved.with_requester(instance or "", namespace, scaled_object)

    def _resolve_trigger(self, trigger: TriggerMetadata, tenant: TenantEntry) -> ResolvedTrigger | LagscaleError:
        try:
            return (
                self._resolve_services(trigger, tenant) if trigger.services else self._resolve_inline(trigger, tenant)
            )
        except LagscaleError as error:
            return error.with_traceback(None)

    def _resolve_services(self, trigger: TriggerMetadata, tenant: TenantEntry) -> ResolvedTrigger:
        named = self._by_name.get(tenant.tenant_id, {})
        entries: list[ResolvedMonitor | LagscaleError] = []
        field_errors: list[FieldError] = []
        for name in trigger.services:
            monitor = named.get(name)
            if monitor is None:
                entries.append(build_not_found(name, named))
            elif not trigger.given:
                entries.append(self._build_monitor(tenant, monitor, monitor.policy))
            else:
                wrong = list(_check_overrides(trigger, monitor))
                field_errors += wrong
                entries += [] if wrong else [self._apply_overrides(trigger, tenant, monitor)]
        if field_errors:
            raise InvalidInput(field_errors)
        return ResolvedTrigger(tuple(entries))

    def _apply_overrides(self, trigger: TriggerMetadata, tenant: TenantEntry, monitor: Registration) -> ResolvedMonitor:
        given = {**monitor.given, **trigger.given}
        interval = min(tenant.min_sampling_seconds, monitor.policy.sampling_ms // 1000)
        # The interval stays the registration's, so the tick and the minimum were checked with it.
        policy = parse_policy(given, tick_seconds=0.0, minimum_interval=interval)
        # What the registration itself has is not the trigger's to answer for.
        if field_errors := self._rules[tenant.tenant_id].field_errors(policy, given, except_for=monitor.policy):
            raise InvalidInput(field_errors)
        return self._build_monitor(tenant, monitor, policy, overrides=trigger.given)

    def _resolve_inline(self, trigger: TriggerMetadata, tenant: TenantEntry) -> ResolvedTrigger:
        cluster = find_inline_cluster(trigger, tenant)
        group = trigger.group or ""
        scope = trigger.scope
        digest = compute_content_hash(
            cluster, group, scope.topics, trigger.given, pattern=scope.pattern, exclude=scope.exclude
        )
        name = build_inline_name(group, scope.topics if scope.pattern is None else (scope.pattern,), digest)
        monitor = self._by_content.get((tenant.tenant_id, digest))
        if monitor is not None:
            # What rules forbid today may be registered from before, and goes on.
            return ResolvedTrigger((self._build_monitor(tenant, monitor, monitor.policy, name),))
        rules = self._rules[tenant.tenant_id]
        policy = self._reader.policy(trigger, tenant.min_sampling_seconds, rules)
        if not tenant.auto_register:
            raise build_not_found(_find_display_name(trigger))
        inherited = rules.inherited(trigger.given)
        field_errors = rules.field_errors(policy, trigger.given)
        if inherited.get("partitionLimitation") and lacks_single_topic(scope):
            field_errors.append(
                FieldError("partitionLimitation", "is the tenant's default, and needs exactly one topic")
            )
        if field_errors:
            raise InvalidInput(field_errors)
        requested = InlineMonitor(
            tenant.tenant_id, name, cluster, group, scope.topics, dict(trigger.given), policy, digest,
            scope.pattern, scope.exclude, inherited, tenant.version,
        )  # fmt: skip
        freezes = self.freezes.of(tenant.tenant_id, cluster, None)
        nothing: Mapping[int, str] = {}
        resolved = ResolvedMonitor(
            tenant.tenant_id, tenant.name, name, policy, None, None, nothing, digest, requested, freezes=freezes
        )
        return ResolvedTrigger((resolved,))

    def _build_monitor(
        self,
        tenant: TenantEntry,
        monitor: Registration,
        policy: Policy,
        name: str | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> ResolvedMonitor:
        request = VerdictRequest(tenant.tenant_id, monitor.target_ids, policy)
        topics = dict(zip(monitor.target_ids, monitor.topics, strict=False))
        return ResolvedMonitor(
            tenant.tenant_id, tenant.name, name or monitor.name, policy, monitor.monitor_id, request, topics, compute_monitor_key(request),
            partial=monitor.partial, over_quota=monitor.over_quota,
            # With what its decisions are explained by.
            version=monitor.version, overrides=dict(overrides) if overrides else None,
            freezes=self.freezes.of(tenant.tenant_id, monitor.cluster, monitor.monitor_id),
        )  # fmt: skip


def build_not_found(name: str, visible: Iterable[str] = ()) -> NotFound:
    """The one answer for a monitor that is missing, another tenant's, or asked for from an unbound namespace.

    Args:
        name: as the caller wrote it.
        visible: names of the caller's own tenant; near ones are listed.
    """
    near = suggest_names(name, visible)
    listed = f" Near names: {', '.join(near)}." if near else ""
    return NotFound(f"There is no monitor {name[:63]!r} for this namespace: {_HINT}.{listed}")


def _find_display_name(trigger: TriggerMetadata) -> str:
    return (trigger.services or (trigger.group or "",))[0]


@lru_cache(maxsize=_CACHE_SIZE)
def compute_monitor_key(request: VerdictRequest) -> str:
    """A short name of tenant, targets and policy, equal in every replica and after a restart."""
    return hashlib.blake2b(repr(request).encode(), digest_size=12).hexdigest()


def _check_overrides(trigger: TriggerMetadata, monitor: Registration) -> Iterator[FieldError]:
    for name in trigger.given:
        if name in _NEVER_OVERRIDABLE:
            yield FieldError(name, f"changes what {monitor.name!r} measures, which its registration says; remove it")
        elif not monitor.overridable:
            yield FieldError(
                name, f"the registration of {monitor.name!r} rules; remove it, or mark the monitor as overridable"
            )
