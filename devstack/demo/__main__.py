"""`python -m devstack.demo`: starts everything, runs the scenario, ends everything; exit code 0 only if all steps passed."""

from __future__ import annotations

import signal
import sys
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table

from devstack.claims import Claim
from devstack.clients import Admin, Kafka, KedaClient
from devstack.demo.scenario import (
    MONITOR,
    NAMESPACE,
    SUSTAIN_SECONDS,
    THRESHOLD,
    DemoReport,
    ExpectationFailed,
    Scenario,
)
from devstack.demo.screen import Screen
from devstack.environment import check_setting_names
from devstack.server import ServerFailed
from devstack.server import console as progress_console
from devstack.stack import Stack, parts
from lagscale.errors import SettingsInvalid

_ROOT = Path(__file__).resolve().parents[2]
_TICK_SECONDS = 1.0
_INTERRUPTED = 130


def main() -> int:
    """Run the demo; its exit code."""
    console = Console()
    try:
        check_setting_names()
    except SettingsInvalid as error:
        console.print(f"The demo was not started: {error.message}", highlight=False, markup=False, soft_wrap=True)
        return 2
    report = DemoReport()
    signal.signal(signal.SIGTERM, _interrupt)
    code = 1
    with ExitStack() as ends:
        try:
            _run(console, report, ends)
            code = 0
        except (ExpectationFailed, ServerFailed, RuntimeError) as failure:
            console.print(f"[red]The demo failed[/red]: {failure}", highlight=False)
        except KeyboardInterrupt:
            console.print("\ninterrupted; ending all processes")
            code = _INTERRUPTED
        with console.status("ending all processes"):
            ends.close()
    if report.steps:
        console.print(_table(report))
    console.print("[green]All steps passed.[/green]" if code == 0 else "[red]Some steps failed.[/red]")
    return code


def _run(console: Console, report: DemoReport, ends: ExitStack) -> None:
    folder = _ROOT / ".devstack" / f"demo-{uuid.uuid4().hex[:8]}"
    with progress_console.status("starting the broker") as spinner:
        broker, database = parts()
        ends.callback(Claim(folder).release)
        since = time.monotonic()
        ends.callback(broker.stop)
        broker.start()
        report.add("broker", f"Kafka at {broker.address}", since)
        spinner.update("starting the database")
        since = time.monotonic()
        ends.callback(database.stop)
        database.start()
        report.add("database", database.edition, since)
        since = time.monotonic()
        stack = Stack(database.url, folder, tick_seconds=_TICK_SECONDS)
        ends.callback(stack.stop)
        stack.start(spinner.update)
        report.add("services", "scraper, scaler and API are ready", since)
    keda = KedaClient(stack.addresses.grpc, NAMESPACE, {"serviceType": MONITOR})
    ends.callback(keda.close)
    admin = Admin(stack.addresses.api_url, stack.addresses.admin_key)
    with Screen(console, THRESHOLD, SUSTAIN_SECONDS) as screen:
        Scenario(admin, keda, Kafka(broker.address), screen, report).run(broker.address)


def _table(report: DemoReport) -> Table:
    table = Table(title="Steps")
    for heading in ("step", "result"):
        table.add_column(heading)
    for heading in ("at", "took"):
        table.add_column(heading, justify="right")
    for step, seen, at, took in report.steps:
        table.add_row(step, seen, f"{at:.1f} s", f"{took:.1f} s")
    return table


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
