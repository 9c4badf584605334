"""/v1/tenants/{tenant}/quotas: the platform's administrators set them, the tenant's keys see limits and usage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from lagscale.domain.quotas import COLUMNS, Quota
from services.api.auth.access import PlatformAdmin, Viewer
from services.api.deps import Tenant, tag
from services.api.dry_run import CAN_TRY
from services.api.preconditions import Seen
from services.api.quotas.operations import QuotaOperations, Quotas
from services.api.quotas.schemas import Counted, CountedPartitions, QuotasIn, QuotasOut, Rate

router = APIRouter(prefix="/v1/tenants/{tenant}/quotas", tags=["quotas"])


def _operations(request: Request) -> QuotaOperations:
    found: QuotaOperations = request.app.state.quotas
    return found


Operations = Annotated[QuotaOperations, Depends(_operations)]


@router.get("", summary="Show a tenant's quotas and what it uses")
async def show_quotas(caller: Viewer, operations: Operations, tenant: Tenant, response: Response) -> QuotasOut:
    return _told(await operations.show(caller.scope, tenant), response)


@router.put("", summary="Set a tenant's quotas", dependencies=[CAN_TRY])
async def put_quotas(
    *, caller: PlatformAdmin, operations: Operations, tenant: Tenant, given: QuotasIn, seen: Seen, response: Response
) -> QuotasOut:
    return _told(await operations.put(caller.scope, tenant, given, seen), response)


def _told(found: Quotas, response: Response) -> QuotasOut:
    limits = {quota: int(found.tenant[column]) for quota, column in COLUMNS.items()}
    used = found.usage
    tag(response, found.tenant["version"])

    def counted(quota: Quota) -> Counted:
        return Counted(limit=limits[quota], used=used.of(quota))

    return QuotasOut(
        monitors=counted(Quota.MONITORS),
        clusters=counted(Quota.CLUSTERS),
        patterns=counted(Quota.PATTERNS),
        partitions=CountedPartitions(
            limit=limits[Quota.PARTITIONS], used=used.partitions, unmeasured=used.unmeasured, refused=used.refused
        ),
        calls=Rate(limit=limits[Quota.CALLS]),
        requests=Rate(limit=limits[Quota.REQUESTS]),
        version=found.tenant["version"],
    )
