"""What a change of a tenant's rules does to its monitors: new defaults are in force at once, nothing is silenced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lagscale.errors import Fault
from lagscale.store.registry import monitor_writes, monitors, quotas
from lagscale.store.registry.monitor_spec import MonitorSpec, columns, draft_of, judged
from lagscale.store.registry.session import Row, TenantWork


@dataclass(frozen=True, slots=True)
class Outlaw:
    """A monitor that its tenant's rules forbid; it goes on as it is until it changes."""

    name: str
    faults: tuple[Fault, ...]


async def follow(work: TenantWork, tick_seconds: float) -> list[Outlaw]:
    """Bring every live monitor of the tenant under its present rules; those that they forbid, by name.

    A monitor that the new defaults change gets a new version, so that each moment can be explained by its own policy.
    One of which no policy can be made with them keeps the policy that it has.

    Args:
        work: a transaction behind the tenant's wall, with the tenant's row as it is now.
        tick_seconds: the scraper's tick.
    """
    await quotas.one_at_a_time(work)
    rows = await monitors.locked_many(work)
    changed: list[tuple[Row, MonitorSpec]] = []
    found: list[Outlaw] = []
    for row in rows.values():
        spec, faults = judged(draft_of(row), work.tenant, tick_seconds)
        if spec is not None and any(row[column] != value for column, value in columns(spec).items()):
            changed.append((row, spec))
        if faults:
            found.append(Outlaw(row["name"], tuple(faults)))
    await monitor_writes.change(work, changed, adopt=False)
    return sorted(found, key=lambda outlaw: outlaw.name)


def outlaws(work: TenantWork, rows: Iterable[Row], tick_seconds: float) -> list[Outlaw]:
    """Those of the monitors that the tenant's rules forbid; the rows have their clusters' names."""
    found = ((row["name"], judged(draft_of(row), work.tenant, tick_seconds)[1]) for row in rows)
    return [Outlaw(name, tuple(faults)) for name, faults in found if faults]
