"""Which targets monitors measure: targets are shared, links are a monitor's own. For one monitor or for many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from lagscale.store.registry.monitor_spec import MonitorSpec
from lagscale.store.registry.session import Row, TenantSession
from lagscale.store.registry.tables import lag_target, monitor_target

#: Rows of one statement, so that its parameters stay below the protocol's 65,535.
_ROWS_PER_STATEMENT = 2000
_TARGET_COLUMNS = ("cluster_id", "consumer_group", "isolation_level", "partition_limitation")
_Item = TypeVar("_Item")


async def update_links(session: TenantSession, desired: Sequence[tuple[Row, MonitorSpec]]) -> None:
    """Make the monitors measure what they mean, and nothing else.

    A listed topic gets its target at once. Where topics are looked up only what is no longer meant is taken out: the
    scraper links what is meant, within some seconds.

    Args:
        session: a transaction behind the tenant's wall.
        desired: of each monitor its row as it is now, and what it shall be.
    """
    intended = {int(row["id"]): _intended_targets(row, spec) for row, spec in desired if spec.scope.is_listed}
    targets = await _ensure_targets(session, sorted({target for each in intended.values() for target in each}))
    linked_ids: dict[int, set[int]] = {int(row["id"]): set() for row, _ in desired}
    surplus: list[tuple[int, int]] = []
    specs = {int(row["id"]): (row, spec) for row, spec in desired}
    for linked in await _read_linked(session, sorted(specs)):
        row, spec = specs[linked["monitor_id"]]
        if spec.scope.is_listed:
            stays = _key(linked) in intended[linked["monitor_id"]]
        else:
            stays = _key(linked)[:-1] == _target_key(row, spec) and spec.scope.admits(linked["topic"])
        if stays:
            linked_ids[linked["monitor_id"]].add(linked["id"])
        else:
            surplus.append((linked["monitor_id"], linked["id"]))
    await _unlink(session, surplus)
    missing = [
        {"monitor_id": number, "target_id": target, "tenant_id": session.tenant_id}
        for number, keys in intended.items()
        for target in sorted({targets[key] for key in keys} - linked_ids[number])
    ]
    for batch in _split_batches(missing):
        await session.execute(postgresql.insert(monitor_target).values(batch).on_conflict_do_nothing())


async def unlink_all(session: TenantSession, monitor_ids: Sequence[int]) -> None:
    """Take every target out of these monitors; targets and samples stay."""
    for batch in _split_batches(list(monitor_ids)):
        await session.execute(sa.delete(monitor_target).where(monitor_target.c.monitor_id.in_(batch)))


def _target_key(row: Row, spec: MonitorSpec) -> tuple[Any, ...]:
    return (row["cluster_id"], spec.consumer_group, spec.policy.isolation_level.value, spec.limitation)


def _intended_targets(row: Row, spec: MonitorSpec) -> set[tuple[Any, ...]]:
    return {(*_target_key(row, spec), topic) for topic in spec.topics}


def _key(target: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(target[column] for column in _TARGET_COLUMNS), target["topic"])


async def _read_linked(session: TenantSession, monitor_ids: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for batch in _split_batches(list(monitor_ids)):
        statement = sa.select(lag_target, monitor_target.c.monitor_id).join(
            monitor_target, monitor_target.c.target_id == lag_target.c.id
        )
        found += await session.fetch_all(statement.where(monitor_target.c.monitor_id.in_(batch)))
    return found


async def _ensure_targets(session: TenantSession, keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """The number of each target; those that are missing are made."""
    found: dict[tuple[Any, ...], int] = {}
    for batch in _split_batches(list(keys)):
        rows = [
            {"tenant_id": session.tenant_id, **dict(zip((*_TARGET_COLUMNS, "topic"), key, strict=True))}
            for key in batch
        ]
        await session.execute(postgresql.insert(lag_target).values(rows).on_conflict_do_nothing())
        columns = [lag_target.c[name] for name in (*_TARGET_COLUMNS, "topic")]
        statement = sa.select(lag_target).where(sa.tuple_(*columns).in_(batch))
        found |= {_key(target): int(target["id"]) for target in await session.fetch_all(statement)}
    return found


async def _unlink(session: TenantSession, pairs: Sequence[tuple[int, int]]) -> None:
    link_of = sa.tuple_(monitor_target.c.monitor_id, monitor_target.c.target_id)
    for batch in _split_batches(list(pairs)):
        await session.execute(sa.delete(monitor_target).where(link_of.in_(batch)))


def _split_batches(items: list[_Item]) -> Iterator[list[_Item]]:
    for begin in range(0, len(items), _ROWS_PER_STATEMENT):
        yield items[begin : begin + _ROWS_PER_STATEMENT]
