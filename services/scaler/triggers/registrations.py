"""The registrations in this replica's memory: loaded from the store, or from the local cache after a restart.

Its polls of the version also show whether the store is available.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from lagscale.errors import LagscaleError, StoreUnavailable
from lagscale.store.registrations.load import InlineMonitor, Registrations
from services.scaler import deadlines, metrics
from services.scaler.local_cache import LocalCache
from services.scaler.triggers.directory import MonitorDirectory
from services.scaler.triggers.metadata import TriggerReader

log = structlog.get_logger(__name__)


class Broadcast:
    """A signal without data that many tasks wait for; counts notifications, so that a waiter
    that passes the last sequence number it handled misses none.
    """

    def __init__(self) -> None:
        self.sequence = 0
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters."""
        self.sequence += 1
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, seconds: float, after: int | None = None) -> bool:
        """Wait for a notification after number `after` (None: the next one); False after `seconds` without one."""
        if after is not None and after != self.sequence:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True


class RegistrationStore(Protocol):
    """Reads registrations and creates inline ones; `PostgresRegistrations` is the one in the store.

    Every method raises `StoreUnavailable` if the store does not answer.
    """

    async def version(self) -> int:
        """A number that increases with every change of a registration."""

    async def load(self) -> Registrations:
        """All registrations of all tenants, from one snapshot."""

    async def register(self, monitor: InlineMonitor) -> None:
        """Create the monitor and its targets unless its content exists.

        Raises:
            QuotaExceeded: a quota of the tenant is used up.
            NotFound: the tenant or its cluster no longer exists.
            StoreUnavailable: the tenant's rules have changed.
        """


class RegistrationsCache:
    """Follows the registrations, and whether the store is available."""

    def __init__(self, store: RegistrationStore, reader: TriggerReader, local_cache: LocalCache) -> None:
        self.directory: MonitorDirectory | None = None
        self.store_up = False
        #: Notified when the registrations have changed; `change_hinted` is to be notified when they may have.
        self.changed = Broadcast()
        self.change_hinted = Broadcast()
        #: Called with the database's clock whenever the registrations were loaded.
        self.on_clock: Callable[[int], None] | None = None
        self.on_store_change: Callable[[bool], Awaitable[None]] | None = None
        self._store = store
        self._reader = reader
        self._local_cache = local_cache
        self._loaded = False

    def load_from_disk(self) -> bool:
        """Load the registrations that the last process stored; False without any."""
        cached = self._local_cache.read_registrations()
        if cached is not None:
            self._apply(cached)
            log.info("registrations_loaded_from_cache", version=cached.version, monitors=len(cached.monitors))
        return cached is not None

    async def wait_for_directory(self, deadline: float) -> MonitorDirectory:
        """The registrations; waits for the first ones until the deadline (event loop time).

        Raises:
            StoreUnavailable: none are loaded by then.
        """
        while self.directory is None:
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0 or not await self.changed.wait(left):
                raise StoreUnavailable("Registrations are not loaded yet and the store is unavailable; retry.")
        return self.directory

    def calls_per_second(self, tenant_id: int) -> int | None:
        """A tenant's call quota; None while it is unknown."""
        return None if self.directory is None else self.directory.calls_per_second.get(tenant_id)

    async def run(self) -> None:
        """Follow the store, without end."""
        while True:
            sequence = self.change_hinted.sequence
            await self._poll_store()
            await asyncio.sleep(deadlines.REGISTRATIONS_MIN_INTERVAL_SECONDS)
            await self.change_hinted.wait(deadlines.POLL_SECONDS, sequence)

    async def _poll_store(self) -> None:
        try:
            version = await self._store.version()
            directory = self.directory
            if not self._loaded or directory is None or version != directory.registrations.version:
                registrations = await self._store.load()
                if registrations.now_ms is not None and self.on_clock is not None:
                    self.on_clock(registrations.now_ms)
                self._apply(registrations)
                self._loaded = True
                log.info("registrations_loaded", version=registrations.version, monitors=len(registrations.monitors))
                await asyncio.to_thread(self._local_cache.write_registrations, registrations)
        except LagscaleError as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
            await self._set_store_up(False, error)
        except Exception as error:
            # The loop must go on; a half-migrated schema ends here, too.
            log.exception("registration_load_failed")
            await self._set_store_up(False, error)
        else:
            await self._set_store_up(True)

    async def _set_store_up(self, up: bool, error: Exception | None = None) -> None:
        metrics.STORE_UP.set(up)
        if up == self.store_up:
            return
        if up:
            log.info("store_recovered")
        else:
            log.warning("store_unavailable", reason=type(error).__name__)
        self.store_up = up
        if self.on_store_change is not None:
            await self.on_store_change(up)

    def _apply(self, registrations: Registrations) -> None:
        self.directory = MonitorDirectory(registrations, self._reader)
        metrics.REGISTRATIONS.set(len(registrations.monitors))
        self.changed.notify()
