"""Many changes of monitors in one transaction: planned as a whole, then applied as a whole, or only reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from lagscale.domain.quotas import Quota
from lagscale.errors import FieldError, InvalidInput, PreconditionFailed
from lagscale.store.registry import monitor_writes, monitors, quotas
from lagscale.store.registry.monitor_spec import MonitorDraft, MonitorSpec, build_spec, read_given, to_columns
from lagscale.store.registry.session import Precondition, Row, TenantSession, check_precondition
from services.api.deps import TenantAccess
from services.api.monitors.drafts import parse_draft
from services.api.monitors.schemas import ChangeIn, ChangeOut, ChangeOutcome, ChangesIn, ChangesOut, FieldDifference

_FIELDS = {
    "cluster": "cluster",
    "consumer_group": "consumerGroup",
    "topics": "topics",
    "topic_pattern": "topicPattern",
    "exclude_topics": "excludeTopics",
    "overridable": "overridable",
    "auto_registered": "autoRegistered",
}


@dataclass(frozen=True, slots=True)
class _PlannedChange:
    """One planned change: the current row of the monitor, and its desired state."""

    name: str
    outcome: ChangeOutcome
    row: Row | None
    spec: MonitorSpec | None = None


async def apply_bulk_changes(
    tenant: TenantAccess, given: ChangesIn, tick_seconds: float, *, dry_run: bool
) -> ChangesOut:
    """Apply all changes, or only report what they would do.

    Raises:
        InvalidInput: with the errors of all items; fields as in `items.3.put.policy.lagThreshold`.
        PreconditionFailed: the monitor of an item has another version.
        QuotaExceeded: the tenant would exceed a quota.
    """
    drafts = _parse_drafts(given)
    # The lock keeps the tenant's rules as they are until the end.
    async with tenant.session(lock=True) as session:
        await quotas.lock_registrations(session)
        steps = await _plan(session, given, drafts, tick_seconds)
        after = {} if dry_run else await _apply_changes(session, steps)
        if dry_run:
            await _check_quotas(session, steps)
    items = [_serialize_change(step, after.get(step.name, step.row)) for step in steps]
    counts = {outcome: sum(step.outcome == outcome for step in steps) for outcome in get_args(ChangeOutcome)}
    return ChangesOut.model_validate({"dry_run": dry_run, "items": items} | counts)


async def _plan(
    session: TenantSession, given: ChangesIn, drafts: Mapping[int, MonitorDraft], tick_seconds: float
) -> list[_PlannedChange]:
    rows = await monitors.lock_many(session, [_monitor_name(change) for change in given.items])
    clusters = await monitor_writes.cluster_ids(session, {draft.cluster for draft in drafts.values()})
    field_errors: list[FieldError] = []
    steps: list[_PlannedChange] = []
    for index, change in enumerate(given.items):
        row = rows.get(_monitor_name(change))
        _check_precondition(change, row, index)
        if change.delete is not None:
            steps.append(_PlannedChange(change.delete, "unchanged" if row is None else "deleted", row))
            continue
        draft = drafts[index]
        if draft.cluster not in clusters:
            field_errors.append(monitor_writes.unknown_cluster(f"items.{index}.put.cluster"))
        try:
            steps.append(_plan_change(row, draft, build_spec(draft, session.tenant, tick_seconds)))
        except InvalidInput as error:
            if row is not None and monitors.is_unchanged(draft, row):
                # The tenant's rules are newer than the monitor, which may stay as it is.
                steps.append(_PlannedChange(draft.name, "unchanged", row))
            else:
                field_errors += [
                    FieldError(f"items.{index}.put.{field_error.field}", field_error.text)
                    for field_error in error.field_errors
                ]
    if field_errors:
        raise InvalidInput(field_errors)
    return steps


def _parse_drafts(given: ChangesIn) -> dict[int, MonitorDraft]:
    """The drafts of the items that put a monitor, by index.

    Raises:
        InvalidInput: a monitor has no name, or a name occurs twice.
    """
    field_errors: list[FieldError] = []
    index_by_name: dict[str, int] = {}
    drafts: dict[int, MonitorDraft] = {}
    for index, change in enumerate(given.items):
        field = f"items.{index}.delete" if change.put is None else f"items.{index}.put.name"
        name = _monitor_name(change)
        if not name:
            field_errors.append(FieldError(field, "must be given"))
        elif name in index_by_name:
            field_errors.append(
                FieldError(field, f"is also the name in items.{index_by_name[name]}; each name may occur once")
            )
        index_by_name.setdefault(name, index)
        if change.put is not None:
            drafts[index] = parse_draft(name, change.put)
    if field_errors:
        raise InvalidInput(field_errors)
    return drafts


def _monitor_name(change: ChangeIn) -> str:
    return (change.delete if change.put is None else change.put.name) or ""


def _check_precondition(change: ChangeIn, row: Row | None, index: int) -> None:
    if change.version is None:
        return
    precondition = Precondition(frozenset({change.version})) if change.version else Precondition(absent=True)
    try:
        check_precondition(row, precondition)
    except PreconditionFailed as error:
        field = f"items.{index}.version"
        raise PreconditionFailed(f"{field}, monitor {_monitor_name(change)!r}: {error.message}", field=field) from error


def _plan_change(row: Row | None, draft: MonitorDraft, spec: MonitorSpec) -> _PlannedChange:
    if row is None:
        return _PlannedChange(draft.name, "created", None, spec)
    return _PlannedChange(draft.name, "unchanged" if monitor_writes.matches_spec(row, spec) else "changed", row, spec)


async def _check_quotas(session: TenantSession, steps: list[_PlannedChange]) -> None:
    """Check quotas as `_apply_changes` would, without writing rows: a dry run takes no locks that tenants share."""
    outcomes = [step.outcome for step in steps]
    await quotas.check_quota(session, Quota.MONITORS, outcomes.count("created") - outcomes.count("deleted"))
    if "deleted" not in outcomes:
        # What a deletion frees is known only when it is applied.
        await quotas.check_quota(session, Quota.PARTITIONS, min(1, outcomes.count("created")))
    added = sum(step.outcome in {"created", "changed"} and _discovers_topics(step.spec) for step in steps)
    removed = sum(
        step.outcome in {"deleted", "changed"} and step.row is not None and step.row["topics"] is None for step in steps
    )
    await quotas.check_quota(session, Quota.PATTERNS, added - removed)


def _discovers_topics(spec: MonitorSpec | None) -> bool:
    return spec is not None and not spec.scope.is_listed


async def _apply_changes(session: TenantSession, steps: list[_PlannedChange]) -> dict[str, Row | None]:
    """Apply the changes; the rows that changed, by name."""
    deleted_rows = [step.row for step in steps if step.outcome == "deleted" and step.row is not None]
    # Deletions first: the quota counts the final state.
    await monitor_writes.remove(session, deleted_rows)
    pairs = [(step.row, step.spec) for step in steps if step.outcome == "changed" and step.row and step.spec]
    changed = await monitor_writes.change(session, pairs, adopt=True)
    created = await monitor_writes.create(
        session, [step.spec for step in steps if step.outcome == "created" and step.spec]
    )
    rows: dict[str, Row | None] = {row["name"]: row for row in (*changed, *created)}
    return rows | {row["name"]: None for row in deleted_rows}


def _serialize_change(step: _PlannedChange, after: Row | None) -> ChangeOut:
    differences = {} if step.spec is None or step.outcome == "unchanged" else _find_differences(step.row, step.spec)
    version = None if after is None else int(after["version"])
    return ChangeOut(name=step.name, outcome=step.outcome, version=version, differences=differences)


def _find_differences(row: Row | None, spec: MonitorSpec) -> dict[str, FieldDifference]:
    before = {} if row is None else _list_fields(row)
    after = _list_fields(to_columns(spec) | {"cluster": spec.cluster, "auto_registered": False})
    return {
        name: FieldDifference(before=before.get(name), after=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


def _list_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """A monitor by the fields of its body; policy keys as set, and those that the tenant's defaults add."""
    given = read_given(dict(row))
    fields = {field: row[column] for column, field in _FIELDS.items()}
    fields |= {f"policy.{name}": text for name, text in given.items()}
    return fields | {f"inheritedPolicy.{name}": text for name, text in row["policy"].items() if name not in given}
