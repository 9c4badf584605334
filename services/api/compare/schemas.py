"""Bodies of the comparison with KEDA's `kafka` trigger, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from services.api.schemas import ApiSchema


class KedaTriggerOut(ApiSchema):
    """The keys by which KEDA's trigger was worked out."""

    lag_threshold: int = Field(examples=[10])
    activation_lag_threshold: int = Field(examples=[0])
    offset_reset_policy: str = Field(examples=["latest"])
    scale_to_zero_on_invalid_offset: bool
    allow_idle_consumers: bool
    limit_to_partitions_with_lag: bool
    ensure_even_distribution_of_partitions: bool
    exclude_persistent_lag: bool


class ComparisonSideOut(ApiSchema):
    """One of the two at a moment; `value` and `active` are null where it would have given an error."""

    value: float | None = Field(examples=[1200.0])
    active: bool | None
    replicas: int = Field(description="What KEDA and the HPA would have made of the answers until then.")


class ComparisonPointOut(ApiSchema):
    """A moment by both."""

    at: datetime
    keda: ComparisonSideOut
    lagscale: ComparisonSideOut
    verdict: str = Field(examples=["calm"])
    reason: str = Field(examples=["not_yet"])
    last_known: bool
    differs: bool = Field(description="The numbers of replicas differ.")


class ComparisonSummaryOut(ApiSchema):
    """One of the two over the whole time."""

    scale_events: int = Field(examples=[14], description="How often the number of replicas changed.")
    peak_replicas: int
    average_replicas: float
    errors: int = Field(description="Moments without an answer.")


class ComparisonDifferenceOut(ApiSchema):
    """A stretch of moments at which the numbers of replicas differ."""

    begin: datetime
    end: datetime
    keda_peak_replicas: int
    lagscale_peak_replicas: int
    sentence: str = Field(examples=["KEDA wants more: lag was there, and had not lasted for sustainSeconds."])


class ComparisonOut(ApiSchema):
    """What KEDA's `kafka` trigger would have said and what Lagscale says, from the same samples."""

    monitor: str = Field(examples=["ingest-logs"])
    begin: datetime
    end: datetime
    step_seconds: float
    min_replicas: int
    max_replicas: int
    target_lag: float = Field(description="Lagscale's target for one replica.")
    trigger: KedaTriggerOut
    sentence: str
    keda: ComparisonSummaryOut
    lagscale: ComparisonSummaryOut
    differences: list[ComparisonDifferenceOut]
    notes: Annotated[list[str], Field(description="What the comparison cannot show.")]
    points: list[ComparisonPointOut]
