"""Query and response body of the comparison with KEDA's `kafka` trigger."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from lagscale.domain.policy.policy import OffsetResetPolicy
from services.api.schemas import ApiSchema

_MAX_NUMBER = 10**15


class KedaTriggerOut(ApiSchema):
    """Keys of the simulated trigger."""

    lag_threshold: int = Field(examples=[10])
    activation_lag_threshold: int = Field(examples=[0])
    offset_reset_policy: str = Field(examples=["latest"])
    scale_to_zero_on_invalid_offset: bool
    allow_idle_consumers: bool
    limit_to_partitions_with_lag: bool
    ensure_even_distribution_of_partitions: bool
    exclude_persistent_lag: bool


class CompareQuery(ApiSchema):
    """The time range, and keys of KEDA's trigger where they differ from the monitor's policy."""

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
    offset_reset_policy: Annotated[Literal["latest", "earliest"], AfterValidator(OffsetResetPolicy)] | None = None
    scale_to_zero_on_invalid_offset: bool | None = None
    allow_idle_consumers: bool | None = None
    limit_to_partitions_with_lag: bool | None = None
    ensure_even_distribution_of_partitions: bool | None = None
    exclude_persistent_lag: bool | None = None

    @property
    def keys(self) -> dict[str, Any]:
        """The given keys of KEDA's trigger."""
        return self.model_dump(include=set(KedaTriggerOut.model_fields), exclude_none=True)


class ComparisonSideOut(ApiSchema):
    """One side at a point in time; `value` and `active` are null where it would have returned an error."""

    value: float | None = Field(examples=[1200.0])
    active: bool | None
    replicas: int = Field(description="Replicas that KEDA and the HPA would have run by the answers until then.")


class ComparisonPointOut(ApiSchema):
    """Both sides at a point in time."""

    at: datetime
    keda: ComparisonSideOut
    lagscale: ComparisonSideOut
    verdict: str = Field(examples=["calm"])
    reason: str = Field(examples=["not_yet"])
    last_known: bool
    differs: bool = Field(description="Whether the numbers of replicas differ.")


class ComparisonSummaryOut(ApiSchema):
    """One side over the whole time range."""

    scale_events: int = Field(examples=[14], description="Number of changes of the replicas.")
    peak_replicas: int
    average_replicas: float
    errors: int = Field(description="Points without an answer.")


class ComparisonDifferenceOut(ApiSchema):
    """A run of points at which the numbers of replicas differ."""

    begin: datetime
    end: datetime
    keda_peak_replicas: int
    lagscale_peak_replicas: int
    sentence: str = Field(examples=["KEDA has more replicas: there was lag, but not for sustainSeconds."])


class ComparisonOut(ApiSchema):
    """The answers of KEDA's `kafka` trigger and of Lagscale, computed from the same samples."""

    monitor: str = Field(examples=["ingest-logs"])
    begin: datetime
    end: datetime
    step_seconds: float
    min_replicas: int
    max_replicas: int
    target_lag: float = Field(description="Lagscale's target lag per replica.")
    trigger: KedaTriggerOut
    sentence: str
    keda: ComparisonSummaryOut
    lagscale: ComparisonSummaryOut
    differences: list[ComparisonDifferenceOut]
    notes: Annotated[list[str], Field(description="Limits of the comparison.")]
    points: list[ComparisonPointOut]
