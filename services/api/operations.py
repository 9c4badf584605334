"""What can be done with the registry: checks the input, opens the transaction, calls the repositories."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from lagscale.errors import FieldError, InvalidInput
from lagscale.store.encryption import Keyring
from lagscale.store.registry import api_keys, audit, bindings, clusters, monitors, tenant_rules, tenants
from lagscale.store.registry.api_keys import CreatedKey
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.monitor_spec import MonitorDraft, MonitorSpec, build_spec, read_draft
from lagscale.store.registry.monitors import MonitorFilter
from lagscale.store.registry.paging import Page, PageRequest
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row, TenantSession, as_platform, as_tenant
from lagscale.store.registry.tenant_rules import PolicyViolation
from lagscale.store.registry.versions import Precondition, WriteResult, check_precondition
from services.api.clusters.schemas import ClusterIn
from services.api.clusters.spec import build_cluster_spec
from services.api.monitors.drafts import parse_draft
from services.api.schemas import BindingIn, KeyIn, MonitorIn, PlatformKeyIn
from services.api.tenants.rules import build_tenant_columns
from services.api.tenants.schemas import TenantIn

_TENANT_ROLES = (api_keys.TENANT_ADMIN, api_keys.TENANT_VIEWER)


class Operations:
    """The administration's use cases. `precondition` is what If-Match or If-None-Match says, None without them."""

    def __init__(self, database: RegistryDatabase, keyring: Keyring, tick_seconds: float) -> None:
        self._database = database
        self._keyring = keyring
        self._tick = tick_seconds

    async def list_tenants(self, scope: AccessScope, page_request: PageRequest) -> Page:
        async with self._database.within(scope) as session:
            return await tenants.list_page(session, page_request)

    async def tenant(self, scope: AccessScope, name: str) -> Row:
        async with self._database.tenant(scope, name) as session:
            return session.tenant

    async def create_tenant(self, scope: AccessScope, given: TenantIn) -> WriteResult:
        name, values = _require_name(given.name), build_tenant_columns(given, self._tick)
        async with self._database.within(scope) as session:
            return await tenants.create(session, name, values)

    async def put_tenant(
        self, scope: AccessScope, name: str, given: TenantIn, precondition: Precondition | None
    ) -> tuple[WriteResult, list[PolicyViolation]]:
        """The tenant as it is now, and the monitors that its new rules forbid."""
        name, values = _check_url_name(name, given.name), build_tenant_columns(given, self._tick)
        async with self._database.within(scope) as session:
            outcome = await tenants.put(session, name, values, precondition)
            if not tenants.changes_rules(outcome):
                return outcome, []
            tenant_work = await as_tenant(session, outcome.row)
            return outcome, await tenant_rules.apply_tenant_rules(tenant_work, self._tick)

    async def find_violations(
        self, scope: AccessScope, tenant: str, page_request: PageRequest
    ) -> tuple[list[PolicyViolation], str | None]:
        """Of a page of monitors those that the tenant's rules forbid, and the cursor of the next page."""
        async with self._database.tenant(scope, tenant) as session:
            page = await monitors.list_page(session, page_request)
            return tenant_rules.find_violations(session, page.rows, self._tick), page.after

    async def delete_tenant(self, scope: AccessScope, name: str, precondition: Precondition | None) -> None:
        async with self._database.tenant(scope, name, lock=True) as session:
            check_precondition(session.tenant, precondition)
            await tenants.remove(session)
            # The tenant's own audit went with it, so that it went is the platform's to remember.
            await audit.record(await as_platform(session), "tenant.delete", f"tenant/{name}", session.tenant, None)

    async def list_clusters(self, scope: AccessScope, tenant: str, page_request: PageRequest) -> Page:
        async with self._database.tenant(scope, tenant) as session:
            return await clusters.list_page(session, page_request)

    async def cluster(self, scope: AccessScope, tenant: str, name: str) -> Row:
        async with self._database.tenant(scope, tenant) as session:
            return await clusters.read_by_name(session, name)

    async def create_cluster(self, scope: AccessScope, tenant: str, given: ClusterIn) -> Row:
        spec = self._build_cluster(_require_name(given.name), given, scope)
        async with self._database.tenant(scope, tenant) as session:
            await clusters.create(session, spec, self._keyring)
            return await clusters.read_by_name(session, spec.name)

    async def put_cluster(
        self, scope: AccessScope, tenant: str, name: str, given: ClusterIn, *, precondition: Precondition | None
    ) -> tuple[Row, bool]:
        """The cluster as it is now, and whether it was created."""
        spec = self._build_cluster(_check_url_name(name, given.name), given, scope)
        # Under the lock two first PUTs of one name make one cluster, and no conflict.
        async with self._database.tenant(scope, tenant, lock=True) as session:
            outcome = await clusters.put(session, spec, self._keyring, precondition)
            return await clusters.read_by_name(session, spec.name), outcome.created

    async def delete_cluster(
        self, scope: AccessScope, tenant: str, name: str, precondition: Precondition | None
    ) -> None:
        async with self._database.tenant(scope, tenant) as session:
            await clusters.remove(session, name, precondition)

    async def list_monitors(
        self, scope: AccessScope, tenant: str, page_request: PageRequest, filters: MonitorFilter | None = None
    ) -> Page:
        async with self._database.tenant(scope, tenant) as session:
            return await monitors.list_page(session, page_request, filters)

    async def monitor(self, scope: AccessScope, tenant: str, name: str) -> Row:
        async with self._database.tenant(scope, tenant) as session:
            return await monitors.read_by_name(session, name)

    async def create_monitor(self, scope: AccessScope, tenant: str, given: MonitorIn) -> WriteResult:
        draft = parse_draft(_require_name(given.name), given)
        async with self.monitor_changes(scope, tenant) as session:
            outcome = await monitors.create(session, self.build_spec(draft, session))
            return replace(outcome, row=await monitors.read_by_name(session, draft.name))

    async def put_monitor(
        self, scope: AccessScope, tenant: str, name: str, given: MonitorIn, *, precondition: Precondition | None
    ) -> WriteResult:
        draft = parse_draft(_check_url_name(name, given.name), given)
        async with self.monitor_changes(scope, tenant) as session:
            outcome = await monitors.put_draft(session, draft, self._tick, precondition)
            return replace(outcome, row=await monitors.read_by_name(session, name))

    async def delete_monitor(
        self, scope: AccessScope, tenant: str, name: str, precondition: Precondition | None
    ) -> None:
        async with self._database.tenant(scope, tenant) as session:
            await monitors.remove(session, name, precondition)

    async def restore_monitor(self, scope: AccessScope, tenant: str, name: str) -> WriteResult:
        async with self.monitor_changes(scope, tenant) as session:
            row = await monitors.lock_deleted(session, name)
            outcome = await monitors.restore(session, row, self.build_spec(read_draft(row), session))
            return replace(outcome, row=await monitors.read_by_name(session, name))

    def monitor_changes(self, scope: AccessScope, tenant: str) -> AbstractAsyncContextManager[TenantSession]:
        """A transaction in which monitors change; its lock keeps the tenant's rules as they are until the end."""
        return self._database.tenant(scope, tenant, lock=True)

    def build_spec(self, draft: MonitorDraft, session: TenantSession) -> MonitorSpec:
        """The monitor by its tenant's rules.

        Raises:
            InvalidInput: with every fault at once.
        """
        return build_spec(draft, session.tenant, self._tick)

    async def list_bindings(self, scope: AccessScope, tenant: str, page_request: PageRequest) -> Page:
        async with self._database.tenant(scope, tenant) as session:
            return await bindings.list_page(session, page_request)

    async def bind(self, scope: AccessScope, tenant: str, given: BindingIn) -> WriteResult:
        row = await self.tenant(scope, tenant)
        # Bindings of one instance exclude each other across tenants, so this is the platform's sight and right.
        async with self._database.platform(scope.actor, origin=scope.origin, dry_run=scope.dry_run) as session:
            return await bindings.put(session, int(row["id"]), given.instance, given.namespace)

    async def unbind(self, scope: AccessScope, tenant: str, instance: str, namespace: str) -> None:
        async with self._database.tenant(scope, tenant) as session:
            await bindings.remove(session, instance, namespace)

    async def list_keys(self, scope: AccessScope, tenant: str, page_request: PageRequest) -> Page:
        async with self._database.tenant(scope, tenant) as session:
            return await api_keys.list_page(session, page_request)

    async def create_key(self, scope: AccessScope, tenant: str, given: KeyIn) -> CreatedKey:
        if given.role not in _TENANT_ROLES:
            raise InvalidInput([FieldError("role", f"must be {' or '.join(_TENANT_ROLES)}")])
        async with self._database.tenant(scope, tenant) as session:
            return await api_keys.create(session, given.name, given.role, given.expires_at)

    async def revoke_key(self, scope: AccessScope, tenant: str, prefix: str) -> None:
        async with self._database.tenant(scope, tenant) as session:
            await api_keys.revoke(session, prefix)

    async def list_platform_keys(self, scope: AccessScope, page_request: PageRequest) -> Page:
        async with self._database.within(scope) as session:
            return await api_keys.list_page(session, page_request)

    async def create_platform_key(self, scope: AccessScope, given: PlatformKeyIn) -> CreatedKey:
        async with self._database.within(scope) as session:
            return await api_keys.create(session, given.name, api_keys.PLATFORM_ADMIN, given.expires_at)

    async def revoke_platform_key(self, scope: AccessScope, prefix: str) -> None:
        async with self._database.within(scope) as session:
            await api_keys.revoke(session, prefix)

    def _build_cluster(self, name: str, given: ClusterIn, scope: AccessScope) -> ClusterSpec:
        spec = build_cluster_spec(name, given, platform=scope.platform)
        if spec.secrets and not self._keyring.usable:
            raise InvalidInput([FieldError("secrets", "cannot be stored: this system has no LAGSCALE_SECRET_KEYS")])
        return spec


def _require_name(name: str | None) -> str:
    if name is None:
        raise InvalidInput([FieldError("name", "must be given")])
    return name


def _check_url_name(name: str, given: str | None) -> str:
    if given is not None and given != name:
        raise InvalidInput([FieldError("name", "must be the name in the URL, or left out")])
    return name
