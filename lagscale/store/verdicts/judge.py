"""The async adapter of `VerdictStore`: judges by SQL. Used by the scaler, and by the API for one tenant's monitors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from cachetools import LRUCache
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from lagscale.domain.lag.time_lag import TimeLag
from lagscale.domain.policy.policy import Metric, OffsetResetPolicy, PersistenceScope
from lagscale.domain.verdict.contract import Ask, Island, Judgement, Reason, Told, Verdict, held
from lagscale.domain.verdict.stabilization import stabilised
from lagscale.store.faults import translated
from lagscale.store.queries import load
from lagscale.store.verdicts.judgment_history import NOTHING, Instants, Past, look_back

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
#: Past instants judged in one statement, to begin with.
_FEW, _ALL = 16, 256
#: Monitors whose past judgements are remembered.
_REMEMBERED = 20_000

Row = dict[str, Any]


class PostgresVerdicts:
    """Judges monitors in SQL.

    The pool's connections must be in the role `lagscale_scaler`, with `plan_cache_mode = force_generic_plan` and
    `jit = off`, as `lagscale.store.registrations.load` opens them.
    """

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        self._pool = pool
        # Both are memos, which can be lost at any time. Samples do not change, so neither do judgements of the past.
        self._past: LRUCache[Ask, Past] = LRUCache(_REMEMBERED)
        # What the gate could not decide last time is not asked of the gate first.
        self._hot: LRUCache[Ask, None] = LRUCache(_REMEMBERED)

    def forget(self) -> None:
        """Lose what is remembered of earlier asks; the next answers are the same, at the price of a first one."""
        self._past.clear()

    async def judge(self, asks: Sequence[Ask], *, evidence: bool = False) -> list[Judgement]:
        """One judgement for each ask, in order.

        Args:
            asks: the monitors.
            evidence: read every sample of the lookback, so that the judgement names the island, what is stuck and what
                drains. Without it the newest rows decide where they can, with the same verdict, value and activity.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        if not asks:
            return []
        keys = [_timeless(ask) for ask in asks]
        first = [_FULL if evidence else _FAST if key in self._hot else _GATE for key in keys]
        async with translated(), self._pool.connection() as connection:
            judged = await _judge(connection, asks, first)
            for key, judgement in zip(keys, judged, strict=True):
                if judgement.reason in _TOLD_BY_GATE:
                    self._hot.pop(key, None)
                else:
                    self._hot[key] = None
            return [
                await self._stabilised(connection, ask, judgement) for ask, judgement in zip(asks, judged, strict=True)
            ]

    async def hold(self, ask: Ask, judgement: Judgement) -> Told | None:
        """The held answer for an unknown judgement; None when there is nothing to hold.

        Raises:
            StoreUnavailable: the store did not answer.
        """
        policy, now_ms = ask.policy, judgement.now_ms
        if policy.hold_ms == 0 or not ask.target_ids or judgement.at_ms is None:
            return None

        def reach(known_ms: int | None) -> int:
            # What was known longer ago is not held any more.
            last = max(known_ms or 0, now_ms - policy.hold_ms)
            return last - policy.hold_window_ms - policy.stabilisation_ms

        async with translated(), self._pool.connection() as connection:
            # The newest known instant is most often the newest one, and then a few are enough.
            known = await self._look_back(connection, ask, now_ms, reach, first=_FEW)
        return held(stabilised(known, policy), judgement.members, now_ms, policy)

    async def _stabilised(self, connection: AsyncConnection[Any], ask: Ask, judgement: Judgement) -> Judgement:
        """The judgement with its answer stabilised by the values of the instants before."""
        at_ms, policy = judgement.at_ms, ask.policy
        if not policy.stabilisation_ms or judgement.value is None or at_ms is None:
            return judgement
        since = at_ms - policy.stabilisation_ms
        known = await self._look_back(connection, ask, at_ms - 1, lambda _: since, first=_ALL)
        before = [one for one in known if (one.at_ms or 0) >= since]
        return stabilised([*before, judgement], policy)[-1]

    async def _look_back(
        self,
        connection: AsyncConnection[Any],
        ask: Ask,
        until_ms: int,
        reach: Callable[[int | None], int],
        *,
        first: int,
    ) -> list[Judgement]:
        """The known judgements up to an instant, each as asked at its own sample time; oldest first."""
        key = _timeless(ask)
        remembered = ask.upto_ms is None
        past = await look_back(
            Instants(
                lambda since, until: _instants(connection, ask, since, until),
                lambda instants: _judge_at(connection, ask, instants, _FAST if key in self._hot else _GATE),
                first,
            ),
            self._past.get(key, NOTHING) if remembered else NOTHING,
            until_ms,
            reach,
            keep_ms=ask.policy.hold_window_ms + ask.policy.stabilisation_ms,
        )
        if remembered:
            self._past[key] = past
        return [judgement for judgement in reversed(past.known) if (judgement.at_ms or 0) <= until_ms]


