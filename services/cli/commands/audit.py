"""`lagscale audit`: who changed what, when and from where, as a table or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.errors import FieldError, InvalidInput
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.settings import CliSettings

#: Of one page of the API.
_MAX_EVENTS = 500
_LONGEST_CHANGE = 160
#: They change with everything else.
_IGNORED_FIELDS = frozenset({"version"})

Facts = Mapping[str, Any]


def audit(
    tenant: Annotated[
        str | None, typer.Argument(metavar="[TENANT]", help="Whose; all tenants and the platform, if left out.")
    ] = None,
    *,
    actor: Annotated[str | None, typer.Option(help="By whom; `*` at the end: begins so.")] = None,
    action: Annotated[str | None, typer.Option(help="As in monitor.update, or 'monitor.*'.")] = None,
    thing: Annotated[str | None, typer.Option("--object", help="As in monitor/orders, or 'monitor/*'.")] = None,
    since: Annotated[str | None, typer.Option(help="The first instant: 2030-01-31T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="The last instant, excluded.")] = None,
    limit: Annotated[int, typer.Option(help="How many of the newest are shown.", min=1, max=_MAX_EVENTS)] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="All of them as lines of JSON, the oldest first.")] = False,
) -> None:
    """Show who changed what, when and from where, the newest first."""
    if tenant is not None and ("/" in tenant or not tenant):
        raise InvalidInput([FieldError("TENANT", "must be a tenant's name")])
    path = "/v1/audit" if tenant is None else f"/v1/tenants/{tenant}/audit"
    filters = {"actor": actor, "action": action, "object": thing, "since": since, "until": until}
    query = {name: text for name, text in filters.items() if text is not None}
    with ApiClient(load(CliSettings)) as client:
        if as_json:
            for line in client.stream_lines(f"{path}/export", query):
                typer.echo(line)
            return
        page = client.get(path, {**query, "limit": str(limit)})
    console = Console()
    console.print(_build_table(page["items"], all_tenants=tenant is None))
    if page["next"] is not None:
        console.print("There are older ones: --limit shows more, --json all of them.", style="dim")


def _build_table(events: list[dict[str, Any]], *, all_tenants: bool) -> Table:
    table = Table("at", *(["tenant"] if all_tenants else []), "who", "from", "did", "to", "what changed")
    for event in events:
        tenant_cells = [Text(event["tenant"] or "-")] if all_tenants else []
        cells = (event["actor"], event["origin"] or "-", event["action"], event["object"])
        what = "; ".join(_list_changes(event["before"], event["after"]))
        shown = what if len(what) <= _LONGEST_CHANGE else f"{what[:_LONGEST_CHANGE]}..."
        table.add_row(Text(event["at"][:19]), *tenant_cells, *(Text(cell) for cell in cells), Text(shown))
    return table


def _list_changes(before: Facts | None, after: Facts | None, path: str = "") -> Iterator[str]:
    """What differs, by its path; nothing where the whole came or went."""
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
