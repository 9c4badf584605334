"""Links of monitors with a topic pattern to the topics that match it in the cluster's answers.

Used by the scraper; adding or removing a link changes what the scalers judge. Every function raises `StoreUnavailable`
if the store does not answer; nothing was written then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import dict_row

from lagscale.clock import to_datetime
from lagscale.domain.lag.rounds import Note, SampleRow, TargetRound, build_row
from lagscale.domain.topics import TopicScope
from lagscale.store.connection import ScraperDatabase
from lagscale.store.queries import load, to_arrays
from lagscale.store.samples.write import PostgresSamples
from lagscale.store.scraping.leases import Lease, lock_lease
from lagscale.store.scraping.targets import ClusterEntry, read_clusters

_STATE_ARRAYS: Final = {"monitors": "monitor_id", "versions": "version", "matched": "matched", "codes": "code"}


@dataclass(frozen=True, slots=True)
class TopicLink:
    """A topic that is linked to a monitor.

    Attributes:
        absent_ms: since when complete answers no longer name it, by the database's clock; None while they do.
        fits: whether cluster, group and isolation level are still the monitor's.
    """

    target_id: int
    topic: str
    absent_ms: int | None = None
    fits: bool = True


@dataclass(frozen=True, slots=True)
class ScopeEntry:
    """A monitor whose topics are discovered.

    Attributes:
        resolved_ms: newest complete answer that the links reflect, at this version; None when there is none.
        code: outcome of the last discovery; None before the first.
    """

    monitor_id: int
    tenant_id: int
    cluster_id: int
    consumer_group: str
    scope: TopicScope
    isolation_level: str
    sampling_ms: int
    stale_after_ms: int
    version: int
    resolved_ms: int | None = None
    code: str | None = None
    links: tuple[TopicLink, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A change of a monitor's links.

    Attributes:
        add: topics to link.
        unnamed_ms: time of an answer that named none of `add`; None when there is no such answer.
        note: what such an answer means for a topic.
        remove: targets to unlink.
        absent: target -> since when it is absent, None where it is there again.
    """

    add: tuple[str, ...] = ()
    unnamed_ms: int | None = None
    note: Note = Note.NO_TOPIC
    remove: tuple[int, ...] = ()
    absent: Mapping[int, int | None] | None = None

    def __bool__(self) -> bool:
        return bool(self.add or self.remove or self.absent)


@dataclass(frozen=True, slots=True)
class ScopeState:
    """Outcome of discovering a monitor's topics; see `ScopeEntry`."""

    monitor_id: int
    version: int
    resolved_ms: int | None
    matched: int
    code: str
    message: str = ""


def read_scopes(database: ScraperDatabase) -> tuple[list[ScopeEntry], dict[int, ClusterEntry]]:
    """Every live monitor whose topics are discovered, and their clusters."""
    with database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
        entries = [_read_entry(row) for row in cursor.execute(load("scope_read")).fetchall()]
        return entries, read_clusters(cursor) if entries else {}


def apply_change(
    database: ScraperDatabase, entry: ScopeEntry, link_change: LinkChange, state: ScopeState, lease: Lease
) -> bool:
    """Change the links and store the state in one transaction; False when the monitor has changed in the meantime.

    Raises:
        LeaseLost: another scraper leads; nothing was written.
    """
    parameters: dict[str, Any] = {
        "tenant": entry.tenant_id,
        "monitor_id": entry.monitor_id,
        "cluster_id": entry.cluster_id,
        "consumer_group": entry.consumer_group,
        "isolation_level": entry.isolation_level,
        "partition_limitation": "",
        "topics": list(link_change.add),
    }
    with database.transaction() as connection:
        # The lock of creating and changing monitors, in a statement of its own: the next one sees what others wrote.
        connection.execute(load("register_lock"), parameters)
        row = connection.execute(load("scope_version"), parameters).fetchone()
        if row is None or row[0] != entry.version:
            return False
        if link_change.remove:
            connection.execute(load("scope_unlink"), parameters | {"targets": list(link_change.remove)})
        if link_change.absent:
            absents = [None if at is None else to_datetime(at) for at in link_change.absent.values()]
            connection.execute(
                load("scope_mark_absent"), parameters | {"targets": list(link_change.absent), "absents": absents}
            )
        if link_change.add:
            connection.execute(load("register_targets"), parameters)
            connection.execute(load("link_targets"), parameters)
            if link_change.unnamed_ms is not None:
                targets = [row[0] for row in connection.execute(load("scope_targets"), parameters).fetchall()]
                samples = PostgresSamples(database)
                rows = _build_unnamed(samples, entry.tenant_id, targets, link_change.unnamed_ms, link_change.note)
                samples.append(rows, lease)
        _write(connection, [state])
        lock_lease(connection, lease)
    return True


def write_scope_states(database: ScraperDatabase, states: Sequence[ScopeState], lease: Lease) -> None:
    """Store the outcome of discoveries that changed no link.

    Raises:
        LeaseLost: another scraper leads; nothing was written.
    """
    if not states:
        return
    with database.transaction() as connection:
        _write(connection, states)
        lock_lease(connection, lease)


def _build_unnamed(
    samples: PostgresSamples, tenant_id: int, targets: Sequence[int], at_ms: int, note: Note
) -> list[tuple[int, int, SampleRow]]:
    """An answer that did not name a topic is a round without partitions: partitions after it are first seen."""
    absent_ms = 0 if Note.NO_TOPIC in note else None
    rows: list[tuple[int, int, SampleRow]] = []
    for target_id, baseline in samples.read_baselines(targets).items():
        # Another monitor may measure it already; its newer rounds count.
        if baseline.row is None or baseline.row.round.at_ms < at_ms:
            this = TargetRound(at_ms, baseline.incarnation, (), notes=note, absent_age_ms=absent_ms)
            rows.append((tenant_id, target_id, build_row(baseline.row, this)))
    return rows


def _write(connection: Connection[Any], states: Sequence[ScopeState]) -> None:
    resolved = [None if state.resolved_ms is None else to_datetime(state.resolved_ms) for state in states]
    connection.execute(
        load("scope_state"), to_arrays(states, messages="message", **_STATE_ARRAYS) | {"resolved": resolved}
    )


def _read_entry(row: dict[str, Any]) -> ScopeEntry:
    links = zip(*(row.pop(name) for name in ("target_ids", "topics", "absents", "fits")), strict=True)
    scope = TopicScope((), row.pop("topic_pattern"), tuple(row.pop("exclude_topics")))
    return ScopeEntry(scope=scope, links=tuple(TopicLink(*link) for link in links), **row)
