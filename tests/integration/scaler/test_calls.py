"""The three unary calls of KEDA over a real socket: encoding, codes, texts, deadlines."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import grpc
import pytest

from lagscale.domain.verdict.contract import Answer, Reason
from lagscale.errors import QuotaExceeded, StoreUnavailable
from services.scaler.grpc.proto import externalscaler_pb2 as pb

pytestmark = pytest.mark.integration
Code = grpc.StatusCode


async def refused(call: Any) -> tuple[Any, str]:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code(), raised.value.details()


async def test_the_target_is_in_both_fields(start: Any) -> None:
    world = await start()
    spec = await world.stub.GetMetricSpec(world.ref("ingest-logs,ingest-metrics"))
    assert [(m.metricName, m.targetSize, m.targetSizeFloat) for m in spec.metricSpecs] == [
        ("ingest-logs", 500, 500.0),
        ("ingest-metrics", 1, 0.4),
    ]
    assert world.verdicts.asked == []


@pytest.mark.parametrize(
    ("value", "integer", "real"), [(0.0, 0, 0.0), (0.4, 1, 0.4), (7.0, 7, 7.0), (1500.2, 1501, 1500.2)]
)
async def test_a_value_is_in_both_fields(start: Any, say: Any, value: float, integer: int, real: float) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.sustained(value) if value else say.calm()
    for name in ("s0-ingest-logs", "ingest-logs", "S0-Ingest-Logs"):
        (metric,) = (await world.metric(name)).metricValues
        assert (metric.metricName, metric.metricValue, metric.metricValueFloat) == (name, integer, real)


async def test_value_and_activity_of_one_poll_cost_one_query(start: Any, say: Any) -> None:
    world = await start(scaler_snapshot_ttl_seconds=10)
    world.verdicts.judgments[1] = say.sustained(700)
    assert (await world.metric()).metricValues[0].metricValue == 700
    world.verdicts.judgments[1] = say.calm()
    assert await world.active() is True
    assert world.verdicts.asked == [[1]]


async def test_an_unknown_monitor_suggests_names_of_its_tenant(start: Any) -> None:
    world = await start()
    code, text = await refused(world.active(service="ingest-log"))
    assert code is Code.NOT_FOUND
    assert "ingest-logs" in text
    assert "secret" not in text


async def test_an_exceeded_limit_of_the_tenant_says_who_can_change_it(start: Any, say: Any) -> None:
    world = await start()
    limits = {"lagThreshold": {"min": "100"}}
    world.registry.change(tenants=tuple(replace(one, policy_limits=limits) for one in world.registry.present.tenants))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.version == 2)
    inline = {"cluster": "main", "consumerGroup": "g", "topic": "t", "lagThreshold": "5"}
    for call in (world.active, world.metric):
        code, text = await refused(call(service="", namespace="market", **inline))
        assert code is Code.INVALID_ARGUMENT
        assert text.startswith("lagThreshold: is 5; this tenant allows at least 100")
        assert "ask a platform administrator" in text


async def test_all_errors_of_the_metadata_are_reported(start: Any) -> None:
    world = await start()
    code, text = await refused(world.active(lagTreshold="1", sustainSeconds="x"))
    assert code is Code.INVALID_ARGUMENT
    assert "lagThreshold" in text
    assert "sustainSeconds" in text


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.NO_DATA, Code.FAILED_PRECONDITION),
        (Reason.NOTHING_TO_MEASURE, Code.FAILED_PRECONDITION),
        (Reason.NO_TOPIC, Code.FAILED_PRECONDITION),
        (Reason.START_UNKNOWN, Code.FAILED_PRECONDITION),
        (Reason.ACTIVITY_UNDETERMINED, Code.FAILED_PRECONDITION),
        (Reason.STALE, Code.UNAVAILABLE),
        (Reason.MISSING, Code.UNAVAILABLE),
        (Reason.MEMBERS_UNKNOWN, Code.UNAVAILABLE),
    ],
)
async def test_unknown_without_a_last_known_answer_is_an_error_with_its_reason(
    start: Any, say: Any, reason: Reason, code: Any
) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.unknown(reason, at_ms=say.now_ms - 75_000, absent=(1,))
    for call in (world.metric(), world.active()):
        got, text = await refused(call)
        assert got is code
        assert len(text) > 20
    if reason is Reason.STALE:
        assert "75 s old" in text
    if reason is Reason.NO_TOPIC:
        assert "topic-ingest-logs" in text


async def test_a_last_known_answer_is_active(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.unknown()
    world.verdicts.holds[1] = Answer(500.0, True, say.now_ms - 100_000)
    assert (await world.metric()).metricValues[0].metricValue == 500
    assert await world.active() is True


async def test_activation_from_zero_requests_one_replica(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.unknown(Reason.MISSING, activates_from_zero=True)
    assert (await world.metric()).metricValues[0].metricValue == 500
    assert await world.active() is True


async def test_several_are_active_if_one_is_and_else_an_error_if_one_is_unknown(start: Any, say: Any) -> None:
    world = await start()
    both = "ingest-logs,ingest-metrics"
    world.verdicts.judgments = {1: say.unknown(), 2: say.sustained(9)}
    assert await world.active(service=both) is True
    assert (await world.metric("ingest-metrics", service=both)).metricValues[0].metricValue == 9
    world.verdicts.judgments = {1: say.unknown(at_ms=say.now_ms - 90_000), 2: say.calm()}
    await say.eventually(lambda: not world.scaler._snapshots._snapshots.keys())
    assert (await refused(world.active(service=both)))[0] is Code.UNAVAILABLE
    world.verdicts.judgments = {1: say.calm(), 2: say.calm()}
    await say.eventually(lambda: not world.scaler._snapshots._snapshots.keys())
    assert await world.active(service=both) is False


async def test_a_store_that_hangs_costs_less_than_a_second(start: Any, say: Any) -> None:
    world = await start(scaler_call_timeout_seconds=0.3)
    world.verdicts.judgments[1] = say.calm()
    world.verdicts.gate.clear()
    started = time.monotonic()
    results = await asyncio.gather(*(refused(world.active()) for _ in range(50)))
    assert time.monotonic() - started < 5
    assert {code for code, _ in results} == {Code.UNAVAILABLE}
    assert len(world.verdicts.asked) == 1
    assert len((await world.stub.GetMetricSpec(world.ref())).metricSpecs) == 1
    world.verdicts.gate.set()
    assert await world.active() is False


async def test_without_the_store_only_active_monitors_have_a_last_known_answer(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments = {1: say.sustained(900), 2: say.calm()}
    assert await world.active() is True
    assert await world.active(service="ingest-metrics") is False
    world.verdicts.failure = StoreUnavailable()
    await say.eventually(lambda: not world.scaler._snapshots._snapshots.keys())
    assert await world.active() is True
    assert (await world.metric()).metricValues[0].metricValue == 900
    code, text = await refused(world.active(service="ingest-metrics"))
    assert code is Code.UNAVAILABLE
    assert "store" in text


async def test_a_defect_of_one_monitor_is_an_error_of_that_one_only(start: Any, say: Any) -> None:
    world = await start(scaler_pool_size=1, scaler_call_timeout_seconds=20)
    world.registry.change(monitors=tuple(say.monitor(n, f"m-{n}") for n in (1, 2, 3)))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.version == 2)
    world.verdicts.judgments = {1: say.calm(), 3: say.calm()}
    world.verdicts.gate.clear()
    first = asyncio.ensure_future(world.active(service="m-1"))
    await say.eventually(lambda: len(world.verdicts.asked) == 1)
    broken, good = (asyncio.ensure_future(world.active(service=name)) for name in ("m-2", "m-3"))
    await say.eventually(lambda: len(world.scaler._snapshots._queue) == 2)
    world.verdicts.gate.set()
    assert [await first, await good] == [False, False]
    assert (await refused(broken))[0] is Code.UNAVAILABLE
    assert world.verdicts.asked[1:] == [[2, 3], [2], [3]]


async def test_requests_queued_while_the_store_is_busy_share_a_query(start: Any, say: Any) -> None:
    world = await start(scaler_pool_size=1, scaler_call_timeout_seconds=20)
    names = [f"m-{n}" for n in range(10, 60)]
    world.registry.change(monitors=tuple(say.monitor(n, f"m-{n}") for n in range(10, 60)))
    world.verdicts.judgments = {n: say.calm() for n in range(10, 60)}
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.version == 2)
    world.verdicts.gate.clear()
    calls = [asyncio.ensure_future(world.active(service=name)) for name in names]
    await say.eventually(lambda: len(world.scaler._snapshots._queue) == len(names) - 1)
    world.verdicts.gate.set()
    assert not any(await asyncio.gather(*calls))
    assert [len(batch) for batch in world.verdicts.asked] == [1, 16, 16, 16, 1]


async def test_a_trigger_registers_itself_where_its_tenant_allows_it(start: Any) -> None:
    world = await start()
    inline = {"service": "", "cluster": "main", "consumerGroup": "g", "topic": "t", "namespace": "market"}
    spec = await world.stub.GetMetricSpec(world.ref(**inline))
    assert world.registry.registered == []
    code, text = await refused(world.active(**inline))
    assert code is Code.FAILED_PRECONDITION
    assert "No samples yet" in text
    assert (await refused(world.active(**inline)))[0] is Code.FAILED_PRECONDITION
    (registered,) = world.registry.registered
    assert registered.spec.name == spec.metricSpecs[0].metricName
    assert (await refused(world.active(**{**inline, "namespace": "shop"})))[0] is Code.NOT_FOUND


async def test_a_monitor_beyond_the_quota_is_rejected(start: Any) -> None:
    world = await start()
    world.registry.refusal = QuotaExceeded()
    inline = {"service": "", "cluster": "main", "consumerGroup": "g", "topic": "t", "namespace": "market"}
    assert (await refused(world.active(**inline)))[0] is Code.RESOURCE_EXHAUSTED


async def test_decisions_are_written_on_change(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.sustained(900)
    for _ in range(3):
        await world.active()
    await world.scaler._decision_log.flush()
    (row,) = world.decisions.rows
    assert (row.monitor_id, row.verdict, row.value, row.active, row.code) == (1, "sustained", 900, True, "OK")
    assert world.decisions.asked == [1]


async def test_a_request_of_an_unknown_metric_is_not_found(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    assert (await refused(world.metric("s0-other")))[0] is Code.NOT_FOUND


async def test_reflection_lists_the_service(start: Any) -> None:
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    world = await start()
    stub = reflection_pb2_grpc.ServerReflectionStub(world.channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    answer = await call.read()
    names = {service.name for service in answer.list_services_response.service}
    assert {"externalscaler.ExternalScaler", "grpc.health.v1.Health"} <= names


def test_the_contract_has_kedas_numbers() -> None:
    fields = {
        name: [(f.name, f.number) for f in message.fields]
        for name, message in pb.DESCRIPTOR.message_types_by_name.items()
    }
    assert fields == {
        "ScaledObjectRef": [("name", 1), ("namespace", 2), ("scalerMetadata", 3)],
        "IsActiveResponse": [("result", 1)],
        "GetMetricSpecResponse": [("metricSpecs", 1)],
        "MetricSpec": [("metricName", 1), ("targetSize", 2), ("targetSizeFloat", 3)],
        "GetMetricsRequest": [("scaledObjectRef", 1), ("metricName", 2)],
        "GetMetricsResponse": [("metricValues", 1)],
        "MetricValue": [("metricName", 1), ("metricValue", 2), ("metricValueFloat", 3)],
    }
