"""`lagscale freeze`, `lagscale unfreeze` and `lagscale freezes`: freezing scaling from the terminal."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from lagscale.errors import InvalidInput
from services.cli.client import open_api

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PART: Final = re.compile(r"(\d{1,6})([smhd])")

FreezeTarget = Annotated[str, typer.Argument(help="TENANT/MONITOR, or TENANT for all of its monitors.")]
ClusterOption = Annotated[str | None, typer.Option("--cluster", help="Only the monitors of this cluster.")]


def freeze_scaling(
    target: FreezeTarget,
    duration: Annotated[str, typer.Option("--for", help="Duration: 2h, 90m or 1d12h; at most 30 days.")],
    reason: Annotated[str, typer.Option(help="Reason, shown in events and explanations.")],
    cluster: ClusterOption = None,
) -> None:
    """Freeze scaling: KEDA keeps getting the last-known answer. Repeat to change the end and the reason."""
    body = {"forSeconds": parse_duration(duration), "reason": reason}
    with open_api() as client:
        created, _ = client.send("PUT", build_freeze_path(target, cluster), body)
    name = f"{created['kind']} {created['name'] or target.partition('/')[0]}"
    console = Console(soft_wrap=True)
    console.print(f"{name} is frozen until {created['until']}: {created['reason']}", markup=False, highlight=False)


def end_freeze(target: FreezeTarget, cluster: ClusterOption = None) -> None:
    """End a freeze now; other freezes of the same monitors stay in force."""
    with open_api() as client:
        client.send("DELETE", build_freeze_path(target, cluster))
    kind, name = ("cluster", cluster) if cluster else ("monitor" if "/" in target else "tenant", target)
    Console(soft_wrap=True).print(f"The freeze of {kind} {name} has ended.", markup=False, highlight=False)


def list_freezes(tenant: Annotated[str, typer.Argument(help="The tenant.")]) -> None:
    """List the active freezes of a tenant."""
    table = Table("kind", "name", "since", "until", "frozen by", "reason")
    with open_api() as client:
        for one in client.list_items(f"/v1/tenants/{quote(tenant, safe='')}/freezes"):
            table.add_row(one["kind"], one["name"] or "-", one["since"], one["until"], one["frozenBy"], one["reason"])
    Console().print(table)


def parse_duration(text: str) -> int:
    """Seconds of a duration such as 2h, 90m or 1d12h.

    Raises:
        InvalidInput: the text has another form.
    """
    normalized = text.strip().lower()
    parts = _PART.findall(normalized)
    if not parts or "".join(number + unit for number, unit in parts) != normalized:
        raise InvalidInput.of("--for", "must be a duration, for example 90m, 2h or 1d12h")
    return sum(round(timedelta(**{_UNITS[unit]: int(number)}).total_seconds()) for number, unit in parts)


def build_freeze_path(target: str, cluster: str | None) -> str:
    """The REST path of the freeze of a monitor, a cluster or a tenant.

    Raises:
        InvalidInput: the text has another form, or names both a monitor and a cluster.
    """
    tenant, slash, monitor = target.partition("/")
    if not tenant or (slash and not monitor):
        raise InvalidInput.of("TARGET", "expected TENANT or TENANT/MONITOR")
    if monitor and cluster:
        raise InvalidInput.of("--cluster", "cannot be combined with a monitor; give the tenant alone")
    base = f"/v1/tenants/{quote(tenant, safe='')}"
    if monitor:
        return f"{base}/monitors/{quote(monitor, safe='')}/freeze"
    return f"{base}/clusters/{quote(cluster, safe='')}/freeze" if cluster else f"{base}/freeze"
