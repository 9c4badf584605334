"""Answers of a frozen monitor: every call, restarts, outages of the store, and several freezes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import pytest
from prometheus_client import REGISTRY

from lagscale.domain.verdict.contract import Answer
from lagscale.domain.verdict.freezes import Freeze
from lagscale.errors import StoreUnavailable
from services.scaler.grpc.proto import externalscaler_pb2 as pb

pytestmark = pytest.mark.integration
Code = grpc.StatusCode
HOUR = 3_600_000


@pytest.fixture
def make_freeze(say: Any) -> Any:
    """Creates freezes of the tenant `acme` that began a second ago and end in an hour."""

    def make(name: str = "a", *, tenant: int = 1, since: int = -1000, until: int = HOUR, **of: Any) -> Freeze:
        facts = {"cluster": None, "monitor_id": None, **of}
        return Freeze(name, tenant, since_ms=say.now_ms + since, until_ms=say.now_ms + until, reason="a move", **facts)

    return make


async def frozen(world: Any, say: Any, *freezes: Freeze) -> None:
    """Replace the freezes, and wait until the scaler has loaded them."""
    world.registry.change(freezes=freezes, now_ms=say.now_ms)
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(
        lambda: world.scaler._registrations.directory.registrations.version == world.registry.present.version
    )


async def value(world: Any, **metadata: str) -> float:
    return float((await world.metric(**metadata)).metricValues[0].metricValueFloat)


async def refused(call: Any) -> tuple[Code, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details()


def count(source: str) -> float:
    return REGISTRY.get_sample_value("lagscale_scaler_answers_total", {"source": source}) or 0.0


async def test_a_frozen_monitor_keeps_its_answer_whatever_the_samples_are(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.sustained(9000)
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms - 4000)
    assert await value(world) == 9000
    before = count("frozen")
    await frozen(world, say, make_freeze(monitor_id=1))
    assert await value(world) == 1500
    assert await world.active() is True
    assert count("frozen") == before + 2
    # Later samples do not change it, and the store is not queried any more.
    asked = len(world.verdicts.asked)
    world.verdicts.judgments[1], world.verdicts.holds[1] = say.calm(), Answer(7.0, True, say.now_ms)
    assert await value(world) == 1500
    assert len(world.verdicts.asked) == asked
    await frozen(world, say)
    assert await value(world) == 0
    assert await world.active() is False


async def test_the_answer_is_computed_as_of_the_freeze_and_does_not_expire(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.unknown()
    world.verdicts.holds[1] = Answer(5.0, True, say.now_ms - 20 * HOUR)
    asked: list[Any] = []
    last_known = world.verdicts.find_last_known

    async def spy(request: Any, judgment: Any) -> Any:
        asked.append(request)
        return await last_known(request, judgment)

    world.verdicts.find_last_known = spy
    await frozen(world, say, make_freeze(monitor_id=1, since=-5000))
    assert await value(world) == 5
    (request,) = asked
    assert (request.upto_ms, request.judged_at_ms) == (say.now_ms - 5000, say.now_ms - 5000)
    assert request.policy.hold_ms == 24 * HOUR


async def test_without_a_last_known_answer_it_is_an_error_and_never_zero(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    await frozen(world, say, make_freeze(monitor_id=1))
    for call in (world.metric(), world.active()):
        code, text = await refused(call)
        assert code is Code.UNAVAILABLE
        assert text == (
            "Frozen until 2023-11-14T23:13:20Z (a move); there is no last-known answer. "
            "End the freeze with `lagscale unfreeze`."
        )
    # The target lag does not change.
    spec = await world.stub.GetMetricSpec(world.ref())
    assert [one.targetSize for one in spec.metricSpecs] == [500]
    # It is stored as well: later knowledge does not count.
    world.verdicts.holds[1] = Answer(7.0, True, say.now_ms)
    assert (await refused(world.metric()))[0] is Code.UNAVAILABLE


@pytest.mark.parametrize(
    ("of", "frozen_ones"),
    [
        ({"monitor_id": 1}, {"ingest-logs"}),
        ({"cluster": "main"}, {"ingest-logs", "ingest-metrics"}),
        ({}, {"ingest-logs", "ingest-metrics"}),
        ({"cluster": "another"}, set()),
        ({"tenant": 2}, {"secret-logs"}),
        ({"tenant": 2, "monitor_id": 3}, {"secret-logs"}),
    ],
    ids=["monitor", "cluster", "tenant", "another cluster", "another tenant", "another tenant's monitor"],
)
async def test_a_freeze_is_of_what_it_names_and_of_nothing_else(
    start: Any, say: Any, make_freeze: Any, of: dict[str, Any], frozen_ones: set[str]
) -> None:
    world = await start()
    for number in (1, 2, 3):
        world.verdicts.judgments[number] = say.sustained(9000)
        world.verdicts.holds[number] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze(**of))
    found = set()
    for name, namespace in (("ingest-logs", "shop"), ("ingest-metrics", "shop"), ("secret-logs", "market")):
        request = pb.GetMetricsRequest(scaledObjectRef=world.ref(name, namespace), metricName=name)
        answer = await world.stub.GetMetrics(request)
        if answer.metricValues[0].metricValue == 1500:
            found.add(name)
    assert found == frozen_ones
    assert REGISTRY.get_sample_value("lagscale_scaler_frozen_monitors") == len(frozen_ones)


async def test_it_ends_by_itself_in_database_time(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.sustained(9000)
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze(monitor_id=1, until=600))
    assert await value(world) == 1500
    version, clock = world.registry.present.version, world.scaler._last.clock
    world.verdicts.judgments[1] = say.sustained(9000, now_ms=say.now_ms + 1000)
    await say.eventually(lambda: clock.now_ms() >= say.now_ms + 600)
    assert await value(world) == 9000
    assert REGISTRY.get_sample_value("lagscale_scaler_frozen_monitors") == 0
    assert world.registry.present.version == version


async def test_of_several_freezes_any_one_applies_and_the_answer_stays(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.sustained(9000)
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    mine, whole = make_freeze("mine", monitor_id=1, since=-9000), make_freeze("whole", until=2 * HOUR)
    await frozen(world, say, mine)
    assert await value(world) == 1500
    # The second one alone would give another answer.
    world.verdicts.holds[1] = Answer(7.0, True, say.now_ms)
    await frozen(world, say, mine, whole)
    assert await value(world) == 1500
    await say.eventually(lambda: {name for _, name in world.freezes.rows} == {"mine", "whole"})
    await frozen(world, say, whole)
    assert await value(world) == 1500
    # A new freeze uses the present last-known answer.
    await frozen(world, say)
    assert await value(world) == 9000
    await frozen(world, say, make_freeze("again", monitor_id=1))
    assert await value(world) == 7


async def test_replicas_give_the_same_answer_though_they_would_compute_different_ones(
    start: Any, say: Any, make_freeze: Any
) -> None:
    one = await start()
    other = await start(freezes=one.freezes, cache_dir=one.scaler._settings.cache_dir / "other")
    for world, held in ((one, 1500.0), (other, 7.0)):
        world.verdicts.judgments[1] = say.calm()
        world.verdicts.holds[1] = Answer(held, True, say.now_ms)
        await frozen(world, say, make_freeze(monitor_id=1))
    assert [await value(one), await value(other)] == [1500, 1500]
    assert len(other.verdicts.asked) == 0


async def test_concurrent_calls_compute_it_once(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze(monitor_id=1))
    assert set(await asyncio.gather(*(value(world) for _ in range(20)))) == {1500.0}
    assert len(world.verdicts.asked) == 1


async def test_a_restart_without_the_store_gives_the_same_answer(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments |= {1: say.calm(), 2: say.calm()}
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze())
    assert await value(world) == 1500
    nothing = await refused(world.metric("s0-ingest-metrics", service="ingest-metrics"))
    await world.scaler.stop()
    after = await start(registry_failure=StoreUnavailable())
    after.verdicts.failure = after.freezes.failure = StoreUnavailable()
    assert await value(after) == 1500
    assert await after.active() is True
    assert await refused(after.metric("s0-ingest-metrics", service="ingest-metrics")) == nothing
    # The local cache has the answer of that freeze alone.
    assert len(after.scaler._frozen.dump()["stored"]) == 2


async def test_a_kill_without_the_store_gives_the_same_answer(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze())
    assert await value(world) == 1500
    # It is written within a second; a killed process writes nothing more.
    folder = world.scaler._settings.cache_dir / "scaler"
    await say.eventually(lambda: (folder / "frozen.json").exists() and not world.scaler._frozen.dirty)
    after = await start(registry_failure=StoreUnavailable())
    after.verdicts.failure = after.freezes.failure = StoreUnavailable()
    assert await value(after) == 1500


async def test_without_the_store_from_the_start_the_replicas_own_judgments_count(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    # Last-known answers are off, and it was long ago: the answer of a freeze does not expire.
    old = say.now_ms - 5 * HOUR
    world.verdicts.judgments[1] = say.sustained(800, at_ms=old, now_ms=say.now_ms)
    assert await value(world) == 800
    world.verdicts.failure = world.freezes.failure = StoreUnavailable()
    await frozen(world, say, make_freeze(monitor_id=1))
    assert await value(world) == 800
    assert await world.active() is True
    # Without judgments of this replica there is no last-known answer.
    await frozen(world, say, make_freeze())
    code, text = await refused(world.metric("s0-ingest-metrics", service="ingest-metrics"))
    assert (code, text.partition(" (")[0]) == (Code.UNAVAILABLE, "Frozen until 2023-11-14T23:13:20Z")
    # The store is available again, and its answer counts for all replicas.
    world.verdicts.failure = world.freezes.failure = None
    world.verdicts.holds[1] = Answer(750.0, True, old)
    assert await value(world) == 750


async def test_a_store_that_hangs_does_not_hang_the_call(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start(scaler_call_timeout_seconds=0.2)
    world.verdicts.judgments[1] = say.sustained(800)
    assert await value(world) == 800
    await frozen(world, say, make_freeze(monitor_id=1, since=0))
    world.verdicts.gate.clear()
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    assert await value(world) == 800
    world.verdicts.gate.set()
    await say.eventually(lambda: bool(world.freezes.rows))
    assert await value(world) == 1500


async def test_streams_follow(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm(active=False)
    stream = world.stub.StreamIsActive(world.ref(), timeout=30)
    assert (await stream.read()).result is False
    world.verdicts.holds[1] = Answer(0.0, True, say.now_ms)
    await frozen(world, say, make_freeze(monitor_id=1))
    assert (await asyncio.wait_for(stream.read(), 5)).result is True
    # While it is frozen it is not read, and the stream stays open.
    assert not world.scaler._streams._watched
    await frozen(world, say)
    assert (await asyncio.wait_for(stream.read(), 5)).result is False
    stream.cancel()


async def test_a_stream_sends_nothing_without_a_last_known_answer(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm(active=False)
    await frozen(world, say, make_freeze(monitor_id=1))
    stream = world.stub.StreamIsActive(world.ref(), timeout=30)
    first = asyncio.ensure_future(stream.read())
    await say.eventually(lambda: bool(world.freezes.rows))
    assert not first.done()
    await frozen(world, say)
    assert (await asyncio.wait_for(first, 5)).result is False
    stream.cancel()


async def test_of_several_monitors_one_with_a_last_known_answer_is_active(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    world.verdicts.judgments |= {1: say.calm(), 2: say.calm()}
    both = "ingest-logs,ingest-metrics"
    assert await world.active(service=both) is False
    await frozen(world, say, make_freeze(monitor_id=1))
    assert (await refused(world.active(service=both)))[0] is Code.UNAVAILABLE
    world.verdicts.holds[1] = Answer(3.0, True, say.now_ms)
    await frozen(world, say, make_freeze("again", monitor_id=1))
    assert await world.active(service=both) is True
    assert await value(world, service=both) == 3


async def test_each_set_of_overrides_has_its_own_answer(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    (first, *others) = world.registry.present.monitors
    world.registry.change(monitors=(replace(first, overridable=True), *others))
    world.verdicts.judgments[1] = say.calm()
    held = iter((Answer(1500.0, True, say.now_ms), Answer(40.0, True, say.now_ms)))

    async def last_known(_ask: Any, _judgment: Any) -> Answer | None:
        return next(held)

    world.verdicts.find_last_known = last_known
    await frozen(world, say, make_freeze(monitor_id=1))
    for _ in range(2):
        assert [await value(world), await value(world, lagThreshold="50")] == [1500, 40]
    assert {asked.overrides for asked, _ in world.freezes.rows} == {"", '{"lagThreshold": "50"}'}


async def test_an_edited_policy_changes_nothing_until_the_end(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    world.verdicts.judgments[1] = say.calm()
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    one = make_freeze(monitor_id=1)
    await frozen(world, say, one)
    assert await value(world) == 1500
    world.verdicts.holds[1] = Answer(7.0, True, say.now_ms)
    world.registry.change(monitors=(say.monitor(1, "ingest-logs", lagThreshold="50"),))
    await frozen(world, say, one)
    assert await value(world) == 1500


async def test_an_inline_monitor_is_registered_and_answered_when_the_freeze_is_over(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    await frozen(world, say, make_freeze(tenant=2))
    given = {"bootstrapServers": "kafka-5:9092", "consumerGroup": "g", "topic": "t"}
    ref = world.ref("", "market", **given)
    code, text = await refused(world.stub.IsActive(ref))
    assert (code, text.partition(" until ")[0]) == (Code.UNAVAILABLE, "Frozen")
    assert [one.spec.topics for one in world.registry.registered] == [("t",)]


async def test_partial_topics_have_no_last_known_answer(start: Any, say: Any, make_freeze: Any) -> None:
    world = await start()
    (first, *others) = world.registry.present.monitors
    world.registry.change(monitors=(replace(first, partial_reason="Only 3 of 9 topics are measured."), *others))
    world.verdicts.judgments[1] = say.sustained(9000)
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze(monitor_id=1))
    assert (await refused(world.metric()))[0] is Code.UNAVAILABLE


async def test_decisions_are_recorded_as_frozen_and_do_not_count_as_last_known(
    start: Any, say: Any, make_freeze: Any
) -> None:
    world = await start()
    world.verdicts.judgments |= {1: say.calm(), 2: say.calm()}
    world.verdicts.holds[1] = Answer(1500.0, True, say.now_ms)
    await frozen(world, say, make_freeze())
    await value(world)
    await refused(world.metric("s0-ingest-metrics", service="ingest-metrics"))
    await world.scaler._decision_log.flush()
    recorded = {row.monitor_id: (row.reason, row.code, row.value, row.held) for row in world.decisions.rows}
    assert recorded == {1: ("frozen", "OK", 1500.0, True), 2: ("frozen", "UNAVAILABLE", None, False)}
    assert REGISTRY.get_sample_value("lagscale_scaler_last_known_ratio") == 0
