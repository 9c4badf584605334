"""What a verdict costs the database: server CPU of one backend, each figure beside `select 1` of the same run.

`python -m tests.bench.verdict`; the plain form is the textbook gaps-and-islands with two row numbers.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console
from rich.table import Table

from devstack.database import Database
from lagscale.domain.lag import Sample
from lagscale.domain.markers import Row, TargetRound
from lagscale.domain.policy import Policy
from lagscale.domain.signal import Ask
from lagscale.store.pool import open_pool
from lagscale.store.postgres import PostgresVerdicts
from tests.conftest import migrate
from tests.samples import as_rows, store_rows

PARTITIONS, INTERVAL_MS, HOURS = 12, 10_000, 2
FLEET = 1_000
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
        Console().print(asyncio.run(_measure(url, newest_ms)))


SHAPES: dict[str, tuple[int, Callable[[int, random.Random], list[int]], int]] = {
    "idle": (1, lambda _k, _dice: [0] * PARTITIONS, 0),
    "keeps up": (2, lambda _k, dice: [dice.randint(0, 50) for _ in range(PARTITIONS)], 3),
    "sustained": (3, lambda _k, dice: [5_000 + dice.randint(0, 50) for _ in range(PARTITIONS)], 3),
    "spike, not yet": (4, lambda k, _dice: [0 if k % 7 == 0 else 5_000] * PARTITIONS, 3),
    "in turns (slow path)": (5, lambda k, _dice: [900 if n == k // 9 % 12 else 0 for n in range(PARTITIONS)], 3),
}


def _fill(connection: psycopg.Connection[Any], newest_ms: int) -> None:
    count = HOURS * 3_600_000 // INTERVAL_MS
    for target, lags, members in SHAPES.values():
        store_rows(connection, ((1, target, row) for row in _history(newest_ms, count, lags, members)))
    for target in range(100, 100 + FLEET):
        _target, lags, members = SHAPES["keeps up"]
        store_rows(connection, ((1, target, row) for row in _history(newest_ms, 60, lags, members, seed=target)))


def _history(
    newest_ms: int, count: int, lags: Callable[[int, random.Random], list[int]], members: int, seed: int = 1
) -> list[Row]:
    dice = random.Random(seed)
    return as_rows(
        TargetRound(
            newest_ms - (count - 1 - k) * INTERVAL_MS,
            0,
            tuple(Sample(lag, 100_000 + lag) for lag in lags(k, dice)),
            members=members,
            members_age_ms=0,
        )
        for k in range(count)
    )


async def _measure(url: str, newest_ms: int) -> Table:
    policy = Policy.parse({})
    assert policy.sustain_ms == 120_000
    pool = open_pool(url, "lagscale_scaler", 1, application="bench")
    await pool.open(wait=True)
    async with pool.connection() as connection:
        pid = connection.info.backend_pid
    verdicts = PostgresVerdicts(pool)

    def judged(*targets: int, evidence: bool = False) -> Callable[[], Awaitable[object]]:
        asks = [Ask(1, (target,), policy, judged_at_ms=newest_ms) for target in targets]
        return lambda: verdicts.judge(asks, evidence=evidence)

    async def execute(query: str, parameters: dict[str, object]) -> None:
        async with pool.connection() as connection:
            await (await connection.execute(query, parameters, prepare=True)).fetchall()

    plain = {"target": 3, "since": _timestamp(newest_ms - 300_000)}
    rows: list[tuple[str, float, int]] = []
    base = await _cpu(pid, lambda: execute("select 1", {}))
    rows.append(("select 1", base, 1))
    rows.append(("plain islands with row_number", await _cpu(pid, lambda: execute(_PLAIN, plain)), 1))
    for name, (target, _lags, _members) in SHAPES.items():
        rows.append((name, await _cpu(pid, judged(target)), 1))
    rows.append(("sustained, every sample (evidence)", await _cpu(pid, judged(3, evidence=True)), 1))
    fleet = judged(*range(100, 100 + FLEET))
    rows.append((f"{FLEET} that keep up, one statement", await _cpu(pid, fleet, 20), FLEET))
    await pool.close()
    return _table(rows, base)


def _timestamp(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S+00", time.gmtime(at_ms / 1000))


async def _cpu(pid: int, work: Callable[[], Awaitable[object]], times: int = 400) -> float:
    """Milliseconds of the backend's CPU for one run: the median of five series, after a warm-up."""
    for _ in range(10):
        await work()
    series = []
    for _ in range(5):
        before = _spent(pid)
        for _ in range(max(1, times // 5)):
            await work()
        series.append((_spent(pid) - before) / max(1, times // 5) / 1e6)
    return sorted(series)[2]


def _spent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def _table(rows: Sequence[tuple[str, float, int]], base: float) -> Table:
    table = Table(title=f"Server CPU of a verdict: {PARTITIONS} partitions, sustain 120 s, all defaults")
    table.add_column("case")
    for heading in ("ms", "x select 1", "us per monitor"):
        table.add_column(heading, justify="right")
    for name, cost, monitors in rows:
        table.add_row(name, f"{cost:.3f}", f"{cost / base:.1f}", f"{cost / monitors * 1000:.1f}")
    return table


if __name__ == "__main__":
    main()
