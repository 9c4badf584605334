"""A tenant over its quotas: an error with a remedy, and never a 0 that was not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from lagscale.domain.verdict.contract import Answer, Reason
from lagscale.domain.verdict.freezes import Freeze
from lagscale.errors import QuotaExceeded
from services.scaler.grpc.proto import externalscaler_pb2 as pb

pytestmark = pytest.mark.integration
Code = grpc.StatusCode
#: At one call per second, a burst is 30 calls.
MANY = 60
TOO_LARGE = "Quota `partitions` exceeded: a topic of 90 partitions, 7 are left. Ask for more."


async def limited(start: Any, **settings: Any) -> Any:
    """A world whose tenant `acme` has a quota of one call per second."""
    world = await start(**settings)
    acme, other = world.registry.present.tenants
    world.registry.change(tenants=(replace(acme, calls_per_second=1), other))
    await wait_for_registrations(world)
    return world


async def wait_for_registrations(world: Any) -> None:
    """Wait until the scaler has loaded the present registrations."""
    await world.notifications.put("lagscale_registry")
    cache = world.scaler._registrations
    while cache.directory.registrations.version != world.registry.present.version:
        assert await cache.changed.wait(5.0)


async def value(world: Any, **ref: Any) -> float | grpc.aio.AioRpcError:
    """The value, or the error."""
    try:
        return float((await world.metric(**ref)).metricValues[0].metricValueFloat)
    except grpc.aio.AioRpcError as error:
        return error


def counted(outcome: str, quota: str = "callsPerSecond") -> float:
    labels = {"tenant": "acme", "quota": quota, "outcome": outcome}
    return REGISTRY.get_sample_value("lagscale_scaler_quota_exceeded_total", labels) or 0.0


async def test_too_many_calls_are_rejected_with_a_remedy_and_never_by_a_zero(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.unknown()
    before = counted("rejected")
    errors = [await value(world) for _ in range(MANY)]
    texts = {(error.code(), error.details()) for error in errors if not isinstance(error, float)}
    assert {code for code, _ in texts} == {Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED}
    (text,) = [text for code, text in texts if code is Code.RESOURCE_EXHAUSTED]
    assert all(word in text for word in ("1 KEDA calls", "pollingInterval", "administrator", "callsPerSecond"))
    assert counted("rejected") - before == sum(error.code() is Code.RESOURCE_EXHAUSTED for error in errors)


async def test_beyond_the_rate_a_cached_snapshot_is_the_answer(start: Any, say: Any) -> None:
    world = await limited(start, scaler_snapshot_ttl_seconds=10)
    world.verdicts.judgments[1] = say.calm()
    before = counted("cached")
    assert await world.active() is False
    assert [await value(world) for _ in range(4)] == [0.0] * 4
    assert [await world.active() for _ in range(MANY)] == [False] * MANY
    assert len(world.verdicts.asked) == 1
    assert counted("cached") - before >= MANY - 35


async def test_beyond_the_rate_a_last_known_answer_that_requests_replicas_is_given(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.sustained(700)
    assert [await value(world) for _ in range(MANY)] == [700.0] * MANY


async def test_beyond_the_rate_a_stale_zero_is_not_the_answer(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.calm()
    first = await value(world)
    assert first == 0.0
    # Another monitor uses up the rate, so that the snapshot of this one expires.
    world.verdicts.judgments[2] = say.unknown()
    for _ in range(MANY):
        await value(world, name="s0-ingest-metrics", service="ingest-metrics")
    await say.eventually(lambda: world.scaler._snapshots.find_cached(requests(world)) is None)
    outcomes = [await value(world) for _ in range(5)]
    refused = [outcome for outcome in outcomes if not isinstance(outcome, float)]
    assert refused
    assert {error.code() for error in refused} == {Code.RESOURCE_EXHAUSTED}


def requests(world: Any) -> Any:
    """The policy of `ingest-logs`."""
    trigger = world.scaler._servicer._reader.read({"serviceType": "ingest-logs"})
    return next(iter(world.scaler._registrations.directory.resolve(trigger, "default", "shop").iter_monitors())).request


async def test_the_metrics_spec_is_never_rejected_and_never_counted(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.unknown()
    for _ in range(MANY):
        assert (await world.stub.GetMetricSpec(world.ref())).metricSpecs[0].targetSize == 500
    error = await value(world)
    assert isinstance(error, grpc.aio.AioRpcError)
    assert error.code() is Code.UNAVAILABLE, "none of its calls was counted"


async def test_another_tenant_is_not_affected(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.unknown()
    for _ in range(MANY):
        await value(world)
    world.verdicts.judgments[3] = say.sustained(900)
    assert await value(world, name="s0-secret-logs", service="secret-logs", namespace="market") == 900.0


async def test_a_stream_counts_once_when_it_opens_and_not_while_it_is_open(start: Any, say: Any) -> None:
    world = await limited(start)
    world.verdicts.judgments[1] = say.sustained(700)
    stream = world.stub.StreamIsActive(world.ref(), timeout=20)
    assert (await stream.read()).result is True
    world.verdicts.judgments[2] = say.unknown()
    outcomes = [await value(world, name="s0-ingest-metrics", service="ingest-metrics") for _ in range(MANY)]
    assert any(isinstance(one, grpc.aio.AioRpcError) and one.code() is Code.RESOURCE_EXHAUSTED for one in outcomes)
    world.verdicts.judgments[1] = say.calm()
    assert (await stream.read()).result is False, "an open stream continues"
    codes = [await opened(world) for _ in range(3)]
    assert Code.RESOURCE_EXHAUSTED in codes
    stream.cancel()


async def opened(world: Any) -> grpc.StatusCode:
    """The outcome of a new stream: OK if it sends something."""
    stream = world.stub.StreamIsActive(world.ref(), timeout=20)
    try:
        await stream.read()
    except grpc.aio.AioRpcError as refused:
        return refused.code()
    stream.cancel()
    return Code.OK


async def test_a_target_over_its_quota_is_an_error_and_no_zero(start: Any, say: Any) -> None:
    world = await start()
    over = replace(world.registry.present.monitors[0], over_quota_reason=TOO_LARGE)
    world.registry.change(monitors=(over, *world.registry.present.monitors[1:]))
    await wait_for_registrations(world)
    before = counted("rejected", "partitions")
    world.verdicts.judgments[1] = say.unknown(Reason.NO_DATA)
    world.verdicts.holds[1] = Answer(0.0, False, say.now_ms - 60_000)
    for call in (world.metric(), world.active()):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert (raised.value.code(), raised.value.details()) == (Code.RESOURCE_EXHAUSTED, TOO_LARGE)
    assert counted("rejected", "partitions") - before == 2


async def test_a_target_over_its_quota_keeps_its_last_known_replicas(start: Any, say: Any) -> None:
    world = await start()
    over = replace(world.registry.present.monitors[0], over_quota_reason=TOO_LARGE)
    world.registry.change(monitors=(over, *world.registry.present.monitors[1:]))
    await wait_for_registrations(world)
    world.verdicts.judgments[1] = say.unknown()
    world.verdicts.holds[1] = Answer(900.0, True, say.now_ms - 60_000)
    assert await value(world) == 900.0


async def test_a_frozen_monitor_keeps_its_answer_beyond_the_rate(start: Any, say: Any) -> None:
    world = await limited(start, scaler_snapshot_ttl_seconds=10)
    world.verdicts.judgments[1] = say.sustained(9000)
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms - 4000)
    assert await value(world) == 9000.0
    ends = {"since_ms": say.now_ms - 1000, "until_ms": say.now_ms + 3_600_000, "reason": "a move"}
    world.registry.change(freezes=(Freeze("a", 1, cluster=None, monitor_id=1, **ends),), now_ms=say.now_ms)
    await wait_for_registrations(world)
    before = counted("cached")
    assert [await value(world) for _ in range(MANY)] == [1500.0] * MANY, "not the snapshot that is still valid"
    assert counted("cached") - before > 0


async def test_where_the_rate_is_exceeded_before_a_freeze_nothing_newer_is_the_answer(start: Any, say: Any) -> None:
    world = await limited(start, scaler_snapshot_ttl_seconds=10)
    world.verdicts.judgments[1] = say.unknown()
    world.verdicts.holds[1] = None
    for _ in range(MANY):
        await value(world)
    ends = {"since_ms": say.now_ms - 1000, "until_ms": say.now_ms + 3_600_000, "reason": "a move"}
    world.registry.change(freezes=(Freeze("a", 1, cluster=None, monitor_id=1, **ends),), now_ms=say.now_ms)
    await wait_for_registrations(world)
    outcomes = [await value(world) for _ in range(5)]
    assert {outcome.code() for outcome in outcomes if not isinstance(outcome, float)} <= {
        Code.RESOURCE_EXHAUSTED,
        Code.UNAVAILABLE,
    }
    assert not [outcome for outcome in outcomes if isinstance(outcome, float)]


async def test_an_inline_monitor_beyond_the_quota_is_rejected_with_the_quotas_name(start: Any) -> None:
    world = await start()
    world.registry.refusal = QuotaExceeded("Quota exceeded. Delete some.", quota="monitors")
    ref = world.ref("", "market", cluster="main", consumerGroup="g", topic="t")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await world.stub.GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref, metricName="x-t"), timeout=5)
    assert raised.value.code() in {Code.RESOURCE_EXHAUSTED, Code.NOT_FOUND}
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await world.stub.IsActive(ref, timeout=5)
    assert (raised.value.code(), raised.value.details()) == (Code.RESOURCE_EXHAUSTED, "Quota exceeded. Delete some.")
