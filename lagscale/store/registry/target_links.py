"""Which targets monitors measure: targets are shared, links are a monitor's own. For one monitor or for many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from lagscale.store.registry.monitor_spec import MonitorSpec
from lagscale.store.registry.session import Row, TenantWork
from lagscale.store.registry.tables import lag_target, monitor_target

#: Rows of one statement, so that its parameters stay below the protocol's 65,535.
_A_STATEMENT = 2000
_MEASURED = ("cluster_id", "consumer_group", "isolation_level", "partition_limitation")
_Item = TypeVar("_Item")


async def link(work: TenantWork, wanted: Sequence[tuple[Row, MonitorSpec]]) -> None:
    """Make the monitors measure what they mean, and nothing else.

    A listed topic gets its target at once. Where topics are looked up only what is no longer meant is taken out: the
    scraper links what is meant, within some seconds.

    Args:
        work: a transaction behind the tenant's wall.
        wanted: of each monitor its row as it is now, and what it shall be.
    """
    meant = {int(row["id"]): _meant(row, spec) for row, spec in wanted if spec.scope.is_listed}
    targets = await _targets(work, sorted({target for each in meant.values() for target in each}))
    have: dict[int, set[int]] = {int(row["id"]): set() for row, _ in wanted}
    strays: list[tuple[int, int]] = []
    specs = {int(row["id"]): (row, spec) for row, spec in wanted}
    for linked in await _linked(work, sorted(specs)):
        row, spec = specs[linked["monitor_id"]]
        if spec.scope.is_listed:
            stays = _key(linked) in meant[linked["monitor_id"]]
        else:
            stays = _key(linked)[:-1] == _measured(row, spec) and spec.scope.admits(linked["topic"])
        if stays:
            have[linked["monitor_id"]].add(linked["id"])
        else:
            strays.append((linked["monitor_id"], linked["id"]))
    await _unlink(work, strays)
    missing = [
        {"monitor_id": number, "target_id": target, "tenant_id": work.tenant_id}
        for number, keys in meant.items()
        for target in sorted({targets[key] for key in keys} - have[number])
    ]
    for some in _parts(missing):
        await work.run(postgresql.insert(monitor_target).values(some).on_conflict_do_nothing())


async def unlink_all(work: TenantWork, monitor_ids: Sequence[int]) -> None:
    """Take every target out of these monitors; targets and samples stay."""
    for some in _parts(list(monitor_ids)):
        await work.run(sa.delete(monitor_target).where(monitor_target.c.monitor_id.in_(some)))


def _measured(row: Row, spec: MonitorSpec) -> tuple[Any, ...]:
    return (row["cluster_id"], spec.consumer_group, spec.policy.isolation_level.value, spec.limitation)


def _meant(row: Row, spec: MonitorSpec) -> set[tuple[Any, ...]]:
    return {(*_measured(row, spec), topic) for topic in spec.topics}


def _key(target: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(target[column] for column in _MEASURED), target["topic"])


async def _linked(work: TenantWork, monitor_ids: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    for some in _parts(list(monitor_ids)):
        statement = sa.select(lag_target, monitor_target.c.monitor_id).join(
            monitor_target, monitor_target.c.target_id == lag_target.c.id
        )
        found += await work.every(statement.where(monitor_target.c.monitor_id.in_(some)))
    return found


async def _targets(work: TenantWork, keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    """The number of each target; those that are missing are made."""
    found: dict[tuple[Any, ...], int] = {}
    for some in _parts(list(keys)):
        rows = [{"tenant_id": work.tenant_id, **dict(zip((*_MEASURED, "topic"), key, strict=True))} for key in some]
        await work.run(postgresql.insert(lag_target).values(rows).on_conflict_do_nothing())
        columns = [lag_target.c[name] for name in (*_MEASURED, "topic")]
        statement = sa.select(lag_target).where(sa.tuple_(*columns).in_(some))
        found |= {_key(target): int(target["id"]) for target in await work.every(statement)}
    return found


async def _unlink(work: TenantWork, pairs: Sequence[tuple[int, int]]) -> None:
    link_of = sa.tuple_(monitor_target.c.monitor_id, monitor_target.c.target_id)
    for some in _parts(list(pairs)):
        await work.run(sa.delete(monitor_target).where(link_of.in_(some)))


def _parts(items: list[_Item]) -> Iterator[list[_Item]]:
    for begin in range(0, len(items), _A_STATEMENT):
        yield items[begin : begin + _A_STATEMENT]
