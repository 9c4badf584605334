"""What can be done with a tenant's quotas: the platform's administrators set them, the tenant sees what it uses."""

from __future__ import annotations

from dataclasses import dataclass

from lagscale.domain.quotas import Quota
from lagscale.store.registry import quotas
from lagscale.store.registry.quotas import Usage
from lagscale.store.registry.session import RegistryDatabase, Row, Scope
from lagscale.store.registry.versions import Seen
from services.api.quotas.schemas import QuotasIn


@dataclass(frozen=True, slots=True)
class Quotas:
    """The tenant's row with its limits, and what is used of them."""

    tenant: Row
    usage: Usage


class QuotaOperations:
    """The use cases. `seen` is what If-Match says, None without one."""

    def __init__(self, database: RegistryDatabase) -> None:
        self._database = database

    async def show(self, scope: Scope, tenant: str) -> Quotas:
        """Limits and usage.

        Raises:
            NotFound: no such tenant for this scope.
        """
        async with self._database.tenant(scope, tenant) as work:
            return Quotas(work.tenant, await quotas.usage(work))

    async def put(self, scope: Scope, tenant: str, given: QuotasIn, seen: Seen | None) -> Quotas:
        """Set all limits; one that is not given is the default again.

        Raises:
            NotFound: no such tenant for this scope.
            PreconditionFailed: it has changed since the version seen.
        """
        limits = {quota: int(getattr(given, quota.name.lower())) for quota in Quota}
        async with self._database.tenant(scope, tenant) as work:
            used = await quotas.usage(work)
            outcome = await quotas.put(work, limits, seen)
            return Quotas(outcome.row, used)
