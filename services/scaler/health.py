"""The health checks of a replica, in their own module as in every service; `lagscale.health_http` serves them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from services.scaler.deadlines import ALIVE_SECONDS


@dataclass(slots=True)
class ScalerHealth:
    """State that the probes read from another thread; no check blocks."""

    listening: bool = False
    registered: Callable[[], bool] = lambda: False
    store_up: Callable[[], bool] = lambda: False
    draining: bool = False
    heartbeat_at: float = field(default_factory=time.monotonic)

    def record_heartbeat(self) -> None:
        """Record that the event loop runs."""
        self.heartbeat_at = time.monotonic()

    def live(self) -> dict[str, bool]:
        """Whether the event loop runs."""
        return {"event_loop": time.monotonic() - self.heartbeat_at < ALIVE_SECONDS}

    def ready(self) -> dict[str, bool]:
        """Whether calls are answered here, regardless of the store: an empty Service would break GetMetricSpec."""
        return {
            "listening": self.listening,
            "registrations_loaded": self.registered(),
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """All checks, the store included."""
        return {**self.live(), **self.ready(), "store": self.store_up()}