#: From the cheapest to the one that decides everything; all give the same judgement where they give one.
_STATEMENTS = ("judge_gate", "judge_fast", "judge_time", "judge_full")
_GATE, _FAST, _TIME, _FULL = range(4)
#: What a statement cannot decide is not asked of it.
_NEVER = {_FAST: Metric.TIME_LAG, _TIME: Metric.LAG}
_TOLD_BY_GATE = frozenset({Reason.NO_BREACH, Reason.STALE, Reason.ACTIVITY_UNTOLD})


async def _judge(connection: AsyncConnection[Any], asks: Sequence[Ask], first: Sequence[int]) -> list[Judgement]:
    """Each ask by the first of `_STATEMENTS`, from its own on, that can decide it."""
    judged: dict[int, Judgement] = {}
    for step, statement in enumerate(_STATEMENTS):
        left = {
            n: ask
            for n, ask in enumerate(asks)
            if first[n] <= step and n not in judged and ask.policy.metric is not _NEVER.get(step)
        }
        if left:
            rows = await _run(connection, statement, left)
            judged |= {row["ask"]: _judgement(row) for row in rows if row["verdict"] != "undecided"}
    return [judged[n] for n in range(len(asks))]


def _timeless(ask: Ask) -> Ask:
    return replace(ask, upto_ms=None, judged_at_ms=None)


async def _judge_at(connection: AsyncConnection[Any], ask: Ask, instants: Sequence[int], first: int) -> list[Judgement]:
    """The ask as of each of these times, with the samples until then."""
    asks = [replace(ask, upto_ms=at, judged_at_ms=at) for at in instants]
    return await _judge(connection, asks, [first] * len(asks))


async def _instants(connection: AsyncConnection[Any], ask: Ask, from_ms: int, now_ms: int) -> list[int]:
    upto = now_ms if ask.upto_ms is None else min(ask.upto_ms, now_ms)
    cursor = await connection.execute(
        load("sample_times"),
        {"tenant": ask.tenant_id, "targets": list(ask.target_ids), "since": _moment(from_ms), "until": _moment(upto)},
        prepare=True,
    )
    return [_ms(row[0]) for row in await cursor.fetchall()]


async def _run(connection: AsyncConnection[Any], query: str, asks: dict[int, Ask]) -> list[Row]:
    literals = [_literal(number, ask) for number, ask in asks.items()]
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(load(query), {"asks": literals}, prepare=True)
        return await cursor.fetchall()


def _literal(number: int, ask: Ask) -> str:
    """An ask as text of the composite type `full_ask`, in the order of its columns."""
    policy = ask.policy
    fields: tuple[object, ...] = (
        number,
        ask.tenant_id,
        '"{' + ",".join(map(str, ask.target_ids)) + '}"',
        "" if ask.upto_ms is None else f'"{_moment(ask.upto_ms).isoformat()}"',
        "" if ask.judged_at_ms is None else f'"{_moment(ask.judged_at_ms).isoformat()}"',
        policy.lag_threshold,
        policy.target_lag,
        policy.sustain_ms,
        policy.max_gap_ms,
        policy.stale_after_ms,
        policy.activation_lag_threshold,
        policy.activation_sustain_ms,
        policy.work_ms,
        policy.lookback_ms,
        policy.persistence_scope is PersistenceScope.TOTAL,
        policy.offset_reset_policy is OffsetResetPolicy.EARLIEST,
        policy.scale_to_zero_on_invalid_offset,
        policy.allow_idle_consumers,
        policy.consumers_per_replica,
        policy.limit_to_lagging,
        policy.even_split,
        policy.stuck_after_ms,
        policy.drain_ms,
        policy.metric is Metric.TIME_LAG,
    )
    return "(" + ",".join(map(str, fields)) + ")"


def _judgement(row: Row) -> Judgement:
    at: datetime | None = row["at"]
    return Judgement(
        verdict=Verdict(row["verdict"]),
        reason=Reason(row["reason"]),
        value=row["value"],
        raw=row["value"],
        risen=row["value"],
        active=row["active"],
        at_ms=None if at is None else _ms(at),
        now_ms=_ms(row["now_at"]),
        total=int(row["total"] or 0),
        partitions=int(row["partitions"] or 0),
        missing=int(row["missing"] or 0),
        incomplete=row["incomplete"] or False,
        lagging=int(row["lagging"] or 0),
        stuck=tuple(zip(row.get("stuck_targets") or (), row.get("stuck_partitions") or (), strict=True)),
        stuck_lag=int(row.get("stuck_lag") or 0),
        draining=row.get("draining", False),
        time_lag=_time_lag(row),
        members=row["members"],
        wakes=row.get("wakes", False),
        island=_island(row) if row.get("island_since") is not None else None,
        absent=tuple(sorted(row["absent"] or ())),
    )


def _time_lag(row: Row) -> TimeLag | None:
    if row.get("wait_lower") is None:
        return None
    return TimeLag(row["wait_lower"], row["wait_estimate"], row["wait_upper"])


def _island(row: Row) -> Island:
    span: timedelta = row["island_span"]
    return Island(
        row["island_target"],
        row["island_partition"],
        int(row["island_lag"]),
        _ms(row["island_since"]),
        span // _MILLISECOND,
        row["island_bounded"],
    )


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND


def _moment(ms: int) -> datetime:
    return _EPOCH + ms * _MILLISECOND
