"""`lagscale-scaler`: answers KEDA. Reads the settings and builds the scaler's parts; nothing else does."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import threading
from contextlib import AsyncExitStack

import structlog
import uvloop

from lagscale.errors import SettingsInvalid
from lagscale.settings import SingleMonitorSettings, load
from lagscale.store.connection import open_pool
from lagscale.store.registrations.answers import PostgresDecisions, PostgresFreezes
from lagscale.store.registrations.load import ROLE, PostgresRegistrations, changes
from lagscale.store.verdicts.judge import PostgresVerdicts
from lagscale.telemetry import configure_logging
from services.scaler import deadlines
from services.scaler.grpc.server import grpc_address
from services.scaler.replica import Scaler, ScalerDependencies
from services.scaler.settings import ScalerSettings
from services.single_monitor import start_registration

log = structlog.get_logger("services.scaler")


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    argparse.ArgumentParser(
        prog="lagscale-scaler", description="Answers KEDA over gRPC; all settings come from LAGSCALE_* variables."
    ).parse_args()
    try:
        settings = load(ScalerSettings)
        single = SingleMonitorSettings.parse(os.environ) if SingleMonitorSettings.is_configured(os.environ) else None
        address = resolve_listen_address(settings.scaler_grpc_listen, os.environ.get("GRPC_PORT"))
    except SettingsInvalid as invalid:
        print(f"lagscale-scaler: {invalid.message}", file=sys.stderr)
        return 2
    configure_logging("scaler", settings.log_level, settings.log_format == "json")
    try:
        uvloop.run(serve(settings, address, single is not None))
    except SettingsInvalid as invalid:
        # From the certificate files, which are read when the parts are built.
        print(f"lagscale-scaler: {invalid.message}", file=sys.stderr)
        return 2
    except OSError as error:
        log.error("listen_failed", reason=str(error))
        return 1
    return 0


async def serve(settings: ScalerSettings, address: str, single: bool) -> None:
    """Build the parts, serve until a signal, and shut down in order."""
    url = settings.database_url.get_secret_value()
    # Two more than the calls use: one for the streams, one for registrations and decisions.
    pool = open_pool(url, ROLE, settings.scaler_pool_size + 2, application="lagscale-scaler")
    dependencies = ScalerDependencies(
        verdicts=PostgresVerdicts(pool),
        registrations=PostgresRegistrations(pool),
        decisions=PostgresDecisions(pool),
        freezes=PostgresFreezes(pool),
        notifications=lambda: changes(url),
    )
    scaler = Scaler(dependencies, settings, replica=f"{socket.gethostname()}-{os.getpid()}")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(pool.close, timeout=deadlines.POOL_CLOSE_SECONDS)
        await pool.open(wait=False)
        await scaler.start(address)
        stack.push_async_callback(scaler.stop)
        if single:
            registration_stop = threading.Event()
            stack.callback(registration_stop.set)
            start_registration(url, os.environ, registration_stop, tick_seconds=settings.tick_seconds)
        log.info("service_started", grpc_listen=address, http_listen=settings.scaler_http_listen)
        await stop.wait()
        log.info("service_stopping")
    log.info("service_stopped")


def resolve_listen_address(listen: str, port: str | None) -> str:
    """The gRPC listening address; GRPC_PORT replaces its port.

    Raises:
        SettingsInvalid: GRPC_PORT is not a port.
    """
    if port and not (port.isdecimal() and int(port) <= 65535):
        raise SettingsInvalid("GRPC_PORT: must be a port, as in 50051")
    return grpc_address(listen, port)


if __name__ == "__main__":
    sys.exit(main())
