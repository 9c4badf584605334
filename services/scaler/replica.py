"""One replica: connects the scaler's parts, runs its background tasks, and stops without failing a call.

Built by `__main__.py`, and by tests with their own stores.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from lagscale.domain.verdict.freezes import select_active
from lagscale.health_http import HealthServer
from lagscale.settings import split_address
from services.scaler import deadlines, metrics
from services.scaler.answers.answer import AnswerService, CallRateLimiter
from services.scaler.answers.decision_log import DecisionLog, DecisionStore
from services.scaler.answers.frozen import FreezeStore, FrozenAnswerCache
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.snapshots import SnapshotCache, VerdictSource
from services.scaler.grpc.server import GrpcServer, Listener, grpc_address
from services.scaler.grpc.servicer import Servicer
from services.scaler.grpc.streams import ConnectionAges, Streams
from services.scaler.grpc.tls import (
    CallerIdentifier,
    CertificateFiles,
    CertificateReloader,
    identify_by_certificate,
    identify_by_required_certificate,
    identify_default,
)
from services.scaler.local_cache import ANSWERS, FROZEN, LocalCache
from services.scaler.settings import ScalerSettings
from services.scaler.triggers.directory import compute_monitor_key
from services.scaler.triggers.metadata import TriggerReader
from services.scaler.triggers.registrations import RegistrationsCache, RegistrationStore

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ScalerDependencies:
    """The stores of a replica. `notifications` yields the database's channels as they are notified, without end."""

    verdicts: VerdictSource
    registrations: RegistrationStore
    decisions: DecisionStore
    freezes: FreezeStore
    notifications: Callable[[], AsyncIterator[str]]


