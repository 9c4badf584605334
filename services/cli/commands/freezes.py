"""`lagscale freeze` and `lagscale unfreeze`: the brake from a terminal."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table

from lagscale.errors import FieldError, InvalidInput
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.settings import CliSettings

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_PART: Final = re.compile(r"(\d{1,6})([smhd])")

FreezeTarget = Annotated[str, typer.Argument(help="What is frozen: TENANT/MONITOR, or TENANT for all of its monitors.")]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="Only the monitors of this cluster of the tenant.")
]


def freeze(
    what: FreezeTarget,
    span: Annotated[str, typer.Option("--for", help="How long, as in 2h, 90m or 1d12h; at most 30 days.")],
    reason: Annotated[str, typer.Option(help="Why; whoever asks is told.")],
    cluster: ClusterOption = None,
) -> None:
    """Keep what KEDA was told last, whatever the samples say; said again, it changes end and reason."""
    given = {"forSeconds": parse_span(span), "reason": reason}
    with ApiClient(load(CliSettings)) as client:
        created = client.send("PUT", build_freeze_path(what, cluster), given)
    name = _format_name(created["kind"], created["name"], what)
    console = Console(soft_wrap=True)
    console.print(f"{name} is frozen until {created['until']}: {created['reason']}", markup=False, highlight=False)


def unfreeze(what: FreezeTarget, cluster: ClusterOption = None) -> None:
    """End a freeze now; others that cover the same monitors go on."""
    with ApiClient(load(CliSettings)) as client:
        client.send("DELETE", build_freeze_path(what, cluster))
    kind, name = ("cluster", cluster) if cluster else ("monitor" if "/" in what else "tenant", what)
    Console(soft_wrap=True).print(f"The freeze of {kind} {name} has ended.", markup=False, highlight=False)


def freezes(tenant: Annotated[str, typer.Argument(help="The tenant.")]) -> None:
    """List a tenant's freezes that have not ended."""
    table = Table("kind", "name", "since", "until", "frozenBy", "reason")
    with ApiClient(load(CliSettings)) as client:
        cursor: str | None = ""
        while cursor is not None:
            page = client.get(f"/v1/tenants/{quote(tenant, safe='')}/freezes", {"cursor": cursor} if cursor else {})
            for one in page["items"]:
                table.add_row(
                    one["kind"], one["name"] or "-", one["since"], one["until"], one["frozenBy"], one["reason"]
                )
            cursor = page["next"]
    Console().print(table)


def parse_span(text: str) -> int:
    """A span as people write it, as in 2h, 90m or 1d12h.

    Raises:
        InvalidInput: it is none.
    """
    span_text = text.strip().lower()
    parts = _PART.findall(span_text)
    if not parts or "".join(number + unit for number, unit in parts) != span_text:
        raise InvalidInput([FieldError("--for", "must be a span, as in 90m, 2h or 1d12h")])
    return sum(round(timedelta(**{_UNITS[unit]: int(number)}).total_seconds()) for number, unit in parts)


def build_freeze_path(what: str, cluster: str | None) -> str:
    """Where the freeze of a thing lives.

    Raises:
        InvalidInput: both a monitor and a cluster are named.
    """
    tenant, slash, monitor = what.partition("/")
    if not tenant or (slash and not monitor):
        raise InvalidInput([FieldError("WHAT", "must be TENANT or TENANT/MONITOR")])
    if monitor and cluster:
        raise InvalidInput([FieldError("--cluster", "is of a whole tenant; name the tenant without the monitor")])
    base = f"/v1/tenants/{quote(tenant, safe='')}"
    if monitor:
        return f"{base}/monitors/{quote(monitor, safe='')}/freeze"
    return f"{base}/clusters/{quote(cluster, safe='')}/freeze" if cluster else f"{base}/freeze"


def _format_name(kind: str, name: str | None, what: str) -> str:
    return f"{kind} {what.partition('/')[0]}" if name is None else f"{kind} {name}"
