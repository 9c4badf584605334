"""What frozen monitors answer: the held answer of the moment at which they were, the same in every replica.

Whichever replica is asked first works it out from the samples until that moment and keeps it in the store; from then on
it is remembered, on scratch too, so that neither a restart nor a silent store nor the retention changes it.
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
from lagscale.store.records import VerdictStore
from lagscale.store.registrations.frozen_answers import FrozenAnswer, FrozenAnswerKey
from services.scaler import metrics
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.triggers.directory import ResolvedMonitor

log = structlog.get_logger(__name__)

_CACHE_SIZE: Final = 50_000
#: A tenant of thousands of monitors is frozen at once; the calls of all others go on meanwhile.
_MAX_CONCURRENT: Final = 2


class FreezeStore(Protocol):
    """Where the answers of frozen monitors are kept for all replicas."""

    async def find_answer(self, key: FrozenAnswerKey, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The answer that one of these freezes keeps; None while none does."""
        ...

    async def store_first(self, key: FrozenAnswerKey, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Keep the answer under these freezes, where nobody was faster; the one that is kept now."""
        ...


@dataclass(frozen=True, slots=True)
class _StoredAnswer:
    """An answer, and the freezes under which the store keeps it."""

    freeze_ids: frozenset[str]
    answer: FrozenAnswer


class FrozenAnswerCache:
    """The answers of frozen monitors in this replica's memory, and the way to them."""

    def __init__(self, store: FreezeStore, verdicts: VerdictStore, last: LastKnownAnswers) -> None:
        """`last` has the clock, and what can be held while the store is silent."""
        self.dirty = False
        self._store = store
        self._verdicts = verdicts
        self._last = last
        self._stored: LRUCache[FrozenAnswerKey, _StoredAnswer] = LRUCache(_CACHE_SIZE)
        self._pending: dict[FrozenAnswerKey, asyncio.Task[FrozenAnswer]] = {}
        self._slots = asyncio.Semaphore(_MAX_CONCURRENT)

    def select_active(self, monitor: ResolvedMonitor) -> tuple[Freeze, ...]:
        """The freezes of a monitor that have not ended, the oldest first."""
        return select_active(monitor.freezes, self._last.clock.now_ms()) if monitor.freezes else ()

    async def get_answer(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float) -> Answer:
        """What a frozen monitor answers.

        Args:
            monitor: the monitor.
            freezes: those in force, the oldest first; at least one.
            deadline: of the event loop's clock.

        Raises:
            DataUnavailable: nothing was known before that could be held.
        """
        return _require_answer(await self._find_answer(monitor, freezes, deadline), freezes)

    def find_cached(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze]) -> Answer | None:
        """What `get_answer` says, without a look into the store; None where memory does not tell.

        Raises:
            DataUnavailable: nothing was known before that could be held.
        """
        if monitor.request is None or monitor.monitor_id is None or monitor.partial:
            return None
        stored = self._stored.get(FrozenAnswerKey(monitor.tenant_id, monitor.monitor_id, _render_overrides(monitor)))
        if stored is not None and any(one.freeze_id in stored.freeze_ids for one in freezes):
            return _require_answer(stored.answer.last_known, freezes)
        return self._last.find_frozen_answer(monitor.key, monitor.policy, freezes[0].since_ms)

    async def _find_answer(self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float) -> Answer | None:
        request = monitor.request
        # What was known of a part is not the last known answer.
        if request is None or monitor.monitor_id is None or monitor.partial:
            return None
        key = FrozenAnswerKey(monitor.tenant_id, monitor.monitor_id, _render_overrides(monitor))
        names = frozenset(one.freeze_id for one in freezes)
        stored = self._stored.get(key)
        if stored is not None and stored.freeze_ids & names:
            # Another freeze has joined: the answer stays, and must be found under that one too.
            if not names <= stored.freeze_ids:
                self._start(key, request, freezes, stored.answer)
            return stored.answer.last_known
        try:
            async with asyncio.timeout_at(deadline):
                return (await asyncio.shield(self._start(key, request, freezes, None))).last_known
        except Exception:
            # Told when it landed. By the same rule from what this replica saw until then; the flight goes on for the next call.
            return self._last.find_frozen_answer(monitor.key, monitor.policy, freezes[0].since_ms)

    def _start(
        self,
        key: FrozenAnswerKey,
        request: VerdictRequest,
        freezes: Sequence[Freeze],
        stored_answer: FrozenAnswer | None,
    ) -> asyncio.Task[FrozenAnswer]:
        """The flight to the answer; one at a time for each monitor."""
        task = self._pending.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._run(key, request, freezes, stored_answer))
            self._pending[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return task

    async def _run(
        self,
        key: FrozenAnswerKey,
        request: VerdictRequest,
        freezes: Sequence[Freeze],
        stored_answer: FrozenAnswer | None,
    ) -> FrozenAnswer:
        names = [one.freeze_id for one in freezes]
        async with self._slots:
            found = stored_answer or await self._store.find_answer(key, names)
            if found is None:
                since_ms = freezes[0].since_ms
                found = FrozenAnswer(await self._compute_answer(build_frozen_request(request, since_ms)), since_ms)
            found = await self._store.store_first(key, names, found)
        self._stored[key] = _StoredAnswer(frozenset(names), found)
        self.dirty = True
        return found

    async def _compute_answer(self, request: VerdictRequest) -> Answer | None:
        (judgment,) = await self._verdicts.judge([request])
        return await self._verdicts.find_last_known(request, judgment)

    def _finish(self, key: FrozenAnswerKey, task: asyncio.Task[FrozenAnswer]) -> None:
        self._pending.pop(key, None)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, LagscaleError):
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
        elif error is not None:
            log.error("frozen_answer_failed", exc_info=error)

    async def close(self) -> None:
        """End the flights."""
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def retain(self, freezes: Iterable[Freeze]) -> None:
        """Forget what no freeze of these keeps any more."""
        names = {one.freeze_id for one in freezes}
        for key in [key for key, stored in self._stored.items() if not stored.freeze_ids & names]:
            del self._stored[key]

    def dump(self) -> dict[str, Any]:
        """Everything remembered, for scratch."""
        self.dirty = False
        return {
            "kept": [
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
        """Go on from what another process kept; what cannot be read is passed over as a whole."""
        try:
            found = {
                FrozenAnswerKey(int(tenant), int(monitor), str(overrides)): _StoredAnswer(
                    frozenset(map(str, names)),
                    FrozenAnswer(None if last_known is None else Answer(*last_known), int(since)),
                )
                for (tenant, monitor, overrides), names, since, last_known in content["kept"]
            }
        except (TypeError, ValueError, KeyError):
            return
        self._stored.update(found)


def _require_answer(last_known: Answer | None, freezes: Sequence[Freeze]) -> Answer:
    if last_known is None:
        raise DataUnavailable(describe_freezes(freezes, has_answer=False), reason=FROZEN)
    return last_known


def _render_overrides(monitor: ResolvedMonitor) -> str:
    return json.dumps(dict(monitor.overrides), sort_keys=True) if monitor.overrides else ""
