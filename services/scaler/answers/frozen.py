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
from lagscale.domain.verdict.contract import Ask, Told
from lagscale.domain.verdict.freezes import Freeze, as_of, frozen_sentence, in_force
from lagscale.errors import DataUnavailable, LagscaleError
from lagscale.store.records import VerdictStore
from lagscale.store.registrations.frozen_answers import FrozenAnswer, FrozenAsk
from services.scaler import metrics
from services.scaler.answers.last_known import LastAnswers
from services.scaler.triggers.directory import Subject

log = structlog.get_logger(__name__)

_REMEMBERED: Final = 50_000
#: A tenant of thousands of monitors is frozen at once; the calls of all others go on meanwhile.
_AT_ONCE: Final = 2


class FreezeStore(Protocol):
    """Where the answers of frozen monitors are kept for all replicas."""

    async def kept(self, asked: FrozenAsk, freeze_ids: Sequence[str]) -> FrozenAnswer | None:
        """The answer that one of these freezes keeps; None while none does."""
        ...

    async def keep(self, asked: FrozenAsk, freeze_ids: Sequence[str], answer: FrozenAnswer) -> FrozenAnswer:
        """Keep the answer under these freezes, where nobody was faster; the one that is kept now."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, and the freezes under which the store keeps it."""

    freeze_ids: frozenset[str]
    answer: FrozenAnswer


class FrozenAnswers:
    """The answers of frozen monitors in this replica's memory, and the way to them."""

    def __init__(self, store: FreezeStore, verdicts: VerdictStore, last: LastAnswers) -> None:
        """`last` has the clock, and what can be held while the store is silent."""
        self.dirty = False
        self._store = store
        self._verdicts = verdicts
        self._last = last
        self._kept: LRUCache[FrozenAsk, _Kept] = LRUCache(_REMEMBERED)
        self._flights: dict[FrozenAsk, asyncio.Task[FrozenAnswer]] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    def in_force(self, subject: Subject) -> tuple[Freeze, ...]:
        """The freezes of a monitor that have not ended, the oldest first."""
        return in_force(subject.freezes, self._last.clock.now_ms()) if subject.freezes else ()

    async def tell(self, subject: Subject, freezes: Sequence[Freeze], deadline: float) -> Told:
        """What a frozen monitor answers.

        Args:
            subject: the monitor.
            freezes: those in force, the oldest first; at least one.
            deadline: of the event loop's clock.

        Raises:
            DataUnavailable: nothing was known before that could be held.
        """
        return _held(await self._told(subject, freezes, deadline), freezes)

    def remembered(self, subject: Subject, freezes: Sequence[Freeze]) -> Told | None:
        """What `tell` says, without a look into the store; None where memory does not tell.

        Raises:
            DataUnavailable: nothing was known before that could be held.
        """
        if subject.ask is None or subject.monitor_id is None or subject.partial:
            return None
        kept = self._kept.get(FrozenAsk(subject.tenant_id, subject.monitor_id, _text(subject)))
        if kept is not None and any(one.freeze_id in kept.freeze_ids for one in freezes):
            return _held(kept.answer.told, freezes)
        return self._last.frozen(subject.key, subject.policy, freezes[0].since_ms)

    async def _told(self, subject: Subject, freezes: Sequence[Freeze], deadline: float) -> Told | None:
        ask = subject.ask
        # What was known of a part is not the last known answer.
        if ask is None or subject.monitor_id is None or subject.partial:
            return None
        asked = FrozenAsk(subject.tenant_id, subject.monitor_id, _text(subject))
        names = frozenset(one.freeze_id for one in freezes)
        kept = self._kept.get(asked)
        if kept is not None and kept.freeze_ids & names:
            # Another freeze has joined: the answer stays, and must be found under that one too.
            if not names <= kept.freeze_ids:
                self._find(asked, ask, freezes, kept.answer)
            return kept.answer.told
        try:
            async with asyncio.timeout_at(deadline):
                return (await asyncio.shield(self._find(asked, ask, freezes, None))).told
        except Exception:
            # Told when it landed. By the same rule from what this replica saw until then; the flight goes on for the next call.
            return self._last.frozen(subject.key, subject.policy, freezes[0].since_ms)

    def _find(
        self, asked: FrozenAsk, ask: Ask, freezes: Sequence[Freeze], known: FrozenAnswer | None
    ) -> asyncio.Task[FrozenAnswer]:
        """The flight to the answer; one at a time for each monitor."""
        flight = self._flights.get(asked)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(self._fly(asked, ask, freezes, known))
            self._flights[asked] = flight
            flight.add_done_callback(lambda done: self._landed(asked, done))
        return flight

    async def _fly(
        self, asked: FrozenAsk, ask: Ask, freezes: Sequence[Freeze], known: FrozenAnswer | None
    ) -> FrozenAnswer:
        names = [one.freeze_id for one in freezes]
        async with self._turns:
            found = known or await self._store.kept(asked, names)
            if found is None:
                since_ms = freezes[0].since_ms
                found = FrozenAnswer(await self._hold(as_of(ask, since_ms)), since_ms)
            found = await self._store.keep(asked, names, found)
        self._kept[asked] = _Kept(frozenset(names), found)
        self.dirty = True
        return found

    async def _hold(self, ask: Ask) -> Told | None:
        (judgement,) = await self._verdicts.judge([ask])
        return await self._verdicts.hold(ask, judgement)

    def _landed(self, asked: FrozenAsk, flight: asyncio.Task[FrozenAnswer]) -> None:
        self._flights.pop(asked, None)
        error = None if flight.cancelled() else flight.exception()
        if isinstance(error, LagscaleError):
            metrics.STORE_ERRORS.labels(type(error).__name__).inc()
        elif error is not None:
            log.error("frozen_answer_failed", exc_info=error)

    async def close(self) -> None:
        """End the flights."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def forget_but(self, freezes: Iterable[Freeze]) -> None:
        """Forget what no freeze of these keeps any more."""
        names = {one.freeze_id for one in freezes}
        for asked in [asked for asked, kept in self._kept.items() if not kept.freeze_ids & names]:
            del self._kept[asked]

    def dump(self) -> dict[str, Any]:
        """Everything remembered, for scratch."""
        self.dirty = False
        return {
            "kept": [
                [
                    [asked.tenant_id, asked.monitor_id, asked.overrides],
                    sorted(kept.freeze_ids),
                    kept.answer.since_ms,
                    None if (told := kept.answer.told) is None else [told.value, told.active, told.held_since_ms],
                ]
                for asked, kept in self._kept.items()
            ]
        }

    def restore(self, content: Any) -> None:
        """Go on from what another process kept; what cannot be read is passed over as a whole."""
        try:
            found = {
                FrozenAsk(int(tenant), int(monitor), str(overrides)): _Kept(
                    frozenset(map(str, names)), FrozenAnswer(None if told is None else Told(*told), int(since))
                )
                for (tenant, monitor, overrides), names, since, told in content["kept"]
            }
        except (TypeError, ValueError, KeyError):
            return
        self._kept.update(found)


def _held(told: Told | None, freezes: Sequence[Freeze]) -> Told:
    if told is None:
        raise DataUnavailable(frozen_sentence(freezes, holds=False), reason=FROZEN)
    return told


def _text(subject: Subject) -> str:
    return json.dumps(dict(subject.overrides), sort_keys=True) if subject.overrides else ""
