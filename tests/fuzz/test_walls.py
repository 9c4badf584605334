"""Two tenants with equally named everything, over REST, gRPC and SQL: nothing of one ever reaches the other."""

from __future__ import annotations

import os
import random as seeds
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import grpc
import httpx
import psycopg
import pytest
from psycopg import sql

from lagscale.store.decisions import PostgresDecisions
from lagscale.store.freezes import PostgresFreezes
from lagscale.store.pool import open_pool
from lagscale.store.postgres import PostgresVerdicts
from lagscale.store.registrations import PostgresRegistrations
from services.scaler.process import Parts, Scaler
from services.scaler.proto import externalscaler_pb2 as pb
from services.scaler.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.settings import ScalerSettings
from tests.fuzz.random_requests import RandomRequests
from tests.fuzz.walled_tenants import MONITORS, Walled, fingerprint, tables_of
from tests.integration.api.conftest import api, looks  # noqa: F401
from tests.integration.scaler.conftest import eventually

#: In CI; `make fuzz` asks for 100,000.
REQUESTS = max(20_000, int(os.environ.get("LAGSCALE_FUZZ_EXAMPLES", "5000")))
#: Requests of one tenant before the other one's rows are looked at.
BLOCK = 500
pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300 + REQUESTS // 20)]


@pytest.fixture
async def pair(api: httpx.AsyncClient, shared_url: str) -> tuple[Walled, Walled]:  # noqa: F811
    """Two tenants that differ in what they hold, and in no name of it."""
    return await Walled.made(api, shared_url, 771_377_717), await Walled.made(api, shared_url, 393_939_919)


