"""What a verdict costs the database: server CPU of one backend, each figure beside `select 1` of the same run.

`python -m tests.bench.verdict`; the plain form is the textbook gaps-and-islands with two row numbers.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from devstack.database import Database
from lagscale.domain.lag.rounds import SampleRow, TargetRound
from lagscale.domain.lag.samples import Sample
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.store.connection import open_pool
from lagscale.store.verdicts.judge import PostgresVerdicts
from tests.conftest import migrate
from tests.support.samples import as_rows, store_rows

PARTITIONS, WIDE, INTERVAL_MS, HOURS = 12, 1_000, 10_000, 2
FLEET = 1_000
#: `select 1` where the bars were set, in ms.
BASE_MS = 0.021
_SERIES, _NOTHINGS = 9, 50
Work = Callable[[], Awaitable[object]]
_PLAIN = """
select max(n) from (
  select part, count(*) as n
  from (
    select p.part, p.lag > 500 as breach,
      row_number() over (partition by p.part order by r.ts)
      - row_number() over (partition by p.part, p.lag > 500 order by r.ts) as island
    from every_lag_sample as r cross join lateral unnest(r.lags) with ordinality as p (lag, part)
    where r.target_id = %(target)s::int and r.tenant_id = 1 and r.ts > %(since)s::timestamptz
  ) as numbered
  where breach group by part, island
) as islands
"""


def main() -> None:
    """Print the table."""
    with Database() as database:
        url = database.create_database("bench")
        migrate(url)
        newest_ms = int(time.time()) * 1000
        with psycopg.connect(url, autocommit=True) as connection:
            _fill(connection, newest_ms)
            connection.execute("analyze lag_sample")
        Console(width=120).print(asyncio.run(_measure(url, newest_ms)))


@dataclass(frozen=True, slots=True)
class Shape:
    """A target's samples: lag of each partition in the k-th of its rounds, and the group's members."""

    target: int
    lags: Callable[[int, random.Random], list[int]]
    members: int = 3
    #: Messages between two rounds; 0 where nobody commits.
    advances: int = 500


def _constant(lag: int, partitions: int = PARTITIONS) -> Callable[[int, random.Random], list[int]]:
    return lambda _k, dice: [lag + dice.randint(0, 50) for _ in range(partitions)]


def _in_turns(partitions: int) -> Callable[[int, random.Random], list[int]]:
    return lambda k, _dice: [900 if n % 12 == k // 9 % 12 else 0 for n in range(partitions)]


IDLE = Shape(1, lambda _k, _dice: [0] * PARTITIONS, 0, 0)
BUSY = Shape(2, _constant(0))
LASTING = Shape(3, _constant(5_000))
SPIKE = Shape(4, lambda k, _dice: [0 if k % 7 == 0 else 5_000] * PARTITIONS)
TURNS = Shape(5, _in_turns(PARTITIONS))
STUCK = Shape(6, lambda k, _dice: [5_000 + k] * PARTITIONS, 3, 0)
WAITING = Shape(10, _constant(15_000))
WIDE_BUSY = Shape(7, _constant(0, WIDE))
WIDE_LASTING = Shape(8, _constant(5_000, WIDE))
WIDE_TURNS = Shape(9, _in_turns(WIDE))
SHAPES = (IDLE, BUSY, LASTING, SPIKE, TURNS, STUCK, WAITING, WIDE_BUSY, WIDE_LASTING, WIDE_TURNS)
#: First targets of fleets of `FLEET` monitors.
FLEETS = {1_000: BUSY, 3_000: LASTING}


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured: `select 1` was 0.021 ms where the bar was set, so the bar is kept as a ratio to it."""

    name: str
    targets: Sequence[int]
    bar_ms: float | None = None
    policy: Mapping[str, str] = field(default_factory=dict)
    evidence: bool = False
    times: int = 400


SECONDS = {"metric": "timeLag", "lagThreshold": "120"}
_EACH = range(FLEET)
CASES = (
    Case("idle", [1], 0.3),
    Case("keeps up", [2], 0.3),
    Case("sustained", [3], 0.45),
    Case("spike, not yet", [4]),
    Case("in turns (slow path)", [5]),
    Case("sustained, every sample (evidence)", [3], evidence=True),
    Case("stuckAfterSeconds 300, keeps up", [2], 0.25, {"stuckAfterSeconds": "300"}),
    Case("stuckAfterSeconds 300, sustained", [3], None, {"stuckAfterSeconds": "300"}),
    Case("stuckAfterSeconds 300, stuck", [6], None, {"stuckAfterSeconds": "300"}),
    Case("drainSeconds 120, sustained", [3], None, {"drainSeconds": "120"}),
    Case("stabilized over 31 instants", [3], 2.5, {"scaleUpStabilization": "300"}),
    Case("time lag 0 to 20 s, keeps up", [2], 0.8, SECONDS),
    Case("time lag 300 s, threshold 120 s, sustained", [10], 0.8, SECONDS),
    Case("1,000 partitions, keeps up", [7], 0.3),
    Case("1,000 partitions, sustained", [8], 1.5),
    Case("1,000 partitions, slow path", [9], 110, times=20),
    Case("1,000 monitors that keep up", [1_000 + n for n in _EACH], 0.02, times=20),
    Case("1,000 monitors with sustained lag", [3_000 + n for n in _EACH], 0.08, times=10),
    Case(
        "1,000 monitors, one in ten sustained", [(3_000 if n % 10 == 0 else 1_000) + n for n in _EACH], 0.04, times=10
    ),
)


