"""Request and response bodies of quotas. Defaults and names are those of `lagscale.domain.quotas`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota
from services.api.schemas import ApiSchema

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
