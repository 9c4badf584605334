"""The scraper's settings; `__main__.py` alone reads them."""

from __future__ import annotations

from pydantic import Field

from lagscale.domain.topics import DEFAULT_MAX_TOPICS
from lagscale.settings import ListenAddress, ServiceSettings


class ScraperSettings(ServiceSettings):
    """What a scraper needs beside the settings that all services share."""

    scraper_http_listen: ListenAddress = Field(
        default="0.0.0.0:8080", description="Listen address of /healthz, /readyz, /livez and /metrics."
    )
    scraper_retention_hours: float = Field(
        default=24.0,
        ge=19,
        le=24 * 365,
        description="Retention of samples, in hours; longer than the window of any policy.",
    )
    scraper_spark_master: str = Field(
        default="local[*]",
        description="Spark master URL: local threads, a standalone cluster or Kubernetes.",
    )
    scraper_spark_driver_memory: str = Field(
        default="768m", pattern=r"^\d+[mg]$", description="Heap size of the Spark driver, for example 768m or 2g."
    )
    scraper_spark_slots: int = Field(
        default=2,
        ge=1,
        le=256,
        description="Number of Spark tasks per tick over which groups are distributed; one per core is enough.",
    )
    scraper_topic_discovery_interval_seconds: float = Field(
        default=5.0,
        ge=1,
        le=60,
        description="Minimum interval between two topic discoveries on a cluster, in seconds, for monitors with a topic "
        "pattern or with all topics of their group. Each monitor is discovered at its sampling interval, at least"
        " once per minute.",
    )
    scraper_max_kafka_clients: int = Field(
        default=64,
        ge=8,
        le=4096,
        description="Maximum number of Kafka clients per worker process. It bounds threads: each client has four, plus one "
        "per broker. A quarter is reserved for clusters that do not respond. With more clusters than clients, "
        "clients are closed and reopened at each tick.",
    )
    scraper_max_tenant_partitions_per_tick: int = Field(
        default=60_000,
        ge=1000,
        description="Maximum number of partitions polled per tenant and tick; the rest is deferred to the next ticks, so that"
        " other tenants are not delayed. Groups with more than 20,000 partitions are polled out of band.",
    )
    scraper_max_topics_per_monitor: int = Field(
        default=DEFAULT_MAX_TOPICS,
        ge=1,
        le=10_000,
        description="Maximum number of topics that a monitor may match by pattern or by group.",
    )
