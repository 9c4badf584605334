"""Options of the stream: all that its processes need, because they share no memory with the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options. Spark redacts names with `url`, `secret` or `reports` in what it prints.

    Attributes:
        secret_keys: keys that decrypt stored secrets, the newest first.
        slots: tasks for responsive clusters.
        holder: name under which this scraper holds the lease.
        reports: address of the service's `WorkerReports`.
        topics_seconds: minimum interval between two topic discoveries on a cluster.
        topics_limit: maximum number of topics of a monitor that does not list them.
        addresses: `AddressRules.text` of the addresses that clusters may have.
        secret_directory: of tenants' secret files; empty for none.
        clients_limit: of Kafka clients of one process.
        tenant_partitions: maximum number of partitions polled per tenant and tick.
    """

    database_url: str
    secret_keys: str
    tick_ms: int
    slots: int
    holder: str
    reports: str
    topics_seconds: float
    topics_limit: int
    addresses: str
    secret_directory: str
    clients_limit: int
    tenant_partitions: int

    @classmethod
    def from_texts(cls, given: Mapping[str, str]) -> EngineOptions:
        """From the stream's options, whose names Spark compares without case."""
        texts = {name.lower(): text for name, text in given.items()}
        types = {"int": int, "float": float, "str": str}
        return cls(**{field.name: types[str(field.type)](texts[field.name]) for field in fields(cls)})

    def to_texts(self) -> dict[str, str]:
        """As options of the stream."""
        return {field.name: str(getattr(self, field.name)) for field in fields(self)}
