"""`lagscale audit`: audit events as a table or as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.errors import InvalidInput
from services.cli.client import open_api

#: Page size of the API.
_MAX_EVENTS = 500
_MAX_CHANGE_LENGTH = 160
#: Changes with every other field.
_IGNORED_FIELDS = frozenset({"version"})

Facts = Mapping[str, Any]


def list_audit_events(
    tenant: Annotated[
        str | None, typer.Argument(metavar="[TENANT]", help="Tenant; default: all tenants and the platform.")
    ] = None,
    *,
    actor: Annotated[str | None, typer.Option(help="Filter by actor; a trailing `*` matches by prefix.")] = None,
    action: Annotated[str | None, typer.Option(help="Filter by action: monitor.update, or 'monitor.*'.")] = None,
    thing: Annotated[
        str | None, typer.Option("--object", help="Filter by object: monitor/orders, or 'monitor/*'.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Start of the time range (inclusive): 2030-01-31T12:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="End of the time range (exclusive).")] = None,
    limit: Annotated[int, typer.Option(help="Number of events to show.", min=1, max=_MAX_EVENTS)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Export all events as JSON lines, oldest first.")] = False,
) -> None:
    """List audit events, newest first."""
    if tenant is not None and ("/" in tenant or not tenant):
        raise InvalidInput.of("TENANT", "must be the name of a tenant")
    path = "/v1/audit" if tenant is None else f"/v1/tenants/{tenant}/audit"
    filters = {"actor": actor, "action": action, "object": thing, "since": since, "until": until}
    query = {name: text for name, text in filters.items() if text is not None}
    with open_api() as client:
        if as_json:
            for line in client.stream_lines(f"{path}/export", query):
                typer.echo(line)
            return
        page = client.get(path, {**query, "limit": str(limit)})
    console = Console()
    console.print(_build_table(page["items"], all_tenants=tenant is None))
    if page["next"] is not None:
        console.print("More events exist; use --limit to show more, or --json to export all.", style="dim")


def _build_table(events: list[dict[str, Any]], *, all_tenants: bool) -> Table:
    table = Table("time", *(["tenant"] if all_tenants else []), "actor", "origin", "action", "object", "changes")
    for event in events:
        tenant_cells = [Text(event["tenant"] or "-")] if all_tenants else []
        cells = (event["actor"], event["origin"] or "-", event["action"], event["object"])
        changes = "; ".join(_list_changes(event["before"], event["after"]))
        shown = changes if len(changes) <= _MAX_CHANGE_LENGTH else f"{changes[:_MAX_CHANGE_LENGTH]}..."
        table.add_row(Text(event["at"][:19]), *tenant_cells, *(Text(cell) for cell in cells), Text(shown))
    return table


def _list_changes(before: Facts | None, after: Facts | None, path: str = "") -> Iterator[str]:
    """Changed fields by path; none for a created or deleted object."""
    if before is None or after is None:
        return
    for name in sorted(set(before) | set(after)):
        old, new = before.get(name), after.get(name)
        if old == new or (not path and name in _IGNORED_FIELDS):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _list_changes(old, new, f"{path}{name}.")
        else:
            yield f"{path}{name}: {json.dumps(old)} -> {json.dumps(new)}"
