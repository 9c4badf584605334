"""The scaler's statements on a real database, under the scaler's role."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.tenancy import build_inline_name, compute_content_hash
from lagscale.domain.topics import TopicScope
from lagscale.errors import NotFound, QuotaExceeded, StoreUnavailable
from lagscale.store.connection import open_pool
from lagscale.store.registrations.answers import Decision, PostgresDecisions
from lagscale.store.registrations.load import ROLE, InlineMonitor, PostgresRegistrations, changes
from lagscale.store.registry.monitor_spec import MonitorSpec

pytestmark = pytest.mark.integration


@pytest.fixture
def tenant(shared_url: str) -> int:
    """A tenant with one cluster `main`, bound to a namespace with the tenant's name."""
    name = f"t-{uuid.uuid4().hex[:12]}"
    with psycopg.connect(shared_url, autocommit=True) as connection:
        row = connection.execute(
            "insert into tenant (name, auto_register, max_monitors) values (%s, true, 3) returning id", [name]
        ).fetchone()
        assert row is not None
        connection.execute("insert into namespace_binding (tenant_id, namespace) values (%s, %s)", [row[0], name])
        connection.execute(
            "insert into cluster (tenant_id, name, bootstrap) values (%s, 'main', '{kafka-0:9092,kafka-1:9092}')",
            [row[0]],
        )
    return int(row[0])


def build_inline_monitor(tenant: int, *topics: str, **given: str) -> InlineMonitor:
    digest = compute_content_hash("main", "orders", topics, given)
    name = build_inline_name("orders", topics, digest)
    return InlineMonitor(
        tenant, MonitorSpec(name, "main", "orders", TopicScope(topics), given, policy=parse_policy(given))
    )


async def test_an_inline_monitor_is_registered_with_its_targets(pool: Any, tenant: int) -> None:
    store = PostgresRegistrations(pool)
    before = await store.version()
    monitor = build_inline_monitor(tenant, "b-topic", "a-topic", lagThreshold="7", partitionLimitation="")
    await store.register(monitor)
    assert await store.version() > before
    loaded = await store.load()
    (found,) = [one for one in loaded.monitors if one.tenant_id == tenant]
    assert (found.name, found.cluster, found.consumer_group, found.topics) == (
        monitor.spec.name, "main", "orders", ("b-topic", "a-topic"),
    )  # fmt: skip
    assert found.policy == monitor.spec.policy
    assert found.content_hash == monitor.spec.content
    assert len(set(found.target_ids)) == 2
    (entry,) = [one for one in loaded.tenants if one.tenant_id == tenant]
    assert entry.clusters == {"main": ("kafka-0:9092", "kafka-1:9092")}
    assert loaded.bindings["default", entry.name] == tenant


async def test_targets_are_in_the_order_of_the_topics(pool: Any, tenant: int, shared_url: str) -> None:
    store = PostgresRegistrations(pool)
    await store.register(build_inline_monitor(tenant, "a-topic"))
    await store.register(build_inline_monitor(tenant, "z-topic", "a-topic"))
    found = {one.topics: one.target_ids for one in (await store.load()).monitors if one.tenant_id == tenant}
    assert found["z-topic", "a-topic"][1] == found["a-topic",][0]


async def test_concurrent_registrations_of_one_content_create_one_monitor(
    pool: Any, tenant: int, shared_url: str
) -> None:
    store = PostgresRegistrations(pool)
    await asyncio.gather(*(store.register(build_inline_monitor(tenant, "t", lagThreshold="9")) for _ in range(12)))
    with psycopg.connect(shared_url) as connection:
        counts = connection.execute(
            "select (select count(*) from monitor where tenant_id = %(t)s), "
            "(select count(*) from monitor_version where tenant_id = %(t)s), "
            "(select count(*) from monitor_target where tenant_id = %(t)s)",
            {"t": tenant},
        ).fetchone()
    assert counts == (1, 1, 1)


async def test_the_quota_is_exact_under_concurrency(pool: Any, tenant: int, shared_url: str) -> None:
    store = PostgresRegistrations(pool)
    outcomes = await asyncio.gather(
        *(store.register(build_inline_monitor(tenant, f"topic-{n}")) for n in range(6)), return_exceptions=True
    )
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in outcomes) == 3
    with psycopg.connect(shared_url) as connection:
        assert connection.execute("select count(*) from monitor where tenant_id = %s", [tenant]).fetchone() == (3,)


async def test_a_deleted_cluster_is_not_found(pool: Any, tenant: int) -> None:
    monitor = build_inline_monitor(tenant, "t")
    with pytest.raises(NotFound):
        await PostgresRegistrations(pool).register(replace(monitor, spec=replace(monitor.spec, cluster="gone")))


async def test_a_change_is_notified(pool: Any, tenant: int, shared_url: str) -> None:
    heard = changes(shared_url)
    assert await asyncio.wait_for(anext(heard), 10) == ""
    await PostgresRegistrations(pool).register(build_inline_monitor(tenant, "heard"))
    assert await asyncio.wait_for(anext(heard), 10) == "lagscale_registry"
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute("notify lagscale_samples")
    assert await asyncio.wait_for(anext(heard), 10) in {"lagscale_samples", "lagscale_registry"}
    await heard.aclose()


async def test_decisions_and_request_times_are_written(pool: Any, tenant: int, shared_url: str) -> None:
    store = PostgresRegistrations(pool)
    await store.register(build_inline_monitor(tenant, "asked"))
    (found,) = [one for one in (await store.load()).monitors if one.tenant_id == tenant]
    writer = PostgresDecisions(pool)
    decision = Decision(
        1_700_000_000_500, tenant, found.monitor_id, "r", None, "unknown", None, None, False, "stale", "X"
    )
    await writer.append(
        [decision, replace(decision, replica="s", value=1.5, active=True, snapshot_ms=1_700_000_000_000)]
    )
    await writer.append([decision])
    version = await store.version()
    with psycopg.connect(shared_url, autocommit=True) as connection:
        connection.execute("update monitor set last_asked_at = null where id = %s", [found.monitor_id])
    await writer.mark_asked([found.monitor_id])
    with psycopg.connect(shared_url) as connection:
        rows = connection.execute(
            "select replica, value, extract(epoch from told_at) * 1000 from decision where monitor_id = %s order by 1",
            [found.monitor_id],
        ).fetchall()
        asked = connection.execute(
            "select last_asked_at is not null from monitor where id = %s", [found.monitor_id]
        ).fetchone()
    assert rows == [("r", None, 1_700_000_000_500), ("s", 1.5, 1_700_000_000_500)]
    assert asked == (True,)
    assert await store.version() == version


async def test_a_database_that_nobody_migrated_is_an_unavailable_store(empty_url: str) -> None:
    pool = open_pool(empty_url, ROLE, 1, application="test-empty")
    await pool.open(wait=False)
    # Roles are global to the server, so either the role or the table may be missing.
    with pytest.raises(StoreUnavailable):
        await PostgresRegistrations(pool).version()
    await pool.close()
