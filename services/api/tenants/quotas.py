"""/v1/tenants/{tenant}/quotas: the platform's administrators set them, the tenant's keys read limits and usage."""

from __future__ import annotations

from fastapi import APIRouter, Response

from lagscale.domain.quotas import QUOTA_COLUMNS, Quota
from lagscale.store.registry import quotas
from lagscale.store.registry.quotas import QuotaUsage
from lagscale.store.registry.session import Row
from services.api.deps import DryRun, IfMatch, PlatformAdmin, Viewer, set_etag
from services.api.quotas.schemas import CountQuotaOut, PartitionQuotaOut, QuotasIn, QuotasOut, RateQuotaOut

router = APIRouter(prefix="/v1/tenants/{tenant}/quotas", tags=["quotas"])


@router.get("", summary="Show quotas and usage of a tenant")
async def show_quotas(tenant: Viewer, response: Response) -> QuotasOut:
    async with tenant.session() as session:
        usage = await quotas.read_usage(session)
    set_etag(response, session.tenant["version"])
    return _serialize_quotas(session.tenant, usage)


@router.put("", summary="Set the quotas of a tenant")
async def put_quotas(
    tenant: PlatformAdmin, given: QuotasIn, precondition: IfMatch, response: Response, *, dry_run: DryRun = False
) -> QuotasOut:
    limits = {quota: int(getattr(given, quota.name.lower())) for quota in Quota}
    async with tenant.session(dry_run=dry_run) as session:
        usage = await quotas.read_usage(session)
        outcome = await quotas.put(session, limits, precondition)
    set_etag(response, outcome.row["version"])
    return _serialize_quotas(outcome.row, usage)


def _serialize_quotas(tenant: Row, usage: QuotaUsage) -> QuotasOut:
    limits = {quota: int(tenant[column]) for quota, column in QUOTA_COLUMNS.items()}

    def build_count(quota: Quota) -> CountQuotaOut:
        return CountQuotaOut(limit=limits[quota], used=usage.of(quota))

    return QuotasOut(
        monitors=build_count(Quota.MONITORS),
        clusters=build_count(Quota.CLUSTERS),
        patterns=build_count(Quota.PATTERNS),
        partitions=PartitionQuotaOut(
            limit=limits[Quota.PARTITIONS], used=usage.partitions, unmeasured=usage.unmeasured, refused=usage.refused
        ),
        calls=RateQuotaOut(limit=limits[Quota.CALLS]),
        requests=RateQuotaOut(limit=limits[Quota.REQUESTS]),
        version=tenant["version"],
    )
