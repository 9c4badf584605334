"""Triggers that list no topics: their registration, and the answers from partial topics."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import grpc
import psycopg
import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import build_inline_name, compute_content_hash
from lagscale.domain.topics import TopicScope
from lagscale.store.connection import open_pool
from lagscale.store.registrations.load import ROLE, InlineMonitor, PostgresRegistrations
from lagscale.store.registry.monitor_spec import MonitorSpec

pytestmark = pytest.mark.integration
Starting = Callable[..., Awaitable[Any]]


@pytest.mark.parametrize("pattern", ["orders\\..*", None])
async def test_an_inline_trigger_without_a_list_is_registered_for_topic_discovery(
    shared_url: str, pattern: str | None
) -> None:
    name = f"t-{uuid.uuid4().hex[:12]}"
    with psycopg.connect(shared_url, autocommit=True) as connection:
        row = connection.execute("insert into tenant (name) values (%s) returning id", [name]).fetchone()
        assert row is not None
        connection.execute("insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', '{k:1}')", [row[0]])
    digest = compute_content_hash("main", "g", (), {}, pattern=pattern, exclude=("a",))
    name = build_inline_name("g", (), digest)
    spec = MonitorSpec(name, "main", "g", TopicScope((), pattern, ("a",)), {}, policy=parse_policy({}))
    monitor = InlineMonitor(row[0], spec)
    pool = open_pool(shared_url, ROLE, 1, application="test-scaler")
    await pool.open(wait=True)
    store = PostgresRegistrations(pool)
    await store.register(monitor)
    await store.register(monitor)
    (found,) = [one for one in (await store.load()).monitors if one.tenant_id == row[0]]
    await pool.close()
    assert (found.topics, found.target_ids, found.content_hash, found.partial_reason) == ((), (), digest, "")
    with psycopg.connect(shared_url) as connection:
        stored = connection.execute(
            "select topics, topic_pattern, exclude_topics from monitor where id = %s", [found.monitor_id]
        ).fetchone()
    assert stored == (None, pattern, ["a"])


async def partial(start: Starting, say: Any) -> Any:
    world = await start()
    part = replace(world.registry.present.monitors[0], partial_reason="The monitor means 101 topics, at most 100.")
    world.registry.change(monitors=(part, *world.registry.present.monitors[1:]))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.monitors[0].partial_reason != "")
    return world


async def test_partial_topics_are_never_calm_and_have_no_last_known_answer(start: Starting, say: Any) -> None:
    world = await partial(start, say)
    world.verdicts.judgments[1] = say.calm()
    for call in (world.metric, world.active):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call()
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "at most 100" in raised.value.details()


async def test_sustained_lag_in_partial_topics_is_answered(start: Starting, say: Any) -> None:
    world = await partial(start, say)
    world.verdicts.judgments[1] = say.sustained(700, members=3)
    assert (await world.metric()).metricValues[0].metricValueFloat == 1500.0
    assert await world.active() is True


async def test_the_target_lag_of_partial_topics_stays_constant(start: Starting, say: Any) -> None:
    world = await partial(start, say)
    spec = await world.stub.GetMetricSpec(world.ref(), timeout=5)
    assert [one.targetSizeFloat for one in spec.metricSpecs] == [500.0]


async def test_a_monitor_by_pattern_can_be_combined_with_others_in_one_service_type(start: Starting, say: Any) -> None:
    world = await start()
    logs, metrics, *others = world.registry.present.monitors
    by_pattern = replace(metrics, topics=("topic-a", "topic-b"), target_ids=(2, 9))
    world.registry.change(monitors=(logs, by_pattern, *others))
    world.notifications.put_nowait("lagscale_registry")
    await say.eventually(lambda: world.scaler._registrations.directory.registrations.monitors[1].target_ids == (2, 9))
    world.verdicts.judgments |= {1: say.calm(), 2: say.sustained(7)}
    both = "ingest-logs,ingest-metrics"
    spec = await world.stub.GetMetricSpec(world.ref(both), timeout=5)
    assert [one.metricName for one in spec.metricSpecs] == ["ingest-logs", "ingest-metrics"]
    assert (await world.metric("s1-ingest-metrics", service=both)).metricValues[0].metricValueFloat == 7.0
    assert (await world.metric("s0-ingest-logs", service=both)).metricValues[0].metricValueFloat == 0.0
    assert await world.active(service=both) is True