async def test_no_request_shows_or_changes_another_tenants_rows(
    api: httpx.AsyncClient,  # noqa: F811
    pair: tuple[Walled, Walled],
    shared_url: str,
) -> None:
    document = (await api.get("/openapi.json")).json()
    seed = seeds.getrandbits(32)
    random, answered = Random(seed), Counter[int]()
    for number in range(REQUESTS * 6 // 10 // BLOCK):
        mine, theirs = pair if number % 2 else pair[::-1]
        await mine.refill()
        before = fingerprint(shared_url, theirs.name)
        requests = RandomRequests(random, document, mine, theirs)
        for _ in range(BLOCK // 2):
            request = requests.next()
            foreign = await request.send(api, theirs.name)
            missing = await request.send(api, "t-000000000000") if request.of_a_tenant else foreign
            own = await request.send(api, mine.name)
            where = f"seed {seed}: {request}"
            assert (foreign.status_code, foreign.content) == (missing.status_code, missing.content), where
            assert foreign.status_code >= 400 or not request.of_a_tenant, f"{where}: {foreign.text}"
            for answer in (foreign, own):
                told = answer.text + str(answer.headers)
                assert not [mark for mark in theirs.marks if mark in told], f"{where}: {told}"
                assert answer.status_code != 500, f"{where}: {told}"
            requests.learn(own)
            answered[own.status_code] += 1
        assert fingerprint(shared_url, theirs.name) == before, f"seed {seed}"
    assert answered[200] > sum(answered.values()) // 10, answered
    assert min(answered[404], answered[422], answered[204] + answered[201]) > 0, answered


@pytest.fixture
async def stub(shared_url: str, tmp_path: Path) -> AsyncIterator[Any]:
    """A scaler on the real store, asked through its port."""
    pool = open_pool(shared_url, "lagscale_scaler", 2, application="walls")
    await pool.open(wait=True)

    async def never() -> AsyncIterator[str]:
        return
        yield

    parts = Parts(
        PostgresVerdicts(pool), PostgresRegistrations(pool), PostgresDecisions(pool), PostgresFreezes(pool), never
    )
    settings = ScalerSettings(
        database_url=shared_url, scratch_dir=tmp_path, drain_seconds=0, scaler_http_listen="127.0.0.1:0"
    )
    scaler = Scaler(parts, settings, "walls")
    port, _ = await scaler.start("127.0.0.1:0")
    await eventually(lambda: scaler._known.directory is not None)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield pb_grpc.ExternalScalerStub(channel)
    await scaler.stop()
    await pool.close()


async def test_no_call_of_keda_tells_another_tenants_lag(pair: tuple[Walled, Walled], stub: Any) -> None:
    seed = seeds.getrandbits(32)
    random, told = Random(seed), Counter[str]()
    for number in range(REQUESTS * 3 // 10 // 3):
        mine, theirs = pair if number % 2 else pair[::-1]
        metadata = _metadata(random, mine, theirs)
        namespace = random.choice((mine.namespace, mine.namespace, "nowhere", "*", "default", ""))
        method = random.choice(("GetMetricSpec", "GetMetrics", "IsActive"))
        name = random.choice(("s0-orders", "logs", "s1-orders", metadata.get("serviceType", "x")))
        answers = [
            await _call(stub, method, namespace, metadata | {"tenant": tenant}, name)
            for tenant in (mine.name, theirs.name, "t-000000000000")
        ]
        where = f"seed {seed}: {method} {namespace} {metadata}"
        assert answers[1] == answers[2], where
        assert answers[1][0] != "OK", where
        assert not [mark for mark in theirs.marks if mark in str(answers)], f"{where}: {answers}"
        assert namespace == mine.namespace or answers[0][0] != "OK", where
        told[answers[0][0]] += 1
        told["lag"] += str(mine.lag) in answers[0][1]
    assert min(told["OK"], told["NOT_FOUND"], told["INVALID_ARGUMENT"], told["lag"]) > 20, told


def _metadata(random: Random, mine: Walled, theirs: Walled) -> dict[str, str]:
    if random.randrange(3):
        return {"serviceType": random.choice((*MONITORS, "orders,logs", "order", "none", theirs.name, "O!"))}
    mark = random.choice((mine, theirs)).marks[0]
    inline = {
        "cluster": "main",
        "consumerGroup": "readers",
        "topic": random.choice(MONITORS),
        "bootstrapServers": f"{mark}.invalid:9092",
        "lagThreshold": random.choice(("10", "x", "500")),
    }
    return {name: text for name, text in inline.items() if random.randrange(4)}


async def _call(stub: Any, method: str, namespace: str, metadata: dict[str, str], name: str) -> tuple[str, str]:
    ref = pb.ScaledObjectRef(name="worker", namespace=namespace, scalerMetadata=metadata)
    request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName=name) if method == "GetMetrics" else ref
    try:
        return "OK", str(await getattr(stub, method)(request, timeout=5))
    except grpc.aio.AioRpcError as refused:
        return refused.code().name, refused.details() or ""


async def test_no_statement_of_the_api_reaches_over_the_wall(pair: tuple[Walled, Walled], shared_url: str) -> None:
    seed = seeds.getrandbits(32)
    random, ran = Random(seed), Counter[str]()
    tables = tables_of(shared_url)
    with psycopg.connect(shared_url) as connection:
        ids = [
            (connection.execute("select id from tenant where name = %s", (one.name,)).fetchone() or (0,))[0]
            for one in pair
        ]
        before = [fingerprint(shared_url, one.name) for one in pair]
        for number in range(REQUESTS // 10):
            mine, theirs = ids if number % 2 else ids[::-1]
            table = random.choice([*tables, "tenant_lag_sample"])
            statement = _statement(random, table, tables.get(table, ["tenant_id", "ts"]), mine, theirs)
            with connection.transaction(force_rollback=True):
                connection.execute("set local role lagscale_api")
                connection.execute("select set_config('lagscale.tenant', %s, true)", (str(mine),))
                where = f"seed {seed}: {statement.as_string(connection)}"
                try:
                    with connection.transaction():
                        rows = connection.execute(statement).fetchall()
                except psycopg.Error as refused:
                    ran[type(refused).__name__] += 1
                    continue
                ran["rows"] += bool(rows)
                ran["none"] += not rows
                assert {row[0] for row in rows} <= {mine}, where
    assert [fingerprint(shared_url, one.name) for one in pair] == before
    assert ran["rows"] > REQUESTS // 100, ran
    assert ran["InsufficientPrivilege"] > 20, ran


def _statement(random: Random, table: str, columns: list[str], mine: int, theirs: int) -> sql.Composed:
    """Something that shows, changes, adds or removes rows, and returns whose they are."""
    owner = sql.Identifier("id" if table == "tenant" else "tenant_id")
    name, column = sql.Identifier(table), sql.Identifier(random.choice(columns))
    condition = random.choice(
        (
            sql.SQL("true"),
            sql.SQL("{} = {}").format(owner, sql.Literal(theirs)),
            sql.SQL("{} in ({}, {})").format(owner, sql.Literal(theirs), sql.Literal(mine)),
            sql.SQL("{} is not null or {} is null").format(column, column),
            sql.SQL("exists (select from monitor as m where m.tenant_id = {})").format(sql.Literal(theirs)),
        )
    )
    shape = random.choice(
        (
            "select {owner} from {table} where {condition}",
            "select {owner} from {table} where {condition} order by {column}",
            "select a.{owner} from {table} as a cross join {table} as b where a.{owner} <> b.{owner}",
            "with r as (select * from {table}) select {owner} from r where {condition}",
            "update {table} set {column} = {column} where {condition} returning {owner}",
            "update {table} set {owner} = {theirs} where {condition} returning {owner}",
            "delete from {table} where {condition} returning {owner}",
            "insert into {table} select * from {table} where {condition} returning {owner}",
            "select {owner} from {table} where {condition} for update",
        )
    )
    parts = {"owner": owner, "table": name, "column": column, "condition": condition, "theirs": sql.Literal(theirs)}
    return sql.SQL(shape).format(**{key: part for key, part in parts.items() if f"{{{key}}}" in shape})
