"""`python -m devstack up|down|status`: a whole Lagscale on this machine, kept running."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from devstack import running
from devstack.server import ServerFailed
from devstack.stack import Stack, one_monitor_variables, parts

_ROOT = Path(__file__).resolve().parents[1]
_console = Console(soft_wrap=True)
app = typer.Typer(add_completion=False, help="A whole Lagscale on this machine, kept running.")


@app.command()
def up(tick: float = typer.Option(1.0, help="The scraper's tick in seconds.")) -> None:
    """Start broker, database and services; print where they are and how to ask them."""
    if running.alive():
        _console.print("Already running; `make down` ends it.")
        status()
        return
    broker, database = parts(name="up", detached=True)
    stack: Stack | None = None
    try:
        with _console.status("starting the broker") as spinner:
            broker.start()
            spinner.update("starting the database")
            database.start()
            variables = one_monitor_variables(os.environ)
            stack = Stack(database.url, _ROOT / ".devstack/up", tick_seconds=tick, extra=variables, detached=True)
            stack.start(spinner.update)
    except (ServerFailed, RuntimeError, KeyboardInterrupt) as failure:
        for part in (stack, database, broker):
            if part is not None:
                part.stop()
        _console.print(f"[red]not started[/red]: {failure}", highlight=False)
        raise typer.Exit(1) from None
    own = {} if os.environ.get("LAGSCALE_KAFKA_BOOTSTRAP") else {"broker": broker.server}
    own |= {} if os.environ.get("LAGSCALE_DATABASE_URL") else {"database": database.server}
    addresses = stack.addresses
    running.remember(
        own | stack.servers,
        {"database": signal.SIGINT},
        {
            "Kafka": broker.address,
            "database": f"{database.url} ({database.edition})",
            "API": f"{addresses.api_url} (docs at /docs)",
            "admin key": addresses.admin_key,
            "scaler (gRPC)": (variables.get("GRPC_PORT", "") and f"127.0.0.1:{variables['GRPC_PORT']}")
            or addresses.grpc,
            "scaler (HTTP)": f"http://{addresses.scaler_http}",
            "scraper (HTTP)": f"http://{addresses.scraper_http}",
            "logs": ".devstack/up/*.log",
        },
    )
    status()


@app.command()
def down() -> None:
    """End what `up` started."""
    ended = running.end_all()
    _console.print(f"ended: {', '.join(ended)}" if ended else "nothing was running")


@app.command()
def status() -> None:
    """Show what runs, and how to ask it."""
    alive = running.alive()
    if not alive:
        _console.print("nothing is running; `make up` starts it")
        raise typer.Exit(1)
    facts = running.facts()
    table = Table(show_header=False, box=None)
    for name, text in facts.items():
        table.add_row(f"[bold]{name}[/bold]", text)
    table.add_row("[bold]processes[/bold]", ", ".join(f"{name} {pid}" for name, pid in alive.items()))
    _console.print(table)
    key = facts["admin key"]
    api = facts["API"].split()[0]
    _console.print("\nAsk the API, and the scaler as KEDA does (reflection is on):\n", highlight=False)
    _console.print(f"  curl -s -H 'Authorization: Bearer {key}' {api}/v1/tenants", highlight=False, markup=False)
    _console.print(
        '  grpcurl -plaintext -d \'{"name":"orders","namespace":"default","scalerMetadata":{"serviceType":"orders"}}\' '
        f"{facts['scaler (gRPC)']} externalscaler.ExternalScaler/IsActive",
        highlight=False,
        markup=False,
    )


if __name__ == "__main__":
    sys.exit(app())
