"""Comparison of a monitor with KEDA's `kafka` trigger over a time range, both computed from the stored samples."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lagscale.clock import to_datetime, to_ms
from lagscale.domain.explain.keda_kafka import KafkaTrigger
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Answer, Judgment, Verdict, VerdictRequest
from lagscale.domain.verdict.hold import apply_partial_coverage, choose_answer
from lagscale.errors import FieldError, InvalidInput
from lagscale.store.registry import history
from lagscale.store.registry.session import TenantSession
from services.api.compare.schemas import CompareQuery, ComparisonOut
from services.api.compare.serializers import ComparisonInput, build_comparison
from services.api.deps import TenantAccess
from services.api.monitors.drafts import read_measured
from services.api.verdicts.answers import VerdictStore

_MAX_POINTS, _DEFAULT_POINTS = 1440, 360
_MIN_STEP_MS, _DEFAULT_STEP_MS = 5_000, 30_000
#: Samples of partitions that one comparison reads.
_MAX_SAMPLES = 1_000_000
#: Points that one statement judges, on one of the few connections that verdicts and explanations need too.
_CHUNK_SIZE = 16
#: Judgments of one comparison: each point needs those of its stabilization windows.
_MAX_JUDGED, _DEFAULT_JUDGED = 40_000, 8_000
#: Points whose last known answer is computed; each reads far back.
_MAX_LAST_KNOWN = 240


@dataclass(frozen=True, slots=True)
class ComparisonWindow:
    """Begin, end and step, milliseconds; None is the default. `length_ms` applies without `begin_ms`."""

    begin_ms: int | None
    end_ms: int | None
    step_ms: int | None
    length_ms: int


async def compare_with_keda(
    tenant: TenantAccess,
    verdicts: VerdictStore,
    name: str,
    window: ComparisonWindow,
    query: CompareQuery,
) -> ComparisonOut:
    """Compare a monitor. The transaction is closed before verdicts are judged.

    Raises:
        NotFound: the tenant has no such monitor.
        InvalidInput: the time range is in the future, beyond the retention, or too much to read.
        StoreUnavailable: the store does not answer.
    """
    async with tenant.session() as session:
        measured = await read_measured(session, name)
        policy, targets = measured.policy, sorted(measured.topics)
        begin_ms, end_ms, step_ms, shortened = await _resolve_window(session, window, policy)
        partitions = await history.count_partitions(session, targets, to_datetime(end_ms))
        _check_size((end_ms - begin_ms) // step_ms, partitions, policy)
        rounds = await history.read_stepped_rounds(
            session, targets, to_datetime(begin_ms), to_datetime(end_ms), timedelta(milliseconds=step_ms)
        )
        partial = await history.find_partial_since(session, measured.row["id"])
        tenant_id = session.tenant_id
    points = list(range(begin_ms + step_ms, end_ms + 1, step_ms))
    request = VerdictRequest(tenant_id, tuple(targets), policy)
    judged = await _judge_points(verdicts, request, points)
    if partial is not None:
        partial_ms = to_ms(partial[0])
        judged = [apply_partial_coverage(one, policy) if one.now_ms >= partial_ms else one for one in judged]
    last_known, is_truncated = await _find_last_known(verdicts, request, judged)
    comparison_input = ComparisonInput(
        name=name,
        policy=policy,
        trigger=_build_trigger(query.keys, policy),
        min_replicas=query.min_replicas,
        max_replicas=query.max_replicas or max(1, math.ceil(partitions / policy.consumers_per_replica)),
        begin_ms=begin_ms,
        step_ms=step_ms,
        points=points,
        rounds=rounds,
        judged=judged,
        answers=[choose_answer(one, policy, held) for one, held in zip(judged, last_known, strict=True)],
        notes=_build_notes(shortened=shortened, is_truncated=is_truncated, partial=partial is not None),
    )
    # In a thread, because many samples take a while, and other requests have to be served.
    return await asyncio.to_thread(build_comparison, comparison_input)


async def _judge_points(verdicts: VerdictStore, request: VerdictRequest, points: Sequence[int]) -> list[Judgment]:
    """Judge each point by the code that answers KEDA, with the samples until then."""
    judged: list[Judgment] = []
    chunk = 1 if request.policy.stabilization_ms else _CHUNK_SIZE
    for first in range(0, len(points), chunk):
        requests = [replace(request, upto_ms=at, judged_at_ms=at) for at in points[first : first + chunk]]
        judged += await verdicts.judge(requests)
    return judged


async def _find_last_known(
    verdicts: VerdictStore, request: VerdictRequest, judged: Sequence[Judgment]
) -> tuple[list[Answer | None], bool]:
    """The last known answer at each unknown point, and whether there were too many points to compute all."""
    answers: list[Answer | None] = []
    computed, is_truncated = 0, False
    previous: Judgment | None = None
    for one in judged:
        last_known = None
        if one.verdict is Verdict.UNKNOWN and one.at_ms is not None:
            if previous is not None and previous.at_ms == one.at_ms:
                # No round since: the same answer is known, until holdSeconds have passed.
                last_known = answers[-1]
                since = None if last_known is None else last_known.last_known_ms
                last_known = last_known if since is not None and one.now_ms - since <= request.policy.hold_ms else None
            elif computed < _MAX_LAST_KNOWN:
                computed += 1
                last_known = await verdicts.find_last_known(
                    replace(request, upto_ms=one.now_ms, judged_at_ms=one.now_ms), one
                )
            else:
                is_truncated = True
            previous = one
        else:
            previous = None
        answers.append(last_known)
    return answers, is_truncated


def _build_trigger(keys: Mapping[str, Any], policy: Policy) -> KafkaTrigger:
    """KEDA's trigger: the given keys, and those of the monitor's policy for the others."""
    defaults = KafkaTrigger(
        activation_lag_threshold=policy.activation_lag_threshold,
        offset_reset_policy=policy.offset_reset_policy,
        scale_to_zero_on_invalid_offset=policy.scale_to_zero_on_invalid_offset,
        allow_idle_consumers=policy.allow_idle_consumers,
        limit_to_partitions_with_lag=policy.limit_to_lagging,
        ensure_even_distribution_of_partitions=policy.even_split,
    )
    if policy.metric is Metric.LAG:
        defaults = replace(defaults, lag_threshold=max(1, math.ceil(policy.target_lag)))
    return replace(defaults, **keys)


async def _resolve_window(
    session: TenantSession, window: ComparisonWindow, policy: Policy
) -> tuple[int, int, int, bool]:
    """Begin, end and step, and whether a part of the time range is no longer retained."""
    now_ms = to_ms(await history.read_clock(session))
    end_ms = now_ms if window.end_ms is None else window.end_ms
    if end_ms > now_ms:
        raise InvalidInput([FieldError("to", "is in the future; omit it for now")])
    begin_ms = end_ms - window.length_ms if window.begin_ms is None else window.begin_ms
    samples_since = await history.read_samples_since(session)
    shortened = samples_since is not None and to_ms(samples_since) > begin_ms
    if samples_since is not None and shortened:
        begin_ms = to_ms(samples_since)
    if begin_ms >= end_ms:
        text = "is beyond the retention of samples" if shortened else "must be before `to`"
        raise InvalidInput([FieldError("from", f"{text}; give a later time")])
    max_points = min(_DEFAULT_POINTS, max(1, _DEFAULT_JUDGED // _count_judgments(policy)))
    default_step_ms = max(_DEFAULT_STEP_MS, math.ceil((end_ms - begin_ms) / max_points / 1000) * 1000)
    step_ms = min(default_step_ms, end_ms - begin_ms) if window.step_ms is None else window.step_ms
    if step_ms < _MIN_STEP_MS and window.step_ms is not None:
        raise InvalidInput([FieldError("step", f"must be at least {_MIN_STEP_MS // 1000} s")])
    if step_ms > end_ms - begin_ms:
        raise InvalidInput([FieldError("step", "must not be longer than the time from `from` to `to`")])
    return begin_ms, end_ms, step_ms, shortened


def _count_judgments(policy: Policy) -> int:
    """Judgments that one point needs."""
    return 1 + policy.stabilization_ms // policy.sampling_ms


def _check_size(points: int, partitions: int, policy: Policy) -> None:
    if points > _MAX_POINTS:
        text = f"results in {points:,} points, at most {_MAX_POINTS:,} are allowed; give a longer step or a shorter time range"
        raise InvalidInput([FieldError("step", text)])
    if points * _count_judgments(policy) > _MAX_JUDGED:
        text = "is too short for the stabilization windows, each of which is judged anew; give a longer step"
        raise InvalidInput([FieldError("step", text)])
    if points * partitions > _MAX_SAMPLES:
        text = f"{points:,} points of {partitions:,} partitions are too many samples; give a longer step or a shorter time range"
        raise InvalidInput([FieldError("step", text)])


def _build_notes(*, shortened: bool, is_truncated: bool, partial: bool) -> tuple[str, ...]:
    notes = ["KEDA's side reads one round of samples per step, which may be up to samplingInterval old."]
    if shortened:
        notes.append("Older samples are no longer retained, so the comparison begins later than requested.")
    if is_truncated:
        notes.append(
            f"Last known answers were computed for the first {_MAX_LAST_KNOWN} unknown points only; later ones are errors here."
        )
    if partial:
        notes.append("Only a part of the monitor's topics is measured, so both sides are based on that part.")
    return tuple(notes)
