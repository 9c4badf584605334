"""Lines of the Kafka client on their way to the service's log: few, however often the client repeats them."""

from __future__ import annotations

import logging
import time


class _ClientLogThrottle(logging.Filter):
    """Lets through one line of each kind a minute: a dead broker says the same many times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.args[0] if isinstance(record.args, tuple) and record.args else record.msg)[:40]
        now = time.monotonic()
        if now - self._logged_at.get(kind, -60.0) < 60.0:
            return False
        self._logged_at[kind] = now
        return True


def get_client_logger() -> logging.Logger:
    """Where the client writes."""
    log = logging.getLogger("services.scraper.kafka.cluster.client")
    if not log.filters:
        log.addFilter(_ClientLogThrottle())
    return log
