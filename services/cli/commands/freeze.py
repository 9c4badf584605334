"""`lagscale freeze` and `lagscale unfreeze`: the brake from a terminal."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from lagscale.errors import Fault, InvalidInput
from lagscale.settings import load
from services.cli.client import Client
from services.cli.settings import CliSettings

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PART: Final = re.compile(r"(\d{1,6})([smhd])")

What = Annotated[str, typer.Argument(help="What is frozen: TENANT/MONITOR, or TENANT for all of its monitors.")]
OfCluster = Annotated[str | None, typer.Option("--cluster", help="Only the monitors of this cluster of the tenant.")]


def freeze(
    what: What,
    span: Annotated[str, typer.Option("--for", help="How long, as in 2h, 90m or 1d12h; at most 30 days.")],
    reason: Annotated[str, typer.Option(help="Why; whoever asks is told.")],
    cluster: OfCluster = None,
) -> None:
    """Keep what KEDA was told last, whatever the samples say; said again, it changes end and reason."""
    given = {"forSeconds": seconds(span), "reason": reason}
    with Client(load(CliSettings)) as client:
        made = client.send("PUT", path(what, cluster), given)
    name = _name(made["of"], made["name"], what)
    console = Console(soft_wrap=True)
    console.print(f"{name} is frozen until {made['until']}: {made['reason']}", markup=False, highlight=False)


def unfreeze(what: What, cluster: OfCluster = None) -> None:
    """End a freeze now; others that cover the same monitors go on."""
    with Client(load(CliSettings)) as client:
        client.send("DELETE", path(what, cluster))
    kind, name = ("cluster", cluster) if cluster else ("monitor" if "/" in what else "tenant", what)
    Console(soft_wrap=True).print(f"The freeze of {kind} {name} has ended.", markup=False, highlight=False)


def freezes(tenant: Annotated[str, typer.Argument(help="The tenant.")]) -> None:
    """List a tenant's freezes that have not ended."""
    table = Table("of", "name", "since", "until", "by", "reason")
    with Client(load(CliSettings)) as client:
        cursor: str | None = ""
        while cursor is not None:
            found = client.get(f"/v1/tenants/{quote(tenant, safe='')}/freezes", {"cursor": cursor} if cursor else {})
            for one in found["items"]:
                table.add_row(one["of"], one["name"] or "-", one["since"], one["until"], one["by"], one["reason"])
            cursor = found["next"]
    Console().print(table)


def seconds(text: str) -> int:
    """A span as people write it, as in 2h, 90m or 1d12h.

    Raises:
        InvalidInput: it is none.
    """
    written = text.strip().lower()
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise InvalidInput([Fault("--for", "must be a span, as in 90m, 2h or 1d12h")])
    return sum(round(timedelta(**{_UNITS[unit]: int(number)}).total_seconds()) for number, unit in parts)


def path(what: str, cluster: str | None) -> str:
    """Where the freeze of a thing lives.

    Raises:
        InvalidInput: both a monitor and a cluster are named.
    """
    tenant, slash, monitor = what.partition("/")
    if not tenant or (slash and not monitor):
        raise InvalidInput([Fault("WHAT", "must be TENANT or TENANT/MONITOR")])
    if monitor and cluster:
        raise InvalidInput([Fault("--cluster", "is of a whole tenant; name the tenant without the monitor")])
    base = f"/v1/tenants/{quote(tenant, safe='')}"
    if monitor:
        return f"{base}/monitors/{quote(monitor, safe='')}/freeze"
    return f"{base}/clusters/{quote(cluster, safe='')}/freeze" if cluster else f"{base}/freeze"


def _name(kind: str, name: str | None, what: str) -> str:
    return f"{kind} {what.partition('/')[0]}" if name is None else f"{kind} {name}"
