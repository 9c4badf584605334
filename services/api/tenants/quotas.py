"""/v1/tenants/{tenant}/quotas: the platform's administrators set them, the tenant's keys read limits and usage."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from lagscale.domain.quotas import DEFAULT_QUOTAS, QUOTA_COLUMNS, Quota
from lagscale.store.registry import quotas
from lagscale.store.registry.quotas import QuotaUsage
from lagscale.store.registry.session import Row
from services.api.deps import DryRun, IfMatch, PlatformAdmin, Viewer, set_etag
from services.api.schemas import ApiSchema

router = APIRouter(prefix="/v1/tenants/{tenant}/quotas", tags=["quotas"])

_MAX_LIMIT = 1_000_000
#: Quota -> description.
_DESCRIPTIONS = {
    Quota.MONITORS: "Maximum number of monitors.",
    Quota.CLUSTERS: "Maximum number of clusters.",
    Quota.PATTERNS: "Maximum number of monitors that discover their topics, by `topicPattern` or by their group.",
    Quota.PARTITIONS: "Maximum number of partitions of all targets: a topic counts once for each group measured on it.",
    Quota.CALLS: "Calls of KEDA per second, for each monitor and each replica of the scaler.",
    Quota.REQUESTS: "Requests of the tenant's keys per second, for each replica of the API.",
}
_RATES = {Quota.CALLS, Quota.REQUESTS}


def quota_field(quota: Quota, **extra: Any) -> Any:
    """The field of a quota, with its default, limits and description."""
    return Field(
        default=DEFAULT_QUOTAS[quota],
        ge=1 if quota in _RATES else 0,
        le=100 * _MAX_LIMIT if quota is Quota.PARTITIONS else _MAX_LIMIT,
        description=_DESCRIPTIONS[quota],
        examples=[DEFAULT_QUOTAS[quota]],
        **extra,
    )


class QuotasIn(ApiSchema):
    """Desired quotas of a tenant; an omitted one is reset to its default."""

    monitors: int = quota_field(Quota.MONITORS)
    clusters: int = quota_field(Quota.CLUSTERS)
    patterns: int = quota_field(Quota.PATTERNS)
    partitions: int = quota_field(Quota.PARTITIONS)
    calls: int = quota_field(Quota.CALLS, alias=Quota.CALLS.value)
    requests: int = quota_field(Quota.REQUESTS, alias=Quota.REQUESTS.value)


class CountQuotaOut(ApiSchema):
    """A quota of objects."""

    limit: int = Field(examples=[50])
    used: int = Field(examples=[3])


class PartitionQuotaOut(CountQuotaOut):
    """The quota of partitions, which are counted once they were measured."""

    unmeasured: int = Field(examples=[0], description="Targets whose partitions are not counted yet.")
    refused: int = Field(examples=[0], description="Targets over the quota, which are not measured: unknown, never 0.")


class RateQuotaOut(ApiSchema):
    """A rate limit, for each replica."""

    limit: int = Field(examples=[500])


class QuotasOut(ApiSchema):
    """Quotas and usage of a tenant."""

    monitors: CountQuotaOut
    clusters: CountQuotaOut
    patterns: CountQuotaOut
    partitions: PartitionQuotaOut
    calls: RateQuotaOut = Field(alias=Quota.CALLS.value)
    requests: RateQuotaOut = Field(alias=Quota.REQUESTS.value)
    version: int = Field(description="Version of the tenant, for `If-Match`.", examples=[2])


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
    fields: dict[str, Any] = {quota.name.lower(): {"limit": tenant[column]} for quota, column in QUOTA_COLUMNS.items()}
    for quota in QUOTA_COLUMNS.keys() - _RATES:
        fields[quota.name.lower()]["used"] = usage.of(quota)
    fields["partitions"] |= {"unmeasured": usage.unmeasured, "refused": usage.refused}
    return QuotasOut.model_validate(fields | {"version": tenant["version"]})
