"""A signal that many wait for at once, and that says only "look again". Used for registrations, samples and streams."""

from __future__ import annotations

import asyncio


class Pulse:
    """Counts beats; who names the last one that they saw misses none."""

    def __init__(self) -> None:
        self.beats = 0
        self._event = asyncio.Event()

    def beat(self) -> None:
        """Wake all who wait."""
        self.beats += 1
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self, seconds: float, seen: int | None = None) -> bool:
        """Wait for a beat after the `seen` one (else for the next), at most so many seconds; whether it came."""
        if seen is not None and seen != self.beats:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return True
