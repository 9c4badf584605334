"""Response body of the comparison with KEDA's `kafka` trigger."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from services.api.schemas import ApiSchema


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
