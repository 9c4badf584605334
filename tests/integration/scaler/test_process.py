"""The scaler as a process on a real database: from samples to answers, through outages, kills and stops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from lagscale.domain.lag.rounds import SampleRow, TargetRound, build_row
from lagscale.domain.lag.samples import Sample
from lagscale.store.samples.columns import COLUMNS, format_copy_line
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[3]
Code = grpc.StatusCode


@dataclass
class Kafka:
    """Writes what a scraper would write: one tenant's monitors, and rounds of their targets."""

    url: str
    namespace: str
    tenant: int = 0
    targets: dict[str, int] | None = None

    def __post_init__(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            self.tenant = _id(connection, "insert into tenant (name) values (%s) returning id", self.namespace)
            connection.execute(
                "insert into namespace_binding (tenant_id, namespace) values (%s, %s)", [self.tenant, self.namespace]
            )
            self.cluster = _id(
                connection,
                "insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', '{k:1}') returning id",
                self.tenant,
            )
        self.targets = {}

    def register(self, name: str) -> None:
        """Register a monitor of one topic, with short times."""
        policy = '{"lagThreshold": "100", "sustainSeconds": "20", "samplingInterval": "5", "workSeconds": "0"}'
        with psycopg.connect(self.url) as connection:
            monitor = _id(
                connection,
                "insert into monitor (tenant_id, name, cluster_id, consumer_group, topics, policy, sampling_ms, "
                "stale_after_ms, content_hash) values (%s, %s, %s, 'g', array[%s], %s, 5000, 30000, %s) returning id",
                self.tenant, name, self.cluster, f"topic-{name}", policy, name,
            )  # fmt: skip
            target = _id(
                connection,
                "insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level) "
                "values (%s, %s, 'g', %s, 'read_uncommitted') returning id",
                self.tenant, self.cluster, f"topic-{name}",
            )  # fmt: skip
            connection.execute("insert into monitor_target values (%s, %s, %s)", [monitor, target, self.tenant])
        assert self.targets is not None
        self.targets[name] = target

    def measure(self, name: str, *lags: int, members: int = 0) -> None:
        """Write rounds at five-second intervals, the last one now."""
        assert self.targets is not None
        with psycopg.connect(self.url) as connection:
            now = _id(connection, "select (extract(epoch from clock_timestamp()) * 1000)::bigint")
            row: SampleRow | None = None
            lines = []
            for number, lag in enumerate(lags):
                at_ms = now - 5000 * (len(lags) - 1 - number)
                row = build_row(row, TargetRound(at_ms, 0, (Sample(lag, 10_000),), members=members, members_age_ms=0))
                lines.append(format_copy_line(self.tenant, self.targets[name], row))
            with connection.cursor().copy(f"copy lag_sample ({', '.join(COLUMNS)}) from stdin") as copy:
                copy.write("".join(lines))
            connection.execute("notify lagscale_samples")


def _id(connection: Any, statement: str, *values: object) -> int:
    row = connection.execute(statement, values).fetchone()
    assert row is not None
    return int(row[0])


@dataclass
class Replica:
    """A scaler process and its client."""

    process: subprocess.Popen[bytes]
    grpc_port: int
    http_port: int
    namespace: str

    def probe(self, path: str) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code
        except OSError:
            return 0

    async def ask(self, method: str, name: str, seconds: float = 5.0) -> Any:
        """Make one call on a new connection; returns its answer or its status code."""
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{self.grpc_port}", options=[("grpc.use_local_subchannel_pool", 1)]
        ) as channel:
            ref = self.ref(name)
            request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName=name) if method == "GetMetrics" else ref
            try:
                return await getattr(pb_grpc.ExternalScalerStub(channel), method)(request, timeout=seconds)
            except grpc.aio.AioRpcError as error:
                return error.code()

    def ref(self, name: str) -> Any:
        return pb.ScaledObjectRef(name="x", namespace=self.namespace, scalerMetadata={"serviceType": name})


Starting = Callable[..., Replica]


@pytest.fixture
def kafka(shared_url: str) -> Kafka:
    return Kafka(shared_url, f"ns-{uuid.uuid4().hex[:10]}")


