"""The answer to KEDA for one monitor: measured, last-known, activation, frozen, or an error; and its rate limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final

import structlog
from cachetools import TTLCache

from lagscale.domain.quotas import DEFAULT_QUOTAS, Quota, describe_excess
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
from lagscale.rate_limit import TokenBuckets
from lagscale.store.registrations.load import InlineMonitor
from services.scaler import deadlines, metrics
from services.scaler.answers.decision_log import DecisionLog
from services.scaler.answers.frozen import FrozenAnswerCache
from services.scaler.answers.last_known import LastKnownAnswers
from services.scaler.answers.snapshots import Snapshot, SnapshotCache
from services.scaler.triggers.directory import ResolvedMonitor, ResolvedTrigger
from services.scaler.triggers.registrations import RegistrationStore

log = structlog.get_logger(__name__)

#: With these reasons, an unknown verdict means that the history is too short or that there is nothing to measure; with
#: all others, that data is unavailable.
_TOO_SHORT: Final = frozenset(
    {Reason.NO_DATA, Reason.NOTHING_TO_MEASURE, Reason.NO_TOPIC, Reason.START_UNKNOWN, Reason.ACTIVITY_UNDETERMINED}
)
_NO_SAMPLES_YET: Final = (
    "No samples yet: the monitor was just registered; its first samples arrive within two sampling intervals."
)
#: Inline monitors whose registration outcome is cached.
_CACHE_SIZE: Final = 10_000


class AnswerSource(StrEnum):
    """Where an answer comes from: the values of the metric's label."""

    MEASURED = "measured"
    LAST_KNOWN = "last_known"
    LAST_KNOWN_LOCALLY = "last_known_locally"
    ACTIVATION = "activation"
    FROZEN = "frozen"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class MonitorAnswer:
    """The answer for one monitor, and the judgment behind it; None if it does not come from the store."""

    answer: Answer
    source: AnswerSource
    judgment: Judgment | None


class CallRateLimiter:
    """Counts the calls of each tenant in this replica: a token bucket each; a call counts once per monitor."""

    def __init__(self, limit_of: Callable[[int], int | None], clock: Callable[[], float] = time.monotonic) -> None:
        """`limit_of` returns a tenant's quota of calls per second by its id; None while it is unknown."""
        self._limit_of = limit_of
        self._buckets = TokenBuckets(clock)

    def count_calls(self, monitor: ResolvedMonitor, calls: int = 1) -> RateExceeded | None:
        """Count calls; returns the error if they exceed the quota."""
        limit = self._limit_of(monitor.tenant_id) or DEFAULT_QUOTAS[Quota.CALLS]
        wait = self._buckets.take(monitor.tenant_id, limit, limit * deadlines.CALL_BURST_SECONDS, calls)
        if wait == 0.0:
            return None
        return RateExceeded(
            describe_excess(Quota.CALLS, limit), quota=Quota.CALLS.value, retry_after_seconds=ceil(wait)
        )

    def admit_stream(self, resolved: ResolvedTrigger) -> None:
        """Count the opening of a stream; its later evaluations are not calls.

        Raises:
            LagscaleError: the tenant exceeds its call quota, or none of the monitors exists.
        """
        resolved.require_any()
        error = self.count_calls(resolved.monitors[0], len(resolved.monitors))
        if error is not None:
            raise error


