"""`python -m devstack up|down|status`: a whole Lagscale on this machine, in the background."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path
from types import FrameType

import typer
from confluent_kafka import KafkaException
from cryptography.fernet import Fernet
from rich.console import Console
from rich.status import Status
from rich.table import Table

from devstack import seed
from devstack.broker import Broker
from devstack.clients import Admin
from devstack.database import Database
from devstack.environment import check_setting_names, read_setting
from devstack.server import ServerFailed
from devstack.stack import Addresses, Stack, one_monitor_variables
from devstack.state import ProcessRegistry, SavedState
from lagscale.errors import SettingsInvalid
from services.single_monitor import NAME, build_monitor_name

_ROOT = Path(__file__).resolve().parents[1]
_UP = _ROOT / ".devstack/up"
_console = Console(soft_wrap=True)
app = typer.Typer(add_completion=False, help="A whole Lagscale on this machine, in the background.")


@app.command()
def up(tick: float = typer.Option(1.0, help="The scraper's tick in seconds.")) -> None:
    """Start broker, database and services; print their addresses and example calls."""
    try:
        check_setting_names()
    except SettingsInvalid as error:
        _console.print(f"not started: {error.message}", highlight=False, markup=False)
        raise typer.Exit(2) from None
    processes = ProcessRegistry()
    if processes.alive() and processes.facts and not processes.exited():
        _console.print("already running; stop it with `make down`")
        status()
        return
    processes.end_all()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with _console.status("starting the broker") as spinner:
            processes.save_facts(_start(processes, tick, spinner))
    except KeyboardInterrupt:
        processes.end_all()
        _console.print("interrupted; all processes were stopped")
        raise typer.Exit(130) from None
    except (ServerFailed, RuntimeError, KafkaException) as failure:
        processes.end_all()
        _console.print(f"not started: {failure}", highlight=False, markup=False)
        raise typer.Exit(1) from None
    status()


@app.command()
def down() -> None:
    """Stop everything that `up` started."""
    with _console.status("ending all processes"):
        ended = ProcessRegistry().end_all()
    _console.print(f"ended: {', '.join(ended)}" if ended else "nothing was running")


@app.command()
def status() -> None:
    """Show processes, addresses and example calls. Exit code 1 unless all processes run."""
    processes = ProcessRegistry()
    alive, exited, facts = processes.alive(), processes.exited(), processes.facts
    if not alive or not facts:
        _console.print("nothing is running; start it with `make up`")
        raise typer.Exit(1)
    table = Table(show_header=False, box=None)
    for name, text in facts.items():
        table.add_row(f"[bold]{name}[/bold]", text)
    table.add_row("[bold]processes[/bold]", ", ".join(f"{name} {pid}" for name, pid in alive.items()))
    _console.print(table)
    _print_usage(facts)
    if exited:
        _console.print(f"[red]exited[/red]: {', '.join(exited)}; see .devstack/up and .devstack/log")
        raise typer.Exit(1)


def _start(processes: ProcessRegistry, tick: float, spinner: Status) -> dict[str, str]:
    """Start everything and record each process; return what `status` shows."""
    saved_state = SavedState(_UP / "kept.json")
    variables = one_monitor_variables(os.environ)
    broker = Broker(
        "up-broker", port=saved_state.port("broker"), detached=True, external=variables.get("KAFKA_BROKERS")
    )
    database = Database("up", port=saved_state.port("database"), detached=True)
    for server in (broker.server, database.server):
        server.on_spawn = processes.record
    broker.spawn_without_waiting()
    spinner.update("starting the database")
    database.start()
    url = database.url
    if variables.get("KAFKA_TOPIC"):
        variables["KAFKA_BROKERS"] = broker.address
        if not read_setting("LAGSCALE_DATABASE_URL"):
            # Its monitor serves every namespace, which an existing tenant with a namespace would prevent.
            url = database.existing_or_new("one_monitor")
    stack = Stack(
        *(url, _UP),
        tick_seconds=tick,
        extra=variables,
        detached=True,
        addresses=_addresses(saved_state, url, variables.get("GRPC_PORT")),
        on_spawn=processes.record,
    )
    stack.start(spinner.update)
    spinner.update("waiting for the broker")
    broker.await_ready()
    if variables.get("KAFKA_TOPIC"):
        topics = [topic.strip() for topic in variables["KAFKA_TOPIC"].split(",")]
        monitor = f"{NAME}/{build_monitor_name(topics[0])}"
        if broker.server.process is not None:
            for topic in topics:
                seed.create_topic(broker.address, topic)
    else:
        monitor = f"{seed.TENANT}/{seed.MONITOR}"
        seed.register(Admin(stack.addresses.api_url, stack.addresses.admin_key), broker.address, tick)
    return {
        "Kafka": broker.address,
        "database": f"{url} ({database.edition})",
        "API": f"{stack.addresses.api_url} (docs at /docs)",
        "admin key": stack.addresses.admin_key,
        "scaler (gRPC)": stack.addresses.grpc,
        "scaler (HTTP)": f"http://{stack.addresses.scaler_http}",
        "scraper (HTTP)": f"http://{stack.addresses.scraper_http}",
        "monitor": monitor,
        "logs": ".devstack/up/*.log, .devstack/log/*.log",
    }


def _addresses(saved_state: SavedState, database_url: str, grpc_port: str | None) -> Addresses:
    return Addresses(
        database_url,
        api=f"127.0.0.1:{saved_state.port('api')}",
        grpc=f"127.0.0.1:{grpc_port or saved_state.port('grpc')}",
        scaler_http=f"127.0.0.1:{saved_state.port('scaler_http')}",
        scraper_http=f"127.0.0.1:{saved_state.port('scraper_http')}",
        admin_key=saved_state.text("admin_key", f"dev-{secrets.token_urlsafe(24)}"),
        secret_key=saved_state.text("secret_key", Fernet.generate_key().decode()),
    )


def _print_usage(facts: dict[str, str]) -> None:
    api, key = facts["API"].split()[0], facts["admin key"]
    reference = f'{{"name":"workers","namespace":"{seed.NAMESPACE}","scalerMetadata":{{"serviceType":"{facts["monitor"].rpartition("/")[2]}"}}}}'
    scaler = facts["scaler (gRPC)"]
    _console.print(
        "\nUse the command, the API, and the scaler as KEDA does (reflection is enabled):\n", highlight=False
    )
    for line in (
        f"  export LAGSCALE_API_URL={api} LAGSCALE_API_KEY={key}",
        f"  {Path(sys.executable).parent / 'lagscale'} verdict {facts['monitor']}",
        f"  curl -s -H 'Authorization: Bearer {key}' {api}/v1/tenants",
        f"  grpcurl -plaintext -d '{reference}' {scaler} externalscaler.ExternalScaler/IsActive",
    ):
        _console.print(line, highlight=False, markup=False)
    _console.print("\nUntil there are enough samples for a verdict, the scaler returns an error, never 0.")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(app())
