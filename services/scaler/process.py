"""The scaler's parts as one: what runs beside the calls, how it starts, and how it ends without a failed call.

Built by `__main__.py`, and by tests with stores of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

import structlog

from lagscale.settings import split_address
from lagscale.status_http import StatusServer
from lagscale.store import RegistrationStore, VerdictStore
from services.scaler import metrics
from services.scaler.answers import Answers
from services.scaler.decision import key_of
from services.scaler.known import Known
from services.scaler.last_answers import LastAnswers
from services.scaler.metadata import Reader
from services.scaler.rates import Rates
from services.scaler.recorder import DecisionStore, Recorder
from services.scaler.scratch import ANSWERS, Scratch
from services.scaler.server import Server
from services.scaler.servicer import Servicer
from services.scaler.settings import ScalerSettings
from services.scaler.snapshots import Snapshots
from services.scaler.status import Status
from services.scaler.streams import Ages, Streams

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
        self._streams = Streams(self._snapshots, self._known, ages, settings.call_seconds)
        rates = Rates(self._known.calls_per_second)
        answers = Answers(self._snapshots, parts.registrations, self._last, self._recorder, rates=rates)
        self._servicer = Servicer(reader, self._known, answers, self._streams, settings.call_seconds)
        self._server = Server(self._servicer, ages, reuse_address=settings.reuse_address)
        self._status = Status(
            registered=lambda: self._known.directory is not None, store_up=lambda: self._known.store_up
        )
        self._http = StatusServer(self._status, *split_address(settings.scaler_http_listen))
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, address: str) -> tuple[int, int]:
        """Serve at the address; the ports of gRPC and HTTP.

        Raises:
            OSError: an address is taken.
        """
        self._known.start_from_scratch()
        self._last.restore(self._scratch.read(ANSWERS))
        self._known.on_store = self._server.tell_store
        metrics.HELD_SHARE.set_function(self._recorder.held_share)
        await self._server.tell_store(False)
        port = await self._server.start(address)
        self._status.listening = True
        self._http.start()
        for work in (self._known.run, self._streams.run, self._recorder.run, self._listen, self._beat, self._keep):
            self._tasks.append(asyncio.create_task(self._forever(work), name=work.__name__))
        return port, self._http.port

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
        await asyncio.to_thread(self._scratch.write, ANSWERS, self._last.dump())
        self._http.stop()

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
            await asyncio.sleep(max(1.0, took / _WRITING_SHARE))
