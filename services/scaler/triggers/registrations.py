"""The registrations in this replica's memory: from the store while it answers, from scratch after a restart.

Also the pulse of the store: each look at the version tells whether it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from lagscale.errors import LagscaleError, StoreUnavailable
from lagscale.store.records import Registrations, RegistrationStore
from services.scaler import metrics
from services.scaler.broadcast import Pulse
from services.scaler.local_cache import Scratch
from services.scaler.triggers.directory import Directory
from services.scaler.triggers.metadata import Reader

log = structlog.get_logger(__name__)

#: The truth is polled this often; notifications only make it sooner.
_POLL_SECONDS: Final = 1.5
#: Two looks at the store are at least this far apart, however many changes are notified.
_LEAST_SECONDS: Final = 0.1


class Known:
    """What is registered, and whether the store answers."""

    def __init__(self, store: RegistrationStore, reader: Reader, scratch: Scratch) -> None:
        self.directory: Directory | None = None
        self.store_up = False
        #: Beats when the registrations changed; `noticed` is beaten by whoever hears that they may have.
        self.changed = Pulse()
        self.noticed = Pulse()
        #: Hears the database's clock whenever the registrations were read.
        self.on_clock: Callable[[int], None] = _unheard
        self.on_store: Callable[[bool], Awaitable[None]] = _nobody
        self._store = store
        self._reader = reader
        self._scratch = scratch
        self._fresh = False

    def start_from_scratch(self) -> bool:
        """Take the registrations that the last process kept; whether there were any."""
        kept = self._scratch.read_registrations()
        if kept is not None:
            self._take(kept)
            log.info("registrations_from_scratch", version=kept.version, monitors=len(kept.monitors))
        return kept is not None

    async def present(self, deadline: float) -> Directory:
        """The registrations, awaited until the deadline (of the event loop's clock) where none are known yet.

        Raises:
            StoreUnavailable: none are known, and the store does not answer.
        """
        while self.directory is None:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or not await self.changed.wait(left):
                raise StoreUnavailable("The registrations are not known yet, and the store does not answer; retry.")
        return self.directory

    def calls_per_second(self, tenant_id: int) -> int | None:
        """A tenant's quota of calls; None while it is not known."""
        return None if self.directory is None else self.directory.calls_per_second.get(tenant_id)

    async def run(self) -> None:
        """Follow the store, for ever."""
        while True:
            seen = self.noticed.beats
            await self._look()
            await asyncio.sleep(_LEAST_SECONDS)
            await self.noticed.wait(_POLL_SECONDS, seen)

    async def _look(self) -> None:
        try:
            version = await self._store.version()
            present = self.directory
            if not self._fresh or present is None or version != present.registrations.version:
                registrations = await self._store.load()
                if registrations.now_ms is not None:
                    self.on_clock(registrations.now_ms)
                self._take(registrations)
                self._fresh = True
                log.info("registrations_loaded", version=registrations.version, monitors=len(registrations.monitors))
                await asyncio.to_thread(self._scratch.write_registrations, registrations)
        except LagscaleError as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            await self._tell_store(False, error)
        except Exception as error:
            # The loop must go on; this is also what a half-migrated schema looks like.
            log.exception("registrations_not_loaded")
            await self._tell_store(False, error)
        else:
            await self._tell_store(True)

    async def _tell_store(self, up: bool, error: Exception | None = None) -> None:
        metrics.STORE_UP.set(up)
        if up == self.store_up:
            return
        if up:
            log.info("store_answers")
        else:
            log.warning("store_silent", error=type(error).__name__)
        self.store_up = up
        await self.on_store(up)

    def _take(self, registrations: Registrations) -> None:
        self.directory = Directory(registrations, self._reader)
        metrics.REGISTRATIONS.set(len(registrations.monitors))
        self.changed.beat()


def _unheard(_now_ms: int) -> None:
    """Until somebody wants to hear of the clock."""


async def _nobody(_up: bool) -> None:
    """Until somebody wants to hear of the store."""
