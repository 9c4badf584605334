"""The scaler's parts as one: what runs beside the calls, how it starts, and how it ends without a failed call.

Built by `__main__.py`, and by tests with stores of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from lagscale.domain.verdict.freezes import in_force
from lagscale.health_http import StatusServer
from lagscale.settings import split_address
from lagscale.store.records import RegistrationStore, VerdictStore
from services.scaler import metrics
from services.scaler.answers.answer import Answers
from services.scaler.answers.decision_log import DecisionStore, Recorder
from services.scaler.answers.frozen import FreezeStore, FrozenAnswers
from services.scaler.answers.last_known import LastAnswers
from services.scaler.answers.rate_limit import Rates
from services.scaler.answers.snapshots import Snapshots
from services.scaler.grpc.callers import by_certificate, by_required_certificate, without_certificates
from services.scaler.grpc.server import Listener, Server, grpc_address
from services.scaler.grpc.servicer import Servicer
from services.scaler.grpc.streams import Ages, Streams
from services.scaler.grpc.tls import Certificates, Files
from services.scaler.health import Status
from services.scaler.local_cache import ANSWERS, FROZEN, Scratch
from services.scaler.settings import ScalerSettings
from services.scaler.triggers.directory import key_of
from services.scaler.triggers.metadata import Reader
from services.scaler.triggers.registrations import Known

log = structlog.get_logger(__name__)

_BEAT_SECONDS: Final = 1.0
#: Writing the answers to scratch may take this share of the time.
_WRITING_SHARE: Final = 0.05
_FLUSH_SECONDS: Final = 1.0
_QUIET_SECONDS: Final = 0.2
_QUIET_WITHIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What the scaler stands on. `hints` yields channels as they are notified, for ever."""

    verdicts: VerdictStore
    registrations: RegistrationStore
    decisions: DecisionStore
    freezes: FreezeStore
    hints: Callable[[], AsyncIterator[str]]


