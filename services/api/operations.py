"""What can be done with the registry: checks the input, opens the transaction, calls the repositories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from lagscale.domain.keys import BY_NAME
from lagscale.domain.policy import Policy
from lagscale.domain.tenancy import near_names
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import audit, bindings, clusters, keys, monitors, tenants
from lagscale.store.registry.changes import Outcome, check_version
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.database import RegistryDatabase, Row, Scope, before_wall
from lagscale.store.registry.keys import NewKey
from lagscale.store.registry.monitors import MonitorSpec
from lagscale.store.registry.pages import Page, Wanted
from lagscale.store.secrets import SecretBox
from lagscale.topic_scope import TopicScope, in_order, limitation_needs_one
from services.api.cluster_specs import cluster_spec
from services.api.payloads import BindingIn, ClusterIn, KeyIn, MonitorIn, PlatformKeyIn, PolicyValue, TenantIn

_SCOPE_NAMES = {"topics": "topics", "pattern": "topicPattern", "exclude": "excludeTopics"}
_TENANT_ROLES = (keys.TENANT_ADMIN, keys.TENANT_VIEWER)


class Operations:
    """The administration's use cases. `seen` is the version of If-Match, None without one."""

    def __init__(self, database: RegistryDatabase, box: SecretBox, tick_seconds: float) -> None:
        self._database = database
        self._box = box
        self._tick = tick_seconds

    async def list_tenants(self, scope: Scope, wanted: Wanted) -> Page:
        async with self._database.within(scope) as work:
            return await tenants.listed(work, wanted)

    async def tenant(self, scope: Scope, name: str) -> Row:
        async with self._database.tenant(scope, name) as work:
            return work.tenant

    async def create_tenant(self, scope: Scope, given: TenantIn) -> Outcome:
        name = _required(given.name)
        async with self._database.within(scope) as work:
            return await tenants.create(work, name, given.model_dump())

    async def put_tenant(self, scope: Scope, name: str, given: TenantIn, seen: int | None) -> Outcome:
        name = _of_url(name, given.name)
        async with self._database.within(scope) as work:
            return await tenants.put(work, name, given.model_dump(), seen)

    async def delete_tenant(self, scope: Scope, name: str, seen: int | None) -> None:
        async with self._database.tenant(scope, name, lock=True) as work:
            check_version(work.tenant, seen)
            await tenants.remove(work)
            # The tenant's own audit went with it, so that it went is the platform's to remember.
            await audit.record(await before_wall(work), "tenant.delete", f"tenant/{name}", work.tenant, None)

    async def list_clusters(self, scope: Scope, tenant: str, wanted: Wanted) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await clusters.listed(work, wanted)

    async def cluster(self, scope: Scope, tenant: str, name: str) -> Row:
        async with self._database.tenant(scope, tenant) as work:
            return await clusters.named(work, name)

    async def create_cluster(self, scope: Scope, tenant: str, given: ClusterIn) -> Row:
        spec = self._cluster(_required(given.name), given, scope)
        async with self._database.tenant(scope, tenant) as work:
            await clusters.create(work, spec, self._box)
            return await clusters.named(work, spec.name)

    async def put_cluster(
        self, scope: Scope, tenant: str, name: str, given: ClusterIn, *, seen: int | None
    ) -> tuple[Row, bool]:
        """The cluster as it is now, and whether it was created."""
        spec = self._cluster(_of_url(name, given.name), given, scope)
        # Under the lock two first PUTs of one name make one cluster, and no conflict.
        async with self._database.tenant(scope, tenant, lock=True) as work:
            outcome = await clusters.put(work, spec, self._box, seen)
            return await clusters.named(work, spec.name), outcome.created

    async def delete_cluster(self, scope: Scope, tenant: str, name: str, seen: int | None) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await clusters.remove(work, name, seen)

    async def list_monitors(self, scope: Scope, tenant: str, wanted: Wanted) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await monitors.listed(work, wanted)

    async def monitor(self, scope: Scope, tenant: str, name: str) -> Row:
        async with self._database.tenant(scope, tenant) as work:
            return await monitors.named(work, name)

    async def create_monitor(self, scope: Scope, tenant: str, given: MonitorIn) -> Outcome:
        name = _required(given.name)
        async with self._database.tenant(scope, tenant) as work:
            outcome = await monitors.create(work, self._monitor(name, given, work.tenant))
            return replace(outcome, row=await monitors.named(work, name))

    async def put_monitor(self, scope: Scope, tenant: str, name: str, given: MonitorIn, *, seen: int | None) -> Outcome:
        name = _of_url(name, given.name)
        async with self._database.tenant(scope, tenant) as work:
            outcome = await monitors.put(work, self._monitor(name, given, work.tenant), seen)
            return replace(outcome, row=await monitors.named(work, name))

    async def delete_monitor(self, scope: Scope, tenant: str, name: str, seen: int | None) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await monitors.remove(work, name, seen)

    async def list_bindings(self, scope: Scope, tenant: str, wanted: Wanted) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await bindings.listed(work, wanted)

    async def bind(self, scope: Scope, tenant: str, given: BindingIn) -> Outcome:
        row = await self.tenant(scope, tenant)
        # Bindings of one instance exclude each other across tenants, so this is the platform's sight and right.
        async with self._database.platform(scope.actor) as work:
            return await bindings.put(work, int(row["id"]), given.instance, given.namespace)

    async def unbind(self, scope: Scope, tenant: str, instance: str, namespace: str) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await bindings.remove(work, instance, namespace)

    async def list_keys(self, scope: Scope, tenant: str, wanted: Wanted) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await keys.listed(work, wanted)

    async def create_key(self, scope: Scope, tenant: str, given: KeyIn) -> NewKey:
        if given.role not in _TENANT_ROLES:
            raise InvalidInput([Fault("role", f"must be {' or '.join(_TENANT_ROLES)}")])
        async with self._database.tenant(scope, tenant) as work:
            return await keys.create(work, given.name, given.role, given.expires_at)

    async def revoke_key(self, scope: Scope, tenant: str, prefix: str) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await keys.revoke(work, prefix)

    async def list_platform_keys(self, scope: Scope, wanted: Wanted) -> Page:
        async with self._database.within(scope) as work:
            return await keys.listed(work, wanted)

    async def create_platform_key(self, scope: Scope, given: PlatformKeyIn) -> NewKey:
        async with self._database.within(scope) as work:
            return await keys.create(work, given.name, keys.PLATFORM_ADMIN, given.expires_at)

    async def revoke_platform_key(self, scope: Scope, prefix: str) -> None:
        async with self._database.within(scope) as work:
            await keys.revoke(work, prefix)

    def _cluster(self, name: str, given: ClusterIn, scope: Scope) -> ClusterSpec:
        spec = cluster_spec(name, given, platform=scope.platform)
        if spec.secrets and not self._box.usable:
            raise InvalidInput([Fault("secrets", "cannot be stored: this system has no LAGSCALE_SECRET_KEYS")])
        return spec

    def _monitor(self, name: str, given: MonitorIn, tenant: Row) -> MonitorSpec:
        topics = tuple(dict.fromkeys(given.topics or ()))
        pattern = None if given.topic_pattern is None else given.topic_pattern.strip()
        scope = TopicScope(topics, pattern, in_order(given.exclude_topics))
        faults = scope.faults(_SCOPE_NAMES)
        texts, of_policy = policy_texts(given.policy)
        if texts.get("partitionLimitation") and limitation_needs_one(scope):
            of_policy.append(Fault("partitionLimitation", "needs exactly one topic"))
        policy = None
        try:
            least = int(tenant["min_sampling_seconds"])
            policy = Policy.parse(texts, tick_seconds=self._tick, minimum_interval=least)
        except InvalidInput as wrong:
            of_policy.extend(wrong.faults)
        faults.extend(Fault(f"policy.{fault.field}", fault.text) for fault in of_policy)
        if faults or policy is None:
            raise InvalidInput(faults)
        return MonitorSpec(
            name, given.cluster, given.consumer_group.strip(), topics, texts, policy, given.overridable,
            scope.pattern, scope.exclude,
        )  # fmt: skip


def policy_texts(values: Mapping[str, PolicyValue]) -> tuple[dict[str, str], list[Fault]]:
    """The policy keys as texts, and a fault for each that is none of ours; null means not given."""
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    for name, value in values.items():
        if name not in BY_NAME:
            near = near_names(name, BY_NAME, 1)
            faults.append(Fault(name, "is no key of a policy" + (f"; did you mean {near[0]}?" if near else "")))
        elif isinstance(value, bool):
            texts[name] = str(value).lower()
        elif isinstance(value, float):
            # Never in the exponent's form, which the policy's language does not know.
            texts[name] = format(Decimal(repr(value)).normalize(), "f")
        elif value is not None and str(value).strip():
            texts[name] = str(value).strip()
    return texts, faults


def _required(name: str | None) -> str:
    if name is None:
        raise InvalidInput([Fault("name", "must be given")])
    return name


def _of_url(name: str, given: str | None) -> str:
    if given is not None and given != name:
        raise InvalidInput([Fault("name", "must be the name in the URL, or left out")])
    return name
