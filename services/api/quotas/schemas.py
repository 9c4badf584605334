"""Bodies of requests and answers about quotas, as the OpenAPI document shows them."""

from __future__ import annotations

from pydantic import Field

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota
from services.api.schemas import ApiSchema

_MAX_LIMIT = 1_000_000


class QuotasIn(ApiSchema):
    """A tenant's quotas as they shall be; one that is left out is the default again."""

    monitors: int = Field(default=DEFAULT_QUOTAS[Quota.MONITORS], ge=0, le=_MAX_LIMIT, description="The most monitors.")
    clusters: int = Field(
        default=DEFAULT_QUOTAS[Quota.CLUSTERS], ge=0, le=_MAX_LIMIT, description="The most clusters.", examples=[50]
    )
    patterns: int = Field(
        default=DEFAULT_QUOTAS[Quota.PATTERNS],
        ge=0,
        le=_MAX_LIMIT,
        description="The most monitors whose topics are looked up, by `topicPattern` or by their group.",
    )
    partitions: int = Field(
        default=DEFAULT_QUOTAS[Quota.PARTITIONS],
        ge=0,
        le=100 * _MAX_LIMIT,
        description="The most partitions of all targets together: a topic counts once for each group that is measured "
        "on it.",
    )
    calls: int = Field(
        default=DEFAULT_QUOTAS[Quota.CALLS],
        ge=1,
        le=_MAX_LIMIT,
        alias=Quota.CALLS.value,
        description="KEDA's calls a second, for each monitor and for each replica of the scaler.",
    )
    requests: int = Field(
        default=DEFAULT_QUOTAS[Quota.REQUESTS],
        ge=1,
        le=_MAX_LIMIT,
        alias=Quota.REQUESTS.value,
        description="Requests a second of the tenant's keys, for each replica of the API.",
    )


class CountQuotaOut(ApiSchema):
    """A quota of objects."""

    limit: int = Field(examples=[50])
    used: int = Field(examples=[3])


class PartitionQuotaOut(CountQuotaOut):
    """The quota of partitions, which are known only when they were measured."""

    unmeasured: int = Field(examples=[0], description="Targets whose partitions were not counted yet.")
    refused: int = Field(
        examples=[0], description="Targets that do not fit, so they are not measured: unknown, never 0."
    )


class RateQuotaOut(ApiSchema):
    """A quota of calls in a time, for each replica."""

    limit: int = Field(examples=[500])


class QuotasOut(ApiSchema):
    """A tenant's quotas and what it uses of them."""

    monitors: CountQuotaOut
    clusters: CountQuotaOut
    patterns: CountQuotaOut
    partitions: PartitionQuotaOut
    calls: RateQuotaOut = Field(alias=Quota.CALLS.value)
    requests: RateQuotaOut = Field(alias=Quota.REQUESTS.value)
    version: int = Field(description="The tenant's version, for If-Match.", examples=[2])
