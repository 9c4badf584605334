"""What the probes of a replica read; `lagscale.health_http` serves it from a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

#: An event loop that has not run for this long is not alive; seconds.
_ALIVE: Final = 10.0


@dataclass(slots=True)
class ScalerHealth:
    """What the probes read: set by the wiring, never waits for anything."""

    listening: bool = False
    registered: Callable[[], bool] = lambda: False
    store_up: Callable[[], bool] = lambda: False
    draining: bool = False
    heartbeat_at: float = field(default_factory=time.monotonic)

    def record_heartbeat(self) -> None:
        """The event loop runs."""
        self.heartbeat_at = time.monotonic()

    def live(self) -> dict[str, bool]:
        """Whether the event loop runs."""
        return {"event_loop": time.monotonic() - self.heartbeat_at < _ALIVE}

    def ready(self) -> dict[str, bool]:
        """Whether calls are answered here. The store has no part in it: an empty Service breaks GetMetricSpec."""
        return {
            "listening": self.listening,
            "registrations_known": self.registered(),
            "not_draining": not self.draining,
        }

    def healthy(self) -> dict[str, bool]:
        """Whether all is well, the store included."""
        return {**self.live(), **self.ready(), "store": self.store_up()}
