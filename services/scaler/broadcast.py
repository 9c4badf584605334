"""A signal without data that many tasks wait for. Registrations and streams share it, so it stands alone."""

from __future__ import annotations

import asyncio


class Broadcast:
    """Counts notifications, so that a waiter that passes the last sequence number it handled misses none."""

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
