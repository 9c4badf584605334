"""Resolves a caller's trigger to monitors: which tenant, which registrations, which policy.

Works on the registrations in memory alone; the servicer calls it for unary calls and streams.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from lagscale.domain.policy.keys import KEYS_BY_NAME
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.policy.policy import Policy
from lagscale.domain.policy.tenant_rules import NO_RULES, PolicyRules
from lagscale.domain.tenancy import build_inline_name, compute_content_hash, find_tenant, suggest_names
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.domain.verdict.freezes import Freeze, Freezes
from lagscale.errors import FieldError, InvalidInput, LagscaleError, NotFound
from lagscale.store.registrations.load import InlineMonitor, Registration, Registrations, TenantEntry
from lagscale.store.registry.monitor_spec import MonitorDraft, apply_rules
from services.scaler.triggers.metadata import TriggerMetadata, TriggerReader

log = structlog.get_logger(__name__)

#: Keys that change what is sampled: never overridable.
_NEVER_OVERRIDABLE: Final = frozenset(name for name, key in KEYS_BY_NAME.items() if key.affects_sampling)
#: KEDA prefixes metric names with the trigger's index.
_INDEX: Final = re.compile(r"s\d+-")
#: Cached monitor keys.
_CACHE_SIZE: Final = 50_000
#: Characters of an instance, namespace or ScaledObject name.
_MAX_REQUESTER_LENGTH: Final = 253
_HINT: Final = (
    "check serviceType and the other trigger keys, check that the namespace is bound to the tenant and that `tenant`, if the "
    "trigger has it, names that one, or register the monitor"
)


@dataclass(frozen=True, slots=True)
class ResolvedMonitor:
    """One monitor as a trigger requests it.

    Attributes:
        name: metric name.
        request: None while an inline monitor has no registration yet; then `inline` is the monitor to create.
        topics: topic name by target id, for messages.
        key: short hash of tenant, targets and policy, equal in every replica.
        version: of the registration.
        overrides: policy keys set in the trigger next to `serviceType`, None without any.
        freezes: as of loading; some may have ended since.
        partial: why the targets cover only some of the monitor's topics; empty when they cover all.
        over_quota: why some of the targets are not sampled; empty when all are.
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
    """The monitors that a trigger requests, in its order; an error in place of one that cannot be resolved."""

    entries: tuple[ResolvedMonitor | LagscaleError, ...]

    @property
    def monitors(self) -> list[ResolvedMonitor]:
        """Those that could be resolved."""
        return [entry for entry in self.entries if isinstance(entry, ResolvedMonitor)]

    def require_any(self) -> None:
        """Check that at least one monitor could be resolved.

        Raises:
            LagscaleError: the error of the first entry.
        """
        if not self.monitors:
            list(self.iter_monitors())

    def iter_monitors(self) -> Iterator[ResolvedMonitor]:
        """Every monitor, in order.

        Raises:
            LagscaleError: the error of the first entry that is one.
        """
        for entry in self.entries:
            if isinstance(entry, LagscaleError):
                raise type(entry)(entry.message)
            yield entry

    def with_requester(self, instance: str, namespace: str, scaled_object: str) -> ResolvedTrigger:
        """A copy whose inline monitors name the requester; itself where nothing is to be registered."""
        if all(monitor.inline is None for monitor in self.monitors):
            return self
        names = {"instance": instance, "namespace": namespace, "scaled_object": scaled_object}
        printable = {of: "".join(filter(str.isprintable, text))[:_MAX_REQUESTER_LENGTH] for of, text in names.items()}
        return ResolvedTrigger(
            tuple(
                replace(entry, inline=replace(entry.inline, registered_by=printable))
                if isinstance(entry, ResolvedMonitor) and entry.inline is not None
                else entry
                for entry in self.entries
            )
        )

    def find_metric(self, name: str) -> ResolvedMonitor:
        """The monitor of a metric name, with or without KEDA's index prefix; case-insensitive.

        Raises:
            NotFound: the trigger has no such metric.
            LagscaleError: the error of a monitor that cannot be resolved; it is more specific than `NotFound`.
        """
        requested = name.lower()
        names = {requested, _INDEX.sub("", requested, count=1) if _INDEX.match(requested) else requested}
        for exact in (requested, *names):
            for monitor in self.monitors:
                if monitor.name == exact:
                    return monitor
        for _ in self.iter_monitors():
            pass  # The metric may belong to a missing monitor, whose error says more.
        raise build_not_found(name, (monitor.name for monitor in self.monitors))