class Scaler:
    """One replica."""

    def __init__(self, parts: Parts, settings: ScalerSettings, replica: str) -> None:
        self._settings = settings
        self._hints = parts.hints
        self._scratch = Scratch(settings.scratch_dir / "scaler")
        self._last = LastAnswers()
        reader = Reader(
            settings.tick_seconds, lambda hit: metrics.MEMO.labels("metadata", "hit" if hit else "miss").inc()
        )
        self._known = Known(parts.registrations, reader, self._scratch)
        self._recorder = Recorder(parts.decisions, replica, self._last.clock.now_ms)
        self._snapshots = Snapshots(
            parts.verdicts,
            slots=settings.scaler_pool_size,
            seconds=settings.memo_seconds,
            on_reading=lambda ask, judgement: self._last.note(key_of(ask), judgement, ask.policy),
        )
        ages = Ages(settings.connection_age_seconds, settings.connection_grace_seconds)
        self._frozen = FrozenAnswers(parts.freezes, parts.verdicts, self._last)
        self._streams = Streams(self._snapshots, self._known, ages, settings.call_seconds, frozen=self._frozen.in_force)
        answers = Answers(
            self._snapshots,
            parts.registrations,
            self._last,
            self._recorder,
            self._frozen,
            rates=Rates(self._known.calls_per_second),
        )
        callers = by_certificate if settings.asks_for_certificates else without_certificates
        if settings.scaler_grpc_security == "mtls":
            callers = by_required_certificate
        self._servicer = Servicer(reader, self._known, answers, self._streams, settings.call_seconds, callers=callers)
        self._certificates = _certificates(settings)
        self._server = Server(self._servicer, ages, reuse_address=settings.reuse_address)
        self._status = Status(
            registered=lambda: self._known.directory is not None, store_up=lambda: self._known.store_up
        )
        self._http = StatusServer(self._status, *split_address(settings.scaler_http_listen))
        #: Of gRPC, in the order of the addresses.
        self.ports: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, address: str) -> tuple[int, int]:
        """Serve at the address, and at the second one if there is one; the ports of gRPC and HTTP.

        Raises:
            OSError: an address is taken.
        """
        self._known.start_from_scratch()
        self._last.restore(self._scratch.read(ANSWERS))
        self._frozen.restore(self._scratch.read(FROZEN))
        self._known.on_clock = self._last.clock.note
        metrics.FROZEN.set_function(self._frozen_monitors)
        self._known.on_store = self._server.tell_store
        metrics.HELD_SHARE.set_function(self._recorder.held_share)
        await self._server.tell_store(False)
        self.ports = await self._server.start(self._listeners(address))
        self._status.listening = True
        self._http.start()
        works = [self._known.run, self._streams.run, self._recorder.run, self._listen, self._beat, self._keep]
        if self._certificates is not None:
            works.append(self._certificates.run)
        for work in works:
            self._tasks.append(asyncio.create_task(self._forever(work), name=work.__name__))
        return self.ports[0], self._http.port

    async def stop(self) -> None:
        """Not ready at once; then serve on until nobody calls here any more; then end the calls that run."""
        self._status.draining = True
        await self._server.drain()
        await asyncio.sleep(self._settings.drain_seconds)
        await self._quiet()
        # Not before: KEDA comes back at once after a clean end, and so far it may still come here.
        self._streams.end()
        await self._server.stop(self._settings.call_seconds + 1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self._recorder.flush()
        except TimeoutError:
            log.info("decisions_not_flushed")
        await self._snapshots.close()
        await self._frozen.close()
        await asyncio.to_thread(self._scratch.write, FROZEN, self._frozen.dump())
        await asyncio.to_thread(self._scratch.write, ANSWERS, self._last.dump())
        self._http.stop()

    def _frozen_monitors(self) -> float:
        """How many monitors are under a freeze that has not ended; asked by the metrics' thread."""
        directory, now_ms = self._known.directory, self._last.clock.now_ms()
        if directory is None or not directory.freezes:
            return 0.0
        every = directory.registrations.monitors
        under = (directory.freezes.of(one.tenant_id, one.cluster, one.monitor_id) for one in every)
        return float(sum(bool(in_force(freezes, now_ms)) for freezes in under))

    def _listeners(self, address: str) -> list[Listener]:
        security, second = self._settings.scaler_grpc_security, self._settings.scaler_mtls_listen
        certificates = self._certificates
        if certificates is None:
            return [Listener(address)]
        first = None if security == "plain" else certificates.credentials(asks_clients=security == "mtls")
        listeners = [Listener(address, first)]
        if second is not None:
            listeners.append(Listener(grpc_address(second), certificates.credentials(asks_clients=True)))
        return listeners

    async def _quiet(self) -> None:
        """Wait for a moment between two bursts of calls: the library drops what arrives while it says goodbye."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + _QUIET_WITHIN_SECONDS
        while True:
            left = self._servicer.called_at + _QUIET_SECONDS - loop.time()
            if left <= 0 or loop.time() >= latest:
                return
            await asyncio.sleep(left)

    async def _forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A part that fails is a defect; it is told, and the part goes on."""
        while True:
            try:
                await work()
            except Exception:
                log.exception("background_failed", work=work.__name__)
                await asyncio.sleep(_BEAT_SECONDS)

    async def _listen(self) -> None:
        """Hints are only hints: every channel wakes those who look for the truth."""
        async for channel in self._hints():
            if channel != "lagscale_samples":
                self._known.noticed.beat()
            if channel != "lagscale_registry":
                self._streams.samples.beat()

    async def _beat(self) -> None:
        while True:
            self._status.beat()
            await asyncio.sleep(_BEAT_SECONDS)

    async def _keep(self) -> None:
        """Keep the last answers on scratch, at most every second, and less often the longer it takes."""
        loop = asyncio.get_running_loop()
        while True:
            took = 0.0
            if self._last.dirty:
                began = loop.time()
                await asyncio.to_thread(self._scratch.write, ANSWERS, self._last.dump())
                took = loop.time() - began
            if self._frozen.dirty:
                directory = self._known.directory
                self._frozen.forget_but(() if directory is None else directory.registrations.freezes)
                await asyncio.to_thread(self._scratch.write, FROZEN, self._frozen.dump())
            await asyncio.sleep(max(1.0, took / _WRITING_SHARE))


def _certificates(settings: ScalerSettings) -> Certificates | None:
    if settings.scaler_tls_certificate_file is None or settings.scaler_tls_key_file is None:
        return None
    return Certificates(
        Files(settings.scaler_tls_certificate_file, settings.scaler_tls_key_file, settings.scaler_tls_client_ca_file)
    )
