"""Monitors of a tenant: listed, put one by one, deleted and restored, and brought to changed rules of the tenant.

`monitor_writes` writes the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from lagscale.domain.state_codes import StateCode
from lagscale.errors import Conflict, FieldError, InvalidInput, NotFound
from lagscale.store.registry import monitor_writes, quotas
from lagscale.store.registry.monitor_spec import (
    MonitorDraft,
    MonitorSpec,
    build_spec,
    read_draft,
    resolve_draft,
    to_columns,
)
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import (
    Precondition,
    Row,
    TenantSession,
    WriteResult,
    check_precondition,
)
from lagscale.store.registry.tables import (
    cluster,
    cluster_state,
    lag_target,
    monitor,
    monitor_scope,
    monitor_target,
    target_state,
)


@dataclass(frozen=True, slots=True)
class MonitorFilter:
    """Which monitors are listed; None is no condition.

    Attributes:
        failing: whether the state of the cluster, of a target, or of topic discovery is other than `ok`.
        deleted: the deleted ones that are not removed yet, instead of the live ones.
    """

    cluster: str | None = None
    consumer_group: str | None = None
    auto_registered: bool | None = None
    failing: bool | None = None
    deleted: bool = False


def _select_monitors(*, deleted: bool = False) -> sa.Select[Any]:
    joined = sa.select(monitor, cluster.c.name.label("cluster"))
    is_deleted = monitor.c.deleted_at.is_not(None) if deleted else monitor.c.deleted_at.is_(None)
    return joined.join(cluster, cluster.c.id == monitor.c.cluster_id).where(is_deleted)


def _select_with_topics(*, deleted: bool = False) -> sa.Select[Any]:
    """Monitors with their linked topics and the state of their topic discovery (`scope_*`)."""
    linked = sa.select(lag_target.c.topic).join(monitor_target, monitor_target.c.target_id == lag_target.c.id)
    linked = linked.where(monitor_target.c.monitor_id == monitor.c.id).order_by(lag_target.c.topic)
    looked_up = sa.and_(monitor_scope.c.monitor_id == monitor.c.id, monitor.c.topics.is_(None))
    states = [monitor_scope.c[name].label(f"scope_{name}") for name in ("code", "message", "since", "seen_at")]
    statement = _select_monitors(deleted=deleted).add_columns(
        sa.func.array(linked.scalar_subquery()).label("measured_topics"),
        *states,
        # Names of deleted monitors repeat; to the microsecond, because pages continue from here.
        sa.func.to_char(monitor.c.deleted_at, 'YYYY-MM-DD"T"HH24:MI:SS.US').label("deleted_key"),
    )
    return statement.outerjoin(monitor_scope, looked_up)


def _is_failing() -> sa.ColumnElement[bool]:
    of_target = sa.select(target_state.c.code).join(
        monitor_target, monitor_target.c.target_id == target_state.c.target_id
    )
    of_target = of_target.where(monitor_target.c.monitor_id == monitor.c.id, target_state.c.code != StateCode.OK)
    of_cluster = sa.select(cluster_state.c.code).where(
        cluster_state.c.cluster_id == monitor.c.cluster_id, cluster_state.c.code != StateCode.OK
    )
    of_scope = sa.func.coalesce(monitor_scope.c.code != StateCode.OK, sa.false())
    return sa.or_(of_target.exists(), of_cluster.exists(), of_scope)


async def list_page(session: TenantSession, page_request: PageRequest, only: MonitorFilter | None = None) -> Page:
    """The tenant's monitors with their clusters' names and linked topics; without filters all live ones."""
    only = only or MonitorFilter()
    statement = _select_with_topics(deleted=only.deleted)
    conditions: tuple[tuple[sa.ColumnElement[Any], object], ...] = (
        (cluster.c.name, only.cluster),
        (monitor.c.consumer_group, only.consumer_group),
        (monitor.c.auto_registered, only.auto_registered),
        (_is_failing(), only.failing),
    )
    statement = statement.where(*(column == value for column, value in conditions if value is not None))
    return await read_page(session, statement, ["name", "deleted_key"] if only.deleted else ["name"], page_request)


async def read_by_name(session: TenantSession, name: str) -> Row:
    """One live monitor with its cluster's name and linked topics.

    Raises:
        NotFound: there is none.
    """
    return await session.fetch_existing(_select_with_topics().where(monitor.c.name == name))


async def lock_by_name(session: TenantSession, name: str) -> Row | None:
    """One live monitor's row with its cluster's name, locked until the end; None without one."""
    return await session.fetch_optional(_select_monitors().where(monitor.c.name == name).with_for_update(of=monitor))


async def lock_many(session: TenantSession, names: list[str] | None = None) -> dict[str, Row]:
    """Live monitors by name, each as `lock_by_name` has it; all of the tenant's without names."""
    statement = _select_monitors() if names is None else _select_monitors().where(monitor.c.name.in_(names))
    rows = await session.fetch_all(statement.order_by(monitor.c.id).with_for_update(of=monitor))
    return {row["name"]: row for row in rows}


async def create(session: TenantSession, spec: MonitorSpec) -> WriteResult:
    """Create a monitor with its targets, which it shares with other monitors.

    Raises:
        Conflict: the name is taken.
        InvalidInput: there is no such cluster.
        QuotaExceeded: the quota of monitors, of those without a list of topics, or of partitions is used up.
    """
    await quotas.lock_registrations(session)
    [row] = await monitor_writes.create(session, [spec])
    return WriteResult(row, created=True, changed=True)


