"""Answers of frozen monitors: the last-known answer as of the freeze, the same in every replica.

The first replica that is asked computes it from the samples before the freeze and stores it. It is cached from then on,
also in the local cache, so that neither a restart, nor an unavailable store, nor the retention changes it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from cachetools import LRUCache

from lagscale.domain.explain.decision_diff import FROZEN
from lagscale.domain.verdict.contract import Answer, VerdictRequest
from lagscale.domain.verdict.freezes import Freeze, select_active
from lagscale.domain.verdict.hold import build_frozen_request
from lagscale.domain.wording.answers import describe_freezes
from lagscale.errors import DataUnavailable, LagscaleError
from lagscale.store.registrations.answers import FrozenAnswer, FrozenAnswerKey
from services.scaler import metrics
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.snapshots import VerdictSource
from services.scaler.triggers.directory import ResolvedMonitor

log = structlog.get_logger(__name__)

_CACHE_SIZE: Final = 50_000
#: A freeze may cover thousands of monitors of one tenant; this leaves connections for the calls of all others.
_MAX_CONCURRENT: Final = 2


class FreezeStore(Protocol):
    """Stores the answers of frozen monitors for all replicas."""

    async def find_answer(self, key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The answer stored under one of these freezes; None without any."""

    async def store_first(self, key: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Store the answer under these freezes unless there is one; returns the stored answer."""


@dataclass(frozen=True, slots=True)
class _StoredAnswer:
    """An answer, and the freezes under which it is stored."""

    freeze_ids: frozenset[str]
    answer: FrozenAnswer


class FrozenAnswerCache:
    """Caches the answers of frozen monitors, and fetches or computes those that are missing."""

    def __init__(self, store: FreezeStore, verdicts: VerdictSource, last: LastKnownAnswers) -> None:
        """`last` provides the clock, and answers while the store is unavailable."""
        self.dirty = False
        self._store = store
        self._verdicts = verdicts
        self._last = last
        self._stored: LRUCache[FrozenAnswerKey, _StoredAnswer] = LRUCache(_CACHE_SIZE)
        self._pending: dict[FrozenAnswerKey, asyncio.Task[FrozenAnswer]] = {}
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    def select_active(self, monitor: ResolvedMonitor) -> tuple[Freeze, ...]:
        """The active freezes of a monitor, the oldest first."""
        return select_active(monitor.freezes, self._last.clock.now_ms()) if monitor.freezes else ()

    async def get_answer(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float) -> Answer:
        """The answer of a monitor with these active freezes, the oldest first, by the deadline in event loop time.

        Raises:
            DataUnavailable: there was no last-known answer at the freeze.
        """
        return _require_answer(await self._find_answer(monitor, freezes, deadline), freezes)

    def find_cached(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze]) -> Answer | None:
        """The answer of `get_answer` without a query; None if it is not in memory.

        Raises:
            DataUnavailable: there was no last-known answer at the freeze.
        """
        key = _build_key(monitor)
        if key is None:
            return None
        stored = self._stored.get(key)
        if stored is not None and any(one.freeze_id in stored.freeze_ids for one in freezes):
            return _require_answer(stored.answer.last_known, freezes)
        return self._last.find_frozen_answer(monitor.key, monitor.policy, freezes[0].since_ms)

    async def _find_answer(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float) -> Answer | None:
        request, key = monitor.request, _build_key(monitor)
        if request is None or key is None:
            return None
        names = frozenset(one.freeze_id for one in freezes)
        stored = self._stored.get(key)
        if stored is not None and stored.freeze_ids & names:
            # Another freeze has been added: the answer stays, and is stored under that one too.
            if not names <= stored.freeze_ids:
                self._start(key, request, freezes, stored.answer)
            return stored.answer.last_known
        try:
            async with asyncio.timeout_at(deadline):
                return (await asyncio.shield(self._start(key, request, freezes, None))).last_known
        except Exception:
            # `_finish` logs it. The task goes on for the next call; this one gets the same rule applied to what this
            # replica knows.
            return self._last.find_frozen_answer(monitor.key, monitor.policy, freezes[0].since_ms)

    def _start(
        self, key: FrozenAnswerKey, request: VerdictRequest, freezes: Sequence[Freeze], stored: FrozenAnswer | None
    ) -> asyncio.Task[FrozenAnswer]:
        """The task that fetches the answer; one at a time for each monitor and overrides."""
        task = self._pending.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._run(key, request, freezes, stored))
            self._pending[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return task

    async def _run(
        self, key: FrozenAnswerKey, request: VerdictRequest, freezes: Sequence[Freeze], stored: FrozenAnswer | None
    ) -> FrozenAnswer:
        names = [one.freeze_id for one in freezes]
        async with self._slots:
            answer = stored or await self._store.find_answer(key, names)
            if answer is None:
                since_ms = freezes[0].since_ms
                request = build_frozen_request(request, since_ms)
                (judgment,) = await self._verdicts.judge([request])
                answer = FrozenAnswer(await self._verdicts.find_last_known(request, judgment), since_ms)
            answer = await self._store.store_first(key, names, answer)
        self._stored[key] = _StoredAnswer(frozenset(names), answer)
        self.dirty = True
        return answer

    def _finish(self, key: FrozenAnswerKey, task: asyncio.Task[FrozenAnswer]) -> None:
        self._pending.pop(key, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LagscaleError):
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
        elif error is not None:
            log.error("frozen_answer_failed", exc_info=error)

    async def close(self) -> None:
        """Cancel the running tasks."""
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def retain(self, freezes: Iterable[Freeze]) -> None:
        """Drop the answers that none of these freezes refers to."""
        names = {one.freeze_id for one in freezes}
        for key in [key for key, stored in self._stored.items() if not stored.freeze_ids & names]:
            del self._stored[key]

    def dump(self) -> dict[str, Any]:
        """Everything cached, for the local cache."""
        self.dirty = False
        return {
            "stored": [
                [
                    [key.tenant_id, key.monitor_id, key.overrides],
                    sorted(stored.freeze_ids),
                    stored.answer.since_ms,
                    None
                    if (last_known := stored.answer.last_known) is None
                    else [last_known.value, last_known.active, last_known.last_known_ms],
                ]
                for key, stored in self._stored.items()
            ]
        }

    def restore(self, content: Any) -> None:
        """Restore what another process dumped; content that cannot be read is ignored as a whole."""
        try:
            restored = {
                FrozenAnswerKey(int(tenant), int(monitor), str(overrides)): _StoredAnswer(
                    frozenset(map(str, names)),
                    FrozenAnswer(None if last_known is None else Answer(*last_known), int(since)),
                )
                for (tenant, monitor, overrides), names, since, last_known in content["stored"]
            }
        except (TypeError, ValueError, KeyError):
            return
        self._stored.update(restored)


def _require_answer(last_known: Answer | None, freezes: Sequence[Freeze]) -> Answer:
    if last_known is None:
        raise DataUnavailable(describe_freezes(freezes, has_answer=False), reason=FROZEN)
    return last_known


def _build_key(monitor: ResolvedMonitor) -> FrozenAnswerKey | None:
    # An answer for some of the topics is not a last-known answer of the monitor.
    if monitor.request is None or monitor.monitor_id is None or monitor.partial:
        return None
    overrides = json.dumps(dict(monitor.overrides), sort_keys=True) if monitor.overrides else ""
    return FrozenAnswerKey(monitor.tenant_id, monitor.monitor_id, overrides)
