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
from lagscale.domain.verdict.contract import Answer, Judgment, Reason, VerdictRequest
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.verdict.hold import apply_partial_coverage, choose_answer
from lagscale.domain.wording.verdicts import describe_verdict
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
from services.scaler.answers.decision_log import DecisionLog
from services.scaler.answers.frozen import FrozenAnswerCache
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.rate_limit import CallRateLimiter
from services.scaler.answers.snapshots import Snapshot, SnapshotCache
from services.scaler.triggers.directory import ResolvedMonitor, ResolvedTrigger

log = structlog.get_logger(__name__)

#: Unknown for these reasons is a history too short, or nothing to measure; for all others data that are not there.
_TOO_SHORT: Final = frozenset(
    {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE, Reason.NO_TOPIC, Reason.START_UNKNOWN, Reason.ACTIVITY_UNDETERMINED}
)
_NO_SAMPLES_YET: Final = "Measuring begins: the monitor is registered, and its first samples come within two intervals."
_REGISTRATION_MEMO_SECONDS: Final = 20.0


class AnswerKind(StrEnum):
    """Where an answer came from."""

    MEASURED = "measured"
    LAST_KNOWN = "held"
    LAST_KNOWN_LOCAL = "held_locally"
    ACTIVATING = "waking"
    FROZEN = "frozen"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class MonitorAnswer:
    """What KEDA is told of one monitor, and from which judgement; None when the store was silent."""

    answer: Answer
    kind: AnswerKind
    judgment: Judgment | None


class AnswerService:
    """Answers for one monitor at a time, within the caller's deadline (of the event loop's clock)."""

    def __init__(
        self,
        snapshots: SnapshotCache,
        registrations: RegistrationStore,
        last: LastKnownAnswers,
        decision_log: DecisionLog,
        frozen: FrozenAnswerCache,
        *,
        call_limiter: CallRateLimiter,
    ) -> None:
        self._snapshots = snapshots
        self._registrations = registrations
        self._last = last
        self._decision_log = decision_log
        self._frozen = frozen
        self._call_limiter = call_limiter
        # What became of registering an inline monitor, so that each call of a poll does not try again.
        self._registering: TTLCache[tuple[int, str], asyncio.Task[None]] = TTLCache(10_000, _REGISTRATION_MEMO_SECONDS)
        self._tasks: set[asyncio.Task[None]] = set()

    def admit_stream(self, resolved: ResolvedTrigger) -> None:
        """Count the opening of a stream.

        Raises:
            LagscaleError: the tenant makes too many calls, or no monitor is there at all.
        """
        self._call_limiter.admit_stream(resolved)

    async def get_answer(
        self, monitor: ResolvedMonitor, deadline: float, *, begins_poll: bool = False, counted: bool = True
    ) -> MonitorAnswer:
        """What KEDA is told of the monitor; `GetMetrics` begins a poll, and `IsActive` follows it.

        Calls are counted, what an open stream looks at is not.

        Raises:
            Unknown: the lag is not known, and nothing can be held.
            StoreUnavailable: the store is silent, and nothing can be held.
            QuotaExceeded: an inline monitor is one too many for its tenant, or it makes too many calls.
        """
        rate_error = self._call_limiter.count_calls(monitor) if counted else None
        try:
            freezes = self._frozen.select_active(monitor)
            if rate_error is not None:
                answer = self._answer_over_rate(monitor, rate_error, freezes)
            else:
                answer = await self._answer_from_store(monitor, freezes, deadline, begins_poll)
        except LagscaleError as error:
            if isinstance(error, QuotaExceeded):
                metrics.OVER_QUOTA.labels(monitor.tenant, error.facts.get("quota", ""), "refused").inc()
            metrics.ANSWERS.labels(AnswerKind.ERROR.value).inc()
            self._decision_log.record_error(monitor, error)
            raise
        metrics.ANSWERS.labels(answer.kind.value).inc()
        self._decision_log.record_answer(
            monitor, answer.answer, answer.judgment, frozen=answer.kind is AnswerKind.FROZEN
        )
        return answer

    async def _answer_from_store(
        self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float, begins_poll: bool
    ) -> MonitorAnswer:
        if monitor.request is None:
            await self._register(monitor, deadline)
            if not freezes:
                raise HistoryTooShort(_NO_SAMPLES_YET)
        if freezes or monitor.request is None:
            return MonitorAnswer(await self._frozen.get_answer(monitor, freezes, deadline), AnswerKind.FROZEN, None)
        return await self._answer_from_snapshot(monitor, monitor.request, deadline, begins_poll)

    async def _answer_from_snapshot(
        self, monitor: ResolvedMonitor, request: VerdictRequest, deadline: float, begins_poll: bool
    ) -> MonitorAnswer:
        try:
            async with asyncio.timeout_at(deadline):
                snapshot = await self._snapshots.get(request, begins_poll=begins_poll)
        except TimeoutError as slow:
            return self._answer_last_known(monitor, StoreTimeout(), slow)
        except StoreUnavailable as away:
            return self._answer_last_known(monitor, away, away)
        return _build_answer(monitor, snapshot)

    def _answer_over_rate(
        self, monitor: ResolvedMonitor, rate_error: RateExceeded, freezes: Sequence[Freeze]
    ) -> MonitorAnswer:
        """What costs nothing: a frozen answer; a reading that still serves; else a held answer that asks for replicas.

        Raises:
            RateExceeded: there is none of them.
        """
        if freezes:
            # Frozen stays frozen: what was measured since is not told, also where nothing was kept.
            frozen_answer = self._frozen.find_cached(monitor, freezes)
            if frozen_answer is None:
                raise rate_error
            metrics.OVER_QUOTA.labels(monitor.tenant, Quota.CALLS.value, "from_memory").inc()
            return MonitorAnswer(frozen_answer, AnswerKind.FROZEN, None)
        snapshot = None if monitor.request is None else self._snapshots.find_cached(monitor.request)
        if snapshot is not None:
            try:
                answer = _build_answer(monitor, snapshot)
            except LagscaleError as unknown:
                raise rate_error from unknown
        else:
            # Whose turn is never reached would be told an old 0 for as long as answers are held.
            last_known = None if monitor.partial else self._last.find_answer(monitor.key, monitor.policy)
            if last_known is None or _is_zero(last_known):
                raise rate_error
            answer = MonitorAnswer(last_known, AnswerKind.LAST_KNOWN_LOCAL, None)
        metrics.OVER_QUOTA.labels(monitor.tenant, Quota.CALLS.value, "from_memory").inc()
        return answer

    def _answer_last_known(self, monitor: ResolvedMonitor, error: StoreUnavailable, cause: Exception) -> MonitorAnswer:
        # What was known of a part is not the last known answer.
        last_known = None if monitor.partial else self._last.find_answer(monitor.key, monitor.policy)
        if last_known is None:
            raise error from cause
        return MonitorAnswer(last_known, AnswerKind.LAST_KNOWN_LOCAL, None)

    async def _register(self, monitor: ResolvedMonitor, deadline: float) -> None:
        """Create the inline monitor; one attempt serves all calls that ask meanwhile."""
        inline = monitor.inline
        if inline is None:
            return
        key = (monitor.tenant_id, inline.content_hash)
        task = self._registering.get(key)
        if task is None:
            task = self._registering[key] = asyncio.get_running_loop().create_task(self._create(inline))
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

    async def _create(self, inline: InlineMonitor) -> None:
        try:
            await self._registrations.register(inline)
        except LagscaleError:
            raise
        except Exception as error:
            log.exception("registration_failed", tenant_id=inline.tenant_id, monitor=inline.name)
            raise StoreUnavailable from error


