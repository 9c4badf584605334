"""Records the answers to KEDA in the background: each change, and every five minutes. Dropped rows are counted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Final, Protocol

import structlog
from cachetools import LRUCache

from lagscale.domain.explain.decision_diff import FROZEN, STORE_SILENT
from lagscale.domain.verdict.contract import Answer, Judgment
from lagscale.errors import LagscaleError
from lagscale.store.registrations.answers import Decision
from services.scaler import deadlines, metrics
from services.scaler.grpc.status_codes import find_code
from services.scaler.triggers.directory import ResolvedMonitor

log = structlog.get_logger(__name__)

_MAX_QUEUED: Final = 10_000
_BATCH_SIZE: Final = 500
_CACHE_SIZE: Final = 50_000


class DecisionStore(Protocol):
    """Stores decisions."""

    async def append(self, decisions: list[Decision]) -> None:
        """Store the decisions."""

    async def mark_asked(self, monitor_ids: list[int]) -> None:
        """Record that these monitors were requested just now."""


@dataclass(frozen=True, slots=True)
class _LoggedDecision:
    """The part of a decision whose change is recorded at once. Its fields are those of the log event."""

    verdict: str
    reason: str
    code: str
    value: float | None = None
    active: bool | None = None
    last_known: bool = False

    def is_change_from(self, other: _LoggedDecision | None) -> bool:
        """Whether the change is logged; values alone change all the time."""
        return other is None or replace(self, value=other.value, reason=other.reason) != other


@dataclass(slots=True)
class _LastDecision:
    """The last decision of one monitor for one set of overrides; `key` changes with the policy."""

    decision: _LoggedDecision | None = None
    key: str = ""
    decided_ms: int = 0
    requested_ms: int = 0


_Requester = tuple[int, tuple[tuple[str, str], ...]]


class DecisionLog:
    """A bounded queue between answers and store."""

    def __init__(self, store: DecisionStore, replica: str, now_ms: Callable[[], int | None]) -> None:
        """`now_ms` is the database's clock; None while it is unknown, when nothing can be recorded."""
        self._store = store
        self._replica = replica
        self._now_ms = now_ms
        self._last: LRUCache[_Requester, _LastDecision] = LRUCache(_CACHE_SIZE)
        # Rows are identified by monitor, time and replica: two in one millisecond would collide.
        self._decided_ms: LRUCache[int, int] = LRUCache(_CACHE_SIZE)
        self._queue: deque[Decision] = deque()
        self._requested: set[int] = set()

    def record_answer(
        self, monitor: ResolvedMonitor, answer: Answer, judgment: Judgment | None, *, frozen: bool = False
    ) -> None:
        """Record an answer; without a judgment the monitor is frozen, or the store is unavailable."""
        verdict = "unknown" if judgment is None else judgment.verdict.value
        # The reason is stored: `lagscale.domain.explain.decision_diff` reads both texts.
        without_judgment = FROZEN if frozen else STORE_SILENT
        reason = without_judgment if judgment is None else judgment.reason.value
        last_known = answer.last_known_ms is not None
        decision = _LoggedDecision(verdict, reason, "OK", answer.value, answer.active, last_known)
        self._record(monitor, decision, None if judgment is None else judgment.at_ms)

    def record_error(self, monitor: ResolvedMonitor, error: LagscaleError) -> None:
        """Record an error that was returned instead of an answer."""
        reason = str(error.facts.get("reason", type(error).__name__))
        snapshot_ms = error.facts.get("snapshot_ms")
        decision = _LoggedDecision("unknown", reason, find_code(error).name)
        self._record(monitor, decision, snapshot_ms if isinstance(snapshot_ms, int) else None)

    def _record(self, monitor: ResolvedMonitor, decision: _LoggedDecision, snapshot_ms: int | None) -> None:
        now_ms, monitor_id = self._now_ms(), monitor.monitor_id
        if monitor_id is None:
            return
        requester = monitor_id, tuple(sorted((monitor.overrides or {}).items()))
        last = self._last.get(requester)
        if last is None:
            last = self._last[requester] = _LastDecision()
        if now_ms is None:
            # A row needs a time: this one is dropped, and recorded once the clock is known.
            if decision != last.decision:
                metrics.DECISIONS_DROPPED.inc()
            last.decision, last.key, last.decided_ms = decision, monitor.key, -deadlines.DECISION_REPEAT_MS
            return
        if now_ms - last.requested_ms > deadlines.REQUEST_REPEAT_MS:
            last.requested_ms = now_ms
            self._requested.add(monitor_id)
        same = (decision, monitor.key) == (last.decision, last.key)
        if same and now_ms - last.decided_ms < deadlines.DECISION_REPEAT_MS:
            return
        if decision.is_change_from(last.decision):
            log.info("decision_changed", tenant=monitor.tenant, monitor=monitor.name, **asdict(decision))
        last.decision, last.key, last.decided_ms = decision, monitor.key, now_ms
        decided_ms = self._decided_ms[monitor_id] = max(now_ms, self._decided_ms.get(monitor_id, 0) + 1)
        row = decided_ms, monitor.tenant_id, monitor_id, self._replica, snapshot_ms
        outcome = decision.verdict, decision.value, decision.active, decision.last_known, decision.reason, decision.code
        self._enqueue([Decision(*(*row, *outcome, monitor.version, monitor.overrides))])

    def _enqueue(self, decisions: list[Decision]) -> None:
        self._queue.extend(decisions)
        while len(self._queue) > _MAX_QUEUED:
            self._queue.popleft()
            metrics.DECISIONS_DROPPED.inc()

    def compute_last_known_ratio(self) -> float:
        """Ratio of monitors whose latest answer is last-known (0 to 1); frozen monitors do not count as such."""
        decisions = [last.decision for last in self._last.values() if last.decision is not None]
        last_known = sum(decision.last_known and decision.reason != FROZEN for decision in decisions)
        return last_known / max(len(decisions), 1)

    async def run(self) -> None:
        """Write queued decisions, without end."""
        while True:
            await asyncio.sleep(deadlines.DECISION_FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write queued decisions; while the store is unavailable they stay queued, up to the limit."""
        try:
            while self._queue:
                batch = [self._queue.popleft() for _ in range(min(_BATCH_SIZE, len(self._queue)))]
                await self._write(batch)
            if self._requested:
                requested, self._requested = sorted(self._requested), set()
                await self._store.mark_asked(requested)
        except LagscaleError as error:
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
        except Exception:
            # A defect here must never block an answer.
            log.exception("decision_write_failed")

    async def _write(self, batch: list[Decision]) -> None:
        try:
            await self._store.append(batch)
        except LagscaleError:
            self._enqueue(batch)
            raise
        except Exception:
            metrics.DECISIONS_DROPPED.inc(len(batch))
            raise
