"""Last-known answers from this replica's memory, for when the store is unavailable.

The rule is the same as over the samples; only the points in time are those at which KEDA asked.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, Verdict
from lagscale.domain.verdict.hold import pick_last_known, without_hold_limit
from services.scaler import deadlines

_MAX_MONITORS: Final = 50_000


class StoreClock:
    """The database's clock: the last reading, advanced by the monotonic clock."""

    def __init__(self) -> None:
        self._read_ms: int | None = None
        self._read_at = 0.0

    def note(self, now_ms: int) -> None:
        """Take a reading of the database's clock, made just now."""
        self._read_ms, self._read_at = now_ms, time.monotonic()

    def now_ms(self) -> int | None:
        """The database's time; None before the first reading."""
        if self._read_ms is None:
            return None
        return self._read_ms + int((time.monotonic() - self._read_at) * 1000)

    def dump(self) -> tuple[int | None, float]:
        """This clock for a later process: the database's time, and the host's in seconds."""
        return self.now_ms(), time.time()

    def restore(self, now_ms: int | None, host_seconds: float) -> None:
        """Continue from another process's reading; if the host's clock was set back, no time has passed."""
        if now_ms is not None:
            self.note(now_ms + int(max(0.0, time.time() - host_seconds) * 1000))


@dataclass(slots=True)
class _LastKnown:
    """Of one monitor: the last known point, the values that can still become the window's maximum, and activity."""

    known_ms: int | None = None
    peaks: list[tuple[int, float]] = field(default_factory=list)
    active_ms: int | None = None
    newest_ms: int = 0
    members: int | None = None

    def note(self, judgment: Judgment, at_ms: int, window_ms: int) -> bool:
        """Add a judgment; True if the local cache must be written."""
        if at_ms >= self.newest_ms:
            self.newest_ms, self.members = at_ms, judgment.members
        if judgment.value is None or judgment.active is None or at_ms < (self.known_ms or 0):
            return False
        newer, self.known_ms = at_ms != self.known_ms, at_ms
        while self.peaks and (self.peaks[-1][1] <= judgment.value or self.peaks[-1][0] == at_ms):
            self.peaks.pop()
        self.peaks.append((at_ms, judgment.value))
        self.peaks = [peak for peak in self.peaks if peak[0] >= at_ms - window_ms]
        if judgment.active:
            self.active_ms = at_ms
        elif self.active_ms is not None and (self.active_ms < at_ms - window_ms or self.active_ms == at_ms):
            self.active_ms = None
        return newer

    def known_judgments(self) -> list[Judgment]:
        judgments = [_build_judgment(at_ms, value, False) for at_ms, value in self.peaks]
        return judgments if self.active_ms is None else [*judgments, _build_judgment(self.active_ms, 0.0, True)]


class LastKnownAnswers:
    """Known judgments by monitor key: a bounded cache, the least recently evaluated is dropped first."""

    def __init__(self) -> None:
        self.clock = StoreClock()
        self.dirty = False
        self._entries: OrderedDict[str, _LastKnown] = OrderedDict()

    def note(self, key: str, judgment: Judgment, policy: Policy) -> None:
        """Add a judgment that the store has just made."""
        self.clock.note(judgment.now_ms)
        if judgment.at_ms is None:
            return
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _LastKnown()
            if len(self._entries) > _MAX_MONITORS:
                self._entries.popitem(last=False)
        self._entries.move_to_end(key)
        self.dirty |= entry.note(judgment, judgment.at_ms, policy.hold_window_ms)

    def find_answer(self, key: str, policy: Policy) -> Answer | None:
        """The last-known answer of a monitor while the store is unavailable; None without any."""
        entry, now_ms = self._entries.get(key), self.clock.now_ms()
        if entry is None or now_ms is None:
            return None
        return pick_last_known(entry.known_judgments(), entry.members, now_ms, policy)

    def find_frozen_answer(self, key: str, policy: Policy, since_ms: int) -> Answer | None:
        """The last-known answer of a frozen monitor while the store is unavailable: as of the freeze, without expiry.

        Judgments from before this replica learned of the freeze count: the last active one may be among them.
        """
        entry = self._entries.get(key)
        if entry is None:
            return None
        known_judgments = [
            one
            for one in entry.known_judgments()
            if one.at_ms is not None and one.at_ms <= since_ms + deadlines.FREEZE_DELAY_MS
        ]
        return pick_last_known(known_judgments, entry.members, since_ms, without_hold_limit(policy))

    def dump(self) -> dict[str, Any]:
        """Everything cached, for the local cache."""
        self.dirty = False
        return {
            "clock": self.clock.dump(),
            "entries": {
                key: (entry.known_ms, list(entry.peaks), entry.active_ms, entry.newest_ms, entry.members)
                for key, entry in self._entries.items()
                if entry.known_ms is not None
            },
        }

    def restore(self, content: Any) -> None:
        """Restore what another process dumped; content that cannot be read is ignored as a whole."""
        try:
            now_ms, host_seconds = content["clock"]
            entries = {
                str(key): _LastKnown(
                    known_ms, [(int(at), float(value)) for at, value in peaks], active, int(newest), members
                )
                for key, (known_ms, peaks, active, newest, members) in content["entries"].items()
            }
        except (TypeError, ValueError, KeyError, AttributeError):
            return
        self.clock.restore(now_ms, host_seconds)
        self._entries.update(entries)


def _build_judgment(at_ms: int, value: float, active: bool) -> Judgment:
    return Judgment(Verdict.CALM, Reason.NO_BREACH, value, active, at_ms, at_ms)