def _build_answer(monitor: ResolvedMonitor, snapshot: Snapshot) -> MonitorAnswer:
    judgment, last_known = snapshot.judgment, snapshot.last_known
    if monitor.partial:
        judgment, last_known = apply_partial_coverage(judgment, monitor.policy), None
    answer = choose_answer(judgment, monitor.policy, last_known)
    if answer is not None and answer.last_known_ms is not None and monitor.over_quota and _is_zero(answer):
        # What is not measured for want of a quota is no calm, also where it was calm once.
        answer = None
    if answer is None:
        error = _build_error(monitor, judgment)
        error.facts["snapshot_ms"] = judgment.at_ms
        raise error
    if answer.last_known_ms is not None:
        return MonitorAnswer(answer, AnswerKind.LAST_KNOWN, judgment)
    return MonitorAnswer(answer, AnswerKind.ACTIVATING if judgment.value is None else AnswerKind.MEASURED, judgment)


def _is_zero(last_known: Answer) -> bool:
    return not last_known.active and last_known.value <= 0


def _build_error(monitor: ResolvedMonitor, judgment: Judgment) -> LagscaleError:
    if monitor.over_quota:
        return QuotaExceeded(monitor.over_quota, quota=Quota.PARTITIONS.value, reason=judgment.reason.value)
    family = HistoryTooShort if judgment.reason in _TOO_SHORT else DataUnavailable
    if monitor.partial:
        return family(monitor.partial, reason=judgment.reason.value)
    return family(describe_verdict(judgment, monitor.policy, monitor.topics), reason=judgment.reason.value)
