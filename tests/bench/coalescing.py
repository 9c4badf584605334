"""What coalescing is worth: verdicts a second for many callers at once, one by one and by what has queued.

`python -m tests.bench.coalescing`; the store is real, the two ways take turns in one run.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from unittest import mock

import psycopg
from rich.console import Console
from rich.table import Table

from devstack.database import Database
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.store.connection import open_pool
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.scaler.answers import snapshots
from tests.bench.verdict import BUSY, _history
from tests.conftest import migrate
from tests.support.samples import store_rows

CALLERS, MONITORS, SLOTS, ROUNDS = 64, 640, 4, 5


def main() -> None:
    """Print the table."""
    with Database() as database:
        url = database.create_database("coalescing")
        migrate(url)
        newest_ms = int(time.time()) * 1000
        with psycopg.connect(url, autocommit=True) as connection:
            for target in range(1, MONITORS + 1):
                store_rows(connection, ((1, target, row) for row in _history(newest_ms, 40, BUSY, seed=target)))
            connection.execute("analyze lag_sample")
        Console(width=100).print(asyncio.run(_measure(url, newest_ms)))


async def _measure(url: str, newest_ms: int) -> Table:
    pool = open_pool(url, "lagscale_scaler", SLOTS, application="bench")
    await pool.open(wait=True)
    policy = parse_policy({})
    requests = [VerdictRequest(1, (target,), policy, judged_at_ms=newest_ms) for target in range(1, MONITORS + 1)]
    ways = {"one by one": 1, f"what has queued, {snapshots.BATCH} at most": snapshots.BATCH}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, batch in ways.items():
            with mock.patch.object(snapshots, "BATCH", batch):
                rates[name].append(await _rate(PostgresVerdicts(pool), requests))
    await pool.close()
    first = statistics.median(next(iter(rates.values())))
    table = Table(
        title=f"{CALLERS} callers at once, {SLOTS} connections, {MONITORS} monitors, median of {ROUNDS} rounds"
    )
    for heading in ("queries hold", "verdicts/s", "x one by one"):
        table.add_column(heading)
    for name, measured_rates in rates.items():
        rate = statistics.median(measured_rates)
        table.add_row(name, f"{rate:,.0f}", f"{rate / first:.2f}")
    return table


async def _rate(store: PostgresVerdicts, requests: list[VerdictRequest]) -> float:
    """Verdicts a second while every caller asks for one monitor after the other."""
    asking = snapshots.SnapshotCache(store, slots=SLOTS, seconds=0.001, on_judgment=lambda _ask, _judgment: None)
    waiting = iter(requests * 4)

    async def caller() -> None:
        for request in waiting:
            await asking.get(request)

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    took = time.perf_counter() - began
    await asking.close()
    return 4 * len(requests) / took


if __name__ == "__main__":
    main()
