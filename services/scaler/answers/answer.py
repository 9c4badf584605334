"""From a monitor to what KEDA is told: measured, held, waking, held from this replica's memory, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog
from cachetools import TTLCache

from lagscale.domain.quotas import Quota
from lagscale.domain.verdict.contract import Ask, Judgement, Reason, Told, told
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.verdict.partial import by_a_part
from lagscale.domain.wording.verdicts import sentence
from lagscale.errors import (
    DataUnavailable,
    HistoryTooShort,
    LagscaleError,
    QuotaExceeded,
    RateExceeded,
    StoreTimeout,
    StoreUnavailable,
)
from lagscale.store.records import InlineMonitor, RegistrationStore
from services.scaler import metrics
from services.scaler.answers.decision_log import Recorder
from services.scaler.answers.frozen import FrozenAnswers
from services.scaler.answers.last_known import LastAnswers
from services.scaler.answers.rate_limit import Rates
from services.scaler.answers.snapshots import Reading, Snapshots
from services.scaler.triggers.directory import Asked, Subject

log = structlog.get_logger(__name__)

#: Unknown for these reasons is a history too short, or nothing to measure; for all others data that are not there.
_TOO_SHORT: Final = frozenset(
    {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE, Reason.NO_TOPIC, Reason.OPEN_ISLAND, Reason.ACTIVITY_UNTOLD}
)
_BEGINS: Final = "Measuring begins: the monitor is registered, and its first samples come within two intervals."
_REGISTERED_SECONDS: Final = 20.0


class Kind(StrEnum):
    """Where an answer came from."""

    MEASURED = "measured"
    HELD = "held"
    HELD_LOCALLY = "held_locally"
    WAKING = "waking"
    FROZEN = "frozen"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Answer:
    """What KEDA is told of one monitor, and from which judgement; None when the store was silent."""

    told: Told
    kind: Kind
    judgement: Judgement | None


class Answers:
    """Answers for one monitor at a time, within the caller's deadline (of the event loop's clock)."""

    def __init__(
        self,
        snapshots: Snapshots,
        registrations: RegistrationStore,
        last: LastAnswers,
        recorder: Recorder,
        frozen: FrozenAnswers,
        *,
        rates: Rates,
    ) -> None:
        self._snapshots = snapshots
        self._registrations = registrations
        self._last = last
        self._recorder = recorder
        self._frozen = frozen
        self._rates = rates
        # What became of registering an inline monitor, so that each call of a poll does not try again.
        self._registering: TTLCache[tuple[int, str], asyncio.Task[None]] = TTLCache(10_000, _REGISTERED_SECONDS)
        self._tasks: set[asyncio.Task[None]] = set()

    def opens(self, asked: Asked) -> None:
        """Count the opening of a stream.

        Raises:
            LagscaleError: the tenant makes too many calls, or no monitor is there at all.
        """
        self._rates.opens(asked)

    async def tell(
        self, subject: Subject, deadline: float, *, begins_poll: bool = False, counted: bool = True
    ) -> Answer:
        """What KEDA is told of the monitor; `GetMetrics` begins a poll, and `IsActive` follows it.

        Calls are counted, what an open stream looks at is not.

        Raises:
            Unknown: the lag is not known, and nothing can be held.
            StoreUnavailable: the store is silent, and nothing can be held.
            QuotaExceeded: an inline monitor is one too many for its tenant, or it makes too many calls.
        """
        over = self._rates.over(subject) if counted else None
        try:
            freezes = self._frozen.in_force(subject)
            if over is not None:
                answer = self._without_store(subject, over, freezes)
            else:
                answer = await self._by_store(subject, freezes, deadline, begins_poll)
        except LagscaleError as error:
            if isinstance(error, QuotaExceeded):
                metrics.OVER_QUOTA.labels(subject.tenant, error.facts.get("quota", ""), "refused").inc()
            metrics.ANSWERS.labels(Kind.ERROR.value).inc()
            self._recorder.failed(subject, error)
            raise
        metrics.ANSWERS.labels(answer.kind.value).inc()
        self._recorder.told(subject, answer.told, answer.judgement, frozen=answer.kind is Kind.FROZEN)
        return answer

    async def _by_store(
        self, subject: Subject, freezes: Sequence[Freeze], deadline: float, begins_poll: bool
    ) -> Answer:
        if subject.ask is None:
            await self._register(subject, deadline)
            if not freezes:
                raise HistoryTooShort(_BEGINS)
        if freezes or subject.ask is None:
            return Answer(await self._frozen.tell(subject, freezes, deadline), Kind.FROZEN, None)
        return await self._known(subject, subject.ask, deadline, begins_poll)

    async def _known(self, subject: Subject, ask: Ask, deadline: float, begins_poll: bool) -> Answer:
        try:
            async with asyncio.timeout_at(deadline):
                reading = await self._snapshots.get(ask, begins_poll=begins_poll)
        except TimeoutError as slow:
            return self._remembered(subject, StoreTimeout(), slow)
        except StoreUnavailable as away:
            return self._remembered(subject, away, away)
        return _answer(subject, reading)

    def _without_store(self, subject: Subject, over: RateExceeded, freezes: Sequence[Freeze]) -> Answer:
        """What costs nothing: a frozen answer; a reading that still serves; else a held answer that asks for replicas.

        Raises:
            RateExceeded: there is none of them.
        """
        if freezes:
            # Frozen stays frozen: what was measured since is not told, also where nothing was kept.
            kept = self._frozen.remembered(subject, freezes)
            if kept is None:
                raise over
            metrics.OVER_QUOTA.labels(subject.tenant, Quota.CALLS.value, "from_memory").inc()
            return Answer(kept, Kind.FROZEN, None)
        reading = None if subject.ask is None else self._snapshots.remembered(subject.ask)
        if reading is not None:
            try:
                answer = _answer(subject, reading)
            except LagscaleError as unknown:
                raise over from unknown
        else:
            # Whose turn is never reached would be told an old 0 for as long as answers are held.
            hold = None if subject.partial else self._last.held(subject.key, subject.policy)
            if hold is None or _is_nothing(hold):
                raise over
            answer = Answer(hold, Kind.HELD_LOCALLY, None)
        metrics.OVER_QUOTA.labels(subject.tenant, Quota.CALLS.value, "from_memory").inc()
        return answer

    def _remembered(self, subject: Subject, error: StoreUnavailable, cause: Exception) -> Answer:
        # What was known of a part is not the last known answer.
        hold = None if subject.partial else self._last.held(subject.key, subject.policy)
        if hold is None:
            raise error from cause
        return Answer(hold, Kind.HELD_LOCALLY, None)

    async def _register(self, subject: Subject, deadline: float) -> None:
        """Create the inline monitor; one attempt serves all calls that ask meanwhile."""
        wanted = subject.inline
        if wanted is None:
            return
        key = (subject.tenant_id, wanted.content_hash)
        task = self._registering.get(key)
        if task is None:
            task = self._registering[key] = asyncio.get_running_loop().create_task(self._create(wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(task)
        except TimeoutError as slow:
            raise StoreTimeout from slow
        except QuotaExceeded as full:
            raise QuotaExceeded(full.message, **full.facts) from full
        except LagscaleError as away:
            self._registering.pop(key, None)
            raise type(away)(away.message) from away

    async def _create(self, wanted: InlineMonitor) -> None:
        try:
            await self._registrations.register(wanted)
        except LagscaleError:
            raise
        except Exception as error:
            log.exception("registration_failed", tenant_id=wanted.tenant_id, monitor=wanted.name)
            raise StoreUnavailable from error


def _answer(subject: Subject, reading: Reading) -> Answer:
    judgement, hold = reading.judgement, reading.hold
    if subject.partial:
        judgement, hold = by_a_part(judgement, subject.policy), None
    answer = told(judgement, subject.policy, hold)
    if answer is not None and answer.held_since_ms is not None and subject.over_quota and _is_nothing(answer):
        # What is not measured for want of a quota is no calm, also where it was calm once.
        answer = None
    if answer is None:
        error = _unknown(subject, judgement)
        error.facts["snapshot_ms"] = judgement.at_ms
        raise error
    if answer.held_since_ms is not None:
        return Answer(answer, Kind.HELD, judgement)
    return Answer(answer, Kind.WAKING if judgement.value is None else Kind.MEASURED, judgement)


def _is_nothing(hold: Told) -> bool:
    return not hold.active and hold.value <= 0


def _unknown(subject: Subject, judgement: Judgement) -> LagscaleError:
    if subject.over_quota:
        return QuotaExceeded(subject.over_quota, quota=Quota.PARTITIONS.value, reason=judgement.reason.value)
    family = HistoryTooShort if judgement.reason in _TOO_SHORT else DataUnavailable
    if subject.partial:
        return family(subject.partial, reason=judgement.reason.value)
    return family(sentence(judgement, subject.policy, subject.topics), reason=judgement.reason.value)
