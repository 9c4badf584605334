"""Many changes of monitors in one transaction: planned as a whole, then made as a whole, or only told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lagscale.domain.quotas import Quota
from lagscale.errors import Fault, InvalidInput, PreconditionFailed
from lagscale.store.registry import monitor_writes, monitors, quotas
from lagscale.store.registry.monitor_spec import Draft, MonitorSpec, columns, given_of
from lagscale.store.registry.session import Row, Scope, TenantWork
from lagscale.store.registry.versions import Seen, check_version
from services.api.monitors.bulk_schemas import ChangeIn, ChangeOut, ChangesIn, ChangesOut, Difference
from services.api.monitors.drafts import drafted
from services.api.operations import Operations

_Kind = Literal["created", "changed", "unchanged", "deleted"]
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
class _Step:
    """One planned change: the monitor as it is, and as it shall be."""

    name: str
    kind: _Kind
    row: Row | None
    spec: MonitorSpec | None = None


class Bulk:
    """Plans and makes the changes."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    async def change(self, scope: Scope, tenant: str, given: ChangesIn, *, dry_run: bool) -> ChangesOut:
        """Make all changes, or only tell them.

        Raises:
            InvalidInput: with the faults of all items at once; fields as in `items.3.put.policy.lagThreshold`.
            PreconditionFailed: an item has another version than the caller has seen.
            QuotaExceeded: the tenant would have more monitors than it may.
        """
        drafts = _drafts(given)
        async with self._operations.monitor_changes(scope, tenant) as work:
            await quotas.one_at_a_time(work)
            steps = await self._planned(work, given, drafts)
            after = {} if dry_run else await _made(work, steps)
            if dry_run:
                await _room_for(work, steps)
        items = [_told(step, after.get(step.name, step.row)) for step in steps]
        counts = {
            kind: sum(step.kind == kind for step in steps) for kind in ("created", "changed", "unchanged", "deleted")
        }
        return ChangesOut.model_validate({"dry_run": dry_run, "items": items} | counts)

    async def _planned(self, work: TenantWork, given: ChangesIn, drafts: Mapping[int, Draft]) -> list[_Step]:
        rows = await monitors.locked_many(work, [_name(change) for change in given.items])
        clusters = await monitor_writes.cluster_ids(work, {draft.cluster for draft in drafts.values()})
        faults: list[Fault] = []
        steps: list[_Step] = []
        for place, change in enumerate(given.items):
            row = rows.get(_name(change))
            _check(change, row, place)
            if change.delete is not None:
                steps.append(_Step(change.delete, "unchanged" if row is None else "deleted", row))
                continue
            draft = drafts[place]
            if draft.cluster not in clusters:
                faults.append(monitor_writes.no_cluster(f"items.{place}.put.cluster"))
            try:
                steps.append(_step(row, draft, self._operations.built(draft, work)))
            except InvalidInput as wrong:
                if row is not None and monitors.describes(draft, row):
                    # The tenant's rules came later than the monitor: as it is it goes on.
                    steps.append(_Step(draft.name, "unchanged", row))
                else:
                    faults += [Fault(f"items.{place}.put.{fault.field}", fault.text) for fault in wrong.faults]
        if faults:
            raise InvalidInput(faults)
        return steps


def _drafts(given: ChangesIn) -> dict[int, Draft]:
    """The monitors of the items that have one, by place.

    Raises:
        InvalidInput: a monitor has no name, or a name comes twice.
    """
    faults: list[Fault] = []
    places: dict[str, int] = {}
    drafts: dict[int, Draft] = {}
    for place, change in enumerate(given.items):
        field = f"items.{place}.delete" if change.put is None else f"items.{place}.put.name"
        name = _name(change)
        if not name:
            faults.append(Fault(field, "must be given"))
        elif name in places:
            faults.append(Fault(field, f"is that of items.{places[name]} too; give each name once"))
        places.setdefault(name, place)
        if change.put is not None:
            drafts[place] = drafted(name, change.put)
    if faults:
        raise InvalidInput(faults)
    return drafts


def _name(change: ChangeIn) -> str:
    return (change.delete if change.put is None else change.put.name) or ""


def _check(change: ChangeIn, row: Row | None, place: int) -> None:
    if change.version is None:
        return
    seen = Seen(frozenset({change.version})) if change.version else Seen(absent=True)
    try:
        check_version(row, seen)
    except PreconditionFailed as wrong:
        field = f"items.{place}.version"
        raise PreconditionFailed(f"{field}, monitor {_name(change)!r}: {wrong.message}", field=field) from wrong


def _step(row: Row | None, draft: Draft, spec: MonitorSpec) -> _Step:
    if row is None:
        return _Step(draft.name, "created", None, spec)
    return _Step(draft.name, "unchanged" if monitor_writes.is_so(row, spec) else "changed", row, spec)


async def _room_for(work: TenantWork, steps: list[_Step]) -> None:
    """What `_made` would find of the quotas, without a row written: locks that all tenants share are not taken."""
    kinds = [step.kind for step in steps]
    await quotas.room_for(work, Quota.MONITORS, kinds.count("created") - kinds.count("deleted"))
    if "deleted" not in kinds:
        # What a deletion gives back is counted when it is made.
        await quotas.room_for(work, Quota.PARTITIONS, min(1, kinds.count("created")))
    more = sum(step.kind in {"created", "changed"} and _looks_up(step.spec) for step in steps)
    less = sum(
        step.kind in {"deleted", "changed"} and step.row is not None and step.row["topics"] is None for step in steps
    )
    await quotas.room_for(work, Quota.PATTERNS, more - less)


def _looks_up(spec: MonitorSpec | None) -> bool:
    return spec is not None and not spec.scope.is_listed


async def _made(work: TenantWork, steps: list[_Step]) -> dict[str, Row | None]:
    """Make the changes; the rows that are another now, by name."""
    gone = [step.row for step in steps if step.kind == "deleted" and step.row is not None]
    # Deleted first: the quota counts what is there in the end.
    await monitor_writes.remove(work, gone)
    pairs = [(step.row, step.spec) for step in steps if step.kind == "changed" and step.row and step.spec]
    changed = await monitor_writes.change(work, pairs, adopt=True)
    created = await monitor_writes.create(work, [step.spec for step in steps if step.kind == "created" and step.spec])
    rows: dict[str, Row | None] = {row["name"]: row for row in (*changed, *created)}
    return rows | {row["name"]: None for row in gone}


def _told(step: _Step, after: Row | None) -> ChangeOut:
    differences = {} if step.spec is None or step.kind == "unchanged" else _differences(step.row, step.spec)
    version = None if after is None else int(after["version"])
    return ChangeOut(name=step.name, outcome=step.kind, version=version, differences=differences)


def _differences(row: Row | None, spec: MonitorSpec) -> dict[str, Difference]:
    before = {} if row is None else _fields(row)
    after = _fields(columns(spec) | {"cluster": spec.cluster, "auto_registered": False})
    return {
        name: Difference(before=before.get(name), after=after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a monitor is, by the fields of its body; policy keys as given, and those that the tenant's defaults add."""
    given = given_of(dict(row))
    fields = {field: row[column] for column, field in _FIELDS.items()}
    fields |= {f"policy.{name}": text for name, text in given.items()}
    return fields | {f"inheritedPolicy.{name}": text for name, text in row["policy"].items() if name not in given}
