"""What the pipeline's processes need, as plain options of the stream: they share no memory with the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options; Spark redacts names with `url` and `secret` in whatever it prints.

    Attributes:
        tick_ms: the system's tick.
        slots: tasks for the clusters in good health.
        holder: the name under which this scraper holds the lease.
        reports: the address of the service's `WorkerReports`.
        topics_seconds: the least time between two look-ups of a cluster's topics.
        clients_limit: the most Kafka clients of one process.
        tenant_partitions: partitions of one tenant that are polled at one tick.
        topics_limit: the greatest number of topics of a monitor that does not list them.
        addresses: `AddressRules.text` of what may be connected to.
        secret_directory: where tenants' secrets stand as files; empty for nowhere.
    """

    database_url: str
    secret_keys: str
    tick_ms: int
    slots: int
    holder: str
    reports: str
    topics_seconds: float = 5.0
    topics_limit: int = 100
    addresses: str = ""
    secret_directory: str = ""
    clients_limit: int = 64
    tenant_partitions: int = 60_000

    @classmethod
    def read(cls, given: Mapping[str, str]) -> EngineOptions:
        """From the stream's options, whose names Spark compares without case."""
        texts = {name.lower(): text for name, text in given.items()}
        return cls(
            database_url=texts["database_url"],
            secret_keys=texts.get("secret_keys", ""),
            tick_ms=int(texts["tick_ms"]),
            slots=int(texts["slots"]),
            holder=texts["holder"],
            reports=texts["reports"],
            topics_seconds=float(texts["topics_seconds"]),
            topics_limit=int(texts["topics_limit"]),
            addresses=texts.get("addresses", ""),
            secret_directory=texts.get("secret_directory", ""),
            clients_limit=int(texts["clients_limit"]),
            tenant_partitions=int(texts["tenant_partitions"]),
        )

    def texts(self) -> dict[str, str]:
        """As the stream's options."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}
