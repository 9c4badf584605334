"""Writes the rows of monitors, one or many at once, with their versions, their links to targets and the audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from lagscale.domain.quotas import Quota
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import audit, quotas
from lagscale.store.registry.monitor_spec import MonitorSpec, to_columns
from lagscale.store.registry.session import Row, TenantSession
from lagscale.store.registry.tables import cluster, lag_target, monitor, monitor_target, monitor_version

#: Rows per statement, so that its parameters stay below the protocol's 65,535.
_ROWS_PER_STATEMENT = 2000
_TARGET_COLUMNS = ("cluster_id", "consumer_group", "isolation_level", "partition_limitation", "topic")
_Item = TypeVar("_Item")


async def _check_quota(session: TenantSession, specs: Sequence[MonitorSpec]) -> None:
    """Check the tenant's quotas once for so many more monitors; after `quotas.lock_registrations`."""
    if specs:
        await quotas.check_quota(session, Quota.MONITORS, len(specs))
        await quotas.check_quota(session, Quota.PARTITIONS)
        await quotas.check_quota(session, Quota.PATTERNS, sum(not spec.scope.is_listed for spec in specs))


async def cluster_ids(session: TenantSession, names: Iterable[str]) -> dict[str, int]:
    """Name -> id of the tenant's clusters of these names; missing ones are left out."""
    # Locked until the end, so that a cluster is not deleted while a monitor of it is being created.
    statement = sa.select(cluster.c.name, cluster.c.id).where(cluster.c.name.in_(sorted(set(names))))
    rows = await session.fetch_all(statement.order_by(cluster.c.id).with_for_update(read=True, key_share=True))
    return {row["name"]: int(row["id"]) for row in rows}


def unknown_cluster(field: str = "cluster") -> FieldError:
    """The error for a cluster that does not exist, or is another tenant's."""
    return FieldError(field, "unknown cluster; register it first")


def matches_spec(row: Row, spec: MonitorSpec) -> bool:
    """Whether a monitor has this spec and is not auto-registered; the row has its cluster's name."""
    same = all(row[column] == value for column, value in to_columns(spec).items())
    return same and row["cluster"] == spec.cluster and not row["auto_registered"]


async def create(session: TenantSession, specs: Sequence[MonitorSpec]) -> list[Row]:
    """Create monitors, their first versions and their targets; the rows in the same order.

    Raises:
        Conflict: a name is taken.
        InvalidInput: there is no such cluster.
        QuotaExceeded: a quota of the tenant would be exceeded.
    """
    if not specs:
        return []
    numbers = await _require_cluster_ids(session, specs)
    await _check_quota(session, specs)
    values = [
        {"tenant_id": session.tenant_id, "name": spec.name, "cluster_id": numbers[spec.cluster], **to_columns(spec)}
        for spec in specs
    ]
    made = await session.connection.execute(sa.insert(monitor).returning(monitor), values)
    by_name = {row.name: row._asdict() for row in made}
    rows = [by_name[spec.name] | {"cluster": spec.cluster} for spec in specs]
    await _record_writes(session, "monitor.create", [(None, row) for row in rows], specs)
    return rows


async def change(session: TenantSession, pairs: Sequence[tuple[Row, MonitorSpec]], *, adopt: bool) -> list[Row]:
    """Bring monitors to their specs; the new rows in the same order.

    The session has locked the rows, which have their clusters' names. With `adopt` a person made the change, so an
    auto-registered monitor no longer expires.

    Raises:
        InvalidInput: there is no such cluster.
        QuotaExceeded: the quota of monitors without a list of topics would be exceeded.
    """
    if not pairs:
        return []
    numbers = await _require_cluster_ids(session, [spec for _, spec in pairs])
    before = [row for row, _ in pairs]
    specs = [spec for _, spec in pairs]
    added = sum(not spec.scope.is_listed for spec in specs) - sum(row["topics"] is None for row in before)
    await quotas.check_quota(session, Quota.PATTERNS, added)
    adoption = {"auto_registered": False} if adopt else {}
    rows = [await _update(session, row, numbers[spec.cluster], spec, adoption) for row, spec in pairs]
    await _record_writes(session, "monitor.update", list(zip(before, rows, strict=True)), specs)
    return rows


async def restore(session: TenantSession, row: Row, spec: MonitorSpec) -> Row:
    """Restore a deleted monitor; the new row.

    Raises:
        QuotaExceeded: a quota of the tenant would be exceeded.
    """
    await _check_quota(session, [spec])
    back = {"deleted_at": None, "auto_registered": False}
    after = await _update(session, row, row["cluster_id"], spec, back)
    await _record_writes(session, "monitor.restore", [(None, after)], [spec])
    return after


async def remove(session: TenantSession, rows: Sequence[Row]) -> None:
    """Mark monitors as deleted: their targets are no longer polled for them, and their names are free."""
    if not rows:
        return
    numbers = [int(row["id"]) for row in rows]
    await _unlink(session, monitor_target.c.monitor_id, numbers)
    deleting = sa.update(monitor).where(monitor.c.id.in_(numbers))
    await session.execute(deleting.values(deleted_at=sa.func.now(), version=monitor.c.version + 1))
    for row in rows:
        await audit.record(session, "monitor.delete", f"monitor/{row['name']}", row, None)


