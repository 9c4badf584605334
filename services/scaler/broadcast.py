"""A signal that many wait for at once, and that says only "look again". Used for registrations, samples and streams."""

from __future__ import annotations

import asyncio


class Broadcast:
    """Counts beats; who names the last one that they saw misses none."""

    def __init__(self) -> None:
        self.sequence = 0
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake all who wait."""
        self.sequence += 1
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, seconds: float, after: int | None = None) -> bool:
        """Wait for a beat after the `after` one (else for the next), at most so many seconds; whether it came."""
        if after is not None and after != self.sequence:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
