"""`lagscale status`, `migrate`, `secrets rotate` and `keys generate`: the services, their database and their keys."""

from __future__ import annotations

import asyncio
import secrets
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from lagscale.errors import LagscaleError, SecretsUnreadable, SettingsInvalid, StoreUnavailable
from lagscale.settings import load
from lagscale.store.encryption import generate_key
from services.cli.client import check_health
from services.cli.settings import CliSettings

_MAX_NAMED = 10


class MigrationsPending(LagscaleError):
    """Migrations are pending; run `lagscale migrate`."""


def show_status() -> None:
    """Show the health of the services; exit 8 if one is unhealthy."""
    settings = load(CliSettings)
    table = Table("service", "address", "health")
    all_healthy = True
    for name, url in (("api", settings.api_url), ("scaler", settings.scaler_url), ("scraper", settings.scraper_url)):
        if url is None:
            table.add_row(name, "-", f"[dim]not checked: set LAGSCALE_{name.upper()}_URL[/dim]")
            continue
        healthy, summary = check_health(url)
        all_healthy = all_healthy and healthy
        table.add_row(name, url, f"[{'green' if healthy else 'red'}]{summary}[/]")
    Console().print(table)
    if not all_healthy:
        raise StoreUnavailable("At least one service is unhealthy.")


def migrate_database(
    wait: Annotated[float, typer.Option(help="Seconds to wait for the database to become available.", min=0)] = 60,
    check: Annotated[
        bool, typer.Option("--check", help="List pending migrations without running them; exit 1 if there are any.")
    ] = False,
) -> None:
    """Migrate the database schema to this version. Idempotent; concurrent runs are safe."""
    from lagscale.store.migrate import find_pending, migrate

    url = _require_database_url(load(CliSettings))
    console = Console(soft_wrap=True)
    if check:
        pending = find_pending(url, wait_seconds=wait)
        for revision, title in pending:
            console.print(f"pending: {revision} {title}", markup=False)
        if pending:
            raise MigrationsPending
        console.print("The schema is up to date.")
        return
    migration = migrate(url, wait_seconds=wait)
    for revision, title in migration.applied:
        console.print(f"applied {revision} {title}", markup=False)
    console.print(f"The schema is at {migration.after}{'' if migration.changed else '; nothing to do'}.")


def rotate_secrets() -> None:
    """Re-encrypt all stored secrets with the first key of LAGSCALE_SECRET_KEYS. Can be interrupted and repeated."""
    from lagscale.store.encryption import Keyring
    from lagscale.store.registry.clusters import ReencryptionProgress, reencrypt_all
    from lagscale.store.registry.session import RegistryDatabase

    settings = load(CliSettings)
    url = _require_database_url(settings)
    keyring = Keyring(settings.secret_keys.get_secret_value())
    console = Console(soft_wrap=True)

    async def run_rotation() -> ReencryptionProgress:
        database = RegistryDatabase(url, size=1, seconds=30)
        try:
            with Progress(
                TextColumn("clusters"), BarColumn(), MofNCompleteColumn(), console=console, transient=True
            ) as bar:
                task = bar.add_task("", total=None)
                return await reencrypt_all(
                    database,
                    keyring,
                    lambda done: bar.update(task, completed=done.processed, total=max(done.total, done.processed)),
                )
        finally:
            await database.close()

    done = asyncio.run(run_rotation())
    console.print(f"{done.reencrypted} re-encrypted, {done.current} already up to date.", markup=False)
    if done.unreadable:
        more = len(done.unreadable) - _MAX_NAMED
        names = ", ".join(done.unreadable[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise SecretsUnreadable(
            f"No key of LAGSCALE_SECRET_KEYS decrypts the secrets of {names}; add the key that encrypted them and "
            "repeat, or store these secrets again."
        )


def generate_keys() -> None:
    """Generate values for LAGSCALE_SECRET_KEYS and LAGSCALE_API_ADMIN_KEY."""
    load(CliSettings)
    typer.echo(f"LAGSCALE_SECRET_KEYS={generate_key()}")
    typer.echo(f"LAGSCALE_API_ADMIN_KEY={secrets.token_urlsafe(32)}")


def _require_database_url(settings: CliSettings) -> str:
    if settings.database_url is None:
        raise SettingsInvalid("LAGSCALE_DATABASE_URL: must be set for this command.")
    return settings.database_url.get_secret_value()
