"""`lagscale-api`: serves the administration. The only place that reads settings and builds the parts."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from types import FrameType

import structlog
import uvicorn
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from lagscale.errors import LagscaleError, SettingsInvalid, StoreUnavailable
from lagscale.kafka.probe.runner import Looks
from lagscale.kafka.secrets import Outside
from lagscale.settings import SingleMonitorSettings, load, split_address, tenant_variables
from lagscale.store.connection import Pool, open_pool
from lagscale.store.encryption import SecretBox
from lagscale.store.registrations.load import ROLE as SCALER_ROLE
from lagscale.store.registrations.load import PostgresRegistrations
from lagscale.store.registry.session import RegistryDatabase
from lagscale.store.registry.single_monitor import ensure_single_monitor, single_monitor
from lagscale.store.samples.read import RecentRounds
from lagscale.store.verdicts.judge import PostgresVerdicts
from lagscale.telemetry import configure_logging
from services.api.app import Parts, create_app
from services.api.auth.access import Access
from services.api.auth.identity import access_by
from services.api.auth.tenant_rates import TenantRates
from services.api.explain.explanation import Explanations
from services.api.group_status.counts import StateCounts
from services.api.group_status.group_status import Conditions
from services.api.operations import Operations
from services.api.preflight.preflight import Preflights
from services.api.settings import ApiSettings
from services.api.validation.validation import Validation
from services.api.verdicts.evidence import Evidence

log = structlog.get_logger(__name__)

_VERDICT_CONNECTIONS = 2
_GRACE_SECONDS = 8


def main() -> int:
    """Serve until SIGTERM or SIGINT; 2 where the settings have faults."""
    argparse.ArgumentParser(prog="lagscale-api", description=_help(), formatter_class=_Formatter).parse_args()
    try:
        settings = load(ApiSettings)
        single = SingleMonitorSettings.wanted(os.environ)
        if single:
            single_monitor(os.environ)
        box = SecretBox(settings.secret_keys.get_secret_value())
    except LagscaleError as wrong:
        _complain(wrong)
        return 2
    configure_logging("api", settings.log_level, settings.log_format == "json")
    url = settings.database_url.get_secret_value()
    database = RegistryDatabase(url, size=settings.api_pool_size, seconds=settings.store_seconds)
    # Verdicts are judged in the scaler's role, by the same statements; `Evidence` says why that is safe.
    pool = open_pool(url, SCALER_ROLE, _VERDICT_CONNECTIONS, application="lagscale-api")
    verdicts = PostgresVerdicts(pool)
    admin_key = None if settings.admin_key is None else settings.admin_key.get_secret_value()
    if admin_key is None:
        log.info("bootstrap_key_off")
    rounds = RecentRounds(pool)
    counts = StateCounts(PostgresRegistrations(pool), rounds, settings.states_seconds)
    access = access_by(settings, database, admin_key)
    operations = Operations(database, box, settings.tick_seconds)
    outside = Outside(settings.secret_directory, tenant_variables())
    looks = Looks(settings.preflight_seconds, settings.preflights_at_once)
    preflights = Preflights(database, box, settings.address_rules, looks, outside)
    rates = TenantRates()
    beside = _beside(database, rates, url if single else None, counts if settings.states_seconds else None)
    opened, closed = _life(database, access, pool, beside)
    app = create_app(
        Parts(
            database=database,
            access=access,
            operations=operations,
            evidence=Evidence(database, verdicts),
            explanations=Explanations(database, verdicts),
            conditions=Conditions(database, rounds),
            preflights=preflights,
            validation=Validation(database, operations, preflights, verdicts),
            rates=rates,
            opened=opened,
            closed=closed,
            trusted_proxies=settings.proxies,
        )
    )
    host, port = split_address(settings.api_listen)
    log.info("api_starts", listen=settings.api_listen)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # Whom to trust is our setting; the server of its own would trust whatever loopback says.
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
    # The server raises the signal that ended it once more, when all is closed; that is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    server.run()
    return 0 if server.started else 1


def _end(_number: int, _frame: FrameType | None) -> None:
    log.info("api_ended")
    sys.exit(0)


Step = Callable[[], Awaitable[None]]


def _beside(
    database: RegistryDatabase, rates: TenantRates, single_url: str | None, counts: StateCounts | None
) -> dict[str, Step]:
    """What runs beside the server, by name; the last two only where they are wanted."""
    running: dict[str, Step] = {"tenant-rates": lambda: rates.run(database)}
    if single_url is not None:
        running["single-monitor"] = lambda: _register_single(single_url)
    if counts is not None:
        running["state-counts"] = counts.run
    return running


def _life(database: RegistryDatabase, access: Access, pool: Pool, beside: Mapping[str, Step]) -> tuple[Step, Step]:
    """What runs when the server opens and when it closes."""
    tasks: list[asyncio.Task[None]] = []

    async def opened() -> None:
        # Without waiting: the service starts while the store is away, and is not ready until it is back.
        await pool.open(wait=False)
        for name, step in beside.items():
            tasks.append(asyncio.create_task(_running(step), name=name))

    async def closed() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await access.close()
        await pool.close()
        await database.close()

    return opened, closed


async def _running(step: Step) -> None:
    await step()


async def _register_single(url: str) -> None:
    """Register the environment's monitor as soon as the store and its schema are there."""

    def told(state: RetryCallState) -> None:
        log.info("single_monitor_waits_for_store", attempt=state.attempt_number)

    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_exponential(multiplier=0.5, max=5),
        before_sleep=told,
    )
    try:
        await retrying(asyncio.to_thread, ensure_single_monitor, url, dict(os.environ))
    except LagscaleError as wrong:
        log.error("single_monitor_refused", text=wrong.message)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the list of variables as it is."""


def _help() -> str:
    lines = ["Serves Lagscale's administration over REST. Settings come from the environment:", ""]
    for name, field in ApiSettings.model_fields.items():
        need = "needed" if field.is_required() else "optional"
        lines.append(f"  LAGSCALE_{name.upper()} ({need})\n      {field.description}")
    return "\n".join(lines)


def _complain(wrong: LagscaleError) -> None:
    faults = wrong.facts.get("faults") if isinstance(wrong, SettingsInvalid) else getattr(wrong, "faults", None)
    for fault in faults if isinstance(faults, list) else [wrong.message]:
        print(f"lagscale-api: {fault}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