class Scaler:
    """One replica, and its health checks, which another thread calls; none of them blocks."""

    def __init__(self, dependencies: ScalerDependencies, settings: ScalerSettings, replica: str) -> None:
        self._settings = settings
        self._notifications = dependencies.notifications
        self._local_cache = LocalCache(settings.cache_dir / "scaler")
        self._last = LastKnownAnswers()
        reader = TriggerReader(
            settings.tick_seconds, lambda hit: metrics.CACHE_LOOKUPS.labels("metadata", "hit" if hit else "miss").inc()
        )
        self._registrations = RegistrationsCache(dependencies.registrations, reader, self._local_cache)
        self._decision_log = DecisionLog(dependencies.decisions, replica, self._last.clock.now_ms)
        self._snapshots = SnapshotCache(
            dependencies.verdicts,
            slots=settings.scaler_pool_size,
            seconds=settings.scaler_snapshot_ttl_seconds,
            on_judgment=lambda request, made: self._last.note(compute_monitor_key(request), made, request.policy),
        )
        ages = ConnectionAges(
            settings.scaler_max_connection_age_seconds, settings.scaler_max_connection_age_grace_seconds
        )
        self._frozen = FrozenAnswerCache(dependencies.freezes, dependencies.verdicts, self._last)
        seconds = settings.scaler_call_timeout_seconds
        self._streams = Streams(
            self._snapshots, self._registrations, ages, seconds, is_frozen=self._frozen.select_active
        )
        limiter = CallRateLimiter(self._registrations.calls_per_second)
        parts = self._snapshots, dependencies.registrations, self._last, self._decision_log, self._frozen
        answers = AnswerService(*parts, call_limiter=limiter)
        served = reader, self._registrations, answers, self._streams, seconds
        self._servicer = Servicer(*served, call_limiter=limiter, identify_caller=_select_identifier(settings))
        self._certificates = _build_reloader(settings)
        self._server = GrpcServer(self._servicer, ages, reuse_address=settings.scaler_reuse_port)
        self._listening = self._draining = False
        self._heartbeat_at = time.monotonic()
        self._http = HealthServer(self, *split_address(settings.scaler_http_listen))
        #: Ports of gRPC, in the order of the addresses.
        self.ports: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

    def live(self) -> dict[str, bool]:
        """Whether the event loop runs."""
        return {"event_loop": time.monotonic() - self._heartbeat_at < deadlines.ALIVE_SECONDS}

    def ready(self) -> dict[str, bool]:
        """Whether calls are answered here, regardless of the store: an empty Service would break GetMetricSpec."""
        return {
            "listening": self._listening,
            "registrations_loaded": self._registrations.directory is not None,
            "not_draining": not self._draining,
        }

    def healthy(self) -> dict[str, bool]:
        """All checks, the store included."""
        return {**self.live(), **self.ready(), "store": self._registrations.store_up}

    async def start(self, address: str) -> tuple[int, int]:
        """Serve at the address, and at the second one if it is set; returns the gRPC port and the HTTP port.

        Raises:
            OSError: an address is in use.
        """
        self._registrations.load_from_disk()
        self._last.restore(self._local_cache.read(ANSWERS))
        self._frozen.restore(self._local_cache.read(FROZEN))
        self._registrations.on_clock = self._last.clock.note
        metrics.FROZEN.set_function(self._frozen_monitors)
        self._registrations.on_store_change = self._server.set_serving
        metrics.LAST_KNOWN_RATIO.set_function(self._decision_log.compute_last_known_ratio)
        await self._server.set_serving(False)
        self.ports = await self._server.start(self._listeners(address))
        self._listening = True
        self._http.start()
        loops = [self._registrations.run, self._streams.run, self._decision_log.run, self._listen]
        loops += [self._record_heartbeats, self._save_answers]
        if self._certificates is not None:
            loops.append(self._certificates.run)
        for loop in loops:
            self._tasks.append(asyncio.create_task(self._restart_forever(loop), name=loop.__name__))
        return self.ports[0], self._http.port

    async def stop(self) -> None:
        """Become not ready at once, serve until callers have moved away, then end the running calls."""
        self._draining = True
        await self._server.drain()
        await asyncio.sleep(self._settings.scaler_drain_seconds)
        await self._wait_for_quiet()
        # Not earlier: KEDA reconnects at once after a clean end, and until now it might have reconnected here.
        self._streams.end()
        await self._server.stop(self._settings.scaler_call_timeout_seconds + deadlines.STOP_GRACE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(deadlines.FLUSH_TIMEOUT_SECONDS):
                await self._decision_log.flush()
        except TimeoutError:
            log.info("decision_flush_timed_out")
        await self._snapshots.close()
        await self._frozen.close()
        await asyncio.to_thread(self._local_cache.write, FROZEN, self._frozen.dump())
        await asyncio.to_thread(self._local_cache.write, ANSWERS, self._last.dump())
        self._http.stop()

    def _frozen_monitors(self) -> float:
        """How many monitors have an active freeze; called by the thread of the metrics endpoint."""
        directory, now_ms = self._registrations.directory, self._last.clock.now_ms()
        if directory is None or not directory.freezes:
            return 0.0
        freezes = (
            directory.freezes.of(monitor.tenant_id, monitor.cluster, monitor.monitor_id)
            for monitor in directory.registrations.monitors
        )
        return float(sum(bool(select_active(of_monitor, now_ms)) for of_monitor in freezes))

    def _listeners(self, address: str) -> list[Listener]:
        security, second = self._settings.scaler_grpc_security, self._settings.scaler_mtls_listen
        certificates = self._certificates
        if certificates is None:
            return [Listener(address)]
        listeners = [Listener(address, None if security == "plain" else certificates.credentials(security == "mtls"))]
        if second is not None:
            listeners.append(Listener(grpc_address(second), certificates.credentials(True)))
        return listeners

    async def _wait_for_quiet(self) -> None:
        """Wait for a pause between two bursts of calls: gRPC drops calls that arrive while it closes connections."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + deadlines.QUIET_TIMEOUT_SECONDS
        while True:
            left = self._servicer.called_at + deadlines.QUIET_SECONDS - loop.time()
            if left <= 0 or loop.time() >= latest:
                return
            await asyncio.sleep(left)

    async def _restart_forever(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A task that fails is a defect: it is logged and restarted."""
        while True:
            try:
                await run()
            except Exception:
                log.exception("background_task_failed", task=run.__name__)
                await asyncio.sleep(deadlines.HEARTBEAT_SECONDS)

    async def _listen(self) -> None:
        """Notifications carry no data: each channel only makes the next poll sooner."""
        async for channel in self._notifications():
            if channel != "lagscale_samples":
                self._registrations.change_hinted.notify()
            if channel != "lagscale_registry":
                self._streams.samples.notify()

    async def _record_heartbeats(self) -> None:
        while True:
            self._heartbeat_at = time.monotonic()
            await asyncio.sleep(deadlines.HEARTBEAT_SECONDS)

    async def _save_answers(self) -> None:
        """Write the last answers to the local cache, at most every second, and less often the longer writing takes."""
        loop = asyncio.get_running_loop()
        while True:
            took = 0.0
            if self._last.dirty:
                started = loop.time()
                await asyncio.to_thread(self._local_cache.write, ANSWERS, self._last.dump())
                took = loop.time() - started
            if self._frozen.dirty:
                directory = self._registrations.directory
                self._frozen.retain(() if directory is None else directory.registrations.freezes)
                await asyncio.to_thread(self._local_cache.write, FROZEN, self._frozen.dump())
            await asyncio.sleep(max(deadlines.CACHE_WRITE_SECONDS, took / deadlines.CACHE_WRITE_SHARE))


def _select_identifier(settings: ScalerSettings) -> CallerIdentifier:
    if settings.scaler_grpc_security == "mtls":
        return identify_by_required_certificate
    return identify_by_certificate if settings.requires_client_certificates else identify_default


def _build_reloader(settings: ScalerSettings) -> CertificateReloader | None:
    certificate, key = settings.scaler_tls_certificate_file, settings.scaler_tls_key_file
    if certificate is None or key is None:
        return None
    return CertificateReloader(CertificateFiles(certificate, key, settings.scaler_tls_client_ca_file))
