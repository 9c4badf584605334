"""A replica without its store, its restart, probes and shutdown."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.request
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from lagscale.errors import StoreUnavailable

pytestmark = pytest.mark.integration
Code = grpc.StatusCode
SERVING = health_pb2.HealthCheckResponse.SERVING


async def probe(world: Any, path: str) -> tuple[int, Any]:
    def fetch() -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{world.http}{path}", timeout=5) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read()

    code, body = await asyncio.to_thread(fetch)
    return code, body.decode() if path == "/metrics" else json.loads(body)


async def health(world: Any, service: str = "externalscaler.ExternalScaler") -> Any:
    stub = health_pb2_grpc.HealthStub(world.channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


async def until_health(world: Any, serving: bool) -> None:
    async with asyncio.timeout(10):
        while ((await health(world)) == SERVING) is not serving:
            world.notifications.put_nowait("lagscale_registry")


async def test_readiness_does_not_depend_on_the_store(start: Any) -> None:
    world = await start()
    await until_health(world, True)
    assert await health(world, "") == SERVING
    assert [(await probe(world, path))[0] for path in ("/healthz", "/readyz", "/livez")] == [200, 200, 200]
    world.registry.failure = StoreUnavailable()
    await until_health(world, False)
    code, body = await probe(world, "/healthz")
    assert code == 503
    assert body["checks"]["store"] is False
    assert [(await probe(world, path))[0] for path in ("/readyz", "/livez")] == [200, 200]
    world.registry.failure = None
    await until_health(world, True)
    assert (await probe(world, "/healthz"))[0] == 200


async def test_metrics_and_unknown_paths(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    await world.active()
    code, text = await probe(world, "/metrics")
    assert code == 200
    assert 'lagscale_scaler_calls_total{code="OK",method="IsActive"}' in text
    assert (await probe(world, "/nothing"))[0] == 404


async def test_without_local_cache_and_store_it_starts_but_is_not_ready(start: Any) -> None:
    world = await start(registry_failure=StoreUnavailable(), scaler_call_timeout_seconds=0.2)
    code, body = await probe(world, "/readyz")
    assert (code, body["checks"]["registrations_loaded"]) == (503, False)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await world.stub.GetMetricSpec(world.ref())
    assert raised.value.code() is Code.UNAVAILABLE
    world.registry.failure = None
    world.notifications.put_nowait("lagscale_registry")
    await asyncio.wait_for(until_health(world, True), 10)
    assert (await probe(world, "/readyz"))[0] == 200
    assert len((await world.stub.GetMetricSpec(world.ref())).metricSpecs) == 1


async def test_a_restart_without_the_store_answers_from_the_local_cache(start: Any, say: Any) -> None:
    first = await start()
    first.verdicts.judgments = {1: say.sustained(900), 2: say.calm()}
    await first.active()
    await first.active(service="ingest-metrics")
    await until_health(first, True)
    await first.scaler.stop()

    second = await start(registry_failure=StoreUnavailable())
    second.verdicts.failure = StoreUnavailable()
    started = time.monotonic()
    assert (await probe(second, "/readyz"))[0] == 200
    spec = await second.stub.GetMetricSpec(second.ref())
    assert spec.metricSpecs[0].targetSizeFloat == 500
    assert await second.active() is True
    assert (await second.metric()).metricValues[0].metricValueFloat == 900
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await second.metric("s0-ingest-metrics", service="ingest-metrics")
    assert raised.value.code() is Code.UNAVAILABLE
    assert time.monotonic() - started < 5


async def test_a_changed_registration_is_loaded_at_once(start: Any, say: Any) -> None:
    world = await start()
    world.registry.change(monitors=(say.monitor(1, "ingest-logs", lagThreshold="7"), say.monitor(9, "brand-new")))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.version == 2)
    assert (await world.stub.GetMetricSpec(world.ref())).metricSpecs[0].targetSize == 7
    assert (await world.stub.GetMetricSpec(world.ref("brand-new"))).metricSpecs[0].metricName == "brand-new"


async def test_a_stop_is_announced_and_ends_no_call(start: Any, say: Any) -> None:
    world = await start(scaler_drain_seconds=0.5, scaler_call_timeout_seconds=3)
    world.verdicts.judgments[1] = say.calm()
    await until_health(world, True)
    world.verdicts.gate.clear()
    running = [asyncio.ensure_future(world.active()) for _ in range(20)]
    await say.eventually(lambda: len(world.verdicts.asked) == 1)
    stopping = asyncio.ensure_future(world.scaler.stop())
    await asyncio.sleep(0)
    assert (await probe(world, "/readyz"))[0] == 503
    assert await health(world) != SERVING
    running.append(asyncio.ensure_future(world.active()))
    world.verdicts.gate.set()
    assert await asyncio.gather(*running) == [False] * 21
    await stopping
