"""/v1/tenants/{tenant}/monitors/{monitor}/compare: what KEDA's `kafka` trigger would have said, and what we say."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from lagscale.domain.policy.policy import OffsetResetPolicy
from lagscale.errors import FieldError, InvalidInput
from services.api.auth.authenticator import Viewer
from services.api.compare.comparison import ComparisonRequest, Comparisons, ComparisonWindow
from services.api.compare.schemas import ComparisonOut
from services.api.deps import Tenant, check_name
from services.api.explain.routes import parse_time
from services.api.verdicts.reader import VerdictReader

router = APIRouter(prefix="/v1/tenants/{tenant}/monitors", tags=["monitors"])

_MAX_NUMBER = 10**15
#: Names of the query -> those of the domain, where they differ.
_DOMAIN_NAMES = {
    "limit_to_partitions_with_lag": "limit_to_lagging",
    "ensure_even_distribution_of_partitions": "even_split",
}


class CompareQuery(BaseModel):
    """From when to when, and the keys of KEDA's trigger where they are not the monitor's."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    begin: str | None = Field(default=None, alias="from", max_length=64, description="ISO 8601 with its zone, or milliseconds since 1970; `hours` before `to`, if it is left out.")  # fmt: skip
    end: str | None = Field(default=None, alias="to", max_length=64, description="The same; now, if it is left out.")
    hours: float = Field(default=6.0, gt=0, le=168, description="How far before `to` it begins, without `from`.")
    step: float | None = Field(default=None, gt=0, le=86_400, description="Seconds between two moments.")
    min_replicas: int = Field(default=0, ge=0, le=100_000, description="minReplicaCount of the ScaledObject.")
    max_replicas: int | None = Field(default=None, ge=1, le=100_000, description="maxReplicaCount; as many as partitions can feed, if it is left out.")  # fmt: skip
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
        """What was given of KEDA's trigger, by the domain's names."""
        window_fields = {"begin", "end", "hours", "step", "min_replicas", "max_replicas"}
        given = self.model_dump(exclude=window_fields, exclude_none=True)
        if self.offset_reset_policy is not None:
            given["offset_reset_policy"] = OffsetResetPolicy(self.offset_reset_policy)
        return {_DOMAIN_NAMES.get(name, name): value for name, value in given.items()}


def _build_comparisons(request: Request) -> Comparisons:
    # It keeps nothing between two requests, and judges by the same verdicts as the evidence.
    verdict_reader: VerdictReader = request.app.state.verdict_reader
    return Comparisons(request.app.state.database, verdict_reader.verdicts)


def _parse_parameter(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_time(text)
    except InvalidInput as error:
        raise InvalidInput([FieldError(name, field_error.text) for field_error in error.field_errors]) from None


@router.get("/{monitor}/compare", summary="Compare with KEDA's kafka trigger over a time, from the samples")
async def compare(
    caller: Viewer,
    comparisons: Annotated[Comparisons, Depends(_build_comparisons)],
    tenant: Tenant,
    monitor: str,
    query: Annotated[CompareQuery, Query()],
) -> ComparisonOut:
    if query.max_replicas is not None and query.max_replicas < query.min_replicas:
        raise InvalidInput([FieldError("maxReplicas", "must not be below minReplicas")])
    step = None if query.step is None else round(query.step * 1000)
    window = ComparisonWindow(
        _parse_parameter("from", query.begin), _parse_parameter("to", query.end), step, round(query.hours * 3_600_000)
    )
    comparison_request = ComparisonRequest(query.keys, query.min_replicas, query.max_replicas)
    return await comparisons.compare(caller.scope, tenant, check_name(monitor), window, comparison_request)
