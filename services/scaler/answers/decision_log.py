"""Writes down what KEDA was told, beside the answers: on change, and every five minutes. Losses are counted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final, Protocol

import structlog
from cachetools import LRUCache

from lagscale.domain.explain.decision_diff import FROZEN
from lagscale.domain.verdict.contract import Judgement, Told
from lagscale.errors import LagscaleError
from lagscale.store.registrations.answers import Decision
from services.scaler import metrics
from services.scaler.grpc.status_codes import code_of
from services.scaler.triggers.directory import Subject

log = structlog.get_logger(__name__)

_QUEUED: Final = 10_000
_A_WRITE: Final = 500
_EVERY_SECONDS: Final = 1.0
_AGAIN_MS: Final = 300_000
_ASKED_AGAIN_MS: Final = 3_600_000
_MONITORS: Final = 50_000


class DecisionStore(Protocol):
    """Where decisions go."""

    async def append(self, decisions: list[Decision]) -> None:
        """Store the decisions."""
        ...

    async def mark_asked(self, monitor_ids: list[int]) -> None:
        """Note that these monitors were asked for just now."""
        ...


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What KEDA was told, as far as a change of it is worth a row."""

    verdict: str
    reason: str
    code: str
    value: float | None = None
    active: bool | None = None
    held: bool = False

    def is_news_after(self, other: _Outcome | None) -> bool:
        """Whether a person wants to read of it: values change all the time."""
        return other is None or (self.verdict, self.code, self.active, self.held) != (
            other.verdict,
            other.code,
            other.active,
            other.held,
        )


@dataclass(slots=True)
class _Last:
    """Of one monitor, as one kind of trigger asks for it: by `key`, which changes with the policy."""

    outcome: _Outcome | None = None
    key: str = ""
    told_ms: int = 0
    asked_ms: int = 0


_Asker = tuple[int, tuple[tuple[str, str], ...]]


class Recorder:
    """A bounded queue between the answers and the store."""

    def __init__(self, store: DecisionStore, replica: str, now_ms: Callable[[], int | None]) -> None:
        """`now_ms` is the database's clock, None while it is not known: then nothing can be recorded."""
        self._store = store
        self._replica = replica
        self._now_ms = now_ms
        self._last: LRUCache[_Asker, _Last] = LRUCache(_MONITORS)
        # A row is named by monitor, time and replica, so two of one millisecond would be one.
        self._told_ms: LRUCache[int, int] = LRUCache(_MONITORS)
        self._queue: deque[Decision] = deque()
        self._asked: set[int] = set()

    def told(self, subject: Subject, told: Told, judgement: Judgement | None, *, frozen: bool = False) -> None:
        """An answer was given; without a judgement the monitor was frozen, or the store silent."""
        verdict = "unknown" if judgement is None else judgement.verdict.value
        silent = FROZEN if frozen else "store_silent"
        reason = silent if judgement is None else judgement.reason.value
        held = told.held_since_ms is not None
        outcome = _Outcome(verdict, reason, "OK", told.value, told.active, held)
        self._note(subject, outcome, None if judgement is None else judgement.at_ms)

    def failed(self, subject: Subject, error: LagscaleError) -> None:
        """An error was given in the place of an answer."""
        reason = str(error.facts.get("reason", type(error).__name__))
        snapshot_ms = error.facts.get("snapshot_ms")
        outcome = _Outcome("unknown", reason, code_of(error).name)
        self._note(subject, outcome, snapshot_ms if isinstance(snapshot_ms, int) else None)

    def _note(self, subject: Subject, outcome: _Outcome, snapshot_ms: int | None) -> None:
        now_ms, monitor_id = self._now_ms(), subject.monitor_id
        if monitor_id is None:
            return
        asker = monitor_id, tuple(sorted((subject.overrides or {}).items()))
        last = self._last.get(asker)
        if last is None:
            last = self._last[asker] = _Last()
        if now_ms is None:
            # No time to write it down under: it is lost, and written as soon as the time is known.
            if outcome != last.outcome:
                metrics.DECISIONS_LOST.inc()
            last.outcome, last.key, last.told_ms = outcome, subject.key, -_AGAIN_MS
            return
        if now_ms - last.asked_ms > _ASKED_AGAIN_MS:
            last.asked_ms = now_ms
            self._asked.add(monitor_id)
        if (outcome, subject.key) == (last.outcome, last.key) and now_ms - last.told_ms < _AGAIN_MS:
            return
        if outcome.is_news_after(last.outcome):
            log.info("decision_changed", tenant=subject.tenant, monitor=subject.name, **asdict(outcome))
        last.outcome, last.key, last.told_ms = outcome, subject.key, now_ms
        told_ms = self._told_ms[monitor_id] = max(now_ms, self._told_ms.get(monitor_id, 0) + 1)
        self._enqueue(
            [
                Decision(
                    told_ms,
                    subject.tenant_id,
                    monitor_id,
                    self._replica,
                    snapshot_ms,
                    outcome.verdict,
                    outcome.value,
                    outcome.active,
                    outcome.held,
                    outcome.reason,
                    outcome.code,
                    subject.version,
                    subject.overrides,
                )
            ]
        )

    def _enqueue(self, decisions: list[Decision]) -> None:
        self._queue.extend(decisions)
        while len(self._queue) > _QUEUED:
            self._queue.popleft()
            metrics.DECISIONS_LOST.inc()

    def held_share(self) -> float:
        """Share of monitors whose newest answer was held, 0 to 1; what a person froze is no alert."""
        outcomes = [last.outcome for last in self._last.values() if last.outcome is not None]
        return (
            sum(outcome.held and outcome.reason != FROZEN for outcome in outcomes) / len(outcomes) if outcomes else 0.0
        )

    async def run(self) -> None:
        """Write what has queued, for ever."""
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write what has queued; while the store is away it stays queued, as far as there is room."""
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(_A_WRITE, len(self._queue)))]
                await self._write(batch)
            if self._asked:
                asked, self._asked = sorted(self._asked), set()
                await self._store.mark_asked(asked)
        except LagscaleError as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
        except Exception:
            # A defect here may never stand in the way of an answer.
            log.exception("decisions_not_written")

    async def _write(self, batch: list[Decision]) -> None:
        try:
            await self._store.append(batch)
        except LagscaleError:
            self._enqueue(batch)
            raise
        except Exception:
            metrics.DECISIONS_LOST.inc(len(batch))
            raise
