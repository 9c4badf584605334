"""Applies changed rules of a tenant to its monitors: new defaults are in force at once, no monitor is disabled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lagscale.errors import FieldError
from lagscale.store.registry import monitor_writes, monitors, quotas
from lagscale.store.registry.monitor_spec import MonitorSpec, read_draft, resolve_draft, to_columns
from lagscale.store.registry.session import Row, TenantSession


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """A monitor that its tenant's rules forbid; it continues unchanged until its next change."""

    name: str
    field_errors: tuple[FieldError, ...]


async def apply_tenant_rules(session: TenantSession, tick_seconds: float) -> list[PolicyViolation]:
    """Apply the tenant's present rules to its live monitors; the violations by name.

    A monitor that the new defaults change gets a new version, so that each point in time is explained by its own policy.
    A monitor without a valid policy by these rules keeps its policy.

    Args:
        session: a transaction in the tenant's context, with the tenant's present row.
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
    """Violations among these monitors; the rows have their clusters' names."""
    found = ((row["name"], resolve_draft(read_draft(row), session.tenant, tick_seconds)[1]) for row in rows)
    return [PolicyViolation(name, tuple(field_errors)) for name, field_errors in found if field_errors]
