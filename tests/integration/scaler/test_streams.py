"""KEDA's two streams: the activity at once, every change, nothing while unknown, and a clean end."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from lagscale.domain.verdict.contract import Answer
from lagscale.errors import StoreUnavailable

pytestmark = pytest.mark.integration


async def read(call: Any, seconds: float = 5.0) -> Any:
    return await asyncio.wait_for(call.read(), seconds)


async def test_activity_is_sent_at_once_and_on_every_change(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    call = world.stub.StreamIsActive(world.ref())
    for judgment, active in ((None, False), (say.sustained(9), True), (say.calm(), False)):
        if judgment is not None:
            world.verdicts.judgments[1] = judgment
            world.notifications.put_nowait("lagscale_samples")
        assert (await read(call)).result is active
    call.cancel()


async def test_all_streams_share_one_query(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments = {1: say.calm(), 2: say.calm()}
    calls = [world.stub.StreamIsActive(world.ref(name)) for name in ("ingest-logs", "ingest-metrics") for _ in range(5)]
    assert [(await read(call)).result for call in calls] == [False] * 10
    world.verdicts.asked.clear()
    world.verdicts.judgments = {1: say.sustained(9), 2: say.sustained(9)}
    world.notifications.put_nowait("lagscale_samples")
    assert [(await read(call)).result for call in calls] == [True] * 10
    assert {tuple(sorted(batch)) for batch in world.verdicts.asked} == {(1, 2)}
    for call in calls:
        call.cancel()


async def test_true_is_repeated_while_active(start: Any, say: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.scaler.deadlines.STREAM_REPEAT_SECONDS", 0.05)
    world = await start()
    world.verdicts.judgments[1] = say.sustained(9)
    call = world.stub.StreamIsActive(world.ref())
    assert [(await read(call)).result for _ in range(4)] == [True] * 4
    call.cancel()


async def test_nothing_is_sent_while_unknown_without_a_last_known_answer(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.unknown()
    call = world.stub.StreamIsActive(world.ref())
    reading = asyncio.ensure_future(read(call))
    await say.eventually(lambda: len(world.verdicts.asked) >= 2)
    assert not reading.done()
    world.verdicts.holds[1] = Answer(9.0, True, say.now_ms)
    world.verdicts.judgments[1] = say.unknown(at_ms=say.now_ms - 1)
    world.notifications.put_nowait("lagscale_samples")
    assert (await reading).result is True
    call.cancel()


async def test_a_stream_survives_an_outage_of_the_store(start: Any, say: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    call = world.stub.StreamIsActive(world.ref())
    assert (await read(call)).result is False
    world.verdicts.failure = StoreUnavailable()
    asked = len(world.verdicts.asked)
    world.notifications.put_nowait("lagscale_samples")
    await say.eventually(lambda: len(world.verdicts.asked) > asked)
    world.verdicts.failure = None
    world.verdicts.judgments[1] = say.sustained(9)
    world.notifications.put_nowait("lagscale_samples")
    assert (await read(call)).result is True
    call.cancel()


async def test_the_spec_is_sent_at_once_and_on_every_change(start: Any, say: Any) -> None:
    world = await start()
    call = world.stub.StreamMetricSpec(world.ref())
    assert (await read(call)).metricSpecs[0].targetSize == 500
    world.registry.change(monitors=(say.monitor(1, "ingest-logs", lagThreshold="500"), say.monitor(8, "other")))
    world.registry.change(monitors=(say.monitor(1, "ingest-logs", lagThreshold="7"),))
    world.notifications.put_nowait("lagscale_registry")
    assert (await read(call)).metricSpecs[0].targetSize == 7
    call.cancel()


async def test_streams_end_with_ok_when_their_monitor_is_deleted_and_when_the_replica_stops(
    start: Any, say: Any
) -> None:
    world = await start()
    world.verdicts.judgments = {1: say.calm(), 2: say.calm()}
    gone = [world.stub.StreamIsActive(world.ref()), world.stub.StreamMetricSpec(world.ref())]
    staying = [
        world.stub.StreamIsActive(world.ref("ingest-metrics")), world.stub.StreamMetricSpec(world.ref("ingest-metrics"))
    ]  # fmt: skip
    for call in (*gone, *staying):
        await read(call)
    world.registry.change(monitors=(say.monitor(2, "ingest-metrics", targetLag="0.4"),))
    world.notifications.put_nowait("lagscale_registry")
    for call in gone:
        assert await read(call) is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
    await world.scaler.stop()
    for call in staying:
        assert await read(call) is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("method", ["StreamIsActive", "StreamMetricSpec"])
async def test_an_unknown_monitor_is_an_error_of_the_stream(start: Any, method: str) -> None:
    world = await start()
    call = getattr(world.stub, method)(world.ref("nowhere"))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await read(call)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


async def test_streams_end_with_ok_before_their_connection_must(start: Any, say: Any) -> None:
    world = await start(scaler_max_connection_age_seconds=10, scaler_max_connection_age_grace_seconds=2)
    world.verdicts.judgments[1] = say.calm()
    world.scaler._streams._ages = type(world.scaler._streams._ages)(0.5, 1.0)
    for call in (world.stub.StreamIsActive(world.ref()), world.stub.StreamMetricSpec(world.ref())):
        assert await read(call) is not grpc.aio.EOF
        assert await read(call) is grpc.aio.EOF
        assert await call.code() is grpc.StatusCode.OK
