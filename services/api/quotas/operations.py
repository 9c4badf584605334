"""What can be done with a tenant's quotas: the platform's administrators set them, the tenant sees what it uses."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.domain.quotas import Quota
from lagscale.store.registry import quotas
from lagscale.store.registry.quotas import QuotaUsage
from lagscale.store.registry.session import AccessScope, RegistryDatabase, Row
from lagscale.store.registry.versions import Precondition
from services.api.quotas.schemas import QuotasIn


@dataclass(frozen=True, slots=True)
class TenantQuotas:
    """The tenant's row with its limits, and what is used of them."""

    tenant: Row
    usage: QuotaUsage


class QuotaOperations:
    """The use cases. `precondition` is what If-Match says, None without one."""

    def __init__(self, database: RegistryDatabase) -> None:
        self._database = database

    async def show(self, scope: AccessScope, tenant: str) -> TenantQuotas:
        """Limits and usage.

        Raises:
            NotFound: no such tenant for this scope.
        """
        async with self._database.tenant(scope, tenant) as session:
            return TenantQuotas(session.tenant, await quotas.read_usage(session))

    async def put(
        self, scope: AccessScope, tenant: str, given: QuotasIn, precondition: Precondition | None
    ) -> TenantQuotas:
        """Set all limits; one that is not given is the default again.

        Raises:
            NotFound: no such tenant for this scope.
            PreconditionFailed: it has changed since the version seen.
        """
        limits = {quota: int(getattr(given, quota.name.lower())) for quota in Quota}
        async with self._database.tenant(scope, tenant) as session:
            used = await quotas.read_usage(session)
            outcome = await quotas.put(session, limits, precondition)
            return TenantQuotas(outcome.row, used)