async def _update(session: TenantSession, row: Row, cluster_id: int, spec: MonitorSpec, more: dict[str, Any]) -> Row:
    changing = sa.update(monitor).where(monitor.c.id == row["id"])
    values = to_columns(spec) | {"cluster_id": cluster_id} | more
    changing = changing.values(version=int(row["version"]) + 1, updated_at=sa.func.now(), **values)
    return await session.fetch_one(changing.returning(monitor, sa.literal(spec.cluster).label("cluster")))


async def _require_cluster_ids(session: TenantSession, specs: Sequence[MonitorSpec]) -> dict[str, int]:
    names = {spec.cluster for spec in specs}
    found = await cluster_ids(session, names)
    if names - set(found):
        raise InvalidInput([unknown_cluster()])
    return found


async def _record_writes(
    session: TenantSession, action: str, rows: Sequence[tuple[Row | None, Row]], specs: Sequence[MonitorSpec]
) -> None:
    """Write what belongs to the rows: versions where the policy has changed, links, and the audit."""
    versions = [
        {
            "monitor_id": after["id"],
            "tenant_id": session.tenant_id,
            "version": after["version"],
            "policy": after["policy"],
        }
        for before, after in rows
        if before is None or before["policy"] != after["policy"]
    ]
    if versions:
        await session.connection.execute(sa.insert(monitor_version), versions)
    await _update_links(session, [(after, spec) for (_, after), spec in zip(rows, specs, strict=True)])
    for before, after in rows:
        await audit.record(session, action, f"monitor/{after['name']}", before, after)


async def _update_links(session: TenantSession, desired: Sequence[tuple[Row, MonitorSpec]]) -> None:
    """Link the monitors to exactly the targets of their specs.

    A listed topic is linked at once. Of monitors with topic discovery only links that no longer match are removed; the
    scraper adds the others within seconds.
    """
    intended = {
        int(row["id"]): {(*_target_key(row, spec), topic) for topic in spec.topics}
        for row, spec in desired
        if spec.scope.is_listed
    }
    targets = await _ensure_targets(session, sorted(set().union(*intended.values())))
    remaining: list[tuple[int, int]] = []
    surplus: list[tuple[int, int]] = []
    specs = {int(row["id"]): (row, spec) for row, spec in desired}
    for linked in await _read_linked(session, sorted(specs)):
        row, spec = specs[linked["monitor_id"]]
        if spec.scope.is_listed:
            stays = _key(linked) in intended[linked["monitor_id"]]
        else:
            stays = _key(linked)[:-1] == _target_key(row, spec) and spec.scope.matches(linked["topic"])
        (remaining if stays else surplus).append((linked["monitor_id"], linked["id"]))
    await _unlink(session, sa.tuple_(monitor_target.c.monitor_id, monitor_target.c.target_id), surplus)
    missing = [
        {"monitor_id": number, "target_id": target, "tenant_id": session.tenant_id}
        for number, target in sorted(
            {(number, targets[key]) for number, keys in intended.items() for key in keys} - set(remaining)
        )
    ]
    for batch in _split_batches(missing):
        await session.execute(postgresql.insert(monitor_target).values(batch).on_conflict_do_nothing())


def _target_key(row: Row, spec: MonitorSpec) -> tuple[Any, ...]:
    return (row["cluster_id"], spec.consumer_group, spec.policy.isolation_level.value, spec.limitation)


def _key(target: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(target[column] for column in _TARGET_COLUMNS)


async def _read_linked(session: TenantSession, monitor_ids: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for batch in _split_batches(monitor_ids):
        statement = sa.select(lag_target, monitor_target.c.monitor_id).join(
            monitor_target, monitor_target.c.target_id == lag_target.c.id
        )
        found += await session.fetch_all(statement.where(monitor_target.c.monitor_id.in_(batch)))
    return found


async def _ensure_targets(session: TenantSession, keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """The id of each target; missing ones are created."""
    found: dict[tuple[Any, ...], int] = {}
    for batch in _split_batches(keys):
        rows = [{"tenant_id": session.tenant_id, **dict(zip(_TARGET_COLUMNS, key, strict=True))} for key in batch]
        await session.execute(postgresql.insert(lag_target).values(rows).on_conflict_do_nothing())
        columns = [lag_target.c[name] for name in _TARGET_COLUMNS]
        statement = sa.select(lag_target).where(sa.tuple_(*columns).in_(batch))
        found |= {_key(target): int(target["id"]) for target in await session.fetch_all(statement)}
    return found


async def _unlink(session: TenantSession, column: sa.ColumnElement[Any], values: Sequence[Any]) -> None:
    """Unlink targets by monitor, or by monitor and target; targets and samples stay."""
    for batch in _split_batches(values):
        await session.execute(sa.delete(monitor_target).where(column.in_(batch)))


def _split_batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for begin in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[begin : begin + _ROWS_PER_STATEMENT]