class AnswerService:
    """Answers for one monitor at a time, within the caller's deadline (event loop time)."""

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
        self._snapshots, self._registrations, self._last = snapshots, registrations, last
        self._decision_log, self._frozen, self._call_limiter = decision_log, frozen, call_limiter
        # The outcome of registering an inline monitor, so that the calls of one poll do not try again.
        self._registering: TTLCache[tuple[int, str], asyncio.Task[None]] = TTLCache(
            _CACHE_SIZE, deadlines.REGISTRATION_TTL_SECONDS
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def get_answer(
        self, monitor: ResolvedMonitor, deadline: float, *, begins_poll: bool = False, counted: bool = True
    ) -> MonitorAnswer:
        """The answer for the monitor by the deadline, which is event loop time.

        Args:
            begins_poll: True for `GetMetrics`, which KEDA calls before `IsActive`.
            counted: whether the call counts against the tenant's quota; evaluations of open streams do not.

        Raises:
            Unknown: lag is unknown, and there is no last-known answer.
            StoreUnavailable: the store is unavailable, and there is no last-known answer.
            QuotaExceeded: the tenant's quota of inline monitors or of calls is exceeded.
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
                metrics.QUOTA_EXCEEDED.labels(monitor.tenant, error.facts.get("quota", ""), "rejected").inc()
            metrics.ANSWERS.labels(AnswerSource.ERROR.value).inc()
            self._decision_log.record_error(monitor, error)
            raise
        metrics.ANSWERS.labels(answer.source.value).inc()
        frozen = answer.source is AnswerSource.FROZEN
        self._decision_log.record_answer(monitor, answer.answer, answer.judgment, frozen=frozen)
        return answer

    async def _answer_from_store(
        self, monitor: ResolvedMonitor, freezes: Sequence[Freeze], deadline: float, begins_poll: bool
    ) -> MonitorAnswer:
        if monitor.request is None:
            await self._register(monitor, deadline)
            if not freezes:
                raise HistoryTooShort(_NO_SAMPLES_YET)
        if freezes or monitor.request is None:
            return MonitorAnswer(await self._frozen.get_answer(monitor, freezes, deadline), AnswerSource.FROZEN, None)
        return await self._answer_from_snapshot(monitor, monitor.request, deadline, begins_poll)

    async def _answer_from_snapshot(
        self, monitor: ResolvedMonitor, request: VerdictRequest, deadline: float, begins_poll: bool
    ) -> MonitorAnswer:
        try:
            async with asyncio.timeout_at(deadline):
                snapshot = await self._snapshots.get(request, begins_poll=begins_poll)
        except TimeoutError as timeout:
            return self._answer_last_known(monitor, StoreTimeout(), timeout)
        except StoreUnavailable as error:
            return self._answer_last_known(monitor, error, error)
        return _build_answer(monitor, snapshot)

    def _answer_over_rate(
        self, monitor: ResolvedMonitor, rate_error: RateExceeded, freezes: Sequence[Freeze]
    ) -> MonitorAnswer:
        """An answer without a query: frozen, from a cached snapshot, or a last-known answer that requests replicas.

        Raises:
            RateExceeded: none of them is available.
        """
        if freezes:
            # A frozen monitor stays frozen: later samples do not count, even where no answer was stored.
            frozen_answer = self._frozen.find_cached(monitor, freezes)
            if frozen_answer is None:
                raise rate_error
            metrics.QUOTA_EXCEEDED.labels(monitor.tenant, Quota.CALLS.value, "cached").inc()
            return MonitorAnswer(frozen_answer, AnswerSource.FROZEN, None)
        snapshot = None if monitor.request is None else self._snapshots.find_cached(monitor.request)
        if snapshot is not None:
            try:
                answer = _build_answer(monitor, snapshot)
            except LagscaleError as unknown:
                raise rate_error from unknown
        else:
            # A monitor that never gets its turn would report a stale 0 for as long as holdSeconds lasts.
            last_known = None if monitor.partial else self._last.find_answer(monitor.key, monitor.policy)
            if last_known is None or _is_zero(last_known):
                raise rate_error
            answer = MonitorAnswer(last_known, AnswerSource.LAST_KNOWN_LOCALLY, None)
        metrics.QUOTA_EXCEEDED.labels(monitor.tenant, Quota.CALLS.value, "cached").inc()
        return answer

    def _answer_last_known(self, monitor: ResolvedMonitor, error: StoreUnavailable, cause: Exception) -> MonitorAnswer:
        # An answer for some of the topics is not a last-known answer of the monitor.
        last_known = None if monitor.partial else self._last.find_answer(monitor.key, monitor.policy)
        if last_known is None:
            raise error from cause
        return MonitorAnswer(last_known, AnswerSource.LAST_KNOWN_LOCALLY, None)

    async def _register(self, monitor: ResolvedMonitor, deadline: float) -> None:
        """Register the inline monitor; concurrent calls share one attempt."""
        inline = monitor.inline
        if inline is None:
            return
        key = (monitor.tenant_id, inline.spec.content)
        task = self._registering.get(key)
        if task is None:
            task = self._registering[key] = asyncio.get_running_loop().create_task(self._create(inline))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout_at(deadline):
                await asyncio.shield(task)
        except TimeoutError as timeout:
            raise StoreTimeout from timeout
        except QuotaExceeded as exceeded:
            raise QuotaExceeded(exceeded.message, **exceeded.facts) from exceeded
        except LagscaleError as error:
            self._registering.pop(key, None)
            raise type(error)(error.message) from error

    async def _create(self, inline: InlineMonitor) -> None:
        try:
            await self._registrations.register(inline)
        except LagscaleError:
            raise
        except Exception as error:
            log.exception("registration_failed", tenant_id=inline.tenant_id, monitor=inline.spec.name)
            raise StoreUnavailable from error


def _build_answer(monitor: ResolvedMonitor, snapshot: Snapshot) -> MonitorAnswer:
    judgment, last_known = snapshot.judgment, snapshot.last_known
    if monitor.partial:
        judgment, last_known = apply_partial_coverage(judgment, monitor.policy), None
    answer = choose_answer(judgment, monitor.policy, last_known)
    if answer is not None and answer.last_known_ms is not None and monitor.over_quota and _is_zero(answer):
        # Targets over the quota are not sampled: an earlier calm says nothing about them.
        answer = None
    if answer is None:
        error = _build_error(monitor, judgment)
        error.facts["snapshot_ms"] = judgment.at_ms
        raise error
    if answer.last_known_ms is not None:
        return MonitorAnswer(answer, AnswerSource.LAST_KNOWN, judgment)
    return MonitorAnswer(answer, AnswerSource.ACTIVATION if judgment.value is None else AnswerSource.MEASURED, judgment)


def _is_zero(last_known: Answer) -> bool:
    return not last_known.active and last_known.value <= 0


def _build_error(monitor: ResolvedMonitor, judgment: Judgment) -> LagscaleError:
    if monitor.over_quota:
        return QuotaExceeded(monitor.over_quota, quota=Quota.PARTITIONS.value, reason=judgment.reason.value)
    error_type = HistoryTooShort if judgment.reason in _TOO_SHORT else DataUnavailable
    if monitor.partial:
        return error_type(monitor.partial, reason=judgment.reason.value)
    return error_type(describe_verdict(judgment, monitor.policy, monitor.topics), reason=judgment.reason.value)
