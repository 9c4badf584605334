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
from services.scaler.broadcast import Broadcast
from services.scaler.local_cache import LocalCache
from services.scaler.triggers.directory import MonitorDirectory
from services.scaler.triggers.metadata import TriggerReader

log = structlog.get_logger(__name__)

#: The truth is polled this often; notifications only make it sooner.
_POLL_SECONDS: Final = 1.5
#: Two looks at the store are at least this far apart, however many changes are notified.
_MIN_INTERVAL_SECONDS: Final = 0.1


class RegistrationsCache:
    """What is registered, and whether the store answers."""

    def __init__(self, store: RegistrationStore, reader: TriggerReader, local_cache: LocalCache) -> None:
        self.directory: MonitorDirectory | None = None
        self.store_up = False
        #: Beats when the registrations changed; `change_hinted` is beaten by whoever hears that they may have.
        self.changed = Broadcast()
        self.change_hinted = Broadcast()
        #: Hears the database's clock whenever the registrations were read.
        self.on_clock: Callable[[int], None] = _ignore_clock
        self.on_store_change: Callable[[bool], Awaitable[None]] = _ignore_store_change
        self._store = store
        self._reader = reader
        self._local_cache = local_cache
        self._loaded = False

    def load_from_disk(self) -> bool:
        """Take the registrations that the last process kept; whether there were any."""
        cached = self._local_cache.read_registrations()
        if cached is not None:
            self._apply(cached)
            log.info("registrations_from_scratch", version=cached.version, monitors=len(cached.monitors))
        return cached is not None

    async def wait_for_directory(self, deadline: float) -> MonitorDirectory:
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
            sequence = self.change_hinted.sequence
            await self._poll_store()
            await asyncio.sleep(_MIN_INTERVAL_SECONDS)
            await self.change_hinted.wait(_POLL_SECONDS, sequence)

    async def _poll_store(self) -> None:
        try:
            version = await self._store.version()
            directory = self.directory
            if not self._loaded or directory is None or version != directory.registrations.version:
                registrations = await self._store.load()
                if registrations.now_ms is not None:
                    self.on_clock(registrations.now_ms)
                self._apply(registrations)
                self._loaded = True
                log.info("registrations_loaded", version=registrations.version, monitors=len(registrations.monitors))
                await asyncio.to_thread(self._local_cache.write_registrations, registrations)
        except LagscaleError as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            await self._set_store_up(False, error)
        except Exception as error:
            # The loop must go on; this is also what a half-migrated schema looks like.
            log.exception("registrations_not_loaded")
            await self._set_store_up(False, error)
        else:
            await self._set_store_up(True)

    async def _set_store_up(self, up: bool, error: Exception | None = None) -> None:
        metrics.STORE_UP.set(up)
        if up == self.store_up:
            return
        if up:
            log.info("store_answers")
        else:
            log.warning("store_silent", error=type(error).__name__)
        self.store_up = up
        await self.on_store_change(up)

    def _apply(self, registrations: Registrations) -> None:
        self.directory = MonitorDirectory(registrations, self._reader)
        metrics.REGISTRATIONS.set(len(registrations.monitors))
        self.changed.notify()


def _ignore_clock(_now_ms: int) -> None:
    """Until somebody wants to hear of the clock."""


async def _ignore_store_change(_up: bool) -> None:
    """Until somebody wants to hear of the store."""
