"""Compares a monitor with KEDA's `kafka` trigger over a span, both worked out from the stored samples."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from lagscale.domain.explain.keda_kafka import KafkaTrigger
from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Ask, Judgement, Told, Verdict, told
from lagscale.domain.verdict.partial import by_a_part
from lagscale.errors import Fault, InvalidInput
from lagscale.store.registry import history, monitors, stepped
from lagscale.store.registry.session import RegistryDatabase, Scope, TenantWork
from lagscale.store.samples.columns import instant
from services.api.compare.schemas import ComparisonOut
from services.api.compare.serializers import Material, comparison
from services.api.monitors.policies import policy_of
from services.api.verdicts.evidence import Verdicts

_MOST_MOMENTS, _USUAL_MOMENTS = 1440, 360
_LEAST_STEP_MS, _USUAL_STEP_MS = 5_000, 30_000
#: Samples of single partitions that one comparison reads.
_MOST_SAMPLES = 1_000_000
#: Moments judged while one of the API's few connections is kept; verdicts and explanations want them too.
_CHUNK = 16
#: Judgements behind one comparison, where each moment looks back over stabilisation windows.
_MOST_JUDGED, _USUAL_JUDGED = 40_000, 8_000
#: Moments for which held answers are worked out; each looks far back.
_MOST_HELD = 240


@dataclass(frozen=True, slots=True)
class Span:
    """From when, until when, and in which steps, milliseconds; None is the usual. `length_ms` counts without begin."""

    begin_ms: int | None = None
    end_ms: int | None = None
    step_ms: int | None = None
    length_ms: int = 6 * 3_600_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to compare.

    Attributes:
        keys: of KEDA's trigger, as given; what is missing is read from the monitor's policy.
        least, most: replicas; None for `most` is as many as partitions can feed.
    """

    keys: Mapping[str, int | bool | str]
    least: int = 0
    most: int | None = None