@pytest.fixture
def replica(shared_url: str, tmp_path: Path, kafka: Kafka) -> Iterator[Starting]:
    """Starts scaler processes that share their local cache."""
    running: list[subprocess.Popen[bytes]] = []

    def start(**variables: str) -> Replica:
        ports = [_free_port(), _free_port()]
        settings = {
            "LAGSCALE_DATABASE_URL": shared_url, "LAGSCALE_CACHE_DIR": str(tmp_path),
            "LAGSCALE_SCALER_GRPC_LISTEN": f"127.0.0.1:{ports[0]}", "LAGSCALE_SCALER_DRAIN_SECONDS": "0.5",
            "LAGSCALE_SCALER_HTTP_LISTEN": f"127.0.0.1:{ports[1]}", "LAGSCALE_TICK_SECONDS": "1", **variables,
        }  # fmt: skip
        kept = {name: text for name, text in os.environ.items() if not name.startswith("LAGSCALE_")}
        with (tmp_path / f"scaler-{len(running)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.scaler"], cwd=ROOT, env={**kept, **settings}, stderr=log
            )
        running.append(process)
        return Replica(process, ports[0], ports[1], kafka.namespace)

    yield start
    for process in running:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def until(condition: Callable[[], Any], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - another process has no event for us
            await asyncio.sleep(0.05)


@pytest.fixture
async def paused(database: Any) -> AsyncIterator[Callable[[], None]]:
    """Pauses the database; it resumes when the test ends."""
    yield database.pause
    database.resume()


async def test_sustained_lag_becomes_a_value(kafka: Kafka, replica: Starting) -> None:
    for name in ("busy", "idle", "fresh"):
        kafka.register(name)
    kafka.measure("busy", 0, 700, 700, 700, 700, 700)
    kafka.measure("idle", *[0] * 6)
    scaler = replica()
    await until(lambda: scaler.probe("/readyz") == 200)
    assert (await scaler.ask("GetMetricSpec", "busy")).metricSpecs[0].targetSizeFloat == 100
    assert (await scaler.ask("GetMetrics", "busy")).metricValues[0].metricValueFloat == 100
    assert (await scaler.ask("IsActive", "busy")).result is True
    assert (await scaler.ask("GetMetrics", "idle")).metricValues[0].metricValueFloat == 0
    assert (await scaler.ask("IsActive", "idle")).result is False
    assert await scaler.ask("GetMetrics", "fresh") is Code.FAILED_PRECONDITION
    assert await scaler.ask("GetMetrics", "nowhere") is Code.NOT_FOUND

    def decided() -> list[Any]:
        with psycopg.connect(kafka.url) as connection:
            return connection.execute(
                "select distinct m.name, d.verdict, d.code from decision d join monitor m on m.id = d.monitor_id "
                "where d.tenant_id = %s order by 1",
                [kafka.tenant],
            ).fetchall()

    await until(lambda: len(decided()) == 3)
    assert decided() == [
        ("busy", "sustained", "OK"), ("fresh", "unknown", "FAILED_PRECONDITION"), ("idle", "calm", "OK"),
    ]  # fmt: skip


async def test_a_registration_and_new_samples_reach_an_open_stream(kafka: Kafka, replica: Starting) -> None:
    scaler = replica()
    await until(lambda: scaler.probe("/readyz") == 200)
    kafka.register("later")
    kafka.measure("later", *[0] * 6)
    await until(lambda: asyncio.run(scaler.ask("GetMetricSpec", "later")) is not Code.NOT_FOUND)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{scaler.grpc_port}") as channel:
        call = pb_grpc.ExternalScalerStub(channel).StreamIsActive(scaler.ref("later"))
        assert (await asyncio.wait_for(call.read(), 10)).result is False
        with psycopg.connect(kafka.url, autocommit=True) as connection:
            assert kafka.targets is not None
            connection.execute("delete from lag_sample where target_id = %s", [kafka.targets["later"]])
        kafka.measure("later", 0, *[500] * 6)
        assert (await asyncio.wait_for(call.read(), 10)).result is True
        call.cancel()


async def test_a_hanging_database_leaves_last_known_answers(
    kafka: Kafka, replica: Starting, paused: Callable[[], None], database: Any, tmp_path: Path
) -> None:
    for name in ("busy", "idle"):
        kafka.register(name)
    kafka.measure("busy", 0, *[700] * 6)
    kafka.measure("idle", *[0] * 6)
    scaler = replica()
    await until(lambda: scaler.probe("/healthz") == 200)
    for name in ("busy", "idle"):
        await scaler.ask("GetMetrics", name)
    await until((tmp_path / "scaler" / "answers.json").exists)
    paused()
    for _ in range(3):
        started = time.monotonic()
        assert (await scaler.ask("GetMetrics", "busy")).metricValues[0].metricValueFloat == 100
        assert (await scaler.ask("IsActive", "busy")).result is True
        assert await scaler.ask("GetMetrics", "idle") is Code.UNAVAILABLE
        assert len((await scaler.ask("GetMetricSpec", "idle")).metricSpecs) == 1
        assert time.monotonic() - started < 3.5
    await until(lambda: scaler.probe("/healthz") == 503)
    assert scaler.probe("/readyz") == 200

    scaler.process.send_signal(signal.SIGKILL)
    scaler.process.wait()
    second = replica()
    await until(lambda: second.probe("/readyz") == 200)
    started = time.monotonic()
    assert (await second.ask("GetMetricSpec", "busy")).metricSpecs[0].targetSizeFloat == 100
    assert (await second.ask("GetMetrics", "busy")).metricValues[0].metricValueFloat == 100
    assert await second.ask("GetMetrics", "idle") is Code.UNAVAILABLE
    assert time.monotonic() - started < 3

    database.resume()
    await until(lambda: second.probe("/healthz") == 200)
    kafka.measure("idle", 0)
    await until(lambda: asyncio.run(second.ask("GetMetrics", "idle")) is not Code.UNAVAILABLE)


async def test_a_stop_under_load_fails_no_poll_while_another_replica_serves(kafka: Kafka, replica: Starting) -> None:
    kafka.register("busy")
    kafka.measure("busy", 0, *[700] * 6)
    scalers = [replica(), replica()]
    for scaler in scalers:
        await until(lambda scaler=scaler: scaler.probe("/healthz") == 200)
    targets = ",".join(f"127.0.0.1:{scaler.grpc_port}" for scaler in scalers)
    options = [("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')]
    async with grpc.aio.insecure_channel(f"ipv4:{targets}", options=options) as channel:
        stub = pb_grpc.ExternalScalerStub(channel)
        polled, again, stopping = 0, 0, False
        request = pb.GetMetricsRequest(scaledObjectRef=scalers[0].ref("busy"), metricName="busy")

        async def poll() -> None:
            assert (await stub.GetMetrics(request, timeout=5)).metricValues[0].metricValueFloat == 100

        async def keda() -> None:
            """Poll without end; like KEDA, retry once when a poll fails."""
            nonlocal polled, again
            while not stopping or scalers[0].process.poll() is None:
                try:
                    await poll()
                except grpc.aio.AioRpcError:
                    again += 1
                    await poll()
                polled += 1

        polling = [asyncio.ensure_future(keda()) for _ in range(4)]
        await until(lambda: polled > 100)
        scalers[0].process.send_signal(signal.SIGTERM)
        stopping = True
        await asyncio.gather(*polling)
        # At most the calls that were in transit when the replica closed its connections.
        assert again <= len(polling)
    assert scalers[0].process.wait() == 0


async def test_a_killed_replica_fails_only_running_calls(kafka: Kafka, replica: Starting) -> None:
    kafka.register("busy")
    kafka.measure("busy", 0, *[700] * 6)
    scalers = [replica(), replica()]
    for scaler in scalers:
        await until(lambda scaler=scaler: scaler.probe("/healthz") == 200)
    answers = [[await scaler.ask(method, "busy") for method in ("GetMetricSpec", "GetMetrics")] for scaler in scalers]
    assert answers[0] == answers[1]
    scalers[0].process.kill()
    assert (await scalers[1].ask("GetMetrics", "busy")).metricValues[0].metricValueFloat == 100


@pytest.mark.parametrize(
    "variables", [{"LAGSCALE_SCALER_CALL_TIMEOUT_SECONDS": "soon"}, {"LAGSCALE_SCALER_CAL_TIMEOUT_SECONDS": "1"}]
)
async def test_invalid_settings_stop_the_start(replica: Starting, variables: dict[str, str]) -> None:
    scaler = replica(**variables)
    with contextlib.suppress(subprocess.TimeoutExpired):
        assert await asyncio.to_thread(scaler.process.wait, 20) == 2
