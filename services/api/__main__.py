"""`lagscale-api`: serves the REST API. The only place that reads settings and builds the parts."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from types import FrameType

import structlog
import uvicorn

from lagscale.errors import LagscaleError, SettingsInvalid
from lagscale.kafka.probe.runner import ProbeRunner
from lagscale.kafka.secrets import SecretSources
from lagscale.settings import SingleMonitorSettings, load, read_tenant_variables, split_address
from lagscale.store.connection import Pool, open_pool
from lagscale.store.encryption import Keyring
from lagscale.store.registrations.load import ROLE as SCALER_ROLE
from lagscale.store.registrations.load import PostgresRegistrations
from lagscale.store.registry.session import RegistryDatabase
from lagscale.store.samples.read import RoundReader
from lagscale.store.verdicts.judge import PostgresVerdicts
from lagscale.telemetry import configure_logging
from services.api.app import ApiParts, create_app
from services.api.auth.authenticator import Authenticator, build_authenticator
from services.api.auth.rate_limits import TenantRateLimiter
from services.api.clusters.preflight import Preflights
from services.api.group_status.counts import StatusCounter
from services.api.monitors.validator import MonitorValidator
from services.api.settings import ApiSettings
from services.single_monitor import build_single_monitor, start_registration

log = structlog.get_logger(__name__)

_VERDICT_CONNECTIONS = 2
_GRACE_SECONDS = 8


def main() -> int:
    """Serve until SIGTERM or SIGINT; 2 if the settings are invalid."""
    argparse.ArgumentParser(prog="lagscale-api", description=_build_help(), formatter_class=_Formatter).parse_args()
    try:
        settings = load(ApiSettings)
        single = SingleMonitorSettings.is_configured(os.environ)
        if single:
            build_single_monitor(os.environ, tick_seconds=settings.tick_seconds)
        keyring = Keyring(settings.secret_keys.get_secret_value())
    except LagscaleError as error:
        _print_errors(error)
        return 2
    configure_logging("api", settings.log_level, settings.log_format == "json")
    url = settings.database_url.get_secret_value()
    database = RegistryDatabase(url, size=settings.api_pool_size, seconds=settings.api_store_timeout_seconds)
    # Verdicts are judged in the scaler's role, by the same statements; `verdicts.answers` says why that is safe.
    pool = open_pool(url, SCALER_ROLE, _VERDICT_CONNECTIONS, application="lagscale-api")
    verdicts = PostgresVerdicts(pool)
    admin_key = None if settings.api_admin_key is None else settings.api_admin_key.get_secret_value()
    if admin_key is None:
        log.info("bootstrap_key_disabled")
    rounds = RoundReader(pool)
    counts = StatusCounter(PostgresRegistrations(pool), rounds, settings.api_group_status_interval_seconds)
    authenticator = build_authenticator(settings, database, admin_key)
    secret_sources = SecretSources(settings.secret_dir, read_tenant_variables())
    probe_runner = ProbeRunner(settings.api_preflight_timeout_seconds, settings.api_max_concurrent_preflights)
    preflights = Preflights(keyring, settings.address_rules, probe_runner, secret_sources)
    tenant_rates = TenantRateLimiter()
    background = _build_background_tasks(
        database, tenant_rates, counts if settings.api_group_status_interval_seconds else None
    )
    on_startup, on_shutdown = _build_lifecycle(database, authenticator, pool, background)
    app = create_app(
        ApiParts(
            database=database,
            authenticator=authenticator,
            tenant_rates=tenant_rates,
            keyring=keyring,
            verdicts=verdicts,
            rounds=rounds,
            preflights=preflights,
            validator=MonitorValidator(preflights, verdicts, settings.tick_seconds),
            tick_seconds=settings.tick_seconds,
            on_startup=on_startup,
            on_shutdown=on_shutdown,
            trusted_proxies=settings.proxies,
            docs=settings.api_docs,
        )
    )
    host, port = split_address(settings.api_listen)
    registration_stop = threading.Event()
    if single:
        start_registration(url, os.environ, registration_stop, tick_seconds=settings.tick_seconds)
    log.info("service_started", listen=settings.api_listen)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # Trusted proxies are our setting; the server by itself would trust loopback addresses.
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
    # The server raises the signal again when all is closed; that is not a failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _handle_signal)
    try:
        server.run()
    finally:
        registration_stop.set()
    return 0 if server.started else 1


def _handle_signal(_number: int, _frame: FrameType | None) -> None:
    log.info("service_stopped")
    sys.exit(0)


BackgroundTask = Callable[[], Coroutine[None, None, None]]


def _build_background_tasks(
    database: RegistryDatabase, tenant_rates: TenantRateLimiter, counts: StatusCounter | None
) -> dict[str, BackgroundTask]:
    """Tasks that run in the server's event loop, by name."""
    tasks_by_name: dict[str, BackgroundTask] = {"tenant-rates": lambda: tenant_rates.run(database)}
    if counts is not None:
        tasks_by_name["state-counts"] = counts.run
    return tasks_by_name


def _build_lifecycle(
    database: RegistryDatabase, authenticator: Authenticator, pool: Pool, background: Mapping[str, BackgroundTask]
) -> tuple[BackgroundTask, BackgroundTask]:
    """What runs when the server starts and when it stops."""
    tasks: list[asyncio.Task[None]] = []

    async def on_startup() -> None:
        # Without waiting: the service starts without the database, and is not ready until it is available.
        await pool.open(wait=False)
        for name, step in background.items():
            tasks.append(asyncio.create_task(step(), name=name))

    async def on_shutdown() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await authenticator.close()
        await pool.close()
        await database.close()

    return on_startup, on_shutdown


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the list of variables as it is."""


def _build_help() -> str:
    lines = ["Serves Lagscale's administration over REST. Settings come from the environment:", ""]
    for name, field in ApiSettings.model_fields.items():
        need = "needed" if field.is_required() else "optional"
        lines.append(f"  LAGSCALE_{name.upper()} ({need})\n      {field.description}")
    return "\n".join(lines)


def _print_errors(error: LagscaleError) -> None:
    field_errors = (
        error.facts.get("field_errors") if isinstance(error, SettingsInvalid) else getattr(error, "field_errors", None)
    )
    for field_error in field_errors if isinstance(field_errors, list) else [error.message]:
        print(f"lagscale-api: {field_error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