class Comparisons:
    """Compares monitors of one tenant, each looked for behind the tenant's wall first."""

    def __init__(self, database: RegistryDatabase, verdicts: Verdicts) -> None:
        """Take the registry, and the verdicts in the scaler's role, as `Evidence` does."""
        self._database = database
        self._verdicts = verdicts

    async def compare(self, scope: Scope, tenant: str, name: str, span: Span, wanted: Wanted) -> ComparisonOut:
        """Compare a monitor.

        Raises:
            NotFound: the tenant has no such monitor.
            InvalidInput: the span lies in the future, nothing of it is kept, or it is too much to read.
            StoreUnavailable: the store does not answer.
        """
        async with self._database.tenant(scope, tenant) as work:
            row = await monitors.named(work, name)
            targets = sorted(int(target["id"]) for target in await monitors.targets(work, row["id"]))
            policy = policy_of(row, int(work.tenant["min_sampling_seconds"]))
            begin_ms, end_ms, step_ms, kept = await _span(work, span, policy)
            partitions = await stepped.widest(work, targets, instant(end_ms))
            _check_size((end_ms - begin_ms) // step_ms, partitions, policy)
            rounds = await stepped.stepped_rounds(
                work, targets, instant(begin_ms), instant(end_ms), timedelta(milliseconds=step_ms)
            )
            partial = await history.partial_since(work, row["id"])
            tenant_id = work.tenant_id
        moments = list(range(begin_ms + step_ms, end_ms + 1, step_ms))
        ask = Ask(tenant_id, tuple(targets), policy)
        judged = await self._judged(ask, moments)
        if partial is not None:
            since_ms = history.milliseconds(partial[0])
            judged = [by_a_part(one, policy) if one.now_ms >= since_ms else one for one in judged]
        holds, given_up = await self._holds(ask, judged)
        material = Material(
            name=name,
            policy=policy,
            trigger=trigger_of(wanted.keys, policy),
            least=wanted.least,
            most=wanted.most or max(1, math.ceil(partitions / policy.consumers_per_replica)),
            begin_ms=begin_ms,
            step_ms=step_ms,
            moments=moments,
            rounds=rounds,
            judged=judged,
            answers=[told(one, policy, hold) for one, hold in zip(judged, holds, strict=True)],
            notes=_notes(kept=kept, given_up=given_up, partial=partial is not None),
        )
        # Arithmetic over many samples; other requests go on meanwhile.
        return await asyncio.to_thread(comparison, material)

    async def _judged(self, ask: Ask, moments: Sequence[int]) -> list[Judgement]:
        """By the code that answers KEDA, each moment with the samples until then."""
        judged: list[Judgement] = []
        chunk = 1 if ask.policy.stabilisation_ms else _CHUNK
        for first in range(0, len(moments), chunk):
            asks = [replace(ask, upto_ms=at, judged_at_ms=at) for at in moments[first : first + chunk]]
            judged += await self._verdicts.judge(asks)
        return judged

    async def _holds(self, ask: Ask, judged: Sequence[Judgement]) -> tuple[list[Told | None], bool]:
        """The held answer of each moment that is unknown, and whether there were too many to work them all out."""
        holds: list[Told | None] = []
        asked, given_up = 0, False
        before: Judgement | None = None
        for one in judged:
            hold = None
            if one.verdict is Verdict.UNKNOWN and one.at_ms is not None:
                if before is not None and before.at_ms == one.at_ms:
                    # No round since: the same is known, and it stands until its time is over.
                    hold = holds[-1]
                    since = None if hold is None else hold.held_since_ms
                    hold = hold if since is not None and one.now_ms - since <= ask.policy.hold_ms else None
                elif asked < _MOST_HELD:
                    asked += 1
                    hold = await self._verdicts.hold(replace(ask, upto_ms=one.now_ms, judged_at_ms=one.now_ms), one)
                else:
                    given_up = True
                before = one
            else:
                before = None
            holds.append(hold)
        return holds, given_up


def trigger_of(keys: Mapping[str, int | bool | str], policy: Policy) -> KafkaTrigger:
    """KEDA's trigger: the keys as given, else as the monitor's policy has them."""
    own = KafkaTrigger(
        lag_threshold=max(1, math.ceil(policy.target_lag)),
        activation_lag_threshold=policy.activation_lag_threshold,
        offset_reset_policy=policy.offset_reset_policy,
        scale_to_zero_on_invalid_offset=policy.scale_to_zero_on_invalid_offset,
        allow_idle_consumers=policy.allow_idle_consumers,
        limit_to_lagging=policy.limit_to_lagging,
        even_split=policy.even_split,
    )
    if policy.metric.value != "lag":
        own = replace(own, lag_threshold=KafkaTrigger().lag_threshold)
    return replace(own, **dict(keys))  # type: ignore[arg-type]  # The router checked names and kinds.


async def _span(work: TenantWork, span: Span, policy: Policy) -> tuple[int, int, int, bool]:
    """Begin, end and step, and whether a part of what was asked is not kept any more."""
    now_ms = history.milliseconds(await history.clock(work))
    end_ms = now_ms if span.end_ms is None else span.end_ms
    if end_ms > now_ms:
        raise InvalidInput([Fault("to", "lies in the future; leave it out for now")])
    begin_ms = end_ms - span.length_ms if span.begin_ms is None else span.begin_ms
    kept_since = await history.samples_since(work)
    kept = kept_since is not None and history.milliseconds(kept_since) > begin_ms
    if kept_since is not None and kept:
        begin_ms = history.milliseconds(kept_since)
    if begin_ms >= end_ms:
        text = "nothing of that time is kept any more" if kept else "must be before `to`"
        raise InvalidInput([Fault("from", f"{text}; give a later time")])
    most = min(_USUAL_MOMENTS, max(1, _USUAL_JUDGED // _behind(policy)))
    usual = max(_USUAL_STEP_MS, math.ceil((end_ms - begin_ms) / most / 1000) * 1000)
    step_ms = min(usual, end_ms - begin_ms) if span.step_ms is None else span.step_ms
    if step_ms < _LEAST_STEP_MS and span.step_ms is not None:
        raise InvalidInput([Fault("step", f"must be at least {_LEAST_STEP_MS // 1000} s")])
    if step_ms > end_ms - begin_ms:
        raise InvalidInput([Fault("step", "must not be longer than the time from `from` to `to`")])
    return begin_ms, end_ms, step_ms, kept


def _behind(policy: Policy) -> int:
    """Judgements that one moment needs."""
    return 1 + policy.stabilisation_ms // policy.sampling_ms


def _check_size(moments: int, partitions: int, policy: Policy) -> None:
    if moments > _MOST_MOMENTS:
        text = f"makes {moments:,} moments, and {_MOST_MOMENTS:,} are the most; give a longer step or a shorter time"
        raise InvalidInput([Fault("step", text)])
    if moments * _behind(policy) > _MOST_JUDGED:
        text = "is too short for stabilisation windows so long, each of which is judged anew; give a longer step"
        raise InvalidInput([Fault("step", text)])
    if moments * partitions > _MOST_SAMPLES:
        text = f"{moments:,} moments of {partitions:,} partitions are too much to read; give a longer step or a shorter time"
        raise InvalidInput([Fault("step", text)])


def _notes(*, kept: bool, given_up: bool, partial: bool) -> tuple[str, ...]:
    notes = ["KEDA's side reads one round of the samples per step, which may be up to samplingInterval old."]
    if kept:
        notes.append("Older samples are no longer kept, so the comparison begins later than was asked.")
    if given_up:
        notes.append(
            f"Held answers were worked out for the first {_MOST_HELD} unknown moments only; later ones are errors here."
        )
    if partial:
        notes.append("Only a part of the monitor's topics is measured, so both sides see that part only.")
    return tuple(notes)
