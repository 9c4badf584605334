"""Housekeeping: drops old samples and cleans up the registry, while this scraper leads.

Runs in a thread of its own, so that no batch waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from lagscale.errors import LagscaleError
from lagscale.store.connection import ScraperDatabase
from lagscale.store.samples.write import PostgresSamples
from services.scraper import deadlines

log = structlog.get_logger(__name__)


class Housekeeping(threading.Thread):
    """Runs at an interval, with a connection of its own; retention is `hours` by the database's clock."""

    def __init__(self, database: ScraperDatabase, hours: float, leading: Callable[[], bool]) -> None:
        super().__init__(name="housekeeping", daemon=True)
        self._store = PostgresSamples(database)
        self._hours = hours
        self._leading = leading
        self._stop_asked = threading.Event()
        self._warned = False

    def stop(self) -> None:
        """Stop after the current pass."""
        self._stop_asked.set()

    def run(self) -> None:
        """Run a pass at each interval, until `stop`."""
        pause = deadlines.HOUSEKEEPING_DELAY_SECONDS
        while not self._stop_asked.wait(pause):
            pause = deadlines.HOUSEKEEPING_INTERVAL_SECONDS
            if self._leading():
                self.drop()

    def drop(self) -> None:
        """Drop old samples, clean up the registry, and log what was removed."""
        try:
            if not self._warned and not self._store.is_chunked():
                log.warning(
                    "samples_table_not_hypertable", hint="retention deletes rows; install TimescaleDB to drop chunks"
                )
            self._warned = True
            dropped = self._store.drop_older_than(self._hours)
            removed = self._store.remove_unused()
        except LagscaleError as error:
            log.warning("housekeeping_failed", reason=error.message)
            return
        if dropped:
            log.info("samples_dropped", older_than_hours=self._hours, dropped=dropped)
        if removed:
            log.info("registry_cleaned_up", removed=removed)
