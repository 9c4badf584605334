"""`lagscale state`: how a monitor's group and its partitions fare, in the field's words."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.errors import FieldError, InvalidInput, Unknown
from lagscale.settings import load
from services.cli.client import ApiClient
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
        raise InvalidInput([FieldError("TENANT/MONITOR", "must read like shop/ingest-logs")])
    with ApiClient(load(CliSettings)) as client:
        status = client.get(f"/v1/tenants/{tenant}/monitors/{name}/state")
    if as_json:
        typer.echo(json.dumps(status, indent=2))
    else:
        _print_status(status, every)
    if status["status"] == "unknown":
        raise Unknown(status["scope"] or status["sentence"])


def _print_status(status: dict[str, Any], every: bool) -> None:
    console = Console()
    members = "not known" if status["members"] is None else status["members"]
    console.print(Text(f"{status['monitor']}: ").append(_format_status(status["status"])))
    console.print(
        f"group {status['consumerGroup']}, members {members}, over {status['windowSeconds']:g} s", markup=False
    )
    if status["status"] != "unknown":  # Else the error says it.
        console.print(" ".join(filter(None, (status["sentence"], status["scope"]))), markup=False)
    for topic in status["unmeasuredTopics"]:
        console.print(f"not measured lately: {topic}", markup=False)
    shown = [one for one in status["partitions"] if every or one["status"] != "ok" or one["stuck"] or one["hot"]]
    if shown:
        console.print(_build_table(shown))


def _build_table(partitions: list[dict[str, Any]]) -> Table:
    table = Table("topic", "#", "status", "lag then", "lag now", "commit by", "commit still since", "rule")
    for one in partitions:
        marks = "".join(f" {mark}" for mark in ("stuck", "hot") if one[mark])
        since = one["unchangedSince"]
        table.add_row(
            Text(one["topic"]),
            str(one["partition"]),
            _format_status(one["status"]).append(marks, "bold magenta"),
            _format_number(one["startLag"]),
            _format_number(one["lag"]),
            _format_number(one["advanced"], sign="+"),
            "-" if since is None else f"{since}{' or earlier' if one['possiblyUnchangedEarlier'] else ''}",
            Text(one["sentence"]),
        )
    return table


def _format_status(word: str) -> Text:
    return Text().append(word, _COLOURS.get(word, "white"))


def _format_number(value: int | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign},}"
