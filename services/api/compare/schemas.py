"""Bodies of the comparison with KEDA's `kafka` trigger, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from services.api.schemas import Payload


class KedaTriggerOut(Payload):
    """The keys by which KEDA's trigger was worked out."""

    lag_threshold: int = Field(examples=[10])
    activation_lag_threshold: int = Field(examples=[0])
    offset_reset_policy: str = Field(examples=["latest"])
    scale_to_zero_on_invalid_offset: bool
    allow_idle_consumers: bool
    limit_to_partitions_with_lag: bool
    ensure_even_distribution_of_partitions: bool
    exclude_persistent_lag: bool


class SideOut(Payload):
    """One of the two at a moment; `value` and `active` are null where it would have given an error."""

    value: float | None = Field(examples=[1200.0])
    active: bool | None
    replicas: int = Field(description="What KEDA and the HPA would have made of the answers until then.")


class MomentOut(Payload):
    """A moment by both."""

    at: datetime
    keda: SideOut
    lagscale: SideOut
    verdict: str = Field(examples=["calm"])
    reason: str = Field(examples=["not_yet"])
    held: bool
    differs: bool = Field(description="The numbers of replicas differ.")


class SummaryOut(Payload):
    """One of the two over the whole time."""

    scale_events: int = Field(examples=[14], description="How often the number of replicas changed.")
    greatest_replicas: int
    average_replicas: float
    errors: int = Field(description="Moments without an answer.")


class DifferenceOut(Payload):
    """A stretch of moments at which the numbers of replicas differ."""

    begin: datetime
    end: datetime
    keda_greatest: int
    lagscale_greatest: int
    sentence: str = Field(examples=["KEDA wants more: lag was there, and had not lasted for sustainSeconds."])


class ComparisonOut(Payload):
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
    keda: SummaryOut
    lagscale: SummaryOut
    differences: list[DifferenceOut]
    notes: Annotated[list[str], Field(description="What the comparison cannot show.")]
    moments: list[MomentOut]
