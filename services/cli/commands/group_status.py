"""`lagscale state`: how a monitor's group and its partitions fare, in the field's words."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.errors import Fault, InvalidInput, Unknown
from lagscale.settings import load
from services.cli.client import Client
from services.cli.settings import CliSettings

_COLOURS = {
    "ok": "green",
    "unknown": "yellow",
    "warn": "yellow",
    "stop": "bold red",
    "stall": "bold red",
    "rewind": "bold red",
}


def state(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="Whose state.")],
    as_json: Annotated[bool, typer.Option("--json", help="The API's answer as it is.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Show partitions that are ok, too.")] = False,
) -> None:
    """Show the state of a monitor's group and of each partition; exit 7 while it is unknown."""
    tenant, slash, name = monitor.partition("/")
    if not slash or not tenant or not name or "/" in name:
        raise InvalidInput([Fault("TENANT/MONITOR", "must read like shop/ingest-logs")])
    with Client(load(CliSettings)) as client:
        found = client.get(f"/v1/tenants/{tenant}/monitors/{name}/state")
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        _show(found, every)
    if found["state"] == "unknown":
        raise Unknown(found["scope"] or found["sentence"])


def _show(found: dict[str, Any], every: bool) -> None:
    console = Console()
    members = "not known" if found["members"] is None else found["members"]
    console.print(Text(f"{found['monitor']}: ").append(_state(found["state"])))
    console.print(f"group {found['consumerGroup']}, members {members}, over {found['windowSeconds']:g} s", markup=False)
    if found["state"] != "unknown":  # Else the error says it.
        console.print(" ".join(filter(None, (found["sentence"], found["scope"]))), markup=False)
    for topic in found["notMeasured"]:
        console.print(f"not measured lately: {topic}", markup=False)
    shown = [one for one in found["partitions"] if every or one["state"] != "ok" or one["stuck"] or one["hot"]]
    if shown:
        console.print(_table(shown))


def _table(partitions: list[dict[str, Any]]) -> Table:
    table = Table("topic", "#", "state", "lag then", "lag now", "commit by", "commit still since", "why")
    for one in partitions:
        marks = "".join(f" {mark}" for mark in ("stuck", "hot") if one[mark])
        since = one["stillSince"]
        table.add_row(
            Text(one["topic"]),
            str(one["partition"]),
            _state(one["state"]).append(marks, "bold magenta"),
            _number(one["lagThen"]),
            _number(one["lag"]),
            _number(one["advanced"], sign="+"),
            "-" if since is None else f"{since}{' or earlier' if one['stillSinceEarlier'] else ''}",
            Text(one["sentence"]),
        )
    return table


def _state(word: str) -> Text:
    return Text().append(word, _COLOURS.get(word, "white"))


def _number(value: int | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign},}"