def _fill(connection: psycopg.Connection[Any], newest_ms: int) -> None:
    for shape in SHAPES:
        count = 60 if shape in (WIDE_BUSY, WIDE_LASTING, WIDE_TURNS) else HOURS * 3_600_000 // INTERVAL_MS
        store_rows(connection, ((1, shape.target, row) for row in _history(newest_ms, count, shape)))
    for first, shape in FLEETS.items():
        for target in range(first, first + FLEET):
            store_rows(connection, ((1, target, row) for row in _history(newest_ms, 60, shape, seed=target)))


def _history(newest_ms: int, count: int, shape: Shape, seed: int = 1) -> list[SampleRow]:
    dice = random.Random(seed)
    return as_rows(
        TargetRound(
            newest_ms - (count - 1 - k) * INTERVAL_MS,
            0,
            tuple(Sample(lag, 100_000 + k * shape.advances + lag) for lag in shape.lags(k, dice)),
            members=shape.members,
            members_age_ms=0,
        )
        for k in range(count)
    )


async def _measure(url: str, newest_ms: int) -> Table:
    pool = open_pool(url, "lagscale_scaler", 1, application="bench")
    await pool.open(wait=True)
    async with pool.connection() as connection:
        pid = connection.info.backend_pid

    def judged(case: Case) -> Callable[[], Awaitable[object]]:
        verdicts = PostgresVerdicts(pool)
        requests = [
            VerdictRequest(1, (target,), parse_policy(case.policy), judged_at_ms=newest_ms) for target in case.targets
        ]

        async def judge() -> object:
            # As a replica that just started: what it remembers of the past would spare it most of the work.
            verdicts.forget()
            return await verdicts.judge(requests, evidence=case.evidence)

        return judge

    async def execute(query: str, parameters: dict[str, object]) -> None:
        async with pool.connection() as connection:
            await (await connection.execute(query, parameters, prepare=True)).fetchall()

    plain = {"target": 3, "since": _timestamp(newest_ms - 300_000)}

    async def nothing() -> object:
        return await execute("select 1", {})

    rows = [(Case("select 1", [0]), await _cost(pid, nothing, nothing))]
    rows.append((Case("plain islands with row_number", [3]), await _cost(pid, lambda: execute(_PLAIN, plain), nothing)))
    rows += [(case, await _cost(pid, judged(case), nothing, case.times)) for case in CASES]
    await pool.close()
    return _table(rows)


def _timestamp(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(at_ms / 1000))


@dataclass(frozen=True)
class Cost:
    """The backend's CPU for one run, in milliseconds and as a multiple of `select 1`."""

    ms: float
    ratio: float


async def _cost(pid: int, work: Work, nothing: Work, times: int = 400) -> Cost:
    """Medians of nine series, each beside one of `select 1`: a machine's speed changes within a second."""
    for _ in range(10):
        await work()
    costs, ratios = [], []
    for _ in range(_SERIES):
        base = await _cpu(pid, nothing, _NOTHINGS)
        cost = await _cpu(pid, work, max(1, times // _SERIES))
        base = (base + await _cpu(pid, nothing, _NOTHINGS)) / 2
        costs.append(cost)
        ratios.append(cost / base)
    return Cost(statistics.median(costs), statistics.median(ratios))


async def _cpu(pid: int, work: Work, times: int) -> float:
    before = _spent(pid)
    for _ in range(times):
        await work()
    return (_spent(pid) - before) / times / 1e6


def _spent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def _table(rows: Sequence[tuple[Case, Cost]]) -> Table:
    table = Table(title=f"Server CPU of a verdict: {PARTITIONS} partitions, sustain 120 s, all defaults")
    table.add_column("case")
    for heading in ("ms", "us per monitor", "x select 1", "bar", "x plain"):
        table.add_column(heading, justify="right")
    plain = rows[1][1].ms
    for case, cost in rows:
        each, ratio = cost.ms / len(case.targets), cost.ratio / len(case.targets)
        bar = "" if case.bar_ms is None else f"{case.bar_ms / BASE_MS:.1f}"
        over = case.bar_ms is not None and ratio > case.bar_ms / BASE_MS
        style = "red" if over else None
        figures = (f"{cost.ms:.3f}", f"{each * 1000:.1f}", f"{ratio:.2f}", bar, f"{each / plain:.2f}")
        table.add_row(case.name, *figures, style=style)
    return table


if __name__ == "__main__":
    main()
