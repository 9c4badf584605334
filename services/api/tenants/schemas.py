"""Bodies of requests and answers about tenants, as the OpenAPI document shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema, Line, Name
from services.api.tenants.policy_schemas import PolicyLimit, PolicyText, PolicyWarning


class TenantIn(ApiSchema):
    """A tenant as it shall be."""

    name: Name | None = Field(default=None, examples=["shop"], description="May be left out where the URL names it.")
    display_name: Line = Field(default="", examples=["The shop's team"])
    auto_register: bool = Field(
        default=False, description="May ScaledObjects create monitors by metadata without `serviceType`?"
    )
    min_sampling_seconds: int = Field(default=1, ge=1, le=3600, description="The least `samplingInterval`, seconds.")
    max_monitors: int = Field(default=1000, ge=0, le=1_000_000, description="The greatest number of monitors.")
    max_clusters: int = Field(default=50, ge=0, le=1_000_000, description="The greatest number of clusters.")
    max_patterns: int = Field(
        default=100, ge=0, le=1_000_000, description="The greatest number of monitors whose topics are looked up."
    )
    max_partitions: int = Field(
        default=50_000, ge=0, le=100_000_000, description="The greatest number of partitions of all targets together."
    )
    calls_per_second: int = Field(
        default=500, ge=1, le=1_000_000, description="Of KEDA, for each monitor and each replica of the scaler."
    )
    requests_per_second: int = Field(
        default=200, ge=1, le=1_000_000, description="Of the tenant's keys, for each replica of the API."
    )
    max_auto_monitors: int = Field(
        default=1000, ge=0, le=1_000_000, description="The greatest number of those that ScaledObjects registered."
    )
    auto_expiry_days: int = Field(
        default=7, ge=1, le=365, description="After so many days without a question such a monitor is deleted."
    )
    policy_defaults: dict[str, PolicyText] = Field(
        default_factory=dict,
        examples=[{"sustainSeconds": 300}],
        description="In force where a policy does not give the key.",
    )
    policy_limits: dict[str, PolicyLimit] = Field(
        default_factory=dict,
        examples=[{"sustainSeconds": {"min": 60, "max": 3600}}],
        description="What is allowed of each key of a policy.",
    )


class TenantOut(TenantIn):
    """A tenant."""

    name: Name = Field(examples=["shop"])
    created_at: datetime
    version: int = Field(examples=[1])
    warnings: list[PolicyWarning] = Field(
        default_factory=list,
        description="Of a `PUT` that changes the rules: the first 100 faults of monitors that they forbid.",
    )