async def put(session: TenantSession, spec: MonitorSpec, precondition: Precondition | None) -> WriteResult:
    """Create or replace the monitor; nothing changes when it is already as described.

    Its history stays as far as its targets stay: samples belong to cluster, group, topic and isolation level.

    Raises:
        PreconditionFailed: its version is not what the caller expects.
        InvalidInput, QuotaExceeded: as `create`.
    """
    await quotas.lock_registrations(session)
    row = await lock_by_name(session, spec.name)
    check_precondition(row, precondition)
    if row is None:
        [made] = await monitor_writes.create(session, [spec])
        return WriteResult(made, created=True, changed=True)
    if monitor_writes.matches_spec(row, spec):
        return WriteResult(row)
    [after] = await monitor_writes.change(session, [(row, spec)], adopt=True)
    return WriteResult(after, changed=True)


async def put_draft(
    session: TenantSession, draft: MonitorDraft, tick_seconds: float, precondition: Precondition | None
) -> WriteResult:
    """Put the monitor by its tenant's rules; one that exists as described stays, even if they now forbid it.

    Raises:
        PreconditionFailed: its version is not what the caller expects.
        InvalidInput: with every fault of the description and of the rules at once.
        QuotaExceeded: as `create`.
    """
    try:
        return await put(session, build_spec(draft, session.tenant, tick_seconds), precondition)
    except InvalidInput:
        # The rules are newer than the monitor: it continues as it is, and putting it unchanged succeeds.
        row = await find_unchanged(session, draft, precondition)
        if row is None:
            raise
        return WriteResult(row)


async def find_unchanged(session: TenantSession, draft: MonitorDraft, precondition: Precondition | None) -> Row | None:
    """The live monitor that is exactly as the draft describes; None without one.

    It may be older than rules that forbid it; putting it unchanged is no change.

    Raises:
        PreconditionFailed: its version is not what the caller expects.
    """
    row = await lock_by_name(session, draft.name)
    if row is None or not is_unchanged(draft, row):
        return None
    check_precondition(row, precondition)
    return row


def is_unchanged(draft: MonitorDraft, row: Row) -> bool:
    """Whether putting the draft would leave the monitor unchanged, except for what its tenant's rules add."""
    same = draft.content == row["content_hash"] and draft.overridable == row["overridable"]
    return same and not row["auto_registered"] and not draft.field_errors


async def remove(session: TenantSession, name: str, precondition: Precondition | None) -> None:
    """Mark the monitor as deleted; its targets are no longer polled for it, and its name is free.

    Raises:
        NotFound: there is none.
        PreconditionFailed: its version is not what the caller expects.
    """
    row = await lock_by_name(session, name)
    if row is None:
        raise NotFound
    check_precondition(row, precondition)
    await monitor_writes.remove(session, [row])


async def lock_deleted(session: TenantSession, name: str) -> Row:
    """The monitor of this name that was deleted last, locked to be restored.

    Raises:
        NotFound: there is none within retention.
        Conflict: the name is taken again.
    """
    await quotas.lock_registrations(session)
    newest = (
        _select_monitors(deleted=True).where(monitor.c.name == name).order_by(monitor.c.deleted_at.desc(), monitor.c.id)
    )
    row = await session.fetch_optional(newest.limit(1).with_for_update(of=monitor))
    taken = await lock_by_name(session, name)
    if row is None:
        raise NotFound
    if taken is not None:
        raise Conflict(
            "A monitor with this name exists again; delete it, or register the deleted one under another name."
        )
    return row


async def restore(session: TenantSession, row: Row, spec: MonitorSpec) -> WriteResult:
    """Restore a deleted monitor, with its history, by its tenant's present rules.

    Raises:
        QuotaExceeded: a quota of the tenant would be exceeded.
    """
    return WriteResult(await monitor_writes.restore(session, row, spec), changed=True)


async def read_targets(session: TenantSession, monitor_id: int) -> list[Row]:
    """The monitor's targets, by topic, with what lies behind their last stable offsets."""
    statement = (
        sa.select(lag_target, target_state.c.unstable)
        .join(monitor_target, monitor_target.c.target_id == lag_target.c.id)
        .outerjoin(target_state, target_state.c.target_id == lag_target.c.id)
    )
    return await session.fetch_all(
        statement.where(monitor_target.c.monitor_id == monitor_id).order_by(lag_target.c.topic)
    )


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A monitor that its tenant's rules forbid; it continues unchanged until its next change."""

    name: str
    field_errors: tuple[FieldError, ...]


async def apply_tenant_rules(session: TenantSession, tick_seconds: float) -> list[PolicyViolation]:
    """Apply the tenant's present rules to its live monitors at once; the violations by name.

    A monitor that the new defaults change gets a new version, so that each point in time is explained by its own policy.
    A monitor without a valid policy by these rules keeps its policy. The session has the tenant's present row.
    """
    await quotas.lock_registrations(session)
    rows = await lock_many(session)
    changed: list[tuple[Row, MonitorSpec]] = []
    found: list[PolicyViolation] = []
    for row in rows.values():
        spec, field_errors = resolve_draft(read_draft(row), session.tenant, tick_seconds)
        if spec is not None and any(row[column] != value for column, value in to_columns(spec).items()):
            changed.append((row, spec))
        if field_errors:
            found.append(PolicyViolation(row["name"], tuple(field_errors)))
    await monitor_writes.change(session, changed, adopt=False)
    return sorted(found, key=lambda violation: violation.name)


def find_violations(session: TenantSession, rows: Iterable[Row], tick_seconds: float) -> list[PolicyViolation]:
    """Violations among these monitors; the rows have their clusters' names."""
    found = ((row["name"], resolve_draft(read_draft(row), session.tenant, tick_seconds)[1]) for row in rows)
    return [PolicyViolation(name, tuple(field_errors)) for name, field_errors in found if field_errors]
