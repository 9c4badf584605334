"""`lagscale verdict` and `lagscale state`: the verdict of a monitor, and the status of its consumer group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lagscale.errors import Unknown
from services.cli.client import open_api
from services.cli.output import (
    VERDICT_STYLES,
    ApiJson,
    MonitorArgument,
    build_monitor_path,
    format_optional,
    print_json,
)

_STATUS_STYLES = {
    "ok": "green",
    "unknown": "yellow",
    "warn": "yellow",
    "stop": "bold red",
    "stall": "bold red",
    "rewind": "bold red",
}


def show_verdict(monitor: MonitorArgument, as_json: ApiJson = False) -> None:
    """Evaluate a monitor now and show the verdict with its reason; exit 7 if the verdict is unknown."""
    verdict = _show(f"{build_monitor_path(monitor)}/verdict", _print_verdict, as_json=as_json)
    if verdict["verdict"] == "unknown":
        raise Unknown(verdict["sentence"])


def show_group_status(
    monitor: MonitorArgument,
    as_json: ApiJson = False,
    show_all: Annotated[bool, typer.Option("--all", help="Include partitions with status ok.")] = False,
) -> None:
    """Show the status of a monitor's consumer group and of each partition; exit 7 if it is unknown."""
    status = _show(f"{build_monitor_path(monitor)}/state", partial(_print_status, show_all=show_all), as_json=as_json)
    if status["status"] == "unknown":
        raise Unknown(status["partialReason"] or status["sentence"])


def _show(path: str, print_answer: Callable[[dict[str, Any]], None], *, as_json: bool) -> dict[str, Any]:
    with open_api() as client:
        answer = client.get(path)
    (print_json if as_json else print_answer)(answer)
    return answer


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


def _print_status(status: dict[str, Any], *, show_all: bool) -> None:
    console = Console()
    console.print(Text(f"{status['monitor']}: ").append(_format_status(status["status"])))
    members, window = format_optional(status["members"]), f"{status['windowSeconds']:g} s"
    console.print(f"consumer group {status['consumerGroup']}, members {members}, window {window}", markup=False)
    if status["status"] != "unknown":  # Else the error shows it.
        console.print(" ".join(filter(None, (status["sentence"], status["partialReason"]))), markup=False)
    for topic in status["unmeasuredTopics"]:
        console.print(f"no recent samples: {topic}", markup=False)
    shown = [one for one in status["partitions"] if show_all or one["status"] != "ok" or one["stuck"] or one["hot"]]
    if shown:
        console.print(_build_table(shown))


def _build_table(partitions: list[dict[str, Any]]) -> Table:
    table = Table("topic", "partition", "status", "start lag", "lag", "committed", "unchanged since", "reason")
    for one in partitions:
        marks = "".join(f" {mark}" for mark in ("stuck", "hot") if one[mark])
        since = one["unchangedSince"]
        table.add_row(
            Text(one["topic"]),
            str(one["partition"]),
            _format_status(one["status"]).append(marks, "bold magenta"),
            _format_number(one["startLag"]),
            _format_number(one["lag"]),
            _format_number(one["commitDelta"], sign="+"),
            "-" if since is None else f"{since}{' or earlier' if one['possiblyUnchangedEarlier'] else ''}",
            Text(one["sentence"]),
        )
    return table


def _format_status(word: str) -> Text:
    return Text().append(word, _STATUS_STYLES.get(word, "white"))


def _format_number(value: int | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign},}"
