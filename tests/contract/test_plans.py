"""Every statement compiles against the migrated schema, and those that judge read by the key, however samples lie.

A verdict must not become dear when a chunk is new and empty, when there are five of them, or before anybody analyzed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import psycopg
import pytest
from psycopg import sql

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Sample
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import VerdictRequest
from lagscale.store.connection import Pool, open_pool
from lagscale.store.queries import load, number_parameters, statements
from lagscale.store.samples.write import _STAGE
from lagscale.store.verdicts.judge import _STATEMENTS, _format_ask
from tests.contract.histories import BEGIN_MS
from tests.support.samples import as_rows, store_rows

pytestmark = pytest.mark.contract

_HOUR_MS = 3_600_000
_INTERVAL_MS = 10_000
STATEMENTS = sorted(name for name in statements() if not name.startswith("part_"))
#: Lag of each of twelve partitions in each round, and the policy.
SHAPES: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "idle": (0, {}),
    "lasting": (5_000, {}),
    "stuck": (5_000, {"stuckAfterSeconds": "300"}),
    "draining": (5_000, {"drainSeconds": "60"}),
    "time lag": (15_000, {"metric": "timeLag", "lagThreshold": "120"}),
    "total": (5_000, {"persistenceScope": "total"}),
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_statement_compiles(statement: str, shared_url: str) -> None:
    with psycopg.connect(shared_url) as connection:
        connection.execute(_STAGE)
        plan = connection.execute(
            f"explain (generic_plan, format json) {number_parameters(load(statement))}"
        ).fetchone()
    assert plan is not None
    assert plan[0][0]["Plan"]["Node Type"]


@pytest.fixture
async def pool(migrated_url: str) -> AsyncIterator[Pool]:
    """Connections as the scaler opens them, to a database of its own: chunks are counted."""
    opened = open_pool(migrated_url, "lagscale_scaler", 1, application="plans")
    await opened.open(wait=True)
    try:
        yield opened
    finally:
        await opened.close()


def fill(url: str, hours: int) -> dict[str, int]:
    """A history of so many hours for each shape; its target."""
    targets = {name: number for number, name in enumerate(SHAPES, 1)}
    count = hours * _HOUR_MS // _INTERVAL_MS
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("truncate lag_sample")
        for name, (lag, _) in SHAPES.items():
            rounds = (
                TargetRound(
                    BEGIN_MS - (count - 1 - k) * _INTERVAL_MS,
                    0,
                    tuple(Sample(lag, 100_000 + 500 * k + lag) for _ in range(12)),
                    members=3,
                    members_age_ms=0,
                )
                for k in range(count)
            )
            store_rows(connection, ((1, targets[name], row) for row in as_rows(rounds)))
    return targets


async def explained(pool: Pool, statement: str, request: VerdictRequest) -> dict[str, Any]:
    """The plan as it was executed."""
    async with pool.connection() as connection:
        await connection.execute(f"prepare judged as {number_parameters(load(statement))}")
        query = sql.SQL("explain (analyze, buffers, format json) execute judged({})").format([_format_ask(0, request)])
        row = await (await connection.execute(query)).fetchone()
        await connection.execute("deallocate judged")
    assert row is not None
    return dict(json.loads(row[0])[0]["Plan"] if isinstance(row[0], str) else row[0][0]["Plan"])


def accesses(plan: Mapping[str, Any]) -> Counter[str]:
    """By which kind of scan and which index samples are read, at how many places; chunks are not counted."""
    found: Counter[str] = Counter()
    node = str(plan["Node Type"])
    if node == "Custom Scan" or node.endswith("Append"):
        # The chunks of one place.
        return Counter(dict.fromkeys(set().union(*(accesses(part) for part in plan.get("Plans", ()))), 1))
    for part in plan.get("Plans", ()):
        found += accesses(part)
    if "Index Name" in plan or "Relation Name" in plan:
        # A chunk's index has the chunk's number before its name.
        found[f"{node} by {re.sub(r'^[0-9]+_[0-9]+_', '', str(plan.get('Index Name')))}"] += 1
    return found


def buffers(plan: Mapping[str, Any]) -> int:
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def ways() -> Iterator[tuple[str, str]]:
    for statement in _STATEMENTS:
        for name in SHAPES:
            if statement != "judge_time" or name == "time lag":
                yield statement, name


@pytest.mark.timeout(240)
async def test_samples_are_read_in_the_same_way_however_they_lie(pool: Pool, migrated_url: str) -> None:
    found: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}

    async def look(state: str, targets: Mapping[str, int]) -> None:
        for statement, name in ways():
            request = VerdictRequest(1, (targets[name],), parse_policy(SHAPES[name][1]), judged_at_ms=BEGIN_MS)
            plan = await explained(pool, statement, request)
            found.setdefault((statement, name), {})[state] = plan

    targets = fill(migrated_url, 2)
    await look("one chunk", targets)
    execute(migrated_url, "analyze lag_sample")
    await look("one chunk, analyzed", targets)
    targets = fill(migrated_url, 26)
    await look("five chunks", targets)
    execute(migrated_url, "analyze lag_sample")
    await look("five chunks, analyzed", targets)
    beyond = TargetRound(BEGIN_MS + 7 * _HOUR_MS, 0, (Sample(0, 0),), members=3, members_age_ms=0)
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        store_rows(connection, ((1, 1, row) for row in as_rows([beyond])))
        connection.execute("delete from lag_sample where ts > to_timestamp(%s)", [BEGIN_MS / 1000])
    await look("an empty newest chunk", targets)

    for way, plans in found.items():
        first = plans["one chunk, analyzed"]
        for state, plan in plans.items():
            assert accesses(plan) == accesses(first), f"{way}, {state}"
            assert all(access.startswith("Index") for access in accesses(plan)), f"{way}, {state}: {accesses(plan)}"
            # A first look at a table reads some of the catalog.
            assert buffers(plan) <= 2 * buffers(first) + 20, f"{way}, {state}: {buffers(plan)} <> {buffers(first)}"


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