class MonitorDirectory:
    """One version of the registrations, indexed; caches what triggers resolve to."""

    def __init__(self, registrations: Registrations, reader: TriggerReader) -> None:
        self.registrations = registrations
        self._reader = reader
        self.freezes = Freezes(registrations.freezes)
        #: Call quota by tenant id.
        self.calls_per_second = {tenant.tenant_id: tenant.calls_per_second for tenant in registrations.tenants}
        self._tenants = {tenant.tenant_id: tenant for tenant in registrations.tenants}
        self._rules = {tenant.tenant_id: _read_rules(tenant) for tenant in registrations.tenants}
        self._by_name: dict[int, dict[str, Registration]] = {}
        self._by_content: dict[tuple[int, str], Registration] = {}
        for monitor in registrations.monitors:
            self._by_name.setdefault(monitor.tenant_id, {})[monitor.name] = monitor
            self._by_content[monitor.tenant_id, monitor.content_hash] = monitor
        # By trigger and tenant; dropped with the trigger, or with this version of the registrations.
        self._resolved: WeakKeyDictionary[TriggerMetadata, dict[int, ResolvedTrigger | LagscaleError]] = (
            WeakKeyDictionary()
        )

    def resolve(
        self, trigger: TriggerMetadata, instance: str | None, namespace: str, scaled_object: str = ""
    ) -> ResolvedTrigger:
        """The monitors that the trigger requests for (KEDA instance, Kubernetes namespace).

        `instance` is None for a caller that no binding can match; `scaled_object` is stored with the inline monitors
        that it registers, otherwise unused.

        Raises:
            NotFound: the namespace is not bound to a tenant, or not to the one that the trigger names.
            InvalidInput: keys that cannot be combined with `serviceType`, or values that the tenant's rules forbid.
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
            resolve = self._resolve_services if trigger.services else self._resolve_inline
            return resolve(trigger, tenant)
        except LagscaleError as error:
            return error.with_traceback(None)

    def _resolve_services(self, trigger: TriggerMetadata, tenant: TenantEntry) -> ResolvedTrigger:
        monitors = self._by_name.get(tenant.tenant_id, {})
        entries: list[ResolvedMonitor | LagscaleError] = []
        field_errors: list[FieldError] = []
        for name in trigger.services:
            monitor = monitors.get(name)
            if monitor is None:
                entries.append(build_not_found(name, monitors))
            elif not trigger.given:
                entries.append(self._build_monitor(tenant, monitor, monitor.policy))
            else:
                errors = list(_check_overrides(trigger, monitor))
                field_errors += errors
                entries += [] if errors else [self._apply_overrides(trigger, tenant, monitor)]
        if field_errors:
            raise InvalidInput(field_errors)
        return ResolvedTrigger(tuple(entries))

    def _apply_overrides(self, trigger: TriggerMetadata, tenant: TenantEntry, monitor: Registration) -> ResolvedMonitor:
        given = {**monitor.given, **trigger.given}
        interval = min(tenant.min_sampling_seconds, monitor.policy.sampling_ms // 1000)
        # The interval remains the registration's, so tick and minimum were checked when it was registered.
        policy = parse_policy(given, tick_seconds=0.0, minimum_interval=interval)
        # Values of the registration itself are not checked again: the trigger cannot change them.
        if field_errors := self._rules[tenant.tenant_id].field_errors(policy, given, except_for=monitor.policy):
            raise InvalidInput(field_errors)
        return self._build_monitor(tenant, monitor, policy, overrides=trigger.given)

    def _resolve_inline(self, trigger: TriggerMetadata, tenant: TenantEntry) -> ResolvedTrigger:
        cluster = _find_inline_cluster(trigger, tenant)
        group = trigger.group or ""
        scope = trigger.scope
        digest = compute_content_hash(
            cluster, group, scope.topics, trigger.given, pattern=scope.pattern, exclude=scope.exclude
        )
        name = build_inline_name(group, scope.topics if scope.pattern is None else (scope.pattern,), digest)
        monitor = self._by_content.get((tenant.tenant_id, digest))
        if monitor is not None:
            # Registered before the tenant's rules forbade it: it stays valid.
            return ResolvedTrigger((self._build_monitor(tenant, monitor, monitor.policy, name),))
        rules = self._rules[tenant.tenant_id]
        policy = self._reader.resolve_policy(trigger, tenant.min_sampling_seconds, rules)
        if not tenant.auto_register:
            raise build_not_found(_find_display_name(trigger))
        spec, field_errors = apply_rules(MonitorDraft(name, cluster, group, scope, dict(trigger.given)), rules, policy)
        if field_errors or spec is None:
            raise InvalidInput(field_errors)
        requested = InlineMonitor(tenant.tenant_id, spec, tenant.version)
        freezes = self.freezes.of(tenant.tenant_id, cluster, None)
        no_topics: Mapping[int, str] = {}
        resolved = ResolvedMonitor(
            tenant.tenant_id, tenant.name, name, policy, None, None, no_topics, digest, requested, freezes=freezes
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
            partial=monitor.partial_reason, over_quota=monitor.over_quota_reason,
            # Recorded with its decisions, which are explained by them.
            version=monitor.version, overrides=dict(overrides) if overrides else None,
            freezes=self.freezes.of(tenant.tenant_id, monitor.cluster, monitor.monitor_id),
        )  # fmt: skip


def build_not_found(name: str, visible: Iterable[str] = ()) -> NotFound:
    """The one error for a monitor that is missing, another tenant's, or requested from an unbound namespace.

    Similar names among `visible`, the monitors of the caller's own tenant, are suggested.
    """
    return NotFound(f"Monitor {name[:63]!r} not found for this namespace; {_HINT}.{_suggest(name, visible)}")


def _suggest(name: str, visible: Iterable[str]) -> str:
    similar = suggest_names(name, visible)
    return f" Did you mean: {', '.join(similar)}?" if similar else ""


def _find_display_name(trigger: TriggerMetadata) -> str:
    return (trigger.services or (trigger.group or "",))[0]


@lru_cache(maxsize=_CACHE_SIZE)
def compute_monitor_key(request: VerdictRequest) -> str:
    """A short hash of tenant, targets and policy, equal in every replica and after a restart."""
    return hashlib.blake2b(repr(request).encode(), digest_size=12).hexdigest()


def _check_overrides(trigger: TriggerMetadata, monitor: Registration) -> Iterator[FieldError]:
    for name in trigger.given:
        if name in _NEVER_OVERRIDABLE:
            yield FieldError(name, f"cannot be overridden: it changes what monitor {monitor.name!r} samples; remove it")
        elif not monitor.overridable:
            yield FieldError(
                name,
                f"monitor {monitor.name!r} does not allow overrides; remove the key, or make the monitor overridable",
            )


def _find_inline_cluster(trigger: TriggerMetadata, tenant: TenantEntry) -> str:
    """The name of the tenant's cluster that an inline trigger refers to, by name or by addresses.

    Raises:
        NotFound: the tenant has no such cluster.
        InvalidInput: name and addresses disagree, or several clusters have these addresses.
    """
    named = trigger.cluster
    if named is not None and named not in tenant.clusters:
        raise NotFound(
            f"Cluster {named[:63]!r} not found in this namespace's tenant; register it or correct the name."
            f"{_suggest(named, tenant.clusters)}"
        )
    if not trigger.bootstrap and named is not None:
        return named
    matching = [
        name for name, addresses in sorted(tenant.clusters.items()) if frozenset(addresses) == trigger.bootstrap
    ]
    if named is not None:
        if named not in matching:
            raise InvalidInput.of("bootstrapServers", f"do not match cluster {named!r}; set only one of the two keys")
        return named
    if not matching:
        raise NotFound(
            "No cluster of this namespace's tenant has these bootstrapServers; register it or correct the addresses."
        )
    if len(matching) > 1:
        raise InvalidInput.of("bootstrapServers", f"match several clusters; set cluster to {' or '.join(matching)}")
    return matching[0]


def _read_rules(tenant: TenantEntry) -> PolicyRules:
    """The tenant's policy rules; none where they are invalid, so that registered monitors are still answered."""
    try:
        return PolicyRules.read(tenant.policy_defaults, tenant.policy_limits)
    except InvalidInput as error:
        # Another version of the API wrote them.
        log.warning("stored_tenant_rules_invalid", tenant=tenant.name, reason=error.message)
        return NO_RULES
