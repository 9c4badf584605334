"""The scaler's parts as one: what runs beside the calls, how it starts, and how it ends without a failed call.

Built by `__main__.py`, and by tests with stores of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from lagscale.domain.verdict.freezes import select_active
from lagscale.health_http import HealthServer
from lagscale.settings import split_address
from lagscale.store.records import RegistrationStore, VerdictStore
from services.scaler import metrics
from services.scaler.answers.answer import AnswerService
from services.scaler.answers.decision_log import DecisionLog, DecisionStore
from services.scaler.answers.frozen import FreezeStore, FrozenAnswerCache
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.rate_limit import CallRateLimiter
from services.scaler.answers.snapshots import SnapshotCache
from services.scaler.grpc.callers import identify_by_certificate, identify_by_required_certificate, identify_default
from services.scaler.grpc.server import GrpcServer, Listener, grpc_address
from services.scaler.grpc.servicer import Servicer
from services.scaler.grpc.streams import ConnectionAges, Streams
from services.scaler.grpc.tls import CertificateFiles, CertificateReloader
from services.scaler.health import ScalerHealth
from services.scaler.local_cache import ANSWERS, FROZEN, LocalCache
from services.scaler.settings import ScalerSettings
from services.scaler.triggers.directory import compute_monitor_key
from services.scaler.triggers.metadata import TriggerReader
from services.scaler.triggers.registrations import RegistrationsCache

log = structlog.get_logger(__name__)

_HEARTBEAT_SECONDS: Final = 1.0
#: Writing the answers to scratch may take this share of the time.
_WRITING_SHARE: Final = 0.05
_FLUSH_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 0.2
_QUIET_WITHIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class ScalerDependencies:
    """What the scaler stands on. `hints` yields channels as they are notified, for ever."""

    verdicts: VerdictStore
    registrations: RegistrationStore
    decisions: DecisionStore
    freezes: FreezeStore
    hints: Callable[[], AsyncIterator[str]]


class Scaler:
    """One replica."""

    def __init__(self, dependencies: ScalerDependencies, settings: ScalerSettings, replica: str) -> None:
        self._settings = settings
        self._hints = dependencies.hints
        self._local_cache = LocalCache(settings.cache_dir / "scaler")
        self._last = LastKnownAnswers()
        reader = TriggerReader(
            settings.tick_seconds, lambda hit: metrics.MEMO.labels("metadata", "hit" if hit else "miss").inc()
        )
        self._registrations = RegistrationsCache(dependencies.registrations, reader, self._local_cache)
        self._decision_log = DecisionLog(dependencies.decisions, replica, self._last.clock.now_ms)
        self._snapshots = SnapshotCache(
            dependencies.verdicts,
            slots=settings.scaler_pool_size,
            seconds=settings.scaler_snapshot_ttl_seconds,
            on_judgment=lambda request, judgment: self._last.note(
                compute_monitor_key(request), judgment, request.policy
            ),
        )
        ages = ConnectionAges(
            settings.scaler_max_connection_age_seconds, settings.scaler_max_connection_age_grace_seconds
        )
        self._frozen = FrozenAnswerCache(dependencies.freezes, dependencies.verdicts, self._last)
        call_seconds = settings.scaler_call_timeout_seconds
        self._streams = Streams(
            self._snapshots, self._registrations, ages, call_seconds, frozen=self._frozen.select_active
        )
        answers = AnswerService(
            self._snapshots,
            dependencies.registrations,
            self._last,
            self._decision_log,
            self._frozen,
            call_limiter=CallRateLimiter(self._registrations.calls_per_second),
        )
        callers = identify_by_certificate if settings.requires_client_certificates else identify_default
        if settings.scaler_grpc_security == "mtls":
            callers = identify_by_required_certificate
        self._servicer = Servicer(reader, self._registrations, answers, self._streams, call_seconds, callers=callers)
        self._certificates = _build_reloader(settings)
        self._server = GrpcServer(self._servicer, ages, reuse_address=settings.scaler_reuse_port)
        self._health = ScalerHealth(
            registered=lambda: self._registrations.directory is not None, store_up=lambda: self._registrations.store_up
        )
        self._http = HealthServer(self._health, *split_address(settings.scaler_http_listen))
        #: Of gRPC, in the order of the addresses.
        self.ports: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, address: str) -> tuple[int, int]:
        """Serve at the address, and at the second one if there is one; the ports of gRPC and HTTP.

        Raises:
            OSError: an address is taken.
        """
        self._registrations.load_from_disk()
        self._last.restore(self._local_cache.read(ANSWERS))
        self._frozen.restore(self._local_cache.read(FROZEN))
        self._registrations.on_clock = self._last.clock.note
        metrics.FROZEN.set_function(self._frozen_monitors)
        self._registrations.on_store_change = self._server.set_serving
        metrics.HELD_SHARE.set_function(self._decision_log.compute_held_share)
        await self._server.set_serving(False)
        self.ports = await self._server.start(self._listeners(address))
        self._health.listening = True
        self._http.start()
        loops = [
            self._registrations.run,
            self._streams.run,
            self._decision_log.run,
            self._listen,
            self._record_heartbeats,
            self._save_answers,
        ]
        if self._certificates is not None:
            loops.append(self._certificates.run)
        for loop in loops:
            self._tasks.append(asyncio.create_task(self._restart_forever(loop), name=loop.__name__))
        return self.ports[0], self._http.port

    async def stop(self) -> None:
        """Not ready at once; then serve on until nobody calls here any more; then end the calls that run."""
        self._health.draining = True
        await self._server.drain()
        await asyncio.sleep(self._settings.scaler_drain_seconds)
        await self._wait_for_quiet()
        # Not before: KEDA comes back at once after a clean end, and so far it may still come here.
        self._streams.end()
        await self._server.stop(self._settings.scaler_call_timeout_seconds + 1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._decision_log.flush()
        except TimeoutError:
            log.info("decisions_not_flushed")
        await self._snapshots.close()
        await self._frozen.close()
        await asyncio.to_thread(self._local_cache.write, FROZEN, self._frozen.dump())
        await asyncio.to_thread(self._local_cache.write, ANSWERS, self._last.dump())
        self._http.stop()

    def _frozen_monitors(self) -> float:
        """How many monitors are under a freeze that has not ended; asked by the metrics' thread."""
        directory, now_ms = self._registrations.directory, self._last.clock.now_ms()
        if directory is None or not directory.freezes:
            return 0.0
        every = directory.registrations.monitors
        under = (directory.freezes.of(one.tenant_id, one.cluster, one.monitor_id) for one in every)
        return float(sum(bool(select_active(freezes, now_ms)) for freezes in under))

    def _listeners(self, address: str) -> list[Listener]:
        security, second = self._settings.scaler_grpc_security, self._settings.scaler_mtls_listen
        certificates = self._certificates
        if certificates is None:
            return [Listener(address)]
        first = (
            None if security == "plain" else certificates.credentials(requires_client_certificate=security == "mtls")
        )
        listeners = [Listener(address, first)]
        if second is not None:
            listeners.append(Listener(grpc_address(second), certificates.credentials(requires_client_certificate=True)))
        return listeners

    async def _wait_for_quiet(self) -> None:
        """Wait for a moment between two bursts of calls: the library drops what arrives while it says goodbye."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _QUIET_WITHIN_SECONDS
        while True:
            left = self._servicer.called_at + _QUIET_SECONDS - loop.time()
            if left <= 0 or loop.time() >= latest:
                return
            await asyncio.sleep(left)

    async def _restart_forever(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A part that fails is a defect; it is told, and the part goes on."""
        while True:
            try:
                await run()
            except Exception:
                log.exception("background_failed", work=run.__name__)
                await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def _listen(self) -> None:
        """Hints are only hints: every channel wakes those who look for the truth."""
        async for channel in self._hints():
            if channel != "lagscale_samples":
                self._registrations.change_hinted.notify()
            if channel != "lagscale_registry":
                self._streams.samples.notify()

    async def _record_heartbeats(self) -> None:
        while True:
            self._health.record_heartbeat()
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def _save_answers(self) -> None:
        """Keep the last answers on scratch, at most every second, and less often the longer it takes."""
        loop = asyncio.get_running_loop()
        while True:
            took = 0.0
            if self._last.dirty:
                began = loop.time()
                await asyncio.to_thread(self._local_cache.write, ANSWERS, self._last.dump())
                took = loop.time() - began
            if self._frozen.dirty:
                directory = self._registrations.directory
                self._frozen.retain(() if directory is None else directory.registrations.freezes)
                await asyncio.to_thread(self._local_cache.write, FROZEN, self._frozen.dump())
            await asyncio.sleep(max(1.0, took / _WRITING_SHARE))


def _build_reloader(settings: ScalerSettings) -> CertificateReloader | None:
    if settings.scaler_tls_certificate_file is None or settings.scaler_tls_key_file is None:
        return None
    return CertificateReloader(
        CertificateFiles(
            settings.scaler_tls_certificate_file, settings.scaler_tls_key_file, settings.scaler_tls_client_ca_file
        )
    )
