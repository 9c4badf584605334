"""/v1/tenants/{tenant}/quotas: the platform's administrators set them, the tenant's keys see limits and usage."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from lagscale.domain.quotas import QUOTA_COLUMNS, Quota
from services.api.auth.authenticator import PlatformAdmin, Viewer
from services.api.deps import Tenant, set_etag
from services.api.dry_run import SUPPORTS_DRY_RUN
from services.api.preconditions import Precondition
from services.api.quotas.operations import QuotaOperations, TenantQuotas
from services.api.quotas.schemas import CountQuotaOut, PartitionQuotaOut, QuotasIn, QuotasOut, RateQuotaOut

router = APIRouter(prefix="/v1/tenants/{tenant}/quotas", tags=["quotas"])


def _get_quotas(request: Request) -> QuotaOperations:
    tenant_quotas: QuotaOperations = request.app.state.quotas
    return tenant_quotas


QuotasPart = Annotated[QuotaOperations, Depends(_get_quotas)]


@router.get("", summary="Show a tenant's quotas and what it uses")
async def show_quotas(caller: Viewer, operations: QuotasPart, tenant: Tenant, response: Response) -> QuotasOut:
    return _serialize_quotas(await operations.show(caller.scope, tenant), response)


@router.put("", summary="Set a tenant's quotas", dependencies=[SUPPORTS_DRY_RUN])
async def put_quotas(
    *,
    caller: PlatformAdmin,
    operations: QuotasPart,
    tenant: Tenant,
    given: QuotasIn,
    precondition: Precondition,
    response: Response,
) -> QuotasOut:
    return _serialize_quotas(await operations.put(caller.scope, tenant, given, precondition), response)


def _serialize_quotas(tenant_quotas: TenantQuotas, response: Response) -> QuotasOut:
    limits = {quota: int(tenant_quotas.tenant[column]) for quota, column in QUOTA_COLUMNS.items()}
    used = tenant_quotas.usage
    set_etag(response, tenant_quotas.tenant["version"])

    def build_count(quota: Quota) -> CountQuotaOut:
        return CountQuotaOut(limit=limits[quota], used=used.of(quota))

    return QuotasOut(
        monitors=build_count(Quota.MONITORS),
        clusters=build_count(Quota.CLUSTERS),
        patterns=build_count(Quota.PATTERNS),
        partitions=PartitionQuotaOut(
            limit=limits[Quota.PARTITIONS], used=used.partitions, unmeasured=used.unmeasured, refused=used.refused
        ),
        calls=RateQuotaOut(limit=limits[Quota.CALLS]),
        requests=RateQuotaOut(limit=limits[Quota.REQUESTS]),
        version=tenant_quotas.tenant["version"],
    )
