"""/v1/tenants/{tenant}/monitors/{monitor}/compare: the answers of KEDA's `kafka` trigger next to those of Lagscale."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from lagscale.domain.policy.policy import OffsetResetPolicy
from lagscale.errors import FieldError, InvalidInput
from services.api.compare.comparison import ComparisonRequest, ComparisonWindow, compare_with_keda
from services.api.compare.schemas import ComparisonOut
from services.api.deps import Viewer, check_name, parse_time, part
from services.api.verdicts.answers import VerdictStore

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

_MAX_NUMBER = 10**15
#: Name in the query -> in the domain, where they differ.
_DOMAIN_NAMES = {
    "limit_to_partitions_with_lag": "limit_to_lagging",
    "ensure_even_distribution_of_partitions": "even_split",
}


class CompareQuery(BaseModel):
    """The time range, and keys of KEDA's trigger where they differ from the monitor's policy."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    begin: str | None = Field(
        default=None,
        alias="from",
        max_length=64,
        description="ISO 8601 with its zone, or milliseconds since 1970. Default: `hours` before `to`.",
    )
    end: str | None = Field(default=None, alias="to", max_length=64, description="As `from`. Default: now.")
    hours: float = Field(default=6.0, gt=0, le=168, description="Length of the time range, without `from`.")
    step: float | None = Field(default=None, gt=0, le=86_400, description="Seconds between two points.")
    min_replicas: int = Field(default=0, ge=0, le=100_000, description="minReplicaCount of the ScaledObject.")
    max_replicas: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="maxReplicaCount of the ScaledObject. Default: as many as there are partitions to read.",
    )
    lag_threshold: int | None = Field(default=None, ge=1, le=_MAX_NUMBER)
    activation_lag_threshold: int | None = Field(default=None, ge=0, le=_MAX_NUMBER)
    offset_reset_policy: Literal["latest", "earliest"] | None = None
    scale_to_zero_on_invalid_offset: bool | None = None
    allow_idle_consumers: bool | None = None
    limit_to_partitions_with_lag: bool | None = None
    ensure_even_distribution_of_partitions: bool | None = None
    exclude_persistent_lag: bool | None = None

    @property
    def keys(self) -> dict[str, int | bool | str]:
        """The given keys of KEDA's trigger, by the domain's names."""
        window_fields = {"begin", "end", "hours", "step", "min_replicas", "max_replicas"}
        given = self.model_dump(exclude=window_fields, exclude_none=True)
        if self.offset_reset_policy is not None:
            given["offset_reset_policy"] = OffsetResetPolicy(self.offset_reset_policy)
        return {_DOMAIN_NAMES.get(name, name): value for name, value in given.items()}


@router.get("/{monitor}/compare", summary="Compare a monitor with KEDA's kafka trigger over a time range")
async def compare(
    tenant: Viewer,
    verdicts: Annotated[VerdictStore, part("verdicts")],
    monitor: str,
    query: Annotated[CompareQuery, Query()],
) -> ComparisonOut:
    if query.max_replicas is not None and query.max_replicas < query.min_replicas:
        raise InvalidInput([FieldError("maxReplicas", "must not be below minReplicas")])
    step_ms = None if query.step is None else round(query.step * 1000)
    window = ComparisonWindow(
        parse_time(query.begin, "from"), parse_time(query.end, "to"), step_ms, round(query.hours * 3_600_000)
    )
    comparison_request = ComparisonRequest(query.keys, query.min_replicas, query.max_replicas)
    return await compare_with_keda(tenant, verdicts, check_name(monitor), window, comparison_request)
