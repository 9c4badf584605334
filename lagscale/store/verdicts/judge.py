"""Judges monitors by SQL. Used by the scaler, and by the API for one tenant's monitors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from cachetools import LRUCache
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from lagscale.clock import to_datetime, to_ms
from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.keys import KEYS, PolicyKey, ValueType
from lagscale.domain.policy.policy import Metric, Policy
from lagscale.domain.verdict.contract import Answer, Island, Judgment, Reason, Verdict, VerdictRequest
from lagscale.domain.verdict.hold import pick_last_known
from lagscale.domain.verdict.stabilization import stabilize
from lagscale.domain.verdict.value import get_calm_value
from lagscale.store.connection import fetch_rows, translate_errors
from lagscale.store.queries import load
from lagscale.store.verdicts.judgment_history import EMPTY_HISTORY, JudgmentHistory, JudgmentSource, extend_history

_MILLISECOND = timedelta(milliseconds=1)
#: Sample times that the first statement of a history judges.
_FIRST_CHUNK, _WHOLE_CHUNK = 16, 256
#: Monitors whose past judgments are cached.
_CACHE_SIZE = 20_000
#: Place in `full_ask`, key and field of `Policy` of each key that the statements need.
_ASK_KEYS = [(key.ask, key, key.field) for key in KEYS if key.ask is not None and key.field is not None]

Row = dict[str, Any]


class PostgresVerdicts:
    """Judges monitors in SQL.

    The pool's connections must be in the role `lagscale_scaler`, with `plan_cache_mode = force_generic_plan` and
    `jit = off`, as `lagscale.store.connection.open_pool` opens them. Every method raises `StoreUnavailable` if the store does not answer.
    """

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self._pool = pool
        # Both are caches, which can be lost at any time. Samples do not change, so neither do judgments of the past.
        self._histories: LRUCache[VerdictRequest, JudgmentHistory] = LRUCache(_CACHE_SIZE)
        # A request that the gate did not decide last time skips it.
        self._undecided_by_gate: LRUCache[VerdictRequest, None] = LRUCache(_CACHE_SIZE)

    def forget(self) -> None:
        """Clear the cache; the next answers are the same and cost as much as the first."""
        self._histories.clear()

    async def judge(self, requests: Sequence[VerdictRequest], *, evidence: bool = False) -> list[Judgment]:
        """One judgment for each request, in order.

        `evidence` reads every sample of the lookback, so that the judgment names the island, stuck partitions and
        whether the backlog recovers. Without it the newest rows decide where they can, with the same verdict, value and
        activity.
        """
        if not requests:
            return []
        keys = [_strip_times(request) for request in requests]
        first = [_FULL if evidence else _FAST if key in self._undecided_by_gate else _GATE for key in keys]
        async with translate_errors(), self._pool.connection() as connection:
            judged = await _judge(connection, requests, first)
            for key, judgment in zip(keys, judged, strict=True):
                if judgment.reason in _DECIDED_BY_GATE:
                    self._undecided_by_gate.pop(key, None)
                else:
                    self._undecided_by_gate[key] = None
            return [
                await self._stabilize(connection, request, judgment)
                for request, judgment in zip(requests, judged, strict=True)
            ]

    async def find_last_known(self, request: VerdictRequest, judgment: Judgment) -> Answer | None:
        """The last-known answer for an unknown judgment; None when there is none."""
        policy, now_ms = request.policy, judgment.now_ms
        if policy.hold_ms == 0 or not request.target_ids or judgment.at_ms is None:
            return None

        def needed_since(determined_ms: int | None) -> int:
            # An answer known longer ago is not held any more.
            last = max(determined_ms or 0, now_ms - policy.hold_ms)
            return last - policy.hold_window_ms - policy.stabilization_ms

        async with translate_errors(), self._pool.connection() as connection:
            # A group that is empty for certain, and not because a coordinator was lost, is activated from zero.
            since = judgment.at_ms - policy.hold_window_ms
            if judgment.activates_from_zero and not await _had_members(connection, request, since, judgment.at_ms):
                return None
            # The newest determined sample time is most often the newest one, and then a few are enough.
            determined = await self._read_history(connection, request, now_ms, needed_since, first=_FIRST_CHUNK)
        return pick_last_known(stabilize(determined, policy), judgment.members, now_ms, policy)

    async def _stabilize(
        self, connection: AsyncConnection[Any], request: VerdictRequest, judgment: Judgment
    ) -> Judgment:
        """The judgment with its answer stabilized by the values of the sample times before."""
        at_ms, policy = judgment.at_ms, request.policy
        if not policy.stabilization_ms or judgment.value is None or at_ms is None:
            return judgment
        since = at_ms - policy.stabilization_ms
        determined = await self._read_history(connection, request, at_ms - 1, lambda _: since, first=_WHOLE_CHUNK)
        before = [one for one in determined if (one.at_ms or 0) >= since]
        return stabilize([*before, judgment], policy)[-1]

    async def _read_history(
        self,
        connection: AsyncConnection[Any],
        request: VerdictRequest,
        until_ms: int,
        needed_since: Callable[[int | None], int],
        *,
        first: int,
    ) -> list[Judgment]:
        """The determined judgments up to a time, each as of its own sample time; oldest first."""
        key = _strip_times(request)
        cacheable = request.upto_ms is None
        history = await extend_history(
            JudgmentSource(
                lambda since, until: _read_sample_times(connection, request, since, until),
                lambda instants: _judge_at(
                    connection, request, instants, _FAST if key in self._undecided_by_gate else _GATE
                ),
                first,
            ),
            self._histories.get(key, EMPTY_HISTORY) if cacheable else EMPTY_HISTORY,
            until_ms,
            needed_since,
            retain_ms=request.policy.hold_window_ms + request.policy.stabilization_ms,
        )
        if cacheable:
            self._histories[key] = history
        return [judgment for judgment in reversed(history.determined) if (judgment.at_ms or 0) <= until_ms]


#: From the cheapest to the one that decides everything; all give the same judgment where they give one.
_STATEMENTS = ("judge_gate", "judge_fast", "judge_time", "judge_full")
_GATE, _FAST, _TIME, _FULL = range(4)
#: A statement is skipped for a metric that it cannot decide.
_NEVER = {_FAST: Metric.TIME_LAG, _TIME: Metric.LAG}
_DECIDED_BY_GATE = frozenset({Reason.NO_BREACH, Reason.STALE, Reason.ACTIVITY_UNDETERMINED})


async def _judge(
    connection: AsyncConnection[Any], requests: Sequence[VerdictRequest], first: Sequence[int]
) -> list[Judgment]:
    """Each request by the first of `_STATEMENTS`, from its own on, that can decide it."""
    judged: dict[int, Judgment] = {}
    for step, statement in enumerate(_STATEMENTS):
        left = {
            n: request
            for n, request in enumerate(requests)
            if first[n] <= step and n not in judged and request.policy.metric is not _NEVER.get(step)
        }
        if left:
            literals = [_format_ask(n, request) for n, request in left.items()]
            rows = await fetch_rows(connection, statement, {"asks": literals}, prepare=True)
            judged |= {
                row["ask"]: _read_judgment(row, left[row["ask"]].policy)
                for row in rows
                if row["verdict"] != "undecided"
            }
    return [judged[n] for n in range(len(requests))]


def _strip_times(request: VerdictRequest) -> VerdictRequest:
    return replace(request, upto_ms=None, judged_at_ms=None)


async def _judge_at(
    connection: AsyncConnection[Any], request: VerdictRequest, instants: Sequence[int], first: int
) -> list[Judgment]:
    """The request as of each of these times, with the samples until then."""
    requests = [replace(request, upto_ms=at, judged_at_ms=at) for at in instants]
    return await _judge(connection, requests, [first] * len(requests))


async def _read_sample_times(
    connection: AsyncConnection[Any], request: VerdictRequest, from_ms: int, now_ms: int
) -> list[int]:
    upto = now_ms if request.upto_ms is None else min(request.upto_ms, now_ms)
    cursor = await connection.execute(
        load("sample_times"),
        {
            "tenant": request.tenant_id,
            "targets": list(request.target_ids),
            "since": to_datetime(from_ms),
            "until": to_datetime(upto),
        },
        prepare=True,
    )
    return [to_ms(row[0]) for row in await cursor.fetchall()]


async def _had_members(connection: AsyncConnection[Any], request: VerdictRequest, since_ms: int, until_ms: int) -> bool:
    parameters = {
        "tenant": request.tenant_id,
        "targets": list(request.target_ids),
        "since": to_datetime(since_ms),
        "until": to_datetime(until_ms),
    }
    cursor = await connection.execute(load("had_members"), parameters, prepare=True)
    row = await cursor.fetchone()
    return row is not None and bool(row[0])


def _format_ask(number: int, request: VerdictRequest) -> str:
    """A request as text of the composite type `full_ask`, in the order of its columns.

    Registered composites would ask the server for the type on each connection, and need the same order of columns.
    """
    policy = request.policy
    values = {place: _encode(key, getattr(policy, field)) for place, key, field in _ASK_KEYS}
    values |= {
        0: number,
        1: request.tenant_id,
        2: '"{' + ",".join(map(str, request.target_ids)) + '}"',
        3: "" if request.upto_ms is None else f'"{to_datetime(request.upto_ms).isoformat()}"',
        4: "" if request.judged_at_ms is None else f'"{to_datetime(request.judged_at_ms).isoformat()}"',
        13: policy.lookback_ms,
    }
    return "(" + ",".join(str(values[place]) for place in range(len(values))) + ")"


def _encode(key: PolicyKey, value: object) -> object:
    """A choice, of two so far, is sent as whether it is not the default."""
    return value != key.default if key.value_type is ValueType.CHOICE else value


def _read_judgment(row: Row, policy: Policy) -> Judgment:
    at: datetime | None = row["at"]
    verdict = Verdict(row["verdict"])
    # Statements give the value of sustained lag; that of a calm group is not theirs to know.
    value = get_calm_value(policy, active=row["active"]) if verdict is Verdict.CALM else row["value"]
    return Judgment(
        verdict=verdict,
        reason=Reason(row["reason"]),
        value=value,
        raw=value,
        scale_up_value=value,
        active=row["active"],
        at_ms=None if at is None else to_ms(at),
        now_ms=to_ms(row["now_at"]),
        total=int(row["total"] or 0),
        partitions=int(row["partitions"] or 0),
        missing=int(row["missing"] or 0),
        incomplete=row["incomplete"] or False,
        lagging=int(row["lagging"] or 0),
        stuck=tuple(zip(row.get("stuck_targets") or (), row.get("stuck_partitions") or (), strict=True)),
        stuck_lag=int(row.get("stuck_lag") or 0),
        recovering=row.get("recovering", False),
        time_lag=_read_time_lag(row),
        members=row["members"],
        activates_from_zero=row.get("activates_from_zero", False),
        island=_read_island(row) if row.get("island_since") is not None else None,
        absent=tuple(sorted(row["absent"] or ())),
    )


def _read_time_lag(row: Row) -> TimeLag | None:
    if row.get("time_lag_lower") is None:
        return None
    return TimeLag(row["time_lag_lower"], row["time_lag_estimate"], row["time_lag_upper"])


def _read_island(row: Row) -> Island:
    span: timedelta = row["island_span"]
    return Island(
        row["island_target"],
        row["island_partition"],
        int(row["island_lag"]),
        to_ms(row["island_since"]),
        span // _MILLISECOND,
        row["island_start_known"],
    )
