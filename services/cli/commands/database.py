"""`lagscale secrets`: work on what the services keep encrypted."""

from __future__ import annotations

import asyncio

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from lagscale.errors import SecretsUnreadable, SettingsInvalid
from lagscale.settings import load
from services.cli.settings import CliSettings

secrets_app = typer.Typer(help="Secrets that are kept encrypted.", no_args_is_help=True)
_MOST_NAMED = 10


@secrets_app.callback()
def secrets() -> None:
    """Secrets that are kept encrypted."""


@secrets_app.command("rotate")
def rotate() -> None:
    """Encrypt every stored secret anew with the first key of LAGSCALE_SECRET_KEYS. May be interrupted and repeated."""
    from lagscale.store.encryption import Keyring
    from lagscale.store.registry.reencrypt import ReencryptionProgress
    from lagscale.store.registry.reencrypt import reencrypt_all as run
    from lagscale.store.registry.session import RegistryDatabase

    settings = load(CliSettings)
    if settings.database_url is None:
        raise SettingsInvalid("LAGSCALE_DATABASE_URL: must be set for this command.")
    url = settings.database_url.get_secret_value()
    keyring = Keyring(settings.secret_keys.get_secret_value())
    console = Console(soft_wrap=True)

    async def run_rotation() -> ReencryptionProgress:
        database = RegistryDatabase(url, size=1, seconds=30)
        try:
            with Progress(
                TextColumn("clusters"), BarColumn(), MofNCompleteColumn(), console=console, transient=True
            ) as bar:
                task = bar.add_task("", total=None)
                return await run(
                    database,
                    keyring,
                    lambda done: bar.update(task, completed=done.processed, total=max(done.total, done.processed)),
                )
        finally:
            await database.close()

    done = asyncio.run(run_rotation())
    console.print(f"{done.reencrypted} encrypted anew, {done.current} were so already.", markup=False)
    if done.unreadable:
        more = len(done.unreadable) - _MOST_NAMED
        named = ", ".join(done.unreadable[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        raise SecretsUnreadable(
            f"No key of LAGSCALE_SECRET_KEYS opens the secrets of {named}; add the key that wrote them and repeat, or "
            "store these secrets again."
        )
