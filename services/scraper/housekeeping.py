"""Drops samples that are too old and tidies the registry, while this scraper leads.

A thread of its own, so that no batch waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from lagscale.store.samples.write import PostgresSamples

log = structlog.get_logger(__name__)

_INTERVAL_SECONDS = 300.0
#: Long enough for a leader to be known.
_START_DELAY_SECONDS = 30.0


class Housekeeping:
    """The timer.

    Args:
        database: a connection of its own.
        hours: how long samples are kept, by the database's clock.
        leading: whether this scraper leads now.
    """

    def __init__(self, database: ScraperDatabase, hours: float, leading: Callable[[], bool]) -> None:
        self._store = PostgresSamples(database)
        self._hours = hours
        self._leading = leading
        self._stop = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a running drop ends by itself."""
        self._stop.set()

    def _run(self) -> None:
        pause = _START_DELAY_SECONDS
        while not self._stop.wait(pause):
            pause = _INTERVAL_SECONDS
            if self._leading():
                self.drop()

    def drop(self) -> None:
        """Drop what is too old, tidy the registry, and say what it was."""
        try:
            if not self._warned and not self._store.is_chunked():
                log.warning("samples_in_plain_table", advice="retention deletes row by row; TimescaleDB drops chunks")
            self._warned = True
            dropped = self._store.drop_older_than(self._hours)
            removed = self._store.remove_unused()
        except LagscaleError as error:
            log.warning("retention_failed", error=error.message)
            return
        if dropped:
            log.info("samples_dropped", older_than_hours=self._hours, dropped=dropped)
        if removed:
            log.info("registry_tidied", removed=removed)
