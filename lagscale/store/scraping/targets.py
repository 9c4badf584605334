"""What the scraper polls: clusters and targets of all tenants; and the states of their last polls.

Every function raises `StoreUnavailable` if the store does not answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import Cursor
from psycopg.rows import class_row, dict_row

from lagscale.store.connection import ScraperDatabase
from lagscale.store.queries import load, to_arrays
from lagscale.store.scraping.leases import Lease, lock_lease

_STATE_ARRAYS: Final = {"ids": "id", "codes": "code", "messages": "message", "partitions": "partitions",
                         "unstable": "unstable"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """How to reach a cluster. `encrypted_secrets` is encrypted; the version grows with every change.

    Attributes:
        tenant: the tenant's name, which its references begin with.
        references: secret references in their stored form.
        properties: of the Kafka client, by their librdkafka names.
    """

    cluster_id: int
    tenant_id: int
    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    encrypted_secrets: bytes | None
    version: int
    tenant: str = ""
    references: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetEntry:
    """A consumer group on a topic, measured once for all monitors of it, at their smallest interval.

    Attributes:
        partitions: of its topic, as last counted; None before the first poll.
        left: how many the tenant's `quota` of partitions leaves for it; None without a limit.
    """

    target_id: int
    tenant_id: int
    cluster_id: int
    consumer_group: str
    topic: str
    read_committed: bool
    limitation: str
    sampling_ms: int
    stale_after_ms: int
    partitions: int | None = None
    left: int | None = None
    quota: int | None = None

    @property
    def fits(self) -> bool:
        """Whether it fits into the quota, as far as its partitions are counted."""
        return self.partitions is None or self.left is None or self.partitions <= self.left


@dataclass(frozen=True, slots=True)
class PollInventory:
    """Everything to poll, at one version of the registrations; `quotas` of partitions by tenant."""

    version: int
    clusters: Mapping[int, ClusterEntry] = field(default_factory=dict)
    targets: tuple[TargetEntry, ...] = ()
    quotas: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PollState:
    """The outcome of the last poll of a cluster or a target: a code, and a text without secrets and addresses.

    `partitions` of a target's topic, None where they were not counted; `unstable` as JSON, None where it was not read.
    """

    id: int
    code: str
    message: str = ""
    partitions: int | None = None
    unstable: str | None = None


def read_inventory(database: ScraperDatabase) -> PollInventory:
    """All targets of live monitors with their clusters, from one snapshot."""
    with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("set transaction isolation level repeatable read")
        version = cursor.execute("select version from registry_change").fetchone() or {"version": 0}
        clusters = read_clusters(cursor)
        quotas = cursor.execute(load("scrape_quotas")).fetchall()
        with connection.cursor(row_factory=class_row(TargetEntry)) as entries:
            targets = entries.execute(load("scrape_targets")).fetchall()
    return PollInventory(
        int(version["version"]),
        clusters,
        tuple(targets),
        {row["id"]: row["max_partitions"] for row in quotas},
    )


def failed_clusters(database: ScraperDatabase) -> frozenset[int]:
    """The clusters whose last poll failed, and those that were never polled."""
    with database.transaction() as connection:
        return frozenset(row[0] for row in connection.execute(load("scrape_failed_clusters")).fetchall())


def write_poll_states(
    database: ScraperDatabase, clusters: Sequence[PollState], targets: Sequence[PollState], lease: Lease
) -> None:
    """Store the latest states; an unchanged one is written about twice a minute.

    Raises:
        LeaseLost: another scraper leads; nothing was written.
    """
    with database.transaction() as connection:
        lock_lease(connection, lease)
        if clusters:
            connection.execute(load("scrape_cluster_states"), to_arrays(clusters, **_STATE_ARRAYS))
        row = None
        if targets:
            row = connection.execute(load("scrape_target_states"), to_arrays(targets, **_STATE_ARRAYS)).fetchone()
    if row is not None and row[0]:
        # Quotas are planned again, and the scalers load their registrations. A transaction of its own: within the
        # other one it would wait for registrations while the states' rows are locked.
        with database.transaction() as connection:
            connection.execute("select tell_registration_change()")


def read_clusters(cursor: Cursor[dict[str, Any]]) -> dict[int, ClusterEntry]:
    """Every cluster by its id."""
    rows = cursor.execute(load("scrape_clusters")).fetchall()
    return {row["id"]: _read_cluster(row) for row in rows}


def _read_cluster(row: dict[str, Any]) -> ClusterEntry:
    secrets = row.pop("secrets")
    return ClusterEntry(
        cluster_id=row.pop("id"),
        bootstrap=tuple(row.pop("bootstrap")),
        encrypted_secrets=None if secrets is None else bytes(secrets),
        references=row.pop("secret_references"),
        **row,
    )
