"""What can be done with the registry: checks the input, opens the transaction, calls the repositories."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from lagscale.errors import Fault, InvalidInput
from lagscale.store.encryption import SecretBox
from lagscale.store.registry import api_keys, audit, bindings, clusters, monitors, tenant_rules, tenants
from lagscale.store.registry.api_keys import NewKey
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.monitor_spec import Draft, MonitorSpec, built, draft_of
from lagscale.store.registry.monitors import Filters
from lagscale.store.registry.paging import Page, Wanted
from lagscale.store.registry.session import RegistryDatabase, Row, Scope, TenantWork, before_wall, behind_wall
from lagscale.store.registry.tenant_rules import Outlaw
from lagscale.store.registry.versions import Outcome, Seen, check_version
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.spec import cluster_spec
from services.api.monitors.drafts import drafted
from services.api.schemas import BindingIn, KeyIn, MonitorIn, PlatformKeyIn
from services.api.tenants.rules import tenant_values
from services.api.tenants.schemas import TenantIn

_TENANT_ROLES = (api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)


class Operations:
    """The administration's use cases. `seen` is what If-Match or If-None-Match says, None without them."""

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
        name, values = _required(given.name), tenant_values(given, self._tick)
        async with self._database.within(scope) as work:
            return await tenants.create(work, name, values)

    async def put_tenant(
        self, scope: Scope, name: str, given: TenantIn, seen: Seen | None
    ) -> tuple[Outcome, list[Outlaw]]:
        """The tenant as it is now, and the monitors that its new rules forbid."""
        name, values = _of_url(name, given.name), tenant_values(given, self._tick)
        async with self._database.within(scope) as work:
            outcome = await tenants.put(work, name, values, seen)
            if not tenants.changes_rules(outcome):
                return outcome, []
            behind = await behind_wall(work, outcome.row)
            return outcome, await tenant_rules.follow(behind, self._tick)

    async def outlaws(self, scope: Scope, tenant: str, wanted: Wanted) -> tuple[list[Outlaw], str | None]:
        """Of a page of monitors those that the tenant's rules forbid, and the cursor of the next page."""
        async with self._database.tenant(scope, tenant) as work:
            page = await monitors.listed(work, wanted)
            return tenant_rules.outlaws(work, page.rows, self._tick), page.after

    async def delete_tenant(self, scope: Scope, name: str, seen: Seen | None) -> None:
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
        self, scope: Scope, tenant: str, name: str, given: ClusterIn, *, seen: Seen | None
    ) -> tuple[Row, bool]:
        """The cluster as it is now, and whether it was created."""
        spec = self._cluster(_of_url(name, given.name), given, scope)
        # Under the lock two first PUTs of one name make one cluster, and no conflict.
        async with self._database.tenant(scope, tenant, lock=True) as work:
            outcome = await clusters.put(work, spec, self._box, seen)
            return await clusters.named(work, spec.name), outcome.created

    async def delete_cluster(self, scope: Scope, tenant: str, name: str, seen: Seen | None) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await clusters.remove(work, name, seen)

    async def list_monitors(self, scope: Scope, tenant: str, wanted: Wanted, only: Filters | None = None) -> Page:
        async with self._database.tenant(scope, tenant) as work:
            return await monitors.listed(work, wanted, only)

    async def monitor(self, scope: Scope, tenant: str, name: str) -> Row:
        async with self._database.tenant(scope, tenant) as work:
            return await monitors.named(work, name)

    async def create_monitor(self, scope: Scope, tenant: str, given: MonitorIn) -> Outcome:
        draft = drafted(_required(given.name), given)
        async with self.monitor_changes(scope, tenant) as work:
            outcome = await monitors.create(work, self.built(draft, work))
            return replace(outcome, row=await monitors.named(work, draft.name))

    async def put_monitor(
        self, scope: Scope, tenant: str, name: str, given: MonitorIn, *, seen: Seen | None
    ) -> Outcome:
        draft = drafted(_of_url(name, given.name), given)
        async with self.monitor_changes(scope, tenant) as work:
            try:
                outcome = await monitors.put(work, self.built(draft, work), seen)
            except InvalidInput:
                # The tenant's rules came later than the monitor: as it is it goes on, and putting it is no change.
                row = await monitors.already(work, draft, seen)
                if row is None:
                    raise
                outcome = Outcome(row)
            return replace(outcome, row=await monitors.named(work, name))

    async def delete_monitor(self, scope: Scope, tenant: str, name: str, seen: Seen | None) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await monitors.remove(work, name, seen)

    async def restore_monitor(self, scope: Scope, tenant: str, name: str) -> Outcome:
        async with self.monitor_changes(scope, tenant) as work:
            row = await monitors.deleted(work, name)
            outcome = await monitors.restore(work, row, self.built(draft_of(row), work))
            return replace(outcome, row=await monitors.named(work, name))

    def monitor_changes(self, scope: Scope, tenant: str) -> AbstractAsyncContextManager[TenantWork]:
        """A transaction in which monitors change; its lock keeps the tenant's rules as they are until the end."""
        return self._database.tenant(scope, tenant, lock=True)

    def built(self, draft: Draft, work: TenantWork) -> MonitorSpec:
        """The monitor by its tenant's rules.

        Raises:
            InvalidInput: with every fault at once.
        """
        return built(draft, work.tenant, self._tick)

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
            return await api_keys.listed(work, wanted)

    async def create_key(self, scope: Scope, tenant: str, given: KeyIn) -> NewKey:
        if given.role not in _TENANT_ROLES:
            raise InvalidInput([Fault("role", f"must be {' or '.join(_TENANT_ROLES)}")])
        async with self._database.tenant(scope, tenant) as work:
            return await api_keys.create(work, given.name, given.role, given.expires_at)

    async def revoke_key(self, scope: Scope, tenant: str, prefix: str) -> None:
        async with self._database.tenant(scope, tenant) as work:
            await api_keys.revoke(work, prefix)

    async def list_platform_keys(self, scope: Scope, wanted: Wanted) -> Page:
        async with self._database.within(scope) as work:
            return await api_keys.listed(work, wanted)

    async def create_platform_key(self, scope: Scope, given: PlatformKeyIn) -> NewKey:
        async with self._database.within(scope) as work:
            return await api_keys.create(work, given.name, api_keys.PLATFORM_ADMIN, given.expires_at)

    async def revoke_platform_key(self, scope: Scope, prefix: str) -> None:
        async with self._database.within(scope) as work:
            await api_keys.revoke(work, prefix)

    def _cluster(self, name: str, given: ClusterIn, scope: Scope) -> ClusterSpec:
        spec = cluster_spec(name, given, platform=scope.platform)
        if spec.secrets and not self._box.usable:
            raise InvalidInput([Fault("secrets", "cannot be stored: this system has no LAGSCALE_SECRET_KEYS")])
        return spec


def _required(name: str | None) -> str:
    if name is None:
        raise InvalidInput([Fault("name", "must be given")])
    return name


def _of_url(name: str, given: str | None) -> str:
    if given is not None and given != name:
        raise InvalidInput([Fault("name", "must be the name in the URL, or left out")])
    return name
