"""Response bodies of health."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from services.api.schemas import ApiSchema, StateOut


class TargetHealth(ApiSchema):
    """State of a target, and age of its newest sample."""

    cluster: str = Field(examples=["main"])
    consumer_group: str = Field(examples=["lakerunner.ingest.logs"])
    topic: str = Field(examples=["orders"])
    state: StateOut | None = Field(default=None, description="Null until the scraper has polled.")
    newest_sample_at: datetime | None = None
    newest_sample_age_seconds: float | None = Field(default=None, examples=[4.2])


class MonitorHealth(ApiSchema):
    """Health of a monitor: its cluster, topic discovery and targets."""

    monitor: str = Field(examples=["ingest-logs"])
    cluster_state: StateOut | None = None
    topic_discovery: StateOut | None = Field(
        default=None, description="State of the topic discovery; null if topics are listed."
    )
    targets: list[TargetHealth]


class ClusterHealth(ApiSchema):
    """Health of a cluster and its targets."""

    cluster: str = Field(examples=["main"])
    state: StateOut | None = Field(default=None, description="Null until the scraper has polled.")
    targets: int = Field(examples=[12])
    targets_by_code: dict[str, int] = Field(examples=[{"ok": 11, "no_topic": 1}])
    newest_sample_age_seconds: float | None = Field(default=None, examples=[4.2])
    stalest_target_age_seconds: float | None = Field(
        default=None,
        examples=[9.8],
        description="Of the target with the oldest newest sample; null if a target has no sample.",
    )


class TenantHealth(ApiSchema):
    """Health of a tenant."""

    tenant: str = Field(examples=["shop"])
    ok: bool = Field(description="Whether every cluster and target was `ok` when last polled.")
    clusters: list[ClusterHealth]
