"""The commands of `lagscale`. Each raises the family's errors; `__main__` turns them into exit codes."""

from __future__ import annotations

import json
import secrets
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from lagscale.errors import FieldError, InvalidInput, LagscaleError, SettingsInvalid, StoreUnavailable, Unknown
from lagscale.settings import load
from lagscale.store.encryption import generate_key
from services.cli.client import ApiClient, check_health
from services.cli.commands.apply import apply, diff
from services.cli.commands.audit import audit
from services.cli.commands.compare import compare
from services.cli.commands.explain import print_explanation
from services.cli.commands.freeze import freeze, freezes, unfreeze
from services.cli.commands.group_status import state
from services.cli.commands.import_ import import_
from services.cli.commands.objects import delete, export, get
from services.cli.commands.scaledobject import scaledobject
from services.cli.commands.secrets import secrets_app
from services.cli.settings import CliSettings

app = typer.Typer(
    name="lagscale",
    help="Administer Lagscale: migrate its database, look at its services, ask for verdicts.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
keys_app = typer.Typer(help="Keys for the settings.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")
app.add_typer(secrets_app, name="secrets")
app.command()(state)
app.command("import")(import_)
for _command in (audit, freeze, unfreeze, freezes, apply, diff, get, delete, export, scaledobject, compare):
    app.command()(_command)

_COLOURS = {"sustained": "bold red", "calm": "green", "unknown": "yellow"}


class MigrationsPending(LagscaleError):
    """Migrations are still to run: `lagscale migrate` runs them."""


@app.command()
def migrate(
    wait: Annotated[float, typer.Option(help="Seconds to wait for a database that does not answer yet.", min=0)] = 60,
    check: Annotated[bool, typer.Option("--check", help="Only tell what is still to run; exit 1 if anything.")] = False,
) -> None:
    """Bring the database's schema to this version. Safe to run twice, and at once."""
    from lagscale.store.migrate import find_pending
    from lagscale.store.migrate import migrate as run

    url = load(CliSettings).database_url
    if url is None:
        raise SettingsInvalid("LAGSCALE_DATABASE_URL: must be set for this command.")
    console = Console(soft_wrap=True)
    if check:
        steps = find_pending(url.get_secret_value(), wait_seconds=wait)
        for revision, title in steps:
            console.print(f"still to run: {revision} {title}", markup=False)
        if steps:
            raise MigrationsPending
        console.print("The schema is at this version.")
        return
    migration = run(url.get_secret_value(), wait_seconds=wait)
    for revision, title in migration.applied:
        console.print(f"ran {revision} {title}", markup=False)
    console.print(f"The schema is at {migration.after}{'' if migration.changed else '; there was nothing to do'}.")


@app.command()
def status() -> None:
    """Show whether the services are well; exit 8 if one is not."""
    settings = load(CliSettings)
    table = Table("service", "address", "health")
    healthy = True
    for name, url in (("api", settings.api_url), ("scaler", settings.scaler_url), ("scraper", settings.scraper_url)):
        if url is None:
            table.add_row(name, "-", f"[dim]not asked: set LAGSCALE_{name.upper()}_URL[/dim]")
            continue
        service_healthy, status_text = check_health(url)
        healthy = healthy and service_healthy
        table.add_row(name, url, f"[{'green' if service_healthy else 'red'}]{status_text}[/]")
    Console().print(table)
    if not healthy:
        raise StoreUnavailable("Not every service is well.")


@app.command()
def verdict(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="Whose verdict.")],
    as_json: Annotated[bool, typer.Option("--json", help="The API's answer as it is.")] = False,
) -> None:
    """Judge a monitor now and show why; exit 7 while the verdict is unknown."""
    path = _build_monitor_path(monitor)
    with ApiClient(load(CliSettings)) as client:
        answer = client.get(f"{path}/verdict")
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        _print_verdict(answer)
    if answer["verdict"] == "unknown":
        raise Unknown(answer["sentence"])


@app.command()
def explain(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="Whose moment; it may be deleted since.")],
    at: Annotated[
        str | None,
        typer.Option(help="The moment: 2030-01-31T12:00:00Z, or milliseconds since 1970. Now, if left out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The API's answer as it is.")] = False,
) -> None:
    """Explain a moment: what the samples say, which rule changed what, and what KEDA was told."""
    path = _build_monitor_path(monitor)
    with ApiClient(load(CliSettings)) as client:
        answer = client.get(f"{path}/explain", {} if at is None else {"at": at})
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        print_explanation(answer, monitor, Console())


def _build_monitor_path(monitor: str) -> str:
    tenant, slash, name = monitor.partition("/")
    if not slash or not tenant or not name or "/" in name:
        raise InvalidInput([FieldError("TENANT/MONITOR", "must read like shop/ingest-logs")])
    return f"/v1/tenants/{tenant}/monitors/{name}"


def _print_verdict(answer: dict[str, Any]) -> None:
    console = Console()
    colour = _COLOURS.get(answer["verdict"], "white")
    console.print(f"[bold]{answer['monitor']}[/bold]: [{colour}]{answer['verdict']}[/{colour}] ({answer['reason']})")
    if answer["verdict"] != "unknown":
        console.print(answer["sentence"], markup=False)
    console.print(answer["answerSentence"], markup=False)
    facts = Table(show_header=False, box=None)
    for label, name in (
        ("total lag", "total"),
        ("partitions", "partitions"),
        ("missing", "missing"),
        ("members", "members"),
        ("newest sample", "newestRoundAt"),
        ("judged at", "judgedAt"),
    ):
        facts.add_row(label, "not known" if answer[name] is None else str(answer[name]))
    console.print(facts)


@keys_app.command("generate")
def generate() -> None:
    """Print fresh values for LAGSCALE_SECRET_KEYS and LAGSCALE_API_ADMIN_KEY."""
    typer.echo(f"LAGSCALE_SECRET_KEYS={generate_key()}")
    typer.echo(f"LAGSCALE_API_ADMIN_KEY={secrets.token_urlsafe(32)}")
