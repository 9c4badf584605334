"""`lagscale verdict`: the verdict of a monitor with its reason. A module of its own, as each command has one."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lagscale.errors import Unknown
from services.cli.client import open_api
from services.cli.output import VERDICT_STYLES, build_monitor_path, format_optional, print_json


def show_verdict(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="The monitor.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the API response as JSON.")] = False,
) -> None:
    """Evaluate a monitor now and show the verdict with its reason; exit 7 if the verdict is unknown."""
    path = build_monitor_path(monitor)
    with open_api() as client:
        verdict = client.get(f"{path}/verdict")
    if as_json:
        print_json(verdict)
    else:
        _print_verdict(verdict)
    if verdict["verdict"] == "unknown":
        raise Unknown(verdict["sentence"])


def _print_verdict(verdict: dict[str, Any]) -> None:
    console = Console()
    style = VERDICT_STYLES.get(verdict["verdict"], "white")
    console.print(f"[bold]{verdict['monitor']}[/bold]: [{style}]{verdict['verdict']}[/{style}] ({verdict['reason']})")
    if verdict["verdict"] != "unknown":  # Else the error shows it.
        console.print(verdict["sentence"], markup=False)
    console.print(verdict["answerSentence"], markup=False)
    facts = Table(show_header=False, box=None)
    for label, name in (
        ("total lag", "total"),
        ("partitions", "partitions"),
        ("missing", "missing"),
        ("members", "members"),
        ("newest sample", "newestRoundAt"),
        ("evaluated at", "judgedAt"),
    ):
        facts.add_row(label, format_optional(verdict[name]))
    console.print(facts)
