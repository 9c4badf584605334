"""The scraper's settings; `__main__.py` alone reads them."""

from __future__ import annotations

from pydantic import Field

from lagscale.settings import ListenAddress, ServiceSettings


class ScraperSettings(ServiceSettings):
    """What a scraper needs beside the settings that all services share."""

    scraper_http_listen: ListenAddress = Field(
        default="0.0.0.0:8080", description="Where /healthz, /readyz, /livez and /metrics are served."
    )
    retention_hours: float = Field(
        default=24.0,
        ge=19,
        le=24 * 365,
        description="How long samples are kept; hours, more than any policy looks back.",
    )
    spark_master: str = Field(
        default="local[*]",
        description="Spark's master: threads of this machine, or a standalone or Kubernetes cluster.",
    )
    spark_driver_memory: str = Field(
        default="768m", pattern=r"^\d+[mg]$", description="The heap of Spark's driver, as in 768m or 2g."
    )
    spark_slots: int = Field(
        default=2,
        ge=1,
        le=256,
        description="Tasks among which a tick's groups are divided; one for each core is enough.",
    )
    topics_seconds: float = Field(
        default=5.0,
        ge=1,
        le=60,
        description="The least time between two look-ups of a cluster's topics, for monitors by a pattern or by all "
        "topics of their group; seconds. A monitor is looked up as often as it is polled, and at least every minute.",
    )
    clients_limit: int = Field(
        default=64,
        ge=8,
        le=4096,
        description="The most Kafka clients of one worker process, which bounds its threads: each client has four, and "
        "one for each broker. A quarter is for clusters that do not answer, or never did. With more clusters than "
        "clients these are closed and opened again at each tick.",
    )
    tenant_partitions: int = Field(
        default=60_000,
        ge=1000,
        description="The most partitions of one tenant that are polled at one tick; what is more waits for the next "
        "ticks, so that it makes no other tenant wait. Groups of more than 20,000 are polled beside the ticks.",
    )
    topics_limit: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="The greatest number of topics that one monitor may mean by a pattern, or by its group.",
    )
