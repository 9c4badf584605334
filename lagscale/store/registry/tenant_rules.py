"""What a change of a tenant's rules does to its monitors: new defaults are in force at once, nothing is silenced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lagscale.errors import FieldError
from lagscale.store.registry import monitor_writes, monitors, quotas
from lagscale.store.registry.monitor_spec import MonitorSpec, read_draft, resolve_draft, to_columns
from lagscale.store.registry.session import Row, TenantSession


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A monitor that its tenant's rules forbid; it goes on as it is until it changes."""

    name: str
    field_errors: tuple[FieldError, ...]


async def apply_tenant_rules(session: TenantSession, tick_seconds: float) -> list[PolicyViolation]:
    """Bring every live monitor of the tenant under its present rules; those that they forbid, by name.

    A monitor that the new defaults change gets a new version, so that each moment can be explained by its own policy.
    One of which no policy can be made with them keeps the policy that it has.

    Args:
        session: a transaction behind the tenant's wall, with the tenant's row as it is now.
        tick_seconds: the scraper's tick.
    """
    await quotas.lock_registrations(session)
    rows = await monitors.lock_many(session)
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
    """Those of the monitors that the tenant's rules forbid; the rows have their clusters' names."""
    found = ((row["name"], resolve_draft(read_draft(row), session.tenant, tick_seconds)[1]) for row in rows)
    return [PolicyViolation(name, tuple(field_errors)) for name, field_errors in found if field_errors]
