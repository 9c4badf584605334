"""`lagscale status`: the health of the services as a table. A module of its own, as each command has one."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from lagscale.errors import StoreUnavailable
from lagscale.settings import load
from services.cli.client import check_health
from services.cli.settings import CliSettings


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
